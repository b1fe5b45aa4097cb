// A map of up to a million points (points.js) below images and marks (overlay.js), with a legend (legend.js).
// Positions are fetched once; an update draws only the parts of the header that changed.
// header: {label, height, group, count, positions, steps: {low, width}, bounds, fitKey, ids, color: {label, kind,
//          values, names, pictures | low, high, unit}, classes, classNames, names, sheets, neighbors, width (k), segments,
//          selection: {mask, revision}, marks, placed, linked, below, tiles, plain, fills, camera, cameraKey,
//          ahead: [part], roomy, grid: {right, down, columns, rows, low, high}}
// answers: state "selection" {mask, revision}; trigger "picked" id; trigger "searched" id (right-click, long press or
//          Q: the image becomes the query)
const TRAVEL = 700;
const SIGHT = 0.8; // share of the window in which some point always lies
const [SEEN_AROUND, LEAST_SEEN] = [1.7, 0.05]; // what is seen around marked points, and the least share of the map
const NONE = -1;
const FINEST = 100; // closest zoom of positions in steps: one step is then about one pixel
const MOST_FOLLOWED = 100000; // coordinates of points that travel when some images leave the map
const TOOLBAR = 40; // pixels of the line of tools above the points
const MOST_STRETCH = 1.6; // of the wider side of a map that fills its frame

const ICONS = {
  pan: '<path d="M12 3v18M3 12h18M12 3l-3 3M12 3l3 3M12 21l-3-3M12 21l3-3M3 12l3-3M3 12l3 3M21 12l-3-3M21 12l-3 3"/>',
  lasso: '<path d="M12 5c5 0 9 2 9 5s-4 5-9 5-9-2-9-5 4-5 9-5zM7 15c-2 1-2 4 0 5s3 0 3-2"/>',
  box: '<path stroke-dasharray="4 3" d="M4 4h16v16H4z"/>',
  closer: '<path d="M12 5v14M5 12h14"/>', farther: '<path d="M5 12h14"/>',
  fit: '<path d="M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5"/>',
  clear: '<path d="M6 6l12 12M18 6L6 18"/>',
  images: '<path d="M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M9 9h.01"/>',
  names: '<path d="M4 7V5h16v2M12 5v14M9 19h6"/>',
  apart: '<path d="M9 12H3M15 12h6M12 9V3M12 15v6M5 10l-2 2 2 2M19 10l2 2-2 2M10 5l2-2 2 2M10 19l2 2 2-2"/>',
  save: '<path d="M12 4v11M7 11l5 5 5-5M5 20h14"/>',
};
const TOOLS = [["pan", "Pan: drag to move the map", true], ["lasso", "Lasso: drag around points (or Shift and drag)", true],
  ["box", "Box: drag a rectangle", true], ["closer", "Zoom in (+)"], ["farther", "Zoom out (−)"],
  ["fit", "Show all points (0)"], ["clear", "Clear the selection (Esc)"], ["images", "Show thumbnails when zoomed in"],
  ["apart", "Make room: images that lie on each other move apart (off: the computed positions)"],
  ["names", "Show the names of colors on the map"],
  ["save", "Save the map as PNG"]];

const SWITCHES = { images: true, names: true, apart: true };

class Chart {
  constructor(root) {
    this.root = root;
    this.stage = root.querySelector(".stage");
    this.canvas = root.querySelector(".points");
    this.surface = root.querySelector(".overlay");
    this.tip = root.querySelector(".tip");
    this.summary = root.querySelector(".summary");
    this.mode = "pan";
    this.images = true;
    this.names = true;
    this.apart = true;
    this.lit = null; // the category under the pointer in the legend; the points of all others are gray
    this.revision = 0;
    this.turn = 0;
    this.travel = 1;
    this.hovered = NONE;
    this.pointers = new Set();
    this.overlay = new Overlay(this);
    this.legend = new Legend(this);
    this.points = new Points(this.canvas, () => this.uploadAll());
    if (!this.points.gl) {
      this.stage.insertAdjacentHTML("beforeend", '<p class="refused">This browser does not support WebGL2, which the map needs.'
        + " Turn on hardware acceleration, or use a current Firefox, Chrome, Edge or Safari.</p>");
    }
    this.buildTools();
    this.listen();
  }

  // Updates from Python

  uploadAll() {
    if (!this.to) return;
    this.points.upload("from", this.from);
    this.points.upload("to", this.to);
    this.points.upload("code", this.codes);
    this.points.upload("flag", this.flags());
    this.points.join(this.segments, this.from, this.to);
    this.ask();
  }

