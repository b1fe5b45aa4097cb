// The living instrument on Home: a training plays on a map of the fixed sample, beside a query and its neighbors.
// Everything arrives once; playing, scrubbing, hovering and choosing the query never ask Python.
// header: {label, name, token, epochs, count, width (k), positions (e, s, 2), neighbors (e, s, k), classes (s) | null,
//          classNames, pool, sheets, query, chosen, rival {name, neighbors (s, k)} | null,
//          bars {point, own {name, note}, rivals [{name, note}], measures [{name, hint, values (e), rivals, sides (e)}]} | null}
//          sides: 1 if the value of an epoch is clearly above all rivals, -1 if clearly below one, 0 if chance may decide
// answers: trigger "searched" row; state "view" and trigger "opened" {token, query, epoch}, where the epoch is null
//          while the training plays
const PATH_MS = 7000; // of a whole training, within the bounds of an epoch
const EPOCH_MS = [150, 800];
const REST_MS = 1600; // at the last epoch, before the training plays again
const SPRITE = 9;
const LEAST_THUMB = 11; // a smaller image shows nothing
const MOST_THUMB = 72;
const [NEIGHBOR_SIDE, QUERY_SIDE] = [20, 34];
const FILLED = 0.48; // share of the map that images may cover; beyond it they are points
const MARGIN = 30;
const STRETCH = 1.5; // of the longer axis against the other one
const MOST_ZOOM = 40;
const KEPT = 0.995; // share of the points that the first view must show
const QUERY = "#e69f00";
const HIT = "#0072b2";
const MISS = "#d55e00";
const MOST_CLASSES = 12; // that the map names
const TELL_MS = 300; // after the last change of the query or the epoch

class Instrument {
  constructor(root) {
    this.root = root;
    for (const name of ["stage", "map", "tip", "picture", "words", "play", "cursor", "epoch",
      "title", "legend", "measured", "bars", "earlier", "later"]) {
      this[name] = root.querySelector(`.${name}`);
    }
    this.sprites = new Map();
    this.inks = new Map();
    this.images = new Map();
    this.hovered = -1;
    this.camera = { x: 0, y: 0, zoom: 1 };
    this.listen();
  }

