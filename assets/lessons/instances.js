const [STRONGEST, LOWEST_COSINE] = [10, -0.8];

// Unit-length embeddings of the views: their differences from the mean view, divided by their lengths.
function embedViews(pixels) {
  const count = pixels.length / 64;
  const mean = new Float64Array(64);
  pixels.forEach((value, at) => { mean[at % 64] += value / count; });
  return Array.from({ length: count }, (_view, view) => {
    const row = mean.map((value, at) => pixels[64 * view + at] - value);
    const length = Math.hypot(...row);
    return row.map((value) => value / length);
  });
}

const LESSON = {
  id: "instances",
  number: 7,
  minutes: 7,
  title: "Every image its own class",
  aim: "Afterwards you can say what the temperature does when every image is its own class.",
  claim: "Without labels, a model can learn to recognize each image in a changed copy: its second view. This pushes look-alikes apart hardest, even within a class.",
  data: ["instances"],
  before: {
    text: "The model must recognize the second view of the chosen 3 among the views of 80 digits, eight of each class. It pushes the 3 away from all other views, and most of the push falls on other 3s. What happens if the temperature τ rises from 0.1 to 1?",
    choices: ["The push spreads over nearly all views", "The other 3s get an even larger part", "The push turns to the least similar views"],
    right: 0,
    why: ["", "A lower τ does this: it favors the most similar views, which are other 3s.", "The push always grows with similarity, whatever τ is; it never prefers the least similar."],
    shows: { temperature: 1 },
    because: "The temperature divides the similarities, and the push grows exponentially with the result. With a high τ, different similarities give nearly the same push.",
  },
  touch: "Move the temperature τ. Choose another digit, or press a competitor to make it the chosen image.",
  see: "Each stem is a view of another image: ● of the same class, □ of another class. Its height is its share of the push. All stems end on one curve, which a lower τ makes steeper. The bar adds up the shares. Effective competitors: so many views would share the push if they shared it equally.",
  controls: [
    { name: "temperature", kind: "slider", label: "τ, temperature: a low τ favors the most similar views", low: 0.05, high: 1, step: 0.01, start: 0.1 },
    { name: "eta", kind: "choice", label: "η, weight of the other images", options: [{ value: "1", words: "1" }, { value: "10", words: "10" }, { value: "100", words: "100" }], start: "1" },
  ],
  hidden: [{ name: "image", start: 24, low: 0, high: 79 }],
  // The softmax of one view against all others. Row i + count of the views is the second view of image i.
  compute({ temperature, eta, image }, { instances: { views, classes } }) {
    const count = classes.length;
    const rows = (views.rows ??= embedViews(views));
    const [chosen, weight] = [Math.round(image), Number(eta)];
    const cosine = (row) => rows[chosen].reduce((sum, value, at) => sum + value * rows[row][at], 0);
    const own = cosine(chosen + count);
    const others = rows.map((_row, row) => row).filter((row) => row % count !== chosen);
    const cosines = others.map(cosine);
    const terms = cosines.map((value) => weight * Math.exp((value - 1) / temperature)); // minus 1: e^(1/τ) is large
    const ownTerm = Math.exp((own - 1) / temperature);
    const denominator = terms.reduce((sum, term) => sum + term, ownTerm);
    const shares = terms.map((term) => term / denominator);
    const probability = ownTerm / denominator;
    const isSame = others.map((row) => classes[row % count] === classes[chosen]);
    const sameOf = (values) => values.reduce((sum, value, at) => sum + (isSame[at] ? value : 0), 0) / values.reduce((sum, value) => sum + value, 0);
    const odds = shares.map((share) => share / weight / (1 - share / weight));
    const allOdds = odds.reduce((sum, value) => sum + value, 0);
    const pushes = shares.map((share, at) => share * (1 - weight * allOdds) + weight * odds[at]);
    const parts = shares.map((share) => share / (1 - probability));
    return { chosen, others, cosines, own, shares, probability, isSame, sameShare: sameOf(shares), pushes,
      sameShareOfLoss: sameOf(pushes.map((push) => Math.max(push, 0))),
      equalShare: isSame.filter(Boolean).length / others.length,
      competitors: Math.exp(-parts.reduce((sum, part) => sum + (part > 0 ? part * Math.log(part) : 0), 0)),
      loss: -Math.log(probability) - weight * shares.reduce((sum, share) => sum + Math.log1p(-share / weight), 0),
      strongest: others.map((_row, at) => at).sort((one, other) => shares[other] - shares[one]).slice(0, STRONGEST) };
  },
  readout: ({ probability, sameShare, equalShare, competitors }) => [[say("own second view, P"), percent(probability)],
    [say("push on the same class"), percent(sameShare)], [say("if all were pushed equally"), percent(equalShare)], [say("effective competitors"), fixed(competitors, 1)]],
  build({ stage, data: { instances: { views, classes } }, change }) {
    const count = classes.length;
    const pixels = (view) => views.subarray(64 * view, 64 * view + 64);
    const [choice, competitors] = [element("div", { "data-part": "tiles" }), element("div", { class: "strongest", "data-part": "tiles" })];
    stage.append(choice);
    const plane = new Plane(stage, { x: [LOWEST_COSINE - 0.16, 1.08], y: [-0.2, leastLetters(stage) ? 1.35 : 1.1], height: 200, equal: false, label: "Shares of the push" });
    const strip = new Plane(stage, { x: [-0.02, 1.02], y: [0, 1], height: Math.max(38, 1.5 * leastLetters(stage) / shareOf(stage, 640)), equal: false, label: "Push by class" });
    for (const { svg } of [plane, strip]) fill(svg, { role: "img", "data-part": "chart" }, []);
    plane.svg.style.marginBottom = `${Math.max(0, 8 + 2.2 * Math.max(12, plane.least) - 0.2 * plane.scale[1])}px`; // for the words below the axis
    plane.svg.style.marginTop = `${Math.max(0, plane.least + 4 - 0.19 * plane.scale[1])}px`; // and for those above it
    stage.append(competitors);
    // Tiles are replaced only if other images are shown, so that τ moves smoothly; the keyboard focus stays at its position.
    const show = (box, tiles, label, words) => {
      const key = tiles.map(({ image, pressed }) => `${image}${pressed ? "!" : ""}`).join();
      if (box.dataset.shown === key) {
        [...box.querySelectorAll(".tile")].forEach((tile, at) => {
          tile.setAttribute("aria-label", tiles[at].label);
          tile.lastChild.textContent = tiles[at].sign + tiles[at].words;
        });
        return;
      }
      const focused = [...box.querySelectorAll("button")].indexOf(box.getRootNode().activeElement);
      box.dataset.shown = key;
      box.replaceChildren(element("small", { class: "aside" }, words), digitTiles(tiles.map((tile) => ({ ...tile, pixels: pixels(tile.image) })), label, 40));
      box.querySelectorAll("button")[focused]?.focus();
    };
    const pick = (image) => () => change({ image });
    return { draw({ temperature }, { chosen, others, cosines, own, shares, probability, isSame, sameShare, equalShare, strongest }) {
      show(choice, [
        { image: chosen, kind: "query", sign: "★ ", words: say("chosen"), label: say("Chosen image, digit {digit}", { digit: classes[chosen] }) },
        { image: chosen + count, sign: "", words: say("2nd view"), label: say("Second view of the chosen image") },
        ...Array.from({ length: 10 }, (_digit, digit) => digit * count / 10).map((image) => ({ image, sign: "", words: String(classes[image]),
          label: say("Choose digit {digit}", { digit: classes[image] }), isChoice: true, pressed: image === chosen, onclick: pick(image) })),
      ], say("Chosen image, and images to choose"), say("The chosen view ★, its second view, and other digits to choose"));
      plane.clear();
      const top = Math.max(...shares, 1e-9);
      const curve = Array.from({ length: 90 }, (_step, step) => {
        const cosine = LOWEST_COSINE + step / 89 * (1 - LOWEST_COSINE);
        return [cosine, shares[strongest[0]] * Math.exp((cosine - cosines[strongest[0]]) / temperature) / top];
      }).filter(([, share]) => share <= 1.1);
      plane.path(curve, { color: COLORS.gray, width: 1 });
      plane.line([LOWEST_COSINE, 0], [1.04, 0]);
      for (const cosine of [-0.5, 0, 0.5, 1]) plane.text([cosine, 0], plain(cosine), { dy: 3 + Math.max(11, plane.least), size: 11 });
      plane.text([0.25, 0], plane.isCrowded ? say("cosine") : say("cosine: similarity to the chosen view"), { dy: 5 + 2 * Math.max(12, plane.least), size: 12 });
      for (const part of [0.5, 1]) plane.text([LOWEST_COSINE, part], `${significant(100 * top * part, 2)}\u00a0%`, { dx: -6, dy: 4, size: 11, anchor: "end" });
      cosines.forEach((cosine, at) => {
        const [color, end] = [isSame[at] ? COLORS.hit : COLORS.miss, [cosine, shares[at] / top]];
        plane.line([cosine, 0], end, { color, width: 1.3 });
        if (isSame[at]) plane.dot(end, { color, radius: 4 });
        else {
          const [half, [x, y]] = [plane.radius(3), plane.at(end)];
          plane.add("rect", { x: x - half, y: y - half, width: 2 * half, height: 2 * half, fill: "var(--paper)", stroke: color, "stroke-width": 1.5 });
        }
      });
      plane.line([own, 0], [own, 1.02], { color: COLORS.query, width: 2, dashed: true });
      plane.text([own, plane.least ? 1.16 : 1.02], plane.isCrowded ? say("2nd view") : say("own second view"), { dy: -4, size: 12, anchor: own > 0.6 ? "end" : "middle" });
      plane.svg.setAttribute("aria-label", say("Shares of the push by similarity. {share} of the push falls on views of the same class, {equal} if all were pushed equally. The own second view has cosine {cosine} and probability {probability}.",
        { share: percent(sameShare), equal: percent(equalShare), cosine: fixed(own, 2), probability: percent(probability) }));
      strip.clear();
      const bar = (from, to, attributes) => {
        const [[x, y], [right, bottom]] = [strip.at([from, 0.85]), strip.at([to, 0.15])];
        strip.add("rect", { x, y, width: right - x, height: bottom - y, ...attributes });
      };
      bar(0, sameShare, { fill: COLORS.hit });
      bar(sameShare, 1, { fill: "none", stroke: COLORS.miss, "stroke-width": 2 });
      const look = { size: 13, dy: 0.37 * Math.max(13, strip.least) };
      strip.text([0, 0.5], strip.isCrowded ? `● ${percent(sameShare)}` : say("● same class {share}", { share: percent(sameShare) }), sameShare > 0.35 ? { ...look, dx: strip.scale[0] * equalShare + 8, anchor: "start", style: "fill:#fff" }
        : { ...look, dx: strip.scale[0] * sameShare + 8, anchor: "start" });
      if (sameShare < 0.72 && !strip.isCrowded) strip.text([1, 0.5], say("□ other classes"), { ...look, dx: -8, anchor: "end" });
      strip.line([equalShare, 0], [equalShare, 1], { color: COLORS.query, width: 3 });
      strip.svg.setAttribute("aria-label", say("{share} of the push falls on the same class; the mark at {equal} is an equal push.", { share: percent(sameShare), equal: percent(equalShare) }));
      show(competitors, strongest.map((at) => ({ image: others[at], kind: isSame[at] ? "hit" : "miss", sign: isSame[at] ? "✓ " : "✕ ", words: percent(shares[at]),
        label: say("Digit {digit} with {share}: choose it", { digit: classes[others[at] % count], share: percent(shares[at]) }), onclick: pick(others[at] % count) })),
      say("Strongest competitors"), say("Strongest competitors: ✓ same class, ✕ another class. The mark | in the bar: all views pushed equally."));
      evenRows(competitors.lastChild);
    } };
  },
  formula: ({ temperature, eta }, { probability, shares, strongest, loss, sameShareOfLoss }) => {
    const share = shares[strongest[0]];
    const digits = digitsThatHold([share], (part) => part / Number(temperature.toFixed(2)), 2, { kind: "toPrecision" });
    return `<p>${say("The <b>softmax</b> turns similarities into shares that add up to 1. The own second view, with cosine <i>s</i>, gets {formula} at τ = {temperature} and η = {eta}.", {
    formula: `<math><mi>P</mi><mo>=</mo><mfrac><msup><mi>e</mi><mrow><mi>s</mi><mo>/</mo><mi>τ</mi></mrow></msup><mrow><msup><mi>e</mi><mrow><mi>s</mi><mo>/</mo><mi>τ</mi></mrow></msup><mo>+</mo><mi>η</mi><munder><mo>∑</mo><mi>k</mi></munder><msup><mi>e</mi><mrow><msub><mi>s</mi><mi>k</mi></msub><mo>/</mo><mi>τ</mi></mrow></msup></mrow></mfrac><mo>=</mo><mn>${significant(probability, 2)}</mn></math>`,
    temperature: fixed(temperature, 2), eta })}</p>
    <p>${say("The loss −log P, with the natural logarithm, pushes view k away with the strength {formula}, which is its share divided by τ: for the strongest competitor {equation}.", {
    formula: `<math><mfrac><mn>1</mn><mi>τ</mi></mfrac><mo>·</mo><mfrac><mrow><mi>η</mi><msup><mi>e</mi><mrow><msub><mi>s</mi><mi>k</mi></msub><mo>/</mo><mi>τ</mi></mrow></msup></mrow><mtext>${say("denominator")}</mtext></mfrac></math>`,
    equation: `<math><mfrac><mn>${significant(share, digits)}</mn><mn>${fixed(temperature, 2)}</mn></mfrac><mo>=</mo><mn>${significant(share / temperature, 2)}</mn></math>` })}</p>
    <p class="aside">${say("PSLR and ISIF, methods of the app, add −η Σ log(1 − P<sub>k</sub>), where P<sub>k</sub> is the share of view k divided by η. The whole loss is {loss}, and {share} of its push falls on the same class.", {
    loss: significant(loss, 3), share: percent(sameShareOfLoss) })}</p>`;
  },
  caption: [0, 1, 3],
  presented: { see: [[0, 1, 2], [3, 4]], fails: [0, 1] },
  parts: { chart: "see0 see1" }, // its tiles would leave it a third of the slide
  states: { see: [{}, {}], fails: { image: 0, temperature: 0.1 } },
  fails: "Choose the 0 or the 1 and set τ to 0.1. A random crop changed its second view so much that other images are more similar: P is nearly zero. At τ = 0.05 a few look-alikes take nearly the whole push. At τ = 1 nearly all views share it, even views of very different digits, and the model learns little from any of them.",
  takeaway: "Instance discrimination pushes look-alikes apart, because it treats every image as a class of its own. τ decides how many of them share the push.",
  open: { page: "instances", label: "competitors at this τ and η", query: ({ temperature, eta }) => ({ temperature: String(temperature), eta }) },
  after: {
    text: "A data set of 100,000 products has 500 photographs of the same white mug. You train on it with every image as its own class, and a low τ. What happens to the mugs?",
    choices: ["They move together, because they look the same", "They push each other apart, more than they push other products", "Nothing: the other products outnumber them"],
    right: 1,
    order: [0, 2, 1],
    why: ["Here every image is a class of its own, so nothing pulls two mugs together.", "", "The number of the others hardly counts at a low τ: what is not similar gets nearly no push."],
    because: "With a low τ only the most similar images get a noticeable push, and for a mug these are the other mugs.",
  },
  notes: {
    ask: "The push is strongest inside a class. Why do embeddings trained this way still group classes?",
    wrong: "“The loss must pull the class together somewhere.” Nothing pulls two images of a class together. Classes survive because one network embeds all views, and it cannot treat look-alikes very differently.",
    stuck: "A push acts on a similarity, not on a position, and it is divided by τ as well. η multiplies every other view by the same factor. In the softmax it therefore lowers P, but leaves the split of the push by class unchanged. Only the added term of PSLR and ISIF changes it.",
  },
};
