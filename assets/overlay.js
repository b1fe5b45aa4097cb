// The layer above a map's points, on a 2-D canvas: images, seams, marks, the point under the pointer, and the lasso.
const TILE = 44;
const HALF = TILE / 2 - 4; // half the side of an image
const NARROW = 480; // pixels of a map's width below which an image of the usual size would hide a group
const SMALLER = 12; // half the side of an image on a narrow map
const APART_TILES = 52; // pixels between the middles of two images of a map, so that the points between them are seen
const FEW = 0.2; // share of the map that images of all points cover at most; then all are shown, smaller where they are close
const CLEAR = 40; // pixels from a mark within which no image lies
const FRAMED = 24; // pixels from which an image of a grid shows its color as a frame; smaller ones have a strip below
const LINE = 16;
const RING = 12; // half the side of a mark
const ASIDE = 14; // pixels from a point to its word
const MOST_STEPS = 6; // lines above and below a point where its word may be
const MOST_IMAGES_PER_CELL = 6;
const PALE = 0.85; // how much of the points below an image between them its paper hides, and up to which share of its radius
const THIN = 10; // radius below which a ring is one of many

const boxAround = (x, y) => ({ left: x - RING, right: x + RING, top: y - RING, bottom: y + RING });
const overlap = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

class Overlay {
  constructor(chart) {
    this.chart = chart;
    this.sheetImages = new Map();
    this.tiles = new Tiles(chart, this);
    this.names = new Names(chart);
    this.isTiled = false; // whether images stand in place of points
  }

