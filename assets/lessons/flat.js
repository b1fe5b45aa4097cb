const [OUTER, WIDE, INNER, PER_CURVE] = [0.96, 1.12, 0.66, 26];
const [N_ALPHA, N_BETA] = [4, 0.5];
const SAME = 0.04; // a point nearer than this is the center itself, not one of its neighbors
const CORNERS = [[-1.2, 0.05], [1.2, 1.3]]; // corners of the picture that A and B reach
const MARKS = 34; // pixels below the bars, for a mark and a square
const RING = 120; // places around A; the first and the middle one lie on its flat
const NUMBERED = 8; // places of the ring with a number

const minus = ([x, y], [a, b]) => [x - a, y - b];
const dot = ([x, y], [a, b]) => x * a + y * b;
const heading = (angle) => [Math.cos(angle), Math.sin(angle)];

// Two curved lines of points, one inside of the other. The outer one is nearly straight at its top, so that a flat follows it there for a while.
const CURVES = (() => {
  const random = randomStream(4);
  const noise = () => 0.008 * (random() + random() + random() - 1.5);
  const shares = () => Array.from({ length: PER_CURVE }, (_row, row) => 0.06 + 0.88 * (row + 0.35 * random()) / (PER_CURVE - 1)); // of the line's length
  const bent = (angle) => [[WIDE, Math.cos(angle)], [OUTER, Math.sin(angle)]].map(([size, part]) => size * Math.sign(part) * Math.abs(part) ** (1 / 3));
  const steps = Array.from({ length: 2001 }, (_step, step) => bent(Math.PI * step / 2000));
  const lengths = [0];
  for (let step = 1; step < steps.length; step += 1) lengths.push(lengths.at(-1) + Math.hypot(...minus(steps[step], steps[step - 1])));
  const outer = shares().map((share) => steps[lengths.findIndex((length) => length >= share * lengths.at(-1))]);
  const inner = shares().map((share) => heading(share * Math.PI).map((part) => INNER * part));
  return [outer, inner].flatMap((points, curve) => points.map((point) => ({ curve, point: point.map((part) => part + noise()) })));
})();

// The direction of the line through the origin that contains most of the vectors' squared length.
function bestDirection(vectors) {
  const sum = (part) => vectors.reduce((total, vector) => total + part(vector), 0);
  return heading(Math.atan2(2 * sum(([x, y]) => x * y), sum(([x, y]) => x * x - y * y)) / 2);
}

const quality = (direction, vector) => (dot(vector, vector) ? dot(direction, vector) ** 2 / dot(vector, vector) : 1);

// The linear neighborhood at a center: candidates are tested one by one, nearest first.
function linearNeighborhood(center, k, threshold) {
  const candidates = CURVES.map(({ point }, row) => ({ row, vector: minus(point, center) }))
    .filter(({ vector }) => Math.hypot(...vector) > SAME)
    .sort((one, other) => dot(one.vector, one.vector) - dot(other.vector, other.vector)).slice(0, k);
  const members = [];
  const tested = candidates.map(({ row, vector }, position) => {
    const enlarged = [...members, vector];
    const direction = bestDirection(enlarged);
    const worst = position ? Math.min(...enlarged.map((member) => quality(direction, member))) : 1;
    const isMember = worst >= threshold - 1e-9;
    if (isMember) members.push(vector);
    return { row, worst, isMember };
  });
  return { tested, members, direction: bestDirection(members) };
}

// A difference of two points, split into the part along a direction and the part across it.
function splitAlong(direction, vector) {
  const along = Math.abs(dot(direction, vector));
  const across = Math.sqrt(Math.max(dot(vector, vector) - along ** 2, 0));
  const [alpha, beta] = [(1 + across / 2) ** -N_ALPHA, (1 + along) ** -N_BETA];
  return { along, across, alpha, beta, similarity: alpha * beta };
}

