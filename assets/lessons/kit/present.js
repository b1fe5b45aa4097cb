// The presentation of a lesson: one step at a time, on the whole screen, to be read from the last row of a room.
const PRESENT = "present";
const TURNS = { ArrowRight: 1, PageDown: 1, " ": 1, Enter: 1, ArrowLeft: -1, PageUp: -1, Home: -Infinity, End: Infinity };
const BLANK = ["b", "B", "."];
const MOVES = { "+": true, "=": true, "-": false, "−": false }; // "=" is the key of "+" on many keyboards
const ANNOUNCED_MS = 6000; // how long a slide says what changed in its picture
const MAIN_BUTTON = "button.main"; // of a picture: what its lesson does, such as a step
const HIDING = ["see", "formula"]; // slides that show the lesson's start after a question without an answer
const UNANSWERED = ["meet", "predict", "do", "decide", "more"]; // slides that begin with the lesson's start

const sentencesOf = (html) => html.split(/(?<=[.!?])\s+/);

// Sentences in paragraphs of at most 40 words, each a step of its own for a reader.
const MOST_WORDS = 40;
const inSteps = (sentences) => sentences.reduce((steps, sentence) => {
  const longer = [...steps.slice(-1), sentence].join(" ");
  return longer.split(/\s+/).length <= MOST_WORDS ? [...steps.slice(0, -1), longer] : [...steps, sentence];
}, []).map((step) => `<span>${step}</span>`).join(" ");

// The slides of a lesson, at most eight: {kind, text, state, parts}. Its `presented` lists the sentences of each text that are shown; the page has all.
// The sentences of `see` that a lesson's `meet` counts come before the question. Each slide begins in a state of its own: the lesson's start, and what
// its `states` change for this slide. Without them a slide up to `touch` shows the start, and a later one the case of the question.
// `parts` lists the slides that show a part of the picture (`data-part`), such as "see0 fails"; a slide that is not listed shows all parts.
function slidesOf({ touch, see, fails, more, decisions, before, summary, meet = 0, presented = {}, states = {}, parts = {} }) {
  const slide = (kind, text = "", shown = null, at = null) => {
    const name = at === null ? kind : `${kind}${at}`;
    const shownParts = Object.keys(parts).filter((part) => parts[part].split(" ").includes(name));
    const sentences = sentencesOf(text);
    return { kind, text: (shown ?? [...sentences.keys()]).map((number) => sentences[number]).join(" "),
      state: (at === null ? states[kind] : states[kind]?.[at]) ?? (UNANSWERED.includes(kind) ? {} : before.shows ?? summary ?? {}), parts: shownParts.length ? shownParts : null };
  };
  return [...(meet ? [slide("meet", see, Array.from({ length: meet }, (_none, at) => at))] : []), slide("predict"), slide("do", touch, presented.do),
    ...(presented.see ?? [[...sentencesOf(see).keys()].slice(meet)]).map((shown, at) => slide("see", see, shown, at)), slide("formula"),
    ...(decisions ? [{ ...slide("decide"), kind: "fails", text: decisions.ask ?? say("Has everyone decided all comparisons? The next slide says what is true of one of them.") }] : []),
    slide("fails", fails, presented.fails), ...(more ? [slide("more", more.words, presented.more)] : []), slide("check"), slide("takeaway")];
}

class Presentation {
  // frame: the lesson. Its parts name the slides that show them in `data-on`; `step` holds the sentences of a step.
  constructor(frame) {
    Object.assign(this, { frame, isOn: false, slide: 0, answers: {}, slides: slidesOf(frame.lesson), fitted: new SlideFit(frame) });
    this.title = element("p", { class: "slide-title", "data-on": "all" });
    this.step = element("p", { class: "step", "data-on": "meet do see fails more" });
    this.keys = this.listOfKeys();
    this.blank = element("div", { class: "slide-blank", role: "img", "aria-label": say("The screen is blank"), hidden: true, onclick: () => { this.blank.hidden = true; } });
    this.now = element("p", { class: "slide-now", role: "status", hidden: true });
    this.keyWords = element("span", {});
    this.hint = this.bar();
    this.onResize = () => { if (this.isOn) this.show(); };
    window.addEventListener("resize", this.onResize);
    frame.root.addEventListener("input", ({ target }) => { if (target.type === "range") this.used = target; });
  }

  // What stands below every slide: buttons for a hand on the screen, and the keys.
  bar() {
    const button = (sign, words, onclick) => element("button", { type: "button", class: "plain", "aria-label": words, onclick }, sign);
    return element("div", { class: "hint" }, this.title, this.now, this.keyWords,
      button("←", say("Previous slide"), () => this.turn(-1)), button("→", say("Next slide"), () => this.turn(1)),
      button("✕", say("End the presentation"), () => this.set(false, true)));
  }

