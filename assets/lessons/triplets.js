const COVERED = 16; // pixels between two points of which the later one hides the other
const SCALE = [[-2.85, 1.55], [-1.85, 1.55]]; // a bar of length 1 in the corner

const LESSON = {
  id: "triplets",
  number: 2,
  minutes: 7,
  title: "Triplets and margin",
  signs: [], // its words say what they mean
  aim: "Afterwards you can read a triplet: anchor, positive, negative and its bound.",
  claim: "A triplet is an anchor, a positive of its class, and a negative of another class. Training moves the three points only while the negative is too near.",
  data: [],
  before: {
    text: "P has the class of the anchor A, N has another. In the shaded region, N is too near. You drag N out of it. What does the next training step do?",
    choices: ["It pushes N even farther away", "It moves no point", "It pulls P closer"],
    right: 1,
    order: [0, 2, 1],
    why: ["A push needs a violated bound; here the negative is already far enough.", "", "One loss causes both the pull on P and the push on N, and it is 0."],
    because: "Outside the region the triplet satisfies its bound. Its loss is already 0, so no movement can lower it. Press “Take a step” with N outside: no point moves.",
    shows: { negative: [1.5, 1.75] },
  },
  isTelling: ({ value }) => value > 0, // its arrows
  meet: 3,
  touch: "Drag N, A or P across the dashed border, then press “Take a step” a few times. Do the same with the other bound.",
  see: "A is the anchor, P the positive, N the negative. P has the class of A, N has another. While N is in the shaded region, it is too near: the triplet violates its bound. The loss says by how much. An arrow shows how one training step moves a point to lower the loss; no arrow means no movement.",
  controls: [
    { name: "loss", kind: "choice", label: "Bound", start: "margin",
      options: [{ value: "margin", words: "Margin μ" }, { value: "angle", words: "Angle α" }] },
    { name: "margin", kind: "slider", label: "Margin μ between the squared distances", low: 0, high: 3, step: 0.1, start: 1 },
    { name: "alpha", kind: "slider", label: "Angle α: the largest half angle that is allowed at N", low: 15, high: 45, step: 1, start: 28, unit: "°" },
  ],
  hidden: [
    { name: "anchor", start: [-0.4, 0], low: [-3, -2], high: [3, 2] },
    { name: "positive", start: [1.1, 0], low: [-3, -2], high: [3, 2] },
    { name: "negative", start: [0.6, 1.05], low: [-3, -2], high: [3, 2] },
  ],
  rate: 0.03, // step size of gradient descent
  // Loss and gradients of three points: Σ [δ²(a,p) − δ²(a,n) + μ]₊ or Σ [δ²(a,p) − 4tan²α δ²(n,m)]₊ with m = (a+p)/2.
  loss({ loss, margin, alpha }, [anchor, positive, negative]) {
    const minus = (one, other) => one.map((part, axis) => part - other[axis]);
    const squared = (vector) => vector.reduce((sum, part) => sum + part * part, 0);
    const scaled = (factor, vector) => vector.map((part) => factor * part);
    const middle = anchor.map((part, axis) => (part + positive[axis]) / 2);
    const near = squared(minus(anchor, positive));
    const tightness = 4 * Math.tan(alpha * Math.PI / 180) ** 2;
    const isMargin = loss === "margin";
    const far = squared(minus(negative, isMargin ? anchor : middle));
    const argument = isMargin ? near - far + margin : near - tightness * far;
    const base = scaled(2, minus(anchor, positive));
    const median = minus(negative, middle);
    let gradients = isMargin
      ? [scaled(2, minus(negative, positive)), scaled(-1, base), scaled(2, minus(anchor, negative))]
      : [base.map((part, axis) => part + tightness * median[axis]), base.map((part, axis) => -part + tightness * median[axis]), scaled(-2 * tightness, median)];
    if (argument <= 0) gradients = gradients.map((gradient) => scaled(0, gradient));
    return { argument, value: Math.max(argument, 0), gradients, near, far, tightness, middle,
      radius: isMargin ? Math.sqrt(near + margin) : Math.sqrt(near / tightness), center: isMargin ? anchor : middle,
      angle: Math.atan2(Math.sqrt(near), 2 * Math.sqrt(squared(median))) * 180 / Math.PI };
  },
  compute(state) {
    const points = [state.anchor, state.positive, state.negative];
    const now = LESSON.loss(state, points);
    const stepped = points.map((point, row) => point.map((part, axis) => part - LESSON.rate * now.gradients[row][axis]));
    return { ...now, stepped, after: LESSON.loss(state, stepped).value };
  },
  // The arc at N between the line to M and a side of the symmetric triangle.
  arc({ angle, middle }, { anchor, positive, negative }) {
    const toM = Math.atan2(middle[1] - negative[1], middle[0] - negative[0]);
    const cross = (middle[0] - negative[0]) * (positive[1] - anchor[1]) - (middle[1] - negative[1]) * (positive[0] - anchor[0]);
    const reach = Math.min(0.45, 0.5 * Math.hypot(middle[0] - negative[0], middle[1] - negative[1]));
    return Array.from({ length: 13 }, (_empty, at) => {
      const turn = toM + Math.sign(cross || 1) * (at / 12) * angle * Math.PI / 180;
      return [negative[0] + reach * Math.cos(turn), negative[1] + reach * Math.sin(turn)];
    });
  },
  readout: ({ value, after, angle, near, far }, { loss, alpha }) => [[say("loss"), fixed(value, 2)], [say("loss after one step"), fixed(after, 2)],
    ...(loss === "margin" ? [["δ²(A, P)", fixed(near, 2)], ["δ²(A, N)", fixed(far, 2)]] : [[say("half angle at N"), `${fixed(angle, 0)}°`], ["α", `${alpha}°`]])],
  build({ stage, state, change }) {
    const plane = new Plane(stage, { x: [-3, 3], y: [-2, 2], width: 660, height: 430, label: "A triplet in the plane" });
    const names = ["anchor", "positive", "negative"];
    const labels = [say("anchor"), say("positive"), say("negative")];
    const colors = [COLORS.query, COLORS.hit, COLORS.miss];
    const handles = names.map((name, row) => plane.handle({ label: labels[row], sign: "APN"[row], color: colors[row], low: [-3, -2], high: [3, 2],
      moved: (point) => change({ [name]: point }) }));
    let [stepped, value, isTried] = [null, 0, false]; // isTried: a step outside the region, which moved nothing
    const inside = (point) => [clamp(point[0], -3, 3), clamp(point[1], -2, 2)];
    const step = element("button", { type: "button", class: "pressed main", style: "white-space:nowrap", onclick: () => {
      isTried = value === 0;
      change(Object.fromEntries(names.map((name, row) => [name, inside(stepped[row])])));
      isTried = false;
    } },
      say("Take a step"));
    const words = element("span", { role: "status", style: "flex:1 1 260px" });
    stage.append(element("p", { style: "display:flex;flex-wrap:wrap;gap:10px;align-items:center;margin:8px 0 0" }, step, words));
    const sliders = stage.closest(".touch")?.querySelectorAll(".slider") ?? [];
    return { draw({ loss, anchor, positive, negative }, numbers) {
      const { center, radius, argument, middle } = numbers;
      const points = [anchor, positive, negative];
      ({ stepped, value } = numbers);
      sliders.forEach((slider, row) => { slider.style.display = (row === 0) === (loss === "margin") ? "" : "none"; });
      plane.clear();
      plane.circle(center, radius, { color: COLORS.miss, dashed: true, fill: COLORS.miss, "fill-opacity": 0.12 });
      const [from, to] = SCALE;
      plane.line(from, to, { color: "currentColor", width: 2, class: "scale" });
      for (const [x, y] of SCALE) plane.line([x, y - 0.06], [x, y + 0.06], { color: "currentColor", width: 2 });
      plane.text([(from[0] + to[0]) / 2, from[1]], say("length 1"), { size: 13, dy: -8, ...HALO });
      plane.text([clamp(center[0], -2.2, 2.2), Math.max(center[1] - radius + 0.3, -1.9)], say("violates the bound"), { size: 13, ...HALO });
      plane.line(anchor, positive, { color: COLORS.hit, width: 2 });
      if (loss === "margin") plane.line(anchor, negative, { color: COLORS.miss, width: 2, dashed: true });
      else {
        // The triangle with the same base and height whose sides are equal: half its angle at N, the arc, is bounded.
        const [bx, by] = [positive[0] - anchor[0], positive[1] - anchor[1]];
        const [mx, my] = [negative[0] - middle[0], negative[1] - middle[1]];
        const stretch = Math.hypot(bx, by) / (2 * (Math.hypot(mx, my) || 1));
        for (const side of [1, -1]) plane.line(negative, [middle[0] - side * my * stretch, middle[1] + side * mx * stretch], { color: COLORS.gray });
        plane.line(...[1, -1].map((side) => [middle[0] - side * my * stretch, middle[1] + side * mx * stretch]), { color: COLORS.gray });
        plane.line(negative, middle, { color: COLORS.miss, width: 2, dashed: true });
        plane.dot(middle, { radius: 4 });
        // Beside the dashed line, on the side of N: the arrowheads of A and P lie beyond.
        const [[nx, ny], [cx, cy]] = [negative, middle].map((point) => plane.at(point));
        const long = Math.hypot(nx - cx, ny - cy) || 1;
        const [ux, uy] = [(nx - cx) / long, (ny - cy) / long].map((part) => part * Math.max(14, plane.least));
        plane.text(middle, "M", { dx: ux + uy, dy: uy - ux + 0.35 * Math.max(13, plane.least), size: 13, ...HALO });
        if (Math.hypot(mx, my) > 0.05) {
          const arc = LESSON.arc(numbers, state());
          plane.path(arc, { color: "currentColor", width: 3 });
          // Outside of the gray side at which the arc ends.
          const [words, letters] = [`${fixed(numbers.angle, 0)}°`, Math.max(14, plane.least)];
          const [[fromX, fromY], [x, y]] = arc.slice(-2).map((point) => plane.at(point));
          const [across, down] = [x - fromX, y - fromY].map((part) => part / (Math.hypot(x - fromX, y - fromY) || 1));
          const away = 6 + (Math.abs(across) * widthOf(words, letters) + Math.abs(down) * letters) / 2;
          plane.text(arc.at(-1), words, { size: 14, dx: away * across, dy: away * down + 0.35 * letters, ...HALO });
        }
      }
      points.forEach((point, row) => plane.arrow(point, point.map((part, axis) => part + 8 * (stepped[row][axis] - part)), { color: "currentColor", width: 3 }));
      points.forEach((point, row) => handles[row].place(point));
      points.forEach((point, row) => { // what a later point covers keeps a ring and its letter, so that one sees whose arrow starts here
        if (!points.slice(row + 1).some((other) => Math.hypot(other[0] - point[0], other[1] - point[1]) * plane.scale[0] < COVERED)) return;
        const [cx, cy] = plane.at(point);
        plane.add("circle", { cx, cy, r: 19, fill: "none", stroke: colors[row], "stroke-width": 5, class: "covered" });
        plane.text(point, "APN"[row], { dx: -30, dy: -16, size: 19, fill: colors[row], "font-weight": 700, ...HALO });
      });
      words.textContent = isTried ? say("✓ The step moved no point: the loss was 0 before it, and it still is.")
        : value === 0 ? say("✓ The bound is satisfied: loss 0, no arrows, nothing to learn.")
        : say("✕ The bound is violated. The arrows show the step, eight times enlarged.");
      plane.svg.setAttribute("aria-label", argument > 0
        ? say("A triplet in the plane. The negative is inside the region that violates the bound; the loss is {loss}.", { loss: fixed(value, 2) })
        : say("A triplet in the plane. The negative is outside the region that violates the bound; the loss is 0."));
    } };
  },
  formula: ({ loss, margin, alpha }, { near, far, tightness, value }) => {
    const values = loss === "margin" ? [near, far, margin] : [near, tightness, far];
    const digits = digitsThatHold(values, loss === "margin" ? (a, b, c) => Math.max(a - b + c, 0) : (a, b, c) => Math.max(a - b * c, 0), 2);
    const number = (part, count = digits) => `<mn>${fixed(part, count)}</mn>`;
    const squared = (one, other) => `<msup><mi>δ</mi><mn>2</mn></msup><mo>(</mo><mi>${one}</mi><mo>,</mo><mi>${other}</mi><mo>)</mo>`;
    const plus = (inner) => `<msub><mrow><mo>[</mo>${inner}<mo>]</mo></mrow><mo>+</mo></msub>`;
    const meaning = say("{distance} is the distance in the plane, and {bracket} is z if z is positive, else 0.", { distance: "<math><mi>δ</mi></math>",
      bracket: "<math><msub><mrow><mo>[</mo><mi>z</mi><mo>]</mo></mrow><mo>+</mo></msub></math>" });
    return loss === "margin"
      ? `<p>${say("Triplet loss: {formula}", { formula: `<math>${plus(`${squared("A", "P")}<mo>−</mo>${squared("A", "N")}<mo>+</mo><mi>μ</mi>`)}</math> <math><mo>=</mo>${plus(`${number(near)}<mo>−</mo>${number(far)}<mo>+</mo>${number(margin, 1)}`)}<mo>=</mo>${number(value, 2)}</math>` })}</p>
        <p><span class="of-all">${meaning}</span> ${say("N must leave the circle around A.")}</p>`
      : `<p>${say("Angular loss: {formula}", { formula: `<math>${plus(`${squared("A", "P")}<mo>−</mo><mn>4</mn><mo>·</mo><msup><mi>tan</mi><mn>2</mn></msup><mo>(</mo><mi>α</mi><mo>)</mo><mo>·</mo>${squared("N", "M")}`)}</math> <math><mo>=</mo>${plus(`${number(near)}<mo>−</mo>${number(tightness)}<mo>·</mo>${number(far)}`)}<mo>=</mo>${number(value, 2)}</math>` })}, α = ${alpha}°</p>
        <p>${say("M is the middle between A and P. Make the triangle symmetric, with the same base AP and the same distance from N to M: α bounds half its angle at N.")} <span class="of-picture">${say("The gray sides draw this triangle: half its angle lies between a gray side and the line to M.")}</span> <span class="of-all">${meaning}</span> ${say("N must leave the circle around M.")}</p>`;
  },
  caption: [0, 1, 2, 4],
  presented: { see: [[3, 4]], fails: [0, 2] },
  cases: [{ loss: "margin" }, { loss: "angle" }], // a summary prints the formulas of both bounds
  summary: {}, // the step of the question moves nothing, so it would draw no arrow
  states: { see: [{}], formula: {}, fails: { negative: [-0.4, 0] }, check: {}, takeaway: {} },
  fails: "With the margin, drag N onto A; with the angle, onto M, the middle of A and P: its arrow disappears. N could not be worse, but no direction is better than another: the slope is 0. With the margin, shrink the triangle: μ stays, so even a well-shaped one violates the bound.",
  takeaway: "A triplet that violates its bound moves at least one of its points, if they do not all coincide; any other triplet teaches nothing. The margin bounds a difference of squared distances. The angle bounds the shape of the triangle.",
  open: { page: "train", label: "train with triplets and this bound", query: ({ loss, margin, alpha }) => (loss === "margin"
    ? { method: "triplet", fields: `margin:${margin}` } : { method: "angular", fields: `alpha:${alpha}` }) },
  after: {
    text: "All coordinates of the points are multiplied by 10. Which loss of a triplet can become zero by this alone?",
    choices: ["Only the triplet loss with a margin", "Only the angular loss", "Both"],
    right: 0,
    why: ["", "The angular loss compares squared lengths, so both grow by the same factor and its sign stays.", "One of the two bounds does not depend on the scale: an angle stays as it is."],
    because: "N is farther from A than P is, and this difference of squared distances grows a hundredfold, but the margin μ stays. Angles do not change with the scale.",
  },
  notes: {
    ask: "Where may N be without any loss? Why is the border a circle, and what is its center with each bound?",
    wrong: "“Far from the positive.” The margin bounds the distance from N to A alone. The angle bounds the distance to the middle M, in which N to P counts as much as N to A: |NM|² = ½|NA|² + ½|NP|² − ¼|AP|².",
    stuck: "The arrow of A: it points away from N and toward P. Ask which of its two parts would remain if N were gone. Let them draw the border on paper before you show the region.",
  },
};
