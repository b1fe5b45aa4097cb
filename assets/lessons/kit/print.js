// What a lesson prints: a summary, a handout with exercises that gives no answer away, and the teacher's notes with all answers.
const PRINT_STYLE = `body { font: 11pt system-ui, sans-serif; color: #000; } h1 { font-size: 16pt; margin: 0; }
  h2 { font-size: 12pt; margin: 10pt 0 2pt; break-after: avoid; } p { margin: 2pt 0; } li { margin: 2pt 0; }
  svg, img { max-height: 8cm; max-width: 100%; } [hidden], button:not(:has(img)) { display: none; }
  button { border: 1px solid #999; background: none; padding: 2px; font-size: 8pt; } img, button > * { display: block; } button img { margin: auto; }
  .lines { height: 1.4cm; margin-top: 0.7cm; border: solid #999; border-width: 1px 0; }
  table { border-collapse: collapse; width: 100%; table-layout: fixed; font-size: 9pt; } th, td { border: 1px solid #999; padding: 3pt 6pt; text-align: left; overflow-wrap: anywhere; height: 0.8cm; font-weight: 400; }
  .boxes { list-style: "□  "; } .name { float: right; }`;
const WRITTEN_ROWS = 2;

// The picture as it stands, with images in place of its canvases.
function printedPicture(stage) {
  const picture = stage.cloneNode(true);
  picture.removeAttribute("style");
  const drawn = [...stage.querySelectorAll("canvas")];
  [...picture.querySelectorAll("canvas")].forEach((canvas, index) => {
    const image = element("img", { src: drawn[index].toDataURL(), alt: "" });
    image.style.width = `${drawn[index].clientWidth / (stage.clientWidth || 1) * 17}cm`; // the stage is as wide as the paper
    canvas.replaceWith(image);
  });
  return picture.outerHTML;
}

// One page: the current picture, the formula, the failure and the takeaway.
function summaryToPrint({ lesson, stage, formula }) {
  return `<h1>${lesson.title}</h1><p><b>${lesson.claim}</b></p>${printedPicture(stage)}
    <h2>${say("Formula")}</h2>${formula.innerHTML}<h2>${say("When it fails")}</h2><p>${lesson.fails}</p><h2>${say("Takeaway")}</h2><p>${lesson.takeaway}</p>`;
}

// Exercises with room to write. The questions of the lesson are asked again; no answer is printed.
function handoutToPrint({ lesson, stage, readout }) {
  const lines = '<div class="lines"></div>';
  const boxes = ({ choices }) => `<ul class="boxes">${choices.map((words) => `<li>${words}</li>`).join("")}</ul>`;
  const names = [...readout.querySelectorAll("dt")].map(({ textContent }) => textContent);
  const settings = lesson.controls.map(({ label }) => label);
  const cells = (tag, words) => words.map((word) => `<${tag}>${word}</${tag}>`).join("");
  return `<p class="name">${say("Name")}: ______________________</p><h1>${lesson.title}</h1>
    <h2>1. ${say("Predict")}</h2><p>${lesson.before.text}</p>${boxes(lesson.before)}<p>${say("Why do you think so?")}</p>${lines}
    <h2>2. ${say("Try")}</h2><p>${lesson.touch}</p>${printedPicture(stage)}
    <h2>3. ${say("Write down two settings and what you read")}</h2>
    <table><tr>${cells("th", [...settings, ...names])}</tr>${`<tr>${cells("td", [...settings, ...names].map(() => ""))}</tr>`.repeat(WRITTEN_ROWS)}</table>
    <h2>4. ${say("Explain")}</h2><p>${say("What changed between the two rows, and why? Was your prediction right?")}</p>${lines}
    <h2>5. ${say("Discuss")}</h2><p>${lesson.notes.ask}</p>${lines}
    <h2>6. ${say("Check yourself")}</h2><p>${lesson.after.text}</p>${boxes(lesson.after)}`;
}

// For the teacher alone: the answers, and what students get wrong.
function notesToPrint({ lesson }) {
  const answer = (name, { text, choices, right, because }) => `<h2>${name}</h2><p>${text}</p><p><b>✓ ${choices[right]}.</b> ${because}</p>`;
  const { ask, wrong, stuck } = lesson.notes;
  return `<h1>${say("{title}: teacher notes", lesson)}</h1><p>${say("{minutes} minutes.", lesson)} ${lesson.claim}</p>${answer(say("Prediction"), lesson.before)}
    <h2>${say("Ask")}</h2><p>${ask}</p><h2>${say("Common wrong answer")}</h2><p>${wrong}</p><h2>${say("Where students get stuck")}</h2><p>${stuck}</p>
    <h2>${say("When it fails")}</h2><p>${lesson.fails}</p>${answer(say("Check yourself"), lesson.after)}`;
}

// Print HTML that a lesson's author wrote, from a frame of its own.
function printPage(root, body) {
  const frame = element("iframe", { class: "printed", title: say("Page to print") });
  root.append(frame);
  const page = frame.contentDocument;
  page.documentElement.lang = LANGUAGE;
  page.body.innerHTML = body;
  page.head.append(element("style", {}, PRINT_STYLE));
  frame.contentWindow.addEventListener("afterprint", () => frame.remove());
  frame.contentWindow.print();
}
