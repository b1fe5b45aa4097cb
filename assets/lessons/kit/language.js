// The language of the course. A text stands in English where it is shown, and is its own key in the other languages.
// COURSE_TEXTS, which udml_core/results/lesson_texts.py writes before this file, is {fields: [name], english: [text], languages: {code: [translation]}}.
const LANGUAGE_KEY = "udml-language";
const LANGUAGES = ["en", ...Object.keys(COURSE_TEXTS.languages)];

// The language of the address, which the browser then keeps; else the kept one; else the first known one that the browser asks for.
const LANGUAGE = (() => {
  const isKnown = (code) => LANGUAGES.includes(code);
  const asked = new URLSearchParams(location.search).get("language");
  let kept = null;
  try {
    if (isKnown(asked)) localStorage.setItem(LANGUAGE_KEY, asked);
    kept = localStorage.getItem(LANGUAGE_KEY);
  } catch { /* no storage */ }
  return [asked, kept, ...navigator.languages.map((code) => code.split("-")[0])].find(isKnown) ?? "en";
})();

const TRANSLATED = new Map((COURSE_TEXTS.languages[LANGUAGE] ?? []).map((text, at) => [COURSE_TEXTS.english[at], text]));

// Numbers as the language writes them, with a true minus. They are rounded as toFixed and toPrecision round.
const THIN_SPACE = "\u202f"; // Spanish groups numbers of five digits and more by a space that breaks no line, and no others
const formatters = new Map(); // a formatter is slow to make
function formatted(value, kind, least, most) {
  const key = `${kind} ${least} ${most}`;
  if (!formatters.has(key)) {
    formatters.set(key, new Intl.NumberFormat(LANGUAGE, { signDisplay: "negative", [`minimum${kind}Digits`]: least, [`maximum${kind}Digits`]: most }));
  }
  const parts = formatters.get(key).formatToParts(value);
  return parts.map(({ type, value: words }) => (type === "group" && LANGUAGE === "es" ? THIN_SPACE : words)).join("").replace("-", "−");
}
const fixed = (value, digits) => formatted(Number(value.toFixed(digits)), "Fraction", digits, digits);
const significant = (value, digits) => formatted(value, "Significant", digits, digits);
const plain = (value) => formatted(value, "Significant", 1, 6);
const percent = (share, digits = 1) => `${fixed(100 * share, digits)}\u00a0%`;
// How many digits the values of a printed equation need so that the printed result follows from the printed values.
// kind: "toFixed" counts decimals, "toPrecision" significant digits
function digitsThatHold(values, calculate, digits, { least = digits, kind = "toFixed" } = {}) {
  const result = calculate(...values)[kind](digits);
  let count = least;
  while (count < 9 && calculate(...values.map((value) => Number(value[kind](count))))[kind](digits) !== result) count += 1;
  return count;
}
const LIST_SIGN = fixed(0.5, 1).includes(",") ? ";" : ","; // between numbers that have a comma themselves
const numberList = (numbers) => numbers.join(`${LIST_SIGN} `);

// A text in the language: say("{count} of {all}", {count, all}). Numbers are written as the language does, and stay on the line of their %.
function say(text, values = {}) {
  return (TRANSLATED.get(text) ?? text).replace(/(?<=[\d}]) %/g, "\u00a0%").replace(/\{(\w+)\}/g, (whole, name) => {
    if (!(name in values)) return whole;
    return typeof values[name] === "number" ? plain(values[name]) : values[name];
  });
}

// A copy of an object whose texts are in the language, at any depth: of a lesson, of its course or of its guide.
function localized(part, isText = false) {
  if (typeof part === "string") return isText ? say(part) : part;
  if (Array.isArray(part)) return part.map((inner) => localized(inner, isText));
  if (part?.constructor !== Object) return part;
  return Object.fromEntries(Object.entries(part).map(([name, inner]) => [name, localized(inner, COURSE_TEXTS.fields.includes(name))]));
}

// Name the language of the course, and of the whole page with its title where the page belongs to the course.
function nameLanguage(root, title) {
  root.lang = LANGUAGE;
  if (!title) return;
  document.documentElement.lang = LANGUAGE;
  document.title = title;
}

// An address of the course, which names the language if the address of this page does.
function inLanguage(href, language = new URLSearchParams(location.search).get("language") && LANGUAGE) {
  if (!language) return href;
  const address = new URL(href, location.href);
  address.searchParams.set("language", language);
  return address.href;
}

// Links to this page in the other languages. `keep` writes what is not in the address yet.
function languageLinks(keep = () => {}) {
  const nameOf = (code) => new Intl.DisplayNames(code, { type: "language" }).of(code).replace(/^./u, (letter) => letter.toLocaleUpperCase(code));
  return element("nav", { class: "languages", "aria-label": say("Language") }, LANGUAGES.map((code) => element("a", {
    href: inLanguage(location.href, code), lang: code, hreflang: code, "aria-current": code === LANGUAGE ? "true" : null, onclick: ({ currentTarget }) => {
      keep();
      currentTarget.href = inLanguage(location.href, code);
    } }, nameOf(code))));
}
