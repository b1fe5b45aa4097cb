"""The lesson on seeds against NumPy and a repeated run."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page
from scipy import stats

from experiments.lessons.seeds import FIRST, OTHERS, SEEDS_A, SEEDS_B, recall

pytestmark = pytest.mark.browser


@pytest.fixture
def runs(open_lesson: Callable[..., Page]) -> dict[str, Any]:
    """Return the stored values of A and, by comparison, of B."""
    page = open_lesson("seeds")
    stored = page.evaluate("""() => Object.fromEntries(Object.entries(
        { a: lesson.data.seeds.a, ...lesson.data.seeds.b }).map(([name, part]) => [name, Array.from(part)]))""")
    return {name: np.array(values) for name, values in stored.items()}


def test_a_repeated_run_gives_the_stored_value(runs: dict[str, Any]) -> None:
    assert recall(FIRST, SEEDS_A[3]) == pytest.approx(runs["a"][3], abs=1e-4)
    assert recall(OTHERS["width"], SEEDS_B[-1]) == pytest.approx(runs["width"][-1], abs=1e-4)


def test_means_deviations_and_standard_errors_are_numpy_s(compute: Callable[..., Any], runs: dict[str, Any]) -> None:
    for comparison, n, draw in (("nothing", 3, 3), ("angle", 5, 7), ("width", 2, 0)):
        shown = compute("seeds", {"comparison": comparison, "n": n, "draw": draw})
        a, b = runs["a"][shown["runsA"]], runs[comparison][shown["runsB"]]
        assert len(set(shown["runsA"])) == len(set(shown["runsB"])) == n
        assert (shown["meanA"], shown["meanB"]) == pytest.approx((a.mean(), b.mean()))
        assert (shown["deviationA"], shown["deviationB"]) == pytest.approx((a.std(ddof=1), b.std(ddof=1)))
        assert shown["gain"] == pytest.approx(b.mean() - a.mean())
        assert shown["error"] == pytest.approx(np.sqrt(a.var(ddof=1) / n + b.var(ddof=1) / n))
    assert compute("seeds", {"n": 1})["error"] is None


def test_the_shares_of_all_draws_are_counted(compute: Callable[..., Any], runs: dict[str, Any]) -> None:
    for comparison, n in (("nothing", 3), ("angle", 2), ("width", 1)):
        shown = compute("seeds", {"comparison": comparison, "n": n}, "n => ({ ...n, gains: [...n.gains] })")
        means = [np.array(list(product(values, repeat=n))).mean(axis=1) for values in (runs["a"], runs[comparison])]
        gains = np.subtract.outer(means[1], means[0]).ravel()
        assert shown["aheadA"] == pytest.approx((gains < -1e-3).mean())
        assert shown["aheadB"] == pytest.approx((gains > 1e-3).mean())
        bins, counts = np.unique(np.floor(gains / 0.2 + 1e-3).astype(int), return_counts=True)
        assert [bin for bin, _ in sorted(shown["gains"])] == bins.tolist()
        assert [chance for _, chance in sorted(shown["gains"])] == pytest.approx((counts / len(gains)).tolist())


def test_ten_runs_of_equal_settings_are_not_certain(compute: Callable[..., Any], runs: dict[str, Any]) -> None:
    """Drawn without putting back, ten of ten runs were one draw: "A ahead: 100 %"."""
    shown = compute("seeds", {"comparison": "nothing", "n": 10})
    draws = np.random.default_rng(0).integers(10, size=(2, 20_000, 10))
    gains = runs["nothing"][draws[1]].mean(axis=1) - runs["a"][draws[0]].mean(axis=1)
    assert shown["aheadA"] == pytest.approx((gains < -1e-3).mean(), abs=0.02)
    assert 0.05 < shown["aheadB"] < 0.5


def test_distrust_follows_students_t(compute: Callable[..., Any]) -> None:
    for n in range(2, 11):
        assert compute("seeds", {"n": n})["limit"] == pytest.approx(stats.t.ppf(0.975, 2 * n - 2), abs=0.005)


def test_what_the_text_says_of_its_cases(compute: Callable[..., Any]) -> None:
    lucky = compute("seeds", {"comparison": "nothing", "draw": -1})
    assert lucky["gain"] > 4 * lucky["error"]
    start = compute("seeds", {})
    assert start["gain"] > 0
    assert min(start["aheadA"], start["aheadB"]) > 0.1
    assert compute("seeds", {"comparison": "width"})["aheadB"] > 0.95


def test_the_reader_decides_before_the_truth_is_shown(open_lesson: Callable[..., Page]) -> None:
    page = open_lesson("seeds")
    page.click(".skip")
    assert page.get_by_text("same settings").count() == 0
    page.get_by_role("button", name="B is better").press("Enter")
    assert page.get_by_text("same settings").is_visible()
    page.get_by_role("button", name="2", exact=True).click()
    assert page.get_by_text("Decide first: which").is_visible()
    before = page.evaluate("lesson.numbers.runsA.concat(lesson.numbers.runsB)")
    page.get_by_role("button", name="Draw other runs").click()
    assert page.evaluate("lesson.numbers.runsA.concat(lesson.numbers.runsB)") != before
