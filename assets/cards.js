// Cards in groups, one of which is chosen. Arrow keys, Home and End move the focus, a letter moves it to a title that
// begins with it; Enter, Space and a click choose. A card that cannot be chosen keeps its place and says why.
// The list ends in the middle of a card, and a line below counts the cards that follow, so that it is seen to go on.
// data: {label, chosen, groups: [{title, cards: [{name, title, line, mark, reason}]}]}
// answers: trigger "picked" name
const LEAST = 236; // pixels of the list in a low window
const BESIDE = 664; // pixels of what stands above and below the list, so that the button is in a usual window
const PADDING = 4;
const PEEK = 22; // pixels of the card after the last whole one

class Cards {
  constructor(root) {
    this.root = root;
    root.onclick = (event) => this.pick(event.target.closest(".card"));
    root.onkeydown = (event) => this.key(event);
    root.onfocusin = (event) => this.rove(event.target.closest(".card"));
    root.onscroll = () => this.count();
    this.more = document.createElement("button");
    Object.assign(this.more, { type: "button", className: "more", tabIndex: -1 }); // the arrow keys reach every card
    this.more.setAttribute("aria-hidden", "true");
    this.more.onpointerdown = (event) => event.preventDefault(); // the focus stays in the list
    this.more.onclick = () => root.scrollBy({ top: root.clientHeight - PEEK, behavior: calm() ? "auto" : "smooth" });
    root.after(this.more);
    this.resized = new ResizeObserver(() => this.fit());
    this.resized.observe(root);
  }

  update(data, answer) {
    this.answer = answer;
    const content = JSON.stringify([data.label, data.groups]);
    if (content !== this.content) this.build(data);
    this.content = content;
    const changed = data.chosen !== this.chosen;
    this.chosen = data.chosen;
    for (const card of this.list()) card.setAttribute("aria-checked", String(card.dataset.name === data.chosen));
    this.fit();
    const current = this.list().find((card) => card.dataset.name === data.chosen) ?? this.list()[0];
    if (!this.list().some((card) => card.tabIndex === 0) || changed) this.rove(current);
    if (changed && current) this.show(current);
    this.root.dataset.drawn = "1";
  }

  // Height from the top of what is in sight to the end of the last card that fits whole, and a part of the next.
  fit() {
    const most = Math.max(LEAST, window.innerHeight - BESIDE);
    const top = this.root.scrollTop - PADDING;
    const ends = this.list().map((card) => card.offsetTop + card.offsetHeight - top).filter((end) => end > 0 && end <= most);
    if (ends.length) this.root.style.maxHeight = `${Math.max(...ends) - 2 * PADDING + PEEK}px`; // without padding
    this.count();
  }

  // Count the cards that end below what is in sight.
  count() {
    const end = this.root.scrollTop + this.root.clientHeight + PADDING;
    const rest = this.list().filter((card) => card.offsetTop + card.offsetHeight > end).length;
    const all = this.list().length;
    this.more.textContent = rest ? `▾ ${rest} more of ${all} methods` : `All ${all} methods are above`;
    this.more.classList.toggle("end", !rest);
  }

  // Scrolls the list alone, not the page.
  show(card) {
    const below = card.offsetTop + card.offsetHeight - this.root.clientHeight;
    this.root.scrollTop = below > 0 ? card.offsetTop - PADDING : 0;
    this.fit();
  }

  build({ label, groups }) {
    this.root.setAttribute("aria-label", label);
    this.root.replaceChildren(...groups.flatMap(({ title, cards }) => {
      const heading = document.createElement("div");
      heading.className = "heading";
      heading.textContent = title;
      return [heading, ...cards.map((card) => this.card(card))];
    }));
  }

  card({ name, title, line, mark, reason }) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "card";
    button.dataset.name = name;
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
    const cards = this.list();
    const here = cards.indexOf(event.target.closest(".card"));
    const steps = { ArrowDown: here + 1, ArrowRight: here + 1, ArrowUp: here - 1, ArrowLeft: here - 1, Home: 0,
      End: cards.length - 1 };
    let to = steps[event.key];
    if (to === undefined && event.key.length === 1 && event.key !== " ") {
      const begins = (card) => card.textContent.toLowerCase().startsWith(event.key.toLowerCase());
      to = [...cards.keys()].map((step) => (here + 1 + step) % cards.length).find((at) => begins(cards[at]));
      if (isStreamlits(event.key)) event.stopPropagation();
    }
    if (to === undefined) return;
    event.preventDefault();
    cards[Math.max(0, Math.min(cards.length - 1, to))].focus();
  }
}

export default function cards({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".cards");
  root.cards ??= new Cards(root);
  root.cards.update(data, setTriggerValue);
}
