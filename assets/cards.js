// Cards in groups, one of which is chosen. Arrow keys, Home and End move the focus, a letter moves it to a title that
// begins with it; Enter, Space and a click choose. A card that cannot be chosen keeps its place and says why.
// A short list is shown at first: the cards marked as short, and the chosen one. A button below shows all cards; a choice
// makes the list short again.
// data: {label, others, chosen, groups: [{title, cards: [{name, title, line, mark, reason, short}]}]}
// answers: trigger "picked" name

class Cards {
  constructor(root) {
    this.root = root;
    root.onclick = (event) => this.pick(event.target.closest(".card"));
    root.onkeydown = (event) => this.key(event);
    root.onfocusin = (event) => this.rove(event.target.closest(".card"));
    this.more = document.createElement("button");
    Object.assign(this.more, { type: "button", className: "more" });
    this.more.onclick = () => this.open(!this.isOpen);
    root.after(this.more);
    this.open(false);
  }

  // Shows all cards, or the short list.
  open(isOpen) {
    this.isOpen = isOpen;
    this.root.classList.toggle("all", isOpen);
    this.more.setAttribute("aria-expanded", String(isOpen));
    this.more.textContent = isOpen ? "▴ Fewer methods" : `▾ All ${this.list().length} methods`;
    if (!this.list().some((card) => card.tabIndex === 0 && this.isSeen(card))) this.rove(this.seen()[0]);
  }

  isSeen(card) { return this.isOpen || card.dataset.short === "1" || card.dataset.name === this.chosen; }

  seen() { return this.list().filter((card) => this.isSeen(card)); }

  update(data, answer) {
    this.answer = answer;
    const content = JSON.stringify([data.label, data.others, data.groups]);
    if (content !== this.content) this.build(data);
    this.content = content;
    const changed = data.chosen !== this.chosen;
    this.chosen = data.chosen;
    for (const card of this.list()) card.setAttribute("aria-checked", String(card.dataset.name === data.chosen));
    const current = this.list().find((card) => card.dataset.name === data.chosen) ?? this.list()[0];
    if (!this.list().some((card) => card.tabIndex === 0) || changed) this.rove(current);
    this.open(this.isOpen && !changed);
    this.root.dataset.drawn = "1";
  }

  build({ label, others, groups }) {
    this.root.setAttribute("aria-label", label);
    const heading = (kind, title) => {
      const line = document.createElement("div");
      line.className = kind;
      line.textContent = title;
      return line;
    };
    const parts = groups.map(({ title, cards }) => [heading("heading", title), ...cards.map((card) => this.card(card))]);
    parts.splice(1, 0, [heading("heading few", others)]); // of the short list, whose groups have no headings
    this.root.replaceChildren(...parts.flat());
  }

  card({ name, title, line, mark, reason, short }) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "card";
    button.dataset.name = name;
    if (short) button.dataset.short = "1";
    button.tabIndex = -1;
    button.setAttribute("role", "radio");
    if (reason) button.setAttribute("aria-disabled", "true");
    for (const [kind, text] of [["title", title], ["mark", mark], ["line", reason || line]]) {
      if (!text) continue;
      const part = document.createElement("span");
      part.className = kind;
      part.textContent = text;
      button.append(part, " ");
    }
    return button;
  }

  list() { return [...this.root.querySelectorAll(".card")]; }

  rove(card) {
    if (!card) return;
    for (const other of this.list()) other.tabIndex = other === card ? 0 : -1;
  }

  pick(card) {
    if (!card || card.getAttribute("aria-disabled") || card.dataset.name === this.chosen) return;
    for (const other of this.list()) other.setAttribute("aria-checked", String(other === card)); // before Python answers
    this.answer("picked", card.dataset.name);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    let cards = this.seen();
    let here = cards.indexOf(event.target.closest(".card"));
    const steps = { ArrowDown: here + 1, ArrowRight: here + 1, ArrowUp: here - 1, ArrowLeft: here - 1, Home: 0,
      End: cards.length - 1 };
    let to = steps[event.key];
    if (to === undefined && event.key.length === 1 && event.key !== " ") {
      cards = this.list(); // a letter reaches every card
      here = cards.indexOf(event.target.closest(".card"));
      const begins = (card) => card.textContent.toLowerCase().startsWith(event.key.toLowerCase());
      to = [...cards.keys()].map((step) => (here + 1 + step) % cards.length).find((at) => begins(cards[at]));
      if (isStreamlits(event.key)) event.stopPropagation();
    }
    if (to === undefined) return;
    event.preventDefault();
    const card = cards[Math.max(0, Math.min(cards.length - 1, to))];
    if (!this.isSeen(card)) this.open(true);
    card.focus();
  }
}

export default function cards({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".cards");
  root.cards ??= new Cards(root);
  root.cards.update(data, setTriggerValue);
}