  listOfKeys() {
    const keys = [[say("→, Space, Enter, Page Down"), say("next slide")], [say("←, Page Up"), say("previous slide")], [say("Home, End"), say("first slide, last slide")],
      ["1, 2, 3", say("answer the question")], ["↑ ↓, + −", say("move the first slider, or the one that was used last")], ["S", say("press the main button, such as “Take a step”, or the next choice")], [say("Enter"), say("on the last slide: present the next lesson")], [say("B, period"), say("blank the screen; any key shows the slide again")], ["?", say("show or hide these keys")], ["Esc", say("end the presentation")]];
    return element("div", { class: "slide-keys", role: "dialog", "aria-label": say("Keys"), hidden: true }, element("h2", {}, say("Keys")),
      element("dl", {}, keys.flatMap(([key, words]) => [element("dt", {}, element("kbd", {}, key)), element("dd", {}, words)])));
  }

  // Below the takeaway: which lesson follows.
  end() {
    const { next } = this.frame;
    return element("div", { class: "slide-end" }, next
      ? [element("p", {}, say("The next lesson is “{title}”.", next)), element("button", { type: "button", onclick: () => this.goOn() }, say("Present the next lesson"))]
      : element("p", {}, say("This was the last lesson.")));
  }

  // A presentation begins without answers and decisions: what the teacher did at home is not shown, and is there again afterwards.
  set(isOn, keepAddress) {
    const wasOn = this.isOn;
    if (isOn && !wasOn) this.own = structuredClone(this.frame.state);
    Object.assign(this, { isOn, slide: 0, answers: {}, prepared: null, decided: this.frame.undecided() });
    this.keys.hidden = this.blank.hidden = this.now.hidden = true;
    this.frame.root.classList.toggle(PRESENT, isOn);
    this.frame.placeControls();
    this.frame.lock();
    if (wasOn && !isOn) this.frame.show(this.own);
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

  // The picture has another height than before.
  refit() {
    this.fitted.renew();
    this.makeRoom();
  }

  // The explanation of an answer needs room.
  makeRoom() { setTimeout(() => { if (this.isOn) this.show(); }); }

  show() {
    const { root, lesson, panel, besidePicture, secondText, second } = this.frame;
    const { kind, text } = this.slides[this.slide];
    root.dataset.slide = kind;
    this.prepare(this.stateOf(this.slides[this.slide]));
    if (kind in besidePicture) panel.append(besidePicture[kind]);
    if (kind === "more") {
      second.section.open = true;
      secondText.after(this.step);
    }
    if (kind !== "more" && !panel.contains(this.step)) this.frame.before.after(this.step);
    for (const part of root.querySelectorAll("[data-on]")) {
      part.classList.toggle("away", part.dataset.on !== "all" && !part.dataset.on.split(" ").includes(kind));
    }
    this.title.textContent = `${this.slide + 1} / ${this.slides.length} · ${lesson.title}`;
    this.keyWords.textContent = this.mainButton() === undefined ? say("← → slides · + − slider · B blank · ? keys")
      : say("← → slides · + − slider · S main button · B blank · ? keys");
    this.step.innerHTML = unbroken(kind === "fails" ? `<b>${say("When it fails")}</b><br> ${text}` : text);
    this.fitted.fit(kind);
  }

  // The parts of the picture that the slide shows; null for all.
  parts() { return this.isOn ? this.slides[this.slide].parts : null; }

  // The state in which a slide begins. Until the class has answered, or a slide says when the method fails, none shows what the question asks.
  stateOf({ kind, state }) { return HIDING.includes(kind) && typeof this.answers.before !== "number" ? this.frame.lesson.states?.unanswered ?? {} : state; }

  // Put the lesson into the state of the slide, once: what the audience changes there stays while the slide is shown, and what it decided stays until the end.
  prepare(state) {
    if (this.prepared === this.slide) return;
    const former = this.prepared === null ? null : structuredClone(this.frame.state);
    const isAnswered = this.slides[this.slide].kind === "predict" && typeof this.answers.before === "number";
    if (this.prepared !== null) for (const name of Object.keys(this.decided)) this.decided[name] = this.frame.state[name];
    this.prepared = this.slide;
    const begin = this.slides[this.slide].kind === "more" ? { ...this.frame.state, ...this.startOfMore() } : { ...this.frame.start, ...state, ...(isAnswered ? this.frame.lesson.before.shows : {}) };
    this.frame.show(structuredClone({ ...begin, ...this.decided }));
    this.announce(former);
  }

  // The start of the second figure, whose slide shows no picture of the lesson.
  startOfMore() { return Object.fromEntries(this.frame.lesson.more.controls.map(({ name }) => [name, this.frame.start[name]])); }

  // Say for a while what changed in the picture without a hand on a control; null for a presentation that begins.
  announce(former) {
    const { frame } = this;
    const own = this.frame.lesson.more?.controls.map(({ name }) => name) ?? [];
    const isShown = (name) => own.includes(name) === (this.slides[this.slide].kind === "more"); // each figure has slides of its own
    const isChanged = ({ name, isKept }) => !isKept && isShown(name) && JSON.stringify(former[name]) !== JSON.stringify(frame.state[name]);
    const changed = former ? frame.fields().filter(isChanged) : [];
    const settings = changed.map((field) => this.fromTo(field, former)).filter(Boolean);
    if (changed.length && !settings.length) settings.push(...this.readChange(former));
    const whole = settings.map(([name, from, to]) => `${name} ${from} → ${to}`).join(" · ");
    const short = settings.map(([name, _from, to]) => `${name}: ${to}`).join(" · ");
    this.now.hidden = !settings.length;
    [say("Now shown: {settings}", { settings: whole }), whole, short].find((words) => { // the longest that the bar holds
      this.now.textContent = settings.length ? words : "";
      return this.now.scrollWidth <= this.now.clientWidth;
    });
    clearTimeout(this.announcing);
    this.announcing = setTimeout(() => { this.now.hidden = true; }, ANNOUNCED_MS);
  }

  // How the setting of a field changed: the name that its label begins with, and the former and the new setting in words; null for a field without words, such as a point.
  fromTo({ name, label, told }, former) {
    const { widgets, state } = this.frame;
    if (told) return told(state) && [told(state)[0], told(former)[1], told(state)[1]];
    return widgets[name] ? [label.split(",")[0], widgets[name].words(former[name]), widgets[name].words(state[name])] : null;
  }

  // The first number beside the picture that changed.
  readChange(former) {
    const { lesson, state, data } = this.frame;
    const [before, now] = [former, state].map((shown) => lesson.readout(lesson.compute(shown, data), shown, data));
    const at = now.findIndex(([label, value], row) => before[row]?.[0] === label && String(before[row][1]) !== String(value));
    return at < 0 ? [] : [[now[at][0], before[at][1], now[at][1]]];
  }

  restore() {
    const { explain, closing, besidePicture: { formula, takeaway, check }, before, root } = this.frame;
    explain.prepend(formula);
    closing.append(takeaway, check);
    before.after(this.step);
    this.fitted.forget();
    for (const part of root.querySelectorAll(".away")) part.classList.remove("away");
    this.frame.drawStage();
  }

  turn(way) {
    const to = clamp(this.slide + way, 0, this.slides.length - 1);
    if (to === this.slide) return;
    this.slide = to;
    this.show();
  }

  // Keys turn the slides wherever the focus is, so that no arrow changes an answer or a slider. A button takes Space and Enter.
  key(event) {
    if (!this.isOn || event.ctrlKey || event.metaKey || event.altKey) return;
    const way = TURNS[event.key];
    const isPress = event.key === " " || event.key === "Enter";
    const isHelp = event.key === "?";
    const answer = /^[1-9]$/.test(event.key) && this.choices()[Number(event.key) - 1];
    if (!this.keys.hidden || !this.blank.hidden) this.keys.hidden = this.blank.hidden = true; // and no more
    else if (BLANK.includes(event.key)) this.blank.hidden = false;
    else if (isHelp) this.keys.hidden = false;
    else if (event.key === "Escape") this.set(false, true);
    else if (answer) answer.click();
    else if (event.key === "s" || event.key === "S") this.mainButton()?.click();
    else if (event.key in MOVES) this.moveSlider(MOVES[event.key]);
    else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      if (event.composedPath()[0].closest?.(".handle, .cloud, .tile, input[type=range]")) return;
      this.moveSlider(event.key === "ArrowUp");
    }
    else if (!way || (isPress && event.composedPath()[0].closest?.("button, a, summary, .handle, input[type=radio]:not(:checked)"))) return;
    else if (event.key === "Enter" && this.slide === this.slides.length - 1) this.goOn();
    else this.turn(way);
    event.preventDefault();
    event.stopImmediatePropagation();
  }

