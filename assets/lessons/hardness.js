const SEEDS = 5; // the first takes the triplets in their recorded order, and its maps are drawn; each other draws triplets and an order of its own

const FRESH = 50; // new images of each class, on which no projection trains

const PRINTED_SHARE = 0.82; // of the letters of a printed picture: the bars are as wide as the paper

const FEW = 100; // fewer triplets stand beside their R@1

const LESSON = {
  id: "hardness",
  number: 3,
  minutes: 7,
  title: "Easy, semi-hard, hard",
  aim: "Afterwards you can choose triplets for training by their difficulty.",
  claim: "Easy triplets teach nothing, semi-hard triplets improve the map, and the hardest triplets can ruin it, above all where labels are wrong.",
  data: ["digits", "hardness"],
  before: {
    text: "You train only on the hardest triplets, whose negative is much nearer to the anchor than the positive. What happens to the map?",
    choices: ["It improves most: the largest errors teach most", "It gets worse", "It does not change"],
    right: 1,
    why: ["A large loss can be a wrong label, and then training moves the images the wrong way.", "", "Their loss is far above 0, so training moves these images strongly."],
    shows: { epochs: 1 },
    because: "Nearly all of the hardest triplets have a wrong label, and training obeys it. Besides, training on many hard triplets at once shrinks the whole map. That lowers all their losses, but never below the margin.",
  },
  touch: "Begin at 1 epoch: one pass over the chosen triplets. Then drag the two ends of your range (↔) and compare the maps. Do the same with right labels only.",
  see: "Each bar counts triplets. Farther right, the negative N is farther from the anchor A than the positive P is. Between the dashed lines N is farther, but by less than the margin μ = 0.1. Maps show the images after training, at one scale. Characters are images, colored by true digit; rings mark wrong labels, one in ten. R@1: the share whose nearest image is the same digit. Spread: the map’s size, compared with before. R@1 is the mean over five seeds, which draw triplets and their order; the map shows the first seed. In 19 of 20 cases the mean of very many seeds lies within ±; other images could move it further. The maps have R@1 on the training images; a second number gives R@1 on 300 new images.",
  controls: [
    { name: "epochs", kind: "slider", label: "Epochs of training", low: 0, high: 4, step: 1, start: 0 },
    { name: "labels", kind: "choice", label: "Triplets", start: "all", options: [{ value: "all", words: "All" }, { value: "right", words: "Only those with right labels" }] },
  ],
  hidden: [{ name: "range", start: [-0.9, -0.3], low: [-0.9, -0.9], high: [1.2, 1.2],
    told: ({ range }) => [say("Your range"), [Math.min, Math.max].map((pick) => fixed(pick(...range), 1)).join(" … ")] }], // difference of the triplets that train
  margin: 0.1,
  batch: 50,
  rate: 1,
  most: 600, // triplets of a choice
  prepared: new WeakMap(), // by data: unit-length images, and each triplet's difference before training
  // The first images of each class that no triplet uses.
  fresh({ rows, classes }, digits) {
    const used = new Set(rows);
    const classOf = new Map(Array.from(rows, (row, at) => [digits[row], classes[at]])); // by digit
    const counts = new Map();
    const chosen = [...digits.keys()].filter((row) => {
      if (used.has(row) || !classOf.has(digits[row]) || counts.get(digits[row]) === FRESH) return false;
      counts.set(digits[row], (counts.get(digits[row]) ?? 0) + 1);
      return true;
    });
    return { rows: chosen, classes: chosen.map((row) => classOf.get(digits[row])) };
  },
  prepare({ digits: { pixels, classes }, hardness }) {
    if (LESSON.prepared.has(hardness)) return LESSON.prepared.get(hardness);
    const unitPoints = (rows) => {
      const made = new Float64Array(64 * rows.length);
      rows.forEach((row, index) => {
        const image = pixels.subarray(64 * row, 64 * row + 64);
        const length = Math.hypot(...image);
        image.forEach((value, at) => { made[64 * index + at] = value / length; });
      });
      return made;
    };
    const points = unitPoints(hardness.rows);
    const positions = LESSON.project(points, Float64Array.from(hardness.projection));
    const { triplets } = hardness;
    const differences = Float64Array.from({ length: triplets.length / 3 }, (_, at) => {
      const [anchor, positive, negative] = [0, 1, 2].map((part) => triplets[3 * at + part]);
      return LESSON.squared(positions, anchor, negative) - LESSON.squared(positions, anchor, positive);
    });
    const fresh = LESSON.fresh(hardness, classes);
    const ready = { points, differences, fresh: { points: unitPoints(fresh.rows), classes: fresh.classes }, trained: new Map() };
    LESSON.prepared.set(hardness, ready);
    return ready;
  },
  squared: (positions, one, other) => (positions[2 * one] - positions[2 * other]) ** 2 + (positions[2 * one + 1] - positions[2 * other + 1]) ** 2,
  project(points, projection) {
    const positions = new Float64Array(points.length / 32);
    for (let row = 0; row < positions.length / 2; row += 1) {
      for (let at = 0; at < 64; at += 1) {
        positions[2 * row] += points[64 * row + at] * projection[2 * at];
        positions[2 * row + 1] += points[64 * row + at] * projection[2 * at + 1];
      }
    }
    return positions;
  },
  // Gradient descent on the mean triplet loss of one batch after another.
  train(points, triplets, chosen, projection, epochs) {
    const row = (point) => points.subarray(64 * point, 64 * point + 64);
    for (let start = 0; start < epochs * chosen.length; start += LESSON.batch) {
      const first = start % chosen.length;
      const batch = chosen.slice(first, first + LESSON.batch);
      start += batch.length - LESSON.batch; // the last batch of an epoch can be smaller
      const gradient = new Float64Array(128);
      for (const at of batch) {
        const rows = [0, 1, 2].map((part) => row(triplets[3 * at + part]));
        const [anchor, positive, negative] = rows.map((image) => LESSON.project(image, projection));
        const argument = (anchor[0] - positive[0]) ** 2 + (anchor[1] - positive[1]) ** 2
          - (anchor[0] - negative[0]) ** 2 - (anchor[1] - negative[1]) ** 2 + LESSON.margin;
        if (argument <= 0) continue;
        for (const axis of [0, 1]) {
          const slopes = [negative[axis] - positive[axis], positive[axis] - anchor[axis], anchor[axis] - negative[axis]];
          for (let pixel = 0; pixel < 64; pixel += 1) {
            gradient[2 * pixel + axis] += 2 * (slopes[0] * rows[0][pixel] + slopes[1] * rows[1][pixel] + slopes[2] * rows[2][pixel]);
          }
        }
      }
      for (let at = 0; at < 128; at += 1) projection[at] -= LESSON.rate * gradient[at] / batch.length;
    }
    return projection;
  },
  hasWrongLabel: ({ classes, labels, triplets }, at) => [0, 1, 2].some((part) => labels[triplets[3 * at + part]] !== classes[triplets[3 * at + part]]),
  // The result of training on triplets whose difference is above `low` and at most `high`.
  result({ low, high, epochs, isRight }, data) {
    const { points, differences, fresh, trained } = LESSON.prepare(data);
    const { classes, triplets } = data.hardness;
    const key = `${low} ${high} ${epochs} ${isRight}`;
    if (trained.has(key)) return trained.get(key);
    const eligible = [];
    differences.forEach((difference, at) => {
      if (difference <= low || difference > high || (isRight && LESSON.hasWrongLabel(data.hardness, at))) return;
      eligible.push(at);
    });
    const draws = Array.from({ length: SEEDS }, (_empty, seed) => LESSON.drawn(eligible, seed));
    const projections = draws.map((chosen) => LESSON.train(points, triplets, chosen, Float64Array.from(data.hardness.projection), epochs));
    const all = projections.map((projection) => LESSON.project(points, projection));
    const recalls = all.map((positions) => LESSON.recall(positions, classes));
    const onNew = projections.map((projection) => LESSON.recall(LESSON.project(fresh.points, projection), fresh.classes));
    const [[chosen], [projection], [positions]] = [draws, projections, all];
    const middle = [0, 1].map((axis) => positions.reduce((sum, part, at) => sum + (at % 2 === axis ? part : 0), 0) / classes.length);
    const spread = Math.sqrt(positions.reduce((sum, part, at) => sum + (part - middle[at % 2]) ** 2, 0) / classes.length);
    const found = { projection, positions, middle, spread, recall: recalls[0], recalls, draws, onNew: { ...meanInterval(onNew), recalls: onNew }, ...meanInterval(recalls), count: eligible.length, used: chosen.length,
      steps: epochs * Math.ceil(chosen.length / LESSON.batch), wrong: chosen.filter((at) => LESSON.hasWrongLabel(data.hardness, at)).length / (chosen.length || 1) };
    if (trained.size > 200) trained.clear();
    trained.set(key, found);
    return found;
  },
  // The triplets of a seed, in their order.
  drawn(eligible, seed) {
    if (!seed) return eligible.slice(0, LESSON.most);
    const [random, left] = [randomStream(seed), [...eligible]];
    return Array.from({ length: Math.min(LESSON.most, left.length) }, () => {
      const at = Math.floor(random() * left.length);
      [left[at], left[left.length - 1]] = [left[left.length - 1], left[at]];
      return left.pop();
    });
  },
  // The share of images whose nearest image has their class.
  recall(positions, classes) {
    let hits = 0;
    for (let query = 0; query < classes.length; query += 1) {
      let [best, nearest] = [Infinity, -1];
      for (let other = 0; other < classes.length; other += 1) {
        const distance = LESSON.squared(positions, query, other);
        if (other !== query && distance < best) [best, nearest] = [distance, other];
      }
      hits += classes[nearest] === classes[query];
    }
    return hits / classes.length;
  },
  compute({ epochs, range, labels }, data) {
    const isRight = labels === "right";
    const { differences } = LESSON.prepare(data);
    const [low, high] = [Math.min(...range), Math.max(...range)];
    const choices = { easy: [LESSON.margin, Infinity], semi: [0, LESSON.margin], hard: [-Infinity, 0], own: [low, high] };
    const results = Object.fromEntries(Object.entries(choices).map(([name, [from, to]]) => [name, LESSON.result({ low: from, high: to, epochs, isRight }, data)]));
    return { differences, results, against: meanDifference(results.own.recalls, results.semi.recalls), before: LESSON.result({ low: 0, high: 0, epochs: 0, isRight }, data), low, high };
  },
  readout: ({ before, against: { reach, isReal }, results: { own, semi } }, { epochs }) => [
    ...(epochs ? [[say("Your R@1 on training images"), `${fixed(100 * before.recall, 1)} → ${LESSON.interval(own)}`], [say("Your R@1 on new images"), `${fixed(100 * before.onNew.mean, 1)} → ${LESSON.interval(own.onNew)}`]]
      : [[say("R@1, before training"), percent(before.recall)], [say("R@1 on new images"), percent(before.onNew.mean)]]),
    [say("your triplets"), say("{count} of {all}", { count: own.used, all: own.count })], [say("of these with a wrong label"), percent(own.wrong)],
    [say("yours and semi-hard"), isReal ? LESSON.withSteps(own.mean > semi.mean ? say("yours better by {difference} points", LESSON.points(own, semi, reach)) : say("semi-hard better by {difference} points", LESSON.points(semi, own, reach)), own, semi)
      : epochs ? say("do not differ clearly") : say("are the same before training")]],
  // Of two trainings with unlike numbers of steps, a part of the difference can come from the steps.
  withSteps: (words, own, semi) => (own.steps === semi.steps ? words : say("{words} (steps: {own} and {semi})", { words, own: own.steps, semi: semi.steps })),
  // The difference of two shares as they are printed: their rounded values give it.
  points: (better, worse, reach) => ({ difference: `${fixed(Number((100 * better.mean).toFixed(1)) - Number((100 * worse.mean).toFixed(1)), 1)} ± ${fixed(100 * reach, 1)}` }),
  // Where all seeds give the same, ± would look like certainty. So would a range of few triplets that does not say how few.
  interval: ({ mean: middle, reach, recalls, used, steps }) => {
    const share = new Set(recalls).size > 1 ? `${fixed(100 * middle, 1)} ± ${percent(reach)}` : percent(middle);
    return steps && used < FEW ? say("{share} ({count} triplets)", { share, count: used }) : share;
  },
  build({ stage, data, state, change, parts }) {
    const [left, right] = [-0.9, 1.2];
    const { differences } = LESSON.prepare(data);
    const bins = 42;
    const counted = (isRight) => {
      const counts = new Array(bins).fill(0);
      differences.forEach((difference, at) => {
        if (!isRight || !LESSON.hasWrongLabel(data.hardness, at)) counts[clamp(Math.floor((difference - left) / (right - left) * bins), 0, bins - 1)] += 1;
      });
      return counts;
    };
    const countsOf = { all: counted(false), right: counted(true) };
    // The bars keep their height; what stands above and below them grows with the letters.
    const isPresented = isOnSlide(stage);
    const isPrinted = isOnPaper(stage); // then the maps take the room of what the table repeats
    const [letters, bars, handle] = [isPrinted ? PRINTED_SHARE * leastLetters(stage) : Math.max(13, leastLetters(stage)), isPrinted ? 72 : 100, 13];
    const [above, below] = [2.7 * letters, 2 * handle + 2.2 * letters];
    const margin = 0.02 + 0.0045 * letters;
    const plane = new Plane(stage, { x: [left - margin, right + margin], y: [-below / bars, 1 + above / bars], width: 660, height: (bars + above + below) / shareOf(stage, 660), equal: false, label: "Triplets by difference" });
    if (isPrinted) plane.least = letters;
    const isShort = plane.isCrowded || plane.width < 500; // no room for whole names
    const under = -handle / plane.scale[1]; // the handles stand below the bars
    const end = (which, label) => plane.handle({ label, sign: "↔", low: [left, under], high: [right, under], step: 0.02,
      moved: ([x]) => change({ range: state().range.map((part, at) => (at === which ? x : part)) }) });
    const ends = [end(0, say("One end of your range")), end(1, say("Other end of your range"))];
    const names = [["easy", say("Easy")], ["semi", say("Semi-hard")], ["hard", say("Hard")], ["own", say("Your range")]];
    const maps = names.map(([name, title]) => {
      const canvas = element("canvas", { class: "to-draw", role: "img", style: "width:100%;aspect-ratio:1;display:block;border:1px solid var(--edge);border-radius:6px" });
      const words = element("div", { class: "numbers", style: `font-size:0.85em;min-height:${isPrinted ? 0 : 5.4}em` });
      const sign = element("span", {}); // whether R@1 rose or fell
      return { name, title, canvas, words, sign, box: element("div", { class: "trained", "data-part": name }, element("b", { style: "font-size:0.9em" }, title, sign), canvas, words) };
    });
    const isTight = plane.isCrowded && (!parts || parseFloat(stage.parentElement.style.width) < 620); // room for R@1 alone, below the bars or on a narrow slide
    plane.svg.dataset.part = "bars";
    const { classes, labels: given } = data.hardness;
    const digits = [0, 1, 2, 3, 4, 6];
    const wrong = Array.from(classes.keys()).filter((row) => given[row] !== classes[row]);
    const meanings = isPresented ? [say("R@1: the nearest image is the same digit")] : []; // a slide further on says it
    const isOn = (...slides) => slides.some((slide) => stage.closest(`.present[data-slide=${slide}]`) !== null);
    stage.append(element("div", { "data-part": "maps", class: plane.isCrowded ? "crowded" : null, style: "display:grid;grid-template-columns:repeat(auto-fit,minmax(max(130px,min(50% - 8px,(560px - 100%) * 999)),1fr));gap:8px" }, maps.map(({ box }) => box)),
      element("div", { "data-part": "maps" }, classLegend(say("Maps: true digit"), digits.map(String), say("○ wrong label"), ...meanings)));
    const button = element("button", { type: "button", class: "main", onclick: () => change({ epochs: Math.min(state().epochs + 1, 4) }) }, say("Train one epoch"));
    button.hidden = isPresented; // then there is no room for what the slider does, and what all maps share
    stage.append(button);
    const painted = new Map();
    let shown = null;
    const paint = () => {
      const drawn = maps.filter(({ canvas }) => canvas.clientWidth);
      const reach = Math.max(...(drawn.length ? drawn : maps).map(({ name }) => { // half the width that holds all maps that are shown
        const { positions, middle } = shown.results[name];
        return positions.reduce((most, part, at) => Math.max(most, Math.abs(part - middle[at % 2])), 0);
      }));
      for (const { name, canvas } of maps) {
        const { positions, middle } = shown.results[name];
        const size = Math.min(canvas.clientWidth, canvas.clientHeight);
        if (!size) continue;
        const ratio = window.devicePixelRatio || 1;
        const unit = (size / 2 - 8) / reach;
        const content = [positions, unit, ratio];
        if (painted.get(name)?.every((part, at) => part === content[at])) continue; // in a drag only one map changes
        painted.set(name, content);
        paintLetters(canvas, { positions, letters: Array.from(classes, (label) => digits[label]), colors: classes, middle, unit, size: Math.max(9, 2 * leastRadius(canvas)), marked: stage.closest("[data-slide=do]") ? [] : wrong }); // there maps are too small
      }
    };
    new ResizeObserver(() => { if (shown) paint(); }).observe(stage);
    return { draw({ epochs, range, labels }, numbers) {
      shown = numbers;
      const counts = countsOf[labels];
      const { results, before, low, high } = numbers;
      plane.clear();
      const most = Math.max(...counts);
      const width = (right - left) / bins;
      counts.forEach((count, bin) => {
        const from = left + bin * width;
        const isOwn = from + width / 2 > low && from + width / 2 <= high;
        const color = from + width / 2 <= 0 ? COLORS.miss : from + width / 2 <= LESSON.margin ? COLORS.after : COLORS.gray;
        const [x, y] = plane.at([from, count / most]);
        plane.add("rect", { x, y, width: Math.max(width * plane.scale[0] - 1, 1), height: count / most * plane.scale[1], fill: color, opacity: isOwn ? 1 : 0.55 });
      });
      for (const at of [0, LESSON.margin]) plane.line([at, 0], [at, 1 + letters / bars], { color: "currentColor", dashed: true });
      plane.text([-0.02, 1], isShort ? say("Hard") : say("hard: N is nearer"), { anchor: "end", size: 13, dy: -0.4 * letters });
      plane.text([LESSON.margin + 0.02, 1], isShort ? say("Easy") : say("easy: beyond μ = {margin}", { margin: LESSON.margin }), { anchor: "start", size: 13, dy: -0.4 * letters });
      plane.text([0.05, 1], say("semi-hard"), { dy: -1.6 * letters, size: 13 });
      const hasRoom = (-0.2 - left) * plane.scale[0] > 8 * letters; // for words left of the high bars
      const every = [100, 200, 500, 1000].find((step) => most / step < 3.5);
      for (let count = every; count <= most; count += every) { // the axis of counts stands where bars are low
        plane.line([left - margin / 2, count / most], [left, count / most], { color: "currentColor" });
        const words = count + every > most && hasRoom ? say("{count} triplets", { count }) : plain(count);
        plane.text([left, count / most], words, { anchor: "start", size: 12, dx: 4, dy: 0.35 * letters });
      }
      plane.line([low, under], [high, under], { color: COLORS.query, width: 6 });
      for (let tenths = -9; tenths <= 12; tenths += plane.isCrowded ? 6 : 3) plane.text([tenths / 10, 0], fixed(tenths / 10, 1), { size: 12, dy: 2 * handle + 0.9 * letters });
      plane.text([right, 0], "δ²(A, N) − δ²(A, P)", { anchor: "end", size: 12, dy: 2 * handle + 1.9 * letters });
      plane.svg.setAttribute("aria-label", say("Number of triplets by difference of squared distances; your range from {low} to {high} holds {count}, of which {wrong} have a wrong label",
        { low: fixed(low, 2), high: fixed(high, 2), count: results.own.count, wrong: percent(results.own.wrong) }));
      range.forEach((x, which) => ends[which].place([x, under]));
      for (const { name, title, canvas, words, sign } of maps) {
        const { mean: middle, reach, spread, used, steps } = results[name];
        const change_ = middle - reach > before.recall ? "▲" : middle + reach < before.recall ? "▼" : "=";
        sign.textContent = epochs ? `\u00a0${change_}` : "";
        const factor = fixed(spread / before.spread, 2);
        const short = new Set(results[name].recalls).size > 1 ? `${fixed(100 * middle, 1)}±${percent(reach)}` : percent(middle);
        const lines = plane.isCrowded ? [element("b", {}, `R@1 ${short}`)] : [element("b", {}, "R@1 ", element("span", { style: "white-space:nowrap" }, LESSON.interval(results[name])))];
        const isNamed = !isOn("predict", "do"); // a slide further on says what spread is
        if (!isTight && isNamed) lines.push(say("spread × {factor}", { factor }).replace("× ", "×\u00a0"));
        if ((!isPresented && !isPrinted) || (plane.isCrowded && !isTight && used < FEW)) lines.push(say("triplets: {used}", { used }));
        if (!isTight && isNamed && !isPrinted && !parts?.includes("bars")) lines.push(say("steps: {steps}", { steps })); // beside the bars the maps need the room
        words.hidden = isOn("predict") && !epochs; // the same of all maps
        words.replaceChildren(...lines.flatMap((line, at) => (at ? [element("br"), line] : [line])));
        canvas.setAttribute("aria-label", say("Map after {epochs} epochs on {used} triplets, {title}: R@1 {recall}, spread {factor} times that before training",
          { epochs, used, title, recall: LESSON.interval(results[name]), factor: fixed(spread / before.spread, 2) }));
      }
      button.textContent = epochs ? say("Train one more epoch") : say("Train one epoch"); // an answer has trained the first
      button.disabled = epochs >= 4;
      if (isPresented) stage.querySelector(".class-legend").lastChild.hidden = !isOn("predict") || !epochs;
      paint();
    } };
  },
  formula: (_state, { results: { own, easy }, before, low, high }) => {
    const number = (value) => `<mn>${fixed(value, 2)}</mn>`;
    const squared = (other) => `<msup><mi>δ</mi><mn>2</mn></msup><mo>(</mo><mi>A</mi><mo>,</mo><mi>${other}</mi><mo>)</mo>`;
    const after = { steps: own.steps, count: own.used, factor: fixed(own.spread / before.spread, 2) };
    return `<p>${say("Each step lowers the mean of the triplet loss {formula}, μ = {margin}, over a batch of at most {count} triplets.", { margin: LESSON.margin, count: LESSON.batch,
      formula: `<math><msub><mrow><mo>[</mo>${squared("P")}<mo>−</mo>${squared("N")}<mo>+</mo><mi>μ</mi><mo>]</mo></mrow><mo>+</mo></msub></math>` })}</p>
      <p>${say("Your range is {range}.", { range: `<math>${number(low)}<mo>&lt;</mo>${squared("N")}<mo>−</mo>${squared("P")}<mo>≤</mo>${number(high)}</math>` })}
      ${say("{count} of its triplets train.", after)} ${own.steps ? say("After {steps} steps the spread of the map is {factor} times the spread before.", after) : ""}
      ${say("{count} easy triplets have loss 0 at the start, so their gradient is 0.", { count: easy.used })}</p>`;
  },
  captions: { bars: [0, 1, 2], maps: [3, 4, 5, 6] },
  caption: [0, 1, 5, 6, 7, 8],
  presented: { do: [0, 1], see: [[0, 1, 2], [3, 4, 5, 6]], fails: [0, 1, 2] },
  states: { see: [{}, { epochs: 1 }], fails: { epochs: 1, range: [-2, 0] } }, // all hard triplets, so that the numbers are theirs
  parts: { maps: "predict do see1 fails check takeaway", easy: "predict see1 fails check takeaway", semi: "predict do see1 check takeaway", // with the bars, or more numbers, there is room for two maps
    hard: "predict see1 fails check takeaway", own: "predict do see1 check takeaway", bars: "do see0 formula" },
  fails: "Begin at 1 epoch: on <b>Hard</b>, R@1 falls from 83 % to 71.8 ± 3.1 %. Choose <b>Only those with right labels</b>: only to 79.6 ± 1.4 %. So most of the harm came from the labels. Both have equally many triplets and steps, so the rest comes from hardness: shrinking all distances lowers the loss of every hard triplet, but never below the margin.",
  takeaway: "While labels can be wrong, train on triplets that violate the margin but are not the hardest: they still move the images, and their labels are mostly right.",
  open: { page: "triplets", label: "the triplets of a run, with their angles and violations", query: () => ({ only: "1" }) },
  after: {
    text: "Labels come from a clustering, and some are wrong. A colleague proposes to pair each anchor with its nearest image of another cluster. What do you expect?",
    choices: ["The fastest learning", "Many of these negatives truly have the anchor’s class", "No movement: these triplets are easy"],
    right: 1,
    order: [1, 0, 2],
    why: ["Speed helps only if the labels are right, and exactly these negatives are often mislabeled.", "", "Near negatives make hard triplets: their loss is above 0, and they move images strongly."],
    because: "The nearest images of another cluster are often images of the same class that the clustering cut off. Training would push them apart.",
  },
  notes: {
    ask: "Why does the map of the easy triplets not change at all?",
    wrong: "“The larger the loss, the better the lesson.” A large loss can also be a wrong label. And its gradient does not move all points together: it pushes N away from A. Only the sum over many hard triplets shrinks the map, which lowers each of their losses, but never below the margin.",
    stuck: "“Hard” is measured once, in the map before training. In practice the triplets are chosen again in every batch, because semi-hard triplets become easy as training proceeds. In later epochs the spread of <b>Hard</b> rises again: after the first, only 261 of its 600 triplets are still hard, and the others push their negatives away. Do not compare the far left this way: 96 % of its triplets contain a wrong label, and the other 10 make a single step. With right labels, extend your range from −0.9 to 0.1: hard and semi-hard together reach 90.0 ± 1.4 % after four epochs, semi-hard alone 89.5 ± 1.1 %. Five seeds cannot tell them apart.",
  },
};
