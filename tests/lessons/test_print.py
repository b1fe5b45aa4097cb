"""What lessons print: summary, handout and notes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, PdfMargins, expect

from tests.tiers import fast_first
from udml_core.results.lesson_texts import translated, translations
from udml_core.results.lessons import Lesson, course, course_guide

pytestmark = pytest.mark.browser

Open = Callable[..., Page]
LESSONS = [pytest.param(lesson, id=lesson.id) for lesson in course()]
CATCH = """() => {
    const append = Element.prototype.append;
    Element.prototype.append = function (...nodes) {
        append.apply(this, nodes);
        const [frame] = nodes;
        if (frame?.className !== "printed") return;
        frame.contentWindow.print = () => {
            window.printed = frame.contentDocument.body.innerHTML;
            window.sheet = frame.contentDocument.documentElement.outerHTML;
        };
    };
}"""


LEAST_POINTS = """() => Math.min(...[...document.querySelectorAll("body *")].filter((part) => {
    const own = [...part.childNodes].some(({ nodeType, data }) => nodeType === Node.TEXT_NODE && data.trim());
    return own && part.getClientRects().length && !part.closest("math, sub, sup, .handle");
}).map((part) => {
    const share = part.closest(".picture") ? Number(getComputedStyle(part.closest(".picture")).zoom) : 1;
    return 0.75 * parseFloat(getComputedStyle(part).fontSize) * (part.closest("svg") ? part.getScreenCTM().a : share);
}))"""


FILLED_PAPER = """() => {
    const page = document.querySelector(".page").getBoundingClientRect();
    const boxes = [...document.querySelectorAll(".page p, .page h2, .page img, .page svg")]
        .map((part) => { const range = document.createRange(); range.selectNodeContents(part); return range; })
        .flatMap((range) => [...range.getClientRects()]);
    const inner = page.width - 2 * 10 * 96 / 25.4;
    const letters = 0.75 * parseFloat(getComputedStyle(document.body).fontSize);
    return { letters, high: page.height / (272 * 96 / 25.4),
        across: (Math.max(...boxes.map(({ right }) => right)) - Math.min(...boxes.map(({ left }) => left))) / inner };
}"""
"""Shares of the first sheet's height and width that are used, and its letters in points."""


def printed(page: Page, button: str) -> str:
    """Press a button that prints, and return the printed page."""
    page.evaluate(CATCH)
    page.get_by_role("button", name=button).click()
    return str(page.evaluate("window.printed"))


def test_the_summary_holds_the_picture_and_no_notes_of_the_teacher(open_lesson: Open) -> None:
    body = printed(open_lesson("epsilon"), "Print summary")
    for part in ("<h1>ε merges and shatters</h1>", "data:image/png", "<math>", "Takeaway"):
        assert part in body
    for spoiler in ("teacher notes", "Common wrong answer"):
        assert spoiler not in body


@pytest.mark.parametrize("negative", [[1.5, 1.75], [0.6, -1.9]])
def test_a_summary_of_lesson_2_has_the_arrows_that_its_text_explains(open_lesson: Open, negative: list[float]) -> None:
    page = open_lesson("triplets")
    page.locator(".question input").first.check()
    page.evaluate("negative => lesson.show({ negative })", negative)
    drawn = r"parts => parts.filter((part) => /^M\S+ \S+L\S+ \S+L\S+ \S+Z$/.test(part.getAttribute('d'))).length"
    assert page.eval_on_selector_all(".stage svg path", drawn) == 0
    printed(page, "Print summary")
    sheet = page.evaluate("window.sheet")
    page.set_content(sheet)
    assert page.eval_on_selector_all(".picture svg path", drawn) == 3


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_summary_shows_a_case_and_a_handout_the_untouched_start(open_lesson: Open, lesson: Lesson) -> None:
    def picture(button: str) -> str:
        return printed(page, button).split('<div class="picture">')[1].split("<h2>")[0]

    page = open_lesson(lesson.id)
    page.get_by_role("button", name="Skip the question").click()
    first, start = picture("Print summary"), picture("Print handout")
    assert first != start
    state = page.evaluate("JSON.stringify([lesson.state, lesson.kept.decided ?? []])")
    assert state == page.evaluate("JSON.stringify([lesson.start, []])")  # printing changes nothing
    page.locator(".question input").first.check()
    assert picture("Print handout") == start


