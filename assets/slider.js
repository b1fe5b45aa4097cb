// A slider that answers while it moves, never with more than one question under way, and that can play by itself.
// header: {label, low, high, step, value, unit, play, marks: [{at, word}], revision}; answers: state "value" {value, revision}.
const PATIENCE = 1500;
const BEAT = 900;

class Live {
  constructor(root) {
    this.root = root;
    this.range = root.querySelector("input[type=range]");
    this.number = root.querySelector("input[type=number]");
    this.button = root.querySelector("button");
    this.revision = -1;
    this.range.oninput = () => this.set(Number(this.range.value));
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
    for (const input of [this.range, this.number]) {
      Object.assign(input, { min: low, max: high, step });
      input.setAttribute("aria-label", unit ? `${label}, ${unit}` : label);
    }
    this.button.hidden = !header.play;
    if (header.revision > this.revision) {
      this.revision = header.revision;
      this.value = header.value;
      this.show();
    }
    const list = this.root.querySelector(".marks");
    list.replaceChildren(...header.marks.map(({ at, word }) => {
      const mark = document.createElement("span");
      mark.textContent = word;
      mark.style.left = `${(100 * (at - low)) / (high - low || 1)}%`;
      return mark;
    }));
    this.answered();
  }

  show() {
    this.range.value = this.value;
    if (this.root.getRootNode().activeElement !== this.number) this.number.value = this.value;
    this.range.setAttribute("aria-valuetext", `${this.value}${this.header.unit}`);
  }

  set(value) {
    const { low, high } = this.header;
    if (!Number.isFinite(value)) return;
    this.value = Math.max(low, Math.min(high, value));
    this.number.value = this.value;
    this.show();
    this.wanted = true;
    if (!this.asking) this.ask();
  }

  ask() {
    this.wanted = false;
    this.asking = true;
    this.revision += 1;
    clearTimeout(this.late);
    this.late = setTimeout(() => this.answered(), PATIENCE);
    this.answers.setStateValue("value", { value: this.value, revision: this.revision });
  }

  answered() { // Python has drawn: what was moved to in the meantime is asked now
    clearTimeout(this.late);
    this.asking = false;
    if (this.wanted) this.ask();
  }

  play(on) {
    this.playing = on;
    clearInterval(this.timer);
    this.button.textContent = on ? "❚❚" : "▶";
    this.button.setAttribute("aria-label", on ? "Pause" : "Play");
    if (!on) return;
    const { low, high, step } = this.header;
    if (this.value >= high) this.set(low);
    this.timer = setInterval(() => {
      if (this.asking || !this.root.isConnected) return;
      if (this.value >= high) this.play(false);
      else this.set(Math.min(high, this.value + step));
    }, BEAT);
  }

  end() {
    clearInterval(this.timer);
    clearTimeout(this.late);
  }
}

export default function slider({ data, parentElement, setStateValue }) {
  const root = parentElement.querySelector(".slider");
  root.live ??= new Live(root);
  const { live } = root;
  live.update(data, { setStateValue });
  return () => setTimeout(() => { if (!root.isConnected) { live.end(); root.live = null; } }, 1000);
}
