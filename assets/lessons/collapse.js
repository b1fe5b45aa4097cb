const LESSON = {
  id: "collapse",
  number: 8,
  minutes: 7,
  title: "Collapse",
  aim: "Afterwards you can recognize a collapsed embedding by its effective rank.",
  claim: "A free projection can lower its loss by giving up directions. An orthonormal projection keeps its directions at right angles and equally long, so it gives up less.",
  data: ["collapse"],
  before: {
    text: "Two projections turn the 64 pixels of an image into 8 numbers. They start equal, but only one may stretch its directions. Its loss ends lower. What about its R@1, the share of images whose nearest is the same digit?",
    choices: ["It ends higher: a lower loss is better", "It ends lower", "Both end equal"],
    right: 1,
    why: ["The loss does not ask how many directions remain, and digits need several directions to lie apart.", "", "They start equal, but only one may stretch its directions, so they end in different places."],
    shows: { rate: 3, step: 10 },
    because: "The free projection lowers the loss by giving up directions: about 3 of the 8 remain in use. The orthonormal projection still uses 5 to 6, and more digits lie apart.",
  },
  touch: "At step size 30, set the training step to 0 and raise it to 20: compare the losses and the maps. Then do the same at step size 100: what does the loss of the free projection do now?",
  see: "The free projection may stretch and shrink its directions; the orthonormal projection keeps them at right angles and at length 1. Each character is an image of a handwritten digit, drawn in the two main directions of its 8 numbers. The bars are the shares of all 8 directions. Effective rank counts the directions in use. R@1 is the share of the 400 images, on which both also train, whose nearest image is the same digit; it has no ±, because each projection trains once. Each map is scaled to fit.",
  controls: [
    { name: "rate", kind: "slider", label: "Step size s, how far a training step goes", low: 0, high: 4, step: 1, start: 3, format: (value) => ["1", "3", "10", "30", "100"][value] },
    { name: "step", kind: "slider", label: "Training step", low: 0, high: 10, step: 1, start: 0, format: (value) => String([0, 1, 2, 3, 4, 6, 8, 10, 12, 16, 20][value]) },
  ],
  kinds: ["orthonormal", "free"],
  names: [say("orthonormal"), say("free")],
  measures: [say("Effective rank"), "R@1", say("Loss")],
  charts: ["rank", "recall", "loss"],
  isPaired: true, // of two numbers in a row of the readout, one is of each projection
  highest: 0.8, // loss that its chart holds: a line that leaves it diverges
  compute({ rate, step }, { collapse: { shares, recalls, losses, positions, classes, rates, steps } }) {
    const [, rateCount, stepCount, width] = shares.shape;
    const runs = LESSON.kinds.map((_kind, row) => {
      const curves = steps.map((_step, at) => {
        const frame = (row * rateCount + rate) * stepCount + at;
        const part = Array.from(shares.subarray(frame * width, (frame + 1) * width));
        return { part, recall: recalls[frame], loss: losses[frame], rank: Math.exp(-part.reduce((sum, share) => sum + (share > 0 ? share * Math.log(share) : 0), 0)),
          positions: positions.subarray(2 * frame * classes.length, 2 * (frame + 1) * classes.length) };
      });
      return { curves, ...curves[step] };
    });
    const smaller = rate === rates.length - 1 ? steps.map((_step, at) => recalls[(rate - 1) * stepCount + at]) : null; // R@1 of the orthonormal projection, to compare with
    return { runs, smaller, smallerSize: rates[rate - 1], size: rates[rate], number: steps[step] };
  },
  readout: ({ runs: [orthonormal, free] }) => [[say("effective rank, orthonormal"), fixed(orthonormal.rank, 1)], [say("effective rank, free"), fixed(free.rank, 1)],
    [say("R@1, orthonormal"), percent(orthonormal.recall)], [say("R@1, free"), percent(free.recall)],
    [say("loss, orthonormal"), significant(orthonormal.loss, 3)], [say("loss, free"), free.loss < 1000 ? significant(free.loss, 3) : say("over {bound}", { bound: 1000 })]],
  build({ stage, data: { collapse: { classes, steps } }, parts }) {
    const isPresented = isOnSlide(stage);
    const isNarrow = stage.clientWidth < 500;
    const isPhone = isNarrow && !isPresented;
    const isRow = !isPresented && !leastLetters(stage) && stage.clientWidth >= 560; // two maps above a row of three charts
    const least = isPhone ? 140 : isPresented || leastLetters(stage) ? 300 : 200;
    const columns = isRow ? "repeat(6,minmax(0,1fr))" : `repeat(auto-fit,minmax(min(${least}px,100%),1fr))`;
    const grid = element("div", { style: `display:grid;grid-template-columns:${columns};gap:4px 14px;align-items:end` });
    stage.append(grid);
    const colors = [COLORS.hit, COLORS.miss];
    const isLarge = isPresented || leastLetters(stage) > 0;
    const isPaper = isOnPaper(stage); // three equal charts, one below another
    const isTight = isCrowded(leastLetters(stage), stage.clientWidth / 2); // of two names side by side
    const isLong = Math.max(...LESSON.names.map((name) => widthOf(`${name} R@1 00 %`, 1.05 * leastLetters(stage)))) > stage.clientWidth / 2 - 7; // then both titles have two lines
    const maps = LESSON.kinds.map((kind, row) => {
      const recall = element("span", { class: "later", style: `white-space:nowrap;${isLong ? "display:block" : ""}` }); // of a slide, which has no readout beside its maps
      const title = isPresented ? element("b", { "data-part": "bars", style: isTight ? "font-weight:400" : null }, LESSON.names[row], " ", recall) : element("b", { "data-part": "bars", style: "font-size:0.9em;overflow-wrap:anywhere" }, kind === "free" ? say("Free projection") : say("Orthonormal projection, LᵀL = I").replaceAll(" = ", "\u00a0=\u00a0"));
      const canvas = element("canvas", { "data-part": "maps", role: "img", style: `width:100%;height:${isPaper ? "320px" : "min(215px,38vw)"};display:block;border:1px solid var(--edge);border-radius:6px` });
      const bars = shape("svg", { class: "chart", "data-part": "bars", viewBox: "0 0 400 44", role: "img" });
      grid.append(element("div", { style: isRow ? "grid-column:span 3" : null }, title, canvas, bars));
      return { kind, canvas, bars, recall, color: colors[row] };
    });
    if (!isLarge) grid.append(element("div", { class: "controls-place", style: "grid-column:1/-1" })); // both maps and all charts stay in view while they are used
    const isWide = isCrowded(leastLetters(stage), stage.clientWidth); // room for one chart beside another only if letters are small
    const charts = [["effective rank", [0, 8], plain], ["R@1", [0, 1], (value) => percent(value, 0)], ["loss", [0.5, LESSON.highest], (value) => fixed(value, 2)]].map(([label, y, format], at) => {
      const isAlone = parts && !LESSON.charts.some((part, other) => other !== at && parts.includes(part));
      const box = element("div", { class: "later", "data-part": LESSON.charts[at], style: isWide || isAlone || isPhone || isPaper || (isLarge && at === 2) ? "grid-column:1/-1" : isRow ? "grid-column:span 2" : null });
      grid.append(box);
      const chart = new Chart(box, { x: [0, steps.at(-1)], y, xLabel: "training step", yLabel: "", title: LESSON.measures[at], label, width: isWide || isAlone || isPaper ? 640 : at === 2 && isLarge && !isNarrow ? 820 : 400, height: isPaper ? 130 : isWide ? 150 : isPhone ? 62 : isNarrow ? 112 : 175, right: isPaper ? 170 : 104, ...(isPaper ? { left: 96 } : {}), ticks: [0, 10, 20], format });
      if ((isPhone || isPaper) && at < 2) chart.xLabel = ""; // the chart below has it
      if (isWide && at === 0 && LESSON.charts.slice(1).some((part) => parts?.includes(part))) chart.xLabel = ""; // the chart below has it
      return chart;
    });
    // A line ends where it leaves the chart.
    const within = (points, high) => {
      const out = points.findIndex(([, value]) => value > high);
      if (out < 1) return points;
      const [[x, y], [nextX, nextY]] = points.slice(out - 1, out + 1);
      return Object.assign([...points.slice(0, out), [x + (nextX - x) * (high - y) / (nextY - y), high]], { leaves: true });
    };
    let runs = null;
    const paint = () => maps.forEach(({ canvas }, row) => {
      const { positions } = runs[row];
      const [width, height] = [canvas.clientWidth, canvas.clientHeight];
      if (!width) return;
      let reach = [0, 0];
      for (let at = 0; at < positions.length; at += 1) reach[at % 2] = Math.max(reach[at % 2], Math.abs(positions[at] - 128));
      const unit = Math.min((width / 2 - 8) / reach[0], (height / 2 - 8) / (reach[1] || 1));
      paintLetters(canvas, { positions, letters: classes, colors: classes, middle: [128, 128], unit, size: Math.max(10, 2 * leastRadius(canvas)) });
    });
    new ResizeObserver(() => { if (runs) paint(); }).observe(stage);
    return { draw(_state, numbers) {
      ({ runs } = numbers);
      const { size, number, smaller, smallerSize } = numbers;
      const most = Math.max(...runs.flatMap(({ part }) => part)); // the highest bar fills its strip
      maps.forEach(({ canvas, bars, recall: words, color }, row) => {
        const { part, rank, recall } = runs[row];
        words.textContent = `R@1\u00a0${percent(recall, 0)}`;
        canvas.setAttribute("aria-label", say("{name}, map after {number} steps of size {size}: effective rank {rank}, R@1 {recall}", { name: LESSON.names[row], number, size, rank: fixed(rank, 1), recall: percent(recall) }));
        bars.setAttribute("aria-label", say("Shares of the 8 directions, in percent: {shares}", { shares: part.map((share) => fixed(100 * share, 0)).join(", ") }));
        bars.replaceChildren(...part.map((share, at) => shape("rect", { x: 50 * at + 2, y: 42 - 40 * share / most, width: 44, height: 40 * share / most, fill: color })));
      });
      charts.forEach((chart, at) => {
        const name = LESSON.charts[at];
        const value = (loss) => (loss < 1000 ? fixed(loss, 2) : say("over {bound}", { bound: 1000 }));
        chart.describe(say("{measure} over the training steps with step size {size}: orthonormal from {begin} to {end}, free from {freeBegin} to {freeEnd}", {
          measure: LESSON.measures[at], size, ...Object.fromEntries(runs.flatMap(({ curves }, row) => [[["begin", "freeBegin"][row], value(curves[0][name])],
            [["end", "freeEnd"][row], value(curves.at(-1)[name])]])) }));
        const isNamed = !chart.isCrowded; // or else the first chart names the lines of all
        const isFirst = !LESSON.charts.slice(0, at).some((other) => !parts || parts.includes(other));
        const until = (points) => (parts?.includes("maps") && parts.includes("loss") ? points.filter((_point, index) => steps[index] <= number) : points); // beside the maps, what comes later is not yet known
        const series = runs.map(({ curves }, row) => ({ name: (isNamed && !isPaper) || isFirst ? LESSON.names[row] : "", color: colors[row], dashed: row === 1,
          points: until(within(curves.map((curve, index) => [steps[index], curve[name]]), chart.y[1])) }));
        if (at === 1 && smaller) series.push({ name: say("orthonormal, s = {size}", { size: smallerSize }), color: COLORS.gray, points: smaller.map((recall, index) => [steps[index], recall]) });
        chart.draw(series, number);
      });
      paint();
    } };
  },
  formula: (_state, { runs: [orthonormal, free], number }) => {
    const line = ({ part, rank }) => `<math><mi>p</mi><mo>=</mo><mo>(</mo>${part.slice(0, 4).map((share) => `<mn>${fixed(share, 2)}</mn>`).join(`<mo>${LIST_SIGN}</mo>`)}<mo>${LIST_SIGN}</mo><mi>…</mi><mo>)</mo></math>, ${say("effective rank {rank}", { rank: fixed(rank, 2) })}`;
    return `<p>${say("{formula}, where log is the natural logarithm and p are the singular values of the centered embedding (the lengths of its main directions), divided by their sum. It is 8 if all directions are equally long, and 1 on a line.", {
      formula: `<math><mtext>${say("effective rank")}</mtext><mo>=</mo><mi>exp</mi><mo>(</mo><mo>−</mo><munder><mo>∑</mo><mi>k</mi></munder><msub><mi>p</mi><mi>k</mi></msub><mi>log</mi><msub><mi>p</mi><mi>k</mi></msub><mo>)</mo></math>` })}</p>
      <p>${say("After {number} steps: orthonormal {orthonormal}; free {free}.", { number, orthonormal: line(orthonormal), free: line(free) })}</p>
      <p class="aside">${say("Both train with the angular loss J and a strict bound, α = 15°. Free: {free}. Orthonormal: the same step, then back to the nearest L with {constraint}.", {
      free: "<math><mi>L</mi><mo>←</mo><mi>L</mi><mo>−</mo><mi>s</mi><mi>∇</mi><mi>J</mi></math>", constraint: "<math><msup><mi>L</mi><mo>⊤</mo></msup><mi>L</mi><mo>=</mo><mi>I</mi></math>" })}</p>`;
  },
  caption: [1, 2],
  presented: { do: [0, 1], see: [[0, 1], [2, 3]], fails: [1, 2] },
  states: { unanswered: { rate: 3, step: 10 }, handout: { rate: 3, step: 10 }, fails: { rate: 4, step: 10 } },
  parts: { maps: "predict do see0", bars: "predict do see0 see1 formula", rank: "see1 formula fails check takeaway", recall: "takeaway", loss: "do fails check" },
  fails: "An orthonormal projection is no guarantee of success. At step size 100 the orthonormal projection’s effective rank falls from 7.6 to 4.8: the images lie along few directions. The free projection ends at rank 1 for another reason: it diverges, its loss rises without limit. Each step overshoots farther than the last, until one direction hides the others. The R@1 of the orthonormal projection also ends lower than at step size 30. And a high effective rank alone proves nothing: the random start has the highest rank and the lowest R@1 of the orthonormal runs.",
  takeaway: "Watch effective rank and R@1 together: a low loss can hide lost directions. A loss that rises without limit is divergence: take smaller steps.",
  open: { page: "runs", label: "effective rank and R@1 of your runs, epoch by epoch" },
  after: {
    text: "In a colleague’s run the loss falls in every epoch, but effective rank drops from 60 to 2, and R@1 falls too. What do you do first?",
    choices: ["Train longer: the loss still falls", "Try an orthonormal projection", "Take smaller steps, and change nothing else"],
    right: 1,
    order: [0, 2, 1],
    why: ["More such steps lose even more directions.", "", "Smaller steps lose directions too, only later. They help against divergence, but here the loss falls."],
    because: "The loss falls because the embedding gives up directions. The constraint keeps most of them; smaller steps do not: after 20 steps of size 10, the free projection of this lesson has rank 3.0, of size 30 rank 2.8.",
  },
  notes: {
    ask: "At which training step would you stop the free projection if you saw only its loss? And if you saw its effective rank too?",
    wrong: "“Collapse means that all points move to one place.” Here the map grows along a few directions; the others vanish beside them. Distances then depend on a few numbers for each image.",
    stuck: "Each map is scaled to fit, so growth does not show. The bars do: they give each direction’s share. Ask what a distance depends on if one bar fills the strip.",
  },
};
