"""The course's guide: glossary, plans and what each lesson builds on."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.project.test_language import phrases_in
from udml_core.numerics.refinement.ranking_measures import retrieval_measures
from udml_core.results.lessons import course, course_guide, index_file, read_answers, record_links

KNOWN = {lesson.id: lesson for lesson in course()}
TERMS = 48
DISCUSSION = 5
"""Minutes that a plan has for each lesson beside the time that a reader needs alone."""


def test_the_glossary_has_terms_of_lessons_that_use_them() -> None:
    terms = course_guide()["terms"]
    names = [entry["term"] for entry in terms]
    assert len(names) == TERMS
    assert names == sorted(set(names), key=str.casefold)
    for entry in terms:
        script = KNOWN[entry["lesson"]].script
        assert re.search(rf"(?<!\w){re.escape(entry['term'])}", script, re.IGNORECASE), entry["term"]
        assert entry["meaning"].endswith(".")
        assert not phrases_in(entry["meaning"])


def test_plans_last_as_long_as_they_say_and_keep_the_order() -> None:
    guide = course_guide()
    assert [plan["minutes"] for plan in guide["plans"]] == [45, 90, 225]
    assert {step["lesson"] for step in guide["plans"][2]["steps"]} - {None} == set(KNOWN)  # five weeks for all
    for plan in guide["plans"]:
        assert sum(step["minutes"] for step in plan["steps"]) == plan["minutes"]
        planned = [step["lesson"] for step in plan["steps"] if step["lesson"]]
        for step in plan["steps"]:
            assert step["lesson"] is None or step["minutes"] >= KNOWN[step["lesson"]].minutes + DISCUSSION
        for at, lesson in enumerate(planned):  # whatever a lesson builds on comes before it
            assert set(guide["needs"][lesson]) <= set(planned[:at])
    short = {step["lesson"] for plan in guide["plans"][:2] for step in plan["steps"]}
    needed = {other for needs in guide["needs"].values() for other in needs}
    assert needed <= short  # what the text says of lessons that the short plans leave out
    assert set(guide["needs"]) == set(KNOWN)
    (judging,) = (step["words"] for step in guide["plans"][1]["steps"] if step["lesson"] == "better")
    assert "Do not add up all judgments" in judging  # students who see equal pairs are no independent sample
    for lesson, needs in guide["needs"].items():
        assert all(KNOWN[other].number < KNOWN[lesson].number for other in needs)


@pytest.mark.browser
def test_no_plan_has_two_signs_at_the_end_of_a_title(open_lesson: Callable[..., Page]) -> None:
    for language in ("en", "de", "es"):
        page = open_lesson("index", f"?language={language}")
        assert not re.search(r"[?!]\.", page.evaluate("document.querySelector('.course').textContent"))


@pytest.mark.browser
def test_an_exported_lesson_says_how_to_get_the_program(open_lesson: Callable[..., Page]) -> None:
    page = open_lesson("epsilon")
    page.click(".skip")
    page.get_by_role("link", name="Try it on your data").click()
    page.wait_for_url("**/index.html#program")
    expect(page.locator("#program pre")).to_contain_text("pip install .")
    expect(page.locator("#program pre")).to_be_visible()


def test_map_at_r_is_described_as_it_is_computed() -> None:
    (meaning,) = (entry["meaning"] for entry in course_guide()["terms"] if entry["term"] == "MAP@R")
    assert "precisions at the hits among the first R results, divided by R" in meaning
    labels, ranking = np.array([1, 0, 1, 1, 0]), np.array([[0, 1, 2, 3, 4]])
    hits = labels[ranking[0]] == 1
    count = hits.sum()
    precisions = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    expected = 100 * (precisions * hits)[:count].sum() / count
    assert retrieval_measures(ranking, np.array([1]), labels, inside=False)["map@r"] == pytest.approx(expected)


@pytest.mark.browser
def test_glossary_and_plans_lead_to_lessons(open_lesson: Callable[..., Page]) -> None:
    page = open_lesson("index")
    page.get_by_text("Plans for 45 and 90 minutes and for five weeks").click()
    expect(page.get_by_role("heading", name="90 minutes")).to_be_visible()
    page.get_by_text(f"Glossary: {TERMS} terms").click()
    expect(page.locator(".terms dt")).to_have_count(TERMS)
    page.locator(".terms").get_by_role("link", name="Collapse").first.click()
    page.wait_for_url("**/collapse.html")
    expect(page.get_by_text("Builds on: Triplets and margin")).to_be_visible()
    page.get_by_role("button", name="Skip the question").click()
    page.get_by_text("Terms of this lesson").click()
    expect(page.locator(".terms dt", has_text="effective rank")).to_be_visible()
    page.get_by_role("link", name="All terms").click()
    page.wait_for_url("**/index.html#glossary")
    expect(page.locator(".terms dt", has_text="whitening")).to_have_count(0)
    expect(page.locator(".terms dt", has_text="anchor")).to_be_visible()


@pytest.mark.browser
def test_links_carry_the_figure_s_state_and_the_answers(open_lesson: Callable[..., Page], tmp_path: Path) -> None:
    page = open_lesson("epsilon")
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")  # a page may not copy
    page.get_by_label("Fewer, larger clusters").check()
    page.get_by_role("slider").focus()
    page.keyboard.press("ArrowRight")
    page.get_by_role("button", name="Copy link").click()
    link = page.get_by_label("Link", exact=True).input_value()
    assert "epsilon=0.31" in link
    course_page = open_lesson("index")
    course_page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    course_page.get_by_role("button", name="Copy link with my answers").click()
    answers = course_page.get_by_label("Link", exact=True).input_value()
    assert answers.endswith(":epsilon.0.-")
    assert record_links(tmp_path, answers) == 1
    with_tasks = index_file().decode().replace('"heading": true', '"heading": true, "solved": ["metric", "epsilon"]')
    course_page.set_content(with_tasks)
    course_page.get_by_role("button", name="Copy link with my answers").click()
    solved = course_page.get_by_label("Link", exact=True).input_value()
    assert solved.endswith(":epsilon.0.-.1,metric.-.-.1")
    assert record_links(tmp_path, solved) == 3
    assert read_answers(tmp_path) == {("epsilon", "before"): {0: 1}} | {
        (lesson, "task"): {1: 1} for lesson in ("epsilon", "metric")}
