// The angles of sample triplets, of which those beyond α are colored. While the slider of α moves, the picture follows in the
// browser: Python hears of the slider when it is released.
// header: {edges, counts, shares: percent beyond each whole degree from 0, alpha, slider: selector of the slider's value}
const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [300, 190, 34, 6, 8, 34];
const MOST_DEGREES = 90;
const SVG = "http://www.w3.org/2000/svg";

class Angles {
  constructor(root) {
    this.root = root;
    this.title = root.querySelector(".title");
    this.picture = root.querySelector("svg");
  }

  update(header) {
    this.header = header;
    this.end();
    this.forget = watchValue(header.slider, (alpha) => this.draw(alpha));
    this.draw(header.alpha);
  }

  draw(alpha) {
    const { edges, counts, shares } = this.header;
    const most = Math.max(1, ...counts);
    const across = (angle) => LEFT + ((WIDTH - LEFT - RIGHT) * angle) / MOST_DEGREES;
    const up = (count) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - count / most);
    const words = `${shares[Math.max(0, Math.min(MOST_DEGREES, Math.round(alpha)))].toFixed(1)} % of triplets exceed α = ${alpha}°`;
    this.title.textContent = words;
    this.picture.setAttribute("aria-label", `${words}. Angles of sample triplets from 0 to 90 degrees.`);
    const add = (name, attributes, text) => {
      const node = document.createElementNS(SVG, name);
      for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
      if (text !== undefined) node.textContent = text;
      this.picture.append(node);
    };
    this.picture.replaceChildren();
    counts.forEach((count, at) => add("rect", { x: across(edges[at]) + 0.4, y: up(count), width: across(edges[at + 1]) - across(edges[at]) - 0.8,
      height: HEIGHT - BOTTOM - up(count), class: (edges[at] + edges[at + 1]) / 2 > alpha ? "beyond" : "" }));
    add("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM, class: "axis" });
    for (const angle of [0, 30, 60, 90]) add("text", { x: across(angle), y: HEIGHT - BOTTOM + 14, "text-anchor": angle === MOST_DEGREES ? "end" : "middle" }, `${angle}°`);
    for (const count of [0, most]) add("text", { x: LEFT - 5, y: up(count) + 4, "text-anchor": "end" }, count.toLocaleString("en"));
    add("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 4, "text-anchor": "middle" }, "angle of the triplet");
    add("line", { x1: across(alpha), x2: across(alpha), y1: 0, y2: HEIGHT - BOTTOM, class: "bound" });
    this.root.dataset.drawn = String(alpha);
  }

  end() { this.forget?.(); }
}

export default function angles({ data, parentElement }) {
  const root = parentElement.querySelector(".angles");
  root.live ??= new Angles(root);
  root.live.update(data);
  return endLater(root, "live");
}
