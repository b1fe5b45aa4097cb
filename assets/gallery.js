// Images as labeled buttons in a grid, cut out of sprite sheets. A button is painted when it scrolls into view, and more
// buttons are added before the last one is reached: thousands at once would make the page slow to read for screen readers.
// header: {label, side, height, group, multiple, chosen, count, tiles: {url} | {list}, sheets: {urls, count,
//          columns, perSheet}, early: small thumbnails of all images by id until the sheets are there, byPosition, pairs, selection: {mask, of, revision}}; a tile is {id, caption, mark, badge, detail, shaded};
//          with `pairs` it shows two images side by side, its cell is twice as wide, and it cannot become the query;
//          the tiles from `end` on are dimmed, beyond a line: they do not count as the same as the query;
//          with `strip` all tiles lie in one row; with `columns` every row has so many tiles; with `resizable` the page's image size slider sets the tiles' width
// answers: trigger "picked" id; trigger "searched" id (right-click, long press or Q: the image becomes the query);
//          with `multiple` state "selection" {mask over the tiles, of: their digest, revision}
// The element that holds the gallery has the header's `shown` as `data-shown` while it shows its images, the first painted.
const MARKS = { keep: "✓", hit: "✓", miss: "✕", query: "★", same: "=", different: "≠", anchor: "★", positive: "+", negative: "−", only: "◆" };
const WORDS = { keep: "kept copy", hit: "same class", miss: "other class", query: "query", same: "same", different: "different", anchor: "anchor", positive: "positive", negative: "negative", only: "found by this search only" };
const CHUNK = 300;
const AHEAD = 150;
const FEW = 12; // tiles that grow on a wide screen

const asLink = async (answer) => URL.createObjectURL(await answer.blob());