def test_a_sheet_names_its_lesson_day_and_signs(open_lesson: Open) -> None:
    page = open_lesson("metric")
    page.get_by_role("button", name="Skip the question").click()
    for button in ("Print summary", "Print handout"):
        body = printed(page, button)
        assert re.search(r'class="sheet">Lesson 1 of 14: What is a metric\? · page 1 of [12] · \d\d/\d\d/\d{4}<', body)
        assert "★ the query or the chosen image · ✓ a hit, or a neighbor that is kept" in body
    assert "svg { overflow: visible; }" in page.evaluate("window.sheet")
    assert "★ the query" not in printed(open_lesson("hardness"), "Print handout")
    words = printed(open_lesson("triplets"), "Print summary")
    assert "✓ The bound is satisfied" in words or "✕ The bound is violated" in words
    assert "a hit" not in words
    assert "a miss" not in words


@pytest.mark.parametrize("lesson", fast_first(LESSONS, 2))
def test_a_summary_says_below_its_picture_what_is_who(open_lesson: Open, lesson: Lesson) -> None:
    for language in ("en", *translations()):
        page = open_lesson(lesson.id, f"?language={language}")
        page.evaluate(CATCH)
        page.locator(".tools button").nth(1).click()
        sentences = page.evaluate(r"lesson.lesson.caption.map((at) => lesson.lesson.see.split(/(?<=[.!?])\s+/)[at])")
        page.set_content(page.evaluate("window.printed"))
        (caption,) = page.locator(".picture .caption").all_inner_texts()
        assert caption == " ".join(re.sub("<.*?>", "", sentence) for sentence in sentences)
        assert len(caption.split()) <= (140 if lesson.id == "hardness" else 70)
    assert "legend caption" not in printed(open_lesson(lesson.id, "?language=en"), "Print handout")


def test_the_summary_on_triplets_names_its_points(open_lesson: Open) -> None:
    assert "A is the anchor, P the positive, N the negative." in printed(open_lesson("triplets"), "Print summary")


def test_the_handout_on_maps_has_columns_and_definitions_that_break_no_word(open_lesson: Open) -> None:
    page = open_lesson("maps")
    body = printed(page, "Print handout")
    for column in ("Perplexity, or number of neighbors", "trustworthiness", "continuity"):
        assert f"<th>{column}</th>" in body
    assert "<b>perplexity</b>: A setting of t-SNE" in body
    page.set_content(page.evaluate("window.sheet"))
    assert page.evaluate("[...document.querySelectorAll('th')].every((cell) => cell.scrollWidth <= cell.clientWidth)")
    assert "break-word" not in page.evaluate("document.querySelector('style').textContent")


@pytest.mark.parametrize("lesson", fast_first(LESSONS, 2))
def test_a_handout_asks_everything_and_answers_nothing(open_lesson: Open, lesson: Lesson) -> None:
    page = open_lesson(lesson.id)
    texts = page.evaluate("""() => {
        const { before, after, notes, takeaway, fails, claim } = window.lesson.lesson;
        const plain = (html) => Object.assign(document.createElement("p"), { innerHTML: html }).innerHTML;
        const answers = [before.because, after.because, notes.wrong, notes.stuck, takeaway, fails, claim];
        return { asked: [before.text, after.text, notes.ask, ...before.choices, ...after.choices].map(plain),
            answers: answers.map(plain) };
    }""")
    body = printed(page, "Print handout")
    for question in texts["asked"]:
        assert question in body
    for answer in texts["answers"]:
        assert answer not in body
    page.get_by_role("button", name="Skip the question").click()
    page.locator(".notes summary").click()
    notes = printed(page, "Print notes and answers")
    for answer in (texts["answers"][0], texts["answers"][1], texts["answers"][2]):
        assert answer in notes