const LESSON = {
  id: "flat",
  number: 5,
  minutes: 7,
  title: "Cosine or flat?",
  aim: "Afterwards you can say when a direction tells more than a distance.",
  claim: "Two points can be near each other and still be different. Similarity should fall slowly along the curve that the data form, and fast across it.",
  data: [],
  before: {
    text: "The green line is A’s flat: it follows A’s curve at A. B now moves around the dashed circle, so its distance from A stays the same. Where is B most similar to A?",
    choices: ["Where the circle meets the green line", "Where the circle meets the inner curve", "Equally everywhere: the distance does not change"],
    right: 0,
    why: ["", "The inner curve passes there, but A’s flat does not point to it.", "Only the distance is equal everywhere. This similarity also asks in which direction B lies."],
    shows: { b: [-0.04, 0.957] }, // at the diamond
    because: "Distance cannot tell these places apart. Nor can the cosine of embeddings of length 1, the usual similarity, which depends on the distance alone. But the green line continues A’s curve, and the inner curve is a different curve.",
  },
  touch: "Drag B around the dashed circle, and watch the distance and the similarity. Then raise k to test more points, lower T, and turn A’s flat with the handle ↻.",
  see: "The green line is A’s <b>flat</b>, which fits A’s neighbors best; the pink line is B’s, fitted to the points with pink rims. All points on the dashed circle are as far from A as B. Thickness and numbers of the ring say how similar B would be there; at ◇ most. The ring jumps where B’s neighbors, and so B’s flat, change. Each bar tests one of A’s nearest points (□: on the inner curve): the lowest share along the flat, of this point and the members. If it reaches T, the point becomes a member (✓); else it is rejected (✕). Away from both curves, B’s flat fits only a few points and can point at A by chance: there the similarity rises again.",
  controls: [
    { name: "k", kind: "slider", label: "k, nearest points to test", low: 1, high: 24, step: 1, start: 12 },
    { name: "threshold", kind: "slider", label: "T, share of each squared distance that must lie along the flat", low: 0.1, high: 0.99, step: 0.01, start: 0.9 },
  ],
  hidden: [
    { name: "a", start: [0.29, 0.957], low: CORNERS[0], high: CORNERS[1] },
    { name: "b", start: [0.2, 0.629], low: CORNERS[0], high: CORNERS[1] },
    { name: "turn", start: 0, low: -90, high: 90 },
  ],
  // PLM's similarity: the mean of what the flats of both points say, each fitted to the neighbors of its point.
  similarity(center, direction, place, { k, threshold }) {
    const { direction: other, tested } = linearNeighborhood(place, k, threshold);
    const [fromA, fromB] = [direction, other].map((way) => splitAlong(way, minus(place, center)));
    return { place, other, rim: tested.filter(({ isMember }) => isMember).map(({ row }) => row), fromA, fromB, similarity: (fromA.similarity + fromB.similarity) / 2 };
  },
  // A is the nearest point of the outer curve. `ring` has the similarity of places around it, as far away as B; ◇ is the best of them in the picture. `turn` is the angle, in degrees, between the reader's tangent and the fitted flat.
  compute({ k, threshold, a, b, turn }) {
    const nearest = (place, points) => points.reduce((one, other) => (Math.hypot(...minus(other, place)) < Math.hypot(...minus(one, place)) ? other : one));
    const points = CURVES.map(({ point }) => point);
    const center = nearest(a, points.slice(0, PER_CURVE));
    const own = linearNeighborhood(center, k, threshold);
    const forward = [center[1], -center[0]]; // the fitted direction has no sign: take the one clockwise along the curve
    const fitted = dot(own.direction, forward) < 0 ? own.direction.map((part) => -part) : own.direction;
    const direction = heading(Math.atan2(fitted[1], fitted[0]) + turn * Math.PI / 180);
    const distance = Math.hypot(...minus(b, center));
    const at = (place) => LESSON.similarity(center, direction, place, { k, threshold });
    const { other, rim, fromA, fromB, similarity } = at(b);
    const start = Math.atan2(direction[1], direction[0]) + (direction[0] * center[1] > direction[1] * center[0] ? Math.PI : 0); // counterclockwise along the curve
    const ring = Array.from({ length: RING }, (_place, step) => at(heading(start + 2 * Math.PI * step / RING).map((part, axis) => center[axis] + distance * part)));
    const isWithin = ({ place }) => place.every((part, axis) => part >= CORNERS[0][axis] && part <= CORNERS[1][axis]);
    const best = (ring.some(isWithin) ? ring.filter(isWithin) : ring).reduce((one, next) => (next.similarity > one.similarity + 1e-9 ? next : one));
    const total = own.members.reduce((sum, vector) => sum + dot(vector, vector), 0);
    return { points, center, second: b, fitted, direction, other, rim, tested: own.tested,
      members: own.members.length, strangers: own.tested.filter(({ row, isMember }) => isMember && CURVES[row].curve).length,
      distance, cosine: 1 - distance ** 2 / 2, fromA, fromB, similarity, best, diamond: best.similarity,
      ring: ring.map((each) => ({ place: each.place, similarity: each.similarity })),
      explained: own.members.reduce((sum, vector) => sum + dot(direction, vector) ** 2, 0) / total };
  },
  readout: ({ distance, cosine, similarity, diamond, members, tested, explained }) => [[say("distance"), fixed(distance, 2)],
    [say("cosine, if of length 1"), fixed(cosine, 2)], [say("similarity"), fixed(similarity, 2)], [say("similarity at ◇"), fixed(diamond, 2)],
    [say("members"), say("{count} of {all}", { count: members, all: tested.length })], [say("their share along the flat"), percent(explained)]],
  build({ stage, change }) {
    const isFailing = stage.closest(".present[data-slide=fails]") !== null; // its steep flat needs a higher picture, and its many marks need room
    const top = isFailing ? 1.5 : 1.32;
    const plane = new Plane(stage, { x: [-1.25, 1.25], y: [0.02, top], height: 335 * (top - 0.02) / 1.3, label: "Two curves of points" });
    plane.svg.prepend(shape("svg", { width: plane.width, height: plane.height }, plane.drawn)); // an inner picture clips what leaves it
    plane.svg.dataset.part = "curves";
    const isLow = leastLetters(stage) > 0 || stage.clientWidth < 500; // drawn marks in place of letters
    const strip = new Plane(stage, { x: [-2.2, 25.6], y: [isLow ? -1.12 * MARKS / Math.max(MARKS, 110 * shareOf(stage, 640) * tallOf(stage) - MARKS) : -0.32, 1.12], height: isLow ? 110 : 84, equal: false, label: "Candidates" });
    strip.svg.setAttribute("role", "img");
    const isTight = strip.isCrowded || strip.width < 500 || leastLetters(stage) > 0;
    const edge = { low: CORNERS[0], high: CORNERS[1] };
    const reach = 0.54;
    let numbers = null;
    const grips = {
      a: plane.handle({ label: "A, along the outer curve", sign: "A", ...edge, step: 0.12, color: COLORS.query, moved: (a) => change({ a }) }),
      b: plane.handle({ label: "B", sign: "B", ...edge, color: COLORS.refined, moved: (b) => change({ b }) }),
      turn: plane.handle({ label: "A’s flat", sign: "↻", ...edge, color: COLORS.after, moved: (to) => {
        const [[dx, dy], [fx, fy]] = [minus(to, numbers.center), numbers.fitted];
        let degrees = (Math.atan2(dy, dx) - Math.atan2(fy, fx)) * 180 / Math.PI;
        degrees = ((degrees + 450) % 180 + 180) % 180 - 90; // a line turned by 180 degrees is the same line
        change({ turn: degrees });
      } }),
    };
    // The dashed circle again as a band, thick where B would be similar to A.
    const drawRing = ({ ring, center }) => {
      const [least, most] = [Math.min, Math.max].map((pick) => pick(...ring.map(({ similarity }) => similarity)));
      const edge = (side) => ring.map(({ place, similarity }) => {
        const [[x, y], [left, top]] = [plane.at(place), plane.at(center)];
        const share = 1 + side * (0.5 + 6.5 * (similarity - least) / (most - least || 1)) / (Math.hypot(x - left, y - top) || 1);
        return [left + share * (x - left), top + share * (y - top)].map((part) => part.toFixed(1));
      });
      const outline = (points) => `M${points.join("L")}Z`;
      plane.add("path", { d: outline(edge(1)) + outline(edge(-1)), fill: COLORS.refined, "fill-rule": "evenodd", "fill-opacity": 0.6, class: "later" });
    };
    // The similarity at places of the ring and at ◇, where no number covers another, a handle, a point or its rim: outside of the ring, inside of it, or above or below ◇.
    const numberRing = ({ ring, best, center, points, rim, tested }, taken, words) => {
      const letters = Math.max(13, plane.least);
      const [wide, high] = [widthOf("0.00", letters) + letters / 3, letters];
      const [left, top] = plane.at(center);
      const marked = new Set([...rim, ...tested.map(({ row }) => row)]); // with a rim or a cross
      const marks = points.map((point, row) => [...plane.at(point), ...Array(2).fill(plane.radius(4) + (marked.has(row) ? 6 : 1))]);
      const gap = 0.6 * letters; // between numbers, which would read as one
      const boxes = [...taken.map((point) => [...plane.at(point), 17, 17]), ...words, ...marks];
      const places = Array.from({ length: NUMBERED }, (_none, at) => ring[Math.round((at + 0.5) * RING / NUMBERED) % RING]);
      const meetings = [ring[0], ring[RING / 2]].filter(({ place }) => Math.hypot(...minus(place, best.place)) > 0.1); // of the circle and the green line
      for (const { place, similarity } of [best, ...meetings, ...places]) {
        const [x, y] = plane.at(place);
        const length = Math.hypot(x - left, y - top) || 1;
        const [across, down] = [(x - left) / length, (y - top) / length];
        const isBest = place === best.place;
        const isMeeting = meetings.some((meeting) => meeting.place === place);
        const away = (isBest ? 20 : 8) + (Math.abs(across) * wide + Math.abs(down) * high) / 2;
        const beside = isBest || isMeeting ? [1, -1].flatMap((side) => [0, 0.6, -0.6, 1.2, -1.2].map((turn) => [x + turn * wide, y - side * (21 + high / 2)])) : [];
        const spots = [...(isMeeting ? beside : []), ...(isBest ? [0, 6, 12, 20] : [0, 4]).map((far) => [x + (away + far) * across, y + (away + far) * down]), ...beside, ...(isBest ? [] : [0, 6].map((far) => [x - (away + far) * across, y - (away + far) * down]))];
        const spot = spots.find(([left, top]) => left > wide / 2 && left < plane.width - wide / 2 && top > high / 2 && top < plane.height - high / 2
          && boxes.every(([boxX, boxY, halfWide, halfHigh]) => Math.abs(left - boxX) > wide / 2 + halfWide || Math.abs(top - boxY) > high / 2 + halfHigh));
        if (!spot) continue;
        boxes.push([...spot, wide / 2 + gap / 2, high / 2 + gap]);
        plane.text(plane.from(spot), fixed(similarity, 2), { dy: 0.35 * letters, size: 13, class: isBest ? "later best" : isMeeting ? "later meeting" : "later", ...HALO });
      }
    };
    const drawBars = ({ tested }, threshold) => {
      strip.clear();
      if (!isTight) strip.text([-0.9, 0.9], say("share"), { size: 11, dx: 4, anchor: "end" });
      const step = 24 / Math.max(tested.length, LESSON.controls[0].start); // few candidates have wide bars
      tested.forEach(({ worst, isMember, row }, position) => {
        const [[left, top], [right, bottom]] = [strip.at([step * (position + 0.12), worst]), strip.at([step * (position + 0.88), 0])];
        strip.add("rect", { x: left, y: top, width: right - left, height: Math.max(bottom - top, 1.5),
          fill: isMember ? COLORS.after : "none", stroke: isMember ? COLORS.after : COLORS.miss, "stroke-width": 1.5 });
        if (!isTight) {
          strip.text([step * (position + 0.5), -0.27], `${isMember ? "✓" : "✕"}${CURVES[row].curve ? "□" : ""}`, { size: 12 });
          return;
        }
        const [x, base] = strip.at([step * (position + 0.5), 0]);
        const y = base + 11; // drawn, because large signs would overlap
        const sign = Math.min(6, 0.36 * step * strip.scale[0]) / 6;
        const d = (isMember ? [[-6, 0], [-2, 5], [6, -6]] : [[-5, -5], [5, 5], [5, -5], [-5, 5]]).map(([dx, dy], at) => `${(isMember ? at : at % 2) ? "L" : "M"}${x + sign * dx} ${y + sign * dy}`).join("");
        strip.add("path", { d, fill: "none", stroke: "currentColor", "stroke-width": 2 });
        if (CURVES[row].curve) strip.add("rect", { x: x - 5 * sign, y: y + 9, width: 10 * sign, height: 10 * sign, fill: "none", stroke: "currentColor", "stroke-width": 2 });
      });
      strip.line([0, threshold], [24.2, threshold], { dashed: true, color: COLORS.query, width: 2 });
      strip.text([24.4, threshold], "T", { size: 13, dy: 4, anchor: "start" });
      strip.svg.setAttribute("aria-label", say("{count} candidates, nearest first. Members: {members}", { count: tested.length,
        members: tested.map(({ isMember }, position) => (isMember ? position + 1 : 0)).filter(Boolean).join(", ") }));
    };
    return { draw({ turn, threshold }, shown) {
      numbers = shown;
      const { center, second: b, direction, other, rim, tested, distance, similarity, diamond, best, fromA, members, strangers } = numbers;
      plane.clear();
      drawRing(numbers);
      plane.circle(center, distance, { dashed: true });
      const along = (from, way, length) => from.map((part, axis) => part + length * way[axis]);
      plane.line(along(center, direction, -0.62), along(center, direction, 0.62), { color: COLORS.after, width: 3.5 });
      plane.line(along(b, other, -0.3), along(b, other, 0.3), { color: COLORS.refined, width: 2.5 });
      const foot = along(center, direction, dot(direction, minus(b, center)));
      plane.line(foot, b, { color: COLORS.miss, width: 2, dashed: true });
      const words = []; // boxes of words: their middle, and half their width and height
      if (fromA.across > 0.12) {
        const far = best.place[0] - center[0]; // the words stand on the side without ◇
        const [side, across] = [Math.abs(far) > 0.1 ? -Math.sign(far) : direction[0] > 0 ? -1 : 1, say("across {distance}", { distance: fixed(fromA.across, 2) })];
        const halfway = [(foot[0] + b[0]) / 2, (foot[1] + b[1]) / 2];
        plane.text(halfway, across, { dx: 8 * side, dy: 5, size: 13, anchor: side < 0 ? "end" : "start", ...HALO });
        const half = widthOf(across, Math.max(13, plane.least)) / 2;
        words.push([plane.at(halfway)[0] + side * (8 + half), plane.at(halfway)[1], half + plane.radius(6), Math.max(13, plane.least)]);
      }
      const status = new Map(tested.map(({ row, isMember }) => [row, isMember]));
      const half = plane.radius(4);
      CURVES.forEach(({ curve, point }, row) => {
        const [x, y] = plane.at(point);
        const color = status.get(row) ? COLORS.after : COLORS.gray;
        if (curve) plane.add("rect", { x: x - half, y: y - half, width: 2 * half, height: 2 * half, fill: status.get(row) ? color : "none", stroke: color, "stroke-width": 2 });
        else plane.dot(point, { radius: 4.5, color });
        if (rim.includes(row) && !isFailing) plane.add("circle", { cx: x, cy: y, r: half + 4.5, fill: "none", stroke: COLORS.refined, "stroke-width": 2.5, class: "later" });
        if (status.get(row) === false) {
          plane.line(plane.from([x - 6, y - 6]), plane.from([x + 6, y + 6]), { color: COLORS.miss, width: 2 });
          plane.line(plane.from([x - 6, y + 6]), plane.from([x + 6, y - 6]), { color: COLORS.miss, width: 2 });
        }
      });
      const [x, y] = plane.at(best.place);
      const wide = 17; // it frames B, which may stand on it
      plane.add("path", { d: `M${x} ${y - wide}l${wide} ${wide}l${-wide} ${wide}l${-wide} ${-wide}Z`, fill: "none", stroke: "currentColor", "stroke-width": 2, class: "later" });
      drawBars(numbers, threshold);
      grips.a.place(center);
      grips.b.place(b);
      const end = [reach, -reach, 0.8 * reach, -0.8 * reach].map((far) => along(center, direction, far)).find(([x, y]) => Math.abs(x) < 1.17 && y > 0.1 && y < top - 0.08);
      const turned = end ?? along(center, direction, 0.6 * reach); // inside of the frame
      grips.turn.place(turned);
      numberRing(numbers, [center, b, turned], words);
      plane.svg.setAttribute("aria-label", `${say("B is {distance} from A and has similarity {similarity}; at ◇, as far from A, it would have {diamond}. The flat has {members} members, {strangers} of them from the other curve.", {
        distance: fixed(distance, 2), similarity: fixed(similarity, 2), diamond: fixed(diamond, 2), members, strangers })} ${turn ? say("It is turned by {turn} degrees.", { turn: fixed(turn, 0) }) : ""}`);
    } };
  },
  formula: (_state, { fromA, fromB, similarity }) => {
    const digits = digitsThatHold([fromA.similarity, fromB.similarity], (a, b) => (a + b) / 2, 2);
    const raised = (power) => `<mrow style="font-size:0.85em"><mo>−</mo><mn>${plain(power)}</mn></mrow>`; // read from the last row
    const part = ({ along, across, similarity: value }) => {
      const count = digitsThatHold([across, along], (o, p) => (1 + o / 2) ** -N_ALPHA * (1 + p) ** -N_BETA, digits);
      return `<math><msup><mrow><mo>(</mo><mn>1</mn><mo>+</mo><mfrac><mn>${fixed(across, count)}</mn><mn>2</mn></mfrac><mo>)</mo></mrow>${raised(N_ALPHA)}</msup>
      <mo>·</mo><msup><mrow><mo>(</mo><mn>1</mn><mo>+</mo><mn>${fixed(along, count)}</mn><mo>)</mo></mrow>${raised(N_BETA)}</msup><mo>=</mo><mn>${fixed(value, digits)}</mn></math>`;
    };
    const formula = `<math><mi>s′</mi><mo>=</mo><msup><mrow><mo>(</mo><mn>1</mn><mo>+</mo><mi>o</mi><mo>/</mo><mn>2</mn><mo>)</mo></mrow>${raised(N_ALPHA)}</msup>
      <mo>·</mo><msup><mrow><mo>(</mo><mn>1</mn><mo>+</mo><mi>p</mi><mo>)</mo></mrow>${raised(N_BETA)}</msup></math>`;
    return `<p>${say("Split the step from A to B into <i>o</i>, across a flat, and <i>p</i>, along it. Then {formula}: distance across costs more. PLM, a method of the app, calls the exponents −N<sub>α</sub> and −N<sub>β</sub>.", {
      formula })}</p>
      <p>${say("By A’s flat: {formula}", { formula: part(fromA) })}</p><p>${say("By B’s flat: {formula}", { formula: part(fromB) })}</p>
      <p>${say("The similarity is their mean, {similarity}. A neighbor joins only if afterwards, for every member, at least the share T of its squared distance lies along the flat.", { similarity: fixed(similarity, 2) })}</p>`;
  },
  captions: { curves: [0, 1, 2] },
  caption: [0, 1, 2],
  presented: { see: [[0, 2], [4, 5]], fails: [0, 1] },
  states: { see: [{}, {}], formula: {}, fails: { k: 24, threshold: 0.3 } },
  fails: "Set k to 24 and lower T to 0.3. Squares of the other curve join, A’s flat no longer follows A’s curve, and similarity is measured along a wrong direction. Drag B very close to A: the cosine of embeddings of length 1 is nearly 1 on every side, but so is the similarity. A flat is of no help at tiny distances. On real images the curves are not drawn, so a wrong flat stays unnoticed.",
  takeaway: "Fit a flat to the neighbors that lie along it. Judge two points by how far apart they are across their flats, not only by their distance or cosine.",
  open: { page: "neighborhoods", label: "linear neighborhoods at this T", query: ({ k, threshold }) => ({ candidates: String(k), threshold: String(threshold) }) },
  after: {
    text: "Photographs show one bird from the front and then, step by step, from the side. Another bird is photographed from the front only. The front views of both are close. A flat is fitted to the first bird’s photographs. How can it tell the two front views apart?",
    choices: ["By the direction in which the first bird’s photographs change", "By the smaller cosine of the two front views", "Not at all: near points look the same to it"],
    right: 0,
    order: [1, 0, 2],
    why: ["", "The front views are close, so their cosine is large, not small.", "Near points can lie in different directions, and a flat has a direction."],
    because: "The photographs from front to side form a curve. The flat follows it, and the other bird’s photograph lies off this flat.",
  },
  notes: {
    ask: "Where on the dashed circle is B most similar to A, and where least? Which choice of B would cosine prefer?",
    wrong: "“The nearer point is the more similar one.” That is true only along one direction; across the flat a small step can already leave the curve.",
    stuck: "The flat is a line here because the picture has two dimensions and the flat has one. In PLM (Bhatnagar and Ahuja) it has three dimensions within a hundred or more. For embeddings of length 1, cosine is 1 minus half of the squared distance, so cosine and distance give the same ranking.",
  },
};
