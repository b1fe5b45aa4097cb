// How a slide fits the screen: the largest letters, and the picture in what they leave.
const PICTURE_SLIDES = ["meet", "predict", "do", "see", "formula", "fails", "check", "takeaway"];
const HANDS_ON = ["do", "fails"]; // on small screens the other slides leave out what is only pressed
const [MOST_TEXT, WANTED_TEXT, LEAST_TEXT] = [0.066, [0.042, 0.037, 0.0335], 24]; // letters: shares of a screen's height, and pixels
const TEXT_STEP = 0.94; // from one size of letters to the next
const SMALLER_LETTERS = [22, 20, 18]; // where nothing else helps
const LEAST_FORMULA = 0.8; // of the letters around it
const NARROW_LETTERS = 17;
const WIDTHS = [340, 420, 500, 600, 720, 860]; // at which the picture is tried before it is enlarged
const [PASSES, SETTLING] = [12, 8];
const LEAST_LETTERS = 29.5; // pixels of the screen, of the letters in a picture: 28 stay where larger letters make it higher
const LOW_LETTERS = 26; // on a screen of less than LOW pixels
const LETTERS_SHARE = 0.036; // of the height of a larger screen
const LEAST_RADIUS = 7.2; // pixels of the screen, of the points in a picture
const LOW = 768;
const SIDE_BY_SIDE = 1.5; // width by height of a screen on which all text stands beside the picture
const NARROW = 700; // pixels of a telephone, whose slides scroll
const aroundPicture = () => 20 + Math.max(44, 0.057 * innerHeight); // pixels of a screen's height: the keys, as in lesson.css, and margins
const SHOWN_SLIDES = ["meet", "see"]; // their few sentences stand below the picture where it is larger there
const [LEAST_HEIGHT, LEAST_WIDTH] = [0.7, 0.9]; // shares of a screen: a picture beside its text that takes neither is too small
const LEAST_AREA = 0.45; // share of a screen of a picture that gives room to larger letters
const ENOUGH = 0.715; // of a screen, for a picture above more text
const HEIGHTS = [0.8, 0.78, 0.76, 0.74, 0.72, 0.7, 0.68, 0.66, 0.64, 0.62, 0.6, 0.56, 0.52]; // of a screen, for a picture above its text
const [SHORTEST, TALLEST, HALVINGS] = [0.4, 3, 5]; // how much the height of a picture may change where it carries no meaning, and how exactly

// Sizes of letters in pixels, the largest first: the largest that fits fills its slide.
function lettersOf(height = innerHeight) {
  const sizes = [];
  for (let size = MOST_TEXT * height; size > LEAST_TEXT; size *= TEXT_STEP) sizes.push(Math.round(10 * size) / 10);
  return [...sizes, LEAST_TEXT];
}

class SlideFit {
  constructor(frame) { Object.assign(this, { frame, built: "", widths: new Map(), sizes: new Map() }); }

  // Where the picture may stand on a slide, best first; null stands for no picture.
  boxes(kind) {
    const [width, height] = [innerWidth, innerHeight];
    if (!PICTURE_SLIDES.includes(kind)) return [null];
    if (width < NARROW) return [{ isSide: false, box: [width - 32, height / 2] }];
    const isWide = width / height >= SIDE_BY_SIDE;
    const beside = (shares) => shares.map((share) => ({ isSide: true, box: [width * share, height - aroundPicture()] }));
    if (kind === "formula") return [...beside([0.65, 0.58, 0.5, 0.42, 0.34]), null];
    if (isWide) return beside([0.65, 0.58, 0.5, 0.42]);
    return beside([0.64, 0.58, 0.52, 0.46, 0.4, 0.34]);
  }

  fit(kind) {
    const { root, stage } = this.frame;
    const isNarrow = innerWidth < NARROW;
    stage.style.display = "none"; // the picture of the slide before takes no room
    root.classList.toggle("narrow", isNarrow);
    const box = isNarrow ? this.boxes(kind)[0] : this.bestBox(kind);
    this.reserve(box);
    stage.style.removeProperty("display");
    if (box) {
      this.buildPicture(box.box);
      this.place(box.box);
    }
    if (isNarrow) root.style.fontSize = `${NARROW_LETTERS}px`;
    else if (!this.write(lettersOf())) this.write(SMALLER_LETTERS); // a picture may be narrower than its box
  }

