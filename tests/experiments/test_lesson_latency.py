"""The times of lessons: which lessons a record has, and that each lesson can be timed."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from playwright.sync_api import Browser

from experiments import lesson_latency
from tests.tiers import fast_first
from udml_core.base.paths import ASSETS
from udml_core.results.lessons import Lesson, course, lesson_file
from udml_core.results.records import findings

RECORD = ASSETS / "results" / "lessons.json"


def test_a_new_record_has_a_row_for_every_lesson(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lesson_latency, "measure", lambda *_: {"answer": 0.0})
    monkeypatch.setattr(lesson_latency, "serving", lambda *_: _Opened(("", None)))
    monkeypatch.setattr(lesson_latency, "sync_playwright", lambda: _Opened(_Playwright()))
    monkeypatch.setattr("sys.argv", ["lesson_latency", "--out", str(tmp_path / "lessons.json")])
    lesson_latency.main()
    rows = json.loads((tmp_path / "lessons.json").read_text())["datasets"]["Lessons"]["rows"]
    assert list(rows) == [f"{lesson.number}. {lesson.title}" for lesson in course()]


def test_the_stored_record_has_every_lesson_and_its_summary_states_its_figures() -> None:
    """A record of an earlier date may have former titles."""
    rows = json.loads(RECORD.read_text())["datasets"]["Lessons"]["rows"]
    assert [row.partition(".")[0] for row in rows] == [str(lesson.number) for lesson in course()]
    text = " ".join(next(finding.text for finding in findings() if finding.name == "lessons").split())

    def span(column: str) -> tuple[float, float]:
        values = [row[column] for row in rows.values()]
        return min(values), max(values)

    (fast, slow), (disk, far_disk), (app, far_app) = map(span, ("answer", "picture from disk", "picture in the app"))
    assert far_app < 1500
    for claim in (f"within {span('slowest answer')[1]:.0f} ms at most", f"{fast:.0f} to {slow:.0f} ms in the median",
                  f"From disk the picture stands after {disk / 1000:.2f} to {far_disk / 1000:.2f} s",
                  f"in the app after {app / 1000:.2f} to {far_app / 1000:.2f} s",
                  f"all {len(rows)} lessons meet the goal of 1.5 s"):
        assert claim in text


@pytest.mark.browser
@pytest.mark.parametrize("lesson", fast_first([pytest.param(lesson, id=lesson.id) for lesson in course()]))
def test_every_lesson_answers_the_keys_that_are_timed(lesson: Lesson, browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / f"{lesson.id}.html"
    file.write_bytes(lesson_file(lesson))
    drawn, answers = lesson_latency.visit(browser, file.as_uri())
    assert drawn > 0
    assert len(answers) == lesson_latency.KEYS


class _Opened:
    """A context that gives a value."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __enter__(self) -> object:
        return self.value

    def __exit__(self, *_: object) -> None:
        pass


class _Playwright:
    """A browser that opens no page."""

    chromium = SimpleNamespace(launch=lambda **_: SimpleNamespace(close=lambda: None))
