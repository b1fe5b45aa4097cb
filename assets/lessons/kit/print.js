// What a lesson prints: a summary, a handout with exercises that gives no answer away, and the teacher's notes with all answers.
const PRINT_STYLE = `:root { --paper: #fff; --text: #000; --edge: #999; } @page { margin: 0; }
  body { font: var(--letters, 10.5pt)/1.3 system-ui, sans-serif; color: #000; margin: 0; } h1 { font-size: 16pt; margin: 0; }
  h2 { font-size: 1.1em; margin: 7pt 0 1pt; break-after: avoid; } p, ul { margin: 2pt 0; } li { margin: 1pt 0; } section { break-inside: avoid; display: flow-root; }
  svg, img { max-height: var(--high, 7.5cm); max-width: 100%; } svg { overflow: visible; } svg svg { overflow: hidden; } svg { display: block; margin: auto; }   .sheet { font-size: 9.5pt; color: #333; } .legend { font-size: 0.95em; color: #333; } .page { box-sizing: border-box; padding: 10mm; } .page + .page { break-before: page; }
  .class-legend span + span { margin-left: 12pt; } .tiles { display: flex; flex-wrap: wrap; gap: 4px; } .tile { text-align: center; }
  .picture :is(b, small, span, div, button, p, th, td, summary) { font-size: calc(9.5pt / var(--share, 1)) !important; }
  .picture { zoom: var(--share, 1); width: var(--picture, 18cm); } .beside .picture { float: right; margin-left: 14pt; } [hidden], :is(.formulas, .picture) details, button:not(:has(img)) { display: none; }
  button { border: 1px solid #999; background: none; padding: 2px; } img, button > * { display: block; } button img { margin: auto; }
  .beside .formulas { display: block; } /* its lines go on below the picture */
  .lines { height: 0.8cm; margin-top: 0.7cm; border: solid #999; border-width: 1px 0; } .line { height: 0.8cm; border-bottom: 1px solid #999; }
  table { border-collapse: collapse; width: 100%; font-size: 0.905em; } th, td { border: 1px solid #999; padding: 2pt 5pt; text-align: left; height: 0.75cm; font-weight: 400; }
  math { font-family: "Cambria Math", "STIX Two Math", "Latin Modern Math", "Libertinus Math", "DejaVu Math TeX Gyre", math, serif; font-size: 1.1em; } mfrac > * { padding-block: 0.12em; }
  .name ~ section { clear: both; } /* the line for the name stands beside the title alone */
  .boxes { display: flex; flex-wrap: wrap; gap: 0 16pt; padding: 0; list-style: none; } .boxes li::before { content: "□ "; } .name { float: right; }`;
const PAPER = [210, 272]; // mm with the margins of 10 mm, which a page has itself: in margins of the sheet a browser writes its address
const MM = 96 / 25.4; // pixels of a millimeter
const PICTURES = [[1, false], [0.85, false], [0.7, false], [0.62, true], [0.7, true]]; // shares, and whether text stands beside it: the largest picture with which its sheet holds all
const LEAST_DRAWN = 0.7; // share of a picture with drawn letters, which grow small with it
const HIGHEST = [13, 11, 9, 7.5]; // cm of a drawing: the highest with which its sheet holds all
const LARGER = [13, 12.5, 12, 11.5, 11]; // points of the letters: the largest with which the sheet holds all
const PRINTED_LETTERS = 20.5; // of a picture of 640 pixels: at least 9 points on the smallest
const NARROW_PICTURE = 0.65; // of its width
const SMALLEST = 0.7; // share of the letters, which no lesson needs in a language of the course
const WRITTEN_ROWS = 2;
const MORE_LINES = 3; // for each explanation of a handout
const OWN_COMPUTER = /^(localhost|127\..*|\[::1\])$/; // an address that no other computer reaches

// What a picture's signs mean, of which only those on the picture are printed.
const SIGNS = [["★", say("the query or the chosen image")], ["✓", say("a hit, or a neighbor that is kept")], ["✕", say("a miss, a mistake, or a neighbor that is lost")]];