  async update(header, array, answers) {
    const turn = (this.turn += 1);
    this.answers = answers;
    const old = this.header;
    const differs = (name) => JSON.stringify(old?.[name]) !== JSON.stringify(header[name]);
    const [positions, ids, values, classes, neighbors, segments, mask, right, down, ...followed] = await Promise.all([
      header.positions, header.ids, header.color.values, header.classes, header.neighbors, header.segments,
      header.selection.mask, header.grid?.right, header.grid?.down, ...(header.follow ?? []).map((of) => of.values)].map(array));
    if (turn !== this.turn || !this.root.isConnected) return; // a newer update came first
    this.header = header;
    this.root.setAttribute("aria-label", header.label);
    this.canvas.setAttribute("aria-label", header.label);
    this.root.style.setProperty("--height", tall(header.height));
    this.root.classList.toggle("below", Boolean(header.below));
    this.root.classList.toggle("plain", Boolean(header.plain));
    this.root.classList.toggle("roomy", Boolean(header.roomy) && header.count <= MOST_ROOMY);
    this.root.classList.toggle("pictured", Boolean(header.color.pictures));
    const fresh = header.count !== old?.count || differs("ids");
    const refit = differs("fitKey");
    const earlier = fresh && !refit && this.to.length < MOST_FOLLOWED ? this.places() : null;
    Object.assign(this, { ids, classes, neighbors, segments, followed, seams: { right, down } });
    if (fresh) { // other images: the old selection does not apply
      this.selected = new Uint8Array(header.count);
      this.selectedCount = 0;
      this.revision = -1;
      this.rowOf = null;
      this.hovered = NONE;
    }
    const moved = fresh || differs("positions") || differs("roomy");
    const recolored = fresh || old.color.token !== header.color.token;
    if (moved) this.move(inSteps(positions, header.steps), fresh, refit, earlier);
    if (recolored) this.recolor(values);
    const reselected = header.selection.revision > this.revision;
    if (recolored || moved || reselected) { // the page has acted: the words below the pointer go until it moves
      this.hovered = NONE;
      this.tip.hidden = true;
    }
    if (reselected) this.adopt(mask, header.selection.revision);
    if (moved || differs("segments")) this.points.join(this.segments, this.from, this.to);
    if (recolored || reselected) this.legend.draw();
    if (header.near !== this.near) this.lookAtMarks();
    this.ask(moved || recolored || reselected || differs("segments"));
    if (!this.cameraIsFitted && !this.isAtMarks) this.rewriteCamera(); // Python may have dropped the camera from the address
    this.root.dataset.drawn = String(turn);
    if (moved) window.dispatchEvent(new Event("udml-drawn"));
    for (const part of header.ahead ?? []) array(part).catch(() => {}); // the next epoch, which a slider may play
    this.root.dataset.colored = header.color.token;
    this.watch();
  }

  // While a slider moves, the colors follow in the browser: Python hears of the slider when it is released.
  watch() {
    for (const forget of this.watching ?? []) forget();
    this.watching = (this.header.follow ?? []).map((of, number) => watchValue(of.slider, (value) => this.follow(number, value)));
  }

  // Show the colors of a slider at the value for which they are known that is nearest to its own.
  follow(number, value) {
    const { count, follow } = this.header;
    const { at: known, label, color } = follow[number];
    const at = known.reduce((best, other, place) => (Math.abs(other - value) < Math.abs(known[best] - value) ? place : best), 0);
    this.header = { ...this.header, color: { ...color, label: label.replace("{}", value), token: `followed ${number} ${at}` } };
    this.recolor(this.followed[number].subarray(at * count, (at + 1) * count));
    this.legend.draw();
    this.ask(true);
    this.root.dataset.colored = this.header.color.token;
  }

  // The positions of the images that are drawn now, by id.
  places() {
    const now = this.current();
    const places = new Map();
    for (let row = 0; 2 * row < now.length; row += 1) places.set(this.idOf(row), [now[2 * row], now[2 * row + 1]]);
    return places;
  }

  // Where the points begin to travel: other images of the same map begin where these images were drawn.
  begin(positions, fresh, earlier) {
    if (!fresh) return this.current();
    const places = positions.slice();
    this.stays = false;
    for (let row = 0; earlier && 2 * row < places.length; row += 1) {
      const place = earlier.get(this.idOf(row));
      if (!place) continue;
      places.set(place, 2 * row);
      this.stays = true;
    }
    return places;
  }

  move(computed, fresh, refit, earlier) {
    const first = !this.camera;
    this.computed = computed;
    this.flat = this.apart && this.header.roomy ? withRoom(computed) : computed;
    this.stretch = this.stretchOf();
    const positions = this.stretched(this.flat);
    this.from = this.begin(positions, fresh, earlier);
    this.to = positions;
    this.index = null;
    this.points.upload("from", this.from);
    this.points.upload("to", this.to);
    this.measure();
    if (refit || (fresh && !this.stays)) this.fit();
    if (first && this.header.camera) { this.look(); this.near = this.header.near; }
    this.travel = (fresh && !this.stays) || calm() ? 1 : 0;
    this.started = performance.now();
  }