  // The box in which the picture is largest while the text fits, beside it or below. A picture gives room to letters as large as wanted while it stays
  // large itself. A picture that is too small moves above its text: then an answered question gives way to its explanation.
  bestBox(kind) {
    const { root } = this.frame;
    root.classList.remove("short");
    if (SHOWN_SLIDES.includes(kind)) return this.largest([this.besideText(kind, this.wanted(0)) ?? this.besideText(kind), this.aboveText(HEIGHTS, this.wanted(2)) ?? this.aboveText(HEIGHTS)]);
    if (!PICTURE_SLIDES.includes(kind)) return this.besideText(kind);
    const isLarge = (box) => box && this.isLarge(box);
    const isStillLarge = (box) => isLarge(box) && this.areaIn(box) >= LEAST_AREA * innerWidth * innerHeight;
    for (const share of WANTED_TEXT.keys()) {
      const large = [() => this.besideText(kind, this.wanted(share)), () => this.aboveText([ENOUGH], this.wanted(share))].reduce((box, next) => box ?? [next()].find(isStillLarge), undefined);
      if (large) return large;
    }
    const beside = this.besideText(kind) ?? this.boxes(kind).at(-1);
    if (this.isLarge(beside)) return beside;
    root.classList.add("short");
    const boxes = [this.besideText(kind) ?? beside, this.aboveText([ENOUGH, ...HEIGHTS.filter((height) => height < ENOUGH)])];
    return boxes.find(isLarge) ?? this.largest(boxes);
  }

  // The sizes of letters that are wanted, or a smaller share of them.
  wanted(share) { return lettersOf().filter((size) => size >= WANTED_TEXT[share] * innerHeight); }

  isWithText([box, sizes]) {
    this.reserve(box);
    return this.write(sizes);
  }

  // The widest box beside the text that leaves it room; undefined where no box does.
  besideText(kind, sizes = null) {
    const boxes = this.boxes(kind);
    const attempts = sizes ? boxes.map((box) => [box, sizes]) : [...boxes.map((box) => [box, lettersOf()]), [boxes.at(-1), SMALLER_LETTERS]];
    return attempts.find((attempt) => this.isWithText(attempt))?.[0];
  }

  // The highest box above the text; undefined where the text leaves no room for it.
  aboveText(heights, sizes = [LEAST_TEXT]) {
    return heights.map((share) => ({ isSide: false, box: [innerWidth - 48, innerHeight * share] })).find((box) => this.isWithText([box, sizes.slice(-1)]));
  }

  largest(boxes) {
    const areas = boxes.map((box) => (box ? this.areaIn(box) : -1));
    return boxes[areas.indexOf(Math.max(...areas))];
  }

  areaIn(box) { return this.sizeIn(box).reduce((product, side) => product * side); }

  // Width and height of the picture in a box: none where its letters leave it.
  sizeIn(box) {
    const { stage } = this.frame;
    const key = this.keyOf(box.box).join("");
    if (this.sizes.has(key)) return this.sizes.get(key);
    stage.style.removeProperty("display");
    this.reserve(box);
    this.buildPicture(box.box);
    const scale = this.scaleIn(box.box);
    const size = stage.scrollWidth > stage.clientWidth + 1 ? [0, 0] : [stage.offsetWidth * scale, stage.offsetHeight * scale];
    stage.style.display = "none";
    this.sizes.set(key, size);
    return size;
  }

  // Whether a picture in a box is seen from the last row.
  isLarge(box) {
    const [width, height] = this.sizeIn(box);
    return height >= LEAST_HEIGHT * innerHeight || width >= LEAST_WIDTH * innerWidth;
  }

  // How much the picture is enlarged in a box.
  scaleIn([width, height]) {
    const { stage } = this.frame;
    return Math.min(width / stage.offsetWidth, height / stage.offsetHeight);
  }

  // Take the first size of letters with which the slide fits.
  write(sizes) {
    return sizes.find((size) => {
      this.frame.root.style.fontSize = `${size}px`;
      return this.isFitting();
    });
  }

  // Write smaller where numbers beside the picture grew beyond the slide.
  keepWithin() {
    const size = parseFloat(this.frame.root.style.fontSize);
    if (innerWidth >= NARROW && !this.isFitting()) this.write([...lettersOf(), ...SMALLER_LETTERS].filter((smaller) => smaller < size));
  }

  // Keep the room of a picture free.
  reserve(box) {
    const { root, stage: { parentElement: picture } } = this.frame;
    root.classList.toggle("side", Boolean(box?.isSide));
    root.classList.toggle("above", box?.isSide === false && innerWidth >= NARROW);
    picture.classList.toggle("away", !box);
    if (box) Object.assign(picture.style, { width: `${box.box[0]}px`, height: box.isSide ? "0" : `${box.box[1]}px` });
  }

