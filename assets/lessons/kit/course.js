// The path through the lessons, with the progress that this browser keeps.
// header: {course: [{id, title, claim, minutes, href, pictures: [light, dark]}], heading, guide, solved: [id]}; answers: trigger "go" id
function drawCourse(root, header, go) {
  const { course, heading, guide, solved = [] } = header;
  const kept = readCourse().lessons;
  const isDone = ({ id }) => typeof kept[id]?.after === "number";
  const isBegun = ({ id }) => kept[id]?.before !== undefined;
  const done = course.filter(isDone).length;
  const next = course.find((lesson) => !isDone(lesson)) ?? course[0];
  const [red, green, blue] = getComputedStyle(root).color.match(/[\d.]+/g).map(Number);
  const isDark = red + green + blue > 3 * 128; // light letters stand on a dark page
  const minutes = course.reduce((sum, lesson) => sum + lesson.minutes, 0);
  const link = ({ id, href }, ...children) => element("a", { href, onclick: (event) => {
    if (!go || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(id);
  } }, ...children);
  root.replaceChildren(
    ...(heading ? [element("h1", {}, "Learn metric learning")] : []),
    element("div", { class: "status" },
      element("span", {}, `${course.length} lessons, ${minutes} minutes in all. ${done} of ${course.length} finished.`),
      element("progress", { value: done, max: course.length, "aria-label": "Finished lessons" }),
      link(next, done ? `Continue: ${next.title}` : `Begin: ${next.title}`),
      ...(Object.keys(kept).length || solved.length ? [...linkButton("Copy link with my answers", () => {
        const course = readCourse();
        keepCourse(course); // a reader keeps one name
        return linkOfAnswers(course, solved);
      }), element("button", { type: "button", class: "plain", onclick: () => {
        keepCourse({ ...readCourse(), lessons: {} });
        drawCourse(root, header, go);
      } }, "Forget my progress")] : [])),
    element("ol", { class: "path" }, course.map((lesson, index) => element("li", {}, link(lesson,
      ...(lesson.pictures?.length ? [element("img", { src: lesson.pictures[isDark ? 1 : 0], alt: "" })] : []),
      element("span", { class: "number" }, String(index + 1)), element("b", {}, lesson.title),
      element("small", {}, isDone(lesson) ? element("span", { class: "mark" }, "✓ finished") : isBegun(lesson) ? "begun" : `${lesson.minutes} min`,
        ...(solved.includes(lesson.id) ? [element("span", { class: "mark" }, " ✓ task")] : [])),
      element("p", {}, lesson.claim))))),
    ...guideParts(guide, (id, words) => link(course.find((lesson) => lesson.id === id), words), Object.fromEntries(course.map(({ id, title }) => [id, title]))));
}

// Show the course, and draw it again when another tab finishes a lesson.
function showCourse(root, header, go) {
  drawCourse(root, header, go);
  root.watch ??= window.addEventListener("storage", ({ key }) => {
    if (key === COURSE_KEY && root.isConnected) drawCourse(root, header, go);
  }) ?? true;
}

function mountCourse({ data, parentElement, setTriggerValue }) {
  showCourse(parentElement.querySelector(".course"), data, (id) => setTriggerValue("go", id));
}
