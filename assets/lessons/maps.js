const NEAREST = 10;
const SIZES = { tsne: [2, 5, 30, 100], umap: [5, 15, 50, 200] };
// What a map that places all images at random would keep and be trusted on the average, of n images.
const chanceOf = (n) => ({ kept: NEAREST / (n - 1), trusted: 1 - (n - 1 - NEAREST) * (n - NEAREST) / ((n - 1) * (2 * n - 3 * NEAREST - 1)) });
const sizeWords = (method, size) => (method === "tsne" ? say("perplexity {size}", { size }) : say("{size} neighbors", { size }));
const unitRows = new WeakMap(); // pixels → the same rows with length 1

function units(pixels) {
  if (!unitRows.has(pixels)) {
    const rows = new Float32Array(pixels.length);
    for (let start = 0; start < pixels.length; start += 64) {
      let squares = 0;
      for (let at = start; at < start + 64; at += 1) squares += pixels[at] ** 2;
      for (let at = start; at < start + 64; at += 1) rows[at] = pixels[at] / Math.fround(Math.sqrt(squares));
    }
    unitRows.set(pixels, rows);
  }
  return unitRows.get(pixels);
}

// Squared distances from one point to all, without rounding errors; the point itself comes last.
function distances(points, width, row) {
  return Float64Array.from({ length: points.length / width }, (_empty, other) => {
    if (other === row) return Infinity;
    let sum = 0;
    for (let axis = 0; axis < width; axis += 1) sum += (points[width * row + axis] - points[width * other + axis]) ** 2;
    return Math.round(sum * 1e9) / 1e9;
  });
}

// The nearest rows, nearest first; of equally near rows the first.
function nearestRows(away) {
  const rows = [];
  away.forEach((distance, row) => {
    if (rows.length === NEAREST && distance >= away[rows[NEAREST - 1]]) return;
    let place = rows.length;
    while (place && away[rows[place - 1]] > distance) place -= 1;
    rows.splice(place, 0, row);
    rows.length = Math.min(rows.length, NEAREST);
  });
  return rows;
}

function countKept(pixels, positions, image) {
  const near = nearestRows(distances(positions, 2, image));
  return nearestRows(distances(units(pixels), 64, image)).filter((row) => near.includes(row)).length;
}

// Tight groups on a map of random pixels: points joined by steps shorter than LINK times the gap of evenly spread points.
const LINK = 0.35;
const LEAST_GROUP = 3;
const SLIDE_POINTS = [2.2, 2.8, 1.25, 0.9, 0.45]; // of the smallest point of a presentation: the chosen image, kept neighbors below it and elsewhere, lost neighbors, and other random images
const CHANCE_GROUPS = 17; // of as many points, scattered at random over a disk
const groupsOf = new WeakMap(); // positions → {inGroup: whether each point is in a tight group, members: the points of each group, count of the groups}
function tightGroups(positions) {
  if (groupsOf.has(positions)) return groupsOf.get(positions);
  const count = positions.length / 2;
  const middle = [0, 1].map((axis) => positions.reduce((sum, part, at) => sum + (at % 2 === axis ? part : 0), 0) / count);
  const variance = positions.reduce((sum, part, at) => sum + (part - middle[at % 2]) ** 2, 0) / count;
  const reach = LINK ** 2 * variance * 2 * Math.PI / count; // squared; evenly spread points of a disk have the gap √(2π / n) σ
  const group = Array.from({ length: count }, (_empty, row) => row);
  const root = (row) => { while (group[row] !== row) row = group[row]; return row; };
  for (let row = 0; row < count; row += 1) {
    for (let other = 0; other < row; other += 1) {
      if ((positions[2 * row] - positions[2 * other]) ** 2 + (positions[2 * row + 1] - positions[2 * other + 1]) ** 2 < reach) group[root(row)] = root(other);
    }
  }
  const roots = group.map((_part, row) => root(row));
  const sizes = new Array(count).fill(0);
  for (const row of roots) sizes[row] += 1;
  const members = new Map();
  roots.forEach((own, row) => { if (sizes[own] >= LEAST_GROUP) members.set(own, [...(members.get(own) ?? []), row]); });
  const found = { inGroup: roots.map((row) => sizes[row] >= LEAST_GROUP), members: [...members.values()], count: sizes.filter((size) => size >= LEAST_GROUP).length };
  groupsOf.set(positions, found);
  return found;
}

