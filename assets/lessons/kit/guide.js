// The course's guide: what students need, plans for a class, and the glossary. {prerequisites, needs,
// lessons: [{lesson: id, words on its card, text of its handout's question, columns of its handout: [{label}]}], plans, terms}

// Terms that a text uses, as whole words.
function termsIn(text, terms) {
  return terms.filter(({ term }) => new RegExp(`(^|[^\\p{L}])${term}s?($|[^\\p{L}])`, "iu").test(text));
}

// A list of terms in the order of the language; `link(id, words)` leads to a lesson.
function termList(terms, link, titles) {
  const sorted = terms.toSorted((one, other) => one.term.localeCompare(other.term, LANGUAGE));
  return element("dl", { class: "terms" }, sorted.flatMap(({ term, meaning, lesson }) => [element("dt", {}, term),
    element("dd", {}, `${meaning} `, ...(titles[lesson] ? [link(lesson, titles[lesson])] : []))]));
}

// What stands below the cards of the course.
function guideParts({ prerequisites, plans, terms }, link, titles) {
  const plan = ({ minutes, title, steps }) => element("section", {}, element("h2", {}, say("{minutes} minutes: {title}", { minutes, title })),
    element("ol", {}, steps.map((step) => element("li", {}, `${say("{minutes} min", step)}: `,
      ...(step.lesson ? [link(step.lesson, titles[step.lesson]), /[?!]$/.test(titles[step.lesson]) ? " " : ". "] : []), step.words))));
  return [
    element("details", { class: "guide" }, element("summary", {}, say("Plans for 45 and 90 minutes and for five weeks, and what students need")),
      element("p", {}, prerequisites), element("p", {}, say("The plans for 45 and 90 minutes leave out the lessons that no other lesson needs, such as 3 and 14. The plan for five weeks has all of them. Each plan leaves at least five minutes of discussion for each lesson.")), plans.map(plan)),
    element("details", { class: "guide", id: "glossary", open: location.hash === "#glossary" },
      element("summary", {}, say("Glossary: {count} terms", { count: terms.length })), termList(terms, link, titles))];
}

// A button that copies a link, and shows it where a page may not copy.
function linkButton(words, make) {
  const shown = element("input", { type: "text", readonly: true, hidden: true, "aria-label": say("Link") });
  const button = element("button", { type: "button", class: "plain", onclick: async () => {
    shown.value = make();
    try {
      await navigator.clipboard.writeText(shown.value);
      button.textContent = say("Link copied");
    } catch {
      shown.hidden = false;
      shown.select();
    }
  } }, words);
  return [button, shown];
}

// The address of the course with a reader's answers: lesson.before.after, "-" where a question is open, then .1 if the task is solved.
function linkOfAnswers({ reader, lessons }, solved) {
  const choice = (value) => (typeof value === "number" ? value : "-");
  const answers = [...new Set([...Object.keys(lessons), ...solved])].map((id) =>
    `${id}.${choice(lessons[id]?.before)}.${choice(lessons[id]?.after)}${solved.includes(id) ? ".1" : ""}`);
  return `${location.href.split("#")[0]}#answers=${reader}:${answers.join(",")}`;
}
