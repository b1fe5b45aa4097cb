const RELEVANT = 4; // R: the other images of the query's class
const PIXEL_RANKING = [4, 0, 2, 9, 1, 6, 5, 3, 7, 8];
const RANKINGS = [
  [say("Nearest pixels"), PIXEL_RANKING],
  [say("A: a hit first, then misses"), [0, 4, 5, 6, 7, 8, 9, 1, 2, 3]],
  [say("B: a miss first, then all hits"), [4, 0, 1, 2, 3, 5, 6, 7, 8, 9]],
];
const KMEANS = [2, 2, 2, 2, 2, 0, 0, 0, 1, 2, 2];
const CLUSTERINGS = [
  [say("k-means"), KMEANS],
  [say("One cluster"), KMEANS.map(() => 0)],
  [say("Every picture alone"), KMEANS.map((_cluster, image) => image)],
];
const isSame = (one, other) => one.join() === other.join();
const isComplete = (order) => order.length === PIXEL_RANKING.length && new Set(order).size === order.length;

// Entropy of counts that sum to `total`, with the natural logarithm.
const entropy = (counts, total) => counts.reduce((sum, count) => sum - (count ? count / total * Math.log(count / total) : 0), 0);
const countBy = (values) => {
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts.values()];
};

const LESSON = {
  id: "measures",
  number: 9,
  minutes: 7,
  title: "R@1, R@k, MAP@R, NMI",
  aim: "Afterwards you can compute R@1, R@k and MAP@R of a ranking and choose among them.",
  claim: "Which of two rankings is better depends on the measure, because each measure answers its own question.",
  data: ["measures"],
  before: {
    text: "A search for an 8 ranks ten pictures. Another 8 is a hit, any other digit a miss. Ranking A begins with a hit, then come misses, and its other hits are last. Ranking B begins with a miss, then come all hits. Which is better?",
    choices: ["Ranking A", "Ranking B", "It depends on the measure"],
    right: 2,
    why: ["A is better only for a measure that reads rank 1 alone; MAP@R also reads the misses that follow.", "B is better only for a measure that reads many ranks; its first result is a miss.", ""],
    shows: { order: RANKINGS[1][1] },
    because: "R@1 reads rank 1 only, so it prefers A. MAP@R reads the first R ranks, so it prefers B.",
  },
  touch: "Before each move, guess which measures will change. Drag a picture along the ranking, or focus it and press an arrow key. Click a picture in a cluster to move it to the next cluster.",
  see: "The query ★ is an 8. Another 8 is a hit ✓, any other digit is a miss ✕. Above the pictures, k marks the ranks that R@k reads. R marks the ranks that MAP@R reads: one for each hit, here 4. The fraction under a hit there is the precision: hits so far / rank. Recall and MAP@R read only the ranking. NMI reads the clusters alone; k-means found the first from the pixels.",
  controls: [{ name: "k", kind: "slider", label: "k, the number of ranks that R@k reads", low: 1, high: 10, step: 1, start: 2 }],
  hidden: [{ name: "order", start: PIXEL_RANKING, count: 10 }, { name: "clusters", start: KMEANS, count: 11 }],
  compute({ order, clusters, k }, { measures: { classes } }) {
    const ranking = isComplete(order) ? order : PIXEL_RANKING;
    const assignment = clusters.length === classes.length ? clusters : KMEANS;
    const hits = ranking.map((image) => classes[image + 1] === classes[0]);
    const first = hits.indexOf(true);
    let found = 0;
    const precisions = hits.map((isHit, rank) => { found += isHit; return found / (rank + 1); });
    const terms = precisions.slice(0, RELEVANT).map((precision, rank) => (hits[rank] ? precision : 0));
    const total = classes.length;
    const [ofClusters, ofClasses] = [entropy(countBy(assignment), total), entropy(countBy(classes), total)];
    const joint = entropy(countBy(assignment.map((cluster, image) => `${cluster} ${classes[image]}`)), total);
    const information = ofClusters + ofClasses - joint;
    return { ranking, assignment, hits, precisions, terms, recall1: first < 1 ? 1 : 0, recallK: first < k ? 1 : 0,
      mapAtR: terms.reduce((sum, term) => sum + term, 0) / RELEVANT, ofClusters, ofClasses, information,
      nmi: Math.max(0, 2 * information / (ofClusters + ofClasses)) };
  },
  readout: ({ recall1, recallK, mapAtR, nmi }, { k }) => [["R@1", percent(recall1)], [`R@${k}`, percent(recallK)],
    ["MAP@R", percent(mapAtR)], ["NMI", percent(nmi), "clusters"]],
  build({ stage, data: { measures: { pixels, classes } }, state, change }) {
    const picture = (size) => element("canvas", { width: 64, height: 64, style: `width:${size}px;height:${size}px;display:block` });
    const paint = (canvas, image) => paintDigit(canvas.getContext("2d"), pixels.subarray(64 * image, 64 * image + 64), 64);
    const cases = (label, choices, name) => {
      const buttons = choices.map(([words, value]) => element("button", { type: "button", onclick: () => change({ [name]: value }) }, words));
      return { row: element("div", { class: "choice pressed", role: "group", "aria-label": label }, element("b", {}, label), buttons),
        show: (value) => buttons.forEach((button, at) => button.setAttribute("aria-pressed", String(isSame(choices[at][1], value)))) };
    };
    let numbers = null; // what is shown now
    const isPhone = stage.clientWidth < 500 && !leastLetters(stage); // there two rows hold the ranking

    // The ranking: ten places, whose pictures move while one is dragged.
    const slots = PIXEL_RANKING.map((_image, rank) => {
      const canvas = picture(isPhone ? 38 : 52);
      const [top, bottom] = [element("span", {}), element("span", {})];
      const button = element("button", { type: "button", class: "tile", style: `touch-action:none;cursor:grab;width:${isPhone ? 50 : 65}px` }, top, canvas, bottom);
      return { button, canvas, top, bottom, rank };
    });
    const move = (from, to) => {
      const order = [...numbers.ranking];
      order.splice(to, 0, ...order.splice(from, 1));
      change({ order });
    };
    let held = null; // the rank of the dragged picture
    const under = ({ clientX, clientY }) => {
      const away = slots.map(({ button }) => {
        const { left, top, width, height } = button.getBoundingClientRect();
        return Math.hypot(left + width / 2 - clientX, top + height / 2 - clientY);
      });
      return away.indexOf(Math.min(...away));
    };
    for (const { button, rank } of slots) {
      button.onpointerdown = (event) => { held = rank; button.setPointerCapture(event.pointerId); };
      button.onpointermove = (event) => {
        if (held === null || !button.hasPointerCapture(event.pointerId)) return;
        const to = under(event);
        if (to !== held) { const from = held; held = to; move(from, to); }
      };
      button.onpointerup = button.onpointercancel = () => {
        if (held !== null) slots[held].button.focus();
        held = null;
        change({});
      };
      button.onkeydown = (event) => {
        const way = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
        if (!way) return;
        event.preventDefault();
        event.stopPropagation();
        const to = rank + way;
        if (to < 0 || to >= slots.length) return;
        move(rank, to);
        slots[to].button.focus();
      };
    }
    const rankingCases = cases(say("Ranking"), RANKINGS, "order");
    const row = element("div", { class: "tiles", role: "group", style: "gap:3px;max-width:clamp(337px,(100% - 752px) * 999,100%)" }, slots.map(({ button }) => button));
    const query = picture(isPhone ? 38 : 52);
    paint(query, 0);
    const searched = element("div", { style: `display:flex;gap:${isPhone ? 4 : 12}px;margin:6px 0 16px` },
      element("div", { class: "tile query", role: "img", "aria-label": say("Query: digit {digit}", { digit: classes[0] }), style: "align-self:start" },
        element("span", {}, say("query")), query, element("span", {}, "★")), row);

    // The clusters: boxes with the query and the ten images.
    const clusterCases = cases(say("Clusters"), CLUSTERINGS, "clusters");
    const boxes = element("div", { role: "group", style: "display:flex;flex-wrap:wrap;gap:6px;min-height:122px;align-content:start;margin-top:6px" });
    const members = Array.from(classes, (_class, image) => {
      const canvas = picture(34);
      paint(canvas, image);
      return element("button", { type: "button", class: "tile", style: "padding:1px",
        onclick: () => {
          const names = boxNames();
          const next = names[(names.indexOf(numbers.assignment[image]) + 1) % names.length];
          change({ clusters: numbers.assignment.map((cluster, other) => (other === image ? next : cluster)) });
          members[image].focus();
        } }, canvas, element("span", {}, image ? "" : "★"));
    });
    // The clusters with images, and an empty one.
    const boxNames = () => {
      const used = new Set(numbers.assignment);
      const empty = members.findIndex((_member, name) => !used.has(name));
      return [...used, ...(empty < 0 ? [] : [empty])].sort((one, other) => one - other);
    };
    clusterCases.row.classList.add("spare"); // a small screen has room for the cases of the ranking
    for (const part of [rankingCases.row, searched]) part.dataset.part = "ranking";
    for (const part of [clusterCases.row, boxes]) part.dataset.part = "clusters";
    stage.append(rankingCases.row, searched, clusterCases.row, boxes);
    const fraction = (precision, rank) => `${Math.round(precision * (rank + 1))}/${rank + 1}`;

    return { draw({ k }, drawn) {
      numbers = drawn;
      const { ranking, hits, precisions, assignment } = drawn;
      rankingCases.show(ranking);
      clusterCases.show(assignment);
      slots.forEach(({ button, canvas, top, bottom, rank }) => {
        const image = ranking[rank] + 1;
        const isHit = hits[rank];
        if (button.dataset.image !== String(image)) paint(canvas, image);
        button.dataset.image = image;
        button.className = `tile ${isHit ? "hit" : "miss"}`;
        button.style.opacity = held === rank ? 0.6 : 1;
        const later = (words) => (words ? [element("span", { class: "later" }, words)] : []); // what the text explains after the question
        top.replaceChildren(String(rank + 1), ...later(`${rank < k ? " k" : ""}${rank < RELEVANT ? " R" : ""}`));
        bottom.replaceChildren(isHit ? "✓" : "✕", ...later(isHit && rank < RELEVANT ? ` ${fraction(precisions[rank], rank)}` : ""));
        button.setAttribute("aria-label", isHit ? say("Rank {rank}: digit {digit}, hit; arrow keys move it", { rank: rank + 1, digit: classes[image] })
          : say("Rank {rank}: digit {digit}, miss; arrow keys move it", { rank: rank + 1, digit: classes[image] }));
      });
      const places = hits.flatMap((isHit, rank) => (isHit ? [rank + 1] : []));
      row.setAttribute("aria-label", say("Ranking for a query of class {digit}: hits at ranks {ranks}", { digit: classes[0], ranks: places.join(", ") }));
      const isShown = isOnSlide(stage); // which moves no picture, and has no other number
      boxes.replaceChildren(...boxNames().filter((name) => !isShown || assignment.includes(name)).map((name) => {
        const inside = members.filter((_member, image) => assignment[image] === name);
        return element("div", { style: `border:1px ${inside.length ? "solid" : "dashed"} var(--edge);border-radius:8px;padding:2px 6px` },
          element("small", {}, inside.length ? String(name + 1) : say("new")), element("div", { class: "tiles", style: "gap:1px" }, inside));
      }));
      if (isShown) boxes.append(element("b", { style: "align-self:center" }, `NMI ${percent(drawn.nmi)}`));
      members.forEach((member, image) => {
        const placed = { digit: classes[image], cluster: assignment[image] + 1 };
        member.setAttribute("aria-label", image ? say("Digit {digit} in cluster {cluster}; press to move it on", placed) : say("The query, digit {digit} in cluster {cluster}; press to move it on", placed));
      });
      boxes.setAttribute("aria-label", say("{count} clusters of the query and the ten images; NMI {nmi}", { count: new Set(assignment).size, nmi: percent(drawn.nmi) }));
    } };
  },
  formula: ({ k }, { recall1, recallK, terms, hits, precisions, mapAtR, ofClusters, ofClasses, information, nmi }) => {
    const digits = digitsThatHold([Math.abs(information), ofClusters, ofClasses], (i, c, y) => (c + y ? Math.max(0, 2 * i / (c + y)) : 0), 3, { least: 2 });
    const number = (value, count = digits) => `<mn>${fixed(value, count)}</mn>`;
    const part = (term, rank) => (hits[rank]
      ? `<mfrac><mn>${Math.round(precisions[rank] * (rank + 1))}</mn><mn>${rank + 1}</mn></mfrac>` : "<mn>0</mn>");
    const sum = `<math><mfrac><mn>1</mn><mi>R</mi></mfrac><munderover><mo>∑</mo><mrow><mi>r</mi><mo>=</mo><mn>1</mn></mrow><mi>R</mi></munderover><mi>${say("precision")}</mi><mo>(</mo><mi>r</mi><mo>)</mo><mo>·</mo><mi>${say("hit")}</mi><mo>(</mo><mi>r</mi><mo>)</mo>
      <mo>=</mo><mfrac><mn>1</mn><mn>${RELEVANT}</mn></mfrac><mo>(</mo>${terms.map((term, rank) => part(term, rank)).join("<mo>+</mo>")}<mo>)</mo><mo>=</mo>${number(mapAtR, 3)}</math>`;
    const answer = (isHit) => `<b>${isHit ? say("Yes: 1") : say("No: 0")}</b>`;
    return `<p>${say("<b>R@1</b> (recall@1): is rank 1 a hit? {answer}.", { answer: answer(recall1) })}
      ${say("<b>R@{k}</b> (recall@{k}): is a hit among the first {k}? {answer}. Both are then averaged over all queries.", { k, answer: answer(recallK) })}</p>
      <p>${say("<b>MAP@R</b>, mean average precision at R, is the mean over all queries. For one query it adds the precision at each hit among the first R ranks and divides by R:")}<br>${sum}</p>
      <p class="aside">${say("<b>NMI</b>, normalized mutual information: I is what clusters C and classes Y tell about each other, and the entropy H says how evenly the images are spread, both with the natural logarithm (the quotient is the same with any base):")}<br>
      <math><mfrac><mrow><mn>2</mn><mi>I</mi><mo>(</mo><mi>C</mi><mo>,</mo><mi>Y</mi><mo>)</mo></mrow><mrow><mi>H</mi><mo>(</mo><mi>C</mi><mo>)</mo><mo>+</mo><mi>H</mi><mo>(</mo><mi>Y</mi><mo>)</mo></mrow></mfrac>
      <mo>=</mo><mfrac><mrow><mn>2</mn><mo>·</mo>${number(Math.abs(information))}</mrow><mrow>${number(ofClusters)}<mo>+</mo>${number(ofClasses)}</mrow></mfrac><mo>=</mo>${number(nmi, 3)}</math></p>`;
  },
  signs: [["★", say("the query")], ["✓", say("a hit")], ["✕", say("a miss")]],
  caption: [0, 1, 3, 4],
  presented: { do: [0, 1], see: [[0, 1, 2], [3, 4, 6]], fails: [0] },
  states: { see: [{}, {}], formula: {} },
  parts: { ranking: "predict do see0 formula fails check takeaway" },
  fails: "With <b>A: a hit first</b>, R@1 is at its maximum, although the other hits are last. Press <b>Every picture alone</b>: no two pictures share a cluster, yet NMI stays above one half. NMI tends to grow with the number of clusters, and is far above 0 even for meaningless ones, so compare it only at the same number. And with <b>Nearest pixels</b> and <b>k-means</b>, all 8s share a cluster while R@1 is 0. Each measure alone tells half of the story.",
  takeaway: "Choose the measure by what your user sees: the first result, the first k results, all images of a class, or groups. Report it with its k and the number of queries.",
  open: { page: "retrieval", label: "hits and misses of a query" },
  after: {
    text: "You photograph a product, and a shop opens the page of the product whose stored photograph is nearest. Model A has the higher R@1, model B the higher MAP@R. Which model do you choose?",
    choices: ["Model A", "Model B", "The model with the higher R@10"],
    right: 0,
    why: ["", "MAP@R also rewards later ranks, which this shop never opens.", "R@10 also counts a hit at rank 10, and this shop opens only the first."],
    because: "Only the nearest photograph decides, and only R@1 measures exactly that. The order of the others changes nothing. (A phone that unlocks for a face needs more: a threshold, because the nearest stored face is always one of its owner.)",
  },
  notes: {
    ask: "Make a ranking with R@1 of 0 and the highest possible MAP@R. Why can MAP@R not be 1?",
    wrong: "“A higher MAP@R implies a higher R@1.” The ranking with a miss first and then all hits contradicts it.",
    stuck: "R@k of one query is 0 or 1; a percentage appears only as the mean over queries. And R is not k: R is the number of hits that exist, so it may differ from query to query.",
  },
};
