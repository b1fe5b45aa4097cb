const CHOICES = 3; // the old result, the new result, equal
const EQUAL = 2;
const CERTAIN = 0.05; // a verdict needs a result that fair coins show less often
const PLANNED = 20; // judgments of a comparison: the number stands before the first of them
const MOST = 200; // pairs of a comparison

const COMPARED = {
  joined: say("Before: the sums of the columns of a digit. After: the sums of its rows as well."),
  noise: say("Before: the sums of the columns of a digit. After: the same with noise."),
  nothing: say("Before and after: the same sums with equally strong noise, drawn twice."),
};
const COMPARISONS = Object.keys(COMPARED);
const VERDICTS = { better: say("better"), worse: say("worse"), "cannot tell": say("cannot tell") };
const SIDES = [[say("left"), say("The left result is more similar")], [say("right"), say("The right result is more similar")]];

// The chance that at least `least` of `count` judgments are for the new embedding, if each is so with probability `share`.
function chanceOfAtLeast(least, count, share = 0.5) {
  let [chance, ways] = [0, 0]; // ways: logarithm of the number of ways to choose
  for (let number = 0; number <= count; number += 1) {
    if (number) ways += Math.log((count - number + 1) / number);
    if (number >= least) chance += Math.exp(ways + number * Math.log(share) + (count - number) * Math.log(1 - share));
  }
  return chance;
}

// How often fair coins give a result at least as one-sided: the exact binomial test.
const chanceOfCoins = (successes, count) => Math.min(1, 2 * chanceOfAtLeast(Math.max(successes, count - successes), count));

// The shares that this test does not reject: Clopper and Pearson's interval.
function shareInterval(successes, count) {
  const lowest = (least) => { // the share at which `least` or more have half of the chance CERTAIN
    let [low, high] = [0, 1];
    while (high - low > 1e-7) {
      const middle = (low + high) / 2;
      if (chanceOfAtLeast(least, count, middle) < CERTAIN / 2) low = middle;
      else high = middle;
    }
    return low;
  };
  return [successes ? lowest(successes) : 0, successes < count ? 1 - lowest(count - successes) : 1];
}

const EXAMPLE = [7, 10]; // new results that are preferred, and pairs, of the question
const HUNDRED = [70, 100]; // the same share of more pairs

const SHARP = 256; // pixels of a digit that is drawn large
const STROKE = [0.4, 0.72]; // densities between which the edge of a smooth stroke lies

// Turn enlarged digits, whose edges are blurred, into strokes with smooth edges.
function sharpen(tiles) {
  for (const canvas of tiles.querySelectorAll("canvas")) {
    const small = element("canvas", { width: canvas.width, height: canvas.height });
    small.getContext("2d").drawImage(canvas, 0, 0);
    canvas.width = canvas.height = SHARP;
    const context = canvas.getContext("2d");
    context.drawImage(small, 0, 0, SHARP, SHARP); // where the blur ends
    context.filter = `blur(${SHARP / 24}px)`; // the corners of the pixels
    context.drawImage(small, 0, 0, SHARP, SHARP);
    const image = context.getImageData(0, 0, SHARP, SHARP);
    image.data.forEach((light, at) => {
      const edge = clamp((1 - light / 255 - STROKE[0]) / (STROKE[1] - STROKE[0]), 0, 1);
      if (at % 4 < 3) image.data[at] = 255 * (1 - edge * edge * (3 - 2 * edge));
    });
    context.putImageData(image, 0, 0);
  }
  return tiles;
}

// The change of a number, with its sign.
const signed = (value) => `${value > 0 ? "+" : ""}${fixed(value, 3)}`;

// A browser draws its pairs and their sides once and keeps them: a reload changes nothing that was judged.
const SEED = (() => {
  const course = readCourse();
  keepCourse(course);
  return parseInt(course.reader.slice(0, 8), 16);
})();
const drawn = Object.fromEntries(COMPARISONS.map((name, at) => {
  const random = randomStream(SEED + at);
  const keys = Array.from({ length: MOST }, random);
  return [name, { order: keys.map((_key, pair) => pair).sort((one, other) => keys[one] - keys[other]),
    isLeft: Array.from({ length: MOST }, () => random() < 0.5) }]; // whether the new result stands on the left, by pair
}));

