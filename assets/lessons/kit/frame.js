// The frame of a lesson: claim → predict → touch → see → formula with the reader's numbers → when it fails → takeaway → try.
// A lesson is an object; assets/lessons/README.md describes its fields. The frame keeps the state in the address, the
// answers in the browser, and draws again after every change.

const ADDRESS_MS = 250;
const PHONE = 500; // pixels of a telephone, as in lesson.css
const OTHER_WIDTH = 40; // pixels: a picture with so much more or less room is built again
const isWholeBelow = (number, count) => Number.isInteger(number) && number >= 0 && number < count;

// The choices of a question as they are shown. An answer is kept by its number in the data, so it survives another order.
const inOrder = (parts, order) => order?.map((at) => parts[at]) ?? parts;

// Name the slide of the presentation that shows a part.
const on = (slide, part) => fill(part, { "data-on": slide }, []);

class Lesson {
  // header: {course: [{id, title, minutes, href}], content: data by name, heading: whether to show the title,
  //   task: {texts: what to do, and the meaning of its words, command} and app: the address of the app in exported files}
  // outside: {go(id, isPresented), open(page, query), predicted(), answered(question, choice, reader)}
  constructor(root, lesson, header, outside) {
    const { course, guide } = localized({ course: header.course, guide: header.guide });
    Object.assign(this, { root, lesson: localized(lesson), english: { lesson, terms: header.guide.terms }, header: { ...header, course, guide }, outside });
    lesson = this.lesson;
    nameLanguage(root, header.heading && lesson.title);
    this.course = readCourse();
    this.kept = this.course.lessons[lesson.id] ??= {};
    this.start = Object.fromEntries(this.fields().map(({ name, start }) => [name, start]));
    const address = this.readAddress();
    const isAnswered = typeof this.kept.before === "number" && !Object.keys(address).length;
    this.state = { ...structuredClone(this.start), ...(isAnswered ? lesson.before.shows : {}), ...this.keptState(), ...address };
    this.data = Object.fromEntries(Object.entries(header.content).map(([name, content]) => [name, this.unpacked(content)]));
    this.presentation = new Presentation(this);
    this.build();
    this.lock();
    this.drawStage();
    this.presentation.set(new URLSearchParams(location.search).get(PRESENT) === "1");
    this.resized = new ResizeObserver(() => {
      clearTimeout(this.rebuilding);
      this.rebuilding = setTimeout(() => { if (this.isOutgrown()) this.drawStage(); }, ADDRESS_MS);
    });
    this.resized.observe(this.stage);
    this.onKey = (event) => this.presentation.key(event);
    document.addEventListener("keydown", this.onKey, true); // before an answer or a slider, which the arrows would change
  }

  // Arrays inside of a data file, at any depth, become typed arrays.
  unpacked(content) {
    if (Array.isArray(content)) return content.map((part) => this.unpacked(part));
    if (content === null || typeof content !== "object") return content;
    if ("base64" in content) return array(content);
    return Object.fromEntries(Object.entries(content).map(([name, part]) => [name, this.unpacked(part)]));
  }

  // State and address

  fields() { return [...this.lesson.controls, ...(this.lesson.more?.controls ?? []), ...(this.lesson.hidden ?? [])]; }

  // What a reader decided, which the browser keeps beside the answers and no link carries.
  keptFields() { return this.fields().filter(({ isKept }) => isKept); }

  keptState() {
    return Object.fromEntries(this.keptFields().map(({ name, start, count }) => {
      const kept = this.kept.state?.[name];
      return [name, Array.isArray(kept) && kept.every((number) => isWholeBelow(number, count)) ? [...kept] : structuredClone(start)];
    }));
  }

  undecided() { return structuredClone(Object.fromEntries(this.keptFields().map(({ name, start }) => [name, start]))); }

  readAddress() {
    const address = new URLSearchParams(location.search);
    const read = {};
    for (const { name, start, low, high, options, count, isKept } of this.fields()) {
      if (isKept) continue;
      const text = address.get(name);
      if (text === null) continue;
      if (options) { if (options.some(({ value }) => value === text)) read[name] = text; continue; }
      const numbers = text.split(",").map(Number);
      if (!numbers.every(Number.isFinite)) continue;
      if (count !== undefined) { // a list of whole numbers below `count`
        if (numbers.every((number) => isWholeBelow(number, count))) read[name] = text ? numbers : [];
      } else if (Array.isArray(start)) {
        if (numbers.length === start.length) read[name] = numbers.map((number, axis) => clamp(number, low[axis], high[axis]));
      } else read[name] = clamp(numbers[0], low, high);
    }
    return read;
  }

