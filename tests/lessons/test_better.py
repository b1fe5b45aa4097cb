"""The lesson on judging without labels against SciPy, the second opinion and its record."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect
from scipy import stats

from experiments.lessons.better import better, embeddings
from experiments.make_lessons import encoded
from udml_core.base.paths import ASSETS
from udml_core.data import catalog
from udml_core.exploration.lesson_examples import digits_vectors
from udml_core.numerics.evaluation import recall_at_k
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.second_opinion import Judge, judge_rankings
from udml_core.results.lessons import FOLDER

STORED = json.loads((FOLDER / "better.json").read_text(encoding="utf-8"))
COMPARISONS = ("joined", "noise", "nothing")


@pytest.mark.slow
def test_the_stored_file_is_what_the_command_computes() -> None:
    assert json.loads(json.dumps(encoded(better()))) == STORED


def test_the_verdict_on_all_images_is_the_second_opinion_s() -> None:
    labels, judge = np.asarray(catalog.load("digits").labels), Judge.of(digits_vectors())
    for name, (before, after) in embeddings().items():
        rankings = [nearest(space, 1)[1] for space in (before, after)]
        opinion = judge_rankings(judge, np.arange(len(labels)), *rankings).first_results
        assert (opinion.difference, opinion.error) == pytest.approx(
            (STORED[name]["difference"], STORED[name]["error"]), rel=1e-3)
        assert STORED[name]["recall"] == pytest.approx(
            [100 * recall_at_k(space, labels, (1,))[1] for space in (before, after)], abs=0.1)


def test_the_counts_are_the_record_s_and_the_text_s() -> None:
    totals = json.loads((ASSETS / "results" / "second-opinion.json").read_text(encoding="utf-8"))["totals in the app"]
    for name, values in STORED["record"].items():
        assert values == {key: totals[name][key] for key in values}
        assert values["right"] / values["decided"] > 0.95
        assert values["false better"] == 0


@pytest.mark.browser
@pytest.mark.parametrize(("successes", "count"), [(7, 10), (0, 5), (12, 12), (96, 200)])
def test_the_interval_is_scipy_s(open_lesson: Callable[..., Page], successes: int, count: int) -> None:
    shown = open_lesson("better").evaluate("pair => lesson.lesson.interval(...pair)",
                                           [successes, count])
    expected = stats.binomtest(successes, count).proportion_ci(method="wilson")
    assert shown == pytest.approx([expected.low, expected.high], abs=1e-4)


def test_seven_of_ten_is_what_the_question_says() -> None:
    interval = stats.binomtest(7, 10).proportion_ci(method="wilson")
    assert (round(100 * interval.low), round(100 * interval.high)) == (40, 89)
    assert 1 / stats.binom.sf(6, 10, 0.5) == pytest.approx(6, abs=0.3)


@pytest.mark.browser
def test_the_second_opinion_tells_what_the_labels_say(compute: Callable[..., Any]) -> None:
    verdicts = {name: compute("better", {"comparison": name, "asked": 200}) for name in COMPARISONS}
    assert [verdicts[name]["opinion"]["verdict"] for name in COMPARISONS] == ["better", "worse", "cannot tell"]
    assert [verdicts[name]["wholeVerdict"] for name in COMPARISONS] == ["better", "worse", "cannot tell"]
    gains = [shown["recall"][1] - shown["recall"][0] for shown in verdicts.values()]
    assert gains[0] > 30
    assert gains[1] < -5
    assert abs(gains[2]) < 1


@pytest.mark.browser
def test_judgments_are_blind_and_labels_come_after_them(open_lesson: Callable[..., Page]) -> None:
    page = open_lesson("better")
    page.click(".skip")
    left = page.evaluate("lesson.lesson.isLeft")
    assert 80 < sum(left) < 120
    for pair in range(5):
        expect(page.locator(".readout")).to_contain_text("after 5 judgments")
        page.get_by_role("button", name=f"The {'left' if left[pair] else 'right'} result").press("Enter")
    assert page.evaluate("lesson.numbers.own") | {"interval": 0} == {
        "after": 5, "count": 5, "interval": 0, "verdict": "better"}
    expect(page.locator(".readout")).to_contain_text("61.4 → 95.7 %")
    page.get_by_role("button", name="Equal").press("Enter")
    assert page.evaluate("[lesson.numbers.own.count, lesson.numbers.pair]") == [5, 6]
    page.wait_for_url("**judged=**")
