const [NEIGHBORS, ALL_STEPS, PLAY_MS] = [5, 60, 300];
const SHAPES = [say("circle"), say("square"), say("triangle")];

// Two interlocked arcs and a cloud, with the nearest neighbors of each point.
const GRAPH = (() => {
  const random = randomStream(6);
  const normal = () => (random() + random() + random() + random() + random() + random() - 3) * Math.SQRT2;
  const points = [];
  for (const classNumber of [0, 1]) {
    for (let row = 0; row < 22; row += 1) {
      const angle = Math.PI * (row + 0.5) / 22;
      const at = classNumber ? [1 - Math.cos(angle), 0.42 - Math.sin(angle)] : [Math.cos(angle), Math.sin(angle)];
      points.push({ classNumber, point: at.map((part) => part + 0.07 * normal()) });
    }
  }
  for (let row = 0; row < 16; row += 1) points.push({ classNumber: 2, point: [2.55 + 0.28 * normal(), 0.62 + 0.22 * normal()] });
  const neighbors = points.map(({ point: [x, y] }, row) => points.map((other, column) => [Math.hypot(other.point[0] - x, other.point[1] - y), column])
    .filter(([, column]) => column !== row).sort(([one], [other]) => one - other).slice(0, NEIGHBORS).map(([, column]) => column));
  return { points, neighbors };
})();

// Solve (I − γQ) F = (1 − γ) Y by Gaussian elimination; Q is 1/k at the neighbors.
function settled(given, gamma) {
  const { neighbors } = GRAPH;
  const rows = neighbors.map((columns, row) => {
    const line = new Float64Array(neighbors.length + SHAPES.length);
    line[row] = 1;
    for (const column of columns) line[column] -= gamma / NEIGHBORS;
    given[row].forEach((value, classNumber) => { line[neighbors.length + classNumber] = value; });
    return line;
  });
  rows.forEach((line, pivot) => { // no exchange of rows: the diagonal is larger than the rest of its row together
    const scale = line[pivot];
    for (let at = pivot; at < line.length; at += 1) line[at] /= scale;
    rows.forEach((other, row) => {
      const factor = other[pivot];
      if (row === pivot || factor === 0) return;
      for (let at = pivot; at < line.length; at += 1) other[at] -= factor * line[at];
    });
  });
  return rows.map((line) => Array.from(line.slice(neighbors.length)));
}

