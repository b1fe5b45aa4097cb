const SHOWN = 5; // nearest images of the query that are judged
const QUERY_CLASS = 0;

// Points on a sphere, seen from above: embeddings of length 1. Two classes of twelve and a class of five.
const GALLERY = (() => {
  const random = randomStream(18);
  const normal = () => (random() + random() + random() + random() + random() + random() - 3) * Math.SQRT2;
  return [[12, [-0.34, 0.12], [0.15, 0.12]], [12, [0.16, 0.16], [0.13, 0.15]], [5, [0.02, -0.34], [0.1, 0.07]]]
    .flatMap(([count, center, spread], classNumber) => Array.from({ length: count }, () => ({ classNumber,
      point: center.map((part, axis) => part + spread[axis] * normal()) })));
})();

const lift = ([x, y]) => [x, y, Math.sqrt(1 - x * x - y * y)];
const product = (one, other) => one.reduce((sum, value, axis) => sum + value * other[axis], 0);
const toUnit = (row) => { const length = Math.hypot(...row); return row.map((value) => value / length); };

// The rows with the largest cosine to a query, without the row `own`. Averaging can make rows equal: the lowest number is then first.
const nearestRows = (query, rows, k, own = -1) => rows.map((row, at) => [Math.round(1e9 * product(query, row)), at]).filter(([, at]) => at !== own)
  .sort(([one], [other]) => other - one).slice(0, k).map(([, at]) => at);
const meanWith = (row, rows, neighbors) => toUnit(neighbors.reduce((sum, at) => sum.map((value, axis) => value + rows[at][axis]), row));

function averageNeighbors(rows, k, times) {
  let averaged = rows;
  for (let done = 0; done < times; done += 1) {
    const before = averaged;
    averaged = before.map((row, at) => meanWith(row, before, nearestRows(row, before, k, at)));
  }
  return averaged;
}

// R@1 and MAP@R with every row as a query.
function measureGallery(rows) {
  let [hits, score] = [0, 0];
  rows.forEach((row, at) => {
    const isHit = nearestRows(row, rows, rows.length - 1, at).map((other) => GALLERY[other].classNumber === GALLERY[at].classNumber);
    const relevant = isHit.filter(Boolean).length;
    let counted = 0;
    let own = 0;
    isHit.slice(0, relevant).forEach((hit, rank) => {
      counted += hit;
      if (hit) own += counted / (rank + 1);
    });
    hits += isHit[0];
    score += own / relevant;
  });
  return { recall: hits / rows.length, map: score / rows.length };
}

const change100 = (before, after) => `${fixed(100 * before, 0)} → ${percent(after, 0)}`;