  writeAddress() {
    const address = new URL(location.href);
    for (const { name } of this.fields().filter(({ isKept }) => !isKept)) {
      const value = this.state[name];
      const text = Array.isArray(value) ? value.map((part) => Number(part.toPrecision(4))).join(",")
        : typeof value === "number" ? String(Number(value.toPrecision(6))) : value;
      if (JSON.stringify(value) === JSON.stringify(this.start[name])) address.searchParams.delete(name);
      else address.searchParams.set(name, text);
    }
    if (address.href !== location.href) history.replaceState(history.state, "", address);
  }

  // A change by the reader, which begins the second step of a lesson.
  change(to) {
    this.show(to);
    if (this.presentation.isOn) { // an audience keeps nothing
      this.presentation.fitted.keepWithin();
      return;
    }
    const decided = Object.fromEntries(this.keptFields().filter(({ name }) => name in to).map(({ name }) => [name, to[name]]));
    const isFirst = this.kept.before !== undefined && !this.kept.isTried;
    if (!isFirst && !Object.keys(decided).length) return;
    if (isFirst) this.kept.isTried = true;
    if (Object.keys(decided).length) this.kept.state = { ...this.kept.state, ...decided };
    keepCourse(this.course);
  }

  // Forget what the reader decided and what was shown because of it, and go back to the start.
  startAgain() {
    if (!this.presentation.isOn) delete this.kept.decided;
    this.change(structuredClone(this.start));
    this.showFails();
    if (!this.presentation.isOn) keepCourse(this.course);
  }

  // Change the picture without the reader's doing.
  show(to) {
    Object.assign(this.state, to);
    this.update();
    clearTimeout(this.writing);
    if (!this.presentation.isOn) this.writing = setTimeout(() => this.writeAddress(), ADDRESS_MS);
  }

  // Whether the picture was built for another width: its letters would be too small or too large.
  isOutgrown() {
    const { clientWidth } = this.stage;
    return !this.presentation.isOn && !this.isPrinting && clientWidth > 0 && Math.abs(clientWidth - this.builtWidth) > OTHER_WIDTH;
  }

  // Build the picture for the width that the stage has now, and draw it.
  drawStage() {
    const { lesson, stage, data } = this;
    this.builtWidth = stage.clientWidth;
    stage.replaceChildren();
    const parts = this.presentation.parts();
    this.view = lesson.build({ stage, data, state: () => this.state, change: (to) => this.change(to), parts, refit: () => this.presentation.refit() });
    for (const part of stage.querySelectorAll("[data-part]")) part.classList.toggle("away", parts !== null && !parts.includes(part.dataset.part));
    this.placeCaptions();
    this.placeControls();
    this.update();
  }

  // The controls stand beside the picture, or within a high one that has a place for them, such as between its maps and its charts.
  placeControls() {
    const place = this.presentation.isOn ? null : this.stage.querySelector(".controls-place");
    if (place) place.append(this.controls);
    else if (!this.panel.contains(this.controls)) this.readout.before(this.controls);
  }

  // Sentences of `see` that explain one part of the picture stand below this part, but not on a telephone, whose controls stand near the picture.
  placeCaptions() {
    const { stage, lesson: { see, captions = {} } } = this;
    if (innerWidth < PHONE) return;
    for (const [name, numbers] of Object.entries(captions)) {
      const words = inSteps(numbers.map((at) => sentencesOf(see)[at]));
      [...stage.children].findLast(({ dataset }) => dataset.part === name).after(markup("p", words, { class: "at-part" }));
    }
  }

  // The sentences of `see` that stand below the whole picture: on a telephone all, a paragraph for each part.
  seeBelow() {
    const { see, captions = {} } = this.lesson;
    const placed = Object.values(captions);
    const sentences = sentencesOf(see);
    const others = [...sentences.keys()].filter((at) => !placed.flat().includes(at));
    const groups = innerWidth < PHONE ? [...placed, others] : [others];
    return groups.map((numbers) => `<span>${inSteps(numbers.map((at) => sentences[at]))}</span>`).join(" ");
  }

