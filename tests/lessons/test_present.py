"""A presented lesson on the screens of projectors, and its keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.tiers import fast_first
from udml_core.results.lessons import Lesson, course

pytestmark = pytest.mark.browser

Open = Callable[..., Page]
LESSONS = [pytest.param(lesson, id=lesson.id) for lesson in course()]
SCREENS = [(1024, 768), (1280, 720), (1920, 1080)]
LEAST_TEXT, LEAST_CHART = 24, 16.5  # pixels; letters of a picture grow its height, so 18 is met but for a rounded step

MEASURE = """() => {
    const root = document.querySelector(".lesson");
    const stage = document.querySelector(".stage").getBoundingClientRect();
    const hint = document.querySelector(".hint").getBoundingClientRect();
    const letters = { text: Infinity, chart: Infinity };
    let covered = "";
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const part = walker.currentNode.parentElement;
        if (!walker.currentNode.textContent.trim() || part.closest(".hint, math")) continue;
        if (!part.getClientRects().length) continue;
        const scale = Number(getComputedStyle(part).getPropertyValue("--scale")) || 1;
        const drawn = part.closest("svg") ? part.getScreenCTM().a : part.closest(".stage") ? scale : 1;
        const kind = part.closest(".stage") ? "chart" : "text";
        letters[kind] = Math.min(letters[kind], parseFloat(getComputedStyle(part).fontSize) * drawn);
        const box = part.getBoundingClientRect();
        const isBehind = box.bottom > hint.top + 6 && box.right > hint.left;
        if (kind === "text" && isBehind) covered += walker.currentNode.textContent;
    }
    return { ...letters, covered, kind: root.dataset.slide, stage: stage.height / innerHeight,
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
            presentation.show();
        }""", slide)
        measured.append(page.evaluate(MEASURE))
    return measured


@pytest.mark.parametrize("lesson", fast_first(LESSONS, 2))
def test_every_slide_fits_a_projector_and_is_read_from_the_last_row(open_lesson: Open, lesson: Lesson) -> None:
    for language in ("en", "de"):  # German words are longer
        page = open_lesson(lesson.id, f"?present=1&language={language}")
        for width, height in SCREENS:
            page.set_viewport_size({"width": width, "height": height})
            slides = slides_of(page)
            assert slides[0]["kind"] == "predict"
            for slide in slides:
                case = (language, width, height, slide)
                assert max(slide["over"]) <= 0, case
                assert slide["text"] >= LEAST_TEXT, case
                assert not slide["covered"], case
                if slide["kind"] in ("do", "see"):
                    assert slide["stage"] >= 0.68, case
                    assert slide["chart"] >= LEAST_CHART, case
                    assert slide["words"] <= 45, case  # whole sentences


def test_keys_lead_through_the_slides_and_out(open_lesson: Open) -> None:
    page = open_lesson("epsilon")
    page.get_by_role("button", name="Skip the question").click()
    page.get_by_role("button", name="Present").click()
    lesson = page.locator(".lesson")
    kinds = page.evaluate("window.lesson.presentation.slides.map(({ kind }) => kind)")
    assert kinds[0] == "predict"
    assert kinds[-4:] == ["formula", "fails", "takeaway", "check"]
    for kind in kinds:
        expect(lesson).to_have_attribute("data-slide", kind)
        if kind != "check":
            page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    expect(lesson).to_have_attribute("data-slide", "takeaway")
    expect(page.get_by_role("heading", name="Check yourself")).to_be_hidden()
    page.keyboard.press("Escape")
    for name in ("Takeaway", "Check yourself", "When it fails"):
        expect(page.get_by_role("heading", name=name)).to_be_visible()
    assert "present" not in page.url
    assert page.evaluate("document.querySelector('.stage').getAttribute('style')") in (None, "")


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
    page.keyboard.press("ArrowRight")
    page.get_by_role("slider").focus()
    page.keyboard.press("ArrowRight")
    expect(lesson).to_have_attribute("data-slide", "see")
    page.keyboard.press("ArrowLeft")
    expect(lesson).to_have_attribute("data-slide", "try")
    assert page.evaluate("window.lesson.state.epsilon") == 0.3
    page.get_by_role("slider").focus()
    page.keyboard.press("ArrowUp")
    assert page.evaluate("window.lesson.state.epsilon") == 0.31
    page.keyboard.press("Escape")
    expect(page.get_by_label("Fewer, larger clusters")).to_be_checked()


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