class Gallery {
  constructor(grid) {
    this.grid = grid;
    this.here = 0;
    this.tiles = [];
    this.revision = -1;
    this.seen = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        if (!isIntersecting) continue;
        this.paint(target);
        this.seen.unobserve(target);
        if (target.position + AHEAD >= this.grid.children.length) this.extend(this.grid.children.length + CHUNK);
      }
    }, { rootMargin: "400px" });
    grid.onclick = (event) => this.clicked(event);
    grid.ondblclick = (event) => this.pick(event.target.closest(".tile"));
    grid.oncontextmenu = (event) => this.query(event, event.target.closest(".tile"));
    grid.onkeydown = (event) => this.key(event);
    grid.onfocusin = (event) => this.rove([...grid.children].indexOf(event.target));
    grid.onpointerdown = (event) => { this.pressed = event.target.closest(".tile"); };
    grid.onpointerover = (event) => this.point(event.target.closest(".tile"));
    grid.onpointerleave = () => this.point(null);
    this.onHover = ({ detail }) => {
      if (!this.header || detail.group !== this.header.group || detail.from === this) return;
      for (const tile of grid.querySelectorAll(".linked")) tile.classList.remove("linked");
      grid.querySelector(`[data-id="${detail.id}"]`)?.classList.add("linked");
    };
    window.addEventListener("udml-hover", this.onHover);
    this.onSize = () => this.resize();
    window.addEventListener("udml-size", this.onSize);
    this.widths = new ResizeObserver(() => this.fill());
    this.widths.observe(grid);
  }

  // Makes room for one more tile in a row where the last row would have a single tile.
  fill() {
    const count = this.tiles.length;
    if (!this.header?.resizable || this.header.columns || this.header.strip) return;
    this.grid.style.gridTemplateColumns = "";
    const columns = getComputedStyle(this.grid).gridTemplateColumns.split(" ").length;
    if (columns > 2 && count > columns && count % columns === 1) {
      this.grid.style.gridTemplateColumns = `repeat(${columns + 1}, minmax(0, 1fr))`;
    }
  }

  resize() {
    if (!this.header) return;
    const chosen = this.header.resizable && imageSize();
    this.grid.style.setProperty("--side", `${chosen || this.header.side}px`);
    if (chosen) this.grid.style.setProperty("--wide", 1);
    else this.grid.style.removeProperty("--wide");
    this.fill();
  }

  async update(header, array, answers) {
    const turn = (this.turn = (this.turn ?? 0) + 1);
    this.answers = answers;
    const content = JSON.stringify([header.tiles, header.sheets, header.side, header.end]);
    const host = this.grid.getRootNode().host ?? this.grid;
    if (content !== this.content || header.shown !== host.dataset.shown) delete host.dataset.shown;
    const tiles = header.tiles.url ? await fetchPart(header.tiles.url, asJson) : header.tiles.list;
    const mask = await array(header.selection?.mask);
    if (turn !== this.turn || !this.grid.isConnected) return;
    this.header = header;
    this.grid.setAttribute("aria-label", header.label);
    this.resize();
    this.grid.style.maxHeight = header.height ? tall(header.height) : "";
    this.grid.classList.toggle("scrolls", Boolean(header.height));
    this.grid.classList.toggle("pairs", Boolean(header.pairs));
    this.grid.classList.toggle("strip", Boolean(header.strip));
    this.grid.style.gridTemplateColumns = header.columns ? `repeat(${header.columns}, minmax(0, 1fr))` : "";
    this.grid.classList.toggle("few", tiles.length <= FEW);
    if (content !== this.content) this.build(tiles);
    this.content = content;
    this.fill();
    if (header.multiple && header.selection.revision > this.revision) {
      this.chosen = mask ? unpackMask(mask, tiles.length) : new Uint8Array(tiles.length);
      this.revision = header.selection.revision;
    }
    this.mark();
    this.grid.dataset.drawn = String(turn);
    await Promise.all([...this.grid.children].slice(0, FEW).map((button) => this.paint(button)));
    if (turn === this.turn) host.dataset.shown = header.shown ?? "";
  }

  build(tiles) {
    const root = this.grid.getRootNode();
    const focused = this.grid.contains(root.activeElement) ? root.activeElement.dataset.id : null;
    this.seen.disconnect();
    this.point(null); // the tile below the pointer goes without a leave
    // The picture of an image stays while its new one is made, so that a new order or caption empties no tile.
    const isSame = !this.header.pairs && this.header.group === this.painted;
    this.before = new Map(isSame ? [...this.grid.children].map((tile) => [tile.dataset.id, tile.firstChild.style.cssText]) : []);
    const continues = this.header.group === this.painted && this.continues(tiles, focused);
    const shown = continues ? this.grid.children.length : 0;
    this.painted = this.header.group;
    this.tiles = tiles;
    this.chosen = new Uint8Array(tiles.length);
    this.revision = -1;
    this.grid.replaceChildren();
    this.extend(Math.max(CHUNK, shown));
    const again = focused === null ? -1 : tiles.findIndex((tile) => String(tile.id) === focused);
    this.rove(again >= 0 ? again : 0);
    if (again >= 0) this.grid.children[again].focus({ preventScroll: true });
    if (!continues && !this.header.strip) this.grid.scrollTop = 0;
  }

  // Returns whether tiles are the shown list, longer, shorter, or without the tile that a click just deselected.
  continues(tiles, focused) {
    const isGone = (tile, position) => String(tile.id) === focused && this.header.multiple && !this.chosen[position];
    const old = tiles.length === this.tiles.length - 1 ? this.tiles.filter((...tile) => !isGone(...tile)) : this.tiles;
    const shared = Math.min(old.length, tiles.length);
    return shared > 0 && tiles.slice(0, shared).every((tile, position) => tile.id === old[position].id);
  }

  // Adds buttons until the grid has `count`, or all.
  extend(count) {
    const begin = this.grid.children.length;
    const end = this.header.end ?? Infinity;
    const added = this.tiles.slice(begin, count).map((tile, offset) => tileButton(tile, !this.header.pairs, begin + offset >= end));
    added.forEach((button, offset) => {
      button.position = begin + offset;
      button.classList.toggle("end", button.position === end);
      button.classList.toggle("beyond", button.position >= end && end > 0); // with none before the line, none is dimmed
    });
    this.grid.append(...added);
    for (const button of added) {
      button.firstChild.style.cssText = this.before.get(button.dataset.id) ?? "";
      this.press(button);
      this.seen.observe(button);
    }
  }

  // Shows the picture of a button once.
  paint(button) {
    return (button.shows ??= this.fetch(button));
  }

  async fetch(button) {
    const { sheets, early, byPosition } = this.header;
    const id = Number(button.dataset.id);
    const where = positionOf(sheets, byPosition ? button.position : id);
    const sharp = fetchPart(where.url, asLink).catch(() => null);
    const shown = sharp.then((link) => { if (link) show(button, link, where); });
    if (!early) { await shown; return; }
    const first = positionOf(early, id);
    const link = await fetchPart(first.url, asLink).catch(() => null);
    if (link && !button.firstChild.style.backgroundImage) show(button, link, first);
  }

  // Shows whether a button is selected, where several can be.
  press(button) {
    if (this.header.multiple) button.setAttribute("aria-pressed", String(Boolean(this.chosen[button.position])));
  }

  mark() {
    const { chosen, multiple } = this.header;
    if (multiple) {
      for (const button of this.grid.children) this.press(button);
      return;
    }
    this.extend(this.tiles.findIndex((tile) => tile.id === chosen) + 1);
    const [old, current] = ["[aria-current]", `[data-id="${chosen}"]`].map((found) => this.grid.querySelector(found));
    if (old === current) return;
    old?.removeAttribute("aria-current");
    current?.setAttribute("aria-current", "true");
    if (current && this.header.strip) this.grid.scrollLeft = current.offsetLeft - (this.grid.clientWidth - current.offsetWidth) / 2;
  }

  // Tab reaches one tile of the grid; the arrow keys move the focus within the grid.
  rove(position) {
    if (position < 0) return;
    this.extend(position + 1);
    const tiles = this.grid.children;
    if (tiles[this.here]) tiles[this.here].tabIndex = -1;
    this.here = Math.max(0, Math.min(tiles.length - 1, position));
    if (tiles[this.here]) tiles[this.here].tabIndex = 0;
  }

  focus(position) {
    this.rove(position);
    this.grid.children[this.here]?.focus();
    this.grid.children[this.here]?.scrollIntoView({ block: "nearest" });
  }

  point(button) {
    const id = button ? Number(button.dataset.id) : -1;
    if (id === (this.at ?? -1)) return;
    this.at = id;
    notify("hover", this.header?.group, { from: this, id });
  }

  pick(button) {
    if (button) this.answers.setTriggerValue("picked", Number(button.dataset.id));
  }

  query(event, button) {
    if (!button || this.header.pairs) return;
    event.preventDefault();
    this.answers.setTriggerValue("searched", Number(button.dataset.id));
  }

  clicked(event) {
    // Tiles that are drawn again between press and release would lose the click: it counts for the pressed image.
    const isLost = event.detail && this.pressed && !this.pressed.isConnected;
    const button = isLost ? this.grid.querySelector(`[data-id="${this.pressed.dataset.id}"]`) : event.target.closest(".tile");
    if (!button) return;
    if (!this.header.multiple) { this.pick(button); return; }
    if (event.shiftKey && this.last !== undefined) {
      const [low, high] = [Math.min(this.last, button.position), Math.max(this.last, button.position)];
      this.chosen.fill(1, low, high + 1);
    } else this.chosen[button.position] ^= 1;
    this.last = button.position;
    this.announce();
  }

  announce() {
    this.revision += 1;
    this.mark();
    this.answers.setStateValue("selection", { mask: packMask(this.chosen), of: this.header.selection.of, revision: this.revision });
  }

  key(event) {
    const button = event.target.closest(".tile");
    if (!button) return;
    const here = button.position;
    const tiles = this.grid.children;
    let perRow = 1;
    while (tiles[perRow] && tiles[perRow].offsetTop === tiles[0].offsetTop) perRow += 1;
    const moves = { ArrowRight: here + 1, ArrowLeft: here - 1, ArrowDown: here + perRow, ArrowUp: here - perRow,
      PageDown: here + 5 * perRow, PageUp: here - 5 * perRow, Home: 0, End: this.tiles.length - 1 };
    if (event.key in moves) {
      event.preventDefault();
      this.focus(moves[event.key]);
    } else if (event.key === "Enter" && this.header.multiple) {
      event.preventDefault(); // Enter would click the button, which selects the tile
      this.pick(button);
    } else if (event.key === "Escape") {
      if (!this.header.multiple) { button.blur(); return; } // a button of the page may have this key
      this.chosen.fill(0);
      this.announce();
    } else if (event.key.toLowerCase() === "q" && !event.ctrlKey && !event.metaKey) this.query(event, button);
    else if (!isStreamlits(event.key)) return;
    event.stopPropagation();
  }

  end() {
    this.point(null);
    window.removeEventListener("udml-hover", this.onHover);
    window.removeEventListener("udml-size", this.onSize);
    this.widths.disconnect();
    this.seen.disconnect();
  }
}