const LESSON = {
  id: "spread",
  number: 6,
  minutes: 7,
  title: "Labels spread",
  aim: "Afterwards you can predict where labels spread, and choose the next image to label.",
  claim: "A few labels can color a whole graph of neighbors. They leak wherever an edge joins two classes.",
  data: [],
  before: {
    text: "Shapes are the true classes; only the three framed points are labeled. In each step, every point takes over colors from its five nearest neighbors. After three steps, two squares have taken the color of the triangles. What happens to these mistakes in further steps?",
    choices: ["More squares take this color", "The label of the squares corrects them", "They stay as they are"],
    right: 0,
    why: ["", "A label is strong near its own point, but the mistaken squares lie many edges away.", "Every point takes over colors in every step, so mistakes are passed on as well."],
    shows: { step: 10 },
    because: "The mistaken squares pass the color on: after five steps six squares have it, and they keep it. The labeled square is many edges away, so its color arrives there later and weaker.",
  },
  touch: "Press Play, or move the slider of steps to its end. Then click points to give or remove a label, until no mistake (✕) is left. Three labels are enough, one in each class: where?",
  see: "Lines are edges: they join each point to its five nearest neighbors, and together they are the graph. The shape of a point is its true class. Its color is the class whose labels reach it most; pale means a close call, empty means not reached yet. Dashed arrows are edges between two classes, where a color can leak: a wider arrow carries more.",
  controls: [
    { name: "step", kind: "slider", label: "Steps of spreading", low: 0, high: ALL_STEPS, step: 1, start: 3, format: (value) => (value < ALL_STEPS ? plain(value) : say("all")) },
    { name: "gamma", kind: "slider", label: "γ, the part that a point takes from its neighbors", low: 0.5, high: 0.99, step: 0.01, start: 0.95 },
  ],
  hidden: [{ name: "labels", start: [3, 25, 50], count: 60 }],
  // Affinity of each point to each class: after some steps (`affinity`), and when nothing changes any more (`reach`).
  compute({ step, gamma, labels }) {
    const { points, neighbors } = GRAPH;
    const given = points.map(({ classNumber }, row) => SHAPES.map((_shape, other) => (labels.includes(row) && other === classNumber ? 1 - gamma : 0)));
    const reach = settled(given, gamma);
    let affinity = reach;
    if (step < ALL_STEPS) {
      affinity = given;
      for (let done = 0; done < step; done += 1) {
        const before = affinity;
        affinity = given.map((own, row) => own.map((value, classNumber) => value
          + gamma / NEIGHBORS * neighbors[row].reduce((sum, column) => sum + before[column][classNumber], 0)));
      }
    }
    const totals = affinity.map((values) => values.reduce((sum, value) => sum + value, 0));
    const best = affinity.map((values, row) => (totals[row] > 0 ? values.indexOf(Math.max(...values)) : -1));
    const leaks = neighbors.flatMap((columns, row) => columns.filter((column) => points[column].classNumber !== points[row].classNumber)
      .map((column) => ({ from: column, to: row, flow: gamma / NEIGHBORS * affinity[column][points[column].classNumber] })));
    return { points: points.map(({ point }) => point), classes: points.map(({ classNumber }) => classNumber), neighbors, reach, affinity, best,
      certainty: affinity.map((values, row) => (totals[row] > 0 ? Math.max(...values) / totals[row] : 0)), leaks,
      reached: best.filter((classNumber) => classNumber >= 0).length,
      wrong: best.flatMap((classNumber, row) => (classNumber >= 0 && classNumber !== points[row].classNumber ? [row] : [])) };
  },
  readout: ({ reached, wrong, leaks, best }, { labels }) => [[say("labels"), labels.length], [say("reached points"), say("{count} of {all}", { count: reached, all: best.length })],
    [say("mistakes ✕"), wrong.length || "0 ✓"], [say("edges between classes"), leaks.length]],
  build({ stage, state, change }) {
    const { points, neighbors } = GRAPH;
    const plane = new Plane(stage, { x: [-1.2, 3.4], y: [-0.8, 1.3], height: 330, label: "Points and their nearest neighbors" });
    const inside = neighbors.flatMap((columns, row) => columns.filter((column) => points[column].classNumber === points[row].classNumber)
      .map((column) => `M${plane.at(points[row].point).join(" ")}L${plane.at(points[column].point).join(" ")}`)).join("");
    const outline = (row, size) => {
      const [x, y] = plane.at(points[row].point);
      return [`M${x - size} ${y}a${size} ${size} 0 1 0 ${2 * size} 0a${size} ${size} 0 1 0 ${-2 * size} 0Z`,
        `M${x - size} ${y - size}h${2 * size}v${2 * size}h${-2 * size}Z`,
        `M${x} ${y - 1.25 * size}l${1.2 * size} ${2.1 * size}h${-2.4 * size}Z`][points[row].classNumber];
    };
    const toggle = (row) => {
      const { labels } = state();
      change({ labels: labels.includes(row) ? labels.filter((other) => other !== row) : [...labels, row] });
    };
    // One tab stop for all points: the arrow keys go to the nearest point in their direction.
    const buttons = points.map((_point, row) => shape("path", { class: "handle", role: "button", d: outline(row, 11), fill: "transparent",
      tabindex: row ? -1 : 0, style: "cursor:pointer", onclick: () => { enter(row); toggle(row); }, onkeydown: (event) => key(event, row) }));
    const ring = shape("circle", { r: 15, fill: "none", stroke: "currentColor", "stroke-width": 2, visibility: "hidden" });
    const enter = (row) => {
      buttons.forEach((button, other) => button.setAttribute("tabindex", other === row ? 0 : -1));
      buttons[row].focus();
    };
    const key = (event, row) => {
      const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (!way && event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      event.stopPropagation();
      if (!way) { toggle(row); return; }
      const cost = ({ point: [x, y] }) => {
        const [dx, dy] = [x - points[row].point[0], y - points[row].point[1]];
        const ahead = dx * way[0] + dy * way[1];
        return ahead > 1e-9 ? ahead + 3 * Math.abs(dx * way[1] - dy * way[0]) : Infinity;
      };
      const costs = points.map(cost);
      const to = costs.indexOf(Math.min(...costs));
      if (costs[to] < Infinity) enter(to);
    };
    buttons.forEach((button, row) => {
      button.onfocus = () => {
        const [cx, cy] = plane.at(points[row].point);
        fill(ring, { cx, cy, visibility: button.matches(":focus-visible") ? "visible" : "hidden" }, []);
      };
      button.onblur = () => ring.setAttribute("visibility", "hidden");
    });
    plane.handles.append(ring, ...buttons);

    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    let timer = 0;
    const advance = () => {
      const { step } = state();
      if (step >= ALL_STEPS || !stage.isConnected) pause();
      else change({ step: step + 1 });
    };
    const pause = () => { clearInterval(timer); timer = 0; play.textContent = isStill ? say("Next step") : say("Play"); };
    const play = element("button", { type: "button", class: "main", onclick: () => {
      if (timer) { pause(); return; }
      if (state().step >= ALL_STEPS) change({ step: 0 });
      if (isStill) { advance(); return; }
      timer = setInterval(advance, PLAY_MS);
      play.textContent = say("Pause");
    } }, isStill ? say("Next step") : say("Play"));
    stage.append(element("div", { class: "corner" }, play));
    const solved = element("p", { role: "status", class: "later unprinted", style: "margin:4px 0;min-height:1.5em;font-weight:600" });
    if (!isOnSlide(stage)) stage.append(solved); // there the numbers say it

    return { draw({ labels, step }, { best, certainty, leaks, wrong, reached }) {
      const isRight = wrong.length === 0 && reached === points.length;
      const found = labels.length > SHAPES.length ? say("✓ No mistakes after all steps, with {labels} labels. Can you do it with {least}?", { labels: labels.length, least: SHAPES.length })
        : say("✓ No mistakes after all steps, with {least} labels. Fewer cannot do it: each class needs one.", { least: SHAPES.length });
      solved.textContent = !isRight ? "" : step < ALL_STEPS ? say("✓ No mistakes after {step} steps. Do further steps make some?", { step }) : found;
      plane.clear();
      plane.add("path", { d: inside, stroke: COLORS.gray, "stroke-width": 0.8, "stroke-opacity": 0.55 });
      const most = Math.max(...leaks.map(({ flow }) => flow)) || 1;
      for (const { from, to, flow } of leaks) {
        const [start, end] = [points[from].point, points[to].point];
        plane.line(start, end, { color: COLORS.miss, width: 1.2 + 4 * flow / most, dashed: true });
        const near = start.map((part, axis) => part + 0.55 * (end[axis] - part));
        plane.arrow(near, start.map((part, axis) => part + 0.8 * (end[axis] - part)), { color: COLORS.miss, width: 1.2 + 4 * flow / most });
      }
      points.forEach(({ point, classNumber }, row) => {
        const isLabeled = labels.includes(row);
        const color = best[row] < 0 ? COLORS.gray : PALETTE[best[row]];
        const size = isLabeled ? 3 + plane.radius(6) : plane.radius(6);
        plane.add("path", { d: outline(row, size), fill: "var(--paper)" });
        plane.add("path", { d: outline(row, size), fill: best[row] < 0 ? "var(--paper)" : color, stroke: isLabeled ? "currentColor" : color,
          "stroke-width": isLabeled ? 3.5 : 1.5, "fill-opacity": clamp(1.5 * certainty[row] - 0.5, 0.12, 1) });
        if (wrong.includes(row)) plane.text(point, "✕", { size: 15, dx: 11, dy: -5, "font-weight": 700 });
        buttons[row].setAttribute("aria-pressed", String(isLabeled));
        buttons[row].setAttribute("aria-label", `${best[row] < 0 ? say("{shape} {number}: not reached", { shape: SHAPES[classNumber], number: row + 1 })
          : say("{shape} {number}: has the color of a {other}, {share}", { shape: SHAPES[classNumber], number: row + 1, other: SHAPES[best[row]], share: percent(certainty[row]) })}${isLabeled ? `. ${say("Labeled")}` : ""}`);
      });
      plane.svg.setAttribute("aria-label", say("After {steps} steps from {labels} labels: {reached} of {points} points are reached, {wrong} have the color of a wrong class. {leaks} edges join two classes.", {
        steps: step < ALL_STEPS ? step : say("all"), labels: labels.length, reached, points: points.length, wrong: wrong.length, leaks: leaks.length }));
    } };
  },
  formula: ({ gamma, step }, { affinity, leaks, classes }) => {
    const strongest = leaks.reduce((one, other) => (other.flow > one.flow ? other : one));
    const affinities = numberList(affinity[strongest.to].map((value, classNumber) => `${SHAPES[classNumber]} ${percent(value, 2)}`));
    const reached = { shape: SHAPES[classes[strongest.to]], step, affinities };
    return `<p>${say("In a step, each point averages its neighbors, and a label adds its own part again: {formula}, here with {gamma}. Q averages the {count} neighbors; Y is 1 where a point has a label of the class.", {
      formula: "<math><msub><mi>F</mi><mrow><mi>t</mi><mo>+</mo><mn>1</mn></mrow></msub><mo>=</mo><mi>γ</mi><mi>Q</mi><msub><mi>F</mi><mi>t</mi></msub><mo>+</mo><mo>(</mo><mn>1</mn><mo>−</mo><mi>γ</mi><mo>)</mo><mi>Y</mi></math>",
      gamma: `<math><mi>γ</mi><mo>=</mo><mn>${fixed(gamma, 2)}</mn></math>`, count: NEIGHBORS })}
      ${say("After all steps, {formula}.", { formula: "<math><mi>F</mi><mo>=</mo><mo>(</mo><mn>1</mn><mo>−</mo><mi>γ</mi><mo>)</mo><msup><mrow><mo>(</mo><mi>I</mi><mo>−</mo><mi>γ</mi><mi>Q</mi><mo>)</mo></mrow><mrow><mo>−</mo><mn>1</mn></mrow></msup><mi>Y</mi></math>" })}</p>
      <p>${say("F is the <b>affinity</b>: how strongly the labels of each class reach a point.")}
      ${step < ALL_STEPS ? say("The widest dashed arrow ends at a {shape}. After {step} steps its affinities are: {affinities}.", reached)
    : say("The widest dashed arrow ends at a {shape}. In the end its affinities are: {affinities}.", reached)}</p>`;
  },
  caption: [1, 2, 3],
  presented: { see: [[0, 1], [2, 3]], fails: [0] },
  states: { fails: { gamma: 0.99, step: ALL_STEPS } },
  fails: "Set γ to 0.99 with all steps: colors travel farther, and the leak grows. Label only the point where a dashed arrow begins: its color leaks at full strength. Remove the label of the triangles: a class without a label gets the color of another class, or none.",
  takeaway: "Labels spread along the edges of the neighbor graph, so a wrong edge carries a wrong label. Ask for a label where two classes touch.",
  open: { page: "labels", label: "give labels and watch them spread, at this γ", query: ({ gamma }) => ({ gamma: String(gamma) }) },
  after: {
    text: "You label photographs of birds, and the labels spread over a graph of similar photographs. Gulls and terns share many edges. You can label one more photograph. Which one helps most?",
    choices: ["A typical gull, far from all terns", "A bird between gulls and terns whose two affinities are nearly equal", "A photograph with no neighbors in common with any other"],
    right: 1,
    why: ["A typical gull already gets the right color; its label changes little at the border.", "", "Without common neighbors its label reaches hardly any other photograph."],
    because: "The leak is where the two classes touch. A label there adds affinity of the right class on its side of the wrong edges.",
  },
  notes: {
    ask: "Which single label would you add, and why there? Which label could you take away without a new mistake?",
    wrong: "“A color reaches a point because it is close to a label.” Only a path of edges matters. A long path inside a class can be weaker than a short path through a wrong edge.",
    stuck: "Edges have a direction: a point takes colors from its own five nearest neighbors, so an outlier takes colors but gives none. SSDML (Dutta, Harandi and Chandra Sekhar) sorts neighbors by such affinities to choose triplets. There γ is close to 1, because the graphs are much larger.",
  },
};
