// Every image of a small map in place of its point: gray images as ink in the point's color, others in a frame.
const COVERED = 0.42; // share of the map that tiles cover
const SMALL_TILE = 18; // tiles of many images overlap rather than become smaller, up to CROWDED times the map's area
const CROWDED = 2.2;
const LEAST_TILE = 12; // a smaller image shows nothing
const MOST_TILE = 56;
const WAITING = 3; // half the side of a tile whose image has not arrived

class Tiles {
  constructor(chart, overlay) {
    this.chart = chart;
    this.overlay = overlay;
    this.inks = new Map();
  }

  // The pixels of a tile; 0 if points are drawn.
  side() {
    const { header, images, camera, fitted } = this.chart;
    if (header.tiles !== "all" || !header.sheets || !images) return 0;
    const { width, height } = this.chart.room();
    const room = (width * height) / header.count;
    const side = Math.max(Math.sqrt(COVERED * room), Math.min(SMALL_TILE, Math.sqrt(CROWDED * room)));
    return side < LEAST_TILE ? 0 : Math.min(MOST_TILE, side * Math.max(1, camera.zoom / fitted));
  }

  draw(pen, width, height, side) {
    for (let row = 0; row < this.chart.header.count; row += 1) {
      const [x, y] = this.chart.screenPosition(row);
      if (x < -side || y < -side || x > width + side || y > height + side) continue;
      pen.globalAlpha = this.chart.grayed(row) ? 0.2 : 1;
      this.drawTile(pen, row, x, y, side);
    }
    pen.globalAlpha = 1;
  }

  drawTile(pen, row, x, y, side) {
    const hasColors = this.chart.header.color.names?.length !== 1;
    const tint = hasColors ? this.chart.tint(row) : "";
    const ink = this.ink(row, tint);
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

  ink(row, tint) {
    const id = this.chart.idOf(row);
    const key = `${id} ${tint}`;
    if (this.inks.has(key)) return this.inks.get(key);
    const { image, ...where } = this.overlay.sheetOf(id);
    if (!image) return null;
    if (this.inks.size > 4 * this.chart.header.count) this.inks.clear(); // other data or many colors came before
    this.inks.set(key, inked(image, where, this.chart.header.sheets.cell, tint));
    return this.inks.get(key);
  }
}