@pytest.mark.parametrize("lesson", fast_first(LESSONS, 3))
def test_no_sentence_of_an_answer_is_on_a_handout_in_any_language(open_lesson: Open, lesson: Lesson) -> None:
    """Answers and their explanations are on the teacher's sheet alone, and a right choice is one box among three."""
    for language in ("en", *translations()):
        page = open_lesson(lesson.id, f"?language={language}")
        page.evaluate(CATCH)
        texts = page.evaluate("""() => {
            const { before, after, notes, takeaway, fails, claim } = lesson.lesson;
            const plain = (html) => Object.assign(document.createElement("p"), { innerHTML: html }).textContent;
            const whole = [before.because, after.because, ...before.why, ...after.why, notes.wrong, notes.stuck,
                takeaway, fails, claim];
            const sentences = whole.flatMap((text) => text.split(/(?<=[.!?])\\s+/)).map(plain);
            return { sentences: sentences.filter(Boolean),
                right: [before, after].map(({ choices, right }) => plain(choices[right])) };
        }""")
        page.locator("button.print").nth(1).click()
        sheet = page.evaluate("window.printed")
        page.set_content(sheet)
        boxes = page.locator(".boxes").all_text_contents()
        assert len(boxes) == 2
        assert [choice in box for choice, box in zip(texts["right"], boxes, strict=True)] == [True, True]
        page.evaluate("document.querySelectorAll('.boxes').forEach((part) => part.remove())")
        words = page.evaluate("document.body.textContent")
        assert len(texts["sentences"]) > 15
        assert not [sentence for sentence in texts["sentences"] if sentence in words], language
        assert not [choice for choice in texts["right"] if choice in words and len(choice.split()) > 3], language
        assert "✓ Correct" not in words


@pytest.mark.parametrize("lesson", fast_first(LESSONS, 2))
def test_one_sheet_holds_a_summary_and_two_a_handout_with_letters_of_nine_points(
        open_lesson: Open, context: BrowserContext, lesson: Lesson) -> None:
    for language in ("en", *translations()):
        page = open_lesson(lesson.id, f"?language={language}")
        page.evaluate(CATCH)
        for pages, button in enumerate(page.locator(".tools button").all()[1:3], 1):
            button.click()
            sheet = context.new_page()
            sheet.set_content(page.evaluate("window.sheet"))
            margin: PdfMargins = {"top": "0", "bottom": "0", "left": "0", "right": "0"}  # as the page asks for
            for paper in ("A4", "Letter"):
                pdf = sheet.pdf(format=paper, margin=margin)
                assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == pages, language
            zoom = sheet.evaluate("Number(document.body.style.zoom || 1)")
            assert zoom == 1, (language, zoom)
            assert sheet.evaluate(LEAST_POINTS) >= 9, (language, pages)
            fills = sheet.evaluate(FILLED_PAPER)
            assert pages == 2 or fills["high"] >= 0.85 or fills["letters"] >= 12.5, (language, fills)
            assert fills["across"] >= 0.9, (language, pages, fills)
            words = " ".join(sheet.locator("body").inner_text().split())
            known = page.evaluate("[lesson.lesson.claim, lesson.lesson.takeaway, lesson.lesson.before.text]")
            plain = [" ".join(re.sub("<.*?>", "", text).split()) for text in known]
            assert all(text in words for text in (plain[:2] if pages == 1 else plain[2:])), language
            numbers = sheet.locator(".sheet").all_inner_texts()
            assert len(numbers) == pages
            assert all(page.title() in line for line in numbers)
            torn = sheet.evaluate("""() => [...document.querySelectorAll(".lines")].filter((lines) =>
                getComputedStyle(lines.closest("section") ?? lines).breakInside !== "avoid").length""")
            assert not torn
            sheet.close()


def test_a_handout_leaves_room_for_what_the_figure_needs(open_lesson: Open) -> None:
    wanted = {"hardness": ("Your range, from … to …", "spread of its map"),
              "triplets": ("half angle at N", "loss after one step"), "seeds": ("gain B − A",),
              "measures": ("Ranking: ✓ or ✕ from first to last", "Pictures in each cluster", "R@k")}
    for lesson, columns in wanted.items():
        body = printed(open_lesson(lesson), "Print handout")
        for column in columns:
            assert f"<th>{column}</th>" in body
        assert "<th>R@2</th>" not in body
        assert body.count("<tr>") == {"hardness": 7, "triplets": 5, "seeds": 4}.get(lesson, 3)
        assert body.count('class="lines"') == 3


