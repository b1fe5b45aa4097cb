// The path through the lessons, with the progress that this browser keeps.
// header: {course: [{id, title, minutes, href, right, pictures: [light, dark]}], heading, guide, solved: [id]}; answers: triggers "go" id, "uncounted" reader
function drawCourse(root, header, go, uncount) {
  const { heading, solved = [] } = header;
  const { course, guide } = localized({ course: header.course, guide: header.guide });
  const { lessons: kept, last } = readCourse();
  const isDone = ({ id, right }) => kept[id]?.after === right;
  const isBegun = ({ id }) => kept[id]?.before !== undefined;
  const finished = course.filter(isDone);
  const done = finished.length;
  const open = course.filter((lesson) => !isDone(lesson));
  const lastDone = course.indexOf(finished.find(({ id }) => id === last) ?? finished.at(-1));
  const next = open.find(isBegun) ?? open.find((lesson) => course.indexOf(lesson) > lastDone) ?? open[0] ?? course[0];
  const stepOf = ({ id }) => (kept[id].isTried ? 3 : 2); // 1: predict, 2: try, 3: check yourself
  const invitation = isBegun(next) && open.length ? say("Continue with lesson {number}, step {step} of 3: {title}", { number: course.indexOf(next) + 1, step: stepOf(next), title: next.title })
    : done ? say("Continue: {title}", next) : say("Begin: {title}", next);
  const [red, green, blue] = getComputedStyle(root).color.match(/[\d.]+/g).map(Number);
  const isDark = red + green + blue > 3 * 128; // light letters stand on a dark page
  const minutes = course.reduce((sum, lesson) => sum + lesson.minutes, 0);
  const link = ({ id, href }, ...children) => element("a", { href: inLanguage(href), onclick: (event) => {
    if (!go || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(id);
  } }, ...children);
  nameLanguage(root, heading && say("Learn metric learning"));
  root.replaceChildren(
    ...(heading ? [element("h1", {}, say("Learn metric learning"))] : []),
    languageLinks(),
    element("div", { class: "status" },
      element("span", {}, say("{count} lessons, {minutes} minutes in all. {done} of {count} finished.", { count: course.length, minutes, done })),
      element("progress", { value: done, max: course.length, "aria-label": say("Finished lessons") }),
      element("span", { class: "next" }, link(next, invitation)),
      ...(Object.keys(kept).length || solved.length ? [...linkButton(say("Copy link with my answers"), () => {
        const course = readCourse();
        keepCourse(course); // a reader keeps one name
        return linkOfAnswers(course, solved);
      }), element("button", { type: "button", class: "plain", onclick: () => {
        keepCourse({ ...readCourse(), lessons: {} });
        drawCourse(root, header, go, uncount);
      } }, say("Forget my progress"))] : [])),
    element("ol", { class: "path" }, course.map((lesson, index) => element("li", {}, link(lesson,
      ...(lesson.pictures?.length ? [element("img", { src: lesson.pictures[isDark ? 1 : 0], alt: "" })] : []),
      element("span", { class: "number" }, String(index + 1)), element("b", {}, lesson.title),
      element("small", {}, isDone(lesson) ? element("span", { class: "mark" }, say("✓ finished")) : isBegun(lesson) ? say("begun") : say("{minutes} min", lesson),
        ...(solved.includes(lesson.id) ? [element("span", { class: "mark" }, ` ${say("✓ task")}`)] : [])),
      element("p", {}, guide.lessons.find(({ lesson: id }) => id === lesson.id)?.words ?? ""))))),
    element("div", { class: "status" }, uncount ? countBox(uncount) : null,
      element("small", {}, say("Begun: you answered or skipped the prediction. Finished: you answered “Check yourself” correctly."))),
    ...(heading ? [programPart()] : []),
    ...guideParts(guide, (id, words) => link(course.find((lesson) => lesson.id === id), words), Object.fromEntries(course.map(({ id, title }) => [id, title]))));
}

// How to get the program, for readers of exported files.
function programPart() {
  return element("details", { class: "guide", id: "program", open: location.hash === "#program" }, element("summary", {}, say("Get UDML Explorer")),
    element("p", {}, say("UDML Explorer is a program for your own computer, with Python {version} or newer. In the folder of its source code, these commands install it and open it on your images. Your teacher may also know an address at which it runs.", { version: "3.11" })),
    element("pre", {}, "pip install .\nudml app FOLDER"));
}

// Only the answers of a reader who agrees are counted in the class summary.
function countBox(uncount) {
  const input = element("input", { type: "checkbox", checked: Boolean(readCourse().isCounted), onchange: () => {
    const course = { ...readCourse(), isCounted: input.checked };
    keepCourse(course);
    if (!input.checked) uncount(course.reader);
  } });
  return element("label", {}, input, ` ${say("Count my next answers in the class summary, without my name")}`);
}

// Show the course, and draw it again when another tab finishes a lesson.
function showCourse(root, header, go, uncount = null) {
  drawCourse(root, header, go, uncount);
  root.watch ??= window.addEventListener("storage", ({ key }) => {
    if (key === COURSE_KEY && root.isConnected) drawCourse(root, header, go, uncount);
  }) ?? true;
}

function mountCourse({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".course");
  tellReader(root, data, setTriggerValue);
  if (data.language !== LANGUAGE) setTriggerValue("language", LANGUAGE); // the words around the cards follow
  showCourse(root, data, (id) => setTriggerValue("go", id), (reader) => setTriggerValue("uncounted", reader));
}
