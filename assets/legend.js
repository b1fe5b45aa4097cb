// A map's legend: the meaning of each color, its number of points, and a button that selects these points. Categories
// that have no room are behind a button "+ n more".
const BINS = 6;
const LISTED = 60;
const MOST_BY_CODE = 24;
const PICTURE = 44; // pixels of a category's picture, twice as many as it is wide
// Whether the largest categories come first and differ in color.
const isBySize = (color) => !color.fixed && (color.bySize || color.names.length > MOST_BY_CODE);
const isSorted = (color) => color.fixed || isBySize(color);
const shown = (value, unit = "") => (unit.trim() === "%" ? value.toFixed(1) : Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3).replace(/\.?0+$/, ""));

class Legend {
  constructor(chart) {
    this.chart = chart;
    this.box = chart.root.querySelector(".legend");
    this.side = chart.root.querySelector(".side");
    this.open = false;
    this.more = document.createElement("button");
    this.more.type = "button";
    this.more.className = "more";
    this.more.onclick = () => {
      const first = this.buttons.find((button) => button.hidden) ?? this.more;
      this.open = !this.open;
      this.fit();
      (this.open ? first : this.more).focus({ preventScroll: true });
      if (this.open) this.box.scrollTop = first.offsetTop - this.buttons[0].offsetTop; // the list continues at its top
    };
  }

