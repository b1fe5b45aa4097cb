const CHOICES = 3; // the left image, the right image, equal
const SURE = 1.96; // standard errors of an interval that holds in 19 of 20 cases
const NEEDED = 5; // judgments before the labels are shown

const COMPARED = {
  joined: say("Before: the sums of the columns of a digit. After: the sums of its rows are added."),
  noise: say("Before: the sums of the columns of a digit. After: the same with noise."),
  nothing: say("Before and after: the same sums with equally strong noise, drawn twice."),
};
const VERDICTS = { better: say("better"), worse: say("worse"), "cannot tell": say("cannot tell") };
const SIDES = [[say("left"), say("The left result is more similar")], [say("right"), say("The right result is more similar")]];

// Wilson's interval of a share: it stays within 0 and 1, and means something after few judgments.
function shareInterval(successes, count) {
  if (!count) return [0, 1];
  const share = successes / count;
  const square = SURE ** 2;
  const middle = (share + square / (2 * count)) / (1 + square / count);
  const half = SURE / (1 + square / count) * Math.sqrt(share * (1 - share) / count + square / (4 * count ** 2));
  return [Math.max(0, middle - half), Math.min(1, middle + half)];
}
const verdictOf = ([low, high]) => (low > 0.5 ? "better" : high < 0.5 ? "worse" : "cannot tell");