  update() {
    const began = performance.now();
    const { lesson } = this;
    const numbers = lesson.compute(this.state, this.data);
    this.view.draw(this.state, numbers);
    this.second?.draw(this.state);
    for (const [name, widget] of Object.entries(this.widgets)) widget.show(this.state[name]);
    const values = this.lesson.readout(numbers, this.state, this.data);
    const parts = this.presentation.parts();
    const shown = values.filter(([, , part]) => !part || !parts || parts.includes(part)); // a number of a part that a slide leaves out stays away
    this.readout.replaceChildren(...shown.map(([label, value]) => element("div", {}, element("dt", {}, label), element("dd", {}, value))));
    this.formula.innerHTML = this.lesson.formula(this.state, numbers, this.data);
    layFormulas(this.formula);
    fitFormulas(this.formula);
    if (lesson.decisions && !this.isPrinting && !this.presentation.isOn) this.decide(lesson.decisions.made(this.state));
    this.numbers = numbers;
    this.root.dataset.drawn = (performance.now() - began).toFixed(1);
  }

  // Parts of the page

  build() {
    const { lesson, header } = this;
    const position = header.course.findIndex(({ id }) => id === lesson.id);
    const [previous, next] = [header.course[position - 1], header.course[position + 1]];
    this.next = next;
    this.previous = previous;
    this.stage = element("div", { class: "stage" });
    this.claim = element("p", { class: "claim" });
    this.readout = element("dl", { class: `readout later ${lesson.isPaired ? "pairs" : ""}`, "aria-live": "polite" });
    this.formula = element("div", { class: "formula" });
    this.widgets = {};
    this.showAnswers = []; // of each question
    this.controls = element("div", { class: "controls" }, lesson.controls.map((control) => this.control(control)),
      element("button", { type: "button", class: "plain", onclick: () => this.startAgain() }, say("Start again")));
    this.before = this.question("before", say("Predict: {question}", { question: lesson.before.text }), lesson.before);
    this.after = this.question("after", lesson.after.text, lesson.after);
    this.besidePicture = { // on slides of their own
      formula: on("formula", element("div", {}, element("h2", {}, say("The formula, with your numbers")), this.formula)),
      takeaway: on("takeaway", element("div", {}, element("h2", {}, say("Takeaway")), markup("p", lesson.takeaway, { class: "takeaway" }), this.tryLink(), this.presentation.end())),
      check: on("check", element("div", {}, element("h2", {}, say("Check yourself")), this.after, this.nextStep())) };
    this.panel = element("div", { class: "panel", "data-on": PICTURE_SLIDES.join(" ") }, on("predict", this.before), this.presentation.step,
      this.instruction(), on("do fails", this.controls), on("do fails", this.readout));
    this.explain = element("section", { class: "explain", "data-on": "" }, this.besidePicture.formula, this.failsBox());
    this.closing = element("section", { class: "end" }, this.besidePicture.takeaway, this.besidePicture.check);
    if (innerWidth < PHONE) this.before.before(this.claim); // there the question stands at the top
    this.root.replaceChildren(...[this.heading(position),
      element("section", { class: "touch", "data-on": PICTURE_SLIDES.join(" ") },
        element("div", { class: "picture", "data-on": PICTURE_SLIDES.join(" ") }, this.stage, markup("p", this.seeBelow(), { class: "see" })), this.panel),
      this.explain,
      this.closing,
      this.more(),
      this.task(),
      this.terms(),
      this.notes(),
      element("p", { class: "print-end" }, this.endButtons()), // a telephone has no room for them at the top
      element("nav", { "aria-label": say("Lessons") },
        previous ? this.link(previous, `← ${previous.title}`) : element("span"),
        this.link({ id: "", href: header.index }, say("All lessons")),
        next ? this.link(next, `${next.title} →`) : element("span")),
      this.presentation.hint, this.presentation.keys, this.presentation.blank].filter(Boolean));
  }

  // What to do. On a telephone the first sentence stands above the picture, and the others below its controls.
  instruction() {
    const [first, ...others] = sentencesOf(this.lesson.touch);
    return element("p", { class: "do" }, markup("span", first, { class: "first" }), " ", markup("span", others.join(" "), { class: "others" }));
  }

  // What follows the last answer: the next lesson, or the path.
  nextStep() {
    const { next, header: { index } } = this;
    const link = next ? this.link(next, say("Next lesson: {title}", next), "next-step try") : this.link({ id: "", href: index }, say("All lessons"), "next-step try");
    this.showAnswers.push(() => { link.hidden = typeof this.answers().after !== "number"; });
    return link;
  }