// Which lesson and sheet, when, and where it stands; a file on a disk and the own computer have no address.
function sheetLine({ lesson, header }, page = 1, pages = 1) {
  const number = header.course.findIndex(({ id }) => id === lesson.id) + 1;
  const isReached = location.protocol.startsWith("http") && !OWN_COMPUTER.test(location.hostname);
  const address = isReached ? location.href.split("#")[0] : "";
  return `<p class="sheet">${[say("Lesson {number} of {count}: {title}", { number, count: header.course.length, title: lesson.title }), say("page {page} of {pages}", { page, pages }), new Intl.DateTimeFormat(LANGUAGE, { year: "numeric", month: "2-digit", day: "2-digit" }).format(new Date()),
    address.replace(/&/g, "&amp;").replace(/</g, "&lt;")].filter(Boolean).join(" · ")}</p>`;
}

// What is made while the picture has letters for paper.
function withLargeLetters(frame, make) {
  frame.isPrinting = true;
  frame.stage.style.setProperty("--least", PRINTED_LETTERS);
  frame.drawStage();
  const made = make(frame);
  frame.stage.style.removeProperty("--least");
  frame.drawStage();
  frame.isPrinting = false;
  return made;
}

// What is made while the lesson is in another state, for this moment only.
function madeIn(frame, state, make) {
  const shown = frame.state;
  frame.state = { ...structuredClone(frame.start), ...state };
  const made = withLargeLetters(frame, make);
  frame.state = shown;
  frame.update();
  return made;
}

// The picture as it stands with its caption, and with images in place of its canvases. A handout leaves out what gives the answer away.
function printedPicture({ stage, lesson, state, widgets }, isHandout = false) {
  const picture = stage.cloneNode(true);
  picture.removeAttribute("style");
  const drawn = [...stage.querySelectorAll("canvas")];
  [...picture.querySelectorAll("canvas")].forEach((canvas, index) => {
    const isEmpty = isHandout && canvas.classList.contains("to-draw"); // a frame for what the student finds
    const image = element("img", { src: (isEmpty ? element("canvas", { width: 1, height: 1 }) : drawn[index]).toDataURL(), alt: "" });
    if (isEmpty) image.style.border = "1px solid #999";
    image.style.width = `${drawn[index].clientWidth / (stage.clientWidth || 1) * 17}cm`; // the stage is as wide as the paper
    image.style.aspectRatio = `${drawn[index].clientWidth || 1} / ${drawn[index].clientHeight || 1}`; // known before it is decoded
    canvas.replaceWith(image);
  });
  for (const part of picture.querySelectorAll(isHandout ? ".later, .at-part, .unprinted" : ".at-part, .unprinted")) part.remove(); // a sheet has a caption of its own
  const signs = (lesson.signs ?? SIGNS).filter(([sign]) => picture.textContent.includes(sign)).map((parts) => parts.join(" "));
  const caption = isHandout ? [] : (lesson.caption ?? []).map((at) => sentencesOf(lesson.see)[at]); // it could give an answer away
  const settings = isHandout ? [] : lesson.controls.map(({ name, label }) => `${label}: ${widgets[name].words(state[name])}`);
  return `<div class="picture">${picture.outerHTML}${settings.length ? `<p class="legend settings">${settings.join(" · ")}</p>` : ""}${caption.length ? `<p class="legend caption">${caption.join(" ")}</p>` : ""}${signs.length ? `<p class="legend">${signs.join(" · ")}</p>` : ""}</div>`;
}

// One page: the picture, the takeaway, which may stand beside it, the formula and when it fails. In place of the untouched start, of the case that an answer showed, and of a state
// in which the picture lacks what the text explains, it shows the lesson's own case.
function summaryToPrint(frame) {
  const { lesson, state, start, root, data } = frame;
  const isUntouched = [start, ...(lesson.summary ? [{ ...start, ...lesson.before.shows }] : [])].some((other) => JSON.stringify(state) === JSON.stringify(other));
  const isTelling = lesson.isTelling?.(lesson.compute(state, data)) ?? true;
  const isLocked = root.classList.contains("locked");
  root.classList.remove("locked"); // a summary gives the answer, so no part of its picture waits for it
  const made = isUntouched || !isTelling ? madeIn(frame, lesson.summary ?? lesson.before.shows, summaryOf) : withLargeLetters(frame, summaryOf);
  root.classList.toggle("locked", isLocked);
  return made;
}