const LESSON = {
  id: "reranking",
  number: 12,
  minutes: 7,
  title: "Re-ranking by neighbors",
  aim: "Afterwards you can say when averaging with neighbors improves a ranking.",
  claim: "A search ranks the images of a gallery. Averaging each image with its neighbors brings a class together without labels, while most neighbors share its class. The very nearest image can get lost.",
  data: ["reranking"],
  before: {
    text: "Without any label, each image moved to the mean of itself and its five nearest neighbors, and the clusters tightened. Now take ten neighbors, and average twice. What happens to the five triangles?",
    choices: ["They form a tighter cluster of their own", "They move to another class", "They stay where they are"],
    right: 1,
    order: [0, 2, 1],
    why: ["The triangles are too few for a cluster of their own: five cannot fill a neighborhood of ten.", "", "Every image moves to the mean with its neighbors, the triangles too."],
    shows: { k: 10, times: "2" },
    because: "A triangle has only four other triangles. Most of its ten neighbors are of another class, and the mean goes where most neighbors are.",
  },
  touch: "Start with k = 0 and raise it. Then drag the query to the right, into the gap between circles and squares.",
  see: "Small outlines are the images before, filled shapes after averaging; a thin gray line joins both. The query ★ is a circle. It moves along its arrow to the mean with its own neighbors. Thick lines lead to its five nearest images, if these lie elsewhere: solid to hits, dashed to misses. The chart shows for the same k the mean of ten galleries of real digits, twelve of each class, compared by their pixels. Its pink curves are of another method, re-ranking, which moves nothing.",
  controls: [
    { name: "k", kind: "slider", label: "k, neighbors in the mean", low: 0, high: 20, step: 1, start: 5 },
    { name: "times", kind: "choice", label: "Average", options: [{ value: "1", words: "once" }, { value: "2", words: "twice" }], start: "1" },
  ],
  hidden: [{ name: "query", start: [-0.2, 0.2], low: [-0.6, -0.5], high: [0.6, 0.5] }],
  compute({ k, times, query }) {
    const before = (GALLERY.rows ??= GALLERY.map(({ point }) => lift(point)));
    const after = k ? averageNeighbors(before, k, Number(times)) : before;
    const start = lift(query);
    const expanded = k ? meanWith(start, after, nearestRows(start, after, k)) : start;
    const hits = (rows) => rows.filter((row) => GALLERY[row].classNumber === QUERY_CLASS).length;
    const [listed, relisted] = [nearestRows(start, before, SHOWN), nearestRows(expanded, after, SHOWN)];
    return { before, after, classes: GALLERY.map(({ classNumber }) => classNumber), expanded, listed, relisted,
      hitsBefore: hits(listed), hitsAfter: hits(relisted), measuresBefore: (GALLERY.measures ??= measureGallery(before)), measures: measureGallery(after) };
  },
  readout: ({ hitsBefore, hitsAfter, measuresBefore, measures }) => [
    [say("hits of the query"), `${hitsBefore} → ${hitsAfter}`],
    ["R@1", change100(measuresBefore.recall, measures.recall)],
    ["MAP@R", change100(measuresBefore.map, measures.map)]],
  build({ stage, data: { reranking }, change, parts }) {
    const plane = new Plane(stage, { x: [-0.68, 0.62], y: [-0.52, 0.5], height: parts && innerWidth >= 1.5 * innerHeight ? 380 : 285, // alone on a wide slide it takes the room of the curves
      label: "Images before and after averaging" });
    plane.svg.dataset.part = "plane";
    const handle = plane.handle({ label: "Query", sign: "★", low: [-0.6, -0.5], high: [0.6, 0.48], step: 0.02, moved: (query) => change({ query }) });
    const curves = element("div", { "data-part": "curves" }, element("small", {}, say("Galleries of digits, by k")));
    stage.append(curves);
    const chart = new Chart(curves, { x: [0, 20], y: [30, 100], width: 640, height: 140, right: 190, ticks: [0, 5, 10, 15, 20], xLabel: "k",
      yLabel: "", format: (value) => percent(value / 100, 0), label: "Measures on digits by k" });
    const form = ([x, y], classNumber, size) => {
      const [left, top] = plane.at([x, y]);
      return [`M${left - size} ${top}a${size} ${size} 0 1 0 ${2 * size} 0a${size} ${size} 0 1 0 ${-2 * size} 0Z`,
        `M${left - size} ${top - size}h${2 * size}v${2 * size}h${-2 * size}Z`,
        `M${left} ${top - 1.25 * size}l${1.2 * size} ${2.1 * size}h${-2.4 * size}Z`][classNumber];
    };
    const line = (values, column) => Array.from({ length: values.length / 2 }, (_k, k) => [k, values[2 * k + column]]);
    return { draw({ k, times, query }, { after, classes, expanded, relisted, hitsBefore, hitsAfter, measures, measuresBefore }) {
      plane.clear();
      GALLERY.forEach(({ point, classNumber }, row) => {
        plane.line(point, after[row], { width: 0.8, "stroke-opacity": 0.6 });
        plane.add("path", { d: form(point, classNumber, plane.radius(3.5)), fill: "none", stroke: PALETTE[classNumber], "stroke-width": 1 });
      });
      for (const row of relisted) {
        const isHit = classes[row] === QUERY_CLASS;
        plane.line(expanded, after[row], { color: isHit ? COLORS.hit : COLORS.miss, width: 2, dashed: !isHit });
      }
      after.forEach((row, at) => plane.add("path", { d: form(row, classes[at], plane.radius(6)), fill: PALETTE[classes[at]], stroke: "var(--paper)", "stroke-width": 1 }));
      plane.arrow(query, expanded, { color: COLORS.query, width: 3 });
      plane.dot(expanded, { color: COLORS.query, radius: 6, stroke: "currentColor", "stroke-width": 1.5 });
      handle.place(query);
      plane.svg.setAttribute("aria-label", say("With k {k}, {hits} of the query’s 5 nearest images are circles, {before} before averaging. MAP@R of the gallery is {map}, {mapBefore} before.", {
        k, hits: hitsAfter, before: hitsBefore, map: percent(measures.map), mapBefore: percent(measuresBefore.map) }));
      const averaged = times === "1" ? reranking.averaged : reranking.averaged_twice;
      chart.draw([
        { name: say("R@1, re-ranked"), points: line(reranking.reranked, 0), color: COLORS.refined, dashed: true },
        { name: say("R@1, averaged"), points: line(averaged, 0), color: COLORS.after, dashed: true },
        { name: say("MAP@R, re-ranked"), points: line(reranking.reranked, 1), color: COLORS.refined },
        { name: say("MAP@R, averaged"), points: line(averaged, 1), color: COLORS.after }], k);
      const at = (values, column) => percent(values[2 * k + column] / 100);
      chart.describe(say("On digits with k {k}: averaged MAP@R {map} and R@1 {recall}; re-ranked MAP@R {rerankedMap} and R@1 {rerankedRecall}; at k 0 MAP@R {mapBefore} and R@1 {recallBefore}", {
        k, map: at(averaged, 1), recall: at(averaged, 0), rerankedMap: at(reranking.reranked, 1), rerankedRecall: at(reranking.reranked, 0),
        mapBefore: percent(averaged[1] / 100), recallBefore: percent(averaged[0] / 100) }));
    } };
  },
  formula: ({ k, times }, { hitsBefore, hitsAfter }, { reranking }) => {
    const averaged = times === "1" ? reranking.averaged : reranking.averaged_twice;
    const formula = `<math><msub><mi>x</mi><mi>i</mi></msub><mo>←</mo><mtext>${say("unit")}</mtext><mo>(</mo><msub><mi>x</mi><mi>i</mi></msub><mo>+</mo><munder><mo>∑</mo><mrow><mi>j</mi><mo>∈</mo><msub><mi>N</mi><mi>k</mi></msub><mo>(</mo><mi>i</mi><mo>)</mo></mrow></munder><msub><mi>x</mi><mi>j</mi></msub><mo>)</mo></math>`;
    const found = { formula, k, hits: hitsAfter, before: hitsBefore, shown: SHOWN };
    const share = (at) => percent(averaged[at] / 100);
    return `<p>${times === "1" ? say("{formula} with k = {k}, once; “unit” divides a vector by its length.", found) : say("{formula} with k = {k}, twice; “unit” divides a vector by its length.", found)} ${say("All vectors have length 1: the picture shows a sphere from above, so a point near its middle hardly moves by the division.")}
      ${say("The query then does the same with its neighbors, and has {hits} circles among its {shown} nearest images instead of {before}.", found)}</p>
      <p>${say("R@1 is the share of images whose nearest image is of the same class; MAP@R judges as many ranks as the class has other images. On digits, MAP@R goes from {mapBefore} to {map}, and R@1 from {recallBefore} to {recall}.", {
      mapBefore: share(1), map: share(2 * k + 1), recallBefore: share(0), recall: share(2 * k) })}</p>
      <p class="aside">${say("<b>k-reciprocal re-ranking</b> (pink) moves nothing. It calls two images reciprocal neighbors if each is among the k nearest of the other, and ranks by how many such neighbors two images share.")}</p>`;
  },
  caption: [0, 1, 3],
  presented: { see: [[0, 1, 3], [4, 5]], fails: [0] },
  states: { do: { k: 0 }, see: [{}, {}] },
  parts: { plane: "predict do see0 fails takeaway", curves: "see1" },
  fails: "With k = 10, twice, the five triangles cannot fill a neighborhood, and their means leave them. With k = 20 every class is smaller than a neighborhood, and all classes move together. And drag the query a little to the right, into the gap: averaging decides for a side, and the few hits that the query had are lost. On the digits with k = 5, once, MAP@R rises from 54 % to 66 %, by 11.8 ± 1.5 points, and R@1 falls from 93 % to 90 %, by 3.0 ± 2.9. Here ± bounds in 19 of 20 cases what the draw of the ten galleries leaves open.",
  takeaway: "Neighbors vote without labels. Their vote helps while a neighborhood is smaller than its class. It makes a query between two classes more certain, not more correct.",
  open: { page: "refine", label: "this recipe", query: ({ k, times }) => ({ recipe: `average:k=${k}${times === "1" ? "" : ",times=2"}+expand:k=${k}` }) },
  after: {
    text: "A shop has three photographs of each product. You average each photograph with its 10 nearest neighbors before the search. What do you expect?",
    choices: ["A better ranking: ten neighbors cancel more noise than two", "A worse ranking: most of the ten neighbors are of other products", "The same ranking: no labels are used"],
    right: 1,
    why: ["Averaging cancels noise only among photographs of the same product.", "", "No label is needed to move a vector, and moved vectors rank differently."],
    because: "A photograph has two others of its product. The other eight neighbors move it toward other products.",
  },
  notes: {
    ask: "How would you choose k without any label? Which number in this lesson would you want to know first?",
    wrong: "“It uses the test labels.” No step sees a label. But it sees the whole gallery, so a comparison must say so: a query that arrives alone gains less.",
    stuck: "MAP@R and R@1 can move in opposite directions: averaging brings a class together, and at the same time an image can lose its very nearest neighbor. The points lie on a sphere, which the picture shows from above.",
  },
};
