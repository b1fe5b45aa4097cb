// Keys of the whole app, and one history entry a view of a page.
// header: {runs: [{id, title}], pages: [{title, help}], dataset}; answers: trigger "chosen" {run}, {page} or {image}

// Streamlit adds an entry to the history for every parameter that a page writes to the address. Replacing the entry of
// the same view lets Back return to the view before with one press. The first parameters of a new page can arrive before
// its path does; the entry of the page before then gets its own address back.
const FOREIGN_MS = 2000;
const viewOf = (url) => `${url.pathname}?${url.searchParams.get("tool") ?? ""}`;
// The page Data shows several data sets in several views, and races with several choices; it always writes both names.
const OF_DATA = [["dataset", "view"], ["budget", "serves"]];
const differ = (before, after, names) => [before, after].every((url) => names.every((name) => url.searchParams.has(name)))
  && names.some((name) => before.searchParams.get(name) !== after.searchParams.get(name));
const isSameView = (before, after) => viewOf(before) === viewOf(after) && !OF_DATA.some(
  (names) => differ(before, after, names));
// What a click opens within a view is a step too: a lesson, the current image, a selection, a query. What a page writes by
// itself is not.
const STEPS = { "/learn": ["lesson"], "/explore": ["picked", "selected"], "/search": ["add"] };
const isStep = (before, after, own) => {
  const names = Object.entries(STEPS).find(([path]) => before.pathname === after.pathname && after.pathname.endsWith(path))?.[1];
  if (!names || own.acted <= own.opened) return false;
  return names.some((name) => before.searchParams.get(name) !== after.searchParams.get(name)
    && (name === "selected" || after.searchParams.has(name) || (name === "lesson" && !after.search)));
};
if (!window.udmlHistory) {
  const push = history.pushState.bind(history);
  const own = { url: location.href, search: location.search, time: -FOREIGN_MS, acted: 0, opened: performance.now() };
  window.udmlHistory = own;
  for (const act of ["pointerdown", "keydown"]) document.addEventListener(act, () => { own.acted = performance.now(); }, true);
  window.addEventListener("popstate", () => { own.opened = performance.now(); });
  history.pushState = (state, title, url) => {
    const target = new URL(url ?? location.href, location.href);
    const isRecent = performance.now() - own.time < FOREIGN_MS;
    if (isSameView(new URL(location.href), target) && !isStep(new URL(location.href), target, own)) {
      if (!isRecent) own.url = location.href;
      Object.assign(own, { search: target.search, time: performance.now() });
      history.replaceState(state, title, url);
      return;
    }
    if (isRecent && own.search === target.search) history.replaceState(state, title, own.url);
    Object.assign(own, { time: -FOREIGN_MS, opened: performance.now() });
    push(state, title, url);
  };
}

const MOST_LISTED = 8;
const FREED = ".st-key-compare-part, .st-key-judge-results, [class*=st-key-view-of-], [data-testid=stCheckbox]";
const WORDS = ".st-key-labels-typed, .st-key-labels-target, [class*=st-key-same-meaning]";
// A start is seen at once: the page says so before the server answers, until the steps of the run or an error arrive.
const START = ".st-key-lab-start button[kind=primary]";
const ANSWERED = ".lab-steps:not(.ahead), .st-key-lab-start [data-testid=stAlert], .st-key-lab-watch";
const LONGEST_START_MS = 30000;
const markStart = () => {
  const began = performance.now(), label = document.body.classList;
  label.add("udml-starting");
  const look = () => {
    const isOver = document.querySelector(ANSWERED) || !document.querySelector(".st-key-lab-start");
    if (isOver || performance.now() - began > LONGEST_START_MS) label.remove("udml-starting");
    else setTimeout(look, 50);
  };
  setTimeout(look, 50);
};
// On a phone the menu lies over the page, so a page that is chosen closes it.
const PHONE = 768;
const closeMenu = () => setTimeout(() => {
  if (innerWidth < PHONE) document.querySelector("[data-testid=stSidebarCollapseButton] button")?.click();
}, 100);
// On a phone the choices of Lab lie in a drawer; a click on the picture, the start or another page closes it.
const KEEPS_DRAWER = ".st-key-lab [data-testid=stColumn]:not(:has(.st-key-lab-rest)):not(.st-key-lab-rest *), [data-baseweb], [role=listbox], [role=dialog]";
const isDrawerOpen = (target) => {
  const isOpen = document.body.classList.contains("udml-drawer");
  if (target.closest?.(".lab-choose")) return !isOpen;
  return isOpen && Boolean(target.closest?.(KEEPS_DRAWER)) && !target.closest?.(START);
};
// A drawer of Lab's choices opens below the button that stays in the window: once it is open, it is moved above the button.
const EXPANDS = 400; // milliseconds until an expander has its height
const showOpened = (event) => {
  const box = event.target.closest?.(".st-key-lab summary")?.parentElement;
  if (!box || box.open || box.closest(".st-key-lab-rest")) return;
  const behavior = matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";
  setTimeout(() => box.scrollIntoView({ block: "start", behavior }), EXPANDS);
};
// A button that excludes the first images of a ranking is hidden until the gallery shows them; its key waits too.
const isWaiting = (button) => button && getComputedStyle(button).visibility === "hidden";
const isTyping = () => {
  let element = document.activeElement;
  while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
  return element?.matches?.("input:not([type=range]):not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable=true]");
};

