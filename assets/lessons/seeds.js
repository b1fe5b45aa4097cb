const IMAGES = 896; // digits 5 to 9, the queries of every run
const TOTAL = 10; // runs of each setting
const LUCKY = -1; // the draw of B's best and A's worst runs
const BIN = 0.2;
const [COLOR_A, COLOR_B] = [PALETTE[6], COLORS.after];
const TRUTH = {
  nothing: say("A and B have the same settings. Only their seeds differ, so no gain exists: even ten runs of each differ by chance."),
  angle: say("B trains with a larger angle α in its loss, 55° instead of 45°."),
  width: say("B has a wider embedding: 10 numbers for each image instead of 8."),
};
const VERDICTS = [["a", say("A is better")], ["b", say("B is better")], ["open", say("Too close to say")]];

// The chance of each sum of n values, each drawn from all of them: a run that was drawn can be drawn again, as a new run can
// repeat a result. Without this, ten of ten runs would be one draw, and chance would seem to vanish.
function chancesOfSums(values, n) {
  let sums = new Map([[0, 1]]);
  for (let size = 0; size < n; size += 1) {
    const longer = new Map();
    for (const [sum, chance] of sums) {
      for (const value of values) longer.set(sum + value, (longer.get(sum + value) ?? 0) + chance / values.length);
    }
    sums = longer;
  }
  return sums;
}

// Which decision all ten runs of each setting support.
function supported({ difference, reach, error, isReal }) {
  const verdict = VERDICTS[isReal ? Number(difference > 0) : 2][1];
  return say("With all ten runs of each, the gain is {gain} ± {reach} points (95 % interval), {errors} standard errors. The data support “{verdict}”.",
    { gain: `${difference < 0 ? "−" : "+"}${fixed(Math.abs(difference), 2)}`, reach: fixed(reach, 2), errors: fixed(Math.abs(difference / error), 1), verdict });
}

function chooseRuns(random, n) {
  const runs = Array.from({ length: TOTAL }, (_empty, run) => run);
  return Array.from({ length: n }, () => runs.splice(Math.floor(random() * runs.length), 1)[0]);
}