// The formulas of the lesson's other cases, such as its second bound.
function otherFormulas({ lesson, state, data }) {
  const cases = (lesson.cases ?? []).map((changed) => ({ ...state, ...changed })).filter((other) => JSON.stringify(other) !== JSON.stringify(state));
  const box = markup("div", cases.map((other) => lesson.formula(other, lesson.compute(other, data), data)).join(""));
  for (const part of box.querySelectorAll(".of-picture, .of-all")) part.remove(); // the picture shows another case, whose formula says what all have
  layFormulas(box);
  return box.innerHTML;
}

function summaryOf(frame) {
  const { lesson, formula } = frame;
  return `<div class="page">${sheetLine(frame)}<h1>${lesson.title}</h1><p><b>${lesson.claim}</b></p>${printedPicture(frame)}
    <h2>${say("Takeaway")}</h2><p>${lesson.takeaway}</p>
    <section class="formulas"><h2>${say("Formula")}</h2>${formula.innerHTML}${otherFormulas(frame)}</section><h2>${say("When it fails")}</h2><p>${lesson.fails}</p></div>`;
}

// Exercises with room to write, on two sheets: what to try, and what to write. The questions of the lesson are asked again; no answer is printed, and the picture is untouched, or in a state that gives none away.
const handoutToPrint = (frame) => madeIn(frame, frame.lesson.states?.handout ?? {}, handoutOf);

function handoutOf(frame) {
  const { lesson, readout, header: { guide }, english } = frame;
  const own = guide.lessons.find(({ lesson: id }) => id === lesson.id);
  const lines = '<div class="lines"></div>';
  const boxes = ({ choices, order }) => `<ul class="boxes">${inOrder(choices, order).map((words) => `<li>${words}</li>`).join("")}</ul>`;
  const read = [...readout.querySelectorAll("dt")].map(({ textContent }) => textContent);
  const columns = own?.columns?.map(({ label }) => label) ?? [...lesson.controls.map(({ label }) => label), ...read];
  const defined = (own?.define ?? []).map((name) => guide.terms[english.terms.findIndex(({ term }) => term === name)]);
  const meanings = defined.map(({ term, meaning }) => `<p class="legend"><b>${term}</b>: ${meaning}</p>`).join("");
  const explained = own?.explain ? `${meanings}<p class="legend step">${own.explain.map((at) => sentencesOf(lesson.see)[at]).join(" ")}</p>` : ""; // what stands on the picture
  const cells = (tag, words) => words.map((word) => `<${tag}>${word}</${tag}>`).join("");
  const emptyRow = `<tr>${cells("td", columns.map(() => ""))}</tr>`;
  const rows = own?.cases?.map(({ label, barred }) => `<tr>${cells("td", columns.map((_column, at) => (at === 0 ? label : barred.includes(at) ? "—" : "")))}</tr>`) // cases to try, without the cells that have no number
    ?? new Array(own?.rows ?? WRITTEN_ROWS).fill(emptyRow);
  const exercises = [[say("Predict"), `<p>${lesson.before.text}</p>${boxes(lesson.before)}<p>${say("Why do you think so?")}</p>${lines}`],
    [say("Try"), `${explained}${printedPicture(frame, true)}${own?.draw ? `<p>${own.draw.text}</p>` : ""}<p><b>${say("On the screen")}:</b> ${lesson.touch}</p>`],
    [own?.rows || own?.cases ? say("Write down your settings and what you read") : say("Write down two settings and what you read"),
      `<table><tr>${cells("th", columns)}</tr>${rows.join("")}</table>${explained ? "" : meanings}`],
    [say("Explain"), `<p>${own?.text ?? say("What changed between the two rows, and why?")} ${say("Was your prediction right?")}</p>${lines}`],
    [say("Discuss"), `<p>${lesson.notes.ask}</p>${lines}`],
    [say("Check yourself"), `<p>${lesson.after.text}</p>${boxes(lesson.after)}`]];
  const sections = exercises.map(([title, content], at) => `<section><h2>${at + 1}. ${title}</h2>${content}</section>`);
  return `<div class="page">${sheetLine(frame, 1, 2)}<p class="name">${say("Name")}: ______________________</p><h1>${lesson.title}</h1>${sections.slice(0, 2).join("")}</div>
    <div class="page">${sheetLine(frame, 2, 2)}${sections.slice(2).join("")}</div>`;
}

