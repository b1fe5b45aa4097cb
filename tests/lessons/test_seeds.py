"""The lesson on seeds against NumPy and a repeated run."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page
from scipy import stats

from experiments.lessons.seeds import FIRST, OTHERS, SEEDS_A, SEEDS_B, recall
from tests.lessons.test_print import CATCH
from udml_core.results.lesson_texts import translations
from udml_core.results.lessons import FOLDER, course_texts

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


def test_distrust_follows_welch_s_t_test(compute: Callable[..., Any], runs: dict[str, Any]) -> None:
    for comparison, n, draw in (("nothing", 4, 1), ("nothing", 3, 9), ("angle", 5, 2), ("width", 10, 4)):
        shown = compute("seeds", {"comparison": comparison, "n": n, "draw": draw})
        welch = stats.ttest_ind(runs[comparison][shown["runsB"]], runs["a"][shown["runsA"]], equal_var=False)
        assert shown["freedom"] == pytest.approx(welch.df)
        assert shown["limit"] == pytest.approx(stats.t.ppf(0.975, welch.df), rel=2e-3)
        assert abs(shown["gain"] / shown["error"]) == pytest.approx(abs(welch.statistic))
    assert compute("seeds", {"n": 1})["limit"] is None


def test_printed_runs_means_and_gain_agree(open_lesson: Callable[..., Page]) -> None:
    """The printed runs gave 95.84 where 95.83 was printed as their mean, and 95.35 was 95.3 beside the picture."""
    page = open_lesson("seeds")
    for state in ({}, *({"comparison": name, "n": n, "draw": draw} for name in ("nothing", "angle", "width")
                        for n in (2, 3, 10) for draw in (0, -1))):
        page.evaluate("state => lesson.change({ ...lesson.start, ...state })", state)
        lines = page.locator(".formula p").all_inner_texts()
        runs = [[float(run) for run in part.split(", ")] for part in re.findall(r"of [AB]: ([\d., ]+\d)", lines[0])]
        means, deviations = (re.findall(r"here\s+([\d.]+)\s+for A and\s+([\d.]+)", line)[0] for line in lines[1:3])
        for values, mean, deviation in zip(runs, means, deviations, strict=True):
            assert len(values) == state.get("n", 3)
            assert fits(np.mean(values), mean)
            assert fits(np.std(values, ddof=1), deviation)
        if not page.evaluate("lesson.numbers.error"):
            continue
        gain, errors = re.findall(r"gain is (−?[\d.]+), which is ([\d.]+)", lines[4])[0]
        error = lines[3].replace(" ", "").split("=")[-1].strip()
        gain = gain.replace("−", "-")
        assert fits(float(means[1]) - float(means[0]), gain)
        assert fits(abs(float(gain)) / float(error), errors)
        beside = page.locator(".readout dd").all_inner_texts()
        assert fits(float(means[0]), beside[0].split(" ")[0])
        assert fits(float(means[1]), beside[1].split(" ")[0])


def fits(value: float, printed: str) -> bool:
    """Return whether a value rounds to a printed number."""
    decimals = len(printed.partition(".")[2])
    return abs(value - float(printed)) <= 0.5 * 10.0**-decimals + 1e-9


def test_what_the_text_says_of_its_cases(compute: Callable[..., Any]) -> None:
    lucky = compute("seeds", {"comparison": "nothing", "draw": -1, "n": 5})
    assert lucky["gain"] > 1.2 * lucky["limit"] * lucky["error"]
    (english,) = (text for text in course_texts()["seeds"] if "Luckiest draw for B</b>" in text)
    for text in (english, *(known[english] for known in translations().values())):
        said = [float(number.replace(",", ".")) for number in re.findall(r"\d[.,]\d", text)]
        assert said == [round(lucky["gain"] / lucky["error"], 1), round(lucky["limit"], 1)]
    start = compute("seeds", {})
    assert start["gain"] > 0
    assert min(start["aheadA"], start["aheadB"]) > 0.1
    assert compute("seeds", {"comparison": "width"})["aheadB"] > 0.95


def test_the_last_question_tells_no_truth_of_a_comparison(compute: Callable[..., Any]) -> None:
    """It stands open before comparison 3 is decided, so its numbers are supposed: of settings C and D."""
    after = (FOLDER / "seeds.js").read_text().partition("after: {")[2].partition("notes: {")[0]
    assert "omparison" not in after
    for comparison in ("angle", "width"):
        shown = compute("seeds", {"comparison": comparison, "n": 10})
        for number in (shown["meanA"], shown["meanB"], shown["gain"]):
            assert f"{number:.2f}" not in after
    numbers = re.findall(r"\d+\.\d(?= %| points, and| of them)", after)
    low, high, error, limit = map(float, numbers[:4])
    assert f"The gain of {high - low:.1f} points is {(high - low) / error:.1f} standard errors." in after
    assert stats.t.ppf(0.975, 9) < limit  # the fewest degrees of freedom of ten runs each by Welch's test


def test_a_decision_is_compared_with_what_all_runs_support(
        open_lesson: Callable[..., Page], compute: Callable[..., Any], runs: dict[str, Any]) -> None:
    page = open_lesson("seeds")
    page.click(".skip")
    for number, comparison, verdict in ((2, "angle", "Too close to say"), (3, "width", "B is better")):
        of = stats.ttest_ind(runs[comparison], runs["a"], equal_var=False).confidence_interval()
        assert ("B is better" if of.low > 0 else "A is better" if of.high < 0 else "Too close to say") == verdict
        page.get_by_role("button", name=str(number), exact=True).first.click()
        page.get_by_role("button", name="A is better", exact=True).first.click()
        gain, reach = (of.high + of.low) / 2, (of.high - of.low) / 2
        said = page.get_by_role("status").filter(has_text="With all ten runs").first.inner_text()
        assert f"the gain is {gain:+.2f} ± {reach:.2f} points".replace("-", "−") in said
        statistic = abs(stats.ttest_ind(runs[comparison], runs["a"], equal_var=False).statistic)
        assert f"{statistic:.1f} standard errors. The data support “{verdict}”." in said
    assert compute("seeds", {"comparison": "nothing", "n": 3})["whole"] is None, "which has a truth of its own"


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


def test_slides_with_decisions_show_the_runs_and_what_was_decided(open_lesson: Callable[..., Page]) -> None:
    """The runs took a quarter of the slide, and the columns that wait for a decision half of it."""
    page = open_lesson("seeds", "?present=1")
    page.set_viewport_size({"width": 1024, "height": 768})
    share = """() => {
        const [stage, runs] = [".stage", ".stage [data-part=runs]"].map((name) => document.querySelector(name));
        return runs.getBoundingClientRect().height / stage.getBoundingClientRect().height; }"""
    bottom = """() => ["[role=status]", ".hint"].map((name) => document.querySelector(`.lesson ${name}`))
        .map((part) => part.getBoundingClientRect()).reduce((status, hint) => hint.top - status.bottom)"""
    states = []
    for slide in (1, 4):
        page.evaluate("slide => lesson.presentation.turn(slide - lesson.presentation.slide)", slide)
        states.append(page.evaluate("lesson.state.comparison"))
        assert page.evaluate(share) > 0.45
        assert page.locator(".stage [data-part=columns]:visible").count() == 0
        for comparison in ("angle", "width"):
            page.evaluate("comparison => lesson.change({ comparison, verdict: `${comparison}-a` })", comparison)
            page.wait_for_timeout(300)
            page.wait_for_function(f"() => ({bottom})() >= 0")
            assert page.get_by_role("status").filter(has_text="The data support").first.is_visible()
    assert states == ["nothing", "angle"]  # the second slide begins with the next comparison


@pytest.mark.parametrize("button", [0, 1])
def test_paper_asks_for_the_decision_in_its_table(open_lesson: Callable[..., Page], button: int) -> None:
    """Both sheets printed "Your decision" without a box, and the handout an empty frame."""
    page = open_lesson("seeds")
    page.click(".skip")
    page.evaluate(CATCH)
    page.locator(".tools .print").nth(button).click()
    page.set_content(page.evaluate("window.printed"))
    assert page.get_by_text("Your decision", exact=True).count() == 0
    assert page.locator(".picture svg").count() == 2 - button
    if button:
        rows = [row.locator("td").all_inner_texts() for row in page.locator("tr").all()[1:]]
        assert [row[0] for row in rows] == ["Comparison 1", "Comparison 2", "Comparison 3"]
        assert page.locator("th").filter(has_text="Your decision").count() == 1
