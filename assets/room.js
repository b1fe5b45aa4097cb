// Room for images: points of a clumped map that lie on each other move apart, so that every group takes the space that its
// images need. Groups keep their places, and the map its bounds. Distances on such a map carry no units anyway.
const MOST_ROOMY = 10000; // points, for which this takes a quarter of a second
const ROOMY = 0.45; // share of the map's box that the points fill, each with its room
const STEPS = 70;
const PUSH = 0.3; // share of what two points lack by which each moves in a step
const NARROWEST = 0.25; // of the room, with which the steps begin, so that few points are near each other at once
const WIDENING = 0.6; // share of the steps in which the room grows to all of it
const MOST_NEAR = 12; // points of a cell that push a point in one step; others push it in the next
const JITTER = 1e-3; // of the room, so that equal points part
const GOLDEN = [0.7548776662466927, 0.5698402909980532]; // a sequence without clumps or repeats

// Return positions [x, y, …] at which points have room, within the same bounds; the same positions for too many points.
function withRoom(flat) {
  const count = flat.length / 2;
  const before = boxOf(flat);
  const area = before.width * before.height;
  if (count < 3 || count > MOST_ROOMY || !(area > 0)) return flat;
  const room = Math.sqrt((ROOMY * area) / count);
  const at = Float64Array.from(flat, (value, place) => value + room * JITTER * (((place >> 1) * GOLDEN[place & 1]) % 1));
  const shift = new Float64Array(flat.length);
  for (let step = 0; step < STEPS; step += 1) {
    const reach = room * Math.min(1, NARROWEST + ((1 - NARROWEST) * step) / (WIDENING * STEPS));
    push(at, shift, reach, step);
    for (let place = 0; place < at.length; place += 1) at[place] += shift[place];
    shift.fill(0);
  }
  const after = boxOf(at);
  const scale = [before.width / after.width, before.height / after.height];
  const [from, to] = [[after.left, after.bottom], [before.left, before.bottom]];
  return Float32Array.from(at, (value, place) => to[place & 1] + (value - from[place & 1]) * scale[place & 1]);
}

// Where a place among the computed positions lies among those with room: beside the image that is nearest there.
function besideNearest(computed, flat, [x, y]) {
  let [near, least] = [0, Infinity];
  for (let at = 0; at < computed.length; at += 2) {
    const square = (computed[at] - x) ** 2 + (computed[at + 1] - y) ** 2;
    if (square < least) [near, least] = [at, square];
  }
  return [flat[near] + x - computed[near], flat[near + 1] + y - computed[near + 1]];
}

function boxOf(flat) {
  let [left, bottom, right, top] = [Infinity, Infinity, -Infinity, -Infinity];
  for (let place = 0; place < flat.length; place += 2) {
    left = Math.min(left, flat[place]);
    right = Math.max(right, flat[place]);
    bottom = Math.min(bottom, flat[place + 1]);
    top = Math.max(top, flat[place + 1]);
  }
  return { left, bottom, width: right - left, height: top - bottom };
}

// Add to `shift` how far points nearer to each other than `reach` part in one step.
function push(at, shift, reach, step) {
  const { left, bottom, width, height } = boxOf(at);
  const count = at.length / 2;
  const across = Math.floor(width / reach) + 3; // with an empty cell at each end, so that every cell has neighbors
  const [starts, cells] = [new Int32Array(across * (Math.floor(height / reach) + 3) + 1), new Int32Array(count)];
  for (let row = 0; row < count; row += 1) {
    cells[row] = (Math.floor((at[2 * row + 1] - bottom) / reach) + 1) * across + Math.floor((at[2 * row] - left) / reach) + 1;
    starts[cells[row] + 1] += 1;
  }
  for (let cell = 1; cell < starts.length; cell += 1) starts[cell] += starts[cell - 1];
  const [ends, rows] = [starts.slice(), new Int32Array(count)];
  for (let row = 0; row < count; row += 1) { rows[ends[cells[row]]] = row; ends[cells[row]] += 1; }
  const near = [0, 1, across - 1, across, across + 1]; // each pair of cells once
  for (let row = 0; row < count; row += 1) {
    for (const beside of near) {
      const first = starts[cells[row] + beside];
      const size = starts[cells[row] + beside + 1] - first;
      const most = Math.min(size, MOST_NEAR);
      for (let number = 0; number < most; number += 1) {
        const other = rows[first + (size > most ? (number + row + step * MOST_NEAR) % size : number)];
        if (!beside && other <= row) continue;
        const right = at[2 * row] - at[2 * other];
        const above = at[2 * row + 1] - at[2 * other + 1];
        const square = right * right + above * above;
        if (square >= reach * reach || !square) continue;
        const by = PUSH * (reach / Math.sqrt(square) - 1);
        shift[2 * row] += by * right;
        shift[2 * row + 1] += by * above;
        shift[2 * other] -= by * right;
        shift[2 * other + 1] -= by * above;
      }
    }
  }
}
