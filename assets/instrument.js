// The living instrument on Home: a training plays on a map of the fixed sample, beside a query and its neighbors.
// Everything arrives once; playing, scrubbing, hovering and choosing the query never ask Python.
// header: {label, token, epochs, count, width (k), positions (e, s, 2), neighbors (e, s, k),
//          classes (s) | null, classNames, pool, recall (e) | null, lines [{name, note, value}], note, sheets, query, measure}
// answers: trigger "searched" row; state "view" and trigger "opened" {token, query, epoch}, where the epoch is null
//          while the training plays
const PATH_MS = 7000; // of a whole training, within the bounds of an epoch
const EPOCH_MS = [150, 800];
const REST_MS = 1600; // at the last epoch, before the training plays again
const SPRITE = 9;
const THUMB = 34;
const MARGIN = 26;
const MOST_ZOOM = 40;
const KEPT = 0.995; // share of the points that the first view must show
const QUERY = "#e69f00";
const HIT = "#0072b2";
const MISS = "#d55e00";
const MOST_CLASSES = 12; // that the map names
const TELL_MS = 300; // after the last change of the query or the epoch
const CURVE = { left: 4, right: 196, top: 8, bottom: 110, names: 204, line: 13, gap: 27 };

class Instrument {
  constructor(root) {
    this.root = root;
    for (const name of ["stage", "map", "tip", "picture", "words", "curve", "play", "cursor", "epoch",
      "now", "legend", "measured"]) {
      this[name] = root.querySelector(`.${name}`);
    }
    this.sprites = new Map();
    this.images = new Map();
    this.hovered = -1;
    this.camera = { x: 0, y: 0, zoom: 1 };
    this.listen();
  }