// For the teacher alone: the answers, and what students get wrong.
function notesToPrint(frame) {
  const { lesson } = frame;
  const answer = (name, { text, choices, right, because }) => `<h2>${name}</h2><p>${text}</p><p><b>✓ ${choices[right]}.</b> ${because}</p>`;
  const { ask, wrong, stuck } = lesson.notes;
  return `<div class="page">${sheetLine(frame)}<h1>${say("{title}: teacher notes", lesson)}</h1><p>${say("{minutes} minutes.", lesson)} ${lesson.claim}</p>${answer(say("Prediction"), lesson.before)}
    <h2>${say("Ask")}</h2><p>${ask}</p><h2>${say("Common wrong answer")}</h2><p>${wrong}</p><h2>${say("Where students get stuck")}</h2><p>${stuck}</p>
    <h2>${say("When it fails")}</h2><p>${lesson.fails}</p>${answer(say("Check yourself"), lesson.after)}</div>`;
}

// Make a summary's picture as narrow as what it shows, so that text stands beside it: say whether it takes less than most of the width.
function narrow(body) {
  const picture = body.querySelector(".page:only-child > .picture");
  if (!picture) return false;
  const edges = [...picture.querySelectorAll("img, svg")].map((part) => part.getBoundingClientRect().right);
  const width = Math.max(...edges) - picture.getBoundingClientRect().left + 6;
  if (width > NARROW_PICTURE * picture.clientWidth) return false;
  body.parentElement.style.setProperty("--picture", `${Math.ceil(width)}px`);
  body.classList.add("beside");
  return true;
}

// Make each page so small that one sheet holds it: first the picture, then everything.
function fitPaper(page) {
  const { documentElement: root, body } = page;
  const isWithin = () => [...body.querySelectorAll(".page")].every((part) => part.getBoundingClientRect().height <= PAPER[1] * MM);
  body.style.width = `${PAPER[0]}mm`;
  const isNarrow = narrow(body);
  HIGHEST.find((high) => {
    root.style.setProperty("--high", `${high}cm`);
    return isWithin();
  });
  const isDrawn = body.querySelector(".picture svg") !== null;
  const picture = PICTURES.find(([share, isBeside]) => {
    if (isDrawn && share < LEAST_DRAWN) return false;
    root.style.setProperty("--share", share);
    body.classList.toggle("beside", isNarrow || isBeside);
    return isWithin();
  });
  LARGER.find((size) => {
    root.style.setProperty("--letters", `${size}pt`);
    return isWithin();
  }) ?? root.style.removeProperty("--letters");
  for (let share = 1; !picture && share >= SMALLEST && !isWithin(); share -= 0.03) {
    body.style.zoom = share;
    body.style.width = `${PAPER[0] / share}mm`;
  }
  addLines(body, isWithin);
}

// More lines to write on, the same number for each explanation of a page, as long as its sheet holds them.
function addLines(body, isWithin) {
  for (const page of body.querySelectorAll(".page")) {
    for (let count = 0; count < MORE_LINES; count += 1) {
      const added = [...page.querySelectorAll(".lines")].map((lines) => {
        const line = element("div", { class: "line" });
        lines.after(line);
        return line;
      });
      if (isWithin()) continue;
      for (const line of added) line.remove();
      break;
    }
  }
}

// Print HTML that a lesson's author wrote, from a frame of its own.
function printPage(root, body) {
  const frame = element("iframe", { class: "printed", title: say("Page to print") });
  root.append(frame);
  const page = frame.contentDocument;
  page.documentElement.lang = LANGUAGE;
  page.head.append(element("style", {}, PRINT_STYLE));
  page.body.innerHTML = body;
  page.title = page.querySelector("h1").textContent;
  fitPaper(page);
  frame.contentWindow.addEventListener("afterprint", () => frame.remove());
  frame.contentWindow.print();
}