// Three groups whose sizes and gaps are known, and the live t-SNE map of them.
const GROUP = 30;
const GAP = 16;
const GROUP_NAMES = "ABC";
function knownGroups({ spread, gap }) {
  const random = randomStream(4);
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return [[-GAP, spread], [0, 1], [GAP * gap, 1]].flatMap(([center, width]) => Array.from({ length: GROUP }, () => [center + width * normal(), width * normal()]));
}

// How much wider group A is than B, and how much farther B is from C than from A.
function groupRatios(points) {
  const groups = [0, 1, 2].map((at) => points.slice(GROUP * at, GROUP * (at + 1)));
  const centers = groups.map((group) => [0, 1].map((axis) => group.reduce((sum, point) => sum + point[axis], 0) / GROUP));
  const widths = groups.map((group, at) => Math.sqrt(group.reduce((sum, point) => sum + squaredDistance(point, centers[at]), 0) / GROUP));
  return { width: widths[0] / widths[1], gap: Math.sqrt(squaredDistance(centers[1], centers[2]) / squaredDistance(centers[0], centers[1])) };
}

// The groups as disks, squares and triangles, and the letter of each beside the middle one of its points.
function paintGroups(canvas, { points, size, middle, unit }) {
  const ratio = pixelRatio(canvas);
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  Object.assign(canvas, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const styles = getComputedStyle(canvas);
  const places = points.map((point) => [width / 2 + unit * (point[0] - middle[0]), height / 2 - unit * (point[1] - middle[1])]);
  const half = Math.max(3.5, size / 5);
  const forms = [([x, y]) => context.arc(x, y, half, 0, 2 * Math.PI), ([x, y]) => context.rect(x - 0.9 * half, y - 0.9 * half, 1.8 * half, 1.8 * half),
    ([x, y]) => { context.moveTo(x, y - 1.2 * half); context.lineTo(x + 1.1 * half, y + 0.9 * half); context.lineTo(x - 1.1 * half, y + 0.9 * half); context.closePath(); }];
  context.strokeStyle = styles.getPropertyValue("--paper");
  places.forEach((place, row) => {
    const group = Math.floor(row / GROUP);
    context.fillStyle = PALETTE[group];
    context.beginPath();
    forms[group](place);
    context.fill();
    context.stroke();
  });
  Object.assign(context, { font: `bold ${size}px system-ui, sans-serif`, textAlign: "center", textBaseline: "middle", lineWidth: size / 4, lineJoin: "round", fillStyle: styles.color });
  [...GROUP_NAMES].forEach((name, group) => {
    const own = places.slice(GROUP * group, GROUP * (group + 1));
    const center = [0, 1].map((axis) => mean(own.map((place) => place[axis])));
    const [x, y] = own.reduce((one, other) => (squaredDistance(other, center) < squaredDistance(one, center) ? other : one));
    const place = [clamp(x, size / 2, width - size / 2), clamp(y, size / 2, height - size / 2)];
    context.strokeText(name, ...place);
    context.fillText(name, ...place);
  });
}

const KNOWN_GROUPS = {
  title: "Known sizes and gaps, with a live t-SNE",
  words: "Here the truth is known: 90 points in three groups. At the start A is about three times as wide as B, and C about three times as far from B as A is; on the first map neither ratio reaches 1.5. Sizes and gaps of a map follow the perplexity as much as the data.",
  controls: [
    { name: "spread", kind: "slider", label: "Width of A, as a multiple of B", low: 0.2, high: 5, step: 0.2, start: 3 },
    { name: "gap", kind: "slider", label: "Gap from B to C, as a multiple of A to B", low: 1, high: 5, step: 0.5, start: 3 },
    { name: "perplexity", kind: "slider", label: "Perplexity", low: 2, high: 60, step: 1, start: 20 },
    { name: "other", kind: "slider", label: "Perplexity of the second map", low: 2, high: 60, step: 1, start: 5 },
  ],
  build({ box }) {
    const words = element("p", { role: "status", class: "wide" });
    const maps = [0, 1].map(() => element("span", {}, say("Their t-SNE map")));
    const canvases = [[say("The points")], [maps[0]], [maps[1]]].map(([caption], at) => {
      const title = at ? say("Their t-SNE map") : say("The points");
      const canvas = element("canvas", { role: "img", "aria-label": title, style: "width:100%;height:200px;display:block;color:var(--text);border:1px solid var(--edge);border-radius:6px" });
      const ratios = element("div", { class: "ratios" }); // below the picture that they measure
      box.append(element("figure", { style: "margin:0;min-width:0" }, element("figcaption", {}, caption), canvas, ratios));
      if (at === 0) box.lastChild.classList.add("whole");
      return canvas;
    });
    const again = element("button", { type: "button", style: "padding-block:0", onclick: () => { start += 1; begin(); } }, say("New start"));
    box.firstChild.firstChild.append(" ", again); // both maps begin again
    box.append(words, element("div", { class: "do" }, say("Set the width of A to 5 and the gap to 1: the gaps are nearly equal. At perplexity 20 the map draws C more than three times as far from B as A, at 5 or 50 about as far. A perplexity above the size of a group, here 30, can bend groups into rings.")));
    let [shown, lives, points, start, waiting] = ["", [], [], 1, 0]; // lives: two maps of the same points from the same random start; start: which one
    let setting = null; // what is drawn now
    const begin = () => {
      cancelAnimationFrame(waiting);
      points = knownGroups(setting);
      const perplexities = [setting.perplexity, setting.other];
      lives = perplexities.map((perplexity) => new LiveTsne(points, perplexity, start));
      maps.forEach((caption, at) => { caption.textContent = say("t-SNE, perplexity {size}", { size: perplexities[at] }); });
      waiting = requestAnimationFrame(() => { paint(canvases[0], points); frame(); });
    };
    const paint = (canvas, drawn) => {
      if (!canvas.clientWidth || !drawn.length) return;
      const [low, high] = [Math.min, Math.max].map((edge) => [0, 1].map((axis) => edge(...drawn.map((point) => point[axis]))));
      const size = Math.max(14, leastLetters(canvas));
      const around = 2 * (size / 5 + 4); // a point at an edge is drawn whole
      paintGroups(canvas, { points: drawn, size, middle: [0, 1].map((axis) => (low[axis] + high[axis]) / 2),
        unit: Math.min((canvas.clientWidth - around) / (high[0] - low[0]), (canvas.clientHeight - around) / (high[1] - low[1])) });
    };
    new ResizeObserver(() => { paint(canvases[0], points); lives.forEach((live, at) => paint(canvases[at + 1], live.positions)); }).observe(box);
    const frame = () => {
      if (!box.isConnected || !lives.length) return;
      lives.forEach((live, at) => {
        for (let count = 0; count < 5 && !live.isDone; count += 1) live.step();
        paint(canvases[at + 1], live.positions);
      });
      words.textContent = say("Step {step} of {steps}. Both maps have the same points and the same random start: only the perplexity differs. A new start draws other gaps.", { step: lives[0].done, steps: TSNE.steps });
      [points, ...lives.map(({ positions }) => positions)].map(groupRatios).forEach(({ width, gap }, at) => {
        const ratios = say("width A / B: {width} · gap BC / AB: {gap}", { width: fixed(width, 1), gap: fixed(gap, 1) });
        canvases[at].nextSibling.textContent = ratios.split(" · ").map((part) => part.replaceAll(" ", "\u00a0")).join(" · ");
        canvases[at].setAttribute("aria-label", `${at ? maps[at - 1].textContent : say("The points")}. ${ratios}`);
      });
      if (!lives[0].isDone) waiting = requestAnimationFrame(frame);
    };
    return { draw({ spread, gap, perplexity, other }) {
      const key = `${spread} ${gap} ${perplexity} ${other}`;
      if (key === shown) return;
      shown = key;
      setting = { spread, gap, perplexity, other };
      start = 1;
      begin();
    } };
  },
};

const LESSON = {
  id: "maps",
  number: 10,
  minutes: 8,
  title: "A map is not the territory",
  aim: "Afterwards you can check whether a group on a map is real.",
  claim: "A two-dimensional map of images loses true neighbors, and it can show groups that do not exist.",
  data: ["maps"],
  before: {
    text: "600 images consist of random pixels, so no groups exist. The method t-SNE draws a map of them. Its perplexity says how many others each image tries to stay close to. How does the map look at a low perplexity?",
    choices: ["Like a cloud without any structure", "Like many small groups", "Like ten large groups"],
    right: 1,
    why: ["An honest picture of random pixels would be a cloud; a low perplexity draws nearest pairs together instead.", "", "Random pixels have no ten classes, and a low perplexity reaches few others, so its groups are small."],
    because: "Each point then tries to be close to very few others, so the map draws small groups, whether they exist or not. Perplexity 2 shows this case; press another perplexity to compare.",
    shows: { points: "noise", method: "tsne", size: 0 },
  },
  touch: "Press the small maps: the images stay the same, and their map changes. Click a point to see which of its neighbors the map keeps. Then choose 600 digits and compare.",
  see: "Lines join ★ to its true neighbors, the ten most similar in pixels. ✓, large: also among the map’s ten nearest. ✕, small: lost there. Of random pixels, dark or ringed points form tight groups: three or more, unusually close. “✓ 1 under ★” says that one of the ten lies below the star. The digits are colored by their class, which the map did not see. Trustworthiness falls with false neighbors on the map, continuity with lost true neighbors. UMAP is another method to draw a map. Areas, gaps and axes of a map carry no units.",
  controls: [
    { name: "points", kind: "choice", label: "Images", start: "noise", options: [{ value: "noise", words: "Random pixels" }, { value: "digits", words: "600 digits" }] },
    { name: "method", kind: "choice", label: "Map", start: "tsne", options: [{ value: "tsne", words: "t-SNE" }, { value: "umap", words: "UMAP" }] },
  ],
  more: KNOWN_GROUPS,
  groups: { points: knownGroups, ratios: groupRatios, live: (points, perplexity, seed) => new LiveTsne(points, perplexity, seed) }, // for tests
  hidden: [{ name: "size", start: 2, low: 0, high: 3, told: ({ method, size }) => [method === "tsne" ? say("perplexity") : say("number of neighbors"), String(SIZES[method][Math.round(size)])] }, { name: "image", start: 375, low: 0, high: 599 }],
  compute({ points, method, size, image }, { maps }) {
    const { pixels, maps: drawn } = maps[points];
    const value = SIZES[method][Math.round(size)];
    const { positions, kept, trustworthiness, continuity } = drawn[`${method}${value}`];
    const row = Math.round(image);
    const away = distances(units(pixels), 64, row);
    const neighbors = nearestRows(away);
    const onMap = nearestRows(distances(positions, 2, row));
    const isKept = neighbors.map((neighbor) => onMap.includes(neighbor));
    const intruders = onMap.filter((other) => !neighbors.includes(other));
    // How far the ranks of the map's neighbors exceed k: 0 for a true neighbor
    const excess = intruders.map((other) => 1 - NEAREST + away.reduce(
      (count, distance, candidate) => count + (distance < away[other] || (distance === away[other] && candidate < other)), 0));
    const total = excess.reduce((sum, part) => sum + part, 0);
    const count = away.length;
    return { groups: points === "noise" ? tightGroups(positions) : null, row, value, positions, neighbors, onMap, isKept, excess: total, count, keptHere: isKept.filter(Boolean).length,
      trustHere: 1 - 2 / (NEAREST * (2 * count - 3 * NEAREST - 1)) * total, kept, trustworthiness, continuity };
  },
  chanceOf, // for tests
  readout: ({ groups, keptHere, kept, trustworthiness, continuity, count }) => [...(groups ? [[say("tight groups on the map (by chance {count})", { count: CHANCE_GROUPS }), groups.count]] : []), [say("true neighbors kept, ★"), say("{count} of {all}", { count: keptHere, all: NEAREST })],
    [say("kept, all (chance {chance})", { chance: percent(chanceOf(count).kept) }), percent(kept)], [say("continuity, all"), percent(continuity)],
    [say("trustworthiness, all (chance {chance})", { chance: percent(chanceOf(count).trusted, 0) }), percent(trustworthiness)]],
  build({ stage, data: { maps }, state, change, parts }) {
    const pixelsOf = () => maps[state().points].pixels;
    const picture = (row) => pixelsOf().subarray(64 * row, 64 * row + 64);
    const words = (row) => (state().points === "digits" ? say("digit {digit}", { digit: maps.classes[row] }) : say("image {row}", { row }));
    const [map, small] = [element("div", {}), element("div", { role: "group", class: "later", "data-part": "small", "aria-label": say("The same images with other settings"),
      style: "display:grid;gap:6px;grid-template-columns:repeat(2,minmax(0,1fr));align-content:start" })];
    stage.append(element("div", { class: "with-small-maps", style: "display:grid;gap:6px;grid-template-columns:repeat(auto-fit,minmax(min(280px,100%),1fr));margin-bottom:6px" }, map, small));
    const named = parts && !parts.includes("small") ? element("b", { style: "display:block" }) : null; // of a slide without the small maps, which say it
    if (named) map.append(named);
    const cloud = new Cloud(map, { label: "Map", height: 340, title: words,
      paint: (context, row, size) => paintDigit(context, picture(row), size), picked: (row) => change({ image: row }) });
    const thumbnails = SIZES.tsne.map((_size, at) => {
      const canvas = element("canvas", { width: 260, height: 260, style: "width:130px;max-width:100%;aspect-ratio:1;display:block;margin:auto;background:var(--paper);color:var(--text);border-radius:4px" });
      const caption = element("span", { style: "display:block;line-height:1.1" });
      return { canvas, caption, button: element("button", { type: "button", style: `padding:3px ${isOnSlide(stage) ? 1 : 6}px;min-width:0`,
        onclick: () => change({ size: at }) }, canvas, caption) };
    });
    const findWorst = () => {
      const { positions, count } = numbers;
      const kept = Array.from({ length: count }, (_empty, row) => countKept(pixelsOf(), positions, row));
      change({ image: kept.indexOf(Math.min(...kept)) });
    };
    const row = element("div", { "data-part": "pictures" });
    const legend = classLegend(say("Colors: digit"), Array.from({ length: 10 }, (_none, digit) => String(digit)));
    let numbers = null; // what is shown now
    let shown = ""; // the small maps that are drawn
    const sizes = element("b", { style: "grid-column:1/-1;font-size:0.85em" });
    small.append(sizes, ...thumbnails.map(({ button }) => button));
    stage.append(legend, row);
    return { draw({ points, method, size }, drawn) {
      numbers = drawn;
      legend.hidden = points !== "digits";
      const { positions, groups, neighbors, isKept, keptHere, value } = drawn;
      const text = getComputedStyle(stage).color;
      const isAsked = stage.closest(".present[data-slide=predict]") !== null; // the question is about groups: a class sees nothing else
      const described = { method: method === "tsne" ? "t-SNE" : "UMAP", size: sizeWords(method, value), kept: keptHere, all: NEAREST };
      const isOpen = isAsked && Math.round(size) !== LESSON.before.shows.size; // nor any group before its answer
      if (named) named.textContent = `${described.method} · ${sizeWords(method, value)}`;
      const image = drawn.row;
      const star = isAsked ? null : image;
      const kinds = new Map(isAsked ? [] : neighbors.map((neighbor, at) => [neighbor, isKept[at]]));
      cloud.describe(points === "digits" ? say("{method} map of the digits, {size}: {kept} of the {all} true neighbors of the chosen image are among its {all} nearest on the map", described)
        : say("{method} map of random pixels, {size}: {kept} of the {all} true neighbors of the chosen image are among its {all} nearest on the map", described));
      // A kept neighbor below ★ shows around it.
      const [left, top] = [2 * image, 2 * image + 1].map((at) => positions[at]);
      const reach = Math.max(...positions) - Math.min(...positions);
      const isBelow = (other) => Math.hypot(positions[2 * other] - left, positions[2 * other + 1] - top) < 0.03 * reach;
      const below = neighbors.filter((other, at) => isKept[at] && isBelow(other)).length;
      const dot = groups ? leastRadius(stage) : 0;
      const [chosen, under, near, lost, other] = dot ? SLIDE_POINTS.map((share) => share * dot) : [8, 13, 6, 4.5, groups ? 2 : 3];
      cloud.draw({ positions, ringed: isOpen ? groups && [] : groups?.members ?? null, order: isAsked ? [] : [...neighbors, star], chosen: star, note: below ? say("✓ {count} under ★", { count: below }) : "", segments: isAsked ? [] : neighbors.map((neighbor) => [star, neighbor]),
        colors: (other) => (other === star ? COLORS.query : kinds.has(other) ? (kinds.get(other) ? COLORS.hit : COLORS.miss) : groups?.inGroup[other] && !isOpen ? text : groups ? COLORS.gray : PALETTE[maps.classes[other]]),
        radius: (row) => (row === star ? chosen : kinds.has(row) ? (!kinds.get(row) ? lost : isBelow(row) ? under : near) : other) });
      const key = `${points} ${method} ${text}`;
      sizes.textContent = groups ? (method === "tsne" ? say("perplexity: tight groups") : say("number of neighbors: tight groups")) : method === "tsne" ? say("perplexity") : say("number of neighbors");
      thumbnails.forEach(({ button, canvas, caption }, at) => {
        button.setAttribute("aria-pressed", String(at === Math.round(size)));
        const value = SIZES[method][at];
        const places = maps[points].maps[`${method}${value}`].positions;
        const tight = groups && tightGroups(places);
        caption.textContent = tight ? `${value}:\u2009${tight.count}` : String(value);
        button.setAttribute("aria-label", tight ? say("{size}: {count} tight groups", { size: sizeWords(method, value), count: tight.count }) : sizeWords(method, value));
        if (key === shown) return;
        const dark = tight?.inGroup;
        paintSmallMap(canvas, places, (other) => (!dark ? PALETTE[maps.classes[other]] : dark[other] ? text : COLORS.gray), (other) => (dark?.[other] ? 7 : 3));
      });
      shown = key;
      const tile = (other, kind, label) => ({ pixels: picture(other), kind, label, onclick: () => change({ image: other }) });
      const walk = (words, onclick) => element("button", { type: "button", class: onclick === findWorst ? "main" : null, onclick }, words);
      const focused = row.contains(row.getRootNode().activeElement) ? [...row.querySelectorAll("button")].indexOf(row.getRootNode().activeElement) : -1;
      row.replaceChildren(
        element("div", { class: "choice pressed spare", style: "margin-bottom:4px" },
          walk(say("Image that lost the most neighbors"), findWorst),
          walk(say("Previous image"), () => change({ image: (image + drawn.count - 1) % drawn.count })),
          walk(say("Next image"), () => change({ image: (image + 1) % drawn.count }))),
        digitTiles([tile(image, "query", say("Chosen image: {image}", { image: words(image) })), ...neighbors.map((other, at) => tile(other, isKept[at] ? "hit" : "miss",
          isKept[at] ? say("True neighbor {rank}: {image}, kept on the map; press to choose it", { rank: at + 1, image: words(other) })
            : say("True neighbor {rank}: {image}, lost on the map; press to choose it", { rank: at + 1, image: words(other) })))],
        say("The chosen image and its true neighbors, nearest first"), 38));
      if (focused >= 0) row.querySelectorAll("button")[focused]?.focus();
      evenRows(row.lastChild);
    } };
  },
  formula: ({ method }, { keptHere, value, excess, count, trustHere, trustworthiness }) => `<p>${method === "tsne"
    ? say("The <b>perplexity</b>, here {size}, says roughly how many others each image tries to stay close to on the map.", { size: value })
    : say("The <b>number of neighbors</b>, here {size}, says how many others each image tries to stay close to on the map.", { size: value })}</p>
    <p>${say("<b>Neighbors kept</b> by ★: N are its true neighbors, M its nearest on the map, and {k}:", { k: `<math><mi>k</mi><mo>=</mo><mn>${NEAREST}</mn></math>` })}
    <math><mfrac><mrow><mo>|</mo><mi>N</mi><mo>∩</mo><mi>M</mi><mo>|</mo></mrow><mi>k</mi></mfrac><mo>=</mo><mfrac><mn>${keptHere}</mn><mn>${NEAREST}</mn></mfrac></math></p>
    <p>${say("<b>Trustworthiness</b> of ★: each false neighbor on the map costs its true rank minus k, and n is the number of images:")}<br>
    <math><mi>E</mi><mo>=</mo><munder><mo>∑</mo><mrow><mi>j</mi><mo>∈</mo><mi>M</mi><mo>∖</mo><mi>N</mi></mrow></munder><mo>(</mo><msub><mi>${say("rank")}</mi><mi>j</mi></msub><mo>−</mo><mi>k</mi><mo>)</mo><mo>=</mo><mn>${plain(excess)}</mn></math><br>
    <math><mi>T</mi><mo>=</mo><mn>1</mn><mo>−</mo><mfrac><mrow><mn>2</mn><mi>E</mi></mrow><mrow><mi>k</mi><mo>(</mo><mn>2</mn><mi>n</mi><mo>−</mo><mn>3</mn><mi>k</mi><mo>−</mo><mn>1</mn><mo>)</mo></mrow></mfrac></math><br>
    <math><mi>T</mi><mo>=</mo><mn>1</mn><mo>−</mo><mfrac><mrow><mn>2</mn><mo>·</mo><mn>${plain(excess)}</mn></mrow><mn>${plain(NEAREST * (2 * count - 3 * NEAREST - 1))}</mn></mfrac><mo>=</mo><mn>${fixed(trustHere, 3)}</mn></math><br>
    ${say("Over all images its mean is {share}.", { share: `${fixed(trustworthiness, 3)} (${percent(trustworthiness)})` })}
    ${say("<b>Continuity</b> exchanges the roles: a lost true neighbor costs its rank on the map minus k.")}</p>`,
  caption: [0, 1, 2, 3, 4],
  presented: { see: [[0, 1, 2, 3]], fails: [1, 2, 3], more: [0, 2] },
  states: { see: [{}] },
  parts: { map: "predict do see0 formula fails check takeaway", pictures: "formula", small: "do fails check takeaway" },
  fails: "Choose <b>Random pixels</b> and <b>perplexity 2</b>. The map shows 73 tight groups, 16 at perplexity 100. But 600 random points on a disk form about 17 such groups, mostly 10 to 24. So the 16 are chance, and perplexity 2 made the 73. At 5 the map shows 24, and at 30 only 4, because perplexity 30 spaces these points more evenly than chance would. The pixels are independent: there is nothing to find. The map does not warn you, but the share of neighbors kept does. It is less than a quarter on every map of random pixels, and more than half on every map of the digits.",
  takeaway: "Believe a group on a map only if its members are true neighbors, and if the group stays when you change the setting.",
  open: { page: "explore", label: "the maps of a run and their distortion", query: () => ({ color: "trustworthiness" }) },
  after: {
    text: "A UMAP map of customers shows two islands, far apart. What follows?",
    choices: ["The two groups are very different, because the gap is wide", "Nothing yet: check true neighbors and other settings", "UMAP is wrong, because t-SNE would show one island"],
    right: 1,
    order: [1, 0, 2],
    why: ["The same two groups can be drawn near or far, so the gap measures nothing.", "", "t-SNE would be no proof either: it can show groups that do not exist."],
    because: "The width of a gap carries no units. Whether two groups exist is a question for the original distances.",
  },
  notes: {
    ask: "Each setting draws another map of the same images. Which of them is the correct one? How would you decide without the class of a digit?",
    wrong: "“The map with the clearest islands is the best.” Clear islands also come from a low perplexity, even on random pixels.",
    stuck: "True neighbors never change with the setting: they come from the 64 pixels. Only the map’s neighbors change. Trustworthiness punishes false neighbors on the map; continuity punishes lost true neighbors.",
  },
};
