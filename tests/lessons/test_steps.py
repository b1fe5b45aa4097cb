"""The words of each step: of a slide, and of a paragraph beside the figure."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from tests.tiers import fast_first
from udml_core.results.lesson_texts import translations
from udml_core.results.lessons import Lesson, course

pytestmark = pytest.mark.browser

Open = Callable[..., Page]
LESSONS = [pytest.param(lesson, id=lesson.id) for lesson in course()]
MOST_WORDS = {"en": 40, "de": 40, "es": 48}
"""Words of a step by language; formulas, tables and what is folded do not count."""
SLIDES = """() => lesson.presentation.slides.map((slide, at) => {
    lesson.presentation.turn(at - lesson.presentation.slide);
    const step = document.querySelector(".step");
    return [slide.kind, step.offsetParent ? step.innerText.trim() : ""];
})"""
PARAGRAPHS = """() => [".claim", ".touch .do", ".figure .do > span", ".at-part > span", ".see > span > span",
        ".fails > span", ".takeaway"]
    .flatMap((name) => [...document.querySelectorAll(name)].map((part) => [name, part.textContent.trim()]))"""


@pytest.mark.parametrize("lesson", fast_first(LESSONS, 3))
def test_no_step_has_more_than_forty_words(open_lesson: Open, lesson: Lesson) -> None:
    for language in ("en", *translations()):
        page = open_lesson(lesson.id, f"?language={language}&present=1")
        steps = [(kind, text) for kind, text in page.evaluate(SLIDES) if text]
        assert len(steps) >= 4  # touch, what to see, and when it fails
        page.keyboard.press("Escape")
        page.evaluate("lesson.keep('before', lesson.lesson.before.right)")
        paragraphs = page.evaluate(PARAGRAPHS)
        assert {name for name, _text in paragraphs} >= {".claim", ".touch .do", ".see > span > span", ".fails > span"}
        shown = " ".join(text for name, text in paragraphs if name in {".at-part > span", ".see > span > span"})
        see = page.evaluate("sentences => sentences.map((html) => Object.assign(document.createElement('p'), "
                            "{ innerHTML: html }).textContent)", page.evaluate(
                                r"lesson.lesson.see.split(/(?<=[.!?])\s+/)"))
        assert not [sentence for sentence in see if sentence not in shown]  # no sentence is lost between paragraphs
        long = [(name, len(text.split()), text) for name, text in (*steps, *paragraphs)
                if len(text.split()) > MOST_WORDS[language]]
        assert not long, (language, long)
        page.evaluate("localStorage.clear()")
