// What the browser keeps: {reader: id, lessons: {id: {before: choice | "skipped", after: choice, isTried: whether the reader changed the picture, decided: [name], state: what the reader decided, by field}}, last: id of the lesson with the last answer, isCounted: whether the class counts them}.
const COURSE_KEY = "udml-course";
function readCourse() {
  try {
    const course = JSON.parse(localStorage.getItem(COURSE_KEY));
    if (course?.lessons && course.reader) return course;
  } catch { /* no storage, or foreign content */ }
  return { reader: Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, "0")).join(""),
    lessons: {} };
}
function keepCourse(course) {
  try { localStorage.setItem(COURSE_KEY, JSON.stringify(course)); } catch { /* progress then lasts as long as the page */ }
}

// The name of this browser's reader, which the browser keeps from now on.
function keptReader() {
  const course = readCourse();
  keepCourse(course);
  return course.reader;
}

// Tell the app the name of the reader once: it credits the runs that this browser starts. `root` outlives a call.
function tellReader(root, data, setTriggerValue) {
  root.reader ??= keptReader();
  if (data.reader !== root.reader) setTriggerValue("reader", root.reader);
}
