const IMAGES = 600; // the first digits
const SIDE = 8;
const IMAGE_SETS = { birds: say("birds"), drawings: say("drawings"), clothes: say("clothes") }; // of the record
const unitVector = (values) => { const length = Math.hypot(...values); return values.map((value) => value / length); };

// What each weak encoder sees of 64 pixels: eight sums, or seven sums of neighboring rows.
const SEEN = {
  columns: (pixels) => Array.from({ length: SIDE }, (_empty, column) => Array.from({ length: SIDE }, (_row, row) => pixels[SIDE * row + column]).reduce((sum, value) => sum + value, 0)),
  rows: (pixels) => Array.from({ length: SIDE }, (_empty, row) => pixels.slice(SIDE * row, SIDE * row + SIDE).reduce((sum, value) => sum + value, 0)),
  pairs: (pixels) => { const sums = SEEN.rows(pixels); return sums.slice(1).map((sum, row) => sum + sums[row]); },
};
const encoded = new Map(); // name → unit rows
const neighborsOf = new Map(); // name → the nearest image of each image
const NAMES = { columns: "B", pairs: "C" };
function encode(name, { pixels }) {
  if (!encoded.has(name)) {
    encoded.set(name, Array.from({ length: IMAGES }, (_empty, image) => unitVector(SEEN[name](Array.from(pixels.subarray(64 * image, 64 * image + 64))))));
  }
  return encoded.get(name);
}

const dotProduct = (one, other) => one.reduce((sum, value, at) => sum + value * other[at], 0);
// The most similar other image of each image; of equally similar images the first.
function nearestImages(rows) {
  return rows.map((row, image) => {
    let [best, found] = [-Infinity, -1];
    for (let other = 0; other < rows.length; other += 1) {
      if (other === image) continue;
      let cosine = 0;
      for (let at = 0; at < row.length; at += 1) cosine += row[at] * rows[other][at];
      if (cosine > best + 1e-12) [best, found] = [cosine, other];
    }
    return found;
  });
}
const joined = (first, second, weight) => first.map((row, image) => unitVector([...row, ...second[image].map((value) => weight * value)]));