  // Move the slider that was used last, or else the first one on the slide, by a step.
  moveSlider(isUp) {
    const sliders = [...this.frame.root.querySelectorAll("input[type=range]")].filter((input) => input.offsetParent);
    const slider = sliders.includes(this.used) ? this.used : sliders[0];
    if (!slider) return;
    if (isUp) slider.stepUp();
    else slider.stepDown();
    slider.dispatchEvent(new Event("input", { bubbles: true }));
  }

  // What the key S presses on a slide with controls: the main button of the picture, or else the next option of the first choice.
  mainButton() {
    const { root, stage } = this.frame;
    if (!HANDS_ON.includes(this.slides[this.slide].kind)) return undefined; // a step could answer the question
    const main = stage.querySelector(MAIN_BUTTON);
    if (main) return main.disabled ? null : main;
    const options = [...root.querySelector(".controls .choice, .stage .choice")?.querySelectorAll("button") ?? []];
    return options[(options.findIndex((option) => option.getAttribute("aria-pressed") === "true") + 1) % options.length];
  }

  // The choices of the question on the slide, which keys answer.
  choices() {
    return [...this.frame.root.querySelectorAll(".question input[type=radio]")].filter((input) => input.offsetParent);
  }

  // Present the next lesson.
  goOn() {
    const { next, outside } = this.frame;
    if (!next) return;
    if (outside.go) { outside.go(next.id, true); return; }
    const address = new URL(inLanguage(next.href), location.href);
    address.searchParams.set(PRESENT, "1");
    location.href = address.href;
  }

  leave() {
    window.removeEventListener("resize", this.onResize);
    document.body.classList.remove("udml-present");
  }
}
