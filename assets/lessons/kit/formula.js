// Formulas on lines that are too short for them: they go on in a new line at a sign of equality, or else get smaller letters.
const LEAST_SHARE = 0.5; // of the letters
const LONG = 16; // parts of a formula that may go on in a new line
const SHORT = 3; // letters before a sign of equality that would stand alone on a line

// Parentheses around letters have one height; only around a table or a fraction do they grow.
function evenSigns(formula) {
  for (const sign of formula.querySelectorAll("mo")) {
    const isTall = sign.parentElement.querySelector("mtable, mfrac, munder, munderover");
    if (["(", ")", "|", "‖"].includes(sign.textContent) && !isTall) sign.setAttribute("stretchy", "false");
  }
}

// Begin a formula of its own at each sign of equality in the outermost row of a long one, because none goes on in a new line.
function breakFormulas(root) {
  for (const math of root.querySelectorAll("math")) {
    if (math.querySelectorAll("*").length < LONG) continue;
    const parts = [...math.children];
    const isShort = (at) => parts.slice(0, at).map(({ textContent }) => textContent.trim()).join("").length <= SHORT;
    const starts = parts.flatMap((part, at) => (part.localName === "mo" && part.textContent.trim() === "=" && !isShort(at) ? [at] : []));
    let last = math;
    starts.forEach((start, at) => {
      const next = math.cloneNode(false);
      parts[start].setAttribute("form", "infix");
      next.append(...parts.slice(start, starts[at + 1]));
      last.after(next);
      last = next;
    });
  }
}

// Keep a formula on the line of the sign that follows it, and both sides of a sign of equality in a text together.
function bindFormulas(root) {
  for (const math of root.querySelectorAll("math")) {
    const after = math.nextSibling;
    const sign = after?.nodeType === Node.TEXT_NODE && /^[.,;:)]+/.exec(after.data)?.[0];
    if (!sign) continue;
    const bound = element("span", { class: "bound", style: "white-space:nowrap" });
    math.before(bound);
    bound.append(math, sign);
    after.data = after.data.slice(sign.length);
  }
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const { data, parentElement } = walker.currentNode;
    if (!parentElement.closest("math")) walker.currentNode.data = data.replace(/(^|\S) = (?=\S)/g, "$1\u00a0=\u00a0");
  }
}

// Lay out the formulas of a text.
function layFormulas(root) {
  evenSigns(root);
  breakFormulas(root);
  bindFormulas(root);
}

// Formulas that are wider than their line get smaller letters; return the smallest share of the letters.
function fitFormulas(root) {
  const maths = [...root.querySelectorAll("math")];
  for (const math of maths) math.style.removeProperty("font-size");
  if (!root.clientWidth) return 1; // not shown now
  const shown = maths.filter((math) => math.getClientRects().length);
  const shares = shown.map((math) => {
    const { width } = math.getBoundingClientRect();
    const sign = (math.closest(".bound")?.getBoundingClientRect().width ?? width) - width;
    return (math.parentElement.closest("p, dd, div").clientWidth - sign) / width;
  });
  shown.forEach((math, at) => {
    if (shares[at] < 1) math.style.fontSize = `${Math.floor(100 * Math.max(shares[at], LEAST_SHARE) * parseFloat(getComputedStyle(math).fontSize)) / 100}px`;
  });
  return Math.min(1, ...shares);
}
