"""The languages of the course: complete translations, and no text that is shown in English only."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from udml_core.results import lesson_texts
from udml_core.results.lesson_texts import LIST, texts_of_script, translations
from udml_core.results.lessons import course, course_texts, export_course

Open = Callable[..., Page]
TEXTS = [*dict.fromkeys(text for place in course_texts().values() for text in place)]
LANGUAGES = sorted(translations())
PARTS = {"placeholders": r"\{\w+\}", "tags": r"</?\w+>", "signs": "[★✓✕◇□●■→←↑↓↕↔↻≤∑]", "numbers": r"\d+"}
"""What a translation has as often as the English text."""
PSEUDO = "en-XA"
"""A language of pretended translations, in brackets."""
NEUTRAL = {"Esc", "http", "localhost", "MAP", "NMI", "SNE", "UMAP", "δ²"}
"""Words that each language has."""

# Parts of a text outside of all brackets. Formulas and commands have no language, and a step has sentences of a text
# that is read elsewhere.
UNTRANSLATED = """root => {
    const found = new Set();
    let [depth, outside] = [0, ""];
    const end = () => { found.add(outside); outside = ""; };
    const read = (text, isFree) => {
        for (const letter of text) {
            if ("⟦⟧".includes(letter)) { depth += letter === "⟦" ? 1 : -1; end(); }
            else if (!depth && !isFree) outside += letter;
        }
        if (depth < 0) found.add(`too many brackets end in: ${text}`);
    };
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
    while (walker.nextNode()) {
        const node = walker.currentNode;
        if (node.nodeType === Node.TEXT_NODE) {
            const part = node.parentElement;
            if (!part.closest(".step, .caption")) read(node.data, part.closest("math, pre, .languages"));
            end();
            continue;
        }
        const around = depth;
        for (const name of ["aria-label", "aria-valuetext", "title", "placeholder", "alt"]) {
            depth = 0;
            read(node.getAttribute(name) ?? "", false);
            end();
        }
        depth = around;
    }
    return [...found];
}"""
EXTRAS = {"triplets": {"negative": [2.9, 1.9]}, "seeds": {"verdict": "nothing-a", "comparison": "nothing"},
          "flat": {"turn": 20}, "spread": {"labels": [3]},
          "better": {"comparison": "joined", "judged-joined": [3 * pair + pair % 3 for pair in range(20)]},
          "measures": {"order": [0, 4, 1, 2, 3, 5, 6, 7, 8, 9]}}
"""States that show further texts."""
# A lesson with each choice, with sliders at both ends, after both answers, all revealed, on slides, and printed.
SHOW_ALL = """([extra, read]) => {
    const { lesson } = window;
    const unread = new Function(`return ${read}`)();
    const found = new Set();
    const look = (root = lesson.root) => unread(root).forEach((text) => found.add(text));
    const show = (state) => { lesson.change(state); look(); };
    look();
    for (const input of lesson.root.querySelectorAll("input[type=radio]")) { input.click(); look(); }
    const fields = lesson.fields();
    for (const { name, options = [] } of fields) for (const { value } of options) show({ [name]: value });
    show(extra);
    const sliders = fields.filter(({ kind }) => kind === "slider");
    for (const end of ["low", "high"]) show(Object.fromEntries(sliders.map((field) => [field.name, field[end]])));
    const { presentation } = lesson;
    presentation.set(true);
    presentation.slides.forEach((_slide, at) => { presentation.slide = at; presentation.show(); look(); });
    presentation.set(false);
    const buttons = lesson.root.querySelectorAll(".tools button:not(.start-present), .notes button");
    for (const button of buttons) button.click();
    for (const { contentDocument } of lesson.root.querySelectorAll(".printed")) look(contentDocument.body);
    return [...found];
}"""


def test_all_texts_stand_in_the_list() -> None:
    """`python -m experiments.make_lessons texts` writes it."""
    assert json.loads(LIST.read_text(encoding="utf-8")) == course_texts()


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_translates_each_text_and_no_other(language: str) -> None:
    known = translations()[language]
    assert not [text for text in TEXTS if not known.get(text, "").strip()]
    assert not set(known) - set(TEXTS)
    again = {text: words for text, words in known.items() if known.get(words, words) != words}
    assert not again  # a translation may pass through `say` once more


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_translation_keeps_placeholders_markup_signs_and_numbers(language: str) -> None:
    def counted(text: str, pattern: str) -> list[str]:
        whole = re.sub(r"(?<=\d)[.,\u202f](?=\d)", "", text)  # 1,797 and 1.797, 0.5 and 0,5
        return sorted(re.findall(pattern, whole))

    for text, words in translations()[language].items():
        for part, pattern in PARTS.items():
            assert counted(words, pattern) == counted(text, pattern), (part, words)
        assert not re.search(r"\d\.(?!\d{3}\b)\d", words), words
        assert "”" not in words
        assert not re.search(r"\"|(^|\s)'|'(\s|$)", words), words


NO_TERMS = {"de": ("unentschieden", "einhalb", "Neuordnung", "Positives", "Negatives", "Glücklichste",
                   "Sicherheitsabstand", "[Ss]emi-schwer", "in Mining", "Baut auf", "Flachstück", "geweißt",
                   "und weißen", "Stapel", "verschmilz", "[Dd]as NMI", "dem höheren NMI",
                   "Nächste Pixel", "Von vorn", "Triplett", "lecken", "leckt",
                   "Metrik-Lernen", "ebene[ns]? Stück", "[Ll]abel(n|t|st)\\b", "Margin", "Semi-hard",
                   "(Triplet|Winkel|Softmax|Proxy)-Verlust\\b", "Tripel", "Voreingenommen", "Schulstunde",
                   "verletzenden? Triplets", "lehr(t|en) nichts", "Wann es misslingt", "offenl"),
            "es": ("doble el plano", "intermedio", "cifra", "mando", "Compruébalo", "regla", "mismos tripletes",
                   "Él solo", "C solo", "frontera", "clasificación", "F con", "aventajar? por", "por menos que",
                   "es cerca", "es de cerca", "agrupamiento", "más que A por sí solo", "similitud", "órdenes",
                   "monedas? justa", "veces más (ancho|lejos)", "ciegos?\\b", "castiga", "a través de ellas?\\b",
                   "fuera del suyo", "puntos repartidos por igual", "en partes (que|y)")}
"""Words that textbooks do not use for the terms of the course, or that mean something else."""


@pytest.mark.parametrize("language", LANGUAGES)
def test_terms_are_the_words_of_textbooks(language: str) -> None:
    for words in translations()[language].values():
        assert not [term for term in NO_TERMS[language] if re.search(rf"\b{term}\w*", words)], words


def test_r_at_1_is_explained_where_a_reader_meets_it_first() -> None:
    lesson = next(text for text in course_texts()["metric"] if "R@1 (recall@1)" in text)
    for language, name in (("de", "Recall@1"), ("es", "recall@1, la exhaustividad con un solo resultado")):
        words = translations()[language][lesson]
        assert f"R@1 ({name})" in words
        assert words.index("R@1") < words.index("Nachbar" if language == "de" else "vecino")


def test_apostrophes_are_typographic_and_digits_are_named() -> None:
    for text in TEXTS:
        assert not re.search(r"\w'\w", text), text
        assert not re.search(r"\ban? \{digit\}", text), text


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_text_names_a_button_as_the_button_does(language: str) -> None:
    known = translations()[language]
    for text, words in known.items():
        for shown, translation in zip(re.findall("<b>(.*?)</b>", text), re.findall("<b>(.*?)</b>", words), strict=True):
            if shown in known and text.startswith(("Begin at 1 epoch: on", "Choose comparison 1")):
                assert translation == known[shown], words


def test_texts_are_found_in_fields_and_in_code() -> None:
    script = '''title: "One text", name: "no text", label: "A \\"second\\"", choices: ["Third", "Fourth one"],
        words: "9", say("Fifth {count}", { count }); label: `${no}`; say(no); pressay("no"); choices: [no]'''
    assert [*texts_of_script(script)] == ["One text", 'A "second"', "Third", "Fourth one", "Fifth {count}"]


@pytest.fixture
def pseudo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The course in a language of known texts in brackets; what replaces a placeholder needs its own."""
    gaps = r"\{\w+\}|[.!?]\s+"  # a sentence may stand apart from the others of its text
    known = {text: "⟦" + re.sub(gaps, r"⟧\g<0>⟦", text) + "⟧" for text in TEXTS}
    monkeypatch.setattr(lesson_texts, "translations", lambda: {PSEUDO: known})
    export_course(tmp_path)
    return tmp_path


