const LESSON = {
  id: "metric",
  number: 1,
  minutes: 6,
  title: "What is a metric?",
  aim: "Afterwards you can explain what a metric changes although no point moves.",
  claim: "A metric measures how far apart two points are, so it decides which points are neighbors. Metric learning chooses the metric so that neighbors share a class.",
  data: [],
  before: {
    text: "Disks are one class of points, squares another. You stretch the circle along the two bands. What happens to R@1 (recall@1), the share of points whose nearest neighbor has their class?",
    choices: ["It rises", "It falls", "It stays: the points do not move"],
    right: 0,
    why: ["", "Stretching along the bands shortens steps within a band, so fewer neighbors are wrong.", "The points stay, but their distances change, and with them who is nearest."],
    shows: { axis: [1.4, 0.765], other: 0.4 }, // along the bands
    because: "Steps along a band become short and steps across become long. The nearest neighbor is then in the same band.",
  },
  touch: "Drag one of the two handles ↕ of the circle: outward to stretch it to an ellipse, around to turn it. Click a point to make it the query (★).",
  see: "All places on the solid circle or ellipse are equally far from the query ★. The dashed line has the same shape and reaches to the nearest neighbor. Thick lines join ★ to its 3 nearest neighbors (✓ same class, ✕ another class). A thin line joins each point to its nearest neighbor: solid if the class is the same, dashed with ✕ if not. The points never move. Disks are one class, squares the other.",
  controls: [
    { name: "data", kind: "choice", label: "Points", start: "bands",
      options: [{ value: "bands", words: "Two bands" }, { value: "ring", words: "Two rings" }] },
    { name: "query", kind: "slider", label: "Query: the points from left to right", low: 1, high: 40, step: 1, start: 17, told: ({ query }) => [say("Query"), plain(query)] },
  ],
  hidden: [
    { name: "axis", start: [0.8, 0], low: [-2, -2], high: [2, 2] }, // first half axis: its direction and length
    { name: "other", start: 0.8, low: 0.15, high: 2 }, // length of the second half axis
  ],
  lengths: [0.15, 2],
  // Forty points in the order from left to right: [x, y] and class 0 or 1.
  points(data) {
    const random = randomStream(data === "bands" ? 5 : 8);
    const spread = (width) => width * (random() - 0.5);
    const place = { bands: (index, label) => {
      const [along, across] = [(index / 19 - 0.5) * 6.4 + spread(0.4), (label - 0.5) * 0.29 + spread(0.1)];
      const [cosine, sine] = [Math.cos(0.5), Math.sin(0.5)];
      return [along * cosine - across * sine, along * sine + across * cosine];
    }, ring: (index, label) => {
      const angle = (index + 0.5 * label) * 2 * Math.PI / 20 + spread(0.12);
      const radius = (label ? 1.9 : 1.5) + spread(0.16);
      return [radius * Math.cos(angle), radius * Math.sin(angle)];
    } }[data];
    const rows = [0, 1].flatMap((label) => Array.from({ length: 20 }, (_, index) => ({ point: place(index, label), label })));
    rows.sort((one, next) => one.point[0] - next.point[0]);
    return { points: rows.map(({ point }) => point), classes: rows.map(({ label }) => label) };
  },
  compute({ data, query, axis, other }) {
    const { points, classes } = LESSON.points(data);
    const length = Math.max(Math.hypot(...axis), LESSON.lengths[0]);
    const angle = Math.atan2(axis[1], axis[0]);
    const [cosine, sine] = [Math.cos(angle), Math.sin(angle)];
    const [along, across] = [1 / length ** 2, 1 / other ** 2];
    const mixed = (along - across) * cosine * sine;
    const matrix = [[along * cosine ** 2 + across * sine ** 2, mixed], [mixed, along * sine ** 2 + across * cosine ** 2]];
    const squared = ([x1, y1], [x2, y2]) => {
      const [dx, dy] = [x1 - x2, y1 - y2];
      return matrix[0][0] * dx * dx + 2 * matrix[0][1] * dx * dy + matrix[1][1] * dy * dy;
    };
    const order = (row) => points.map((point, index) => [squared(points[row], point), index])
      .filter(([, index]) => index !== row).sort(([one], [next]) => one - next).map(([, index]) => index);
    const nearest = points.map((_point, row) => order(row)[0]);
    const isHit = nearest.map((index, row) => classes[index] === classes[row]);
    const at = Math.round(query) - 1;
    const ranked = order(at);
    const count = isHit.filter(Boolean).length;
    const straight = (one, next) => Math.hypot(...points[one].map((part, side) => part - points[next][side]));
    const onCircle = points.filter((_point, row) => {
      const others = [...points.keys()].filter((index) => index !== row);
      return classes[others.reduce((one, next) => (straight(next, row) < straight(one, row) ? next : one))] === classes[row];
    }).length;
    return { onCircle, points, classes, matrix, length, angle, at, ranked, nearest, isHit, count, recall: count / points.length,
      distances: ranked.map((row) => Math.sqrt(squared(points[at], points[row]))), turn: ((angle * 180 / Math.PI) % 180 + 180) % 180 };
  },
  readout: ({ onCircle, recall, classes, ranked, at }) => [[say("R@1 of all points"), say("{share} (circle: {circle})", { share: percent(recall), circle: percent(onCircle / classes.length) })],
    [say("same class among the 3 nearest of ★"), say("{count} of {all}", { count: ranked.slice(0, 3).filter((row) => classes[row] === classes[at]).length, all: 3 })]],
  build({ stage, state, change }) {
    const limits = [[-3.1, -1.9], [3.1, 1.9]]; // of a whole handle
    const plane = new Plane(stage, { x: [-3.1, 3.1], y: [-2.15, 2.15], width: 660, height: 458, label: "Forty points of two classes" });
    plane.svg.style.overflow = "hidden"; // a long ellipse would lie over the words
    let [drawn, seen] = [null, ""];
    const sides = [1, 1]; // an end has its handle on the side of the query that faces the middle of the picture
    const ends = () => {
      const [cosine, sine] = [Math.cos(drawn.angle), Math.sin(drawn.angle)];
      return [[drawn.length * cosine, drawn.length * sine], [-state().other * sine, state().other * cosine]];
    };
    const end = (which, label) => plane.handle({ label, sign: "↕", low: limits[0], high: limits[1], step: 0.06, moved: (point) => {
      const [x, y] = [0, 1].map((part) => sides[which] * (point[part] - drawn.points[drawn.at][part]));
      const length = clamp(Math.hypot(x, y), ...LESSON.lengths);
      const angle = Math.atan2(y, x) - (which ? Math.PI / 2 : 0);
      const first = which ? drawn.length : length;
      change({ axis: [first * Math.cos(angle), first * Math.sin(angle)], other: which ? length : state().other });
    } });
    const handles = [end(0, say("First end of the ellipse")), end(1, say("Second end of the ellipse"))];
    return { draw({ data, query }, numbers) {
      drawn = numbers;
      const { points, classes, at, ranked, nearest, isHit, distances, count } = numbers;
      const [first, second] = ends();
      const center = points[at];
      plane.clear();
      const ellipse = (scale) => Array.from({ length: 72 }, (_, step) => {
        const turn = step * Math.PI / 36;
        return [0, 1].map((part) => center[part] + scale * (Math.cos(turn) * first[part] + Math.sin(turn) * second[part]));
      });
      for (const [row, index] of nearest.entries()) {
        const color = isHit[row] ? COLORS.hit : COLORS.miss;
        plane.line(points[row], points[index], { color, dashed: !isHit[row], opacity: 0.65 });
      }
      plane.path(ellipse(1), { color: COLORS.query, closed: true, fill: COLORS.query, "fill-opacity": 0.08 });
      plane.path(ellipse(distances[0]), { color: COLORS.query, closed: true, width: 1.5, "stroke-dasharray": "6 5" });
      for (const row of ranked.slice(0, 3)) {
        const isSame = classes[row] === classes[at];
        plane.line(center, points[row], { color: isSame ? COLORS.hit : COLORS.miss, width: 3.5, dashed: !isSame });
      }
      points.forEach((point, row) => LESSON.mark(plane, point, classes[row], { opacity: 1, onclick: () => change({ query: row + 1 }) }));
      const letters = Math.max(12, plane.least);
      const above = (point) => (plane.at(point)[1] < letters + 12 ? letters + 8 : -8); // or below, at the upper edge
      points.forEach((point, row) => { if (!isHit[row]) plane.text(point, "✕", { dy: above(point), size: 12, class: "sign" }); });
      for (const row of ranked.slice(0, 3)) {
        const away = points[row].map((part, axis) => part - center[axis]);
        const [dx, dy] = away.map((part) => 20 * part / (Math.hypot(...away) || 1));
        plane.text(points[row], classes[row] === classes[at] ? "✓" : "✕", { dx, dy: 6 - dy, size: 19, "font-weight": 700 });
      }
      LESSON.mark(plane, center, classes[at], { stroke: "currentColor" }, 2.4); // the sign of the query leaves its class to see
      plane.text(center, "★", { dy: 7, size: 21, style: `fill:${COLORS.query}`, stroke: "currentColor", "stroke-width": 0.7 });
      [first, second].forEach((vector, which) => {
        if (seen !== `${data} ${query}`) sides[which] = vector[0] * center[0] + vector[1] * center[1] > 0 ? -1 : 1;
        handles[which].place([0, 1].map((part) => clamp(center[part] + sides[which] * vector[part], limits[0][part], limits[1][part])));
      });
      seen = `${data} ${query}`;
      plane.svg.setAttribute("aria-label", say("Forty points of two classes: {count} have a nearest neighbor of their class. Of the 3 nearest of the query, {same} have its class.",
        { count, same: ranked.slice(0, 3).filter((row) => classes[row] === classes[at]).length }));
    } };
  },
  // Class 0 is a disk, class 1 a square.
  mark(plane, point, label, attributes, factor = 1) {
    const [x, y] = plane.at(point);
    const paint = { fill: PALETTE[label ? 2 : 3], style: "cursor:pointer", ...attributes };
    if (!label) return plane.add("circle", { cx: x, cy: y, r: factor * plane.radius(6), ...paint });
    const half = factor * plane.radius(5);
    return plane.add("rect", { x: x - half, y: y - half, width: 2 * half, height: 2 * half, ...paint });
  },
  formula: (_state, { matrix, points, at, ranked, distances }) => {
    const difference = [0, 1].map((part) => points[at][part] - points[ranked[0]][part]);
    const digits = digitsThatHold([...difference, ...matrix.flat()], (x, y, a, b, c, d) => Math.sqrt(x * x * a + x * y * (b + c) + y * y * d), 2);
    const number = (value, count = digits) => `<mn>${fixed(value, count)}</mn>`;
    const table = (rows) => `<mrow><mo>(</mo><mtable>${rows.map((row) => `<mtr>${row.map((value) => `<mtd>${number(value)}</mtd>`).join("")}</mtr>`).join("")}</mtable><mo>)</mo></mrow>`;
    const squared = `<math><mi>d</mi><msup><mrow><mo>(</mo><mi>x</mi><mo>,</mo><mi>y</mi><mo>)</mo></mrow><mn>2</mn></msup><mo>=</mo>
      <msup><mrow><mo>(</mo><mi>x</mi><mo>−</mo><mi>y</mi><mo>)</mo></mrow><mo>⊤</mo></msup><mi>M</mi><mo>(</mo><mi>x</mi><mo>−</mo><mi>y</mi><mo>)</mo></math>`;
    const transposed = "<msup><mi>L</mi><mo>⊤</mo></msup>";
    return `<p>${say("{formula}, the Mahalanobis distance. Your ellipse is the matrix {matrix}.", { formula: squared, matrix: `<math><mi>M</mi><mo>=</mo>${table(matrix)}</math>` })}</p>
      <p>${say("The query ★ and its nearest neighbor differ by {difference}, so {distance}. A circle of radius 1 would be the ordinary (Euclidean) distance.", {
    difference: `<math><mi>x</mi><mo>−</mo><mi>y</mi><mo>=</mo>${table(difference.map((value) => [value]))}</math>`,
    distance: `<math><mi>d</mi><mo>=</mo>${number(distances[0], 2)}</math>` })}</p>
      <p class="aside">${say("A training method changes M as you do: by labels, or without them by neighbors and groups that it finds. It learns a projection L, and {product}: the distance of two points is the ordinary distance after both are multiplied by {transposed}. (Where L has the directions as rows, M is {rows}.)", { product: `<math><mi>M</mi><mo>=</mo><mi>L</mi>${transposed}</math>`,
    transposed: `<math>${transposed}</math>`, rows: `<math>${transposed}<mi>L</mi></math>` })}</p>`;
  },
  caption: [2, 3, 5],
  presented: { see: [[0, 1], [2, 3]], fails: [0, 1] },
  states: { fails: { data: "ring", axis: [0.75, 1.06], other: 0.4, query: 11 } },
  fails: "Choose “Two rings”. An ellipse that helps at one place of the rings harms at another. The direction that separates the classes changes from place to place, but the ellipse is the same everywhere. Such data need a model that bends the plane first, for example a neural network. The points that it returns are called an embedding. And with two bands, turn the ellipse across them: now it is worse than the circle.",
  takeaway: "A metric is a choice of what counts as near. Metric learning makes this choice so that neighbors share a class.",
  open: { page: "retrieval", label: "nearest images before and after a metric was learned" },
  after: {
    text: "A colleague doubles both axes of the ellipse and keeps its direction. What happens to R@1?",
    choices: ["It rises", "It falls", "It stays the same"],
    right: 2,
    why: ["No point gets another nearest neighbor: all distances shrink by the same factor.", "No point loses its nearest neighbor: all distances shrink by the same factor.", ""],
    because: "All distances are halved, so their order stays. Only the ratio and the direction of the axes change who is nearest.",
  },
  notes: {
    ask: "In which direction should the ellipse be long: along the bands or across them? Why?",
    wrong: "“Across, because then it reaches the other class.” Distance along the long direction counts little: places far away in this direction are still near.",
    stuck: "Students wait for the points to move. Only the ruler changes. To see the same effect as a movement, divide each axis by its length: the ellipse becomes a circle and the bands move apart.",
  },
};
