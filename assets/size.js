// A slider that sets the width of the images in all resizable galleries of the page, without asking Python. The browser
// remembers the choice.
// data: {low, high, value}
export default function size({ data, parentElement }) {
  const range = parentElement.querySelector("input");
  Object.assign(range, { min: data.low, max: data.high, step: 4 });
  if (document.activeElement?.shadowRoot?.activeElement !== range) range.value = imageSize() ?? data.value;
  range.setAttribute("aria-valuetext", `${range.value} pixels`);
  range.onkeydown = (event) => { if (isStreamlits(event.key)) event.stopPropagation(); };
  range.oninput = () => {
    try { localStorage.setItem("udml-image-size", range.value); } catch { return; }
    range.setAttribute("aria-valuetext", `${range.value} pixels`);
    window.dispatchEvent(new CustomEvent("udml-size"));
  };
}
