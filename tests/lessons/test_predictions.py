"""Predictions: nothing gives the answer away before it, and after it the picture shows the case of the question."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.lessons.test_print import printed
from udml_core.results.lessons import Lesson, course

pytestmark = pytest.mark.browser

Open = Callable[..., Page]
LESSONS = [pytest.param(lesson, id=lesson.id) for lesson in course()]
HIDDEN = {"encoders": [".stage .plane text.later"], "better": [".stage .plane"],
          "epsilon": [".stage [role=group].later", ".stage details"], "flat": [".stage .plane path.later"],
          "collapse": [".stage .chart:not(canvas + svg)"], "hardness": []}
"""Parts of the picture that would answer the question, by lesson."""
READOUT = "[...document.querySelectorAll('.readout dd')].map((part) => part.textContent).join('|')"


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_answer_appears_with_the_answer_and_moves_the_picture(open_lesson: Open, lesson: Lesson) -> None:
    page = open_lesson(lesson.id)
    expect(page.locator(".readout")).to_be_hidden()
    for part in HIDDEN.get(lesson.id, []):
        assert page.locator(part).count(), part
        for at in range(page.locator(part).count()):
            expect(page.locator(part).nth(at)).to_be_hidden()
    before = page.evaluate(READOUT)
    moves = page.get_by_text("Answer first; then the picture moves.").is_visible()
    assert moves == bool(page.evaluate("Boolean(lesson.lesson.before.shows)"))
    page.locator(".question input").first.check()
    expect(page.locator(".readout")).to_be_visible()
    for part in HIDDEN.get(lesson.id, []):
        expect(page.locator(part).first).to_be_visible()
    assert (page.evaluate(READOUT) != before) == moves
    case = page.evaluate("({ ...lesson.state })")
    page.reload()  # the explanation of the answer is shown again, and so is the case that it describes
    page.wait_for_selector(".lesson[data-drawn]")
    assert page.evaluate("({ ...lesson.state })") == case
    page.get_by_role("button", name="Present").click()
    assert page.evaluate("JSON.stringify(lesson.state) === JSON.stringify(lesson.start)")
    expect(page.locator(".readout")).to_be_hidden()


def test_the_predicted_cases_are_named_by_their_lessons(open_lesson: Open) -> None:
    wanted = {"metric": "numbers.recall === 1", "spread": "numbers.wrong.length > 2",
              "instances": "state.temperature === 1",
              "collapse": "numbers.runs[1].loss < numbers.runs[0].loss && numbers.size === 30",
              "encoders": "numbers.recalls[2] > 0.9", "reranking": "state.k === 10 && state.times === '2'",
              "flat": "numbers.fromA.across < 0.01 && numbers.similarity > 0.65", "maps": "numbers.value === 2"}
    for name, case in wanted.items():
        page = open_lesson(name)
        holds = f"(({{ numbers, state }}) => {case})(lesson)"
        assert not page.evaluate(holds), name
        page.locator(".question input").first.check()
        assert page.evaluate(holds), name
        page.close()


def test_both_projections_and_both_vectors_are_equal_at_the_start(open_lesson: Open) -> None:
    runs = open_lesson("collapse").evaluate("lesson.numbers.runs.map(({ recall, loss, rank }) => [recall, loss, rank])")
    assert runs[0] == runs[1]
    recalls = open_lesson("encoders").evaluate("lesson.numbers.recalls")
    assert recalls[2] == recalls[0]


def test_an_address_goes_before_the_case_of_the_question(open_lesson: Open) -> None:
    page = open_lesson("maps")
    page.locator(".question input").first.check()
    again = open_lesson("maps", "?points=digits")
    assert again.evaluate("[lesson.state.points, lesson.state.size]") == ["digits", 2]


@pytest.mark.parametrize("name", ["better", "flat", "maps"])
def test_a_handout_prints_no_part_that_waits_for_the_answer(open_lesson: Open, name: str) -> None:
    page = open_lesson(name)
    page.locator(".question input").first.check()
    body = printed(page, "Print handout")
    assert 'class="picture"' in body
    assert "later" not in body


@pytest.mark.parametrize("name", ["better", "triplets"])
def test_no_line_breaks_between_a_number_and_its_sign(open_lesson: Open, name: str) -> None:
    for language in ("en", "de"):
        page = open_lesson(name, f"?language={language}&loss=angle")
        page.locator(".question input").first.check()
        text = page.evaluate("document.querySelector('.lesson').textContent")
        assert "4·tan2(α)·δ2(N,M)" in text.replace(" ", "") or name == "better"
        assert not re.search(r"\d %", text)  # with a space that may break
        assert name == "triplets" or re.search("\\d\N{NO-BREAK SPACE}%", text)