  // Look where the address says. A frame without a size, as a new one may be, has no limits of the zoom yet.
  look() {
    const [x, y, zoom] = this.header.camera;
    this.camera = { x, y, zoom: this.withinLimits(zoom) };
    this.keepInSight();
    this.cameraIsFitted = false;
    this.hasNoSize = !this.stage.clientWidth || !this.stage.clientHeight;
  }

  // Look at the marked points and what lies around them; the button for the whole map leads back.
  lookAtMarks() {
    this.near = this.header.near;
    const marked = this.header.marks.flatMap(({ row, lines }) => [row, ...lines]);
    if (!marked.length || !Number.isInteger(this.near)) return;
    const [left, bottom, right, top] = this.boundsOf(marked.flatMap((row) => [this.to[2 * row], this.to[2 * row + 1]]));
    const { width, height, below } = this.free();
    const spread = Math.max((right - left) / width, (top - bottom) / height, LEAST_SEEN / this.fitted);
    const zoom = this.withinLimits(1 / (SEEN_AROUND * spread));
    this.camera = { x: (left + right) / 2, y: (bottom + top + below / zoom) / 2, zoom };
    this.cameraIsFitted = false;
    this.isAtMarks = true;
  }

  // How much wider than high the frame is than the layout; 1 for a map that keeps its shape.
  stretchOf() {
    if (!this.header.fills) return 1;
    const [left, bottom, right, top] = this.header.bounds ?? this.boundsOf(this.flat);
    const { width, height } = this.free();
    const ratio = (width * Math.max(top - bottom, 1e-6)) / (height * Math.max(right - left, 1e-6));
    return Math.max(1 / MOST_STRETCH, Math.min(MOST_STRETCH, ratio));
  }

  // Where a place among the computed positions lies among the drawn ones.
  drawnAt(place) {
    const [x, y] = this.flat === this.computed ? place : besideNearest(this.computed, this.flat, place);
    return [this.stretch * x, y];
  }

  stretched(flat) {
    return this.stretch === 1 ? flat : flat.map((value, at) => (at % 2 ? value : value * this.stretch));
  }

  // Another frame has another shape.
  reshape() {
    if (!this.header?.fills || !this.flat || Math.abs(this.stretchOf() / this.stretch - 1) < 0.02) return;
    this.stretch = this.stretchOf();
    this.to = this.stretched(this.flat);
    this.from = this.to;
    this.travel = 1;
    this.index = null;
    this.measure();
    this.points.upload("from", this.from);
    this.points.upload("to", this.to);
    this.points.join(this.segments, this.from, this.to);
  }

  current() {
    if (this.travel >= 1) return this.to;
    const eased = this.eased();
    return this.to.map((value, at) => this.from[at] + (value - this.from[at]) * eased);
  }

  eased() {
    const t = Math.min(1, this.travel);
    return t * t * (3 - 2 * t);
  }

  recolor(values) {
    const { color } = this.header;
    this.values = values;
    if (this.lit !== null) this.light(null); // the categories may be others
    this.codes = new Float32Array(values.length).fill(NONE);
    if (color.kind === "category") { // color by code, shape by rank, so that few classes all differ
      this.styles = new Int32Array(color.names.length).fill(NONE);
      const counts = new Int32Array(color.names.length);
      for (const code of values) if (code >= 0) counts[code] += 1;
      const present = [...counts.keys()].filter((code) => counts[code]);
      const bySize = isBySize(color);
      if (bySize) present.sort((first, second) => counts[second] - counts[first]);
      const styleOf = (code, rank) => ((bySize ? rank : code) % COLORS) + COLORS * (rank % SHAPES.length);
      present.forEach((code, rank) => { this.styles[code] = color.fixed ? styleOf(code, code) : styleOf(code, rank); });
      for (let row = 0; row < values.length; row += 1) if (values[row] >= 0) this.codes[row] = this.styles[values[row]];
      return this.points.upload("code", this.codes);
    }
    const span = color.high - color.low || 1;
    for (let row = 0; row < values.length; row += 1) {
      if (Number.isFinite(values[row])) this.codes[row] = Math.max(0, (values[row] - color.low) / span);
    }
    return this.points.upload("code", this.codes);
  }

