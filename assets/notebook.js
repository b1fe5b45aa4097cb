// What Streamlit gives a component's script, given by a notebook's widget (udml_core/notebook.py): its message, its element
// and its answers. Python joins this script with the component's.

// Large parts of messages arrive once, in the trait `files`, and stay as long as a view shows them. All widgets of the page
// share them: the name of a file changes with its content.
function keepFiles(view, files) {
  const shared = (window.udmlFiles ??= new Map()); // name → {address, views}; see fetchPart
  for (const [name, { kind, content }] of Object.entries(files)) {
    const file = shared.get(name) ?? { address: URL.createObjectURL(new Blob([content], { type: kind })), views: new Set() };
    file.views.add(view);
    shared.set(name, file);
  }
  for (const [name, file] of shared) {
    if (name in files || !file.views.delete(view) || file.views.size) continue;
    URL.revokeObjectURL(file.address);
    shared.delete(name);
  }
}

// Shift and drag is a lasso: the notebook would select cells, and the browser text.
function keepShift(event) {
  if (!event.shiftKey) return;
  event.stopPropagation();
  if (event.type !== "mousedown") return;
  event.preventDefault(); // which also keeps the focus where it was
  event.composedPath().find((node) => node.tabIndex >= 0)?.focus({ preventScroll: true });
}

// The styles of the component and of the notebook do not meet in a shadow root. The component measures its element, so it is
// drawn when the notebook has laid the element out.
function inNotebook(draw, html, style) {
  return ({ model, el }) => {
    el.dataset.lmSuppressShortcuts = "true"; // JupyterLab's keys, such as B for a new cell
    el.oncontextmenu = (event) => event.stopPropagation(); // and its menu
    for (const name of ["pointerdown", "mousedown"]) el.addEventListener(name, keepShift);
    const root = el.attachShadow({ mode: "open" });
    root.innerHTML = `<style>${style}</style><p class="heading" role="status"></p>${html}`;
    const answers = {
      setStateValue: (name, value) => { model.set(name, value); model.save_changes(); },
      setTriggerValue: (name, value) => model.send({ [name]: value }),
    };
    let end = () => {};
    let waits = true;
    const show = () => {
      waits = !el.isConnected || !el.clientWidth;
      if (waits) return;
      keepFiles(el, model.get("files"));
      root.querySelector(".heading").textContent = model.get("heading");
      const { buffer, byteOffset, byteLength } = model.get("data");
      end = draw({ data: new Uint8Array(buffer, byteOffset, byteLength), parentElement: root, ...answers });
    };
    const laidOut = new ResizeObserver(() => { if (waits) show(); });
    laidOut.observe(el);
    model.on("change:data", show);
    return () => {
      laidOut.disconnect();
      model.off("change:data", show);
      keepFiles(el, {});
      end();
    };
  };
}
