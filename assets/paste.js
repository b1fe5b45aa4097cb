// A box that accepts images pasted anywhere on the page, dropped, or chosen as files. Large images are reduced here.
// data: {most}; answers: trigger "brought" [{name, data: base64}].
const SIDE = 1024; // longest side of an image in pixels
const HEAVY = 1.5e6; // bytes above which a file is compressed again
const LARGEST = 2e7; // bytes above which an unreadable file is not sent

const inBase64 = (blob) => new Promise((done, failed) => {
  const reader = new FileReader();
  reader.onload = () => done(reader.result.slice(reader.result.indexOf(",") + 1));
  reader.onerror = () => failed(reader.error);
  reader.readAsDataURL(blob);
});

// Return a small file unchanged and a large image reduced to SIDE pixels. A file that the browser cannot read is sent
// unchanged, so that Python can explain the problem, unless it is too large; then the result is null.
async function smaller(file) {
  const picture = await createImageBitmap(file).catch(() => null);
  if (!picture) return file.size <= LARGEST ? file : null;
  const scale = Math.min(1, SIDE / Math.max(picture.width, picture.height));
  if (scale === 1 && file.size <= HEAVY) return file;
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(picture.width * scale));
  canvas.height = Math.max(1, Math.round(picture.height * scale));
  const brush = canvas.getContext("2d");
  brush.imageSmoothingQuality = "high";
  brush.drawImage(picture, 0, 0, canvas.width, canvas.height);
  picture.close();
  return new Promise((done) => { canvas.toBlob((blob) => done(blob ?? file), "image/webp", 0.95); });
}

class Box {
  constructor(root) {
    this.root = root;
    this.status = root.querySelector("[role=status]");
    this.input = root.querySelector("input");
    root.querySelector("button").onclick = () => this.input.click();
    this.input.onchange = () => { this.take([...this.input.files]); this.input.value = ""; };
    root.onkeydown = (event) => event.stopPropagation(); // Streamlit binds single keys on the document
    root.ondragover = (event) => { event.preventDefault(); root.classList.add("over"); };
    root.ondragleave = () => root.classList.remove("over");
    root.ondrop = (event) => { root.classList.remove("over"); this.accept(event, event.dataTransfer); };
    this.onPaste = (event) => {
      const [target, ...above] = event.composedPath();
      const inText = target.matches?.("input, textarea, [contenteditable]");
      if (above.includes(root) || target === root) this.accept(event, event.clipboardData);
      else if (!inText && event.clipboardData?.files.length) this.accept(event, event.clipboardData);
    };
    document.addEventListener("paste", this.onPaste);
  }

  accept(event, transfer) {
    event.preventDefault();
    const files = [...(transfer?.files ?? [])];
    if (files.length) this.take(files);
    else this.status.textContent = "This is text or a link, not an image: copy the image itself.";
  }

  async take(files) {
    const accepted = files.slice(0, this.most);
    this.status.textContent = `Reading ${accepted.length === 1 ? "an image" : `${accepted.length} images`} …`;
    const brought = [];
    let problems = files.length > this.most ? `Only the first ${this.most} images were added. ` : "";
    for (const file of accepted) {
      const data = await smaller(file).then((blob) => blob && inBase64(blob)).catch(() => null);
      if (data) brought.push({ name: file.name, data });
      else problems += `${file.name} could not be read. Save it as JPEG or PNG. `;
    }
    this.status.textContent = problems;
    if (brought.length) this.answers.setTriggerValue("brought", brought);
  }

  update({ most }, answers) {
    this.most = most;
    this.answers = answers;
    this.root.dataset.ready = "";
  }

  end() {
    document.removeEventListener("paste", this.onPaste);
  }
}

export default function paste({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".box");
  root.box ??= new Box(root);
  const { box } = root;
  box.update(data, { setTriggerValue });
  return endLater(root, "box");
}