// Whether the own verdict says the opposite of the labels.
const isContrary = ({ verdict }, [before, after]) => verdict === (after > before ? "worse" : after < before ? "better" : "");

// The pairs of the question: how many prefer the new result, and how many the old one.
function buildVotes(stage) {
  const plane = new Plane(stage, { x: [-0.6, 7.5], y: [-0.3, 3.5], width: 640, height: 300, equal: false, label: "Votes" });
  plane.svg.dataset.part = "votes";
  return { draw() {
    plane.clear();
    const [after, count] = EXAMPLE;
    [[say("new"), after, COLORS.after, 2.4], [say("old"), count - after, COLORS.gray, 0.6]].forEach(([name, votes, color, y]) => {
      plane.text([-0.4, y + 0.5], `${name}: ${votes}`, { anchor: "start", size: 18, dy: -6 });
      for (let vote = 0; vote < votes; vote += 1) plane.dot([vote + 0.1, y], { color, radius: Math.min(22, 0.36 * plane.scale[0]) });
    });
  } };
}

const LESSON = {
  id: "better",
  number: 13,
  minutes: 10,
  title: "Did it get better? Judging without labels",
  aim: "Afterwards you can compare two embeddings without labels, and say how sure you are.",
  claim: "Without labels, people in blind comparisons and an encoder that took no part can both tell which embedding finds more similar images, if they also say how sure they are.",
  data: ["digits", "better"],
  before: {
    text: "You have no labels. An embedding has changed, and you compare its first results with the old ones, pair by pair, without knowing which is which. Of 10 pairs you prefer the new result in 7. Is the new embedding better?",
    choices: ["Yes: 70 % is a clear majority", "You cannot tell yet", "No: 3 pairs speak against it"],
    right: 1,
    why: ["A share of 10 pairs is uncertain: 7 of 10 can also come from fair coins.", "", "A few votes against do not refute a gain; they belong to any uncertain share."],
    because: "The interval of 7 in 10 reaches from 35 % to 93 %, so the true share may be below 50 %. Fair coins give a result at least as one-sided, 7 or more heads or tails of 10, in one case of three.",
  },
  touch: "Judge 20 pairs: which image is more similar to the query ★? Only then see the second opinion, which took no part; with the slider it judges more pairs.",
  see: "Each bar is a 95 % interval for the share of pairs that the new embedding wins. It holds every share that makes the count unsurprising: so many votes or more, and so many or fewer, would each have a chance of at least 2.5 %. A bar right of the dashed line says better, left of it worse. A bar that crosses the line cannot tell. A pair that you call equal is not counted. Your bar appears after 20 judgments: if it moved with each of them, it would show which result is the new one. The second opinion took no part in either embedding: it compares whitened raw pixels. Both embeddings see sums of the same pixels, so it is not independent of them. Your browser drew the pairs, and on which side of each the new result stands.",
  controls: [
    { name: "comparison", kind: "choice", label: "Comparison", start: "joined", options: COMPARISONS.map((value, at) => ({ value, words: String(at + 1) })) },
    { name: "asked", kind: "slider", label: "Pairs judged by the second opinion", low: 0, high: 200, step: 5, start: 10, told: ({ asked }) => [say("pairs"), plain(asked)] },
    { name: "opinion", kind: "choice", label: "Show the second opinion", start: "after", told: () => null, options: [{ value: "after", words: "after my 20 judgments" }, { value: "now", words: "now" }] },
  ],
  summary: { asked: 100, opinion: "now" },
  decisions: { names: COMPARISONS, enough: 1, made: (state) => COMPARISONS.filter((name) => state[`judged-${name}`].length >= PLANNED),
    wait: say("This text says what is true of the comparisons. It appears when you have decided one of them."), ask: say("Has everyone decided a comparison? The next slide says what is true of one of the three.") },
  // Judgments of each comparison: pair · 3 + 0 for the old result, 1 for the new one, 2 for equal.
  hidden: COMPARISONS.map((name) => ({ name: `judged-${name}`, start: [], count: MOST * CHOICES, isKept: true })),
  compute(state, { better, digits }) {
    const pairs = better[state.comparison];
    const { order, isLeft } = drawn[state.comparison];
    const judged = state[`judged-${state.comparison}`];
    const votes = judged.map((code) => code % CHOICES).filter((vote) => vote !== EQUAL);
    const opinions = Array.from(pairs.preferred.subarray(0, Math.round(state.asked)));
    const counted = (list) => {
      const [after, count] = [list.filter(Boolean).length, list.length];
      const chance = chanceOfCoins(after, count);
      return { after, count, chance, interval: shareInterval(after, count), verdict: chance >= CERTAIN ? "cannot tell" : 2 * after > count ? "better" : "worse" };
    };
    const seen = new Set(judged.map((code) => Math.floor(code / CHOICES)));
    const pair = order.find((other) => !seen.has(other));
    const results = [pairs.before[pair], pairs.after[pair]];
    const reach = 1.96 * pairs.error; // of an interval that holds in 19 of 20 cases
    const whole = [pairs.difference - reach, pairs.difference + reach];
    const isDone = judged.length >= PLANNED;
    return { judged: judged.length, isDone, own: isDone ? counted(votes) : null, opinion: counted(opinions), pair, query: pairs.query[pair], isLeft: isLeft[pair],
      shown: isLeft[pair] ? results.toReversed() : results, whole, wholeVerdict: whole[0] > 0 ? "better" : whole[1] < 0 ? "worse" : "cannot tell",
      recall: pairs.recall, images: digits.classes.length };
  },
  drawn, // for tests
  interval: shareInterval,
  counted: ({ after, count, verdict }) => say("{count} of {all}: {verdict}", { count: after, all: count, verdict: VERDICTS[verdict] }),
  ownWords: ({ own, judged }) => (own ? LESSON.counted(own) : say("{count} of {all} judged", { count: judged, all: PLANNED })),
  change: ([from, to]) => `${fixed(from, 1)} → ${percent(to / 100)}`,
  // A verdict that is seen before the own judgments would sway them.
  isShown: ({ isDone }, { opinion }) => isDone || opinion === "now",
  opinionWords: (numbers, state) => (LESSON.isShown(numbers, state) ? LESSON.counted(numbers.opinion) : say("after {count} judgments", { count: PLANNED })),
  readout: (numbers, state) => [[say("you"), LESSON.ownWords(numbers)], [say("second opinion"), LESSON.opinionWords(numbers, state)],
    [say("R@1 by labels (first result right)"), numbers.isDone ? LESSON.change(numbers.recall) : say("after {count} judgments", { count: PLANNED })]],
  build({ stage, data: { digits }, state, change, parts }) {
    if (parts?.includes("votes")) return buildVotes(stage); // the question alone
    const isBars = parts && !parts.includes("pair"); // a slide without judgments, which shows no row that waits for them
    const asking = element("div", { "data-part": "pair", style: "display:grid;gap:6px;justify-items:start;min-height:128px;align-content:start" });
    stage.append(asking);
    const plane = new Plane(stage, { x: [-0.28, 1.12], y: [0.35, 2.4], width: 640, height: (stage.clientWidth < 480 ? 230 : 175) * Math.max(1, leastLetters(stage) / 16), equal: false, label: "Intervals of the judgments" });
    plane.svg.classList.add("later");
    plane.svg.dataset.part = "bars";
    const picture = (row) => digits.pixels.subarray(64 * row, 64 * row + 64);
    const judgments = () => `judged-${state().comparison}`;
    const judge = (pair, vote) => change({ [judgments()]: [...state()[judgments()], CHOICES * pair + vote] });
    return { draw(shownState, numbers) {
      const { comparison } = shownState;
      const isOpen = LESSON.isShown(numbers, shownState);
      const isWaiting = stage.closest(".locked:not(.present)") !== null && !plane.isCrowded; // the bars are not shown yet: the pictures take their room
      const { own, opinion, pair, judged, isDone, query, shown, isLeft, recall } = numbers;
      const [low, high] = own?.interval.map((share) => percent(share)) ?? [];
      const focused = [...asking.querySelectorAll("button")].indexOf(asking.getRootNode().activeElement);
      const tile = (row, at) => ({ pixels: picture(row), kind: "", words: SIDES[at][0], label: SIDES[at][1], onclick: () => judge(pair, Number((at === 0) === isLeft)) });
      asking.replaceChildren(...(isDone ? [
        element("span", { role: "status" }, `${say("You judged {count} pairs of comparison {comparison}.", { count: judged, comparison: COMPARISONS.indexOf(comparison) + 1 })} ${own.count ? `${say("You preferred the new result in {count} of {all}: an interval from {low} to {high}.", { count: own.after, all: own.count, low, high })} ` : ""}${COMPARED[comparison]} ${say("By the labels, R@1 changed: {change}.", { change: LESSON.change(recall) })}${isContrary(own, recall) ? ` ${say("Your verdict and the labels disagree: you judged which images look similar, and labels say which show the same digit.")}` : ""}`),
      ] : [element("span", {}, say("Pair {number} of {count}: press the result that is more similar to the query ★.", { number: judged + 1, count: PLANNED })),
        element("div", { style: "display:flex;gap:14px;align-items:center;flex-wrap:wrap" },
          sharpen(digitTiles([{ pixels: picture(query), kind: "query", words: plane.isCrowded ? "" : say("query"), label: say("Query") }, ...shown.map(tile)], say("A query and two results"), leastLetters(stage) ? Math.max(64, stage.clientWidth / 4.2) : isWaiting ? stage.clientWidth / 3.8 : Math.max(64, stage.clientWidth / 4.6))),
          element("button", { type: "button", onclick: () => judge(pair, EQUAL) }, say("Equal")))]));
      if (focused >= 0) [...asking.querySelectorAll("button")].at(Math.min(focused, 2))?.focus();
      plane.clear();
      const isCompared = isBars && stage.closest(".lesson")?.dataset.slide === "fails"; // beside the many pairs of the second opinion
      const isExample = !own && (isCompared || !(isOpen && opinion.count)); // until a bar of the reader's own is drawn
      const examples = isBars && !isCompared ? [EXAMPLE, HUNDRED] : [EXAMPLE];
      const rows = [[say("you"), own, COLORS.query, isExample ? 2.15 : 1.9], [say("second opinion"), isOpen ? opinion : null, COLORS.hit, isExample ? (isBars ? 1.9 : 1.65) : 1.1],
        ...isExample ? examples.map(([after, count], at) => [say("example"), { after, count, interval: shareInterval(after, count) }, COLORS.gray, isCompared ? 1.1 : isBars ? 1.75 - 0.85 * at : 0.9]) : []].filter(([, counts]) => counts?.count || !isBars);
      const labels = rows.filter(([, counts]) => counts?.count).map(([, , , y]) => y).sort((one, other) => one - other);
      [0.65, ...labels.map((y) => y + 0.36)].forEach((from, at) => { // the line leaves out the words above the bars: beside a letter it looks like one
        if (at < labels.length || from < 1.5) plane.line([0.5, from], [0.5, labels[at] + 0.08 || (isExample ? 1.42 : 1.6)], { color: COLORS.gray, dashed: true });
      });
      rows.forEach(([name, counts, color, y], row) => {
        const isOwn = counts?.verdict !== undefined; // no example
        const lines = plane.isCrowded ? [...name.split(" "), ...counts && !isOwn ? [say("{count} of {all}", { count: counts.after, all: counts.count })] : []] : [name]; // a long name would lie on its bar
        lines.forEach((line, at) => plane.text([-0.27, y], line, { anchor: "start", size: 14, dy: 5 + 1.1 * plane.least * (at - (lines.length - 1) / 2) }));
        if (!counts?.count) {
          const words = counts ? say("no judgments") : row ? LESSON.opinionWords(numbers, shownState) : LESSON.ownWords(numbers);
          const short = counts ? "0" : row ? "?" : `${judged} / ${PLANNED}`; // the numbers beside the picture say it in words
          const letters = Math.max(14, plane.least);
          const isShort = plane.isCrowded || plane.at([-0.27, y])[0] + widthOf(name, letters) + letters > plane.at([0.5, y])[0] - widthOf(words, letters) / 2;
          plane.text([plane.isCrowded ? 0.75 : 0.5, y], isShort ? short : words, { size: 13, dy: 5, ...HALO });
          return;
        }
        const { after, count, interval: [low, high], verdict } = counts;
        plane.line([low, y], [high, y], { color, width: 9, "stroke-opacity": 0.55, "stroke-linecap": "round" });
        if (isOwn) plane.dot([after / count, y], { color, radius: 8, stroke: "currentColor" });
        else plane.line([after / count, y - 0.1], [after / count, y + 0.1], { color: "currentColor", width: 4 });
        const ends = { count: after, all: count, low: percent(low, 0), high: percent(high, 0) };
        const said = isOwn ? say("{verdict}: {low} to {high}", { low: fixed(100 * low, 0), high: ends.high, verdict: VERDICTS[verdict] }) : plane.isCrowded ? say("{low} to {high}", ends) : say("{count} of {all}: {low} to {high}", ends);
        const letters = Math.max(14, plane.least);
        const nameEnd = plane.at([-0.27, y])[0] + Math.max(...lines.map((line) => widthOf(line, letters))) + letters;
        const isAbove = lines.length > 1 && plane.at([(low + high) / 2, y])[0] - widthOf(said, letters) / 2 < nameEnd; // beside its name there is no room
        plane.text([(low + high) / 2, y], said, { anchor: "middle", size: 13, dy: isAbove ? -14 - 0.75 * letters : -14, ...HALO });
      });
      for (const share of [0, 0.5, 1]) plane.text([share, 0.42], percent(share, 0), { size: 13 });
      plane.svg.setAttribute("aria-label", say("Shares of pairs for the new embedding: you {own}; second opinion {opinion}", { own: LESSON.ownWords(numbers), opinion: LESSON.opinionWords(numbers, shownState) }));
    } };
  },
  formula: (state, numbers, { better: { record } }) => {
    const { opinion: { after, count, chance, interval: [low, high], verdict }, whole, wholeVerdict, isDone, images } = numbers;
    const isShown = LESSON.isShown(numbers, state);
    const most = Math.max(after, count - after);
    const sumOf = (from, to) => `<mn>2</mn><mo>·</mo><munderover><mo>∑</mo><mrow><mi>i</mi><mo>=</mo><mn>${from}</mn></mrow><mn>${to}</mn></munderover><mrow><mo>(</mo><mfrac linethickness="0"><mn>${to}</mn><mi>i</mi></mfrac><mo>)</mo></mrow><msup><mn>2</mn><mrow><mo>−</mo><mn>${to}</mn></mrow></msup>`;
    const sum = sumOf(most, count);
    const example = { after: EXAMPLE[0], count: EXAMPLE[1], formula: `<math><mi>P</mi><mo>=</mo>${sumOf(...EXAMPLE)}<mo>=</mo><mn>${fixed(chanceOfCoins(...EXAMPLE), 3)}</mn></math>` };
    const isTiny = chance < 0.0005; // three digits would say that it is 0
    const value = `<mo>${isTiny ? "&lt;" : "="}</mo><mn>${fixed(isTiny ? 0.001 : chance, 3)}</mn>`;
    const found = { after, count, low: percent(low), high: percent(high), verdict: VERDICTS[verdict],
      formula: `<math><mi>P</mi>${2 * after === count ? "" : `<mo>=</mo>${sum}`}${value}</math>` };
    return `<p>${!isShown ? `${say("If both embeddings were equally good, each pair would be the toss of a fair coin. A result at least as one-sided as {after} of {count} pairs then has the probability {formula}.", example)} ${say("The formula with the numbers of the second opinion appears after {count} judgments.", { count: PLANNED })}` : count ? `${say("The second opinion prefers the new result in {after} of {count} pairs. If both embeddings were equally good, each pair would be the toss of a fair coin. A result at least as one-sided then has the probability {formula}.", found)}
      ${say("Below 0.05 the verdict is better or worse; here it is <b>{verdict}</b>. The bar holds the shares that this exact binomial test does not reject, from {low} to {high}. The test treats the queries as independent: where queries share a result, the true interval is wider.", found)}`
    : say("The second opinion has judged no pairs.")}</p>
      ${isDone && count ? `<p>${say("Asked about all {images} images, the second opinion says <b>{verdict}</b>: the interval of the change in its cosine between a query and the first result reaches from {low} to {high}. This can decide where {count} votes cannot, because it uses more images and also how much more similar a result is. The interval allows for results that queries share.", {
    images, count, low: signed(whole[0]), high: signed(whole[1]), verdict: VERDICTS[wholeVerdict] })}</p>` : ""}
      <p class="aside">${say("How far can you trust it? On six data sets with labels, {differences} pairs of embeddings differed by more than two points of R@1. The second opinion decided {decided} of them, and {right} of these verdicts were right: a share between {low} and {high}, by the same test. This interval treats the pairs as independent. They are not, because each data set lends its images to many pairs and an embedding stands in several of them: the true interval is wider.", {
      differences: record.large, decided: record.decided, right: record.right,
      ...Object.fromEntries(shareInterval(record.right, record.decided).map((share, at) => [["low", "high"][at], percent(share, at ? 0 : 1)])) })}</p>`;
  },
  caption: [0, 1, 2, 3],
  presented: { see: [[0, 2, 3]], fails: [1, 2] },
  states: { see: [{}], formula: {}, check: {}, takeaway: {}, fails: { comparison: COMPARISONS[1], asked: 125, opinion: "now" } },
  parts: { pair: "", votes: "predict", bars: "see0 formula fails check takeaway" },
  fails: "Choose comparison 3 and ask for more and more pairs: both embeddings have equal noise, and the answer stays “cannot tell”, as it should. In comparison 2 move the slider slowly: the bar leaves the line at 125 pairs, crosses it at 140, leaves it at 180, crosses it at 190, leaves it at 195, and crosses it at 200. If you stop when you like, you choose the verdict. And a judge that took part, or was trained by one of the embeddings, agrees with itself. Even an independent judge sees similarity, not your classes.",
  takeaway: "Judge blindly, ask a judge that took no part, decide in advance how many pairs you judge, and report the interval together with the share.",
  open: { page: "compare", label: "blind pairs and the second opinion for two runs" },
  after: {
    text: "A colleague trains a model with encoder E and lets E itself judge whether the result is better. E says: better, and the interval is narrow. What do you answer?",
    choices: ["Good: a narrow interval is certain", "Ask another encoder: E took part", "Judge more pairs with E"],
    right: 1,
    why: ["The interval is certain only about what E says, and E is not independent.", "", "More pairs make the interval narrower around the same biased share."],
    because: "A narrow interval removes chance, not bias. E calls similar what it made similar.",
  },
  notes: {
    ask: "How many pairs would you judge if the true share is 60 %? A verdict needs an interval that does not contain 50 %.",
    wrong: "“A verdict of cannot tell means that both are equal.” It means that these judgments do not decide; more of them may.",
    stuck: "If the true share is 60 %, the judged share varies around it by chance: the exact test decides in 46 % of all comparisons with 100 pairs, and in 79 % with 200. The share counts pairs whose first results differ. Where both embeddings find the same image there is nothing to judge, so 60 % of the pairs can be a small change of R@1.",
  },
};