  listen() {
    this.play.onclick = () => { this.run(!this.playing); this.tell(); };
    this.cursor.oninput = () => { this.run(false); this.seek(Number(this.cursor.value)); this.tell(); };
    this.root.querySelector(".other").onclick = () => this.ask(this.random());
    this.root.querySelector(".open").onclick = () => this.answers.setTriggerValue("opened", this.view());
    this.root.querySelector(".search").onclick = () => this.answers.setTriggerValue("searched", this.query);
    this.root.querySelector(".closer").onclick = () => this.zoom(1.6);
    this.root.querySelector(".farther").onclick = () => this.zoom(1 / 1.6);
    this.root.querySelector(".fit").onclick = () => { this.camera = { x: 0, y: 0, zoom: 1 }; this.stale = true; };
    this.root.onkeydown = (event) => { if (!this.key(event) && isStreamlits(event.key)) event.stopPropagation(); };
    this.onKey = (event) => { if (document.activeElement === document.body && this.isSeen) this.key(event); };
    document.addEventListener("keydown", this.onKey);
    this.map.onpointermove = (event) => this.move(event);
    this.map.onpointerleave = () => { this.hovered = -1; this.tip.hidden = true; this.stale = true; };
    this.map.onpointerdown = (event) => {
      this.map.setPointerCapture(event.pointerId);
      this.grip = { x: event.offsetX, y: event.offsetY, camera: { ...this.camera }, moved: false };
    };
    this.map.onpointerup = (event) => this.release(event);
    this.map.onpointercancel = () => { this.grip = null; };
    this.map.ondblclick = (event) => this.zoom(2, event.offsetX, event.offsetY);
    this.map.addEventListener("wheel", (event) => { // without focus the wheel scrolls the page
      if (!event.ctrlKey && this.root.getRootNode().activeElement !== this.map) return;
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
    }, { passive: false });
    this.seen = new IntersectionObserver(([entry]) => { this.isSeen = entry.isIntersecting; if (this.isSeen) this.wake(); });
    this.seen.observe(this.stage);
    this.resized = new ResizeObserver(() => { this.stale = true; this.wake(); });
    this.resized.observe(this.stage);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.header) return false;
    const within = this.root.getRootNode().activeElement;
    const steps = { ArrowLeft: -1, ArrowRight: 1 };
    if (event.key === " " && within?.tagName !== "BUTTON") this.play.click();
    else if (event.key in steps && within !== this.cursor) {
      this.run(false);
      this.seek(Math.round(this.at) + steps[event.key]);
      this.tell();
    } else if (within === this.map && ["+", "=", "-", "0"].includes(event.key)) {
      if (event.key === "0") this.root.querySelector(".fit").click();
      else this.zoom(event.key === "-" ? 1 / 1.6 : 1.6);
    } else if (within === this.map && ["ArrowUp", "ArrowDown", "Enter"].includes(event.key)) {
      if (event.key === "Enter") this.root.querySelector(".search").click();
      else this.ask((this.query + (event.key === "ArrowUp" ? 1 : this.header.count - 1)) % this.header.count);
    } else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  }

  async update(header, array, answers) {
    this.answers = answers;
    if (header.token === this.header?.token) return;
    const [positions, neighbors, classes] = await Promise.all([
      array(header.positions), array(header.neighbors), array(header.classes)]);
    Object.assign(this, { header, positions, neighbors, classes, query: header.query });
    this.root.setAttribute("aria-label", header.label);
    this.last = header.epochs.length - 1;
    Object.assign(this.cursor, { min: 0, max: this.last, step: "any" });
    this.reach = [0, 1].map((axis) => { // the farthest points may leave the picture for a while
      const sizes = positions.filter((_, at) => at % 2 === axis).map(Math.abs).sort();
      return Math.max(1e-6, sizes[Math.floor(KEPT * (sizes.length - 1))]);
    });
    this.drawCurve();
    this.drawLegend();
    this.buildTiles();
    this.at = calm() ? this.last : 0;
    this.seek(this.at);
    this.run(!calm() && this.last > 0);
    this.root.dataset.drawn = header.token;
  }

  // Time

  run(on) {
    this.playing = on;
    this.play.textContent = on ? "❚❚" : "▶";
    this.play.setAttribute("aria-label", on ? "Pause" : "Play");
    if (on && this.at >= this.last) this.at = 0;
    this.before = performance.now();
    this.rest = 0;
    this.wake();
  }

  seek(at) {
    this.at = Math.max(0, Math.min(this.last, at));
    this.stale = true;
    this.wake();
  }

  wake() {
    if (!this.waiting && this.header) this.waiting = requestAnimationFrame((now) => this.frame(now));
  }

  frame(now) {
    this.waiting = 0;
    if (!this.root.isConnected) return;
    if (this.playing) this.advance(Math.max(0, now - this.before)); // a frame can begin before its request
    this.before = now;
    if (this.stale || this.playing) this.draw();
    this.stale = false;
    if (this.playing && this.isSeen !== false) this.wake();
  }

  advance(passed) {
    const span = Math.max(EPOCH_MS[0], Math.min(EPOCH_MS[1], PATH_MS / this.last));
    if (this.at < this.last) this.at = Math.min(this.last, this.at + Math.min(passed, 100) / span);
    else if ((this.rest += passed) > REST_MS) { this.at = 0; this.rest = 0; }
  }

  // The map

  room() {
    const { clientWidth: width, clientHeight: height } = this.stage;
    const unit = Math.min((width / 2 - MARGIN) / this.reach[0], (height / 2 - MARGIN) / this.reach[1]);
    return { width, height, scale: Math.max(1, unit) * this.camera.zoom };
  }

  place(row) { // between two epochs the points travel on a line, slowly at both ends
    const epoch = Math.min(Math.floor(this.at), this.last);
    const part = this.at - epoch;
    const eased = part * part * (3 - 2 * part);
    const from = 2 * (epoch * this.header.count + row);
    const to = epoch < this.last ? from + 2 * this.header.count : from;
    const mix = (axis) => this.positions[from + axis] * (1 - eased) + this.positions[to + axis] * eased;
    const { width, height, scale } = this.size;
    return [width / 2 + (mix(0) - this.camera.x) * scale, height / 2 - (mix(1) - this.camera.y) * scale];
  }

  draw() {
    const density = window.devicePixelRatio || 1;
    this.size = this.room();
    const { width, height } = this.size;
    if (this.map.width !== Math.round(width * density) || this.map.height !== Math.round(height * density)) {
      this.map.width = Math.round(width * density);
      this.map.height = Math.round(height * density);
    }
    const pen = this.map.getContext("2d");
    pen.setTransform(density, 0, 0, density, 0, 0);
    pen.clearRect(0, 0, width, height);
    this.spots ??= [];
    const visible = [];
    for (let row = 0; row < this.header.count; row += 1) {
      const spot = this.place(row);
      this.spots[row] = spot;
      if (spot[0] > -THUMB && spot[1] > -THUMB && spot[0] < width + THUMB && spot[1] < height + THUMB) visible.push(row);
    }
    const thumbs = visible.length * THUMB * THUMB < 0.75 * width * height && this.camera.zoom > 1;
    for (const row of visible) {
      const [x, y] = this.spots[row];
      if (thumbs) this.stamp(pen, row, x, y, THUMB, this.tint(row));
      else pen.drawImage(this.sprite(row, density), x - SPRITE, y - SPRITE, 2 * SPRITE, 2 * SPRITE);
    }
    this.drawQuery(pen);
    if (this.hovered >= 0) this.ring(pen, this.hovered, getComputedStyle(this.root).color);
    this.showEpoch();
  }

  drawQuery(pen) {
    const [x, y] = this.spots[this.query];
    for (const row of this.nearest()) {
      const [a, b] = this.spots[row];
      pen.beginPath();
      pen.setLineDash(this.isHit(row) ? [] : [5, 4]);
      pen.strokeStyle = this.edge(row);
      pen.lineWidth = 2;
      pen.moveTo(x, y);
      pen.lineTo(a, b);
      pen.stroke();
    }
    for (const row of this.nearest()) this.stamp(pen, row, ...this.spots[row], 26, this.edge(row), this.isHit(row) ? [] : [5, 4]);
    pen.setLineDash([]);
    this.stamp(pen, this.query, x, y, 44, QUERY);
  }

  stamp(pen, row, x, y, side, frame, dash = []) {
    const { cell } = this.header.sheets;
    const where = positionOf(this.header.sheets, row);
    const sheet = this.sheet(where.url);
    if (sheet) pen.drawImage(sheet, where.column * cell, where.row * cell, cell, cell, x - side / 2, y - side / 2, side, side);
    pen.setLineDash(dash);
    pen.lineWidth = 2.5;
    pen.strokeStyle = frame;
    pen.strokeRect(x - side / 2, y - side / 2, side, side);
    pen.setLineDash([]);
  }

  sheet(url) {
    if (!this.images.has(url)) {
      this.images.set(url, null);
      fetchPart(url, asImage).then((image) => {
        this.images.set(url, image);
        this.shown = null;
        this.stale = true;
        this.wake();
      }, () => {});
    }
    return this.images.get(url);
  }

  sprite(row, density) {
    const code = this.classes ? this.classes[row] : 0;
    const key = `${code} ${density}`;
    if (!this.sprites.has(key)) {
      const canvas = document.createElement("canvas");
      canvas.width = canvas.height = Math.ceil(2 * SPRITE * density);
      const pen = canvas.getContext("2d");
      pen.scale(density, density);
      pen.font = "12px sans-serif";
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      pen.fillStyle = this.tint(row);
      pen.globalAlpha = 0.85;
      pen.fillText(this.shape(row), SPRITE, SPRITE);
      this.sprites.set(key, canvas);
    }
    return this.sprites.get(key);
  }

  ring(pen, row, color) {
    pen.beginPath();
    pen.arc(...this.spots[row], 9, 0, 2 * Math.PI);
    pen.lineWidth = 2.5;
    pen.strokeStyle = color;
    pen.stroke();
  }

  tint(row) { return PALETTE[(this.classes ? this.classes[row] : 0) % 8]; }
  shape(row) { return SHAPES[(this.classes ? this.classes[row] : 0) % SHAPES.length]; } // as on the maps: few classes all differ
  isHit(row) { return !this.classes || this.classes[row] === this.classes[this.query]; }
  edge(row) { return this.isHit(row) ? HIT : MISS; }

  zoom(factor, x = this.stage.clientWidth / 2, y = this.stage.clientHeight / 2) {
    const before = this.room();
    const zoom = Math.max(1, Math.min(MOST_ZOOM, this.camera.zoom * factor));
    const scale = (before.scale / this.camera.zoom) * zoom;
    const keep = (middle, spot, sign) => sign * (spot - middle) * (1 / before.scale - 1 / scale);
    this.camera = { zoom, x: this.camera.x + keep(before.width / 2, x, 1), y: this.camera.y + keep(before.height / 2, y, -1) };
    if (zoom === 1) this.camera = { x: 0, y: 0, zoom };
    this.stale = true;
    this.wake();
  }

  move(event) {
    if (this.grip) {
      const [dx, dy] = [event.offsetX - this.grip.x, event.offsetY - this.grip.y];
      this.grip.moved ||= Math.hypot(dx, dy) > 4;
      const { scale } = this.room();
      if (this.grip.moved && this.camera.zoom > 1) {
        this.camera = { zoom: this.camera.zoom, x: this.grip.camera.x - dx / scale, y: this.grip.camera.y + dy / scale };
      }
    }
    this.hovered = this.under(event.offsetX, event.offsetY);
    this.tip.hidden = this.hovered < 0 || Boolean(this.grip?.moved);
    if (!this.tip.hidden) {
      this.tip.querySelector("div").textContent = this.name(this.hovered);
      this.paint(this.tip.querySelector("canvas"), this.hovered);
      this.tip.style.left = `${Math.min(event.offsetX + 14, this.stage.clientWidth - 120)}px`;
      this.tip.style.top = `${Math.max(4, Math.min(event.offsetY + 14, this.stage.clientHeight - 120))}px`;
    }
    this.stale = true;
    this.wake();
  }

  release(event) {
    const chosen = this.grip && !this.grip.moved ? this.under(event.offsetX, event.offsetY) : -1;
    this.grip = null;
    if (chosen >= 0) this.ask(chosen);
  }

  under(x, y) {
    let best = -1;
    let least = 18 ** 2;
    this.spots?.forEach(([a, b], row) => {
      const distance = (a - x) ** 2 + (b - y) ** 2;
      if (distance < least) [best, least] = [row, distance];
    });
    return best;
  }

  // The query and its neighbors

  ask(row) {
    this.query = row;
    this.stale = true;
    this.wake();
    this.tell();
  }

  view() { return { token: this.header.token, query: this.query, epoch: this.playing ? null : this.step() }; }

  // Other pages show the same query and epoch; nothing waits for the answer.
  tell() {
    clearTimeout(this.telling);
    this.telling = setTimeout(() => { if (this.root.isConnected) this.answers.setStateValue("view", this.view()); }, TELL_MS);
  }

  random() { return Math.floor(Math.random() * this.header.count); }
  step() { return Math.min(this.last, Math.floor(this.at + 0.5)); }

  nearest(epoch = this.step()) {
    const { count, width } = this.header;
    const start = (epoch * count + this.query) * width;
    return this.neighbors.subarray(start, start + width);
  }

  hits(epoch) { return [...this.nearest(epoch)].filter((row) => this.isHit(row)).length; }

  name(row) {
    return this.classes ? this.header.classNames[this.classes[row]] : `image ${row + 1} of the sample`;
  }

  paint(canvas, row) {
    const { cell } = this.header.sheets;
    const where = positionOf(this.header.sheets, row);
    const sheet = this.sheet(where.url);
    const pen = canvas.getContext("2d");
    pen.clearRect(0, 0, canvas.width, canvas.height);
    if (sheet) pen.drawImage(sheet, where.column * cell, where.row * cell, cell, cell, 0, 0, canvas.width, canvas.height);
  }

  buildTiles() {
    const box = this.root.querySelector(".tiles");
    box.replaceChildren(...Array.from({ length: this.header.width }, (_, rank) => {
      const tile = document.createElement("button");
      const picture = document.createElement("canvas");
      picture.width = picture.height = 64;
      tile.type = "button";
      tile.append(picture);
      tile.onclick = () => this.ask(this.nearest()[rank]);
      return tile;
    }));
    this.tiles = [...box.children];
  }

  showEpoch() {
    const step = this.step();
    const { epochs, recall, measure } = this.header;
    this.cursor.value = this.at;
    if (this.shown === `${step} ${this.query}`) return this.moveDot();
    this.shown = `${step} ${this.query}`;
    const value = recall ? `${measure} ${recall[step].toFixed(1)} %` : "";
    this.epoch.textContent = [epochs[step], value].filter(Boolean).join(" · ");
    this.cursor.setAttribute("aria-valuetext", this.epoch.textContent);
    this.root.dataset.epoch = step;
    this.root.dataset.query = this.query;
    this.paint(this.picture, this.query);
    const rows = this.nearest();
    const [first, second] = this.words.querySelectorAll("span");
    this.words.querySelector("b").textContent = this.name(this.query);
    first.textContent = this.classes ? `${this.hits(step)} of ${rows.length} hits ${this.header.pool}` : "";
    second.textContent = this.classes && step ? `${epochs[0]}: ${this.hits(0)} of ${rows.length}` : "";
    this.now.textContent = epochs[step].startsWith("epoch") ? `${epochs[step]} of ${this.last}` : epochs[step];
    this.tiles.forEach((tile, rank) => {
      const row = rows[rank];
      this.paint(tile.firstChild, row);
      tile.className = this.classes ? (this.isHit(row) ? "hit" : "miss") : "";
      tile.setAttribute("aria-label", `Neighbor ${rank + 1}: ${this.name(row)}${this.classes ? (this.isHit(row) ? ", hit" : ", miss") : ""}`);
      tile.title = this.name(row);
    });
    return this.moveDot();
  }

  // What the colors of the points mean, as far as the map has room for names.
  drawLegend() {
    const codes = this.classes ? [...new Set(this.classes)].sort((a, b) => a - b) : [];
    const rows = codes.length > MOST_CLASSES ? [] : codes.map((code) => this.classes.indexOf(code));
    this.legend.replaceChildren(...rows.map((row) => {
      const entry = document.createElement("span");
      const sign = document.createElement("i");
      sign.style.color = this.tint(row);
      sign.textContent = this.shape(row);
      entry.append(sign, this.name(row));
      return entry;
    }));
    if (codes.length > MOST_CLASSES) this.legend.textContent = `Color and shape: ${codes.length} classes`;
  }

  height(value) { return CURVE.bottom - (value / 100) * (CURVE.bottom - CURVE.top); }
  across(at) { return CURVE.left + (at / (this.last || 1)) * (CURVE.right - CURVE.left); }

  // R@1 by epoch, with lines for what needs no training; each line's name stands beside it.
  drawCurve() {
    const { epochs, recall, measure, lines } = this.header;
    this.measured.toggleAttribute("hidden", !recall);
    if (!recall) return;
    const make = (name, attributes, text = "") => {
      const element = document.createElementNS("http://www.w3.org/2000/svg", name);
      for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
      element.textContent = text;
      return element;
    };
    const end = { name: epochs[this.last], note: this.header.note, value: recall[this.last], trained: true };
    const named = [...lines, end].sort((a, b) => b.value - a.value);
    const { names, line, gap, top, bottom } = CURVE;
    const lowest = bottom - gap * (named.length - 1) - line + 8;
    named.forEach((entry, at) => { // names keep apart, from top to bottom
      const least = at ? named[at - 1].y + gap : top + 3;
      entry.y = Math.min(Math.max(this.height(entry.value) + 3, least), lowest + gap * at);
    });
    const shown = (value) => `${value.toFixed(1)} %`;
    this.curve.replaceChildren(
      make("line", { class: "axis", x1: CURVE.left, x2: CURVE.right, y1: bottom, y2: bottom }),
      ...lines.map(({ value }, at) => make("line", { class: `beat beat${at}`, x1: CURVE.left, x2: CURVE.right, y1: this.height(value), y2: this.height(value) })),
      make("path", { d: `M ${recall.map((value, at) => `${this.across(at)} ${this.height(value)}`).join(" L ")}` }),
      make("circle", { r: 4.5 }),
      make("text", { x: CURVE.left + 2, y: Math.min(this.height(recall[0]) + 13, bottom - 3) }, shown(recall[0])),
      ...named.flatMap(({ name, note, value, y, trained }) => [
        make("line", { class: "lead", x1: CURVE.right + 1, x2: names - 2, y1: this.height(value), y2: y - 3 }),
        make("text", { x: names, y, class: trained ? "trained" : "" }, `${name} ${shown(value)}`),
        make("text", { x: names, y: y + 10, class: "note" }, note)]));
    const verb = recall[this.last] >= recall[0] ? "rises" : "falls";
    const others = lines.map(({ name, note, value }) => `; ${name} (${note}) ${shown(value)}`).join("");
    this.curve.setAttribute("aria-label", `${measure} of the sample ${verb} from ${shown(recall[0])} to ${shown(recall[this.last])}${others}`);
  }

  moveDot() {
    const { recall } = this.header;
    if (!recall) return;
    const epoch = Math.min(Math.floor(this.at), this.last);
    const next = Math.min(epoch + 1, this.last);
    const value = recall[epoch] + (recall[next] - recall[epoch]) * (this.at - epoch);
    const dot = this.curve.querySelector("circle");
    dot.setAttribute("cx", this.across(this.at));
    dot.setAttribute("cy", this.height(value));
  }

  end() {
    clearTimeout(this.telling);
    document.removeEventListener("keydown", this.onKey);
    this.seen.disconnect();
    this.resized.disconnect();
    cancelAnimationFrame(this.waiting);
  }
}

export default function instrument({ data, parentElement, setStateValue, setTriggerValue }) {
  const root = parentElement.querySelector(".instrument");
  root.live ??= new Instrument(root);
  const { live } = root;
  const [header, array] = unpack(data);
  live.update(header, array, { setStateValue, setTriggerValue }).catch((error) => {
    root.dataset.failed = String(error);
    live.epoch.textContent = `The training could not be loaded: ${error.message}. Reload the page.`;
  });
  return () => setTimeout(() => { if (!root.isConnected) { live.end(); root.live = null; } }, 1000);
}