  // When it fails. A text that tells the truth of comparisons waits until the reader has decided all of them, or as many as are `enough`.
  failsBox() {
    const { fails, decisions } = this.lesson;
    const words = markup("p", inSteps(sentencesOf(fails)), { class: "fails" });
    const button = element("button", { type: "button", onclick: () => this.decide(decisions.names) }, say("Show"));
    const wait = element("div", { class: "undecided" }, element("p", {}, decisions?.wait ?? say("This text says what is true of the comparisons. It appears when you have decided all of them.")), button);
    this.showFails = () => {
      const isDecided = !decisions || (this.kept.decided ?? []).length >= (decisions.enough ?? decisions.names.length);
      words.hidden = !isDecided;
      wait.hidden = isDecided;
    };
    this.showFails();
    return element("div", {}, element("h2", {}, say("When it fails")), words, wait);
  }

  // Keep which decisions were made.
  decide(names) {
    const made = new Set([...(this.kept.decided ?? []), ...names]);
    if (made.size === (this.kept.decided?.length ?? 0)) return;
    this.kept.decided = [...made];
    keepCourse(this.course);
    this.showFails();
  }

  heading(position) {
    const { lesson, header } = this;
    return element("header", {},
      header.heading ? element("h1", {}, lesson.title) : null,
      element("p", { class: "aim" }, `${say("{minutes} minutes.", lesson)} ${lesson.aim ?? ""}`),
      innerWidth < PHONE ? null : this.claim,
      element("div", { class: "tools" },
        element("span", {}, say("Lesson {number} of {count}", { number: position + 1, count: header.course.length })),
        this.needs(),
        ...(innerWidth < PHONE ? [] : [this.presentButton(), this.printButtons(), this.copyButton()]),
        languageLinks(() => this.writeAddress())));
  }

  endButtons() {
    return innerWidth < PHONE ? [this.presentButton(), ...this.printButtons(), ...this.copyButton()] : this.printButtons();
  }

  presentButton() {
    return element("button", { type: "button", class: "plain start-present", onclick: () => this.presentation.set(true, true) }, say("Present"));
  }

  copyButton() { return linkButton(say("Copy link"), () => { this.writeAddress(); return location.href; }); }

  printButtons() {
    return [[say("Print summary"), summaryToPrint], [say("Print handout"), handoutToPrint]].map(([words, toPrint]) => element(
      "button", { type: "button", class: "plain print", onclick: () => printPage(this.root, toPrint(this)) }, words));
  }