function show(button, link, { column, columns, row, rows }) {
  const percent = (index, count) => (count > 1 ? (100 * index) / (count - 1) : 0);
  const { style } = button.firstChild;
  style.backgroundImage = `url(${link})`;
  style.backgroundSize = `${100 * columns}% ${100 * rows}%`;
  style.backgroundPosition = `${percent(column, columns)}% ${percent(row, rows)}%`;
}

function tileButton(tile, searchable, beyond) {
  const button = document.createElement("button");
  button.type = "button";
  button.tabIndex = -1;
  button.className = `tile ${tile.mark}${tile.shaded ? " shaded" : ""}`;
  button.dataset.id = tile.id;
  const detail = tile.detail || (tile.caption.includes(tile.badge) ? "" : tile.badge);
  const words = [tile.caption, WORDS[tile.mark], detail, beyond && "beyond the threshold"].filter(Boolean).join(", ");
  button.setAttribute("aria-label", words);
  button.title = words + (searchable ? "; right-click or press Q to search with it" : "");
  const image = document.createElement("span");
  image.className = "image";
  image.setAttribute("role", "presentation");
  const caption = document.createElement("span");
  caption.className = "caption";
  const mark = tile.mark === "anchor" && tile.badge ? "" : MARKS[tile.mark]; // a strip of anchors needs no star for each
  caption.textContent = [mark, tile.badge || tile.caption].filter(Boolean).join(" ");
  button.append(image, caption);
  return button;
}

export default function gallery({ data, parentElement, setStateValue, setTriggerValue }) {
  const grid = parentElement.querySelector(".grid");
  grid.gallery ??= new Gallery(grid);
  const { gallery: drawn } = grid;
  const [header, array] = unpack(data);
  drawn.update(header, array, { setStateValue, setTriggerValue });
  return endLater(grid, "gallery");
}