def test_the_sheets_on_hardness_have_empty_maps_and_the_settings(open_lesson: Open) -> None:
    page = open_lesson("hardness")
    page.get_by_role("button", name="Skip the question").click()
    page.set_content(printed(page, "Print handout"))
    frames = page.locator(".picture .trained img")
    expect(frames).to_have_count(4)
    assert frames.evaluate_all("images => images.every(({ naturalWidth }) => naturalWidth === 1)")
    expect(page.locator(".settings")).to_have_count(0)
    page = open_lesson("hardness")
    page.set_content(printed(page, "Print summary"))
    expect(page.locator(".settings")).to_have_text("Epochs of training: 1 · Triplets: All")
    drawn = page.locator(".picture .trained img")
    assert drawn.evaluate_all("images => images.every(({ naturalWidth }) => naturalWidth > 1)")


def test_the_summary_on_triplets_draws_the_arrows_that_it_explains(open_lesson: Open) -> None:
    page = open_lesson("triplets")
    body = printed(page, "Print summary")
    assert "An arrow shows" in body
    page.set_content(body)
    heads = page.locator("svg.plane > g").first.locator("path[fill=currentColor]")
    assert heads.count() == 3  # of A, P and N


def test_a_sheet_has_no_address_of_a_browser_or_of_the_own_computer(open_lesson: Open) -> None:
    page = open_lesson("encoders")
    body = printed(page, "Print summary")
    sheet = page.evaluate("window.sheet")
    assert "@page { margin: 0; }" in sheet  # without margins there is no place for the address
    assert "<title>Two weak encoders</title>" in sheet
    assert "file:" not in body
    page.set_content(sheet)
    tops = page.evaluate("[...document.querySelectorAll('.picture .tile')].map((tile) => tile.offsetTop)")
    assert len(tops) == 4
    assert len(set(tops)) == 1, tops  # side by side


def test_a_sheet_says_its_address_unless_it_is_the_own_computer_s(context: BrowserContext, exported: Path) -> None:
    for host, is_said in (("localhost:8501", False), ("127.0.0.1", False), ("course.school", True)):
        page = context.new_page()
        page.route("**/*", lambda route: route.fulfill(path=exported / "encoders.html"))
        page.goto(f"http://{host}/encoders.html")
        page.wait_for_selector(".lesson[data-drawn]")
        assert (host in printed(page, "Print handout").split("<h1>")[0]) == is_said, host


def test_each_handout_has_a_question_and_columns_of_its_own() -> None:
    entries = course_guide()["lessons"]
    assert [entry["lesson"] for entry in entries] == [lesson.id for lesson in course()]
    assert len({entry["text"] for entry in entries}) == len(entries)
    for lesson in course():
        asked = next(line for line in lesson.script.splitlines() if line.startswith("    ask:"))
        assert "you show" not in asked, "a handout prints the question, which must not tell a teacher what to do"


@pytest.mark.parametrize("size", [(390, 844), (1400, 900)])
def test_a_telephone_prints_from_the_end_of_a_lesson(open_lesson: Open, size: tuple[int, int]) -> None:
    page = open_lesson("metric")
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.reload()
    page.wait_for_selector(".lesson[data-drawn]")
    assert 'class="picture"' in printed(page, "Print summary")  # one button alone has this name
    assert 'class="lines"' in printed(page, "Print handout")
    expect(page.locator(".print-end")).to_be_visible(visible=size[0] == 390)
    page.evaluate("lesson.presentation.set(true)")
    expect(page.locator(".print-end")).to_be_hidden()


def test_a_summary_gives_the_formulas_of_both_bounds_and_uses_its_sheet(open_lesson: Open) -> None:
    page = open_lesson("triplets")
    body = printed(page, "Print summary")
    assert body.count("Triplet loss: ") == body.count("Angular loss: ") == 1
    assert re.search(r"--high:\s*(13|11|9)cm", str(page.evaluate("window.sheet"))), "the largest above all words"


def test_the_browser_prints_the_figure_and_the_text_without_what_is_pressed(open_lesson: Open) -> None:
    page = open_lesson("triplets")
    page.get_by_role("button", name="Skip the question").click()
    page.emulate_media(media="print")
    for part in (".stage", ".see", ".formula", ".takeaway"):
        expect(page.locator(part)).to_be_visible()
    for part in (".controls", ".tools", "nav[aria-label=Lessons]", ".question >> nth=0", "button.main"):
        expect(page.locator(part)).to_be_hidden()