class Keys {
  constructor(root) {
    this.root = root;
    this.search = root.querySelector(".search");
    this.help = root.querySelector(".help");
    this.input = root.querySelector("input");
    this.list = root.querySelector(".results");
    this.at = 0;
    this.onKey = (event) => this.press(event);
    document.addEventListener("keydown", this.onKey);
    // A click on a part, view or switch leaves the focus free, so that keys act on images in place of the control.
    this.onClick = (event) => {
      if (event.target.closest?.(START)) markStart();
      showOpened(event);
      if (event.target.closest?.("[data-testid=stSidebarNavLink]")) closeMenu();
      document.body.classList.toggle("udml-drawer", isDrawerOpen(event.target));
      if (event.detail && event.target.closest?.(FREED)) setTimeout(() => document.activeElement?.blur());
    };
    document.addEventListener("click", this.onClick, true); // a switch stops the click from going further
    this.onWait = (event) => {
      if (event.key.toLowerCase() === "e" && isWaiting(document.querySelector("[class*=st-key-audit-offer]"))) event.stopImmediatePropagation();
    };
    window.addEventListener("keydown", this.onWait, true);
    this.input.oninput = () => { this.at = 0; this.show(); };
    this.search.onkeydown = (event) => this.pressInSearch(event);
    for (const dialog of [this.search, this.help]) {
      dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
      dialog.addEventListener("keydown", (event) => event.stopPropagation());
    }
    root.querySelector(".close").onclick = () => this.help.close();
  }

  press(event) {
    // Words that end with Enter are done: the focus is free, so that the letters on the buttons press these again.
    if (event.key === "Enter" && event.target.closest?.(WORDS)) setTimeout(() => event.target.blur());
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping()) return;
    const dialog = { "/": this.search, "?": this.help }[event.key];
    if (!dialog || this.search.open || this.help.open) return;
    event.preventDefault();
    dialog.showModal();
    if (dialog !== this.search) return;
    this.input.value = "";
    this.at = 0;
    this.show();
    this.input.focus();
  }

  pressInSearch(event) {
    const count = this.list.children.length;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      this.at = (this.at + (event.key === "ArrowDown" ? 1 : count - 1)) % Math.max(1, count);
      this.show();
    } else if (event.key === "Enter") this.list.children[this.at]?.click();
    else return;
    event.preventDefault();
  }

  choices() {
    const text = this.input.value.trim();
    const words = text.toLowerCase().split(/\s+/);
    const runs = this.header.runs
      .filter(({ id, title }) => words.every((word) => `${title} ${id}`.toLowerCase().includes(word)))
      .slice(0, MOST_LISTED).map(({ id, title }) => ({ text: title, note: id, answer: { run: id } }));
    const pages = this.header.pages
      .filter(({ title }) => words.every((word) => title.toLowerCase().includes(word)))
      .map(({ title, help }) => ({ text: title, note: help, answer: { page: title } }));
    const image = { text: `Image “${text}”`, note: `number, file name or class in ${this.header.dataset}`, answer: { image: text } };
    const images = text && this.header.dataset ? [image] : [];
    // A short number means an image; the ids of runs hold digits by chance.
    return /^\d{1,7}$/.test(text) ? [...images, ...runs] : [...runs, ...pages, ...images];
  }

  show() {
    const choices = this.choices();
    this.list.replaceChildren(...choices.map(({ text, note, answer }, at) => {
      const row = document.createElement("button");
      row.type = "button";
      row.setAttribute("role", "option");
      row.id = `choice-${at}`;
      row.tabIndex = -1;
      row.setAttribute("aria-selected", String(at === this.at));
      row.append(text, Object.assign(document.createElement("small"), { textContent: note }));
      row.onclick = () => {
        this.search.close();
        this.answers.setTriggerValue("chosen", answer);
      };
      return row;
    }));
    this.list.children[this.at]?.scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", choices.length ? `choice-${this.at}` : "");
    this.root.querySelector(".count").textContent = choices.length ? "" : "Nothing matches.";
  }

  end() {
    document.removeEventListener("keydown", this.onKey);
    window.removeEventListener("keydown", this.onWait, true);
    document.removeEventListener("click", this.onClick, true);
  }
}

export default function keys({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".keys");
  root.live ??= new Keys(root);
  const { live } = root;
  live.header = data;
  live.answers = { setTriggerValue };
  return endLater(root, "live");
}
