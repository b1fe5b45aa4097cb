"""A presented lesson on the screens of projectors, and its keys."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.lessons.test_slides import TURN
from tests.tiers import fast_first
from udml_core.results.lesson_texts import translations
from udml_core.results.lessons import Lesson, course

pytestmark = pytest.mark.browser

Open = Callable[..., Page]
LESSONS = [pytest.param(lesson, id=lesson.id) for lesson in course()]
SCREENS = [(1024, 768), (1280, 720), (1400, 900), (1920, 1080)]
PICTURES = ("meet", "predict", "do", "see", "formula", "fails", "check", "takeaway")
MOST_SLIDES = 8
MOST_WORDS = {"es": 60}
"""Words of a slide in a language that needs more of them."""
LEAST_TEXT, LARGER_TEXT, LEAST_CHART, LOW_CHART = 24, 30, 28, 24  # pixels
MOST_TEXT = 0.06
"""Share of the height of a screen, of letters that need not grow until their column is full."""
LEAST_RADIUS, LEAST_OF_MANY = 7, 3  # pixels
LEAST_HEIGHT, LEAST_WIDTH = 0.69, 0.9
"""Shares of the screen that a picture takes on each slide: of the height, or of the width where it is limited."""
BROAD = {"metric": (0.55, 0.62), "spread": (0.5, 0.56)}
"""Shares of the height and the width of pictures whose points lie on a broad band: more height would show nothing."""
SMALLER = {("better", "predict"): 0.63, ("better", "formula"): 0.66, ("better", "check"): 0.66,
           ("flat", "formula"): 0.65, ("flat", "do"): 0.62, ("flat", "fails"): 0.54,
           ("triplets", "formula"): 0.62, ("hardness", "takeaway"): 0.59}
"""Shares of the height where three digits, or the longer German text on the smallest screen, leave no more."""
LEAST_MAP, LEAST_SMALL_MAP = 0.3, 130
"""Share of the width that the map of lesson 10 takes, and pixels of the height of a map of lesson 3."""
MOST_COVERED = 0.35
"""Share of a map that its points would cover if none overlapped."""

MEASURE = """() => {
    const root = document.querySelector(".lesson");
    const stage = document.querySelector(".stage").getBoundingClientRect();
    const hint = document.querySelector(".hint").getBoundingClientRect();
    const letters = { text: Infinity, chart: Infinity };
    let covered = "";
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const part = walker.currentNode.parentElement;
        if (!walker.currentNode.textContent.trim() || part.closest(".hint, .handle, math, sub, sup")) continue;
        if (!part.getClientRects().length) continue;
        const scale = Number(getComputedStyle(part).getPropertyValue("--scale")) || 1;
        const drawn = part.closest("svg") ? part.getScreenCTM().a : part.closest(".stage") ? scale : 1;
        const kind = part.closest(".stage") ? "chart" : "text";
        letters[kind] = Math.min(letters[kind], parseFloat(getComputedStyle(part).fontSize) * drawn);
        const box = part.getBoundingClientRect();
        const isBehind = box.bottom > hint.top + 6 && box.right > hint.left;
        if (kind === "text" && isBehind) covered += walker.currentNode.textContent;
    }
    const maths = [...document.querySelectorAll(".formula math")].filter((math) => math.clientWidth);
    const sizeOf = (node) => parseFloat(getComputedStyle(node).fontSize);
    const shares = maths.map((math) => sizeOf(math) / sizeOf(math.parentElement));
    const drawn = [...document.querySelectorAll(".stage :is(text, b, span)")];
    const boxes = drawn.map((part) => part.getBoundingClientRect()).filter(({ width }) => width);
    const outside = Math.max(0, ...boxes.flatMap(({ left, right }) => [stage.left - left, right - stage.right]));
    return { ...letters, covered, outside, kind: root.dataset.slide, stage: stage.height / innerHeight,
        across: stage.width / innerWidth,
        formula: Math.min(1, ...shares),
        words: document.querySelector(".step").innerText.split(/\\s+/).length,
        over: [root.scrollHeight - root.clientHeight, root.scrollWidth - root.clientWidth] };
}"""


def slides_of(page: Page) -> list[dict[str, Any]]:
    """Walk through a presentation and measure every slide."""
    count = page.evaluate("window.lesson.presentation.slides.length")
    measured = []
    for slide in range(count):
        page.evaluate("""slide => {
            const { presentation } = window.lesson;
            presentation.slide = slide;
            presentation.answers = { before: 0, after: 0 }; // the explanations need room
            window.lesson.lock();
            presentation.show();
        }""", slide)
        measured.append(page.evaluate(MEASURE))
    return measured


@pytest.mark.parametrize("lesson", fast_first(LESSONS, 2))
def test_every_slide_fits_a_projector_and_is_read_from_the_last_row(open_lesson: Open, lesson: Lesson) -> None:
    for language in ("en", *translations()):  # German and Spanish words are longer
        page = open_lesson(lesson.id, f"?present=1&language={language}")
        for width, height in SCREENS:
            page.set_viewport_size({"width": width, "height": height})
            for slide in slides_of(page):
                case = (language, width, height, slide)
                assert max(slide["over"]) <= 0, case
                assert slide["text"] >= (LARGER_TEXT if height >= 1080 else LEAST_TEXT), case
                assert not slide["covered"], case
                assert slide["formula"] >= 0.8, case  # of the letters around it
                if slide["kind"] in PICTURES:
                    assert slide["chart"] >= (LEAST_CHART if height >= 768 else LOW_CHART), case
                    assert slide["outside"] <= 8, case  # pixels, of letters beside the picture
                    assert slide["words"] <= MOST_WORDS.get(language, 50), case  # sentences, and a heading
                    is_wide = lesson.id in BROAD and slide["across"] >= BROAD[lesson.id][1]
                    least = BROAD[lesson.id][0] if is_wide else SMALLER.get((lesson.id, slide["kind"]), LEAST_HEIGHT)
                    assert slide["stage"] >= least or slide["across"] >= LEAST_WIDTH, case


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_choice_that_is_pressed_on_a_slide_leaves_it_readable(open_lesson: Open, lesson: Lesson) -> None:
    page = open_lesson(lesson.id, "?present=1")
    for width, height in SCREENS[:2]:
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate(TURN, "do")
        buttons = page.locator(".panel .controls .choice button")
        for number in (*range(buttons.count())[::-1], *range(buttons.count())):
            buttons.nth(number).click()
            page.wait_for_timeout(300)  # the slide is laid out again
            slide = page.evaluate(MEASURE)
            case = (width, buttons.nth(number).text_content(), slide)
            assert max(slide["over"]) <= 0, case
            assert not slide["covered"], case
            assert slide["text"] >= LEAST_TEXT - 4, case
            assert slide["stage"] >= 0.6 or slide["across"] >= LEAST_WIDTH, case


FILLED = """() => {
    const panel = document.querySelector(".panel");
    const parts = [...panel.children].filter((part) => part.getClientRects().length)
        .map((part) => part.getBoundingClientRect());
    const high = Math.max(...parts.map(({ bottom }) => bottom)) - Math.min(...parts.map(({ top }) => top));
    return { side: document.querySelector(".lesson").classList.contains("side"),
        share: high / document.querySelector(".hint").getBoundingClientRect().top,
        text: parseFloat(getComputedStyle(panel).fontSize) / innerHeight };
}"""


@pytest.mark.parametrize("name", ["triplets", "maps", "encoders"])
def test_words_beside_a_picture_grow_until_their_column_is_filled(open_lesson: Open, name: str) -> None:
    page = open_lesson(name, "?present=1")
    for width, height in SCREENS:
        page.set_viewport_size({"width": width, "height": height})
        for slide in range(page.evaluate("lesson.presentation.slides.length")):
            page.evaluate("slide => Object.assign(lesson.presentation, { slide }).show()", slide)
            filled = page.evaluate(FILLED)
            if filled["side"] and page.evaluate("lesson.root.dataset.slide") != "more":
                assert filled["share"] >= 0.6 or filled["text"] >= MOST_TEXT, (width, slide, filled)


POINTS = """() => {
    const { arc, rect } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.arc = function (x, y, radius, ...rest) {
        (this.canvas.radii ??= []).push(radius * this.getTransform().a / this.canvas.width);
        return arc.call(this, x, y, radius, ...rest);
    };
    CanvasRenderingContext2D.prototype.rect = function (x, y, side, ...rest) { // a square is as large as a circle
        (this.canvas.radii ??= []).push(side / Math.sqrt(Math.PI) * this.getTransform().a / this.canvas.width);
        return rect.call(this, x, y, side, ...rest);
    };
}"""
RADII = """() => {
    const drawn = [...document.querySelectorAll(".stage .plane circle[fill^='#']:not(.handle *)")]
        .map((circle) => circle.r.baseVal.value * circle.getScreenCTM().a);
    const forms = [...document.querySelectorAll(".stage .plane rect[style*=cursor]")]
        .map((square) => square.getBoundingClientRect().width / 2);
    for (const canvas of document.querySelectorAll(".stage canvas.cloud")) canvas.radii = [];
    window.lesson.update();
    const painted = [...document.querySelectorAll(".stage canvas.cloud")]
        .flatMap((canvas) => canvas.radii.map((share) => share * canvas.getBoundingClientRect().width));
    return [...drawn, ...forms, ...painted];
}"""


COVERED = """() => Math.max(...[...document.querySelectorAll(".stage canvas.cloud")].map((canvas) =>
    canvas.radii.reduce((sum, share) => sum + Math.PI * (share * canvas.clientWidth) ** 2, 0)
        / (canvas.clientWidth * canvas.clientHeight)))"""


@pytest.mark.parametrize(("name", "least"), [("maps", LEAST_OF_MANY), ("epsilon", LEAST_RADIUS),
                                             ("metric", LEAST_RADIUS), ("flat", LEAST_RADIUS)])
def test_points_of_a_picture_are_seen_from_the_last_row(open_lesson: Open, name: str, least: float) -> None:
    page = open_lesson(name)
    page.evaluate(POINTS)
    for width, height in SCREENS:
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate("window.lesson.presentation.set(true)")
        for slide in range(3):
            page.evaluate("slide => Object.assign(window.lesson.presentation, { slide }).show()", slide)
            radii = page.evaluate(RADII)
            assert len(radii) > 20, (width, slide)
            assert min(radii) >= least, (width, slide, min(radii))
            if name == "maps":
                covered = page.evaluate(COVERED)
                assert covered < MOST_COVERED, (width, slide, "points hide the groups that they form", covered)


def test_maps_use_the_place_of_their_slide(open_lesson: Open) -> None:
    sizes = """selector => [...document.querySelectorAll(selector)].filter(({ clientWidth }) => clientWidth)
        .map((canvas) => {
        const { width, height } = canvas.getBoundingClientRect();
        return [width / innerWidth, height];
    })"""
    for name, selector in (("maps", ".stage canvas.cloud"), ("hardness", ".stage .trained canvas")):
        page = open_lesson(name, "?present=1")
        for width, height in SCREENS:
            page.set_viewport_size({"width": width, "height": height})
            for slide in slides_of(page):
                case = (name, width, height, slide["kind"])
                if slide["kind"] == "formula":
                    continue  # its text needs more room
                page.evaluate("""kind => {
                    const { presentation } = lesson;
                    presentation.slide = presentation.slides.findLastIndex((slide) => slide.kind === kind);
                    presentation.show();
                }""", slide["kind"])
                for across, high in page.evaluate(sizes, selector):
                    assert across >= LEAST_MAP if name == "maps" else high >= LEAST_SMALL_MAP, (case, across, high)


def test_the_live_map_has_letters_for_the_last_row(open_lesson: Open) -> None:
    page = open_lesson("maps")
    page.evaluate("""() => {
        const { fillText } = CanvasRenderingContext2D.prototype;
        CanvasRenderingContext2D.prototype.fillText = function (...rest) {
            const shown = parseFloat(this.font.match(/[\\d.]+px/)[0]) * this.getTransform().a / this.canvas.width;
            this.canvas.letters = shown * this.canvas.getBoundingClientRect().width;
            return fillText.apply(this, rest);
        };
    }""")
    for width, height in SCREENS:
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate("""() => {
            const { presentation } = window.lesson;
            presentation.set(true);
            presentation.slide = presentation.slides.findIndex(({ kind }) => kind === "more");
            presentation.show();
        }""")
        page.wait_for_function("""() => [...document.querySelectorAll(".second canvas")].every((canvas) =>
            canvas.letters >= 28 - 0.01)""")


def test_a_lesson_has_at_most_eight_slides_and_each_shows_a_picture(context: BrowserContext, exported: Path) -> None:
    page = context.new_page()
    for lesson in course():
        counts = set()
        for language in ("en", *translations()):
            page.goto(f"{(exported / lesson.id).as_uri()}.html?present=1&language={language}")
            page.wait_for_selector(".lesson[data-drawn]")
            slides = page.evaluate("window.lesson.presentation.slides")
            assert len(slides) <= MOST_SLIDES, lesson.id
            assert {slide["kind"] for slide in slides} <= {*PICTURES, "more"}
            shown = [slide.get("text", "") for slide in slides]
            assert not [text for text in shown if "undefined" in text]
            counts.add(tuple(page.evaluate("""() => {
                const { touch, see, fails, more } = lesson.lesson;
                return [touch, see, fails, more?.words ?? ""].map((text) => text.split(/(?<=[.!?])\\s+/).length);
            }""")))
        assert len(counts) == 1, (lesson.id, counts)  # slides name sentences by their number


def test_keys_lead_through_the_slides_and_out(open_lesson: Open) -> None:
    page = open_lesson("epsilon")
    page.get_by_role("button", name="Skip the question").click()
    page.get_by_role("button", name="Present").click()
    lesson = page.locator(".lesson")
    kinds = page.evaluate("window.lesson.presentation.slides.map(({ kind }) => kind)")
    assert kinds[0] == "predict"
    assert kinds[-3:] == ["fails", "check", "takeaway"]
    for kind, key in zip(kinds, ("ArrowRight", " ", "Enter", "PageDown") * 4, strict=False):
        expect(lesson).to_have_attribute("data-slide", kind)
        if kind != "takeaway":
            page.keyboard.press(key)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("PageUp")
    expect(lesson).to_have_attribute("data-slide", "fails")
    expect(page.get_by_role("heading", name="Check yourself")).to_be_hidden()
    page.keyboard.press("Home")
    expect(lesson).to_have_attribute("data-slide", "predict")
    page.keyboard.press("End")
    expect(lesson).to_have_attribute("data-slide", "takeaway")
    page.get_by_role("button", name="Previous slide").click()
    expect(lesson).to_have_attribute("data-slide", "check")
    page.keyboard.press("Escape")
    for name in ("Takeaway", "Check yourself", "When it fails", "The formula, with your numbers"):
        expect(page.get_by_role("heading", name=name)).to_be_visible()
    assert "present" not in page.url
    assert page.evaluate("document.querySelector('.stage').getAttribute('style')") in (None, "")
    for place, part in ((".explain", ".formula"), (".end", ".takeaway"), (".end", ".question")):
        assert page.evaluate("([place, part]) => document.querySelector(`${place} ${part}`) !== null", [place, part])


def test_the_list_of_keys_holds_the_slide(open_lesson: Open) -> None:
    page = open_lesson("epsilon", "?present=1")
    page.evaluate("document.addEventListener('keydown', ({ key }) => { window.leaked = key; })")
    keys = page.get_by_role("dialog", name="Keys")
    page.keyboard.press("?")
    expect(keys).to_contain_text("next slide")
    page.keyboard.press("ArrowRight")
    expect(keys).to_be_hidden()
    expect(page.locator(".lesson")).to_have_attribute("data-slide", "predict")
    page.keyboard.press("?")
    page.keyboard.press("Escape")
    expect(page.locator(".lesson.present")).to_be_visible()
    assert page.evaluate("window.leaked") is None  # the app has keys of its own


def test_a_key_blanks_the_screen_and_any_key_shows_the_slide_again(open_lesson: Open) -> None:
    page = open_lesson("epsilon", "?present=1")
    blank = page.locator(".slide-blank")
    expect(page.locator(".hint")).to_contain_text("B blank")
    for key in ("b", "."):
        page.keyboard.press(key)
        expect(blank).to_be_visible()
        assert page.evaluate("""() => {
            const { left, top, right, bottom } = document.querySelector(".slide-blank").getBoundingClientRect();
            return document.elementFromPoint(20, 20).className === "slide-blank" && left <= 0 && top <= 0
                && right >= innerWidth && bottom >= innerHeight;
        }""")
        page.keyboard.press("ArrowRight")
        expect(blank).to_be_hidden()
        expect(page.locator(".lesson")).to_have_attribute("data-slide", "predict")
    page.keyboard.press("B")
    blank.click()
    expect(blank).to_be_hidden()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("blank the screen")


def test_the_last_slide_stays_until_the_next_lesson_is_asked_for(open_lesson: Open) -> None:
    page = open_lesson("epsilon", "?present=1")
    page.keyboard.press("End")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".slide-end")).to_contain_text("The next lesson is “Cosine or flat?”")
    page.keyboard.press("Enter")
    page.wait_for_url("**/flat.html?present=1")
    expect(page.locator(".lesson.present")).to_have_attribute("data-slide", "predict")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".lesson.present")).to_have_attribute("data-slide", "predict")
    page = open_lesson(course()[-1].id, "?present=1")
    page.keyboard.press("End")
    expect(page.locator(".slide-end")).to_contain_text("This was the last lesson")
    page.keyboard.press("Enter")
    expect(page.locator(".lesson")).to_have_attribute("data-slide", "takeaway")


def test_what_the_teacher_answered_at_home_is_not_presented(open_lesson: Open) -> None:
    page = open_lesson("epsilon")
    page.get_by_label("Fewer, larger clusters").check()
    page.locator(".end .question input").first.check()
    page.get_by_role("button", name="Present").click()
    for slide in ("Home", "End"):
        page.keyboard.press(slide)
        if slide == "End":
            page.keyboard.press("ArrowLeft")
        expect(page.locator(".question:visible input:checked")).to_have_count(0)
        expect(page.locator(".because:visible")).to_have_count(0)
    page.keyboard.press("Home")
    page.get_by_label("More, smaller clusters").check()
    expect(page.locator(".because:visible")).to_contain_text("✕")
    page.keyboard.press("Escape")
    expect(page.get_by_label("Fewer, larger clusters")).to_be_checked()
    page.reload()
    expect(page.get_by_label("Fewer, larger clusters")).to_be_checked()


def test_a_class_that_answers_reads_the_explanation(open_lesson: Open) -> None:
    for width, height in ((1400, 900), (1024, 768)):
        for name in ("maps", "better", "hardness"):
            page = open_lesson(name, "?present=1")
            page.set_viewport_size({"width": width, "height": height})
            page.locator(".question:visible input").first.check()
            expect(page.locator(".because").first).not_to_be_empty()
            page.evaluate("new Promise(requestAnimationFrame)")
            bottom = page.evaluate("document.querySelector('.because').getBoundingClientRect().bottom")
            assert bottom <= page.evaluate("document.querySelector('.hint').getBoundingClientRect().top"), (name, width)
            size = page.evaluate("parseFloat(getComputedStyle(document.querySelector('.question input')).width)")
            assert size >= 20, (name, width)


def test_names_come_before_the_question_and_controls_with_what_to_do(open_lesson: Open) -> None:
    page = open_lesson("triplets", "?present=1")
    slides = page.evaluate("window.lesson.presentation.slides")
    assert [slide["kind"] for slide in slides][:3] == ["meet", "predict", "do"]
    assert "A is the anchor" in slides[0]["text"]
    for kind in ("do", "fails"):
        while page.locator(".lesson").get_attribute("data-slide") != kind:
            page.keyboard.press("ArrowRight")
        for part in (".step", ".controls", ".stage", ".readout"):
            expect(page.locator(part).first).to_be_visible()


LOOSE = """() => {
    const root = document.querySelector(".formula");
    const lines = (part) => new Set([...part.getClientRects()].map(({ bottom }) => Math.round(bottom / 8))).size;
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    const loose = [];
    while (walker.nextNode()) {
        const { data, parentElement, previousSibling } = walker.currentNode;
        if (parentElement.closest("math")) continue;
        const follows = previousSibling?.localName === "math" || previousSibling?.className === "bound";
        if (follows && parentElement.className !== "bound" && /^[.,;:)]/.test(data)) loose.push(data.slice(0, 20));
        if (/ = /.test(data)) loose.push(data);
    }
    for (const math of root.querySelectorAll("math")) {
        const next = math.nextElementSibling;
        const isBroken = next?.localName === "math" && next.textContent.trim().startsWith("=");
        if (isBroken && math.textContent.trim().length < 4) loose.push(math.textContent);
    }
    for (const bound of root.querySelectorAll(".bound")) {
        const [math] = bound.children;
        const range = document.createRange();
        range.selectNodeContents(bound.lastChild);
        const [sign, formula] = [range.getBoundingClientRect(), math.getBoundingClientRect()];
        if (sign.width && (sign.top > formula.bottom || sign.left < formula.right - 2)) loose.push(bound.textContent);
        if (sign.right > root.getBoundingClientRect().right + 1) loose.push(`${bound.textContent} is cut`);
    }
    return loose;
}"""


@pytest.mark.parametrize("name", ["hardness", "flat", "collapse", "better"])
def test_no_line_of_a_formula_begins_with_the_sign_that_ends_it(open_lesson: Open, name: str) -> None:
    for language in ("en", *translations()):
        page = open_lesson(name, f"?present=1&language={language}")
        for width, height in SCREENS[:2]:
            page.set_viewport_size({"width": width, "height": height})
            page.evaluate("""() => {
                const { presentation } = lesson;
                presentation.slide = presentation.slides.findIndex(({ kind }) => kind === "formula");
                presentation.answers = { before: 0 };
                presentation.show();
            }""")
            assert not page.evaluate(LOOSE), (language, width)


@pytest.mark.parametrize("name", fast_first(["better", "encoders", "flat", "metric", "epsilon"], 2))
def test_what_a_slide_changed_is_said_in_full(open_lesson: Open, name: str) -> None:
    for language in ("en", *translations()):
        page = open_lesson(name, f"?present=1&language={language}")
        page.set_viewport_size({"width": 1024, "height": 768})
        said = 0
        for _slide in range(page.evaluate("lesson.presentation.slides.length")):
            page.evaluate("lesson.presentation.answers = { before: 0 }")
            cut, words = page.evaluate("""() => {
                const now = document.querySelector(".slide-now");
                return [now.hidden ? 0 : now.scrollWidth - now.clientWidth, now.textContent];
            }""")
            assert cut <= 0, (language, words)
            said += bool(words)
            page.keyboard.press("ArrowRight")
        assert said >= 2, language


def test_a_second_figure_is_presented(open_lesson: Open) -> None:
    page = open_lesson("maps", "?present=1")
    while page.locator(".lesson").get_attribute("data-slide") != "more":
        page.keyboard.press("ArrowRight")
    expect(page.locator(".step")).to_contain_text("Here the truth is known")
    for width, height in SCREENS:
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate("new Promise(requestAnimationFrame)")
        boxes = [canvas.bounding_box() for canvas in page.locator(".second canvas").all()]
        points, one, other = (box for box in boxes if box)
        assert points["height"] + one["height"] >= 0.6 * height, (width, boxes)
        assert points["width"] >= 0.55 * width, (width, boxes)
        assert one["y"] == other["y"], "two maps stand side by side"
        assert one["width"] + other["width"] >= 0.55 * width, (width, boxes)
    expect(page.locator(".figure .slider").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".figure")).to_have_count(1)


def test_slides_scroll_on_a_telephone(open_lesson: Open) -> None:
    page = open_lesson("triplets", "?present=1")
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator(".lesson.narrow")).to_be_visible()
    for _ in range(page.evaluate("window.lesson.presentation.slides.length")):
        boxes = page.evaluate("""() => {
            const parts = document.querySelectorAll(".picture, .question, .step, .controls, .readout, .formula");
            return [...parts].filter((part) => part.getClientRects().length).map((part) => part.getBoundingClientRect())
                .map(({ top, bottom }) => [top, bottom]);
        }""")
        assert all(one[1] <= other[0] + 1 for one, other in pairwise(sorted(boxes))), boxes
        assert page.evaluate("document.querySelector('.lesson').scrollWidth") <= 390
        page.get_by_role("button", name="Next slide").click()


def test_a_presentation_needs_no_answer_and_keeps_none(open_lesson: Open) -> None:
    page = open_lesson("epsilon")
    for part in (".see", ".explain", ".end", ".notes"):
        expect(page.locator(part)).to_be_hidden()
    page.get_by_role("button", name="Present").click()
    expect(page.locator(".controls[inert], .stage[inert]")).to_have_count(0)  # an audience answers aloud
    page.keyboard.press("Escape")
    expect(page.locator(".controls[inert]")).to_have_count(1)
    page.get_by_label("Fewer, larger clusters").check()
    for part in (".see", ".explain", ".end", ".notes"):
        expect(page.locator(part)).to_be_visible()


def test_arrows_turn_slides_and_change_no_answer_and_no_slider(open_lesson: Open) -> None:
    page = open_lesson("epsilon")
    page.get_by_label("Fewer, larger clusters").check()
    page.get_by_role("button", name="Present").click()
    lesson = page.locator(".lesson")
    page.get_by_label("Fewer, larger clusters").focus()
    page.keyboard.press("ArrowRight")
    expect(lesson).to_have_attribute("data-slide", "do")
    page.get_by_role("slider").focus()
    page.keyboard.press("ArrowRight")
    expect(lesson).to_have_attribute("data-slide", "see")
    page.keyboard.press("ArrowLeft")
    expect(lesson).to_have_attribute("data-slide", "do")
    assert page.evaluate("window.lesson.state.epsilon") == 0.65
    page.get_by_role("slider").focus()
    page.keyboard.press("ArrowUp")
    assert page.evaluate("window.lesson.state.epsilon") == 0.66
    page.keyboard.press("Escape")
    expect(page.get_by_label("Fewer, larger clusters")).to_be_checked()


def test_arrows_up_and_down_move_the_first_slider_or_the_one_that_was_used_last(open_lesson: Open) -> None:
    page = open_lesson("flat", "?present=1")
    while page.locator(".lesson").get_attribute("data-slide") != "do":
        page.keyboard.press("ArrowRight")
    state = "[lesson.state.k, Number(lesson.state.threshold.toFixed(2)), lesson.presentation.slide]"
    k, threshold, slide = page.evaluate(state)
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowDown")
    assert page.evaluate(state) == [k + 1, threshold, slide]
    second = page.locator(".controls input[type=range]").nth(1)
    second.focus()
    page.keyboard.press("ArrowDown")
    after = page.evaluate(state)
    assert after[1] < threshold
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("ArrowUp")
    assert page.evaluate(state) == [k + 1, threshold, slide]


def test_keys_press_the_main_button_and_move_the_slider(open_lesson: Open) -> None:
    state = "JSON.stringify(lesson.state)"
    for lesson in course():
        page = open_lesson(lesson.id, "?present=1")
        start = page.evaluate(state)
        page.keyboard.press("s")
        page.keyboard.press("+")
        assert page.evaluate(state) == start, lesson.id  # nothing answers the question
        while page.locator(".lesson").get_attribute("data-slide") != "do":
            page.keyboard.press("ArrowRight")
        has_choice = page.locator(".controls .choice, .stage .main, .stage .choice").count() > 0
        hint = page.locator(".hint")
        expect(hint).to_contain_text("S main button" if has_choice else "+ − slider")
        begun = page.evaluate(state)
        page.keyboard.press("s")
        assert (page.evaluate(state) != begun) == has_choice or lesson.id == "spread", lesson.id  # spread plays
        if page.locator(".controls input[type=range]:visible").count():
            begun = page.evaluate(state)
            page.keyboard.press("+")
            moved = page.evaluate(state)
            page.keyboard.press("-")
            assert moved != begun, lesson.id
            assert page.evaluate(state) == begun or lesson.id == "spread", lesson.id
        page.close()
    page = open_lesson("triplets", "?present=1")
    page.evaluate("lesson.presentation.turn(2)")
    before = page.evaluate("lesson.numbers.value")
    page.keyboard.press("S")
    assert page.evaluate("lesson.numbers.value") < before
    page = open_lesson("hardness", "?present=1")
    page.evaluate("lesson.presentation.turn(1)")
    page.keyboard.press("S")
    assert page.evaluate("lesson.state.epochs") == 1


def test_an_arrow_moves_a_slider_and_no_answer(open_lesson: Open) -> None:
    page = open_lesson("epsilon", "?present=1")
    page.locator(".question:visible input").nth(1).check()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".question:visible input").nth(1)).to_be_checked()


def test_a_handle_is_dragged_on_an_enlarged_picture(open_lesson: Open) -> None:
    page = open_lesson("triplets", "?present=1")
    box = page.locator(".handle").nth(2).bounding_box()
    assert box is not None
    start = page.evaluate("window.lesson.state.negative")
    unit = page.evaluate("""() => {
        const plane = document.querySelector(".plane");
        return plane.getScreenCTM().a * plane.viewBox.baseVal.width / 6;
    }""")
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2 + 60, box["y"] + box["height"] / 2)
    page.mouse.up()
    assert page.evaluate("window.lesson.state.negative")[0] == pytest.approx(start[0] + 60 / unit, abs=0.1)
