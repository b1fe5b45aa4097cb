const SMALL = [0.3, 0.45, 0.65, 0.9];
const TABLE = [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];

// Authority ascent. All stored steps lead to a larger ω. The parent of an image is its first step, the steepest, whose relevancy exceeds ε; without such a step it is a mode.
function ascend({ rows, columns, relevancy, classes }, epsilon) {
  const parents = Int32Array.from(classes, (_class, row) => row);
  for (let step = rows.length - 1; step >= 0; step -= 1) if (relevancy[step] > epsilon) parents[rows[step]] = columns[step];
  const modes = Int32Array.from(parents, (parent) => {
    while (parents[parent] !== parent) parent = parents[parent];
    return parent;
  });
  const clusters = new Map();
  modes.forEach((mode, row) => {
    if (!clusters.has(mode)) clusters.set(mode, []);
    clusters.get(mode).push(row);
  });
  const sizes = [...clusters.values()].map((members) => members.length);
  const others = [...clusters.values()].flatMap((members) => { // of each cluster, the images of another class than its most frequent one
    const counts = new Uint16Array(10);
    for (const row of members) counts[classes[row]] += 1;
    const most = counts.indexOf(Math.max(...counts));
    return members.filter((row) => classes[row] !== most);
  });
  const singletons = sizes.filter((size) => size === 1).length;
  return { parents, modes, clusters, others, count: sizes.length, largest: Math.max(...sizes), singletons,
    coverage: 1 - singletons / classes.length, purity: 1 - others.length / classes.length };
}

// The colors of clusters. A walk from the lowest ε up to this one hands them on: a cluster inherits the color of the cluster before the step with
// which it shares most members, the largest overlap first. A new cluster takes a free color, or else the one whose clusters are farthest on the map.
const LOWEST = 20; // hundredths of ε, where the walk begins
const walks = new Map(); // by kind of images: of each hundredth of ε, {modes, colors: mode → index in PALETTE}
const biggestFirst = ({ clusters }) => [...clusters].filter(([, members]) => members.length > 1).sort(([, one], [, other]) => other.length - one.length);

function handedOn(former, ascent, positions) {
  const shared = [];
  for (const [mode, members] of biggestFirst(ascent)) {
    const counts = new Map(); // of former clusters
    for (const row of members) if (former?.colors.has(former.modes[row])) counts.set(former.modes[row], (counts.get(former.modes[row]) ?? 0) + 1);
    for (const [old, count] of counts) shared.push([count, old, mode]);
  }
  const [colors, inherited] = [new Map(), new Set()];
  for (const [, old, mode] of shared.sort(([one], [other]) => other - one)) {
    if (colors.has(mode) || inherited.has(old)) continue;
    colors.set(mode, former.colors.get(old));
    inherited.add(old);
  }
  const apart = (one, other) => Math.hypot(positions[2 * one] - positions[2 * other], positions[2 * one + 1] - positions[2 * other + 1]);
  for (const [mode] of biggestFirst(ascent)) {
    if (colors.has(mode)) continue;
    const nearest = new Array(PALETTE.length).fill(Infinity); // cluster of each color
    for (const [other, color] of colors) nearest[color] = Math.min(nearest[color], apart(mode, other));
    colors.set(mode, nearest.indexOf(Math.max(...nearest)));
  }
  return { modes: ascent.modes, colors };
}

function clusterColors(images, data, ascent, epsilon) {
  if (!walks.has(images)) walks.set(images, []);
  const walk = walks.get(images);
  const last = Math.ceil(Number((100 * epsilon).toFixed(4))) - 1 - LOWEST; // the last step below this ε
  while (walk.length <= last) walk.push(handedOn(walk.at(-1), ascend(data, (LOWEST + walk.length) / 100), data.positions));
  return handedOn(walk[last], ascent, data.positions).colors;
}

const HALF = [Math.sqrt(Math.PI) / 2, Math.sqrt(Math.PI / Math.sqrt(3))]; // of a square's and a triangle's side, in radii of a circle of equal area
const GROUPS = [circle, // the true groups of the points
  (context, x, y, radius) => context.rect(x - HALF[0] * radius, y - HALF[0] * radius, 2 * HALF[0] * radius, 2 * HALF[0] * radius),
  (context, x, y, radius) => { // its center of mass on the spot
    const [half, low] = [HALF[1] * radius, HALF[1] * radius / Math.sqrt(3)];
    context.moveTo(x, y - 2 * low);
    context.lineTo(x + half, y + low);
    context.lineTo(x - half, y + low);
    context.closePath();
  }];

