// A slider that reports every movement, with at most one report in progress, and can step through its values itself.
// header: {label, low, high, step, value, unit, play, logarithmic, marks: [{at, word}], words, revision}; `words` names
// each step of a slider in one line, in place of the number;
// reports: state "value" {value, revision}.
// While it plays, the name of a step appears when a map of the page begins to move to it, or soon after the page is
// drawn.
const PATIENCE = 1500;
const BEAT = 900; // least time for which a step is shown
const TICK = 60;
const SETTLED = 600; // a map draws what Python sent within this time
const TRACK_STEPS = 240; // of a logarithmic track
const PLAY_STEPS = 20;
const DIGITS = 3;
// Whether Python still draws the page: what stands beside the map must follow before the next step.
const isDrawing = () => document.querySelector("[data-testid=stApp]")?.dataset.testScriptState === "running";

/** Return a number with at most three decimals, or three digits if it is small, as a reader can take it in. */
const readable = (value) => Number(Math.abs(value) >= 1 ? value.toFixed(3) : value.toPrecision(3));

class Live {
  constructor(root) {
    this.root = root;
    this.shownAt = 0;
    this.busyAt = 0;
    this.onDrawn = () => { if (this.answeredRevision === this.revision) this.appear(); };
    window.addEventListener("udml-drawn", this.onDrawn);
    this.range = root.querySelector("input[type=range]");
    this.number = root.querySelector("input[type=number]");
    this.button = root.querySelector("button");
    this.word = root.querySelector("output");
    this.revision = -1;
    this.range.oninput = () => this.set(this.fromTrack(Number(this.range.value)));
    this.number.onchange = () => this.set(Number(this.number.value));
    root.onkeydown = (event) => event.stopPropagation(); // Streamlit binds single keys on the document
    this.button.onclick = () => this.play(!this.playing);
  }

  update(header, answers) {
    this.header = header;
    this.answers = answers;
    const { label, low, high, step, unit } = header;
    this.root.querySelector("label").textContent = label;
    this.root.querySelector(".unit").textContent = unit;
    this.low = this.toTrack(low);
    this.high = this.toTrack(high);
    const stride = header.logarithmic ? (this.high - this.low) / TRACK_STEPS : step;
    Object.assign(this.range, { min: this.low, max: this.high, step: stride });
    Object.assign(this.number, { min: low, max: high, step: header.logarithmic ? "any" : step });
    for (const input of [this.range, this.number]) {
      input.setAttribute("aria-label", unit ? `${label}, ${unit}` : label);
    }
    this.button.hidden = !header.play;
    this.root.classList.toggle("line", Boolean(header.words));
    this.number.hidden = Boolean(header.words);
    this.word.hidden = !header.words;
    // The longest word reserves the room, so that the track keeps its width while it moves.
    if (header.words) this.word.style.minWidth = `${Math.max(...header.words.map((word) => word.length)) * 0.85}ch`;
    if (header.revision > this.revision) {
      this.revision = header.revision;
      this.value = header.value;
      this.awaited = false;
      this.show();
    }
    this.answeredRevision = header.revision;
    if (!header.words) this.appear();
    const list = this.root.querySelector(".marks");
    list.replaceChildren(...header.marks.map(({ at, word }) => {
      const mark = document.createElement("span");
      mark.textContent = word;
      const share = (100 * (this.toTrack(at) - this.low)) / (this.high - this.low || 1);
      mark.style.left = `${share}%`;
      mark.style.transform = `translateX(-${share}%)`; // the first and the last word stay within the track
      return mark;
    }));
    this.answered();
  }

  toTrack(value) {
    return this.header.logarithmic ? Math.log10(value) : value;
  }

  fromTrack(position) {
    return this.header.logarithmic ? Number((10 ** position).toPrecision(DIGITS)) : position;
  }

  show() {
    this.range.value = this.toTrack(this.value);
    if (this.root.getRootNode().activeElement !== this.number) this.number.value = readable(this.value);
    const word = this.header.words?.[Math.round((this.value - this.header.low) / this.header.step)];
    this.word.textContent = word ?? "";
    this.range.setAttribute("aria-valuetext", word ?? `${this.value}${this.header.unit}`);
  }

  set(value) {
    const { low, high } = this.header;
    if (!Number.isFinite(value)) return;
    this.value = Math.max(low, Math.min(high, value));
    this.awaited = false;
    this.number.value = readable(this.value);
    this.show();
    this.report();
  }

  report() {
    this.wanted = true;
    if (!this.asking) this.ask();
  }

  advance(value) {
    this.value = value;
    this.awaited = true;
    this.report();
  }

  appear() {
    if (!this.awaited) return;
    this.awaited = false;
    this.shownAt = performance.now();
    this.show();
  }

  ask() {
    this.wanted = false;
    this.asking = true;
    this.revision += 1;
    clearTimeout(this.late);
    this.late = setTimeout(() => this.answered(), PATIENCE);
    this.answers.setStateValue("value", { value: this.value, revision: this.revision });
  }

  answered() { // Python has answered: report the latest value if the slider moved meanwhile
    clearTimeout(this.late);
    this.asking = false;
    if (this.wanted) this.ask();
  }

  play(on) {
    this.playing = on;
    clearInterval(this.timer);
    if (!on) this.appear();
    this.button.textContent = on ? "❚❚" : "▶";
    this.button.setAttribute("aria-label", on ? "Pause" : "Play");
    if (!on) return;
    const { low, high } = this.header;
    if (this.value >= high) this.advance(low);
    this.timer = setInterval(() => this.tick(), TICK);
  }

  tick() {
    const now = performance.now();
    if (this.asking || isDrawing() || !this.root.isConnected) {
      this.busyAt = now;
      return;
    }
    if (now - this.busyAt > SETTLED) this.appear();
    if (this.awaited || now - this.shownAt < BEAT) return;
    if (this.value >= this.header.high) this.play(false);
    else this.advance(Math.min(this.header.high, this.next(this.header.step)));
  }

  next(step) {
    if (!this.header.logarithmic) return this.value + step;
    return this.fromTrack(this.toTrack(this.value) + (this.high - this.low) / PLAY_STEPS);
  }

  end() {
    clearInterval(this.timer);
    clearTimeout(this.late);
    window.removeEventListener("udml-drawn", this.onDrawn);
  }
}

export default function slider({ data, parentElement, setStateValue }) {
  const root = parentElement.querySelector(".slider");
  root.live ??= new Live(root);
  const { live } = root;
  live.update(data, { setStateValue });
  return endLater(root, "live");
}
