// Drawing for lessons: elements, a plane with points that can be dragged, a cloud of many points, charts and digits.
// Every picture takes its colors from the theme, so that lessons look right on light and dark pages and when printed.
const COLORS = { before: "#8b9098", after: "#009e73", refined: "#cc79a7", query: "#e69f00", hit: "#0072b2", miss: "#d55e00",
  gray: "#8b9098" };
const PALETTE = CLASS_COLORS.light;
const DIGIT_SIDE = 8;

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node[name] = value;
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

// An HTML element: `element("button", { class: "play", onclick }, "Play")`.
function element(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

// Names that end no line at their hyphen.
const unbroken = (html) => html.replaceAll("t-SNE", "t-\u2060SNE");

// An element from markup that a lesson's author wrote, such as a formula. Never pass what a user typed.
function markup(tag, html, attributes = {}) {
  const node = element(tag, attributes);
  node.innerHTML = unbroken(html);
  return node;
}

// An SVG element.
function shape(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

// Arrays of data files arrive as {dtype, shape, base64}; `array` gives a typed array with its `shape`.
const TYPES = { float32: Float32Array, int32: Int32Array, int16: Int16Array, uint8: Uint8Array };
function array({ dtype, shape: sizes, base64 }) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  return Object.assign(new TYPES[dtype](bytes.buffer), { shape: sizes });
}

// On a narrow screen a picture is drawn smaller instead of being scaled down, so that letters and handles keep their size.
const STAGE_PADDING = 18;
const shareOf = (stage, width) => (stage.clientWidth ? clamp((stage.clientWidth - STAGE_PADDING) / width, 0.5, 1) : 1);

// Pixels of the screen by pixel of a canvas; a presentation enlarges the stage.
const pixelRatio = (canvas) => (window.devicePixelRatio || 1) * Math.max(1, Number(getComputedStyle(canvas).getPropertyValue("--scale")) || 1);

// The smallest letters of a picture: a presentation asks for larger letters.
const leastLetters = (node) => Number(getComputedStyle(node).getPropertyValue("--least")) || 0;

// Whether a picture stands on a slide, or is drawn for paper, which has large letters, too.
const isOnSlide = (node) => node.closest(".present") !== null;
const isOnPaper = (node) => leastLetters(node) > 0 && !isOnSlide(node);

// The smallest radius of a point of a picture: a presentation asks for larger points.
const leastRadius = (node) => Number(getComputedStyle(node).getPropertyValue("--dot")) || 0;

// How much higher a presentation makes a picture whose height carries no meaning.
const tallOf = (node) => Math.max(1, Number(getComputedStyle(node).getPropertyValue("--tall"))); // a lower plane would lay its letters over each other

// The largest radius of many points, as a share of the side of the square that each has for itself.
const LARGEST_SHARE = 0.3;
const SMALL_POINT = 0.45; // of the smallest point of a presentation: a point that need not be seen alone, because a ring surrounds its group
const GROUP_RING = [0.8, 0.45]; // around the points of a group, outside and inside: shares of the smallest point of a presentation

// Whether the letters of a picture of some width are so large that it needs a layout of its own.
const CROWDED = 1 / 28; // of the width
const isCrowded = (letters, width) => letters > CROWDED * width;

// About how wide words are, in pixels.
const widthOf = (words, letters) => 0.58 * letters * words.length;

// How letters look that stand on a line or an edge.
const HALO = { style: "paint-order:stroke;stroke:var(--paper, #fff);stroke-width:6px;stroke-linejoin:round" };

// A plane: an SVG picture in data units.
// options: {x: [low, high], y: [low, high], label, width = 640, height = 420, equal = true: one unit is as long up as across}
class Plane {
  constructor(stage, { x, y, label, width = 640, height = 420, equal = true }) {
    const share = shareOf(stage, width);
    width *= share;
    height *= share * (equal ? 1 : tallOf(stage));
    const least = leastLetters(stage);
    Object.assign(this, { width, height, least, leastRadius: leastRadius(stage), isCrowded: isCrowded(least, width) });
    let [across, up] = [width / (x[1] - x[0]), height / (y[1] - y[0])];
    if (equal) across = up = Math.min(across, up);
    const middle = [(x[0] + x[1]) / 2, (y[0] + y[1]) / 2];
    this.scale = [across, up];
    this.origin = [width / 2 - across * middle[0], height / 2 + up * middle[1]];
    this.drawn = shape("g");
    this.handles = shape("g");
    this.svg = shape("svg", { class: "plane", viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": say(label) },
      this.drawn, this.handles);
    stage.append(this.svg);
  }

  at([x, y]) { return [this.origin[0] + this.scale[0] * x, this.origin[1] - this.scale[1] * y]; }

  from([across, down]) { return [(across - this.origin[0]) / this.scale[0], (this.origin[1] - down) / this.scale[1]]; }

  // Remove everything but the handles. Call it at the beginning of a drawing.
  clear() { this.drawn.replaceChildren(); }

  add(tag, attributes, ...children) {
    const node = shape(tag, attributes, ...children);
    this.drawn.append(node);
    return node;
  }

  // The radius of a point, in pixels, or half the side of a square.
  radius(wanted) { return Math.max(wanted, this.leastRadius); }

  // A dot; `radius` is in pixels.
  dot(point, { radius = 5, color = COLORS.gray, ...attributes } = {}) {
    const [cx, cy] = this.at(point);
    return this.add("circle", { cx, cy, r: this.radius(radius), fill: color, ...attributes });
  }

  // A circle; `radius` is in data units.
  circle(point, radius, { color = COLORS.gray, dashed = false, ...attributes } = {}) {
    const [cx, cy] = this.at(point);
    return this.add("ellipse", { cx, cy, rx: radius * this.scale[0], ry: radius * this.scale[1], fill: "none", stroke: color,
      "stroke-width": 1.5, "stroke-dasharray": dashed ? "6 5" : null, ...attributes });
  }

  line(from, to, { color = COLORS.gray, width = 1.5, dashed = false, ...attributes } = {}) {
    const [[x1, y1], [x2, y2]] = [this.at(from), this.at(to)];
    return this.add("line", { x1, y1, x2, y2, stroke: color, "stroke-width": width,
      "stroke-dasharray": dashed ? "6 5" : null, ...attributes });
  }

  path(points, { color = COLORS.gray, width = 2, closed = false, ...attributes } = {}) {
    const d = points.map((point, index) => `${index ? "L" : "M"}${this.at(point).map((part) => part.toFixed(1)).join(" ")}`);
    return this.add("path", { d: d.join("") + (closed ? "Z" : ""), fill: "none", stroke: color, "stroke-width": width,
      ...attributes });
  }

  arrow(from, to, { color = COLORS.gray, width = 2.5 } = {}) {
    const [[x1, y1], [x2, y2]] = [this.at(from), this.at(to)];
    const length = Math.hypot(x2 - x1, y2 - y1);
    if (length < 3) return;
    const [dx, dy] = [(x2 - x1) / length, (y2 - y1) / length];
    const head = Math.min(10, length);
    this.line(from, this.from([x2 - dx * head, y2 - dy * head]), { color, width });
    const corner = (side) => `${x2 - dx * head + side * dy * head / 2} ${y2 - dy * head - side * dx * head / 2}`;
    this.add("path", { d: `M${x2} ${y2}L${corner(1)}L${corner(-1)}Z`, fill: color });
  }

  text(point, words, { dx = 0, dy = 0, size = 14, anchor = "middle", ...attributes } = {}) {
    const [x, y] = this.at(point);
    const letters = Math.max(size, this.least);
    const wide = widthOf(words, letters);
    const left = x + dx - wide * { start: 0, middle: 0.5, end: 1 }[anchor];
    const inside = clamp(left, 0, Math.max(0, this.width - wide)) - left; // no letter leaves the picture
    return this.add("text", { x: x + dx + inside, y: y + dy, "font-size": letters, "text-anchor": anchor, ...attributes }, words);
  }

  // A point that the reader drags, or moves with the arrow keys.
  // options: {label, color, sign: a letter inside, low: [x, y], high: [x, y], step, moved(point)}; returns {place(point)}
  handle({ label, color = COLORS.query, sign = "", low, high, step = 0.05, moved }) {
    const circle = shape("circle", { r: 13, fill: color });
    const letter = shape("text", { "text-anchor": "middle", dy: 5, "font-size": clamp(this.least, 14, 19), "font-weight": 700, fill: "#fff" }, sign);
    const grip = shape("g", { class: "handle", tabindex: 0, role: "slider", "aria-label": say("{label}: arrow keys move it", { label: say(label) }),
      "aria-valuemin": low[0], "aria-valuemax": high[0] }, shape("circle", { r: 22, fill: "transparent" }), circle, letter);
    let point = low;
    const move = (to) => moved([0, 1].map((axis) => clamp(to[axis], low[axis], high[axis])));
    grip.onpointerdown = (event) => { grip.setPointerCapture(event.pointerId); grip.focus(); event.preventDefault(); };
    grip.onpointermove = (event) => {
      if (!grip.hasPointerCapture(event.pointerId)) return;
      const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
      move(this.from([place.x, place.y]));
    };
    grip.onkeydown = (event) => {
      const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (!way) return;
      event.preventDefault();
      event.stopPropagation();
      move([0, 1].map((axis) => point[axis] + step * (event.shiftKey ? 5 : 1) * way[axis]));
    };
    this.handles.append(grip);
    return { grip, place: (to) => {
      point = to;
      grip.setAttribute("transform", `translate(${this.at(to).join(" ")})`);
      grip.setAttribute("aria-valuenow", to[0].toFixed(2));
      grip.setAttribute("aria-valuetext", say("{x} across, {y} up", { x: fixed(to[0], 2), y: fixed(to[1], 2) }));
    } };
  }
}

// Many points on a canvas, as large as its column. Hover shows `title(row)` and the picture of `paint(context, row, size)`.
// options: {label, height = 420, title, paint, picked(row), stretch: fill the width, for maps whose axes carry no units, turns: may turn the points in a high picture}; `draw` takes {positions: [x, y, x, y, …], colors: row => color,
//          radius: number | row => number, forms: row => (context, x, y, radius) draws its outline, or a letter, marked: rows with a ring, segments: [[row, row], …], order: rows to draw last, ringed: lists of rows, each with a ring around it in a presentation, whose points then stay small}
const HALO_WIDTH = 4; // around the chosen point
const LINE_SHARES = Array.from({ length: 21 }, (_none, step) => step / 20); // along a line
const WORTH_A_TURN = 1.15; // how much larger points without axes are drawn turned, to be turned

const circle = (context, x, y, radius) => context.arc(x, y, radius, 0, 2 * Math.PI);
const LETTER_SIZE = 2.7; // of a point that is a letter, by its radius
const MARK_RING = 1.75; // around a marked point, by its radius

class Cloud {
  constructor(stage, { label, height = 420, title = null, paint = null, picked = null, stretch = false, turns = false }) {
    Object.assign(this, { title, paint, stretch, turns, isTurned: false, content: null });
    this.canvas = element("canvas", { class: "cloud", role: "img", "aria-label": say(label), style: `height:calc(${height}px * var(--tall, 1))` });
    this.tip = element("div", { class: "tip", hidden: true });
    this.box = element("div", { class: "cloud-box" }, this.canvas, this.tip);
    stage.append(this.box);
    this.canvas.onpointermove = (event) => this.hover(event);
    this.canvas.onpointerleave = () => { this.tip.hidden = true; };
    this.canvas.onclick = (event) => { const row = this.nearest(event); if (row >= 0 && picked) picked(row); };
    if (picked) this.canvas.style.cursor = "pointer";
    new ResizeObserver(() => this.paintAll()).observe(this.canvas);
  }

  describe(label) { this.canvas.setAttribute("aria-label", label); }

  draw(content) {
    this.content = content;
    this.paintAll();
  }

  // Where a row is on the canvas, in pixels.
  spot(row) {
    const [x, y] = this.turned(this.content.positions[2 * row], this.content.positions[2 * row + 1]);
    return [this.offset[0] + this.units[0] * x, this.offset[1] - this.units[1] * y];
  }

  // A position as it is drawn: a quarter turn clockwise if a high picture holds more of the points so.
  turned(x, y) { return this.isTurned ? [y, -x] : [x, y]; }

  fit() {
    const { positions } = this.content;
    const extent = (part) => [Math.min, Math.max].map((pick) => positions.reduce((most, value, at) => (at % 2 === part ? pick(most, value) : most), pick === Math.min ? Infinity : -Infinity));
    const [across, up] = [0, 1].map(extent);
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    const around = 2 * Math.max(12, this.largest + 1);
    const unitOf = (wide, high) => Math.min((width - around) / wide, (height - around) / high);
    const [wide, tall] = [across[1] - across[0] || 1, up[1] - up[0] || 1];
    this.isTurned = this.turns && unitOf(tall, wide) > WORTH_A_TURN * unitOf(wide, tall);
    const corners = [this.turned(across[0], up[0]), this.turned(across[1], up[1])];
    const [low, high] = [Math.min, Math.max].map((pick) => [0, 1].map((part) => pick(...corners.map((corner) => corner[part]))));
    this.units = [(width - around) / (high[0] - low[0] || 1), (height - around) / (high[1] - low[1] || 1)];
    if (!this.stretch) this.units.fill(Math.min(...this.units));
    this.offset = [width / 2 - this.units[0] * (low[0] + high[0]) / 2, height / 2 + this.units[1] * (low[1] + high[1]) / 2];
  }

  paintAll() {
    if (!this.content || !this.canvas.clientWidth) return;
    const { colors, radius = 3, segments = [], order = [], chosen = null, note = "", positions, ringed = null, forms = () => circle, marked = [] } = this.content; // note: words beside the chosen point
    const ratio = pixelRatio(this.canvas);
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight].map((size) => Math.round(size * ratio));
    if (this.canvas.width !== width || this.canvas.height !== height) Object.assign(this.canvas, { width, height });
    const count = positions.length / 2;
    const wanted = Float32Array.from({ length: count }, (_empty, row) => (typeof radius === "function" ? radius(row) : radius));
    const apart = LARGEST_SHARE * Math.sqrt(this.canvas.clientWidth * this.canvas.clientHeight / count); // larger points would hide groups
    const isSmall = ringed !== null && leastRadius(this.canvas) > 0;
    const least = isSmall ? SMALL_POINT * leastRadius(this.canvas) : Math.min(leastRadius(this.canvas), apart);
    const more = Math.max(0, least - wanted.reduce((smallest, part) => Math.min(smallest, part), Infinity)); // sizes keep their order
    const size = (row) => wanted[row] + more;
    this.largest = more + wanted.reduce((most, part) => Math.max(most, part), 0);
    this.fit();
    const styles = getComputedStyle(this.canvas);
    const context = this.canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const paper = styles.getPropertyValue("--paper");
    const lines = () => {
      context.strokeStyle = chosen === null ? COLORS.gray : styles.color;
      context.globalAlpha = 0.5;
      context.beginPath();
      for (const [from, to] of segments) { context.moveTo(...this.spot(from)); context.lineTo(...this.spot(to)); }
      context.stroke();
      context.globalAlpha = 1;
      context.strokeStyle = paper;
    };
    if (chosen === null) lines();
    if (isSmall) this.ring(context, ringed, least);
    const last = new Set(order);
    context.strokeStyle = paper;
    const letter = (row) => {
      Object.assign(context, { font: `bold ${LETTER_SIZE * size(row)}px system-ui, sans-serif`, textAlign: "center", textBaseline: "middle", fillStyle: colors(row) });
      if (last.has(row)) { // the letter stands on a disk of its color: a ring would look like a mark
        context.beginPath();
        circle(context, ...this.spot(row), 1.5 * size(row));
        context.fill();
        context.fillStyle = paper;
      }
      context.fillText(forms(row), ...this.spot(row));
    };
    const point = (row) => {
      if (typeof forms(row) === "string") { letter(row); return; }
      context.fillStyle = colors(row);
      context.beginPath();
      forms(row)(context, ...this.spot(row), size(row));
      context.fill();
      if (more && !isSmall) context.stroke(); // large points overlap
    };
    for (let row = 0; row < count; row += 1) if (!last.has(row)) point(row);
    if (chosen !== null) lines(); // of the chosen point, which other points would hide
    for (const row of order) {
      if (row === chosen) {
        context.fillStyle = paper;
        context.beginPath();
        context.arc(...this.spot(row), size(row) + (isSmall ? SMALL_POINT / 2 * leastRadius(this.canvas) : HALO_WIDTH), 0, 2 * Math.PI);
        context.fill();
      }
      point(row);
      context.strokeStyle = styles.color;
      if (typeof forms(row) !== "string") context.stroke();
      if (row !== chosen) continue;
      Object.assign(context, { fillStyle: "#000", font: `${(isSmall ? 1.4 : 1.7) * size(row)}px system-ui, sans-serif`, textAlign: "center", textBaseline: "middle" });
      context.fillText("★", ...this.spot(row));
      if (note) this.write(context, row, note, this.largest + 10);
    }
    context.strokeStyle = styles.color;
    for (const row of marked) {
      const outline = () => {
        context.beginPath();
        context.ellipse(...this.spot(row), MARK_RING * size(row), MARK_RING * size(row), 0, 0, 2 * Math.PI);
      };
      if (typeof forms(row) === "string") { // many letters would hide it
        outline();
        context.fillStyle = paper;
        context.fill();
        letter(row);
      } else context.lineWidth = 1.5;
      outline(); // again: a letter has a path of its own
      context.stroke();
    }
    context.lineWidth = 1;
  }

  // A ring around each group of points.
  ring(context, groups, radius) {
    const styles = getComputedStyle(this.canvas);
    const dot = leastRadius(this.canvas);
    Object.assign(context, { lineCap: "round", lineJoin: "round" });
    for (const rows of groups) {
      for (const [color, around] of [[styles.color, GROUP_RING[0]], [styles.getPropertyValue("--paper"), GROUP_RING[1]]]) {
        context.beginPath();
        for (const row of rows) { context.moveTo(...this.spot(row)); context.lineTo(...this.spot(row)); }
        Object.assign(context, { strokeStyle: color, lineWidth: 2 * (radius + around * dot) });
        context.stroke();
      }
    }
    Object.assign(context, { lineCap: "butt", lineWidth: 1 });
  }

  // Words beside a point, where they cover none of its neighbors, and as little of the lines to them as possible.
  write(context, row, words, away) {
    const [x, y] = this.spot(row);
    const styles = getComputedStyle(this.canvas);
    const size = Math.max(14, leastLetters(this.canvas));
    Object.assign(context, { font: `bold ${size}px system-ui, sans-serif`, lineWidth: size / 4, lineJoin: "round", strokeStyle: styles.getPropertyValue("--paper"), fillStyle: styles.color, textAlign: "center" });
    const [wide, high] = [context.measureText(words).width / 2 + size / 8, 0.65 * size]; // halves
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    const ways = [0, 2, 1, 3, 0.5, 1.5, 2.5, 3.5].map((quarter) => [Math.cos(quarter * Math.PI / 2), Math.sin(quarter * Math.PI / 2)]);
    const places = [1, 2, 3].flatMap((far) => ways.map(([across, down]) => [
      clamp(x + across * (far * away + wide), wide, width - wide), clamp(y + down * (far * away + high), high, height - high)]));
    const isIn = ([left, top], [across, down], around = 0) => Math.abs(across - left) < wide + around && Math.abs(down - top) < high + around;
    const cost = (place) => {
      if (isIn(place, [x, y], this.largest)) return Infinity; // it would cover the point itself
      const covered = this.content.order.filter((other) => other !== row && isIn(place, this.spot(other), 0.6 * this.largest)).length;
      const crossed = this.content.segments.map(([from, to]) => [this.spot(from), this.spot(to)]).reduce((sum, [from, to]) => sum + LINE_SHARES.filter(
        (share) => isIn(place, [0, 1].map((axis) => from[axis] + share * (to[axis] - from[axis])))).length, 0);
      const hidden = (this.content.ringed ?? []).flat().filter((other) => isIn(place, this.spot(other), 0.2 * size)).length;
      return 100 * covered + 2 * hidden + crossed + 0.01 * Math.hypot(place[0] - x, place[1] - y);
    };
    const costs = places.map(cost);
    const place = places[costs.indexOf(Math.min(...costs))];
    context.strokeText(words, ...place);
    context.fillText(words, ...place);
    context.lineWidth = 1;
  }

  nearest({ offsetX, offsetY }, within = 16) {
    if (!this.content) return -1;
    let [best, row] = [within, -1];
    for (let at = 0; at < this.content.positions.length / 2; at += 1) {
      const [x, y] = this.spot(at);
      const distance = Math.hypot(x - offsetX, y - offsetY);
      if (distance < best) [best, row] = [distance, at];
    }
    return row;
  }

  hover(event) {
    const row = this.nearest(event);
    this.tip.hidden = row < 0 || !(this.title || this.paint);
    if (this.tip.hidden) return;
    const picture = element("canvas", { width: 64, height: 64 });
    if (this.paint) this.paint(picture.getContext("2d"), row, 64);
    this.tip.replaceChildren(...(this.paint ? [picture] : []), element("div", {}, this.title ? this.title(row) : ""));
    this.tip.style.left = `${clamp(event.offsetX + 12, 0, this.canvas.clientWidth - 96)}px`;
    this.tip.style.top = `${clamp(event.offsetY + 12, 0, this.canvas.clientHeight - 96)}px`;
  }
}

// A line chart. options: {x: [low, high], y: [low, high], xLabel, yLabel, label, width, height, ticks: [x values]};
// `draw` takes [{name, points: [[x, y], …], color, dashed}] and the cursor's x. Names stand beside the ends of the lines.
class Chart {
  constructor(stage, options) {
    Object.assign(this, { width: 640, height: 260, ticks: null, title: "", letters: Math.max(13, leastLetters(stage)), left: 54, right: 130, ...options });
    this.width *= shareOf(stage, this.width);
    this.isCrowded = isCrowded(this.letters, this.width);
    this.top = this.isCrowded ? this.letters / 2 : 14;
    this.svg = shape("svg", { class: "chart", viewBox: `0 0 ${this.width} ${this.height}`, role: "img", "aria-label": say(this.label) });
    stage.append(this.svg);
  }

  describe(label) { this.svg.setAttribute("aria-label", label); }

  at([x, y]) {
    const { left, right, top } = this;
    const bottom = 16 + (this.xLabel ? 2 : 1) * this.letters;
    return [left + (x - this.x[0]) / (this.x[1] - this.x[0]) * (this.width - left - right),
      this.height - bottom - (y - this.y[0]) / (this.y[1] - this.y[0]) * (this.height - top - bottom)];
  }

  draw(series, cursor = null) {
    const nodes = [];
    const wide = (words) => widthOf(words, this.letters);
    const axis = (low, high) => [low, (low + high) / 2, high];
    const valueWords = (y) => (this.format ? this.format(y) : plain(Number(y.toPrecision(3))));
    this.left = Math.max(this.left, ...axis(...this.y).map((y) => wide(valueWords(y)) + 12));
    const row = 1.15 * this.letters;
    const isAbove = this.isCrowded; // names and title stand above the lines, or else beside and on them
    if (isAbove) {
      const above = row * (series.filter(({ name }) => name).length + (this.title ? 1 : 0)) + 0.6 * this.letters; // the highest number of the axis stands below the names
      Object.assign(this, { right: wide(plain(this.x[1])) / 2 + 6, top: this.letters / 2 + above });
      this.fullHeight ??= this.height + above + 2 * row;
      this.height = this.fullHeight;
      this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    } else this.right = Math.max(this.right, ...series.map(({ name }) => wide(name) + 34)); // room for the names beside the lines
    const rule = (from, to, attributes) => {
      const [[x1, y1], [x2, y2]] = [this.at(from), this.at(to)];
      nodes.push(shape("line", { x1, y1, x2, y2, ...attributes }));
    };
    const write = (words, x, y, attributes) => nodes.push(shape("text", { x, y, "font-size": this.letters, ...attributes }, words));
    const isLow = 2.2 * this.letters > this.at([0, this.y[0]])[1] - this.at([0, this.y[1]])[1];
    for (const y of isLow ? this.y : axis(...this.y)) {
      rule([this.x[0], y], [this.x[1], y], { class: "rule" });
      write(valueWords(y), this.at([this.x[0], y])[0] - 8, this.at([0, y])[1] + 4,
        { "text-anchor": "end" });
    }
    const ticks = this.ticks ?? axis(...this.x);
    const gap = (this.width - this.left - this.right) / (ticks.length - 1);
    const isTight = Math.max(...ticks.map((x) => wide(`${plain(x)}0`))) > gap;
    for (const x of isTight ? [ticks[0], ticks.at(-1)] : ticks) {
      write(plain(Number(x.toPrecision(3))), this.at([x, 0])[0], this.height - 11 - (this.xLabel ? this.letters : 0), { "text-anchor": "middle" });
    }
    if (this.xLabel) write(say(this.xLabel), this.at([(this.x[0] + this.x[1]) / 2, 0])[0], this.height - 6, { "text-anchor": "middle" });
    write(say(this.yLabel), 4, 12, {});
    if (this.title) write(this.title, isAbove ? 0 : this.left + 6, isAbove ? this.letters : 12, { "font-weight": 700 });
    if (cursor !== null) rule([cursor, this.y[0]], [cursor, this.y[1]], { class: "cursor" });
    const ends = [];
    for (const { name, points, color, dashed } of series) {
      const d = points.map((point, index) => `${index ? "L" : "M"}${this.at(point).map((part) => part.toFixed(1)).join(" ")}`);
      nodes.push(shape("path", { d: d.join(""), fill: "none", stroke: color, "stroke-width": 2.5,
        "stroke-dasharray": dashed ? "6 5" : null }));
      if (points.leaves) write("▲", this.at(points.at(-1))[0], this.at(points.at(-1))[1] + 0.9 * this.letters, { "text-anchor": "middle", style: `fill:${color}` }); // the line goes on beyond the chart
      if (points.length === 1) nodes.push(shape("circle", { cx: this.at(points[0])[0], cy: this.at(points[0])[1], r: 4, fill: color })); // a line of one point is nothing
      if (name) ends.push({ name, color, dashed, x: this.at(points.at(-1))[0] + 6, y: this.at(points.at(-1))[1] + 4 });
    }
    ends.sort((one, other) => one.y - other.y);
    if (isAbove) ends.forEach((end, index) => Object.assign(end, { x: 0, y: this.letters + row * (index + (this.title ? 1 : 0)) }));
    else ends.forEach((end, index) => { if (index) end.y = Math.max(end.y, ends[index - 1].y + this.letters + 2); });
    for (const { name, color, dashed, x, y } of ends) { // the sign of a name is a piece of its line
      const side = 1.1 * this.letters;
      nodes.push(shape("line", { x1: x, x2: x + side, y1: y - 0.3 * this.letters, y2: y - 0.3 * this.letters, stroke: color, "stroke-width": 0.3 * this.letters, "stroke-dasharray": dashed ? `${0.4 * this.letters} ${0.3 * this.letters}` : null }));
      write(name, x + side + 4, y, {});
    }
    this.svg.replaceChildren(...nodes);
  }
}

// A handwritten digit of 8 × 8 pixels, values 0 to 16, dark on light as on paper.
function paintDigit(context, pixels, size) {
  const picture = new ImageData(DIGIT_SIDE, DIGIT_SIDE);
  for (let at = 0; at < pixels.length; at += 1) {
    picture.data.set([255, 255, 255].map((light) => light - Math.round(pixels[at] * 15.5)), 4 * at);
    picture.data[4 * at + 3] = 255;
  }
  const small = element("canvas", { width: DIGIT_SIDE, height: DIGIT_SIDE });
  small.getContext("2d").putImageData(picture, 0, 0);
  context.imageSmoothingEnabled = true;
  context.drawImage(small, 0, 0, size, size);
}

// The class of every image at its place, as a letter on a canvas. options: {positions: [x, y, …], letters, colors: indices in
// PALETTE, middle: [x, y] in the center of the canvas, unit: pixels of one unit of the positions, size of a letter}
// marked: the rows with a ring around their letter.
function paintLetters(canvas, { positions, letters, colors, middle, unit, size, marked = [] }) {
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const ratio = pixelRatio(canvas);
  const pixels = [width, height].map((side) => Math.round(side * ratio));
  if (canvas.width !== pixels[0] || canvas.height !== pixels[1]) [canvas.width, canvas.height] = pixels;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = `bold ${size}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  letters.forEach((letter, row) => {
    context.fillStyle = PALETTE[colors[row]];
    context.fillText(String(letter), width / 2 + unit * (positions[2 * row] - middle[0]), height / 2 - unit * (positions[2 * row + 1] - middle[1]));
  });
  Object.assign(context, { strokeStyle: getComputedStyle(canvas).color, globalAlpha: 0.6 });
  for (const row of marked) {
    context.beginPath();
    context.arc(width / 2 + unit * (positions[2 * row] - middle[0]), height / 2 - unit * (positions[2 * row + 1] - middle[1]), 0.62 * size, 0, 2 * Math.PI);
    context.stroke();
  }
  context.globalAlpha = 1;
}

// What the colors of classes mean: their names in their colors, and what else a map shows.
function classLegend(title, names, ...others) {
  return element("div", { class: "class-legend" }, element("span", {}, title),
    element("span", {}, names.flatMap((name, at) => [" ", element("b", { style: `color:${PALETTE[at]}` }, name)])), others.map((words) => element("span", {}, words)));
}

// A row of digits. tiles: [{pixels, label, kind: "hit" | "miss" | "query" | "", words, pressed, onclick}]; kinds have a sign.
function digitTiles(tiles, label, size = 56) {
  const signs = { hit: "✓", miss: "✕", query: "★" };
  return element("div", { class: "tiles", role: "group", "aria-label": label }, tiles.map((tile) => {
    const picture = element("canvas", { width: 64, height: 64, style: `width:${size}px;height:${size}px` });
    paintDigit(picture.getContext("2d"), tile.pixels, 64);
    const words = [signs[tile.kind], tile.words].filter(Boolean).join(" ");
    const attributes = { class: `tile ${tile.kind ?? ""} ${tile.isChoice ? "pressed" : ""}`, "aria-label": tile.label };
    return tile.onclick
      ? element("button", { ...attributes, type: "button", onclick: tile.onclick, "aria-pressed": String(tile.pressed ?? false) },
        picture, element("span", {}, words))
      : element("div", { ...attributes, role: "img" }, picture, element("span", {}, words));
  }));
}

// Tiles of one width that need several lines are divided evenly, so that none stands alone in the last.
function evenRows(box) {
  const tiles = [...box.children].filter(({ offsetParent }) => offsetParent);
  if (tiles.length < 2) return;
  const lines = new Set(tiles.map(({ offsetTop }) => offsetTop)).size;
  const each = tiles[1].offsetLeft - tiles[0].offsetLeft;
  if (lines > 1 && each > 0) box.style.maxWidth = `${Math.ceil(tiles.length / lines) * each}px`;
}

// A repeatable stream of random numbers in [0, 1): mulberry32.
function randomStream(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

// A small map on a canvas, one square a point, for small multiples. colors: row => color; the text color by default. sizes: row => side of the square
function paintSmallMap(canvas, positions, colors = null, sizes = () => 3, forms = null) {
  const context = canvas.getContext("2d");
  const { width, height } = canvas;
  const [low, high] = [[Infinity, Infinity], [-Infinity, -Infinity]];
  positions.forEach((value, at) => {
    low[at % 2] = Math.min(low[at % 2], value);
    high[at % 2] = Math.max(high[at % 2], value);
  });
  const margin = 2 + Math.max(...Array.from({ length: positions.length / 2 }, (_none, row) => sizes(row))); // whole shapes
  const unit = Math.min((width - margin) / (high[0] - low[0]), (height - margin) / (high[1] - low[1]));
  context.clearRect(0, 0, width, height);
  context.fillStyle = getComputedStyle(canvas).color;
  for (let row = 0; row < positions.length / 2; row += 1) {
    if (colors) context.fillStyle = colors(row);
    const x = width / 2 + unit * (positions[2 * row] - (low[0] + high[0]) / 2);
    const y = height / 2 - unit * (positions[2 * row + 1] - (low[1] + high[1]) / 2);
    const size = sizes(row);
    if (!forms) { context.fillRect(x - size / 2, y - size / 2, size, size); continue; }
    context.beginPath();
    forms(row)(context, x, y, size / 2);
    context.fill();
  }
}