def foreign(texts: list[str]) -> Iterator[str]:
    """Yield the texts with a word of two letters that is not the same in each language."""
    for text in texts:
        if set(re.findall(r"[^\W\d_]{2,}", text)) - NEUTRAL:
            yield text


@pytest.mark.browser
def test_nothing_is_shown_in_english_only(context: BrowserContext, pseudo: Path) -> None:
    page = context.new_page()
    page.goto(f"{(pseudo / 'index.html').as_uri()}?language={PSEUDO}")
    page.wait_for_selector(".path a")
    unread = {"index": page.evaluate(f"({UNTRANSLATED})(document.querySelector('.course'))")}
    for lesson in course():
        page.goto(f"{(pseudo / lesson.id).as_uri()}.html?language={PSEUDO}")
        page.wait_for_selector(".lesson[data-drawn]")
        unread[lesson.id] = page.evaluate(SHOW_ALL, [EXTRAS.get(lesson.id, {}), UNTRANSLATED])
    assert not {name: found for name, texts in unread.items() if (found := [*foreign(texts)])}


def measured(page: Page) -> dict[str, Any]:
    """Return the language of a page, and its links and numbers."""
    return dict(page.evaluate("""() => ({ lang: document.documentElement.lang, title: document.title,
        next: document.querySelector("a[href*='spread']")?.href,
        numbers: [...document.querySelectorAll(".readout dd")].map((part) => part.innerText) })"""))