const LESSON = {
  id: "encoders",
  number: 14,
  minutes: 7,
  title: "Two weak encoders",
  aim: "Afterwards you can choose a second encoder that helps the first.",
  claim: "Two encoders that each miss much find more together, if their wrong neighbors differ. A second encoder with the same wrong neighbors hardly helps.",
  data: ["digits", "encoders"],
  before: {
    text: "Encoder A sees only how much ink each row of a digit holds, and its R@1 (the share of images whose nearest image is the same digit) is about 80 %. Encoder B sees only the columns and has about 60 %. You write both vectors one behind the other. What is R@1 then?",
    choices: ["About 80 %: the better encoder decides", "Above 90 %", "About 70 %, the mean of both"],
    right: 1,
    order: [0, 2, 1],
    why: ["A does not decide alone: where A hesitates, the columns choose.", "", "Success rates are not averaged: in each search the two similarities are."],
    shows: { second: "columns", weight: 1 },
    because: "Two digits with equal rows rarely have equal columns too. A wrong neighbor must deceive both encoders at once. On 57 images both fail alone, never with the same wrong neighbor, and the joined vector finds 44: a right image is near in both.",
  },
  touch: "Set the weight of the second encoder to 0, then raise it. Then exchange B for C, which sees the sums of neighboring rows: C alone is much stronger than B.",
  see: "The rectangle holds all 600 images. Left: encoder A finds the right digit; right: it fails. Lower part of each side: the second encoder is right; upper part: it is wrong. Filled blue: the joined vector is right; dashed orange: it is wrong; filled orange: wrong, and both encoders have the same wrong neighbor. The digits below: a query ★ that one of them misses, with the nearest image by each.",
  controls: [
    { name: "second", kind: "choice", label: "Second encoder", start: "columns", options: [{ value: "columns", words: "B: columns" }, { value: "pairs", words: "C: pairs of rows" }] },
    { name: "weight", kind: "slider", label: "Weight w of the second encoder", low: 0, high: 3, step: 0.1, start: 0 },
  ],
  hidden: [{ name: "query", start: 0, low: 0, high: 9999 }],
  compute({ second, weight, query }, { digits }) {
    const [one, two] = [encode("rows", digits), encode(second, digits)];
    const spaces = [one, two, joined(one, two, weight)];
    const found = ["rows", second].map((name, at) => {
      if (!neighborsOf.has(name)) neighborsOf.set(name, nearestImages(spaces[at]));
      return neighborsOf.get(name);
    });
    found.push(nearestImages(spaces[2]));
    const { classes } = digits;
    const right = found.map((list) => list.map((other, image) => classes[other] === classes[image]));
    const share = (list) => list.filter(Boolean).length / IMAGES;
    // cells[a][b]: images on which A is right (a = 1) or wrong, the second encoder too, and on how many of them the joined vector is right
    const cells = [0, 1].map((a) => [0, 1].map((b) => {
      const members = Array.from({ length: IMAGES }, (_empty, image) => image).filter((image) => Number(right[0][image]) === a && Number(right[1][image]) === b);
      return { count: members.length, both: members.filter((image) => right[2][image]).length };
    }));
    const doubtful = Array.from({ length: IMAGES }, (_empty, image) => image).filter((image) => !right[0][image] || !right[1][image]);
    const row = doubtful[Math.round(query) % doubtful.length];
    const other = found[2][row];
    return { recalls: right.map(share), cells, row, results: found.map((list) => list[row]), right: right.map((list) => list[row]),
      cosines: spaces.map((rows) => dotProduct(rows[row], rows[other])), doubtful: doubtful.length,
      deceived: right[0].filter((isRight, image) => !isRight && found[0][image] === found[1][image]).length }; // images for which both have the same wrong neighbor
  },
  // How far chance moves a share, in percent, of so many images in 19 of 20 cases.
  // The sets of images on which both encoders together may find no more than the better one: the gain lies within its bound.
  undecided: (record) => record.filter(({ images, first: [one], second: [other], both: [joined] }) => {
    const better = Math.max(one, other);
    return joined - better <= Math.hypot(LESSON.reach(better, images), LESSON.reach(joined, images));
  }).map(({ name }) => name),
  reach: (value, images) => 1.96 * Math.sqrt(value * (100 - value) / images),
  readout: ({ recalls: [one, two, both], cells, deceived }, { second }) => [["R@1, A", percent(one)], [`R@1, ${NAMES[second]}`, percent(two)], [say("R@1, both"), percent(both)],
    [say("Misses of A that {name} misses too", { name: NAMES[second] }), say("{count} of {all}", { count: cells[0][0].count, all: cells[0][0].count + cells[0][1].count })],
    [say("with the same wrong neighbor"), say("{count} of {all}", { count: deceived, all: cells[0][0].count })]],
  build({ stage, data: { digits }, change, state }) {
    const isPrinted = isOnPaper(stage); // a handout shows weight 0, which tells nothing
    const plane = new Plane(stage, { x: [-0.02, leastLetters(stage) ? 1.5 : 1.37], y: [-0.03, 1.1], width: 640, height: 330, equal: false, label: "Errors of two encoders" });
    const row = element("div", {});
    stage.append(row);
    const picture = (image) => digits.pixels.subarray(64 * image, 64 * image + 64);
    return { draw({ second, weight }, { recalls, cells, deceived, row: image, results, right, doubtful }) {
      plane.clear();
      const box = (x, y, width, height, color, attributes) => plane.path([[x, y], [x + width, y], [x + width, y + height], [x, y + height]],
        { color, closed: true, width: 1.5, ...attributes });
      [1, 0].forEach((a) => {
        const [left, width] = [a ? 0 : recalls[0] + 0.01, a ? recalls[0] : 1 - recalls[0]];
        const total = cells[a][0].count + cells[a][1].count || 1;
        let bottom = 0;
        for (const b of [1, 0]) {
          const { count, both } = cells[a][b];
          const height = 0.98 * count / total;
          const filled = width * both / (count || 1);
          if (height > 0) {
            if (filled) box(left, bottom, filled, height, COLORS.hit, { fill: COLORS.hit, "fill-opacity": 0.45 });
            const same = a || b ? 0 : width * deceived / (count || 1);
            if (same) box(left + filled, bottom, same, height, COLORS.miss, { fill: COLORS.miss, "fill-opacity": 0.6 });
            if (count > both) box(left + filled + same, bottom, width - filled - same, height, COLORS.miss, { fill: COLORS.miss, "fill-opacity": 0.12, "stroke-dasharray": "5 4" });
            const look = { size: 13, anchor: a ? "middle" : "start", class: isPrinted ? "" : "later" };
            const [name, share] = [`${NAMES[second]} ${b ? "✓" : "✕"}`, say("{count} of {all}", { count: both, all: count })];
            const letters = Math.max(13, plane.least);
            if (height > 0.12) { // inside of the larger part of a wide cell, beside a narrow one
              const [from, to] = 2 * filled > width ? [left, left + filled] : [left + filled, left + width];
              const place = a ? [(from + to) / 2, bottom + height / 2] : [left + width + 0.015, bottom + height / 2];
              plane.text(place, name, { ...look, dy: -4 });
              plane.text(place, share, { ...look, dy: letters });
            } else if (a && height > 0.06) { // in one line, in the part that holds it
              const line = `${name}  ${share}`;
              const long = 0.04 + widthOf(line, letters) / plane.scale[0];
              const start = filled > long ? left : width - filled > long ? left + filled : null;
              if (start !== null) plane.text([start + 0.02, bottom + height / 2], line, { ...look, anchor: "start", dy: 0.35 * letters });
            }
          }
          bottom += height + 0.02;
        }
        plane.text([left, 1.04], a ? say("A is right") : say("A is wrong"), { size: 14, anchor: "start", "font-weight": 700 });
      });
      plane.svg.setAttribute("aria-label", say("Of 600 images, A finds {one}, the second encoder {two}, and both with weight {weight} find {joined}. Of the {count} images on which both fail, {both} are found by the joined vector.", {
        one: percent(recalls[0]), two: percent(recalls[1]), joined: percent(recalls[2]), weight, count: cells[0][0].count, both: cells[0][0].both }));
      const names = ["A", NAMES[second], say("both")];
      row.replaceChildren(element("button", { type: "button", class: "pressed main", onclick: () => change({ query: (Math.round(state().query) + 1) % doubtful }) }, say("Another query")),
        digitTiles([{ pixels: picture(image), kind: "query", words: String(digits.classes[image]), label: say("Query: digit {digit}", { digit: digits.classes[image] }) },
          ...results.map((other, at) => ({ pixels: picture(other), kind: right[at] ? "hit" : "miss", words: names[at],
            label: right[at] ? say("Nearest by {name}: digit {digit}, right", { name: names[at], digit: digits.classes[other] })
              : say("Nearest by {name}: digit {digit}, wrong", { name: names[at], digit: digits.classes[other] }) }))], say("A query and its nearest image by each encoder"), 48));
    } };
  },
  formula: ({ second, weight }, { cosines }, { encoders }) => {
    const square = Number((weight ** 2).toFixed(2));
    const digits = digitsThatHold(cosines.slice(0, 2), (a, b) => (a + square * b) / (1 + square), 3);
    const number = (value, count = digits) => `<mn>${fixed(value, count)}</mn>`;
    const cells = (list) => list.map((words) => `<td style="padding:0 4px;text-align:right;white-space:nowrap">${words}</td>`).join("");
    const ofImages = (value, images) => `${fixed(value, 1)} ± ${fixed(LESSON.reach(value, images), 1)}`;
    const table = (measure, words) => `<table style="width:auto"><thead><tr><td></td><th scope="colgroup" colspan="3" style="padding:0 4px">${measure}</th></tr><tr><td></td>${["E", "S", say("both")].map((name) => `<th scope="col" style="padding:0 4px">${name}</th>`).join("")}</tr></thead>
      <tbody>${encoders.record.map(({ name, images, ...spaces }) => `<tr><th scope="row" style="text-align:left">${IMAGE_SETS[name]}</th>${cells(["first", "second", "both"].map((space) => words(spaces[space], images)))}</tr>`).join("")}</tbody></table>`; // one for each measure: a telephone shows them one below the other
    const mean = `<math><mi>c</mi><mo>=</mo><mfrac><mrow><msub><mi>c</mi><mi>A</mi></msub><mo>+</mo><msup><mi>w</mi><mn>2</mn></msup><msub><mi>c</mi><mi>${NAMES[second]}</mi></msub></mrow><mrow><mn>1</mn><mo>+</mo><msup><mi>w</mi><mn>2</mn></msup></mrow></mfrac></math>
      <math><mo>=</mo><mfrac><mrow>${number(cosines[0])}<mo>+</mo><mn>${fixed(weight ** 2, 2)}</mn><mo>·</mo>${number(cosines[1])}</mrow><mn>${fixed(1 + weight ** 2, 2)}</mn></mfrac><mo>=</mo>${number(cosines[2], 3)}</math>`;
    return `<p>${say("Both vectors have length 1 before they are joined, so the cosine of the joined vectors is a weighted mean of both cosines: {formula}, for the query ★ and its nearest image by the joined vector.", { formula: mean })}</p>
      <p class="aside">${say("Where both encoders have the same nearest image, the joined vector has it too, with any weight: no other image has a larger mean.")}</p>
      <details class="aside"><summary>${say("Measured with two real encoders")}</summary><p>${say("R@1 and MAP@R in percent of EfficientNet-Lite0 (E), of SqueezeNet (S) and of both, without labels or training. ± bounds in 19 of 20 cases what the choice of images leaves open; the record has none for MAP@R.")}
      ${say("A gain of R@1 over the better encoder counts if it exceeds {formula}, with the ± of both numbers, a and b, as if they came from different images; gains on these do not count: {names}.", { names: LESSON.undecided(encoders.record).map((name) => IMAGE_SETS[name]).join(", "),
    formula: "<math><msqrt><msup><mi>a</mi><mn>2</mn></msup><mo>+</mo><msup><mi>b</mi><mn>2</mn></msup></msqrt></math>" })}</p>
      <div style="display:flex;flex-wrap:wrap;gap:6px 24px">${table("R@1", ([recall], images) => ofImages(recall, images))}${table("MAP@R", ([, map]) => fixed(map, 1))}</div></details>`;
  },
  caption: [0, 1, 2, 3],
  presented: { see: [[0, 1, 2], [3, 4]], fails: [0, 1] },
  states: { unanswered: { weight: 1 }, fails: { second: "pairs", weight: 1 } },
  fails: "Choose encoder C: alone it finds 79 %, B 59 %. But on 42 of A’s 113 misses it has the same wrong neighbor, B on none. Joined with A, it never beats A: 80.7 against 81.2 % at w = 1. With B it finds up to 96 %. Now choose B and raise w to 3: R@1 falls to 90 %, because the joined vector follows the weaker encoder more and more. Two encoders also cost twice the time, and neither of them may judge the result, because a judge must take no part.",
  takeaway: "Join encoders whose wrong neighbors differ. A second encoder that is weaker but sees something else helps more than a strong one that is deceived by the same images.",
  open: { page: "refine", label: "join encoders and whiten them, without labels" },
  after: {
    text: "Encoder A has R@1 80 %. You can add F with 78 %, which has the same wrong neighbors as A, or G with 60 %, which has others. Which one do you try first?",
    choices: ["F: it is stronger", "G: its wrong neighbors differ", "Neither: joining needs labels"],
    right: 1,
    order: [0, 2, 1],
    why: ["Its strength lies where A is strong already; A’s errors stay.", "", "Joining only puts two vectors side by side, and that needs no label."],
    because: "Where both have the same wrong neighbor, no weight helps. G can correct A’s errors if A outvotes G elsewhere; choose its weight with care, because with too large a weight G outvotes A.",
  },
  notes: {
    ask: "How could you see without labels that two encoders make different errors?",
    wrong: "“The joined R@1 lies between both.” A mean of two cosines is not a mean of two success rates: a wrong image must be near in both.",
    stuck: "Students read the rectangle as a map. It is a table with areas: each area is a number of images, and its blue part is the share on which the joined vector is right. It can be right where both encoders fail: the two wrong neighbors differ, and a third image is near in both.",
  },
};