  isFitting() {
    const { root, formula, panel } = this.frame;
    const share = fitFormulas(formula);
    const isWithin = (node) => node.scrollWidth <= node.clientWidth; // no word is longer than its line
    return share >= LEAST_FORMULA && root.scrollHeight <= root.clientHeight && [root, formula, panel].every(isWithin);
  }

  // What decides how the picture is built: its box and its parts, and the state of the slide.
  keyOf(box) {
    const { slide, slides } = this.frame.presentation;
    const { kind, parts } = slides[slide];
    return [JSON.stringify([box, HANDS_ON.includes(kind), parts]), JSON.stringify(this.frame.presentation.stateOf(slides[slide]))];
  }

  // Build the picture at the width from which it can be enlarged most, so that its letters are as large as possible.
  buildPicture(box) {
    const [key, state] = this.keyOf(box);
    const built = key + state;
    if (built === this.built) return;
    this.built = built;
    const { frame, frame: { stage } } = this;
    const enlarged = (width) => {
      Object.assign(stage.style, { width: `${width}px` });
      stage.style.setProperty("--tall", 1);
      let [lowest, former] = [box[0] / width, 0]; // no picture is enlarged more
      let scale = lowest;
      this.mark(lowest);
      for (let pass = 0; pass < PASSES && Math.abs(lowest / former - 1) > 0.01; pass += 1) { // larger letters make some pictures higher
        frame.drawStage();
        scale = Math.min(box[0] / width, box[1] / stage.offsetHeight);
        [former, lowest] = [lowest, Math.min(lowest, scale)];
        this.mark(lowest);
      }
      return stage.scrollWidth > stage.clientWidth + 1 ? scale / 10 : scale; // with letters outside of it only if it must
    };
    if (!this.widths.has(key)) {
      const scales = WIDTHS.map(enlarged);
      this.widths.set(key, WIDTHS[scales.indexOf(Math.max(...scales))]);
    }
    enlarged(this.widths.get(key));
    if (!this.fill(box)) enlarged(this.widths.get(key));
    for (let pass = 0; pass < SETTLING && this.scaleIn(box) < 0.99 * this.marked; pass += 1) { // its last letters made it higher
      this.mark(this.scaleIn(box));
      frame.drawStage();
    }
  }

  // Give letters and points the size that is large enough when the picture is enlarged by a share.
  mark(share) {
    const { style } = this.frame.stage;
    this.marked = share;
    style.setProperty("--dot", LEAST_RADIUS / share);
    style.setProperty("--least", (innerWidth < NARROW ? LOW_LETTERS / 2 : innerHeight < LOW ? LOW_LETTERS : Math.max(LEAST_LETTERS, LETTERS_SHARE * innerHeight)) / share);
  }

  // Let a picture whose height may change take all of its box: say whether it can.
  fill(box) {
    const { frame, frame: { stage } } = this;
    const isWithin = (tall) => {
      stage.style.setProperty("--tall", tall);
      frame.drawStage();
      return stage.scrollWidth <= stage.clientWidth + 1 && stage.offsetHeight * box[0] / stage.offsetWidth <= box[1];
    };
    const start = stage.offsetHeight;
    const isHigh = start * box[0] / stage.offsetWidth > box[1];
    if (isHigh) this.mark(box[0] / stage.offsetWidth);
    let [low, high] = isHigh ? [SHORTEST, 1] : [1, TALLEST];
    if (isHigh && !isWithin(low)) return false;
    if (!isHigh && (isWithin(high) || stage.offsetHeight === start)) return true;
    for (let pass = 0; pass < HALVINGS; pass += 1) {
      const middle = (low + high) / 2;
      if (isWithin(middle)) low = middle;
      else high = middle;
    }
    return isWithin(low);
  }

  // Enlarge the picture into its box.
  place(box) {
    const { stage, stage: { parentElement: picture } } = this.frame;
    const [width, height, scale] = [stage.offsetWidth, stage.offsetHeight, this.scaleIn(box)];
    stage.style.setProperty("--scale", scale);
    Object.assign(picture.style, { width: `${width * scale}px`, height: `${height * scale}px` });
  }

  renew() {
    this.built = "";
    this.widths.clear();
    this.sizes.clear();
  }

  forget() {
    const { stage, stage: { parentElement: picture }, root, formula } = this.frame;
    this.built = "";
    for (const node of [stage, picture, root]) node.removeAttribute("style");
    root.classList.remove("side", "above", "short", "narrow");
    fitFormulas(formula);
  }
}