const LESSON = {
  id: "better",
  number: 13,
  minutes: 8,
  title: "Did it get better? Judging without labels",
  claim: "Without labels, people in blind comparisons and an encoder that took no part can both tell which embedding finds more similar images, if they also say how sure they are.",
  data: ["digits", "better"],
  before: {
    text: "You have no labels. An embedding has changed, and you compare its first results with the old ones, pair by pair, without knowing which is which. Of 10 pairs you prefer the new result in 7. Is the new embedding better?",
    choices: ["Yes: 70 % is a clear majority", "You cannot tell yet", "No: 3 pairs speak against it"],
    right: 1,
    because: "The interval of 7 in 10 reaches from 40 % to 89 %, so the true share may be below one half. Fair coins give 7 or more heads of 10 in one case of six.",
  },
  touch: "Judge pairs: which image is more similar to the query ★? Then let the second opinion judge more pairs with the slider, and watch both intervals. Repeat it with comparisons 2 and 3.",
  see: "Each bar is an interval: the shares of pairs for the new embedding that agree with the judgments. A bar right of the dashed line says better, a bar left of it says worse. A bar that crosses the line cannot tell. The second opinion is a judge that took no part: whitened raw pixels, while both embeddings see only sums. After five judgments the labels say what is true.",
  controls: [
    { name: "comparison", kind: "choice", label: "Comparison", start: "joined", options: ["joined", "noise", "nothing"].map((value, at) => ({ value, words: String(at + 1) })) },
    { name: "asked", kind: "slider", label: "Pairs judged by the second opinion", low: 0, high: 200, step: 5, start: 10 },
  ],
  hidden: [{ name: "judged", start: [], count: 200 * CHOICES }], // pair · 3 + choice, in the order of the pairs
  // Whether the new result stands on the left, by pair: a coin, so that judgments are blind.
  isLeft: (() => { const random = randomStream(11); return Array.from({ length: 200 }, () => random() < 0.5); })(),
  compute({ comparison, asked, judged }, { better, digits }) {
    const pairs = better[comparison];
    const votes = judged.map((code) => [Math.floor(code / CHOICES), code % CHOICES]).filter(([, choice]) => choice < 2)
      .map(([pair, choice]) => (choice === 0) === LESSON.isLeft[pair]);
    const opinions = Array.from(pairs.preferred.subarray(0, Math.round(asked)), Boolean);
    const counted = (list) => {
      const interval = shareInterval(list.filter(Boolean).length, list.length);
      return { after: list.filter(Boolean).length, count: list.length, interval, verdict: verdictOf(interval) };
    };
    const pair = judged.length;
    const [before, after] = [pairs.before[pair], pairs.after[pair]];
    const whole = [pairs.difference - SURE * pairs.error, pairs.difference + SURE * pairs.error];
    return { own: counted(votes), opinion: counted(opinions), pair, query: pairs.query[pair], shown: LESSON.isLeft[pair] ? [after, before] : [before, after],
      whole, wholeVerdict: whole[0] > 0 ? "better" : whole[1] < 0 ? "worse" : "cannot tell", recall: pairs.recall, isRevealed: judged.length >= NEEDED,
      classes: digits.classes };
  },
  interval: shareInterval,
  counted: ({ after, count, verdict }) => say("{count} of {all}: {verdict}", { count: after, all: count, verdict: VERDICTS[verdict] }),
  change: ([from, to]) => `${fixed(from, 1)} → ${percent(to / 100)}`,
  readout: ({ own, opinion, recall, isRevealed }) => [[say("you"), own.count ? LESSON.counted(own) : say("no judgments")], [say("second opinion"), LESSON.counted(opinion)],
    [say("R@1 from labels"), isRevealed ? LESSON.change(recall) : say("after {count} judgments", { count: NEEDED })]],
  build({ stage, data: { digits }, state, change }) {
    const asking = element("div", { style: "display:grid;gap:6px;justify-items:start" });
    const plane = new Plane(stage, { x: [-0.28, 1.04], y: [-0.5, 2.4], width: 640, height: 230, equal: false, label: "Intervals of the judgments" });
    stage.prepend(asking);
    const picture = (row) => digits.pixels.subarray(64 * row, 64 * row + 64);
    const judge = (pair, choice) => change({ judged: [...state().judged, CHOICES * pair + choice] });
    return { draw({ comparison, judged }, { own, opinion, pair, query, shown, isRevealed, recall }) {
      const focused = [...asking.querySelectorAll("button")].indexOf(asking.getRootNode().activeElement);
      const tile = (row, at) => ({ pixels: picture(row), kind: "", words: SIDES[at][0], label: SIDES[at][1], onclick: () => judge(pair, at) });
      asking.replaceChildren(...(pair < 200 ? [element("span", {}, say("Pair {number}: which result is more similar to the query?", { number: pair + 1 })),
        element("div", { style: "display:flex;gap:14px;align-items:center;flex-wrap:wrap" },
          digitTiles([{ pixels: picture(query), kind: "query", words: say("query"), label: say("Query") }, ...shown.map(tile)], say("A query and two results"), 64),
          element("button", { type: "button", onclick: () => judge(pair, 2) }, say("Equal")),
          element("button", { type: "button", disabled: !judged.length, onclick: () => change({ judged: [] }) }, say("Judge from the start")))] : []));
      if (focused >= 0) asking.querySelectorAll("button")[Math.min(focused, 3)]?.focus();
      plane.clear();
      plane.line([0.5, -0.1], [0.5, 2.4], { color: COLORS.gray, dashed: true });
      [[say("you"), own, COLORS.query, 1.9], [say("second opinion"), opinion, COLORS.hit, 1.1]].forEach(([name, { after, count, interval: [low, high], verdict }, color, y]) => {
        plane.text([-0.27, y], name, { anchor: "start", size: 14, dy: 5 });
        plane.line([low, y], [high, y], { color, width: 9, "stroke-opacity": 0.55, "stroke-linecap": "round" });
        if (count) plane.dot([after / count, y], { color, radius: 8, stroke: "currentColor" });
        plane.text([(low + high) / 2, y], count ? VERDICTS[verdict] : say("no judgments"), { size: 13, dy: -12 });
      });
      plane.text([-0.27, 0.4], say("labels"), { anchor: "start", size: 14, dy: 5 });
      plane.text([0.5, 0.4], isRevealed ? `R@1 ${LESSON.change(recall)}. ${COMPARED[comparison]}` : say("hidden until you have judged {count} pairs", { count: NEEDED }),
        { size: isRevealed ? 11 : 13, dy: 5 });
      for (const share of [0, 0.5, 1]) plane.text([share, -0.3], percent(share, 0), { size: 13 });
      plane.svg.setAttribute("aria-label", say("Shares of pairs for the new embedding: you {own}; second opinion {opinion}", { own: LESSON.counted(own), opinion: LESSON.counted(opinion) }));
    } };
  },
  formula: (_state, { opinion: { after, count, interval: [low, high] }, whole, wholeVerdict }, { better: { record } }) => {
    const [first, group] = [record["first result"], record["whole group"]];
    return `<p>${say("Wilson’s interval of the share {share} after {count} judgments, with {z}:", { z: `<math><mi>z</mi><mo>=</mo><mn>${fixed(SURE, 2)}</mn></math>`,
      share: `<math><mi>p</mi><mo>=</mo><mfrac><mn>${after}</mn><mn>${count}</mn></mfrac></math>`, count: `<math><mi>n</mi><mo>=</mo><mn>${count}</mn></math>` })}<br>
      ${say("{formula}, from {low} to {high}.", { low: percent(low), high: percent(high),
    formula: "<math><mfrac><mrow><mi>p</mi><mo>+</mo><mfrac><msup><mi>z</mi><mn>2</mn></msup><mrow><mn>2</mn><mi>n</mi></mrow></mfrac><mo>±</mo><mi>z</mi><msqrt><mfrac><mrow><mi>p</mi><mo>(</mo><mn>1</mn><mo>−</mo><mi>p</mi><mo>)</mo></mrow><mi>n</mi></mfrac><mo>+</mo><mfrac><msup><mi>z</mi><mn>2</mn></msup><mrow><mn>4</mn><msup><mi>n</mi><mn>2</mn></msup></mrow></mfrac></msqrt></mrow><mrow><mn>1</mn><mo>+</mo><mfrac><msup><mi>z</mi><mn>2</mn></msup><mi>n</mi></mfrac></mrow></mfrac></math>" })}</p>
      <p>${say("On all images, the judge’s cosine between a query and its first result changes by {low} to {high}: <b>{verdict}</b>.", { low: fixed(whole[0], 3), high: fixed(whole[1], 3), verdict: VERDICTS[wholeVerdict] })}</p>
      <p>${say("Measured on six data sets: of {differences} true differences of two points in first results, the second opinion decided {decided}, and {right} verdicts were right; in whole groups {groupRight} of {groupDecided}. Of {better} and {groupBetter} embeddings that it called better, {wrong} had lost half a point.", {
      differences: first.large, decided: first.decided, right: first.right, groupRight: group.right, groupDecided: group.decided,
      better: first.better, groupBetter: group.better, wrong: first["false better"] + group["false better"] })}</p>`;
  },
  fails: "Choose comparison 3 and ask for more and more pairs: both embeddings have equal noise, and the answer stays “cannot tell”, as it should. Move the slider up and down until a bar leaves the line: to stop at the first such moment is often wrong. And a judge that took part, or was trained by one of the embeddings, agrees with itself. Even an independent judge sees similarity, not your classes.",
  takeaway: "Judge blindly, ask a judge that took no part, decide in advance how many pairs you judge, and report the interval together with the share.",
  open: { page: "compare", label: "blind pairs and the second opinion for two runs" },
  after: {
    text: "A colleague trains a model with encoder E and lets E itself judge whether the result is better. E says: better, and the interval is narrow. What do you answer?",
    choices: ["Good: a narrow interval is certain", "Ask another encoder: E took part", "Judge more pairs with E"],
    right: 1,
    because: "A narrow interval removes chance, not bias. E calls similar what it made similar.",
  },
  notes: {
    ask: "How many pairs would you judge if the true share is 60 %? Try it: the interval must leave one half.",
    wrong: "“A verdict of cannot tell means that both are equal.” It means that these judgments do not decide; more of them may.",
    stuck: "The share counts pairs whose first results differ. Where both embeddings find the same image there is nothing to judge, so 60 % of the pairs can be a small change of R@1.",
  },
};
