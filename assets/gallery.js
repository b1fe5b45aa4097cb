// A gallery of images as one sprite sheet: labelled buttons in a grid, moved through with the arrow keys.
// data: 4 bytes length of the header (little endian), the header as JSON, the sprite sheet as an image file.
// header: {tiles: [{id, caption, mark: "hit"|"miss"|"query"|"", badge}], columns, side, chosen, label}
const MARKS = { hit: "✓", miss: "✕", query: "★" };
const WORDS = { hit: "same class", miss: "other class", query: "query" };

function unpack(data) {
  const bytes = data instanceof Uint8Array ? data : new Uint8Array(data);
  const length = new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  return [header, new Blob([bytes.subarray(4 + length)])];
}

function tileButton(tile, position, header, sheet) {
  const row = Math.floor(position / header.columns);
  const column = position % header.columns;
  const rows = Math.ceil(header.tiles.length / header.columns);
  const percent = (index, count) => (count > 1 ? (100 * index) / (count - 1) : 0);
  const button = document.createElement("button");
  button.type = "button";
  button.className = `tile ${tile.mark}`;
  button.dataset.id = tile.id;
  const words = [tile.caption, WORDS[tile.mark], tile.caption.includes(tile.badge) ? "" : tile.badge].filter(Boolean).join(", ");
  button.setAttribute("aria-label", words);
  button.title = words;
  if (tile.id === header.chosen) button.setAttribute("aria-current", "true");
  const image = document.createElement("span");
  image.className = "image";
  image.setAttribute("role", "presentation");
  image.style.backgroundImage = `url(${sheet})`;
  image.style.backgroundSize = `${100 * header.columns}% ${100 * rows}%`;
  image.style.backgroundPosition = `${percent(column, header.columns)}% ${percent(row, rows)}%`;
  const caption = document.createElement("span");
  caption.className = "caption";
  caption.textContent = [MARKS[tile.mark], tile.badge || tile.caption].filter(Boolean).join(" ");
  button.append(image, caption);
  return button;
}

function focusTile(grid, position) {
  const tiles = grid.children;
  const target = tiles[Math.max(0, Math.min(tiles.length - 1, position))];
  for (const tile of tiles) tile.tabIndex = tile === target ? 0 : -1;
  target.focus();
}

function onKey(event, grid) {
  const tiles = [...grid.children];
  const here = tiles.indexOf(event.target.closest(".tile"));
  if (here < 0) return;
  const perRow = Math.max(1, tiles.filter((tile) => tile.offsetTop === tiles[0].offsetTop).length);
  const moves = { ArrowRight: here + 1, ArrowLeft: here - 1, ArrowDown: here + perRow, ArrowUp: here - perRow,
    Home: 0, End: tiles.length - 1 };
  if (event.key in moves) {
    event.preventDefault();
    event.stopPropagation();
    focusTile(grid, moves[event.key]);
  } else if (event.key.length === 1 || event.key === "Escape") {
    event.stopPropagation(); // Streamlit binds single keys on the document
  }
}

export default function gallery({ data, parentElement, setTriggerValue }) {
  const grid = parentElement.querySelector(".grid");
  const [header, blob] = unpack(data);
  if (grid.sheet) URL.revokeObjectURL(grid.sheet);
  grid.sheet = URL.createObjectURL(blob);
  const focused = grid.getRootNode().activeElement?.dataset?.id;
  grid.style.setProperty("--side", `${header.side}px`);
  grid.setAttribute("aria-label", header.label);
  grid.replaceChildren(...header.tiles.map((tile, position) => tileButton(tile, position, header, grid.sheet)));
  [...grid.children].forEach((tile, position) => { tile.tabIndex = position === 0 ? 0 : -1; });
  const again = [...grid.children].findIndex((tile) => tile.dataset.id === focused);
  if (again >= 0) focusTile(grid, again);
  grid.onclick = (event) => {
    const tile = event.target.closest(".tile");
    if (tile) setTriggerValue("picked", Number(tile.dataset.id));
  };
  grid.onkeydown = (event) => onKey(event, grid);
  return () => { URL.revokeObjectURL(grid.sheet); grid.sheet = null; };
}