const LESSON = {
  id: "epsilon",
  number: 4,
  minutes: 6,
  title: "ε merges and shatters",
  aim: "Afterwards you can choose a threshold for clusters and say what coverage and purity show.",
  claim: "Without labels, clusters of similar images can serve as classes. A low threshold ε merges true classes, and a high ε shatters them.",
  data: ["digits", "epsilon"],
  before: {
    text: "Links stronger than ε lead from image to image, up to denser places, to a peak. Images that lead to the same peak form a cluster. You lower ε from 0.65 to 0.3: what happens to the clusters?",
    choices: ["Fewer, larger clusters", "More, smaller clusters", "The same clusters"],
    right: 0,
    shows: { epsilon: 0.3 },
    why: ["", "A higher ε does this: it removes links, and clusters fall apart.", "ε decides which links count, so with it changes to which peak an image leads."],
    because: "A lower threshold admits more links. Then fewer images are left from which no link leads on to a denser place, and each one is the peak of a cluster.",
  },
  touch: "Move ε slowly from left to right, or press a small map. Then do the same with the digits.",
  see: "A line is the one link that an image follows, to an image in a denser place, up to a mode (peak, large point). All images with the same mode are a cluster and share a color. The shape of a point, or the digit, is its true class, which no cluster sees; a ring ◯ marks an image that is not of its cluster’s main (most frequent) class. Training uses the cluster as the image’s class: its pseudo-label. A gray point is a singleton: a cluster of one. Areas, gaps and axes of the digits’ map carry no units. Coverage: the share in clusters of two or more. Purity: the share of images of their cluster’s main class.",
  summary: { epsilon: 0.5 },
  controls: [
    { name: "images", kind: "choice", label: "Images", start: "points", options: [{ value: "points", words: "45 points in 3 groups" }, { value: "digits", words: "1,797 digits" }] },
    { name: "epsilon", kind: "slider", label: "ε, minimum strength (relevancy) of a link", low: 0.2, high: 0.95, step: 0.01, start: 0.65 },
  ],
  compute({ images, epsilon }, data) {
    const ascent = ascend(data.epsilon[images], epsilon);
    return { ...ascent, colors: clusterColors(images, data.epsilon[images], ascent, epsilon) };
  },
  readout: ({ count, largest, singletons, coverage, purity }, { images }) => [[say("clusters"), plain(count)],
    [say("largest"), images === "digits" ? say("{count} digits", { count: largest }) : say("{count} points", { count: largest })],
    [say("singletons"), plain(singletons)], [say("coverage"), percent(coverage)], [say("purity"), percent(purity)]],
  build({ stage, state, change, refit, data: { digits: { pixels }, epsilon } }) {
    const image = (row) => pixels.subarray(64 * row, 64 * row + 64);
    const nameOf = (row) => (state().images === "digits" ? say("digit {name}", { name: epsilon.digits.classes[row] }) : say("group {name}", { name: epsilon.points.classes[row] + 1 }));
    const [map, small] = [element("div", {}), element("div", { role: "group", class: "later", "data-part": "small", "aria-label": say("The same images at other values of ε"),
      style: "display:grid;gap:6px;grid-template-columns:repeat(2,minmax(0,1fr));align-content:start" })];
    stage.append(element("div", { class: "with-small-maps", style: "display:grid;gap:6px;grid-template-columns:repeat(auto-fit,minmax(min(320px,100%),1fr))" }, map, small));
    const clouds = { // the one of the points has no pictures
      points: new Cloud(map, { label: "45 points", height: 320, title: nameOf, turns: isOnSlide(stage) }),
      digits: new Cloud(map, { label: "Map of the digits", height: 360, stretch: true, title: nameOf, paint: (context, row, size) => paintDigit(context, image(row), size) }),
    };
    const legend = element("div", { class: "class-legend" });
    map.append(legend);
    const isLow = stage.clientWidth > 500 && !isOnSlide(stage); // a page, where small maps use the width of their buttons
    const thumbnails = SMALL.map((value) => {
      const canvas = element("canvas", { width: isLow ? 400 : 240, height: isLow ? 180 : 240, style: `width:${isLow ? 200 : 115}px;max-width:100%;aspect-ratio:${isLow ? 400 / 180 : 1};display:block;margin:auto;background:var(--paper);border-radius:4px` });
      const words = element("span", {}, leastLetters(stage) ? `ε\u00a0${plain(value)}` : `ε = ${plain(value)}`);
      const button = element("button", { type: "button", style: "padding:3px 6px;min-width:0", onclick: () => change({ epsilon: value }) }, canvas, words);
      small.append(button);
      return { value, canvas, button };
    });
    const row = element("div", { "data-part": "sizes", style: "min-height:70px" });
    const body = element("tbody", {});
    const head = ["ε", say("clusters"), say("largest"), say("singletons"), say("coverage"), say("purity")];
    stage.append(row, element("details", { class: "later aside" }, element("summary", {}, say("The same as a table")), element("table", {},
      element("thead", {}, element("tr", {}, head.map((words) => element("th", { scope: "col", style: "padding:0 8px" }, words)))), body)));
    const colorsOf = ({ modes, colors }) => (point) => PALETTE[colors.get(modes[point])] ?? COLORS.gray;
    let shown = ""; // the images whose small maps and table are drawn
    const drawOthers = (images) => {
      for (const { value, canvas } of thumbnails) {
        paintSmallMap(canvas, epsilon[images].positions, colorsOf(LESSON.compute({ images, epsilon: value }, { epsilon })), ...(images === "digits" ? [() => 3] : [() => 11, (point) => GROUPS[epsilon.points.classes[point]]]));
      }
      body.replaceChildren(...TABLE.map((value) => {
        const { count, largest, singletons, coverage, purity } = ascend(epsilon[images], value);
        return element("tr", {}, [...[value, count, largest, singletons].map(plain), percent(coverage), percent(purity)].map((part) => element("td", { style: "padding:0 8px;text-align:right" }, part)));
      }));
      shown = images;
    };
    return { draw({ images, epsilon: threshold }, numbers) {
      const { parents, clusters, count, largest, singletons, others, purity } = numbers;
      const largestFirst = [...clusters].sort(([, one], [, other]) => other.length - one.length);
      for (const [name, { box }] of Object.entries(clouds)) box.hidden = name !== images;
      const cloud = clouds[images];
      const modes = largestFirst.filter(([, members]) => members.length > 1).map(([mode]) => mode);
      const isMode = new Set(modes);
      const described = { epsilon: threshold, count, largest, singletons };
      cloud.describe(images === "digits" ? say("Map of the digits at ε {epsilon}: {count} clusters, the largest with {largest} digits, {singletons} singletons", described)
        : say("45 points in three groups at ε {epsilon}: {count} clusters, the largest with {largest} points, {singletons} singletons", described));
      const { classes } = epsilon[images];
      cloud.draw({ positions: epsilon[images].positions, colors: colorsOf(numbers), order: modes, marked: others,
        forms: images === "digits" ? (point) => String(classes[point]) : (point) => GROUPS[classes[point]],
        radius: images === "digits" ? (point) => (isMode.has(point) ? 4.2 : 3.2) : (point) => (isMode.has(point) ? 8 : 5),
        segments: Array.from(parents, (parent, point) => [point, parent]).filter(([child, parent]) => child !== parent) });
      legend.replaceChildren(element("span", {}, images === "digits" ? say("Digit: true class, color: cluster") : say("Shape: true group, color: cluster")),
        ...(images === "digits" ? [element("span", {}, say("● with a white digit: mode"))] : []),
        element("span", {}, say("◯ not the cluster’s main class")), element("span", { class: "later" }, say("{count} of {all} in the main class: purity {purity}", { count: classes.length - others.length, all: classes.length, purity: percent(purity) })),
        ...(images === "digits" ? [element("span", { class: "later", "data-part": "small" }, say("On the small maps, color alone"))] : []));
      if (images !== shown) {
        const isOther = shown && isOnSlide(stage); // the other images' picture has another shape and other words
        drawOthers(images);
        if (isOther) refit();
      }
      for (const { value, button } of thumbnails) button.setAttribute("aria-pressed", String(Math.abs(value - threshold) < 0.005));
      const largestTen = largestFirst.slice(0, 10);
      row.replaceChildren(...(images === "digits"
        ? [element("div", {}, say("Modes of the largest clusters, with their numbers of images")),
          digitTiles(largestTen.map(([mode, members]) => ({ pixels: image(mode), words: String(members.length),
            label: say("Digit {digit}, mode of {count} images", { digit: epsilon.digits.classes[mode], count: members.length }) })), say("Modes of the largest clusters"), 36)]
        : [element("div", {}, say("Sizes of the largest clusters: {sizes}", { sizes: largestTen.map(([, members]) => members.length).join(", ") }))]));
    } };
  },
  formula: ({ epsilon }, { count, singletons, coverage }) => `<p>${say("For image i, only links count that lead to an image j with larger ω and have a strength (relevancy) {bound}. It follows the steepest: the one with the largest {slope}. The strength is", {
    bound: `<math><msub><mi>ψ</mi><mi>ij</mi></msub><mo>&gt;</mo><mi>ε</mi><mo>=</mo><mn>${fixed(epsilon, 2)}</mn></math>`,
    slope: "<math><msub><mi>W</mi><mi>ij</mi></msub><mo>(</mo><msub><mi>ω</mi><mi>j</mi></msub><mo>−</mo><msub><mi>ω</mi><mi>i</mi></msub><mo>)</mo></math>" })}<br>
    <math><msub><mi>ψ</mi><mi>ij</mi></msub><mo>=</mo><msub><mi>W</mi><mi>ij</mi></msub><mo>exp</mo><mo>(</mo><mo>−</mo><mi>γ</mi>
    <msup><mrow><mo>(</mo><msub><mi>ω</mi><mi>j</mi></msub><mo>−</mo><msub><mi>ω</mi><mi>i</mi></msub><mo>)</mo></mrow><mn>2</mn></msup><mo>)</mo></math>.<br>
    ${say("W is the similarity of two neighbors, and γ is a constant. ω tells how dense the place of an image is: the sum of its W, as a share of this sum over all images. A random walk from neighbor to neighbor spends this share of its time there.")}</p>
    <p>${say("Here {count} images have no link that counts: they are the modes, and {singletons} of these modes are alone in their clusters.", { count, singletons })}</p>
    <p class="aside">${say("A higher ε does not only split clusters: an image whose link is cut may follow another link, into another cluster.")}</p>
    <p class="aside">${say("<b>Coverage</b> is the share of images in clusters of two or more, here {coverage}. <b>Purity</b> is the share of images whose class is the most frequent one of their cluster.", { coverage: percent(coverage) })}</p>`,
  caption: [0, 1, 4],
  presented: { see: [[0, 1], [3, 4, 6, 7]], fails: [2, 3] },
  states: { see: [{}, {}], fails: { images: "digits", epsilon: 0.9 } },
  parts: { map: "predict do see0 see1 formula fails check takeaway", small: "do fails takeaway" },
  fails: "Choose the digits. At ε = 0.3, 8s and 1s share a pseudo-label, and training pulls them together. At ε = 0.9, nearly every image is a singleton, and hardly any two share a pseudo-label. High purity alone is not a success: there it comes from singletons.",
  takeaway: "ε is the minimum strength of a link. A lower ε leaves fewer clusters, a higher ε more; judge coverage and purity together.",
  open: { page: "clusters", label: "clusters of a run", query: ({ epsilon }) => ({ epsilon: String(epsilon) }) },
  after: {
    text: "A colleague labels every one of 10,000 clustered photographs and finds a purity of 99 %. What must you know before you trust the clustering?",
    choices: ["Nothing else: 99 % is high", "How many images are singletons", "The number of true classes"],
    right: 1,
    order: [1, 0, 2],
    why: ["Purity is high for a useless clustering too, in which every image is alone.", "", "The number of classes does not say how many images share a cluster, and that decides here."],
    because: "A singleton is always pure. A clustering of singletons has purity 100 %, and no two images share a pseudo-label.",
  },
  notes: {
    ask: "At which ε would you train, and what would you look at to decide without labels?",
    wrong: "“The ε with the highest purity.” Purity rises to 100 % when every image is alone.",
    stuck: "The points never move; only the colors and lines change. ε acts on links of the neighbor graph, not on the map. Between ε = 0.75 and 0.8 purity falls: a square whose link is cut follows another link, into the green cluster.",
  },
};
