// Formulas on lines that are too short for them: they go on in a new line at a sign of equality, or else get smaller letters.
const LEAST_SHARE = 0.5; // of the letters
const LONG = 16; // parts of a formula that may go on in a new line

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
    const starts = parts.flatMap((part, at) => (at && part.localName === "mo" && part.textContent.trim() === "=" ? [at] : []));
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

// Formulas that are wider than their line get smaller letters; return the smallest share of the letters.
function fitFormulas(root) {
  const maths = [...root.querySelectorAll("math")];
  for (const math of maths) math.style.removeProperty("font-size");
  if (!root.clientWidth) return 1; // not shown now
  const shown = maths.filter((math) => math.getClientRects().length);
  const shares = shown.map((math) => math.parentElement.closest("p, dd, div").clientWidth / math.getBoundingClientRect().width);
  shown.forEach((math, at) => {
    if (shares[at] < 1) math.style.fontSize = `${Math.floor(100 * Math.max(shares[at], LEAST_SHARE) * parseFloat(getComputedStyle(math).fontSize)) / 100}px`;
  });
  return Math.min(1, ...shares);
}