@pytest.mark.browser
def test_the_language_is_kept_and_decides_numbers_and_links(open_lesson: Open) -> None:
    page = open_lesson("flat")
    assert measured(page)["lang"] == "en"
    page.get_by_role("link", name="Deutsch").click()
    page.wait_for_url("**/flat.html?language=de")
    page.wait_for_selector(".lesson[data-drawn]")
    german = measured(page)
    assert german["lang"] == "de"
    assert german["title"] == translations()["de"]["Cosine or flat?"]
    assert german["next"].endswith("spread.html?language=de")
    assert re.fullmatch(r"0,\d\d", german["numbers"][0])
    assert german["numbers"][4] == "6 von 12"
    expect(page.get_by_role("link", name="Deutsch")).to_have_attribute("aria-current", "true")
    later = open_lesson("seeds")  # the browser keeps the language
    assert re.fullmatch(r"\d\d,\d\d ± \d,\d\d", measured(later)["numbers"][0])
    formula = later.locator(".formula").inner_html()
    assert re.search(r"\d\d,\d+; \d\d,\d+", formula)
    assert not re.search(r"\d\.\d", formula)
    later.get_by_role("link", name="Español").click()
    later.wait_for_url("**/seeds.html?language=es")
    later.get_by_role("link", name="English").click()
    later.wait_for_url("**/seeds.html?language=en")
    later.wait_for_selector(".lesson[data-drawn]")
    assert measured(later)["lang"] == "en"


@pytest.mark.browser
def test_the_first_visit_follows_the_browser(browser: Browser, exported: Path) -> None:
    for locale, wanted in (("es-MX", "es"), ("fr-FR", "en")):
        with browser.new_context(locale=locale) as context:
            page = context.new_page()
            page.goto((exported / "index.html").as_uri())
            assert page.evaluate("document.documentElement.lang") == wanted


def test_spanish_texts_group_digits_as_the_pictures_do() -> None:
    texts = translations()["es"].values()
    assert not [text for text in texts if re.search(r"\d\.\d{3}(?!\d)", text)]
    assert [text for text in texts if "10\u202f000" in text]


@pytest.mark.browser
def test_spanish_groups_the_digits_of_numbers_by_a_space(open_lesson: Open) -> None:
    for language, wanted in (("es", "11\u202f690"), ("de", "11.690"), ("en", "11,690")):
        page = open_lesson("maps", f"?language={language}")
        page.click(".skip")
        assert wanted in page.locator(".formula").inner_text()
    page = open_lesson("epsilon", "?language=es&images=digits&epsilon=0.9")
    page.click(".skip")
    count = page.evaluate("lesson.numbers.count")
    assert count >= 1000
    assert str(count) in page.locator(".readout").inner_text()


@pytest.mark.browser
def test_a_negative_number_has_a_true_minus_in_pictures(context: BrowserContext, exported: Path) -> None:
    page = context.new_page()
    found = 0
    for lesson in course():
        page.goto(f"{(exported / lesson.id).as_uri()}.html")
        page.wait_for_selector(".lesson[data-drawn]")
        page.click(".skip")
        shown = [*page.locator(".stage, .readout, .formula").all_inner_texts(),
                 *page.locator("svg text").all_text_contents()]
        assert not [text for text in shown if re.search(r"(?<![\w-])-\d", text)], lesson.id
        found += sum("−0.5" in text for text in shown)
    assert found  # lesson 7 has cosines below 0


@pytest.mark.browser
def test_a_link_to_the_program_says_in_the_reader_s_language_that_its_labels_are_english(
        open_lesson: Callable[..., Page]) -> None:
    for language, words in (("en", None), ("de", "Das Programm und alle Beschriftungen darin sind auf Englisch."),
                            ("es", "El programa y todas sus etiquetas están en inglés.")):
        page = open_lesson("metric", f"?language={language}")
        page.click(".skip")
        notes = page.locator(".in-english")
        if words is None:
            expect(notes).to_have_count(0)
        else:
            expect(notes).to_have_text(words)
            expect(notes).to_be_visible()


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_link_says_only_once_that_its_page_is_in_english(language: str) -> None:
    """What the app and the lessons put behind the words of a link stands in none of these words."""
    known = translations()[language]
    note = known["(in English)"]
    assert [text for text, words in known.items() if words.endswith(note)] == ["(in English)"]
