// The presentation of a lesson: one step at a time, on the whole screen, to be read from the last row of a room.
const PRESENT = "present";
const MOST_WORDS = 40;
const MOST_LETTERS = 232; // three lines of 24 pixels at 1024
const PICTURE_SLIDES = ["predict", "do", "try", "see"];
const LETTERS = [38, 34, 30, 27, 24]; // pixels: the largest that fits
const WIDTHS = [340, 420, 500, 600, 720, 860]; // at which the picture is tried before it is enlarged
const LEAST_LETTERS = 18; // pixels of the screen, of the letters in a picture
const SIDE_BY_SIDE = 1.5; // width by height of a screen on which text stands beside the picture

// Whole sentences, put together while they have at most MOST_WORDS words and MOST_LETTERS letters.
function stepsOf(html) {
  const isShort = (text) => text.split(/\s+/).length <= MOST_WORDS && text.length <= MOST_LETTERS;
  const steps = [];
  for (const sentence of html.split(/(?<=[.!?])\s+/)) {
    const joined = steps.length ? `${steps.at(-1)} ${sentence}` : sentence;
    if (steps.length && isShort(joined.replace(/<[^>]*>/g, ""))) steps[steps.length - 1] = joined;
    else steps.push(sentence);
  }
  return steps;
}

class Presentation {
  // frame: the lesson. Its parts name the slides that show them in `data-on`; `step` holds the sentences of a step.
  constructor(frame) {
    Object.assign(this, { frame, isOn: false, slide: 0, built: "" });
    this.title = element("p", { class: "slide-title", "data-on": "all" });
    this.step = element("p", { class: "step", "data-on": "do see" });
    const { touch, see } = frame.lesson;
    this.slides = [{ kind: "predict" }, ...stepsOf(touch).map((text) => ({ kind: "do", text })), { kind: "try" },
      ...stepsOf(see).map((text) => ({ kind: "see", text })), ...["formula", "fails", "takeaway", "check"].map((kind) => ({ kind }))];
    this.onResize = () => { if (this.isOn) this.show(); };
    window.addEventListener("resize", this.onResize);
  }

  set(isOn, keepAddress) {
    const wasOn = this.isOn;
    Object.assign(this, { isOn, slide: 0 });
    this.frame.root.classList.toggle(PRESENT, isOn);
    this.frame.lock();
    document.body.classList.toggle("udml-present", isOn);
    if (keepAddress) {
      const address = new URL(location.href);
      if (isOn) address.searchParams.set(PRESENT, "1");
      else address.searchParams.delete(PRESENT);
      history.replaceState(history.state, "", address);
    }
    if (isOn) this.show();
    else if (wasOn) this.restore();
  }

  show() {
    const { root, lesson } = this.frame;
    const { kind, text } = this.slides[this.slide];
    root.dataset.slide = kind;
    for (const part of root.querySelectorAll("[data-on]")) {
      part.classList.toggle("away", part.dataset.on !== "all" && !part.dataset.on.split(" ").includes(kind));
    }
    this.title.textContent = `${lesson.title} · ${this.slide + 1} / ${this.slides.length}`;
    this.step.innerHTML = text ?? "";
    this.fit(kind);
  }

  // The largest letters with which the slide fits, then the picture in what remains.
  fit(kind) {
    const { root } = this.frame;
    const isSide = innerWidth / innerHeight >= SIDE_BY_SIDE;
    root.classList.toggle("side", isSide);
    const hasPicture = PICTURE_SLIDES.includes(kind);
    const box = isSide ? [innerWidth * 0.65, innerHeight - 96] : [innerWidth - 48, innerHeight * 0.73];
    if (hasPicture) this.buildPicture(box);
    for (const size of LETTERS) {
      root.style.fontSize = `${size}px`;
      if (hasPicture) this.place(box, isSide ? null : kind);
      if (root.scrollHeight <= root.clientHeight && root.scrollWidth <= root.clientWidth) break;
    }
  }

  // Build the picture at the width from which it can be enlarged most, so that its letters are as large as possible.
  buildPicture(box) {
    const key = box.join(" ");
    if (key === this.built) return;
    this.built = key;
    const { frame, frame: { stage } } = this;
    const enlarged = (width) => {
      Object.assign(stage.style, { width: `${width}px` });
      stage.style.removeProperty("--least");
      let scale = 1;
      for (let pass = 0; pass < 3; pass += 1) { // larger letters make some pictures higher
        frame.drawStage();
        scale = Math.min(box[0] / width, box[1] / stage.offsetHeight);
        stage.style.setProperty("--least", LEAST_LETTERS / scale);
      }
      return scale;
    };
    const scales = WIDTHS.map(enlarged);
    const best = scales.indexOf(Math.max(...scales));
    enlarged(WIDTHS[best]);
  }

  // Enlarge the picture into its box; above the question or the controls, into the height that they leave.
  place(box, kind) {
    const { stage, root } = this.frame;
    const picture = stage.parentElement;
    const [width, height] = [stage.offsetWidth, stage.offsetHeight];
    const put = (scale) => {
      stage.style.setProperty("--scale", scale);
      Object.assign(picture.style, { width: `${width * scale}px`, height: `${height * scale}px` });
    };
    const scale = Math.min(box[0] / width, box[1] / height);
    put(scale);
    const over = root.scrollHeight - root.clientHeight;
    if (["predict", "try"].includes(kind) && over > 0) put(Math.max(scale - (over + 4) / height, 0.3));
  }

  restore() {
    const { stage, root } = this.frame;
    this.built = "";
    for (const node of [stage, stage.parentElement, root]) node.removeAttribute("style");
    for (const part of root.querySelectorAll(".away")) part.classList.remove("away");
    this.frame.drawStage();
  }

  // Keys turn the slides wherever the focus is, so that no arrow changes an answer or a slider.
  key(event) {
    if (!this.isOn || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") this.set(false, true);
    const way = { ArrowRight: 1, PageDown: 1, ArrowLeft: -1, PageUp: -1 }[event.key];
    if (!way) return;
    event.preventDefault();
    event.stopPropagation();
    const to = this.slide + way;
    if (to >= 0 && to < this.slides.length) { this.slide = to; this.show(); return; }
    const { next, previous, outside } = this.frame;
    const lesson = way > 0 ? next : previous;
    if (!lesson) return;
    if (outside.go) outside.go(lesson.id);
    else {
      const address = new URL(inLanguage(lesson.href), location.href);
      address.searchParams.set(PRESENT, "1");
      location.href = address.href;
    }
  }

  end() {
    window.removeEventListener("resize", this.onResize);
    document.body.classList.remove("udml-present");
  }
}