  // Hide the categories without room, unless the user has opened the list.
  fit() {
    if (!this.buttons || !this.side.clientHeight) return;
    const { side, box, buttons, more, rest } = this;
    const show = (count) => {
      buttons.forEach((button, at) => { button.hidden = at >= count; });
      more.textContent = `+ ${(this.total - count).toLocaleString("en")} more`;
    };
    const scrolled = [side.scrollTop, box.scrollTop];
    side.scrollTop = 0;
    box.scrollTop = 0; // measured from its first category
    side.classList.remove("open");
    show(buttons.length);
    rest.hidden = !rest.textContent;
    more.hidden = true;
    const end = side.getBoundingClientRect().bottom + 1;
    const isOver = (element) => element.getBoundingClientRect().bottom > end;
    if (!isOver(rest.hidden ? buttons.at(-1) ?? more : rest)) return;
    more.hidden = false;
    more.setAttribute("aria-expanded", String(this.open));
    if (this.open) {
      side.classList.add("open");
      more.textContent = "Show fewer";
      [side.scrollTop, box.scrollTop] = scrolled;
      return;
    }
    rest.hidden = true;
    let [low, high] = [1, buttons.length - 1]; // at least one category, at most all but one
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      show(middle);
      if (isOver(more)) high = middle - 1;
      else low = middle;
    }
    show(low);
  }

  entries() { // name, count, number of selected points, mark, color, and a test whether it holds a row
    const { color, count } = this.chart.header;
    if (color.kind === "category") {
      const counts = new Int32Array(color.names.length);
      const chosen = new Int32Array(color.names.length);
      let without = 0;
      let chosenWithout = 0;
      for (let row = 0; row < count; row += 1) {
        const code = this.chart.values[row];
        if (code < 0) { without += 1; chosenWithout += this.chart.selected[row]; continue; }
        counts[code] += 1;
        chosen[code] += this.chart.selected[row];
      }
      const all = [...counts.keys()].filter((code) => counts[code]).map((code) => ({ code, name: color.names[code], count: counts[code],
        chosen: chosen[code], on: this.chart.selectedCount && chosen[code] === counts[code], mark: SHAPES[Math.floor(this.chart.styles[code] / COLORS)],
        color: toneOf(this.chart.styles[code], this.chart.dark), holds: (row) => this.chart.values[row] === code }));
      if (isSorted(color)) all.sort((first, second) => second.count - first.count);
      // First where categories may be hidden for lack of room, because it explains the gray points.
      if (without) all[isSorted(color) ? "unshift" : "push"]({ name: color.none ?? "none", count: without, chosen: chosenWithout, mark: "○", color: "", holds: (row) => this.chart.values[row] < 0 });
      return all;
    }
    const step = (color.high - color.low || 1) / BINS;
    const bin = (row) => (Number.isFinite(this.chart.values[row])
      ? Math.max(0, Math.min(BINS - 1, Math.floor((this.chart.values[row] - color.low) / step))) : NONE);
    const counts = new Int32Array(BINS);
    const chosen = new Int32Array(BINS);
    let without = 0;
    let chosenWithout = 0;
    for (let row = 0; row < count; row += 1) {
      const at = bin(row);
      if (at < 0) { without += 1; chosenWithout += this.chart.selected[row]; continue; }
      counts[at] += 1;
      chosen[at] += this.chart.selected[row];
    }
    const ramp = this.chart.dark ? RAMP_DARK : RAMP;
    const bins = [...counts.keys()].map((at) => ({ count: counts[at], chosen: chosen[at], mark: "●", color: ramp[at],
      name: `${shown(color.low + at * step)} – ${shown(color.low + (at + 1) * step)}${color.unit ?? ""}`,
      holds: (row) => bin(row) === at }));
    if (without) bins.push({ name: color.none ?? "none", count: without, chosen: chosenWithout, mark: "○", color: "", holds: (row) => bin(row) < 0 });
    return bins;
  }

  draw() {
    const { color, count } = this.chart.header;
    this.chart.summary.textContent = this.chart.selectedCount
      ? `${this.chart.selectedCount.toLocaleString("en")} of ${count.toLocaleString("en")} selected` : `${count.toLocaleString("en")} images`;
    const title = document.createElement("div");
    title.className = "title";
    title.textContent = color.label;
    const entries = this.entries();
    const pictures = [];
    const buttons = entries.slice(0, LISTED).map((entry) => {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", String(Boolean(entry.on)));
      button.title = "Select these images; Shift adds them to the selection, Alt keeps the overlap";
      const mark = document.createElement("span");
      mark.className = "mark";
      mark.textContent = this.chart.overlay.isTiled && entry.color ? "●" : entry.mark; // between images all points are dots
      if (entry.color) mark.style.color = entry.color;
      const picture = color.pictures?.[entry.code];
      const isDrawn = picture !== undefined && this.chart.header.sheets;
      const name = document.createElement(isDrawn ? "canvas" : "span");
      name.className = isDrawn ? "picture" : "name";
      if (isDrawn) {
        button.setAttribute("aria-label", `${entry.name}, ${entry.count.toLocaleString("en")}`);
        button.title = `${entry.name}. ${button.title}`;
        pictures.push({ canvas: name, picture });
      } else name.textContent = entry.name;
      const number = document.createElement("span");
      number.className = "number";
      const [all, chosen] = [entry.count, entry.chosen].map((value) => value.toLocaleString("en"));
      number.textContent = this.chart.selectedCount ? `${chosen} / ${all}` : all;
      if (this.chart.selectedCount) number.title = `${chosen} of ${all} selected`;
      button.classList.toggle("empty", this.chart.selectedCount > 0 && !entry.chosen);
      button.append(mark, name, number);
      if (entry.code !== undefined) { // the pointer or the focus shows where the category lies
        button.onpointerenter = (event) => { if (event.pointerType === "mouse") this.chart.light(entry.code); };
        button.onpointerleave = () => this.chart.light(null);
        button.onfocus = () => { if (button.matches(":focus-visible")) this.chart.light(entry.code); };
        button.onblur = () => this.chart.light(null);
      }
      button.onclick = (event) => {
        if (entry.on && !event.shiftKey && !event.altKey) this.chart.choose(new Uint8Array(count));
        else this.chart.choose(Uint8Array.from({ length: count }, (_, row) => Number(entry.holds(row))), howOf(event));
      };
      return button;
    });
    const rest = document.createElement("div");
    rest.className = "rest";
    if (entries.length > LISTED) rest.textContent = `and ${(entries.length - LISTED).toLocaleString("en")} smaller categories`;
    const active = this.chart.root.getRootNode().activeElement;
    const focused = active === this.more ? this.more : buttons[this.buttons?.indexOf(active) ?? NONE];
    Object.assign(this, { buttons, rest, pictures, total: entries.length });
    this.box.replaceChildren(title, ...buttons, this.more, rest);
    this.fit();
    this.paint();
    focused?.focus();
  }

  // Draw the pictures of categories; those whose sheet is on its way follow when it has arrived.
  paint() {
    for (const { canvas, picture } of this.pictures ?? []) {
      canvas.width = canvas.height = PICTURE;
      this.chart.overlay.drawImage(canvas.getContext("2d"), picture, PICTURE / 2, PICTURE / 2, PICTURE, "");
    }
  }
}