@pytest.mark.parametrize("lesson", fast_first(LESSONS, 3))
def test_the_browser_prints_a_lesson_on_two_sheets_without_empty_headings(open_lesson: Open, lesson: Lesson) -> None:
    page = open_lesson(lesson.id)
    page.locator(".question input").first.check()
    sheet: PdfMargins = {"top": "10mm", "right": "10mm", "bottom": "10mm", "left": "10mm"}
    pdf = page.pdf(format="A4", margin=sheet)
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf)) <= 2
    page.emulate_media(media="print")
    alone = page.evaluate("""() => [...document.querySelectorAll(".lesson h2")].filter((heading) => heading.offsetParent
        && ![...heading.parentElement.children].some((part) => part !== heading && part.offsetParent))
        .map(({ textContent }) => textContent)""")
    assert not alone
    expect(page.get_by_text("The link says how to get UDML Explorer")).to_be_hidden()  # without the link


def test_a_summary_of_maps_before_the_answer_has_no_empty_picture(open_lesson: Open) -> None:
    page = open_lesson("maps")
    body = printed(page, "Print summary")
    expect(page.locator(".lesson.locked")).to_have_count(1)  # the lesson itself still waits
    page.set_content(body)
    sizes = page.locator(".picture img").evaluate_all("images => images.map((image) => image.clientWidth)")
    assert len(sizes) >= 15
    assert min(sizes) > 20, sizes


def test_the_handout_on_hardness_says_what_to_draw_and_its_summary_has_large_maps(open_lesson: Open) -> None:
    for language in ("en", *translations()):
        page = open_lesson("hardness", f"?language={language}")
        page.evaluate(CATCH)
        page.locator(".tools button.print").nth(1).click()
        handout = page.evaluate("window.printed")
        entry = next(entry for entry in course_guide()["lessons"] if entry["lesson"] == "hardness")
        first, second = handout.split('<div class="page">')[1:]
        for text in (entry["draw"]["text"], "Write down your settings and what you read"):
            assert translated(text, language) in handout
        triplet = next(term for term in course_guide()["terms"] if term["term"] == "triplet")
        assert translated(triplet["meaning"], language) in first  # before its letters are used
        for sign in (" N ", " A ", " P", "μ", "R@1"):
            assert sign in first
        assert second.count("<tr>") == 7
        page.locator(".tools button.print").nth(0).click()
        sheet = page.context.new_page()
        sheet.set_viewport_size({"width": 794, "height": 1123})
        sheet.set_content(page.evaluate("window.sheet"))
        widths = sheet.locator(".trained img").evaluate_all(
            "images => images.map((image) => image.getBoundingClientRect().width / 96 * 2.54)")
        assert len(widths) == 4
        assert min(widths) > 3.8, (language, widths)
        sheet.close()


def test_the_handout_on_triplets_names_each_case_and_bars_what_it_does_not_read(open_lesson: Open) -> None:
    page = open_lesson("triplets")
    body = printed(page, "Print handout")
    rows = [re.findall(r"<td>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", body)]
    columns = re.findall(r"<th>(.*?)</th>", body)
    assert [row[0] for row in rows[1:]] == ["Margin μ, N inside", "Margin μ, N outside", "Angle α, N inside",
                                            "Angle α, N outside"]
    for loss, shown in (("margin", rows[1:3]), ("angle", rows[3:])):
        page.evaluate("loss => lesson.show({ loss })", loss)
        read = page.locator(".readout dt").all_text_contents()
        for row in shown:
            barred = {column for column, cell in zip(columns, row, strict=True) if cell == "—"}
            assert barred == {"δ²(A, P)", "δ²(A, N)", "half angle at N"} - set(read), loss


def test_the_summary_on_triplets_speaks_of_gray_sides_only_where_it_draws_them(open_lesson: Open) -> None:
    page = open_lesson("triplets")
    page.get_by_role("button", name="Skip the question").click()
    for loss in ("margin", "angle"):
        page.evaluate("loss => lesson.show({ loss, margin: 1.1 })", loss)
        body = printed(page, "Print summary")
        assert ("gray side" in body) == (loss == "angle")
        assert body.count("is the distance in the plane") == 1
