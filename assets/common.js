// Code that all components share. Python joins it with each component's script, so that each component is one module.

// Large parts travel once: the address of a part changes with its content, and all components of the page share the
// parts fetched so far. `read` turns a response into an ArrayBuffer, an ImageBitmap or parsed JSON.
const kept = (window.udmlKept ??= new Map());
const MOST_KEPT = 48;

function fetchPart(url, read) {
  const key = `${read.name} ${url}`;
  if (!kept.has(key)) {
    if (kept.size >= MOST_KEPT) kept.delete(kept.keys().next().value);
    const address = window.udmlFiles?.get(url)?.address ?? url; // in a notebook, files have names (notebook.js)
    const loading = fetch(address).then((answer) => {
      if (!answer.ok) throw new Error(`${url}: ${answer.status}`);
      return read(answer);
    });
    loading.catch(() => kept.delete(key));
    kept.set(key, loading);
  }
  return kept.get(key);
}

const asImage = async (answer) => createImageBitmap(await answer.blob());
const asBuffer = (answer) => answer.arrayBuffer();
const asJson = (answer) => answer.json();

const TYPES = { int8: Int8Array, uint8: Uint8Array, int16: Int16Array, uint16: Uint16Array, int32: Int32Array,
  float32: Float32Array };

// A message: the length of the header in 4 bytes (little endian), the header as JSON, then the parts. The header refers
// to a part inside the message as {type, at, length}, and to a part to fetch as {type, url}.
function unpack(data) {
  const bytes = data instanceof Uint8Array ? data : new Uint8Array(data);
  const length = new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const parts = bytes.subarray(4 + length);
  const array = async (part) => {
    if (!part) return null;
    const Type = TYPES[part.type];
    if (part.url) return new Type(await fetchPart(part.url, asBuffer));
    return new Type(parts.slice(part.at, part.at + part.length).buffer);
  };
  return [header, array];
}

// A selection is sent as a bitmask, lowest bit first, in base64, so that its size does not depend on the selection.
function packMask(flags) {
  const bytes = new Uint8Array(Math.ceil(flags.length / 8));
  for (let row = 0; row < flags.length; row += 1) if (flags[row]) bytes[row >> 3] |= 1 << (row & 7);
  let text = "";
  for (let at = 0; at < bytes.length; at += 32768) text += String.fromCharCode(...bytes.subarray(at, at + 32768));
  return btoa(text);
}

function unpackMask(bytes, count) {
  const flags = new Uint8Array(count);
  for (let row = 0; row < count; row += 1) flags[row] = (bytes[row >> 3] >> (row & 7)) & 1;
  return flags;
}

// Components of the same group on a page notify each other directly, without a round trip to Python.
function notify(kind, group, detail) {
  if (group) window.dispatchEvent(new CustomEvent(`udml-${kind}`, { detail: { group, ...detail } }));
}

// Streamlit binds these keys on the document, so they must not leave a component; shortcuts of a page's buttons may.
const isStreamlits = (key) => ["c", "r"].includes(key.toLowerCase());

const calm = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;

// Return the sheet that holds image `id`, its cell, and the sheet's number of rows, as the last sheet may be short.
function positionOf({ urls, count, columns, perSheet }, id) {
  const sheet = Math.floor(id / perSheet);
  const cell = id % perSheet;
  return { url: urls[sheet], column: cell % columns, row: Math.floor(cell / columns), columns,
    rows: Math.ceil(Math.min(perSheet, count - sheet * perSheet) / columns) };
}

// The image size that the user chose with the page's slider, in pixels; null without a choice.
function imageSize() {
  try { return Number(localStorage.getItem("udml-image-size")) || null; } catch { return null; }
}

// The height of a picture: a main picture keeps its share of a window that is taller than a laptop's 900 pixels. A text
// is a CSS length.
function tall(height) {
  if (typeof height === "string") return height;
  return height < 560 ? `${height}px` : `max(${height}px, ${(height / 9).toFixed(2)}vh)`;
}

/** Return what ends a component that has left the page for good; a component that is drawn elsewhere at once goes on. */
const endLater = (root, name) => () => setTimeout(() => { if (!root.isConnected) { root[name]?.end(); root[name] = null; } }, 1000);

/** Call back with each number that a slider of Streamlit shows; return a function that ends this. */
function watchValue(selector, changed) {
  const place = document.querySelector(selector);
  const watch = new MutationObserver(() => { if (Number.isFinite(parseFloat(place.textContent))) changed(parseFloat(place.textContent)); });
  if (place) watch.observe(place, { subtree: true, childList: true, characterData: true });
  return () => watch.disconnect();
}
