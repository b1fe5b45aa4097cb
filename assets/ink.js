// Images on a map: gray images as ink in a color, and images that would hide each other moved apart.
const ROUNDS = 40; // of moving images apart

const lightness = ([red, green, blue]) => (0.299 * red + 0.587 * green + 0.114 * blue) / 255;

// The red, green and blue of `#rrggbb` or `rgb(r, g, b)`.
function rgbOf(color) {
  return color.startsWith("#") ? [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16))
    : color.match(/[\d.]+/g).slice(0, 3).map(Number);
}

// JPEG leaves traces of color in gray images.
function isGray(data) {
  for (let at = 0; at < data.length; at += 4) {
    if (Math.max(data[at], data[at + 1], data[at + 2]) - Math.min(data[at], data[at + 1], data[at + 2]) > 14) return false;
  }
  return true;
}

// Turn a gray image into ink of one color: the more a pixel differs from the corners, which are paper, the denser it is.
function colorInk(data, side, color) {
  const corners = [0, side - 1, side * (side - 1), side * side - 1].map((at) => data[4 * at]).sort((a, b) => a - b);
  const paper = (corners[1] + corners[2]) / 2;
  const reach = Math.max(paper, 255 - paper);
  for (let at = 0; at < data.length; at += 4) {
    data[at + 3] = 255 * Math.min(1, (1.15 * Math.abs(data[at] - paper)) / reach);
    [data[at], data[at + 1], data[at + 2]] = color;
  }
}

// A tile of a sheet as a canvas, a gray image as ink of a color.
function inked(sheet, { column, row }, cell, color) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = cell;
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  pen.drawImage(sheet, column * cell, row * cell, cell, cell, 0, 0, cell, cell);
  const picture = pen.getImageData(0, 0, cell, cell);
  const gray = Boolean(color) && isGray(picture.data);
  if (gray) {
    colorInk(picture.data, cell, rgbOf(color));
    pen.putImageData(picture, 0, 0);
  }
  return { canvas, isGray: gray };
}

// Move spots (x, y, x, y, …) apart that are closer than a distance, within a box around 0.
function moveApart(spots, distance, wide, high) {
  const count = spots.length / 2;
  for (let round = 0; round < ROUNDS; round += 1) {
    const cells = new Map();
    const cell = (x, y) => `${x} ${y}`;
    for (let row = 0; row < count; row += 1) {
      const key = cell(Math.floor(spots[2 * row] / distance), Math.floor(spots[2 * row + 1] / distance));
      if (cells.has(key)) cells.get(key).push(row);
      else cells.set(key, [row]);
    }
    let moved = false;
    for (let row = 0; row < count; row += 1) {
      const [column, line] = [Math.floor(spots[2 * row] / distance), Math.floor(spots[2 * row + 1] / distance)];
      for (let x = column - 1; x <= column + 1; x += 1) {
        for (let y = line - 1; y <= line + 1; y += 1) {
          for (const other of cells.get(cell(x, y)) ?? []) if (other > row) moved = part(spots, row, other, distance) || moved;
        }
      }
      spots[2 * row] = Math.max(-wide, Math.min(wide, spots[2 * row]));
      spots[2 * row + 1] = Math.max(-high, Math.min(high, spots[2 * row + 1]));
    }
    if (!moved) return;
  }
}

// Move two spots apart if they are closer than a distance; spots in one place part at an angle of their own.
function part(spots, first, second, distance) {
  let [x, y] = [spots[2 * second] - spots[2 * first], spots[2 * second + 1] - spots[2 * first + 1]];
  let apart = Math.hypot(x, y);
  if (apart >= distance) return false;
  if (apart < 1e-3) [x, y, apart] = [Math.cos(second), Math.sin(second), 1];
  const step = (0.5 * (distance - Math.min(apart, distance))) / apart;
  spots[2 * first] -= step * x;
  spots[2 * first + 1] -= step * y;
  spots[2 * second] += step * x;
  spots[2 * second + 1] += step * y;
  return true;
}