  draw(width, height, density) {
    const pen = this.chart.surface.getContext("2d");
    this.size = { width, height };
    pen.setTransform(density, 0, 0, density, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.fillStyle = "rgba(0, 0, 0, 0.004)"; // some browsers keep the last picture of a canvas that is only cleared
    pen.fillRect(0, 0, 1, 1);
    if (this.chart.header.grid) this.drawGrid(pen, width, height);
    else if (this.tiles.side()) this.tiles.draw(pen, width, height, this.tiles.side());
    this.taken = []; // the boxes of images, marks and words, which a word must not cover
    const marks = this.chart.header.marks ?? [];
    const isPlain = !this.chart.header.grid && !this.tiles.side();
    if (isPlain && this.chart.images && this.chart.header.sheets) this.drawImages(pen, width, height, marks);
    for (const mark of marks) this.drawMark(pen, mark);
    const rings = marks.map(({ row }) => boxAround(...this.chart.screenPosition(row)));
    this.tell(!isPlain && !this.chart.header.grid);
    const { isTiled } = this;
    const images = isTiled ? this.tiles.boxes : [...this.taken];
    const side = isTiled ? this.tiles.side() : images.length ? TILE - 8 : 0;
    this.taken.push(...this.names.draw(pen, width, height, rings, images, side, isTiled ? Infinity : NEAR));
    for (const { row, word } of marks) this.drawWord(pen, word, ...this.chart.screenPosition(row));
    for (const guest of this.chart.header.placed ?? []) this.drawGuest(pen, guest);
    if (this.chart.hovered !== NONE && this.chart.hovered < this.chart.header.count) this.drawHover(pen);
    if (this.chart.path) this.drawPath(pen);
  }

  tell(isTiled) { // the legend shows the marks of the map
    if (isTiled === this.isTiled) return;
    this.isTiled = isTiled;
    this.chart.legend.draw();
  }

  // Images that lie apart on the screen, also from the marks. They are chosen where the points will rest, and drawn on
  // their way there.
  drawImages(pen, width, height, marks) {
    const areFew = this.chart.header.count * TILE ** 2 <= FEW * width * height;
    const drawn = areFew ? this.allImages(width, height) : this.chosenImages(width, height, marks).map((row) => ({
      row, side: 2 * (width < NARROW ? SMALLER : HALF), at: this.chart.screenPosition(row) }));
    for (const { row, side, at: [x, y] } of drawn) {
      pen.globalAlpha = this.chart.grayed(row) ? 0.25 : 1;
      this.drawImage(pen, this.chart.idOf(row), x, y, side, this.chart.tint(row), true);
      this.taken.push({ left: x - side / 2, right: x + side / 2, top: y - side / 2, bottom: y + side / 2 });
    }
    pen.globalAlpha = 1;
  }

  // Every image in sight, as large as the distance to the nearest other point allows, and within the frame.
  allImages(width, height) {
    const rows = [...Array(this.chart.header.count).keys()];
    const spots = rows.map((row) => this.chart.screenPosition(row));
    const distance = ([x, y], [a, b]) => Math.max(Math.abs(x - a), Math.abs(y - b));
    const within = (value, size, side) => Math.max(side / 2, Math.min(size - side / 2, value));
    return rows.filter((row) => spots[row][0] >= 0 && spots[row][1] >= 0 && spots[row][0] <= width && spots[row][1] <= height)
      .map((row) => {
        const nearest = Math.min(...rows.filter((other) => other !== row).map((other) => distance(spots[row], spots[other])));
        const side = Math.max(LEGIBLE, Math.min(2 * HALF, nearest - 2));
        return { row, side, at: [within(spots[row][0], width, side), within(spots[row][1], height, side)] };
      });
  }

  chosenImages(width, height, marks) {
    const { to, camera, header, revision } = this.chart;
    const state = [width, height, camera.x, camera.y, camera.zoom, header.tiles, revision, ...marks.map(({ row }) => row)].join(" ");
    if (this.chosenOf === to && this.chosenState === state) return this.chosen;
    const before = this.chosenOf?.length === to.length ? this.chosen : [];
    Object.assign(this, { chosenOf: to, chosenState: state, chosen: this.chooseImages(width, height, marks, new Set(before)) });
    return this.chosen;
  }

  // One image for each cell of the screen, if cells hold few points; an image that is drawn stays drawn where it can. Where
  // points have groups, an image of no group would hide them.
  chooseImages(width, height, marks, before) {
    const [x0, y0] = this.chart.toMap(0, height);
    const [x1, y1] = this.chart.toMap(width, 0);
    const spans = [...this.chart.within(x0, y0, x1, y1)];
    const total = spans.reduce((sum, rows) => sum + rows.length, 0);
    const across = Math.ceil(width / TILE);
    const isCrowded = total > MOST_IMAGES_PER_CELL * across * Math.ceil(height / TILE);
    if (isCrowded && !this.chart.header.tiles) return [];
    const spot = (row) => this.chart.toScreen(this.chart.to[2 * row], this.chart.to[2 * row + 1]);
    const { values, header: { color } } = this.chart;
    const hasGroups = Boolean(color.names) && values.some((value) => value >= 0);
    const best = new Map();
    for (const rows of spans) {
      for (const row of rows) {
        if (hasGroups && values[row] < 0) continue;
        const [sx, sy] = spot(row);
        if (sx < HALF || sy < HALF || sx > width - HALF || sy > height - HALF) continue; // the edge would cut it
        const cell = Math.floor(sy / TILE) * across + Math.floor(sx / TILE);
        const rank = (this.chart.grayed(row) ? 2e9 : before.has(row) ? 0 : 1e9) + row;
        if (!best.has(cell) || rank < best.get(cell)) best.set(cell, rank);
      }
    }
    const taken = marks.map(({ row }) => [...spot(row), CLEAR]);
    const chosen = [];
    for (const rank of [...best.values()].sort((a, b) => a - b)) {
      const row = rank % 1e9;
      const [sx, sy] = spot(row);
      if (taken.some(([x, y, apart]) => Math.abs(x - sx) < apart && Math.abs(y - sy) < apart)) continue;
      taken.push([sx, sy, APART_TILES]);
      chosen.push(row);
    }
    return chosen;
  }

  // A grid of images: an image lies at (column, −row); the brighter a seam, the farther apart its two images.
  drawGrid(pen, width, height) {
    const side = this.chart.camera.zoom;
    const [x0, y0] = this.chart.toMap(0, height);
    const [x1, y1] = this.chart.toMap(width, 0);
    this.drawSeams(pen, side, x0 - 1, -y1 - 1, x1 + 1, -y0 + 1);
    const gap = Math.max(0, Math.min(6, side * 0.14));
    for (const rows of this.chart.within(x0 - 1, y0 - 1, x1 + 1, y1 + 1)) {
      for (const row of rows) {
        const [sx, sy] = this.chart.screenPosition(row);
        if (sx < -side || sy < -side || sx > width + side || sy > height + side) continue;
        pen.globalAlpha = this.chart.grayed(row) ? 0.18 : 1;
        if (this.chart.images && side >= 5) {
          this.drawImage(pen, this.chart.idOf(row), sx, sy, side - gap, side >= FRAMED ? this.chart.tint(row) : "");
          if (side < FRAMED) this.drawStrip(pen, row, sx, sy, side - gap);
        }
        else {
          pen.fillStyle = this.chart.tint(row);
          pen.fillRect(sx - side / 2, sy - side / 2, side - gap, side - gap);
        }
      }
    }
    pen.globalAlpha = 1;
  }

  drawStrip(pen, row, x, y, side) { // a frame would hide a small image
    const height = Math.max(1.5, side * 0.16);
    pen.fillStyle = this.chart.tint(row);
    pen.fillRect(x - side / 2, y + side / 2 - height, side, height);
  }

  drawSeams(pen, side, left, top, right, bottom) {
    if (side < 5) return;
    const { columns, rows, low, high } = this.chart.header.grid;
    const bins = RAMP.map(() => []);
    const bin = (distance) => Math.max(0, Math.min(RAMP.length - 1, Math.round(((distance - low) / (high - low || 1)) * (RAMP.length - 1))));
    const last = (value, most) => Math.min(most, Math.ceil(value));
    for (let row = Math.max(0, Math.floor(top)); row <= last(bottom, rows - 1); row += 1) {
      for (let column = Math.max(0, Math.floor(left)); column <= last(right, columns - 1); column += 1) {
        const beside = column + 1 < columns ? this.chart.seams.right[row * (columns - 1) + column] : NaN;
        const below = row + 1 < rows ? this.chart.seams.down[row * columns + column] : NaN;
        if (Number.isFinite(beside)) bins[bin(beside)].push([column + 0.5, 0.5 - row, column + 0.5, -0.5 - row]);
        if (Number.isFinite(below)) bins[bin(below)].push([column - 0.5, -0.5 - row, column + 0.5, -0.5 - row]);
      }
    }
    pen.lineWidth = Math.max(1, Math.min(6, side * 0.14));
    bins.forEach((lines, at) => {
      pen.beginPath();
      for (const [ax, ay, bx, by] of lines) {
        pen.moveTo(...this.chart.toScreen(ax, ay));
        pen.lineTo(...this.chart.toScreen(bx, by));
      }
      pen.strokeStyle = RAMP[at];
      pen.stroke();
    });
  }

  sheetOf(id) {
    const where = positionOf(this.chart.header.sheets, id);
    if (!this.sheetImages.has(where.url)) {
      this.sheetImages.set(where.url, null);
      fetchPart(where.url, asImage).then((image) => {
        this.sheetImages.set(where.url, image);
        this.chart.ask(false);
        this.chart.legend.paint();
        this.chart.showTip(); // the first tip was shown before its image had arrived
      }, () => {});
    }
    return { image: this.sheetImages.get(where.url), ...where };
  }

  // An image, within a frame of a color a gray one as ink of this color: black tiles would hide the points between them.
  // Between points, ink needs no frame.
  drawImage(pen, id, x, y, side, frame, isBetween = false) {
    const { cell } = this.chart.header.sheets;
    const { image, column, row } = this.sheetOf(id);
    if (!image) return;
    const ink = frame ? this.tiles.ink(id, frame) : null;
    if (ink?.isGray) {
      pen.fillStyle = isBetween ? this.softPaper(pen, x, y, side / 2) : this.chart.paper;
      pen.fillRect(x - side / 2, y - side / 2, side, side);
      pen.drawImage(ink.canvas, x - side / 2, y - side / 2, side, side);
    } else pen.drawImage(image, column * cell, row * cell, cell, cell, x - side / 2, y - side / 2, side, side);
    if (!frame || (ink?.isGray && isBetween)) return;
    pen.lineWidth = side < 20 ? 1.5 : 2;
    pen.strokeStyle = frame;
    pen.strokeRect(x - side / 2, y - side / 2, side, side);
  }

  // The paper below an image between points, which it hides in its middle and leaves at its edge.
  softPaper(pen, x, y, radius) {
    const paper = rgbOf(this.chart.paper).join(", ");
    const soft = pen.createRadialGradient(x, y, PALE * radius, x, y, radius);
    soft.addColorStop(0, `rgba(${paper}, ${PALE})`);
    soft.addColorStop(1, `rgba(${paper}, 0)`);
    return soft;
  }

  drawHover(pen) {
    const [x, y] = this.chart.screenPosition(this.chart.hovered);
    const k = this.chart.header.width;
    pen.strokeStyle = this.chart.text;
    pen.lineWidth = 1.5;
    if (this.chart.neighbors) {
      for (let at = 0; at < k; at += 1) {
        const other = this.chart.neighbors[this.chart.hovered * k + at];
        if (other < 0) continue;
        const [ox, oy] = this.chart.screenPosition(other);
        pen.beginPath(); pen.moveTo(x, y); pen.lineTo(ox, oy); pen.globalAlpha = 0.75; pen.stroke();
        pen.beginPath(); pen.arc(ox, oy, 6, 0, 2 * Math.PI); pen.globalAlpha = 1; pen.stroke();
      }
    }
    pen.lineWidth = 3;
    pen.beginPath(); pen.arc(x, y, 9, 0, 2 * Math.PI); pen.stroke();
  }

  drawMark(pen, { row, lines, color, radius = 11 }) { // a ring; filled if it has a color of its own
    const [x, y] = this.chart.screenPosition(row);
    pen.strokeStyle = color || this.chart.text;
    pen.lineWidth = radius < THIN ? 1 : 1.25;
    for (const other of lines ?? []) {
      const [ox, oy] = this.chart.screenPosition(other);
      pen.beginPath(); pen.moveTo(x, y); pen.lineTo(ox, oy); pen.stroke();
    }
    pen.lineWidth = radius < THIN ? 1.25 : color ? 2 : 2.5;
    pen.beginPath(); pen.arc(x, y, radius, 0, 2 * Math.PI);
    if (color) {
      pen.globalAlpha = 0.35;
      pen.fillStyle = color;
      pen.fill();
      pen.globalAlpha = 1;
    }
    pen.stroke();
    this.taken.push(boxAround(x, y));
  }

  drawWord(pen, word, x, y) {
    if (!word) return;
    pen.font = wordFont(this.chart.root);
    const length = pen.measureText(word).width;
    const box = this.placeWord(x, y, length);
    this.taken.push(box);
    const middle = (box.top + box.bottom) / 2;
    if (Math.abs(middle - y) >= LINE) this.drawLeader(pen, x, y, box.left > x ? box.left - 2 : box.right + 2, middle);
    pen.lineWidth = 4;
    pen.strokeStyle = this.chart.paper;
    pen.fillStyle = this.chart.text;
    pen.textBaseline = "middle";
    pen.strokeText(word, box.left, middle);
    pen.fillText(word, box.left, middle);
  }

  // The box of a word: the nearest one beside, below or above its point that covers no mark and no other word.
  placeWord(x, y, length) {
    const { width, height } = this.size;
    const sides = [x + ASIDE, x - ASIDE - length].filter((left) => left >= 0 && left + length <= width);
    if (!sides.length) sides.push(x + ASIDE);
    const nearest = Math.max(LINE / 2, Math.min(height - LINE / 2, y));
    for (let step = 0; step <= MOST_STEPS; step += 1) {
      for (const middle of step ? [nearest + step * LINE, nearest - step * LINE] : [nearest]) {
        if (middle < LINE / 2 || middle > height - LINE / 2) continue;
        for (const left of sides) {
          const box = { left, right: left + length, top: middle - LINE / 2, bottom: middle + LINE / 2 };
          if (!this.taken.some((other) => overlap(box, other))) return box;
        }
      }
    }
    return { left: sides[0], right: sides[0] + length, top: nearest - LINE / 2, bottom: nearest + LINE / 2 };
  }

  // A line from a mark's ring to a word that is not beside it.
  drawLeader(pen, x, y, toX, toY) {
    const share = RING / Math.hypot(toX - x, toY - y);
    pen.lineWidth = 1.5;
    pen.strokeStyle = this.chart.text;
    pen.beginPath();
    pen.moveTo(x + share * (toX - x), y + share * (toY - y));
    pen.lineTo(toX, toY);
    pen.stroke();
  }

  drawGuest(pen, { at, word }) {
    const [x, y] = this.chart.toScreen(...this.chart.drawnAt(at));
    pen.fillStyle = this.chart.text;
    pen.font = "20px sans-serif";
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillText("★", x, y);
    pen.textAlign = "start";
    this.taken.push(boxAround(x, y));
    this.drawWord(pen, word, x, y);
  }

  drawPath(pen) {
    pen.beginPath();
    this.chart.path.forEach(([x, y], at) => (at ? pen.lineTo(x, y) : pen.moveTo(x, y)));
    pen.closePath();
    pen.fillStyle = this.chart.text;
    pen.globalAlpha = 0.08;
    pen.fill();
    pen.globalAlpha = 1;
    pen.setLineDash([5, 4]);
    pen.lineWidth = 1.5;
    pen.strokeStyle = this.chart.text;
    pen.stroke();
    pen.setLineDash([]);
  }
}

