// How a slide fits the screen: the largest letters, and the picture in what they leave.
const PICTURE_SLIDES = ["meet", "predict", "do", "see", "formula", "fails", "check", "takeaway"];
const TEXT_SLIDES = ["predict", "do", "formula", "fails", "check", "takeaway"]; // their text stands beside the picture on each screen
const HANDS_ON = ["do", "fails"]; // on small screens the other slides leave out what is only pressed
const LETTERS = [38, 34, 30, 27, 24]; // pixels: the largest that fits
const SMALLER_LETTERS = [22, 20, 18]; // where nothing else helps
const LEAST_FORMULA = 0.8; // of the letters around it
const NARROW_LETTERS = 17;
const WIDTHS = [340, 420, 500, 600, 720, 860]; // at which the picture is tried before it is enlarged
const PASSES = 12;
const LEAST_LETTERS = 29; // pixels of the screen, of the letters in a picture: 28 stay where larger letters make it higher
const LOW_LETTERS = 26; // on a screen of less than LOW pixels
const LEAST_RADIUS = 7.2; // pixels of the screen, of the points in a picture
const LOW = 768;
const SIDE_BY_SIDE = 1.5; // width by height of a screen on which all text stands beside the picture
const NARROW = 700; // pixels of a telephone, whose slides scroll
const AROUND = 104; // pixels of a screen's height that the title and the keys take

class SlideFit {
  // size: of the letters beside the picture on the slide before, which stays where it fits
  constructor(frame) { Object.assign(this, { frame, built: "", widths: new Map(), size: null }); }

  // Where the picture may stand on a slide, best first; null stands for no picture.
  boxes(kind) {
    const [width, height] = [innerWidth, innerHeight];
    if (!PICTURE_SLIDES.includes(kind)) return [null];
    if (width < NARROW) return [{ isSide: false, box: [width - 32, height / 2] }];
    const isWide = width / height >= SIDE_BY_SIDE;
    const beside = (shares) => shares.map((share) => ({ isSide: true, box: [width * share, height - AROUND] }));
    if (kind === "formula") return [...beside([0.58, 0.5, 0.42, 0.34]), null];
    if (isWide) return beside([0.65, 0.58, 0.5, 0.42]);
    return beside([0.64, 0.58, 0.52, 0.46, 0.4, 0.34]);
  }

  fit(kind) {
    const { root, stage } = this.frame;
    const isNarrow = innerWidth < NARROW;
    stage.style.display = "none"; // the picture of the slide before takes no room
    root.classList.toggle("narrow", isNarrow);
    const boxes = this.boxes(kind);
    const tried = [...boxes.map((box) => [box, LETTERS]), [boxes.at(-1), SMALLER_LETTERS]];
    const [box] = (isNarrow ? [] : tried).find(([one, sizes]) => { this.reserve(one); return this.write(sizes); }) ?? [boxes.at(-1)];
    if (isNarrow) this.reserve(box);
    stage.style.removeProperty("display");
    if (box) {
      this.buildPicture(box.box);
      this.place(box.box);
    }
    if (isNarrow) root.style.fontSize = `${NARROW_LETTERS}px`;
    else {
      const size = this.write([...(TEXT_SLIDES.includes(kind) && this.size ? [this.size] : []), ...LETTERS]) ?? this.write(SMALLER_LETTERS); // a picture may be narrower than its box
      this.size = TEXT_SLIDES.includes(kind) && kind !== "predict" ? size : null;
    }
    if (kind === "more") this.enlargeSecond();
  }

  // Take the first size of letters with which the slide fits.
  write(sizes) {
    return sizes.find((size) => {
      this.frame.root.style.fontSize = `${size}px`;
      return this.isFitting();
    });
  }

  // Keep the room of a picture free.
  reserve(box) {
    const { root, stage: { parentElement: picture } } = this.frame;
    root.classList.toggle("side", Boolean(box?.isSide));
    picture.classList.toggle("away", !box);
    if (box) Object.assign(picture.style, { width: `${box.box[0]}px`, height: box.isSide ? "0" : `${box.box[1]}px` });
  }

  isFitting() {
    const { root, formula } = this.frame;
    const share = fitFormulas(formula);
    const isWithin = (node) => node.scrollWidth <= node.clientWidth;
    return share >= LEAST_FORMULA && root.scrollHeight <= root.clientHeight && isWithin(root) && isWithin(formula);
  }

  // Build the picture at the width from which it can be enlarged most, so that its letters are as large as possible.
  buildPicture(box) {
    const { slide, slides } = this.frame.presentation;
    const key = JSON.stringify([box, HANDS_ON.includes(slides[slide].kind), slides[slide].state]);
    if (key === this.built) return;
    this.built = key;
    const { frame, frame: { stage } } = this;
    const enlarged = (width) => {
      Object.assign(stage.style, { width: `${width}px` });
      const mark = (share) => { // letters and points that are large enough when the picture is enlarged by a share
        stage.style.setProperty("--dot", LEAST_RADIUS / share);
        stage.style.setProperty("--least", (innerWidth < NARROW ? LOW_LETTERS / 2 : innerHeight < LOW ? LOW_LETTERS : LEAST_LETTERS) / share);
      };
      let [lowest, former] = [box[0] / width, 0]; // no picture is enlarged more
      let scale = lowest;
      mark(lowest);
      for (let pass = 0; pass < PASSES && Math.abs(lowest / former - 1) > 0.01; pass += 1) { // larger letters make some pictures higher
        frame.drawStage();
        scale = Math.min(box[0] / width, box[1] / stage.offsetHeight);
        [former, lowest] = [lowest, Math.min(lowest, scale)];
        mark(lowest);
      }
      return stage.scrollWidth > stage.clientWidth + 1 ? scale / 10 : scale; // with letters outside of it only if it must
    };
    if (!this.widths.has(key)) {
      const scales = WIDTHS.map(enlarged);
      this.widths.set(key, WIDTHS[scales.indexOf(Math.max(...scales))]);
    }
    enlarged(this.widths.get(key));
  }

  // Enlarge the picture into its box.
  place(box) {
    const { stage, stage: { parentElement: picture } } = this.frame;
    const [width, height] = [stage.offsetWidth, stage.offsetHeight];
    const scale = Math.min(box[0] / width, box[1] / height);
    stage.style.setProperty("--scale", scale);
    Object.assign(picture.style, { width: `${width * scale}px`, height: `${height * scale}px` });
  }

  // Give the second figure the height that the slide leaves.
  enlargeSecond() {
    const { root, second: { section } } = this.frame;
    root.style.removeProperty("--second");
    const free = root.getBoundingClientRect().bottom - section.getBoundingClientRect().bottom - AROUND / 2;
    const height = parseFloat(getComputedStyle(section.querySelector(".second canvas")).height);
    if (free > 0) root.style.setProperty("--second", `${Math.floor(height + free)}px`);
  }

  forget() {
    const { stage, stage: { parentElement: picture }, root, formula } = this.frame;
    this.built = "";
    this.size = null;
    for (const node of [stage, picture, root]) node.removeAttribute("style");
    root.classList.remove("side", "narrow");
    fitFormulas(formula);
  }
}