  link({ id, href }, words, name = null) {
    return element("a", { class: name, href: inLanguage(href), onclick: (event) => {
      if (!this.outside.go || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.outside.go(id);
    } }, words);
  }

  tryLink() {
    const { page, label, query } = this.lesson.open;
    const { app } = this.header;
    const words = `${say("Try it on your data: {label}", { label })}${LANGUAGE === "en" ? "" : ` ${say("(in English)")}`}`; // the app has no other language
    const inEnglish = LANGUAGE === "en" ? null : element("small", { class: "in-english" }, ` ${say("The program and all labels in it are in English.")}`);
    if (this.outside.open) {
      return element("p", {}, element("button", { type: "button", class: "try", onclick: () => this.outside.open(page, query?.(this.state) ?? {}) }, words), inEnglish);
    }
    if (!app) return element("p", {}, this.link({ id: "", href: `${this.header.index}#program` }, words, "try"), element("small", {}, ` ${say("The link says how to get UDML Explorer.")}`), inEnglish);
    const link = element("a", { class: "try", onclick: () => {
      link.href = `${app}/${page}?${new URLSearchParams(query?.(this.state) ?? {})}`;
    }, href: `${app}/${page}` }, words);
    return element("p", {}, link, element("small", {}, ` ${say("The link needs UDML Explorer running at {address}.", { address: app })}`), inEnglish);
  }

  // A part below the lesson. On a telephone it is folded, so that the lesson stays short.
  part(title, attributes, ...children) {
    return element("details", { ...attributes, class: `more ${attributes.class ?? ""}`, open: innerWidth >= NARROW }, element("summary", {}, element("h2", {}, title)), ...children);
  }

  // A second figure, with controls of its own.
  more() {
    const { more } = this.lesson;
    if (!more) return null;
    const box = element("div", { class: "second" });
    this.secondText = markup("p", inSteps(sentencesOf(more.words)), { class: "do" });
    const section = this.part(more.title, { class: "figure", "data-on": "more" }, this.secondText,
      element("div", { class: "controls" }, more.controls.map((control) => this.control(control))), box);
    this.second = { section, ...more.build({ box }) };
    return section;
  }

  // The task with a real run, as text and command, after the prediction, which it could answer; the app checks it below the lesson.
  task() {
    const { task, course } = this.header;
    if (!task) return null;
    const number = course.findIndex(({ id }) => id === this.lesson.id) + 1;
    const parts = [...task.texts.map((text) => element("p", {}, say(text))),
      element("p", {}, say("In UDML Explorer: open Learn, choose lesson {number}, and press “Open the task in Lab”. Lab opens with all settings, and the app checks the runs that you start there. This file cannot check a run: the link with your answers that you copy in the app says which tasks you solved.", { number })),
      element("small", {}, say("These commands do the same without the check:")), element("pre", {}, task.command)];
    const box = element("div", {});
    this.showAnswers.push(() => box.replaceChildren(...(this.kept.before === undefined ? [] : parts)));
    return this.part(say("Try it with a real run"), {}, box);
  }

  // The terms of the glossary that the lesson uses.
  terms() {
    const { english, header: { course, guide, index } } = this;
    const { id: own, claim, touch, see, fails, takeaway, before, after } = english.lesson; // words have no cases in English
    const found = termsIn([claim, touch, see, fails, takeaway, before.text, after.text].join(" "), english.terms);
    const used = found.map((term) => guide.terms[english.terms.indexOf(term)]);
    const titles = Object.fromEntries(course.filter(({ id }) => id !== own).map(({ id, title }) => [id, title]));
    return element("details", { class: "guide" }, element("summary", {}, say("Terms of this lesson: {terms}", { terms: used.map(({ term }) => term).sort((one, other) => one.localeCompare(other, LANGUAGE)).join(", ") })),
      termList(used, (id, words) => this.link(course.find((other) => other.id === id), words), titles),
      this.link({ id: "", href: `${index}#glossary` }, say("All terms")));
  }

  // The lessons on which this one builds.
  needs() {
    const { lesson, header: { course, guide } } = this;
    const links = (guide.needs[lesson.id] ?? []).map((id) => course.find((other) => other.id === id)).filter(Boolean);
    return links.length ? element("span", {}, `${say("Builds on")}: `, links.flatMap((other, at) => [...(at ? [", "] : []), this.link(other, other.title)])) : null;
  }

  notes() {
    const { ask, wrong, stuck } = this.lesson.notes;
    return element("details", { class: "notes" }, element("summary", {}, say("Teacher notes")), element("dl", {},
      ...[[say("Ask"), ask], [say("Common wrong answer"), wrong], [say("Where students get stuck"), stuck]].flatMap(
        ([name, words]) => [element("dt", {}, name), markup("dd", words)])),
    element("button", { type: "button", onclick: () => printPage(this.root, notesToPrint(this)) }, say("Print notes and answers")));
  }

  question(name, text, { choices, order, right, why = [], because }) {
    const id = `${this.lesson.id}-${name}`;
    const reason = element("p", { class: "because", role: "status" });
    const ownReason = (choice) => (why[choice] && !this.presentation.isOn ? ` ${why[choice]}` : ""); // a teacher says it
    const show = () => {
      const kept = this.answers()[name];
      inputs.forEach((input, index) => {
        input.checked = kept === index;
        input.parentElement?.classList.toggle("chosen", kept === index);
        input.parentElement?.classList.toggle("right", typeof kept === "number" && index === right);
      });
      reason.replaceChildren();
      if (typeof kept === "number") reason.append(markup("span", `${kept === right ? say("✓ Correct.") : `${say("✕ Not right.")}${ownReason(kept)} ${say("Right: “{answer}”.", { answer: choices[right] })}`} ${because}`));
      reason.className = `because ${kept === right ? "right" : ""}`;
      box.classList.toggle("answered", typeof kept === "number");
      if (skip) skip.hidden = typeof kept === "number";
      if (wait) wait.hidden = kept !== undefined;
    };
    const inputs = choices.map((_words, index) => element("input", { type: "radio", name: id, onchange: () => {
      this.keep(name, index);
      show();
    } }));
    const skip = name === "before"
      ? element("button", { type: "button", class: "plain skip", onclick: () => { this.keep(name, "skipped"); show(); } }, say("Skip the question"))
      : null;
    const wait = name === "before" ? element("p", { class: "wait" }, this.lesson.before.shows ? say("Answer first; then the picture moves.") : say("Answer first; then move the controls.")) : null;
    const box = element("fieldset", { class: "question" }, markup("legend", text),
      inOrder(inputs.map((input, index) => element("label", {}, input, markup("span", choices[index]))), order), wait, skip, reason);
    show();
    this.showAnswers.push(show);
    return box;
  }

  // The answers that are shown: of a presentation, or of the reader.
  answers() { return this.presentation.isOn ? this.presentation.answers : this.kept; }

  keep(name, choice) {
    const { isOn } = this.presentation;
    this.answers()[name] = choice;
    if (!isOn) this.course.last = this.lesson.id;
    if (!isOn) keepCourse(this.course); // an audience keeps no answer
    this.lock();
    if (!isOn && name === "before") this.drawStage(); // parts that waited for the answer have a width now
    const isCounted = typeof choice === "number" && !isOn && readCourse().isCounted;
    if (!isOn && name === "before" && !isCounted) this.outside.predicted?.(); // an answer that counts says it as well
    if (typeof choice !== "number") return;
    const former = structuredClone(this.state);
    if (this.lesson[name].shows) this.show(this.lesson[name].shows); // the picture shows the case of the question
    if (isOn) this.presentation.announce(former);
    if (!isOn && name === "before" && innerWidth < PHONE) this.before.querySelector(".because").scrollIntoView(); // with the picture below it
    if (isOn) this.presentation.makeRoom();
    else if (isCounted) this.outside.answered?.(name, choice, this.course.reader);
  }

  // The controls, and the claim that would give the answer away, wait for a prediction, or for the reader to skip it.
  lock() {
    const isLocked = this.answers().before === undefined;
    this.claim.textContent = isLocked ? say("Predict first. Your answer opens the rest.") : this.lesson.claim;
    this.root.classList.toggle("locked", isLocked);
    this.controls.inert = this.stage.inert = isLocked && !this.presentation.isOn; // an audience answers aloud
    for (const show of this.showAnswers) show();
  }

  control(control) {
    const { name, kind, label, low, high, step, options, unit = "", format = (value) => `${plain(Number(value.toPrecision(4)))}${unit}` } = control;
    if (kind === "choice") {
      const buttons = options.map(({ value, words }) => element("button", { type: "button", onclick: () => this.change({ [name]: value }) }, words));
      this.widgets[name] = { words: (value) => options.find((option) => option.value === value).words, show: (value) => buttons.forEach((button, index) => button.setAttribute("aria-pressed", String(options[index].value === value))) };
      return element("div", { class: "choice", role: "group", "aria-label": label }, element("span", {}, label), buttons);
    }
    const input = element("input", { type: "range", min: low, max: high, step, "aria-label": label,
      oninput: () => this.change({ [name]: Number(input.value) }) });
    const value = element("output", {});
    this.widgets[name] = { words: format, show: (to) => { input.value = to; value.textContent = format(to); input.setAttribute("aria-valuetext", format(to)); } };
    return element("label", { class: "slider" }, element("span", {}, label), input, value);
  }

  end() {
    document.removeEventListener("keydown", this.onKey, true);
    this.presentation.leave();
    clearTimeout(this.writing);
    clearTimeout(this.rebuilding);
    this.resized.disconnect();
  }
}

// The component of the app. header: what `Lesson` needs; answers: triggers "go" {id, isPresented}, "open" {page, query}, "predicted" whether there is a prediction, "answered" {…}, "reader" name
function mountLesson({ data, parentElement, setTriggerValue }, lesson) {
  const root = parentElement.querySelector(".lesson");
  root.setAnswer = setTriggerValue; // a new function at every call
  tellReader(root, data, setTriggerValue);
  root.live ??= new Lesson(root, lesson, data, {
    go: (id, isPresented = false) => root.setAnswer("go", { id, isPresented }),
    open: (page, query) => root.setAnswer("open", { page, query }),
    predicted: () => root.setAnswer("predicted", true),
    answered: (question, choice, reader) => root.setAnswer("answered", { question, choice, reader }),
  });
  if (data.language !== LANGUAGE) root.setAnswer("language", LANGUAGE); // the title above the lesson follows
  const isPredicted = root.live.kept.before !== undefined;
  if (data.isPredicted !== isPredicted) root.setAnswer("predicted", isPredicted); // the task below it waits for a prediction
  return () => setTimeout(() => { if (!root.isConnected) { root.live?.end(); root.live = null; } }, 1000);
}
