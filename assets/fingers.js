// Fingers and the wheel on a map: one finger and the wheel scroll the page past it; two fingers, or the wheel with Ctrl
// or after a click on the map, zoom it. The style `touch-action: pan-y` gives one finger to the browser; a second one
// must be claimed before the page moves with it.
const WHOLE = 0.6; // share of the window's height from which a map leaves no room beside it to scroll the page
const TOLD_MS = 4000;
const TOLD_STYLE = "position:absolute;inset:auto 0 0;margin:0;padding:8px;pointer-events:none;text-align:center;font-size:0.85rem;"
  + "background:var(--st-background-color);border-top:1px solid var(--st-border-color,#8884)";

class Fingers {
  // moved(right, down, left, top, factor): how far two fingers went, the point between them, and by how much they spread.
  // zoomed(left, top, factor): by how much the wheel zooms, at a point; false if it cannot, so that the page scrolls.
  constructor(surface, moved, zoomed) {
    this.moved = moved;
    this.at = new Map();
    surface.addEventListener("wheel", (event) => {
      if (!takesWheel(event, surface)) { this.tell("Ctrl and the wheel zoom the map, or click it first"); return; }
      const box = surface.getBoundingClientRect();
      const factor = Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016));
      const hasZoomed = zoomed(event.clientX - box.left, event.clientY - box.top, factor) !== false;
      if (hasZoomed || event.ctrlKey || event.metaKey) event.preventDefault(); // with Ctrl the browser would zoom the page
    }, { passive: false });
    this.stage = surface.parentElement;
    surface.addEventListener("touchmove", (event) => {
      if (event.touches.length > 1 && event.cancelable) event.preventDefault(); // a page that still moves keeps its fingers
    }, { passive: false });
    surface.addEventListener("pointerdown", (event) => this.down(event));
    surface.addEventListener("pointermove", (event) => this.move(event));
    for (const end of ["pointerup", "pointercancel"]) {
      surface.addEventListener(end, (event) => this.at.delete(event.pointerId));
    }
  }

  get count() { return this.at.size; }

  down(event) {
    if (event.pointerType !== "touch") return;
    this.at.set(event.pointerId, [event.clientX, event.clientY]);
    this.tell("Two fingers move and zoom the map");
  }

  move(event) {
    if (!this.at.has(event.pointerId)) return;
    const before = this.between();
    this.at.set(event.pointerId, [event.clientX, event.clientY]);
    if (this.at.size !== 2) return;
    const after = this.between();
    const box = event.target.getBoundingClientRect();
    this.moved(after.x - before.x, after.y - before.y, after.x - box.left, after.y - box.top, after.spread / before.spread);
  }

  // The point between two fingers, and their distance.
  between() {
    const [a, b = a] = [...this.at.values()];
    return { x: (a[0] + b[0]) / 2, y: (a[1] + b[1]) / 2, spread: Math.hypot(a[0] - b[0], a[1] - b[1]) || 1 };
  }

  tell(words) { // once on a page: the map looks as if one finger would move it, and the wheel zoom it
    if (Fingers.told) return;
    Fingers.told = true;
    const line = document.createElement("p");
    line.className = "fingers";
    line.style.cssText = TOLD_STYLE;
    line.setAttribute("role", "status");
    line.textContent = words;
    this.stage.append(line);
    setTimeout(() => line.remove(), TOLD_MS);
  }
}

const takesWheel = (event, surface) => event.ctrlKey || event.metaKey || surface.getRootNode().activeElement === surface
  || surface.clientHeight >= WHOLE * window.innerHeight;