  listen() {
    this.play.onclick = () => { this.run(!this.playing); this.tell(); };
    this.cursor.oninput = () => { this.run(false); this.seek(Number(this.cursor.value)); this.tell(); };
    this.root.querySelector(".other").onclick = () => this.ask(this.random(), "Query at random");
    this.root.querySelector(".open").onclick = () => this.answers.setTriggerValue("opened", this.view());
    this.root.querySelector(".search").onclick = () => this.answers.setTriggerValue("searched", this.query);
    this.root.querySelector(".closer").onclick = () => this.zoom(1.6);
    this.root.querySelector(".farther").onclick = () => this.zoom(1 / 1.6);
    this.root.querySelector(".fit").onclick = () => { this.camera = { x: 0, y: 0, zoom: 1 }; this.stale = true; };
    this.root.onkeydown = (event) => { if (!this.key(event) && isStreamlits(event.key)) event.stopPropagation(); };
    this.onKey = (event) => { if (document.activeElement === document.body && this.isSeen) this.key(event); };
    document.addEventListener("keydown", this.onKey);
    this.fingers = new Fingers(this.map, (...gesture) => this.gesture(...gesture),
      (left, top, factor) => this.zoom(factor, left, top));
    this.map.onpointermove = (event) => this.move(event);
    this.map.onpointerleave = () => { this.hovered = -1; this.tip.hidden = true; this.stale = true; };
    this.map.onpointerdown = (event) => {
      this.map.setPointerCapture(event.pointerId);
      this.grip = { x: event.offsetX, y: event.offsetY, camera: { ...this.camera }, moved: this.fingers.count > 1 };
    };
    this.map.onpointerup = (event) => this.release(event);
    this.map.onpointercancel = () => { this.grip = null; };
    this.map.ondblclick = (event) => this.zoom(2, event.offsetX, event.offsetY);
    this.seen = new IntersectionObserver(([entry]) => { this.isSeen = entry.isIntersecting; if (this.isSeen) this.wake(); });
    this.seen.observe(this.stage);
    this.resized = new ResizeObserver(() => { this.layouts = []; this.stale = true; this.wake(); });
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
    const [positions, neighbors, classes, rivals] = await Promise.all([
      array(header.positions), array(header.neighbors), array(header.classes), header.rival && array(header.rival.neighbors)]);
    Object.assign(this, { header, positions, neighbors, classes, rivals, query: header.query, chosen: header.chosen });
    this.root.setAttribute("aria-label", header.label);
    this.last = header.epochs.length - 1;
    Object.assign(this.cursor, { min: 0, max: this.last, step: "any" });
    this.layouts = [];
    this.inks.clear();
    this.title.textContent = header.name;
    this.buildBars();
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

  // Without zoom the map has its size; the camera is in pixels from its middle.
  room() {
    const { clientWidth: width, clientHeight: height } = this.stage;
    return { width, height, scale: this.camera.zoom };
  }

  // The side of the images if all of them fit, else 0.
  sideOfAll(width, height) {
    const side = Math.sqrt((FILLED * width * height) / this.header.count);
    return side < LEAST_THUMB ? 0 : Math.min(MOST_THUMB, side);
  }

  // Offsets in pixels of all images at an epoch, where images that would hide each other are moved apart.
  layout(epoch) {
    if (this.layouts[epoch]) return this.layouts[epoch];
    const { width, height } = this.size;
    const side = this.sideOfAll(width, height);
    const [wide, high] = [Math.max(1, width / 2 - MARGIN), Math.max(1, height / 2 - MARGIN)];
    const from = 2 * epoch * this.header.count;
    const bounds = [0, 1].map((axis) => boundsOf(this.positions.subarray(from, from + 2 * this.header.count), axis));
    const units = [wide, high].map((room, axis) => room / Math.max(1e-6, bounds[axis].reach));
    const unit = Math.min(...units); // a map's axes carry no units, so a wide window may stretch it a little
    const scale = units.map((value) => Math.min(value, STRETCH * unit));
    const spots = new Float32Array(2 * this.header.count);
    for (let at = 0; at < spots.length; at += 1) {
      spots[at] = (at % 2 ? -1 : 1) * (this.positions[from + at] - bounds[at % 2].middle) * scale[at % 2];
    }
    if (side) moveApart(spots, 0.82 * side, wide, high);
    this.layouts[epoch] = spots;
    return spots;
  }

  place(row) { // between two epochs the images travel on a line, slowly at both ends
    const epoch = Math.min(Math.floor(this.at), this.last);
    const part = this.at - epoch;
    const eased = part * part * (3 - 2 * part);
    const [from, to] = [this.layout(epoch), this.layout(Math.min(epoch + 1, this.last))];
    const mix = (axis) => from[2 * row + axis] * (1 - eased) + to[2 * row + axis] * eased;
    const { width, height, scale } = this.size;
    return [width / 2 + (mix(0) - this.camera.x) * scale, height / 2 + (mix(1) - this.camera.y) * scale];
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
    const theme = getComputedStyle(this.root).color;
    this.paper = getComputedStyle(this.stage).backgroundColor;
    if (theme !== this.theme) { this.theme = theme; this.sprites.clear(); this.inks.clear(); this.drawLegend(); }
    this.spots ??= [];
    const visible = [];
    for (let row = 0; row < this.header.count; row += 1) {
      const spot = this.place(row);
      this.spots[row] = spot;
      const edge = MOST_THUMB;
      if (spot[0] > -edge && spot[1] > -edge && spot[0] < width + edge && spot[1] < height + edge) visible.push(row);
    }
    const fits = Math.sqrt((FILLED * width * height) / Math.max(1, visible.length));
    const side = fits < LEAST_THUMB ? 0 : Math.min(MOST_THUMB, fits, (this.sideOfAll(width, height) || 34) * this.camera.zoom);
    if (Boolean(side) !== Boolean(this.thumb)) { this.thumb = side; this.drawLegend(); }
    this.thumb = side;
    this.root.dataset.marks = side ? "images" : "points";
    for (const row of visible) {
      const [x, y] = this.spots[row];
      if (!side || !this.drawInk(pen, row, x, y, side)) {
        pen.drawImage(this.sprite(row, density), x - SPRITE, y - SPRITE, 2 * SPRITE, 2 * SPRITE);
      }
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
    for (const row of this.nearest()) this.stamp(pen, row, ...this.spots[row], Math.max(NEIGHBOR_SIDE, this.thumb), this.edge(row), this.isHit(row) ? [] : [5, 4]);
    pen.setLineDash([]);
    this.stamp(pen, this.query, x, y, Math.max(QUERY_SIDE, 1.4 * this.thumb), QUERY);
  }

  // A framed image of the map, in the look of the others, on paper that hides what lies below.
  stamp(pen, row, x, y, side, frame, dash = []) {
    pen.fillStyle = this.paper;
    pen.fillRect(x - side / 2, y - side / 2, side, side);
    this.drawInk(pen, row, x, y, side);
    pen.setLineDash(dash);
    pen.lineWidth = 2.5;
    pen.strokeStyle = frame;
    pen.strokeRect(x - side / 2, y - side / 2, side, side);
    pen.setLineDash([]);
  }

  // Draw an image of the map, gray images in the color of their class without their paper; false before it has arrived.
  drawInk(pen, row, x, y, side) {
    const ink = this.inks.get(row) ?? this.makeInk(row);
    if (!ink) return false;
    pen.drawImage(ink, x - side / 2, y - side / 2, side, side);
    return true;
  }

  makeInk(row) {
    const { cell } = this.header.sheets;
    const where = positionOf(this.header.sheets, row);
    const sheet = this.sheet(where.url);
    if (!sheet) return null;
    const { canvas } = inked(sheet, where, cell, this.classes ? this.tint(row) : "");
    this.inks.set(row, canvas);
    return canvas;
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

  tint(row) { return toneOf(this.classes ? this.classes[row] : 0, lightness(rgbOf(this.theme ?? "rgb(0, 0, 0)")) > 0.5); }
  shape(row) { return SHAPES[(this.classes ? this.classes[row] : 0) % SHAPES.length]; } // as on the maps: few classes all differ
  isHit(row) { return !this.classes || this.classes[row] === this.classes[this.query]; }
  edge(row) { return this.isHit(row) ? HIT : MISS; }

  zoom(factor, x = this.stage.clientWidth / 2, y = this.stage.clientHeight / 2) {
    const before = this.room();
    const zoom = Math.max(1, Math.min(MOST_ZOOM, this.camera.zoom * factor));
    const scale = zoom;
    const keep = (middle, spot) => (spot - middle) * (1 / before.scale - 1 / scale);
    this.camera = { zoom, x: this.camera.x + keep(before.width / 2, x), y: this.camera.y + keep(before.height / 2, y) };
    if (zoom === 1) this.camera = { x: 0, y: 0, zoom };
    this.stale = true;
    this.wake();
  }

  gesture(right, down, left, top, factor) {
    if (!this.header) return;
    const { scale } = this.room();
    if (scale > 1) this.camera = { ...this.camera, x: this.camera.x - right / scale, y: this.camera.y - down / scale };
    this.zoom(factor, left, top);
  }

  move(event) {
    if (this.grip) {
      const [dx, dy] = [event.offsetX - this.grip.x, event.offsetY - this.grip.y];
      this.grip.moved ||= Math.hypot(dx, dy) > 4;
      const { scale } = this.room();
      if (this.grip.moved && this.camera.zoom > 1 && event.pointerType !== "touch") {
        this.camera = { zoom: this.camera.zoom, x: this.grip.camera.x - dx / scale, y: this.grip.camera.y - dy / scale };
      }
    }
    this.hovered = this.under(event.offsetX, event.offsetY);
    this.tip.hidden = this.hovered < 0 || Boolean(this.grip?.moved);
    if (!this.tip.hidden) {
      this.tip.querySelector("div").textContent = this.nameOf(this.hovered);
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

  ask(row, chosen = "Query") {
    this.query = row;
    this.chosen = chosen;
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

  nearest(epoch = this.step(), neighbors = this.neighbors) {
    const { count, width } = this.header;
    const start = (epoch * count + this.query) * width;
    return neighbors.subarray(start, start + width);
  }

  // What the training is compared with: PCA's neighbors where they are known, else those before training.
  compared() { return this.nearest(0, this.rivals ?? this.neighbors); }

  nameOf(row) {
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
    this.tiles = ["earlier", "later"].map((time) => {
      const box = this[time].querySelector(".tiles");
      box.replaceChildren(...Array.from({ length: this.header.width }, (_, rank) => {
        const tile = document.createElement("button");
        const picture = document.createElement("canvas");
        picture.width = picture.height = 64;
        tile.type = "button";
        tile.append(picture);
        tile.onclick = () => this.ask((time === "earlier" ? this.compared() : this.nearest())[rank]);
        return tile;
      }));
      return [...box.children];
    });
  }

  showEpoch() {
    const step = this.step();
    const { epochs, bars } = this.header;
    const measure = bars?.measures[0];
    this.cursor.value = this.at;
    if (this.shown === `${step} ${this.query}`) return this.moveBars();
    this.shown = `${step} ${this.query}`;
    const name = epochs[step].startsWith("epoch") ? `${epochs[step]} of ${this.last}` : epochs[step];
    const reached = measure ? `${measure.name.toLowerCase()} ${measure.values[step].toFixed(1)} %` : "";
    this.epoch.textContent = [name, reached].filter(Boolean).join(" · ");
    this.cursor.setAttribute("aria-valuetext", this.epoch.textContent);
    this.root.dataset.epoch = step;
    this.root.dataset.query = this.query;
    this.paint(this.picture, this.query);
    this.words.querySelector("small").textContent = this.chosen;
    this.words.querySelector("b").textContent = this.nameOf(this.query);
    this.showRow(0, this.earlier, this.compared(), this.header.rival?.name ?? epochs[0]);
    this.showRow(1, this.later, this.nearest(), name.startsWith("epoch") ? `at ${name}` : name);
    return this.moveBars();
  }

  showRow(at, box, rows, words) {
    const hits = this.classes ? `: ${[...rows].filter((row) => this.isHit(row)).length} of ${rows.length} hits` : "";
    box.querySelector("small").textContent = `Nearest ${words}${hits}`;
    this.tiles[at].forEach((tile, rank) => {
      const row = rows[rank];
      this.paint(tile.firstChild, row);
      tile.className = this.classes ? (this.isHit(row) ? "hit" : "miss") : "";
      tile.setAttribute("aria-label", `Neighbor ${rank + 1}: ${this.nameOf(row)}${this.classes ? (this.isHit(row) ? ", hit" : ", miss") : ""}`);
      tile.title = this.nameOf(row);
    });
  }

  // What the colors of the points mean, as far as the map has room for names.
  drawLegend() {
    const codes = this.classes ? [...new Set(this.classes)].sort((a, b) => a - b) : [];
    const rows = codes.length > MOST_CLASSES ? [] : codes.map((code) => this.classes.indexOf(code));
    this.legend.replaceChildren(...rows.map((row) => {
      const entry = document.createElement("span");
      const sign = document.createElement("i");
      sign.style.color = this.tint(row);
      sign.textContent = this.thumb ? "●" : this.shape(row); // images show no shapes of points
      entry.append(sign, this.nameOf(row));
      return entry;
    }));
    if (codes.length > MOST_CLASSES) this.legend.textContent = `${this.thumb ? "" : "Color and shape: "}${codes.length} classes`;
  }

  // Raw features, PCA and this run, in each measure; the run's bars follow the epoch.
  buildBars() {
    const { bars } = this.header;
    this.measured.toggleAttribute("hidden", !bars);
    for (const name of ["hit", "miss"]) this.root.querySelector(`.meanings .${name}`).toggleAttribute("hidden", !this.classes);
    this.root.querySelector(".pool").textContent = this.header.pool;
    [this.ownLabel, this.own] = [null, []];
    if (!bars) return;
    this.measured.querySelector(".point").textContent = bars.point;
    const make = (kind, name, text = "") => Object.assign(document.createElement(kind), { className: name, textContent: text });
    const bar = (value, name) => {
      const box = make("span", `bar ${name}`);
      box.append(make("i", ""), make("b", "", shown(value)));
      box.firstChild.style.width = `${value}%`;
      return box;
    };
    const heads = bars.measures.map(({ name, hint }) => {
      const head = Object.assign(make("small", "head"), { title: hint });
      head.prepend(make("b", "", `${name} `));
      return head;
    });
    const line = ({ name, note }, values, kind) => {
      const label = make("span", `label ${kind}`, name);
      label.append(make("small", "", note));
      return [label, ...values.map((value) => bar(value, kind))];
    };
    const own = line(bars.own, bars.measures.map(({ values }) => values[this.last]), "own");
    [this.ownLabel, ...this.own] = own;
    this.bars.style.setProperty("--measures", bars.measures.length);
    this.bars.replaceChildren(make("span", ""), ...heads, ...own,
      ...bars.rivals.flatMap((rival, at) => line(rival, bars.measures.map(({ rivals }) => rivals[at]), "rival")));
    this.bars.setAttribute("aria-label", bars.measures.map(({ name, hint, values, rivals }) => [
      `${name}. ${hint} ${bars.own.name} ${shown(values[0])} before training, ${shown(values[this.last])} after training`,
      ...rivals.map((value, at) => `${bars.rivals[at].name} ${shown(value)}`)].join("; ")).join(". "));
  }

  moveBars() {
    const epoch = Math.min(Math.floor(this.at), this.last);
    const next = Math.min(epoch + 1, this.last);
    this.own.forEach((box, at) => {
      const { values, sides } = this.header.bars.measures[at];
      const value = values[epoch] + (values[next] - values[epoch]) * (this.at - epoch);
      box.firstChild.style.width = `${value}%`;
      box.lastChild.textContent = shown(values[this.step()]);
      const side = sides[this.step()];
      box.classList.toggle("below", side < 0);
      box.classList.toggle("level", side === 0);
      box.title = ["Below another row of this column", `No clear difference: ${this.header.count.toLocaleString("en")} images are too few`, ""][side + 1];
    });
    if (this.ownLabel) this.ownLabel.lastChild.textContent = this.step() === this.last ? this.header.bars.own.note : this.header.epochs[this.step()]; // whose values the bars show
  }

  end() {
    clearTimeout(this.telling);
    document.removeEventListener("keydown", this.onKey);
    this.seen.disconnect();
    this.resized.disconnect();
    cancelAnimationFrame(this.waiting);
  }
}

// The middle and the half length of points along an axis, without the farthest, which may leave the picture.
function boundsOf(points, axis) {
  const values = points.filter((_, at) => at % 2 === axis).sort();
  const [low, high] = [1 - KEPT, KEPT].map((share) => values[Math.round(share * (values.length - 1))]);
  return { middle: (low + high) / 2, reach: (high - low) / 2 };
}

const shown = (value) => `${value.toFixed(1)} %`;

export default function instrument({ data, parentElement, setStateValue, setTriggerValue }) {
  const root = parentElement.querySelector(".instrument");
  root.live ??= new Instrument(root);
  const { live } = root;
  const [header, array] = unpack(data);
  live.update(header, array, { setStateValue, setTriggerValue }).catch((error) => {
    root.dataset.failed = String(error);
    live.epoch.textContent = `The training could not be loaded: ${error.message}. Reload the page.`;
  });
  return endLater(root, "live");
}
