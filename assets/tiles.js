// Images of a small map in place of points, where they do not overlap; dots elsewhere. Gray images are drawn as ink in the
// point's color, others in a frame.
const COVERED = 0.42; // share of the map that tiles cover if all of them fit
const LEGIBLE = 26; // pixels; of many images some become dots rather than smaller or overlapping tiles
const SPARSE = 12; // times the map's area that tiles of LEGIBLE pixels would cover at most; of more images all are points
const MOST_TILE = 56;
const APART = 0.92; // of a tile's side, by which two tiles are apart
const WAITING = 3; // half the side of a tile whose image has not arrived
const DOT = 2.6; // radius of a dot
const DRAWN = 1;
const AROUND = [-1, 0, 1].flatMap((x) => [-1, 0, 1].map((y) => [x, y]));
const COVERED_BY_TILE = 2; // a dot below a tile, which would show through ink

class Tiles {
  constructor(chart, overlay) {
    this.chart = chart;
    this.overlay = overlay;
    this.inks = new Map();
    this.placed = new Uint8Array(0);
    this.boxes = []; // of the images that are drawn, which names leave free
    this.points = null; // the resting positions and the distance that `placed` was chosen for
    this.least = 0;
  }

  // The pixels of a tile; 0 if points are drawn.
  side() {
    const { header, images, camera, fitted } = this.chart;
    if (header.tiles !== "all" || !header.sheets || !images) return 0;
    const { width, height } = this.chart.room();
    const room = (width * height) / header.count;
    if (LEGIBLE ** 2 > SPARSE * room) return 0;
    const side = Math.max(Math.sqrt(COVERED * room), LEGIBLE);
    return Math.min(MOST_TILE, side * Math.max(1, camera.zoom / fitted));
  }

  draw(pen, width, height, side) {
    this.place(side);
    const spots = [];
    for (let row = 0; row < this.chart.header.count; row += 1) {
      const [x, y] = this.chart.screenPosition(row);
      if (x < -side || y < -side || x > width + side || y > height + side) continue;
      pen.globalAlpha = this.chart.grayed(row) ? 0.2 : 1;
      if (this.placed[row] === DRAWN) spots.push([row, x, y]);
      else if (!this.placed[row]) this.drawDot(pen, row, x, y);
    }
    const half = side / 2;
    this.boxes = spots.map(([, x, y]) => ({ left: x - half, right: x + half, top: y - half, bottom: y + half }));
    for (const [row, x, y] of spots) {
      pen.globalAlpha = this.chart.grayed(row) ? 0.2 : 1;
      this.drawTile(pen, row, x, y, side);
    }
    pen.globalAlpha = 1;
  }

  // Choose the images that are drawn, where the points will rest: they stay the same while points travel and while the map
  // is moved, and an image that is drawn stays drawn where it can, so that epochs do not flicker.
  place(side) {
    const { to, camera, header } = this.chart;
    const least = (APART * side) / camera.zoom; // in units of the map
    if (to === this.points && least === this.least) return;
    Object.assign(this, { points: to, least });
    const before = this.placed.length === header.count ? this.placed : new Uint8Array(header.count);
    const rows = [...before.keys()].sort((a, b) => (before[b] === DRAWN) - (before[a] === DRAWN) || a - b);
    this.placed = apart(to, rows, least, (side / 2 + DOT) / camera.zoom);
  }

  drawDot(pen, row, x, y) {
    pen.fillStyle = this.chart.tint(row);
    pen.beginPath();
    pen.arc(x, y, DOT, 0, 2 * Math.PI);
    pen.fill();
  }

  drawTile(pen, row, x, y, side) {
    const hasColors = this.chart.header.color.names?.length !== 1;
    const tint = hasColors ? this.chart.tint(row) : "";
    const ink = this.ink(this.chart.idOf(row), tint);
    if (!ink) {
      pen.fillStyle = this.chart.tint(row);
      pen.fillRect(x - WAITING, y - WAITING, 2 * WAITING, 2 * WAITING);
      return;
    }
    pen.drawImage(ink.canvas, x - side / 2, y - side / 2, side, side);
    if (ink.isGray || !hasColors) return;
    pen.lineWidth = side < 24 ? 1 : 1.5;
    pen.strokeStyle = tint;
    pen.strokeRect(x - side / 2, y - side / 2, side, side);
  }

  // An image as a canvas, a gray one as ink of a color; null until it has arrived.
  ink(id, tint) {
    const key = `${id} ${tint}`;
    if (this.inks.has(key)) return this.inks.get(key);
    const { image, ...where } = this.overlay.sheetOf(id);
    if (!image) return null;
    if (this.inks.size > 4 * this.chart.header.count) this.inks.clear(); // other data or many colors came before
    this.inks.set(key, inked(image, where, this.chart.header.sheets.cell, tint));
    return this.inks.get(key);
  }
}

// Flags of the points (x, y, x, y, …), which are taken in the order of `rows`: DRAWN if they are apart from all drawn points
// before them by a distance along x or along y, COVERED_BY_TILE if they are within reach of a drawn point along both.
function apart(points, rows, distance, reach) {
  const flags = new Uint8Array(points.length / 2);
  const cells = new Map(); // a cell holds one drawn point at most
  const cellOf = (row, x = 0, y = 0) => `${Math.floor(points[2 * row] / distance) + x} ${Math.floor(points[2 * row + 1] / distance) + y}`;
  const isNear = (row, least) => AROUND.some(([x, y]) => {
    const other = cells.get(cellOf(row, x, y));
    return other !== undefined && Math.abs(points[2 * other] - points[2 * row]) < least
      && Math.abs(points[2 * other + 1] - points[2 * row + 1]) < least;
  });
  for (const row of rows) {
    if (isNear(row, distance)) continue;
    flags[row] = DRAWN;
    cells.set(cellOf(row), row);
  }
  for (const row of rows) if (!flags[row] && isNear(row, Math.min(reach, distance))) flags[row] = COVERED_BY_TILE;
  return flags;
}