  theme() {
    const style = getComputedStyle(this.root);
    const text = style.getPropertyValue("--st-text-color").trim() || "#31333f";
    const paper = style.getPropertyValue("--st-background-color").trim() || "#ffffff";
    if (text === this.text && paper === this.paper) return;
    const value = (color) => {
      const context = (this.probe ??= document.createElement("canvas").getContext("2d", { willReadFrequently: true }));
      context.fillStyle = color;
      context.fillRect(0, 0, 1, 1);
      return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3).map((part) => part / 255);
    };
    this.text = text;
    this.paper = paper;
    this.stale = true;
    this.ink = value(text);
    this.dark = value(paper).reduce((sum, part) => sum + part, 0) < 1.5;
    this.gray = this.dark ? [0.62, 0.64, 0.68] : [0.45, 0.47, 0.5];
    if (this.values) this.legend.draw(); // its colors follow the theme
  }

  // Camera: center in the layout's units, zoom in pixels per unit

  measure() { this.bounds = this.boundsOf(this.to); }

  boundsOf(points) {
    const box = [Infinity, Infinity, -Infinity, -Infinity];
    for (let at = 0; at < points.length; at += 2) {
      const x = points[at]; const y = points[at + 1];
      if (x < box[0]) box[0] = x; if (y < box[1]) box[1] = y;
      if (x > box[2]) box[2] = x; if (y > box[3]) box[3] = y;
    }
    return Number.isFinite(box[0]) ? box : [0, 0, 1, 1];
  }

  fit() {
    let [left, bottom, right, top] = this.header.bounds ?? this.bounds; // bounds of all layouts of the map
    if (this.header.bounds) [left, right] = [left * this.stretch, right * this.stretch];
    const free = this.free();
    this.fitted = 0.92 * Math.min(free.width / Math.max(right - left, 1e-6), free.height / Math.max(top - bottom, 1e-6));
    this.camera = { x: (left + right) / 2, y: (bottom + top + free.below / this.fitted) / 2, zoom: this.fitted };
    this.cameraIsFitted = true;
    this.isAtMarks = false;
  }

  // The part of the frame that the points may fill: they do not lie below the tools.
  free() {
    const room = this.room();
    const below = this.header.plain ? 0 : Math.min(TOOLBAR, room.height / 4);
    return { width: room.width, height: room.height - below, below };
  }

  room() {
    return { width: Math.max(1, this.stage.clientWidth), height: Math.max(1, this.stage.clientHeight) };
  }

  toScreen(x, y) {
    const { width, height } = this.room();
    return [(x - this.camera.x) * this.camera.zoom + width / 2, height / 2 - (y - this.camera.y) * this.camera.zoom];
  }

  toMap(left, top) {
    const { width, height } = this.room();
    return [(left - width / 2) / this.camera.zoom + this.camera.x, (height / 2 - top) / this.camera.zoom + this.camera.y];
  }

  // Returns whether the limits allow another zoom.
  zoomAt(left, top, factor) {
    const [x, y] = this.toMap(left, top);
    const zoom = this.withinLimits(this.camera.zoom * factor);
    const applied = zoom / this.camera.zoom;
    this.camera = { x: x - (x - this.camera.x) / applied, y: y - (y - this.camera.y) / applied, zoom };
    this.moved();
    return applied !== 1;
  }

  // From all points to about one point on the screen where points lie evenly (or two in a grid).
  withinLimits(zoom) {
    const closest = this.header.steps ? FINEST : Math.sqrt(this.header.count) * (this.header.grid ? 0.5 : 4);
    return Math.max(this.fitted, Math.min(this.fitted * Math.max(8, closest), zoom));
  }

  // Move the camera by the least distance after which some point lies well inside the window.
  keepInSight() {
    if (!this.header.count) return;
    const { width, height } = this.room();
    const reach = [(width * SIGHT) / 2 / this.camera.zoom, (height * SIGHT) / 2 / this.camera.zoom];
    const { x, y } = this.camera;
    let best = null; let least = Infinity;
    for (let at = 0; at < this.to.length; at += 2) {
      const right = this.to[at] - x; const up = this.to[at + 1] - y;
      const by = [Math.sign(right) * Math.max(0, Math.abs(right) - reach[0]), Math.sign(up) * Math.max(0, Math.abs(up) - reach[1])];
      const distance = Math.hypot(by[0], by[1]);
      if (distance < least) { least = distance; best = by; }
      if (!least) return;
    }
    if (best) { this.camera.x += best[0]; this.camera.y += best[1]; }
  }

  moved() {
    this.keepInSight();
    this.cameraIsFitted = this.isAtMarks = false;
    this.rewriteCamera();
    this.ask();
  }

  rewriteCamera() {
    clearTimeout(this.writing);
    this.writing = setTimeout(() => this.writeCamera(), 300);
  }

  writeCamera() { // into the address, without Python, so that a link shows the same part of the map
    if (!this.header?.cameraKey) return;
    const address = new URL(window.location.href);
    if (this.cameraIsFitted) address.searchParams.delete(this.header.cameraKey);
    else {
      const { x, y, zoom } = this.camera;
      address.searchParams.set(this.header.cameraKey, [x, y, zoom].map((part) => Number(part.toPrecision(6))).join(","));
    }
    if (address.href !== window.location.href) window.history.replaceState(window.history.state, "", address);
  }

  // Search for points: a uniform grid over the layout, with rows ordered by cell

  grid() {
    if (this.index) return this.index;
    const [left, bottom, right, top] = this.bounds;
    const count = this.header.count;
    const side = Math.max(1, Math.min(1024, Math.round(Math.sqrt(count / 4))));
    const across = side / Math.max(right - left, 1e-9); const up = side / Math.max(top - bottom, 1e-9);
    const column = (x) => Math.max(0, Math.min(side - 1, Math.floor((x - left) * across)));
    const line = (y) => Math.max(0, Math.min(side - 1, Math.floor((y - bottom) * up)));
    const starts = new Int32Array(side * side + 1);
    const cells = new Int32Array(count);
    for (let row = 0; row < count; row += 1) {
      cells[row] = line(this.to[2 * row + 1]) * side + column(this.to[2 * row]);
      starts[cells[row] + 1] += 1;
    }
    for (let cell = 0; cell < side * side; cell += 1) starts[cell + 1] += starts[cell];
    const fill = starts.slice(0, -1);
    const rows = new Int32Array(count);
    for (let row = 0; row < count; row += 1) { rows[fill[cells[row]]] = row; fill[cells[row]] += 1; }
    this.index = { side, column, line, starts, rows };
    return this.index;
  }

  * within(x0, y0, x1, y1) {
    const { side, column, line, starts, rows } = this.grid();
    const [first, last] = [column(x0), column(x1)];
    for (let at = line(y0); at <= line(y1); at += 1) {
      yield rows.subarray(starts[at * side + first], starts[at * side + last + 1]);
    }
  }

  nearest(left, top, reach = this.header.grid ? this.camera.zoom * 0.71 : 14) {
    const [x0, y0] = this.toMap(left - reach, top + reach);
    const [x1, y1] = this.toMap(left + reach, top - reach);
    let best = NONE; let closest = reach * reach;
    for (const rows of this.within(x0, y0, x1, y1)) {
      for (const row of rows) {
        const [sx, sy] = this.toScreen(this.to[2 * row], this.to[2 * row + 1]);
        const distance = (sx - left) ** 2 + (sy - top) ** 2 + (this.grayed(row) ? reach : 0);
        if (distance < closest) { best = row; closest = distance; }
      }
    }
    return best;
  }

  // Selection

  grayed(row) {
    if (this.lit !== null) return this.values[row] !== this.lit;
    return this.selectedCount > 0 && !this.selected[row];
  }

  // Gray all categories but one while the pointer is on its button in the legend; null ends this.
  light(code) {
    if (code === this.lit) return;
    this.lit = code;
    this.points.upload("flag", this.flags());
    this.ask();
  }

  flags() {
    if (this.lit !== null) return Uint8Array.from(this.values, (value) => Number(value === this.lit));
    if (this.selectedCount > 0) return this.selected;
    return (this.everything?.length === this.header.count ? this.everything
      : (this.everything = new Uint8Array(this.header.count).fill(1)));
  }

  adopt(mask, revision) {
    this.selected = mask ? unpackMask(mask, this.header.count) : new Uint8Array(this.header.count);
    this.revision = revision;
    this.counted();
  }

  counted() {
    this.selectedCount = this.selected.reduce((sum, flag) => sum + flag, 0);
    this.points.upload("flag", this.flags());
    this.ask();
  }

  choose(flags, how) { // how: replace, add, within
    const old = this.selected;
    if (how === "add") this.selected = flags.map((flag, row) => flag | old[row]);
    else if (how === "within" && this.selectedCount) this.selected = flags.map((flag, row) => flag & old[row]);
    else this.selected = flags;
    this.counted();
    this.announce();
  }

  announce() {
    this.revision += 1;
    const { group, linked } = this.header;
    if (linked) {
      const chosen = new Set();
      this.selected.forEach((flag, row) => { if (flag) chosen.add(this.idOf(row)); });
      notify("select", group, { from: this, chosen, revision: this.revision });
    }
    this.legend.draw();
    this.answers.setStateValue("selection", { mask: this.selectedCount ? packMask(this.selected) : "",
      count: this.header.count, revision: this.revision });
  }

  heard({ group, from, chosen, revision }) {
    if (from === this || !this.header || group !== this.header.group) return;
    this.selected = Uint8Array.from({ length: this.header.count }, (_, row) => Number(chosen.has(this.idOf(row))));
    this.revision = revision;
    this.counted();
    this.legend.draw();
  }

  idOf(row) { return this.ids ? this.ids[row] : row; }

  row(id) {
    if (!this.ids) return id < this.header.count ? id : NONE;
    this.rowOf ??= new Map([...this.ids].map((id, row) => [id, row]));
    return this.rowOf.get(id) ?? NONE;
  }

  inside(path) { // flags of the points inside a polygon in map units, by the even-odd rule
    const flags = new Uint8Array(this.header.count);
    const xs = path.map((point) => point[0]); const ys = path.map((point) => point[1]);
    const box = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
    for (const rows of this.within(...box)) {
      for (const row of rows) {
        const x = this.to[2 * row]; const y = this.to[2 * row + 1];
        if (x < box[0] || x > box[2] || y < box[1] || y > box[3]) continue;
        let odd = 0;
        for (let at = 0, before = path.length - 1; at < path.length; before = at, at += 1) {
          if ((ys[at] > y) !== (ys[before] > y)
            && x < ((xs[before] - xs[at]) * (y - ys[at])) / (ys[before] - ys[at]) + xs[at]) odd ^= 1;
        }
        flags[row] = odd;
      }
    }
    return flags;
  }

  // Drawing

  // Without `points` only the overlay is drawn, as there may be a million points.
  ask(points = true) {
    this.stale ||= points;
    if (this.waiting) return;
    this.waiting = requestAnimationFrame((now) => {
      this.waiting = 0;
      if (this.header && this.root.isConnected) this.frame(now);
    });
  }

  frame(now) {
    this.theme();
    if (this.travel < 1) {
      this.travel = Math.min(1, (now - this.started) / TRAVEL);
      if (this.travel < 1) this.ask(); else this.from = this.to;
    }
    const { width, height } = this.room();
    const density = Math.min(2, window.devicePixelRatio || 1);
    for (const canvas of [this.canvas, this.surface]) {
      if (canvas.width !== Math.round(width * density) || canvas.height !== Math.round(height * density)) {
        canvas.width = Math.round(width * density);
        canvas.height = Math.round(height * density);
        this.stale = true;
      }
    }
    if (this.stale && this.points.ready) { // no points below a grid: the overlay draws it
      this.points.draw({ count: this.header.grid || this.overlay.tiles.side() ? 0 : this.header.count, center: [this.camera.x, this.camera.y], travel: this.eased(),
        scale: [(2 * this.camera.zoom) / width, (2 * this.camera.zoom) / height], size: this.pointSize() * density,
        numeric: this.header.color.kind === "number", dark: this.dark, ink: this.ink, gray: this.gray,
        dimmed: this.selectedCount > 0 || this.lit !== null });
    }
    this.stale = this.travel < 1;
    this.overlay.draw(width, height, density);
  }

  pointSize() {
    const { width, height } = this.room();
    const base = Math.max(this.header.steps ? 1.5 : 2.5, Math.min(10, 0.55 * Math.sqrt((width * height) / this.header.count)));
    return Math.min(16, base * Math.max(1, this.camera.zoom / this.fitted) ** 0.3);
  }

  screenPosition(row) {
    const t = this.eased();
    const x = this.from[2 * row] + (this.to[2 * row] - this.from[2 * row]) * t;
    const y = this.from[2 * row + 1] + (this.to[2 * row + 1] - this.from[2 * row + 1]) * t;
    return this.toScreen(x, y);
  }

  tint(row) {
    const code = this.codes[row];
    if (code < 0 || this.grayed(row)) return this.dark ? "#9ea3ad" : "#73787f";
    if (this.header.color.kind === "category") return toneOf(code, this.dark);
    const ramp = this.dark ? RAMP_DARK : RAMP;
    return ramp[Math.round(Math.min(1, code) * (ramp.length - 1))];
  }

  // Pointer, keys, tools

  buildTools() {
    const bar = this.root.querySelector(".tools");
    for (const [name, words, isMode] of TOOLS) {
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.tool = name;
      button.title = words;
      button.setAttribute("aria-label", words);
      button.innerHTML = `<svg viewBox="0 0 24 24" aria-hidden="true">${ICONS[name]}</svg>`;
      if (isMode || name in SWITCHES) button.setAttribute("aria-pressed", String(isMode ? name === this.mode : this[name]));
      button.onclick = () => this.use(name);
      bar.append(button);
    }
  }

  use(tool) {
    const { width, height } = this.room();
    const actions = {
      closer: () => this.zoomAt(width / 2, height / 2, 1.6), farther: () => this.zoomAt(width / 2, height / 2, 1 / 1.6),
      fit: () => { this.fit(); clearTimeout(this.writing); this.writeCamera(); this.ask(); },
      clear: () => this.choose(new Uint8Array(this.header.count)),
      images: () => { this.images = !this.images; this.ask(); },
      names: () => { this.names = !this.names; this.ask(false); },
      apart: () => { this.apart = !this.apart; this.move(this.computed, false, false, null); this.ask(); }, save: () => this.save(),
    };
    if (actions[tool]) actions[tool](); else this.mode = tool;
    for (const button of this.root.querySelectorAll(".tools button[aria-pressed]")) {
      const { tool: name } = button.dataset;
      button.setAttribute("aria-pressed", String(name in SWITCHES ? this[name] : name === this.mode));
    }
    this.surface.style.cursor = this.mode === "pan" ? "grab" : "crosshair";
    this.surface.style.touchAction = this.mode === "pan" ? "" : "none"; // one finger draws around points
  }

  listen() {
    const { surface } = this;
    this.fingers = new Fingers(surface, (...gesture) => { if (this.header) this.gesture(...gesture); },
      (...zoom) => this.header && this.zoomAt(...zoom));
    surface.onpointerdown = (event) => this.down(event);
    surface.onpointermove = (event) => this.pointed(event);
    surface.onpointerup = (event) => this.up(event);
    surface.onpointercancel = (event) => this.up(event, true);
    surface.onpointerleave = () => this.hover(NONE);
    surface.oncontextmenu = (event) => {
      if (!this.header) return;
      event.preventDefault();
      this.query(this.nearest(...this.at(event)));
    };
    this.root.onkeydown = (event) => this.key(event);
    this.onHover = ({ detail }) => {
      if (this.header && detail.group === this.header.group && detail.from !== this) {
        this.hovered = detail.id === NONE ? NONE : this.row(detail.id);
        this.ask(false);
      }
    };
    this.onSelect = ({ detail }) => this.heard(detail);
    window.addEventListener("udml-hover", this.onHover);
    window.addEventListener("udml-select", this.onSelect);
    this.resized = new ResizeObserver(() => {
      this.legend.fit();
      if (!this.camera) return;
      this.reshape();
      if (this.cameraIsFitted || this.hasNoSize) this.fit();
      if (this.hasNoSize) this.look();
      if (this.isAtMarks) this.lookAtMarks();
      this.ask();
    });
    this.resized.observe(this.stage);
  }

  at(event) {
    const box = this.surface.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  down(event) {
    if (!this.header || event.button > 0) return;
    this.surface.setPointerCapture(event.pointerId);
    const at = this.at(event);
    this.pointers.add(event.pointerId);
    const mode = event.shiftKey ? "lasso" : this.mode;
    this.drag = { mode, start: at, last: at, moved: this.fingers.count > 1 };
    if (!this.drag.moved) return;
    this.drag.mode = "pan"; // a second finger ends a lasso
    this.path = null;
  }

  gesture(right, down, left, top, factor) {
    this.camera.x -= right / this.camera.zoom;
    this.camera.y += down / this.camera.zoom;
    this.zoomAt(left, top, factor);
  }

  pointed(event) {
    if (!this.header) return;
    const at = this.at(event);
    if (!this.pointers.has(event.pointerId)) { this.hover(this.nearest(...at)); return; }
    const { drag } = this;
    if (Math.hypot(at[0] - drag.start[0], at[1] - drag.start[1]) > 4) drag.moved = true;
    if (!drag.moved || this.pointers.size > 1) return;
    this.hover(NONE);
    if (drag.mode === "pan") {
      if (event.pointerType === "touch") return; // which scrolls the page
      this.camera.x -= (at[0] - drag.last[0]) / this.camera.zoom;
      this.camera.y += (at[1] - drag.last[1]) / this.camera.zoom;
      this.moved();
    } else if (drag.mode === "box") {
      const [left, top] = drag.start;
      this.path = [[left, top], [at[0], top], at, [left, at[1]]];
    } else {
      this.path ??= [drag.start];
      const end = this.path[this.path.length - 1];
      if (Math.hypot(at[0] - end[0], at[1] - end[1]) > 3) this.path.push(at);
    }
    drag.last = at;
    this.ask(false);
  }

  up(event, cancelled = false) {
    if (!this.pointers.delete(event.pointerId) || !this.header) return;
    const { drag, path } = this;
    this.path = null;
    if (cancelled || this.pointers.size) { this.ask(false); return; }
    if (path && path.length > 2) this.choose(this.inside(path.map(([x, y]) => this.toMap(x, y))), howOf(event));
    else if (!drag.moved) this.click(event);
    this.ask(false);
  }

  click(event) {
    const row = this.nearest(...this.at(event));
    if (row === NONE) return;
    if (event.shiftKey) {
      const flags = this.selectedCount ? this.selected.slice() : new Uint8Array(this.header.count);
      flags[row] ^= 1;
      this.choose(flags);
    } else this.pick(row);
  }

  // Answers name the image, not the row: rows may change before Python reads them.
  pick(row) {
    this.answers.setTriggerValue("picked", this.idOf(row));
  }

  query(row) {
    if (row !== NONE) this.answers.setTriggerValue("searched", this.idOf(row));
  }

  key(event) {
    if (!this.header) return;
    const { width, height } = this.room();
    const step = 60 / (this.camera?.zoom ?? 1);
    const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
    const tools = { "+": "closer", "=": "closer", "-": "farther", 0: "fit", Escape: "clear", p: "pan", l: "lasso", b: "box" };
    const onMap = this.root.getRootNode().activeElement === this.surface;
    if (onMap && moves[event.key]) {
      this.camera.x += moves[event.key][0];
      this.camera.y += moves[event.key][1];
      this.moved();
    } else if (onMap && event.key === "Enter") {
      const row = this.nearest(width / 2, height / 2, Math.max(width, height));
      if (row !== NONE) this.pick(row);
    } else if (onMap && event.key.toLowerCase() === "q" && !event.ctrlKey && !event.metaKey) {
      this.query(this.hovered === NONE ? this.nearest(width / 2, height / 2, Math.max(width, height)) : this.hovered);
    } else if (event.key in tools && !event.ctrlKey && !event.metaKey) this.use(tools[event.key]);
    else if (!isStreamlits(event.key) || event.ctrlKey || event.metaKey) return;
    event.stopPropagation();
    if (event.key !== " ") event.preventDefault();
  }

  hover(row) {
    if (row === this.hovered) return;
    this.hovered = row;
    notify("hover", this.header.group, { from: this, id: row === NONE ? NONE : this.idOf(row) });
    this.showTip();
    this.ask(false);
  }

  async showTip() {
    const row = this.hovered;
    if (row === NONE) { this.tip.hidden = true; return; }
    const { header } = this;
    const words = [];
    if (this.classes) words.push(header.classNames[this.classes[row]]);
    const { color } = header;
    if (color.kind === "number") {
      words.push(`${color.label}: ${Number.isFinite(this.values[row]) ? shown(this.values[row], color.unit) + (color.unit ?? "") : (color.none ?? "none")}`);
    } else if (color.label !== header.classLabel) {
      words.push(`${color.label}: ${this.values[row] < 0 ? (color.none ?? "none") : color.names[this.values[row]]}`);
    }
    const names = header.names ? await fetchPart(header.names, asJson).catch(() => null) : null;
    if (this.hovered !== row) return;
    words.push(names ? names[this.idOf(row)] : `image ${this.idOf(row)}`);
    const picture = this.tip.querySelector("canvas");
    const pen = picture.getContext("2d");
    pen.clearRect(0, 0, picture.width, picture.height);
    picture.hidden = !header.sheets;
    if (header.sheets) this.overlay.drawImage(pen, this.idOf(row), 56, 56, 112, "");
    this.tip.querySelector("div").textContent = words.join(" · ");
    this.tip.hidden = false;
    const { width, height } = this.room();
    const [x, y] = this.screenPosition(row);
    this.tip.style.left = `${Math.max(4, Math.min(x + 16, width - this.tip.offsetWidth - 4))}px`;
    this.tip.style.top = `${Math.max(4, y + 16 + this.tip.offsetHeight > height ? y - this.tip.offsetHeight - 12 : y + 16)}px`;
  }

  save() {
    this.hovered = NONE;
    this.stale = true;
    this.frame(performance.now());
    const picture = document.createElement("canvas");
    picture.width = this.canvas.width;
    picture.height = this.canvas.height;
    const pen = picture.getContext("2d");
    pen.fillStyle = this.paper;
    pen.fillRect(0, 0, picture.width, picture.height);
    pen.drawImage(this.canvas, 0, 0);
    pen.drawImage(this.surface, 0, 0);
    picture.toBlob((blob) => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(blob);
      link.download = "map.png";
      link.click();
      URL.revokeObjectURL(link.href);
    });
  }

  end() {
    window.removeEventListener("udml-hover", this.onHover);
    window.removeEventListener("udml-select", this.onSelect);
    clearTimeout(this.writing);
    this.resized.disconnect();
    for (const forget of this.watching ?? []) forget();
    cancelAnimationFrame(this.waiting);
    this.points.end();
  }
}

// Positions of many points arrive as numbers of steps from an origin.
function inSteps(counts, steps) {
  if (!steps) return counts;
  const { low, width } = steps;
  const positions = new Float32Array(counts.length);
  for (let at = 0; at < counts.length; at += 1) positions[at] = low[at & 1] + width[at & 1] * counts[at];
  return positions;
}

const howOf = (event) => (event.altKey ? "within" : event.shiftKey ? "add" : "replace");

export default function scatter({ data, parentElement, setStateValue, setTriggerValue }) {
  const root = parentElement.querySelector(".scatter");
  root.chart ??= new Chart(root);
  const { chart } = root;
  const [header, array] = unpack(data);
  chart.update(header, array, { setStateValue, setTriggerValue }).catch((error) => {
    root.dataset.failed = String(error);
    root.querySelector(".summary").textContent = `The map could not be loaded: ${error.message}. Reload the page.`;
  });
  return endLater(root, "chart");
}
