"""What lessons print: summary, handout and notes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from tests.tiers import fast_first
from udml_core.results.lessons import Lesson, course

pytestmark = pytest.mark.browser

Open = Callable[..., Page]
LESSONS = [pytest.param(lesson, id=lesson.id) for lesson in course()]
CATCH = """() => {
    const append = Element.prototype.append;
    Element.prototype.append = function (...nodes) {
        append.apply(this, nodes);
        const [frame] = nodes;
        if (frame?.className !== "printed") return;
        frame.contentWindow.print = () => { window.printed = frame.contentDocument.body.innerHTML; };
    };
}"""


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


def test_a_handout_leaves_room_to_write_numbers(open_lesson: Open) -> None:
    body = printed(open_lesson("triplets"), "Print handout")
    assert "<th>loss after one step</th>" in body
    assert body.count("<tr>") == 3
    assert body.count('class="lines"') == 3
