const LESSON = {
  id: "epsilon",
  number: 4,
  minutes: 6,
  title: "ε merges and shatters",
  claim: "One threshold decides which images share a pseudo-label: a low ε merges classes, a high ε shatters them.",
  data: ["digits", "epsilon"],
  before: {
    text: "At ε = 0.65 the 1,797 digits form some hundred clusters. What happens at ε = 0.45?",
    choices: ["Fewer, larger clusters", "More, smaller clusters", "The same clusters"],
    right: 0,
    because: "A lower threshold admits more edges, so more paths end at the same mode.",
  },
  touch: "Move ε slowly from 0.3 to 0.9. Point at the map to see the digits.",
  see: "Each color is a cluster; gray digits are singletons. First the sparse regions between digits break off, then each digit splits by handwriting. Areas, gaps and axes of the map carry no units.",
  controls: [{ name: "epsilon", kind: "slider", label: "ε, minimum relevancy of an edge", low: 0.2, high: 0.95, step: 0.01, start: 0.65 }],
  // The parent of an image is its first step whose relevancy exceeds ε; an image without such a step is a mode.
  compute({ epsilon }, { epsilon: { rows, columns, relevancy, classes } }) {
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
    const most = [...clusters.values()].map((members) => {
      const counts = new Uint16Array(10);
      for (const row of members) counts[classes[row]] += 1;
      return Math.max(...counts);
    });
    return { parents, modes, clusters, count: sizes.length, largest: Math.max(...sizes),
      singletons: sizes.filter((size) => size === 1).length, purity: most.reduce((sum, part) => sum + part, 0) / classes.length };
  },
  readout: ({ count, largest, singletons, purity }) => [["clusters", count], ["largest", `${largest} images`],
    ["singletons", singletons], ["purity", percent(purity)]],
  build({ stage, data: { digits: { pixels }, epsilon: { positions, classes } } }) {
    const image = (row) => pixels.subarray(64 * row, 64 * row + 64);
    const cloud = new Cloud(stage, { label: "Map of the digits", height: 360, stretch: true,
      title: (row) => `digit ${classes[row]}`, paint: (context, row, size) => paintDigit(context, image(row), size) });
    const row = element("div", {});
    stage.append(row);
    return { draw({ epsilon }, { modes, parents, clusters, count, largest, singletons }) {
      const largestFirst = [...clusters].sort(([, one], [, other]) => other.length - one.length);
      const colors = new Map(largestFirst.map(([mode], index) => [mode, PALETTE[index % PALETTE.length]]));
      cloud.describe(`Map of the digits at ε ${epsilon}: ${count} clusters, the largest with ${largest} images, ${singletons} singletons`);
      cloud.draw({ positions, radius: 2.6,
        colors: (image) => (clusters.get(modes[image]).length > 1 ? colors.get(modes[image]) : COLORS.gray),
        segments: Array.from(parents, (parent, image) => [image, parent]).filter(([child, parent]) => child !== parent) });
      row.replaceChildren(element("p", {}, "Modes of the largest clusters, with their numbers of images"),
        digitTiles(largestFirst.slice(0, 10).map(([mode, members]) => ({ pixels: image(mode), words: String(members.length),
          label: `A ${classes[mode]}, mode of ${members.length} images` })), "Modes of the largest clusters", 44));
    } };
  },
  formula: ({ epsilon }, { count, singletons }) => `<p>Each image ascends along its steepest edge with
    <math><mi>ψ</mi><mo>&gt;</mo><mi>ε</mi><mo>=</mo><mn>${epsilon.toFixed(2)}</mn></math>, where
    <math><msub><mi>ψ</mi><mi>ij</mi></msub><mo>=</mo><msub><mi>W</mi><mi>ij</mi></msub><mo>exp</mo><mo>(</mo><mo>−</mo><mi>γ</mi>
    <msup><mrow><mo>(</mo><msub><mi>ω</mi><mi>j</mi></msub><mo>−</mo><msub><mi>ω</mi><mi>i</mi></msub><mo>)</mo></mrow><mn>2</mn></msup><mo>)</mo></math>
    and ω is the share of time that a random walk spends at an image.</p>
    <p>Here ${count} images have no such edge: they are the modes, and ${singletons} of these modes are alone in their clusters.</p>`,
  fails: "If ε is too low, an 8 and a 1 share a pseudo-label, and training pulls them together. If ε is too high, nearly every image is a singleton, and there are no positive pairs. High purity alone is not a success: on the right it comes from singletons.",
  takeaway: "ε is the minimum relevancy of an edge. A lower ε merges clusters and a higher ε splits them; judge coverage and purity together.",
  open: { page: "clusters", label: "clusters at this ε", query: ({ epsilon }) => ({ epsilon: String(epsilon) }) },
  after: {
    text: "A clustering of unlabeled photographs has purity 99 %. What must you know before you trust it?",
    choices: ["Nothing else: 99 % is high", "How many images are singletons", "The number of true classes"],
    right: 1,
    because: "A singleton is always pure. A clustering of singletons has purity 100 % and no positive pair.",
  },
  notes: {
    ask: "At which ε would you train, and what would you look at to decide without labels?",
    wrong: "“The ε with the highest purity.” Purity rises to 100 % when every image is alone.",
    stuck: "The map never changes; only the colors and lines do. ε acts on edges of the neighbor graph, not on the map.",
  },
};
