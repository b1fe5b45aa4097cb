// Names of categories at the centers of their points on a map, or beside them where images are drawn: the largest categories
// whose names cover neither each other nor images.
const MOST_NAMES = 60;
const MOST_MEASURED = 2000; // points of a category that its center is computed from
const NAME_HEIGHT = 24; // pixels, with room around a name, without which many of them read as one block
const NAME_MARGIN = 8;
const LONGEST_NAME = 22;
const LEAST_NAMED = 3; // points, and share of the largest category's; the name of a smaller category would hide it
const LEAST_SHARE = 0.02;
const NAME_STEPS = [0, 0.5, 1, 1.5, 2, 2.5, 3]; // sides of an image, by which a name is moved aside, and half its height
const NEAR = 1.6; // sides of an image, within which a name stays where it was drawn
const NAME_SPOTS = NAME_STEPS.flatMap((x) => NAME_STEPS.flatMap((y) => [[x, -y], [-x, y], [-x, -y], [x, y]]))
  .sort((first, second) => Math.hypot(...first) - Math.hypot(...second));

class Names {
  constructor(chart) {
    this.chart = chart;
    this.found = [];
    this.boxes = []; // of the names that are drawn
    this.moved = new Map(); // code → where the name was drawn last, so that it does not jump while its images travel
  }

  // For each of the largest categories its name and the row nearest to the median of its points, largest first. The row
  // and not the median: a name lies on its category also where that is in two parts, and travels with it.
  centers() {
    const { header, to, values } = this.chart;
    if (this.of === to && this.token === header.color.token) return this.found;
    const rows = header.color.names.map(() => []);
    for (let row = 0; row < values.length; row += 1) if (values[row] >= 0) rows[values[row]].push(row);
    const least = Math.max(LEAST_NAMED, LEAST_SHARE * rows.reduce((most, own) => Math.max(most, own.length), 0));
    const largest = [...rows.keys()].filter((code) => rows[code].length >= least)
      .sort((first, second) => rows[second].length - rows[first].length).slice(0, MOST_NAMES);
    this.found = largest.map((code) => ({ code, name: shortName(header.color.names[code]), row: centralRow(rows[code], to) }));
    Object.assign(this, { of: to, token: header.color.token });
    return this.found;
  }

  // Draw the names that overlap no other name, no taken box, no image and no tool; return their boxes. `images` are the
  // boxes of the images that are drawn, `side` is their side, and `reach` how many sides a name may lie from the middle of
  // its category; without images a name lies on its category or is left out.
  draw(pen, width, height, taken, images = [], side = 0, reach = Infinity) {
    const { header, names, lit } = this.chart;
    const drawn = (this.boxes = []);
    const { color } = header;
    if (!names || header.plain || header.grid || color.pictures || color.kind !== "category" || color.names.length < 2) return drawn;
    pen.font = wordFont(this.chart.root);
    pen.textBaseline = "middle";
    pen.lineJoin = "round";
    pen.lineWidth = 4;
    pen.strokeStyle = this.chart.paper;
    pen.fillStyle = this.chart.text;
    const { below } = this.chart.free(); // the tools
    for (const { code, name, row } of this.centers()) {
      if (lit !== null ? lit !== code : this.chart.grayed(row)) continue;
      const [x, y] = this.chart.screenPosition(row);
      const half = pen.measureText(name).width / 2;
      const others = [...taken, ...drawn, ...images];
      const isFree = (box) => box.left >= 0 && box.right <= width && box.top >= below && box.bottom <= height
        && !others.some((other) => overlap(box, other));
      const spots = side ? [...(this.moved.has(code) ? [this.moved.get(code)] : []), ...NAME_SPOTS]
        .filter((each) => Math.hypot(...each) <= reach) : [[0, 0]];
      const spot = spots.find(([across, down]) => isFree(nameBox(x + across * side, y + down * side, half)));
      if (!spot) continue;
      if (Math.hypot(...spot) <= NEAR) this.moved.set(code, spot);
      else this.moved.delete(code); // a name far from its images comes back as soon as there is room
      const [left, middle] = [x + spot[0] * side - half, y + spot[1] * side];
      drawn.push(nameBox(left + half, middle, half));
      pen.strokeText(name, left, middle);
      pen.fillText(name, left, middle);
    }
    return drawn;
  }
}

const nameBox = (x, y, half) => ({ left: x - half - NAME_MARGIN, right: x + half + NAME_MARGIN, top: y - NAME_HEIGHT / 2, bottom: y + NAME_HEIGHT / 2 });

const wordFont = (root) => `600 13px ${getComputedStyle(root).fontFamily}`; // as the page writes

const shortName = (name) => (name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME - 1)}…` : name);

// The row of a category that lies nearest to the median of its points (x, y, x, y, …).
function centralRow(rows, points) {
  const step = Math.ceil(rows.length / MOST_MEASURED);
  const some = rows.filter((_, at) => at % step === 0);
  const [x, y] = [0, 1].map((axis) => some.map((row) => points[2 * row + axis]).sort((a, b) => a - b)[some.length >> 1]);
  const distance = (row) => (points[2 * row] - x) ** 2 + (points[2 * row + 1] - y) ** 2;
  return some.reduce((best, row) => (distance(row) < distance(best) ? row : best));
}