const LESSON = {
  id: "seeds",
  number: 11,
  minutes: 6,
  title: "Is the gain real?",
  aim: "Afterwards you can judge whether a gain over a few runs is more than chance.",
  claim: "The seed of a training run decides its random choices. A gain means little until you know how much the seed alone changes the result.",
  data: ["seeds"],
  before: {
    text: "Setting B beats setting A in three training runs each. Is B better?",
    choices: ["Yes: three runs are enough", "No: B was lucky", "It depends on how much the runs of one setting differ"],
    right: 2,
    why: ["Three runs are enough only if runs of one setting differ little.", "Luck is possible but not shown: a gain far above the spread is hardly luck.", ""],
    because: "If runs of one setting differ as much as A and B do, the next three runs may turn the result around.",
  },
  touch: "Look at the drawn runs and decide which setting is better; then press “Draw other runs” a few times. Repeat it with all three comparisons.",
  see: "Each mark is one training run. Runs of one setting differ only in their seed: it decides the random start and image order. The thick line is the mean of drawn runs, the bar one standard deviation to each side. After you decide, hollow marks show the other runs. The columns show the gain in all possible draws of new runs, in which each run can be any of the ten.",
  controls: [
    { name: "comparison", kind: "choice", label: "Comparison", start: "nothing", options: [{ value: "nothing", words: "1" }, { value: "angle", words: "2" }, { value: "width", words: "3" }] },
    { name: "n", kind: "slider", label: "Runs drawn of each setting", low: 1, high: 10, step: 1, start: 3 },
  ],
  summary: { verdict: "nothing-open" },
  decisions: { names: Object.keys(TRUTH), made: ({ verdict }) => (verdict ? [verdict.split("-")[0]] : []) },
  hidden: [{ name: "draw", start: 9, low: LUCKY, high: 9999 },
    { name: "verdict", start: "", options: ["", ...Object.keys(TRUTH).flatMap((name) => VERDICTS.map(([verdict]) => `${name}-${verdict}`))].map((value) => ({ value })) }],
  compute({ comparison, n, draw }, { seeds }) {
    const [a, b] = [seeds.a, seeds.b[comparison]].map((recalls) => Array.from(recalls));
    const random = randomStream(7919 * (draw + 1));
    const ranked = (recalls, sign) => recalls.map((_recall, run) => run).sort((one, other) => sign * (recalls[one] - recalls[other])).slice(0, n);
    const [runsA, runsB] = draw === LUCKY ? [ranked(a, 1), ranked(b, -1)] : [chooseRuns(random, n), chooseRuns(random, n)];
    const [drawnA, drawnB] = [runsA.map((run) => a[run]), runsB.map((run) => b[run])];
    const [deviationA, deviationB] = [deviation(drawnA), deviation(drawnB)];
    const hits = (recalls) => recalls.map((recall) => Math.round(recall / 100 * IMAGES));
    const gains = new Map(); // of all possible draws: bin → chance
    let [aheadA, aheadB] = [0, 0];
    const ofA = chancesOfSums(hits(a), n);
    for (const [sumB, chanceB] of chancesOfSums(hits(b), n)) {
      for (const [sumA, chanceA] of ofA) {
        const [chance, gain] = [chanceA * chanceB, 100 * (sumB - sumA) / n / IMAGES];
        const bin = Math.floor(gain / BIN + 1e-9);
        gains.set(bin, (gains.get(bin) ?? 0) + chance);
        if (gain > 0) aheadB += chance;
        if (gain < 0) aheadA += chance;
      }
    }
    const freedom = n > 1 && deviationA + deviationB > 0 ? welchFreedom(deviationA, deviationB, n) : null;
    return { a, b, runsA, runsB, drawnA, drawnB, meanA: mean(drawnA), meanB: mean(drawnB), deviationA, deviationB,
      gain: mean(drawnB) - mean(drawnA), error: n > 1 ? Math.sqrt((deviationA ** 2 + deviationB ** 2) / n) : null,
      whole: comparison === "nothing" ? null : { ...meanDifference(b, a), error: Math.sqrt((deviation(a) ** 2 + deviation(b) ** 2) / TOTAL) }, // of equal settings the truth is known
      gains, aheadA, aheadB, freedom, limit: freedom === null ? null : studentLimit(freedom) };
  },
  readout: ({ meanA, meanB, deviationA, deviationB, gain, error, aheadA, aheadB }, { verdict, comparison }) => {
    const spread = (middle, part) => `${fixed(middle, 2)} ± ${part === null ? "?" : fixed(part, 2)}`;
    const isDecided = verdict.startsWith(comparison);
    return [[say("A, R@1 in %"), spread(meanA, deviationA)], [say("B, R@1 in %"), spread(meanB, deviationB)],
      [say("gain B − A"), `${gain < 0 ? "−" : "+"}${fixed(Math.abs(gain), 2)}`], [say("standard error of the gain"), error === null ? "?" : fixed(error, 2)],
      [say("A ahead, all draws"), isDecided ? percent(aheadA) : say("decide first")], [say("B ahead, all draws"), isDecided ? percent(aheadB) : say("decide first")]];
  },
  build({ stage, state, change, refit }) {
    const width = stage.clientWidth < 480 ? 380 : 640; // so that a phone shows legible text
    const button = (words, onclick, name = null) => element("button", { type: "button", class: name, onclick }, words);
    stage.append(element("div", { class: "choice pressed", "data-part": "draws" },
      button(say("Draw other runs"), () => change({ draw: Math.floor(state().draw + 1) }), "main"),
      button(say("Luckiest draw for B"), () => change({ draw: LUCKY }))));
    const strip = new Plane(stage, { x: [93.2, 98.4], y: [-0.75, 1.6], label: "Runs", width, height: 185, equal: false });
    strip.svg.dataset.part = "runs";
    const verdicts = VERDICTS.map(([value, words]) => button(words, () => change({ verdict: `${state().comparison}-${value}` })));
    const truth = element("p", { class: "later", role: "status", "data-part": "gains", style: "margin:4px 0;min-height:1.5em" });
    stage.append(element("div", { class: "choice pressed later unprinted", "data-part": "gains", role: "group", "aria-label": say("Your decision") }, element("b", {}, say("Your decision")), verdicts), truth);
    const title = element("small", { class: "later", "data-part": "columns", style: "display:block" }, say("Gain B − A in points, all possible draws"));
    const wait = element("p", { class: "later", "data-part": "columns", style: "text-align:center;margin:6px 0 0" }, say("Decide first: which setting is better?"));
    stage.append(title, wait);
    const histogram = new Plane(stage, { x: [-3, 4.2], y: [-0.3, 1.15], label: "Gain in all possible draws", width, height: 150, equal: false });
    histogram.svg.dataset.part = "columns";
    histogram.svg.classList.add("later");
    const isPresented = isOnSlide(stage);
    let said = null; // about the truth, by the picture that is drawn

    const mark = (name, recall, row, isDrawn, at) => {
      const place = [recall, row + (at % 5 - 2) * 0.07];
      const look = isDrawn ? { stroke: "none", "fill-opacity": 0.9 } : { "fill-opacity": 0, stroke: COLORS.gray, "stroke-width": 1.3 };
      if (name === "A") { strip.dot(place, { radius: isDrawn ? 7 : 5, color: COLOR_A, ...look }); return; }
      const [x, y] = strip.at(place);
      const half = strip.radius(isDrawn ? 6.5 : 4.5);
      strip.add("rect", { x: x - half, y: y - half, width: 2 * half, height: 2 * half, fill: COLOR_B, ...look });
    };
    const drawStrip = ({ a, b, runsA, runsB, meanA, meanB, deviationA, deviationB, gain }, { n, comparison }, isDecided) => {
      strip.clear();
      for (const recall of [94, 95, 96, 97, 98]) {
        strip.line([recall, -0.4], [recall, 1.5], { width: 1, "stroke-opacity": 0.4 });
        if (!strip.isCrowded || recall % 2 === 0) strip.text([recall, -0.68], percent(recall / 100, 0), { size: 12 });
      }
      for (const [name, recalls, runs, middle, part, row] of [["A", a, runsA, meanA, deviationA, 1.1], ["B", b, runsB, meanB, deviationB, 0.1]]) {
        if (part !== null) strip.line([middle - part, row - 0.32], [middle + part, row - 0.32], { width: 6, "stroke-opacity": 0.8 });
        strip.line([middle, row - 0.42], [middle, row + 0.32], { width: 3.5, color: name === "A" ? COLOR_A : COLOR_B });
        recalls.forEach((recall, run) => { if (isDecided && !runs.includes(run)) mark(name, recall, row, false, run); });
        runs.forEach((run) => mark(name, recalls[run], row, true, run));
        strip.text([93.25, row], `${name} ${name === "A" ? "●" : "■"}`, { anchor: "start", size: 16, "font-weight": 700, dy: 5 });
      }
      strip.svg.setAttribute("aria-label", `${say("R@1 of {n} runs of A and of B, comparison {comparison}: mean {meanA} % for A and {meanB} % for B.", { n, comparison: Object.keys(TRUTH).indexOf(comparison) + 1,
        meanA: fixed(meanA, 2), meanB: fixed(meanB, 2) })} ${gain > 0 ? say("B is ahead.") : gain < 0 ? say("A is ahead.") : say("Both are equal.")}`);
    };
    const drawGains = ({ gains, gain, aheadA, aheadB }, isDecided) => {
      const equal = 1 - aheadA - aheadB;
      title.textContent = isDecided && equal >= 0.0005 ? say("Gain B − A in points, all possible draws; equal in {share}", { share: percent(equal) }) : say("Gain B − A in points, all possible draws");
      const above = 1.13 - 1.1 * Math.max(12, histogram.least) / histogram.scale[1]; // below the words “this draw”
      histogram.clear();
      histogram.line([-3, 0], [4.2, 0], { width: 1 });
      for (const tick of histogram.isCrowded ? [-2, 0, 2, 4] : [-2, -1, 0, 1, 2, 3, 4]) histogram.text([tick, -0.2], tick > 0 ? `+${tick}` : plain(tick), { size: 12 });
      wait.hidden = isDecided;
      if (!isDecided) {
        histogram.svg.setAttribute("aria-label", say("Hidden until you decide: the gain in all possible draws"));
        return;
      }
      const most = Math.max(...gains.values());
      const tallest = histogram.isCrowded ? 0.5 : 0.85; // below the words on the shares
      for (const [bin, chance] of gains) {
        const [left, right, height] = [bin * BIN, (bin + 1) * BIN, Math.min(tallest, above - 0.06) * chance / most];
        const isBehind = bin < 0;
        histogram.path([[left, 0], [left, height], [right, height], [right, 0]], { closed: true, width: 1, color: isBehind ? COLOR_A : COLOR_B,
          style: `fill:${isBehind ? COLOR_A : COLOR_B};fill-opacity:${isBehind ? 0.35 : 0.75}` });
      }
      histogram.line([0, 0], [0, Math.min(tallest + 0.1, above - 0.05)], { width: 2 });
      histogram.line([gain, -0.06], [gain, above - 0.05], { width: 2.5, dashed: true });
      histogram.text([gain, above], say("this draw"), { size: 12, anchor: gain > 0.9 ? "start" : "end", dx: gain > 0.9 ? 4 : -4 });
      histogram.text([-2.95, 0.6], say("● A ahead: {share}", { share: percent(aheadA) }), { anchor: "start", size: 13 });
      histogram.text([4.15, 0.6], say("■ B ahead: {share}", { share: percent(aheadB) }), { anchor: "end", size: 13 });
      histogram.svg.setAttribute("aria-label", say("In all possible draws of this size, A is ahead in {shareA} and B in {shareB}", { shareA: percent(aheadA), shareB: percent(aheadB) }));
    };
    return { draw(now, numbers) {
      const isDecided = now.verdict.startsWith(now.comparison);
      const chosen = isDecided ? now.verdict.split("-")[1] : "";
      verdicts.forEach((verdict, at) => verdict.setAttribute("aria-pressed", String(VERDICTS[at][0] === chosen)));
      const other = { a: ["B", numbers.aheadB], b: ["A", numbers.aheadA] }[chosen];
      truth.textContent = isDecided ? [TRUTH[now.comparison], ...numbers.whole ? [supported(numbers.whole)] : [],
        ...other && !isPresented ? [say("{name} is ahead in {share} of the draws.", { name: other[0], share: percent(other[1]) })] : []].join(" ") : "";
      if (isPresented && said !== null && said !== truth.textContent) refit(); // the words take room
      said = truth.textContent;
      drawStrip(numbers, now, isDecided);
      drawGains(numbers, isDecided);
    } };
  },
  formula: ({ n }, { drawnA, drawnB, meanA, meanB, deviationA, deviationB, gain, error, freedom, limit }) => {
    // Each line shows as many decimals as the next line needs.
    const ofGain = error ? digitsThatHold([gain, error], (one, other) => one / other, 1, { least: 2 }) : 2;
    const ofMeans = digitsThatHold([meanA, meanB], (a, b) => b - a, ofGain);
    const ofDeviations = error ? digitsThatHold([deviationA, deviationB], (a, b) => Math.sqrt(a ** 2 / n + b ** 2 / n), ofGain) : 2;
    const ofRuns = Math.max(...[drawnA, drawnB].flatMap((runs) => [digitsThatHold(runs, (...values) => mean(values), ofMeans),
      ...(n > 1 ? [digitsThatHold(runs, (...values) => deviation(values), ofDeviations)] : [])]));
    const number = (value, count) => `<mn>${fixed(value, count)}</mn>`;
    const list = (values) => numberList(values.map((value) => fixed(value, ofRuns)));
    const both = (a, b, count) => ({ a: `<math>${number(a, count)}</math>`, b: `<math>${number(b, count)}</math>` });
    const means = `<p class="aside">${say("Drawn runs of A: {a}; of B: {b}. Numbers have more decimals here than a report needs, so that each line follows from the one before.", { a: list(drawnA), b: list(drawnB) })}</p><p>${say("Mean: {formula}, here {a} for A and {b} for B.", { ...both(meanA, meanB, ofMeans),
      formula: "<math><mover><mi>x</mi><mo>¯</mo></mover><mo>=</mo><mfrac><mn>1</mn><mi>n</mi></mfrac><mo>∑</mo><msub><mi>x</mi><mi>i</mi></msub></math>" })}</p>`;
    if (n < 2) return `${means}<p>${say("<b>One run has no standard deviation.</b> Nothing tells you whether the gain of {gain} points is real.", { gain: fixed(gain, 2) })}</p>`;
    const judged = { gain: fixed(gain, ofGain) };
    return `${means}<p>${say("Standard deviation, how far runs of one setting spread: {formula}, here {a} for A and {b} for B.", { ...both(deviationA, deviationB, ofDeviations),
      formula: "<math><mi>s</mi><mo>=</mo><msqrt><mfrac><mrow><mo>∑</mo><msup><mrow><mo>(</mo><msub><mi>x</mi><mi>i</mi></msub><mo>−</mo><mover><mi>x</mi><mo>¯</mo></mover><mo>)</mo></mrow><mn>2</mn></msup></mrow><mrow><mi>n</mi><mo>−</mo><mn>1</mn></mrow></mfrac></msqrt></math>" })}</p>
      <p>${say("Standard error of the gain, how far the difference of two means varies by chance:")}<br>
      <math><msqrt><mfrac><msubsup><mi>s</mi><mi>A</mi><mn>2</mn></msubsup><mi>n</mi></mfrac><mo>+</mo><mfrac><msubsup><mi>s</mi><mi>B</mi><mn>2</mn></msubsup><mi>n</mi></mfrac></msqrt>
      <mo>=</mo><msqrt><mrow><mfrac><msup>${number(deviationA, ofDeviations)}<mn>2</mn></msup><mn>${n}</mn></mfrac><mo>+</mo><mfrac><msup>${number(deviationB, ofDeviations)}<mn>2</mn></msup><mn>${n}</mn></mfrac></mrow></msqrt><mo>=</mo>${number(error, ofGain)}</math></p>
      <p>${error > 0 ? `${say("Your gain is <b>{gain}</b>, which is <b>{errors}</b> standard errors.", { ...judged, errors: fixed(Math.abs(gain / error), 1) })}
      ${say("By Welch’s t test with {freedom} degrees of freedom, which allows different spreads, chance alone exceeds <b>{limit}</b> standard errors, in either direction, in one case of 20: distrust a smaller gain.", { limit: fixed(limit, 1), freedom: fixed(freedom, 1) })}`
    : say("Your gain is <b>{gain}</b>.", judged)}</p>`;
  },
  caption: [0, 2],
  presented: { see: [[0, 1, 2]], fails: [0, 1] },
  states: { see: [{}], formula: {}, decide: { comparison: "angle" }, fails: { n: 5, draw: LUCKY }, check: {}, takeaway: { verdict: "nothing-open" } },
  parts: { runs: "predict do see0 formula decide fails check takeaway", draws: "do fails", gains: "do decide", columns: "takeaway" },
  fails: "Choose comparison 1, draw 5 runs each and press <b>Luckiest draw for B</b>: its best runs against A’s worst. The gain of 3.3 standard errors (bound 2.7) passes the test, although the settings are equal. You make the same draw if you report only the best of many runs, or choose the seed on the test images. Then draw only one run of each setting: without a standard deviation, nothing warns you.",
  takeaway: "Report the mean and the standard deviation over several seeds, and give both settings the same number of tries.",
  open: { page: "compare", label: "two runs side by side" },
  after: {
    text: "Suppose ten runs of a setting C have a mean R@1 of 80.0 % and ten runs of D 81.2 %. The standard error of this gain is 0.4 points, and the best run of C is better than the worst of D. What do you conclude?",
    choices: ["Nothing: single runs of C and D overlap", "D is better: chance alone rarely gives such a gain", "D wins in every pair of runs"],
    right: 1,
    why: ["The question is about the means. Single runs may overlap while the means of ten differ clearly.", "", "The best run of C wins against the worst of D. A better mean does not win every time."],
    because: "The gain of 1.2 points is 3.0 standard errors. With equal settings and ten runs of each, chance alone exceeds 2.3 of them in less than one case of 20. So D is better, for these images and these settings.",
  },
  notes: {
    ask: "How many runs would you pay for before you claim the difference of comparison 2?",
    wrong: "“More runs make the standard deviation smaller.” They make the standard error smaller; the standard deviation stays about the same.",
    stuck: "The standard deviation describes single runs. The standard error describes the difference of two means, so it shrinks with the number of runs. “A Metric Learning Reality Check” (Musgrave, Belongie and Lim, 2020) trained published losses again under equal conditions and found far smaller gains than the papers report.",
  },
};
