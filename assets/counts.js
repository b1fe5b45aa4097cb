// A sentence that follows a slider of Streamlit while it moves: Python hears of the slider when it is released.
// header: {slider: selector of the slider's value, low, step, words: the sentence at each step, value}
class Counts {
  constructor(root) { this.root = root; }

  update(header) {
    this.header = header;
    this.end();
    this.forget = watchValue(header.slider, (value) => this.say(value));
    this.say(header.value);
  }

  say(value) {
    const { low, step, words } = this.header;
    const sentence = words[Math.round((value - low) / step)];
    if (sentence) this.root.textContent = sentence;
  }

  end() { this.forget?.(); }
}

export default function counts({ data, parentElement }) {
  const root = parentElement.querySelector(".counts");
  root.live ??= new Counts(root);
  root.live.update(data);
  return endLater(root, "live");
}
