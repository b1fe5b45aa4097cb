// A box that takes images: pasted anywhere on the page, dropped, or chosen as files. What is large is made smaller here.
// data: {most}; answers: trigger "brought" [{name, data: base64}].
const SIDE = 1024; // longest side that is sent
const HEAVY = 1.5e6; // bytes above which a file is compressed anew
const LARGEST = 2e7; // bytes above which a file that the browser cannot read is not sent

const inBase64 = (blob) => new Promise((done, failed) => {
  const reader = new FileReader();
  reader.onload = () => done(reader.result.slice(reader.result.indexOf(",") + 1));
  reader.onerror = () => failed(reader.error);
  reader.readAsDataURL(blob);
});

// The file itself where it is small; else the picture at most 1024 px long. What the browser cannot read goes as it is,
// so that Python says what is wrong with it, unless it is too large for that.
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
    this.said = root.querySelector("[role=status]");
    this.input = root.querySelector("input");
    root.querySelector("button").onclick = () => this.input.click();
    this.input.onchange = () => { this.take([...this.input.files]); this.input.value = ""; };
    root.onkeydown = (event) => event.stopPropagation(); // Streamlit binds single keys on the document
    root.ondragover = (event) => { event.preventDefault(); root.classList.add("over"); };
    root.ondragleave = () => root.classList.remove("over");
    root.ondrop = (event) => { root.classList.remove("over"); this.given(event, event.dataTransfer); };
    this.onPaste = (event) => {
      const [target, ...above] = event.composedPath();
      const inText = target.matches?.("input, textarea, [contenteditable]");
      if (above.includes(root) || target === root) this.given(event, event.clipboardData);
      else if (!inText && event.clipboardData?.files.length) this.given(event, event.clipboardData);
    };
    document.addEventListener("paste", this.onPaste);
  }

  given(event, transfer) {
    event.preventDefault();
    const files = [...(transfer?.files ?? [])];
    if (files.length) this.take(files);
    else this.said.textContent = "That is no image but a text or a link: copy the image itself.";
  }

  async take(files) {
    const taken = files.slice(0, this.most);
    this.said.textContent = `Reading ${taken.length === 1 ? "an image" : `${taken.length} images`} …`;
    const brought = [];
    let untaken = files.length > this.most ? `Only the first ${this.most} images were taken. ` : "";
    for (const file of taken) {
      const data = await smaller(file).then((blob) => blob && inBase64(blob)).catch(() => null);
      if (data) brought.push({ name: file.name, data });
      else untaken += `${file.name} cannot be read here: save it as JPEG or PNG. `;
    }
    this.said.textContent = untaken;
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
  return () => setTimeout(() => { if (!root.isConnected) { box.end(); root.box = null; } }, 1000);
}
