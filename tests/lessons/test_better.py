"""The lesson on judging without labels against SciPy, the second opinion and its record."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect
from scipy import stats

from experiments.lessons.better import better, embeddings
from experiments.make_lessons import encoded
from tests.lessons.conftest import reload_later
from udml_core.base.paths import ASSETS
from udml_core.data import catalog
from udml_core.exploration.lesson_examples import digits_vectors
from udml_core.numerics.evaluation import recall_at_k
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.second_opinion import Judge, judge_rankings
from udml_core.results.lesson_texts import translations
from udml_core.results.lessons import FOLDER, course_texts

STORED = json.loads((FOLDER / "better.json").read_text(encoding="utf-8"))
SCRIPT = (FOLDER / "better.js").read_text(encoding="utf-8")
COMPARISONS = ("joined", "noise", "nothing")
PLANNED = 20
"""Judgments before a verdict."""
Open = Callable[..., Page]


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


def test_the_share_of_right_verdicts_has_its_interval(open_lesson: Open) -> None:
    record = STORED["record"]
    known = stats.binomtest(record["right"], record["decided"]).proportion_ci(0.95, "exact")
    page = open_lesson("better")
    page.click(".skip")
    space = "\N{NO-BREAK SPACE}"
    expect(page.locator(".formula")).to_contain_text(
        f"a share between {100 * known.low:.1f}{space}% and {100 * known.high:.0f}{space}%")
    expect(page.locator(".see")).to_contain_text("A pair that you call equal is not counted.")


def test_the_counts_are_the_record_s() -> None:
    totals = json.loads((ASSETS / "results" / "second-opinion.json").read_text(encoding="utf-8"))["totals in the app"]
    record = STORED["record"]
    assert record == {key: totals["first result"][key] for key in record}
    assert record["right"] / record["decided"] > 0.95


@pytest.mark.browser
@pytest.mark.parametrize(("successes", "count"), [(7, 10), (0, 5), (12, 12), (96, 200)])
def test_the_interval_is_scipy_s(open_lesson: Open, successes: int, count: int) -> None:
    shown = open_lesson("better").evaluate("pair => lesson.lesson.interval(...pair)", [successes, count])
    expected = stats.binomtest(successes, count).proportion_ci(method="exact")
    assert shown == pytest.approx([expected.low, expected.high], abs=1e-4)


def test_shares_are_what_the_texts_say() -> None:
    interval = stats.binomtest(7, 10).proportion_ci(method="exact")
    assert (round(100 * interval.low), round(100 * interval.high)) == (35, 93)
    (line,) = (line for line in SCRIPT.splitlines() if "Fair coins give" in line)
    assert "7 or more heads or tails of 10, in one case of three" in line
    assert 1 / stats.binomtest(7, 10).pvalue == pytest.approx(3, abs=0.15)


def decided(count: int, share: float) -> int:
    """Return how often in percent the exact test decides if each pair is for the new result with a probability."""
    return round(100 * sum(stats.binom.pmf(after, count, share) for after in range(count + 1)
                           if stats.binomtest(after, count).pvalue < 0.05))


def test_the_teacher_s_note_says_how_often_the_test_decides_and_the_handout_does_not() -> None:
    ask, stuck = (re.search(rf'^    {name}: "(.*)",$', SCRIPT, re.MULTILINE)[1] for name in ("ask", "stuck"))  # type: ignore[index]
    for count in (100, 200):
        assert re.search(rf"{decided(count, 0.6)} %[^.]* with {count}\b", stuck), count
    assert re.findall(r"\d+", ask) == ["60", "50"]


@pytest.mark.browser
def test_the_second_opinion_follows_the_exact_test(compute: Callable[..., Any]) -> None:
    for name in COMPARISONS:
        verdicts = {}
        for asked in range(0, 201, 5):
            opinion = compute("better", {"comparison": name, "asked": asked})["opinion"]
            assert opinion["count"] == asked
            chance = stats.binomtest(opinion["after"], asked).pvalue if asked else 1
            assert opinion["chance"] == pytest.approx(chance)
            side = "better" if 2 * opinion["after"] > asked else "worse"
            verdicts[asked] = opinion["verdict"]
            assert verdicts[asked] == (side if chance < 0.05 else "cannot tell")
            low, high = opinion["interval"]
            assert (low < 0.5 < high) == (verdicts[asked] == "cannot tell")
        if name == "nothing":  # what "When it fails" says
            assert set(verdicts.values()) == {"cannot tell"}
        if name == "noise":
            changes = [asked for asked in range(5, 201, 5) if verdicts[asked] != verdicts[asked - 5]]
            (english,) = (text for text in course_texts()["better"] if "move the slider slowly" in text)
            for text in (english, *(known[english] for known in translations().values())):
                assert [int(number) for number in re.findall(r"\b\d{3}\b", text)] == changes


@pytest.mark.browser
def test_the_second_opinion_tells_what_the_labels_say(compute: Callable[..., Any]) -> None:
    verdicts = {name: compute("better", {"comparison": name}) for name in COMPARISONS}
    assert [verdicts[name]["wholeVerdict"] for name in COMPARISONS] == ["better", "worse", "cannot tell"]
    gains = [shown["recall"][1] - shown["recall"][0] for shown in verdicts.values()]
    assert gains[0] > 30
    assert gains[1] < -5
    assert abs(gains[2]) < 1


def judge(page: Page, choose: str, count: int = PLANNED) -> None:
    """Judge pairs: "left", "right", or "new" or "old" for this result, wherever it stands."""
    for _ in range(count):
        is_left = page.evaluate("lesson.numbers.isLeft")
        side = {"new": "left" if is_left else "right", "old": "right" if is_left else "left"}.get(choose, choose)
        page.get_by_role("button", name=f"The {side} result").press("Enter")


@pytest.mark.browser
def test_each_browser_draws_its_own_pairs_and_sides_and_keeps_them(open_lesson: Open, browser: Browser,
                                                                   exported: Path) -> None:
    drawn = open_lesson("better").evaluate("lesson.lesson.drawn")
    assert open_lesson("better").evaluate("lesson.lesson.drawn") == drawn
    with browser.new_context() as other:
        page = other.new_page()
        page.goto((exported / "better.html").as_uri())
        page.wait_for_selector(".lesson[data-drawn]")
        foreign = page.evaluate("lesson.lesson.drawn")
    for name in COMPARISONS:
        assert sorted(drawn[name]["order"]) == list(range(200))
        assert 60 < sum(drawn[name]["isLeft"]) < 140
        assert foreign[name]["order"] != drawn[name]["order"]
        assert foreign[name]["isLeft"] != drawn[name]["isLeft"]
    assert drawn["joined"]["isLeft"] != drawn["noise"]["isLeft"]


@pytest.mark.browser
def test_no_verdict_and_no_count_comes_before_the_planned_judgments(open_lesson: Open) -> None:
    page = open_lesson("better")
    page.click(".skip")
    for done in range(PLANNED):
        assert page.evaluate("lesson.numbers.own") is None
        expect(page.locator(".readout")).to_contain_text(f"{done} of 20 judged")
        expect(page.locator(".readout")).to_contain_text("after 20 judgments")
        expect(page.locator(".formula")).not_to_contain_text("Asked about all")
        judge(page, "new", 1)
    assert page.evaluate("lesson.numbers.own.verdict") == "better"
    expect(page.locator(".readout")).to_contain_text("20 of 20: better")
    expect(page.locator(".readout")).to_contain_text("61.4 → 95.7 %")
    expect(page.get_by_role("button", name="The left result")).to_have_count(0)  # the number stands before


@pytest.mark.browser
@pytest.mark.parametrize(("side", "comparison", "is_contrary"), [
    ("old", "1", True), ("new", "1", False), ("new", "2", True), ("old", "2", False)])
def test_a_verdict_against_the_labels_is_explained(open_lesson: Open, side: str, comparison: str,
                                                   is_contrary: bool) -> None:
    page = open_lesson("better")  # R@1 rises in comparison 1 and falls in comparison 2
    page.click(".skip")
    page.get_by_role("button", name=comparison, exact=True).click()
    judge(page, side)
    said = page.locator(".stage [role=status]")
    expect(said).to_contain_text("By the labels, R@1 changed")
    assert ("Your verdict and the labels disagree" in (said.text_content() or "")) == is_contrary


@pytest.mark.browser
def test_judgments_belong_to_their_comparison_and_survive_a_reload(open_lesson: Open) -> None:
    page = open_lesson("better")
    page.click(".skip")
    page.get_by_role("button", name="3", exact=True).click()
    judge(page, "left", 10)
    before = page.evaluate("lesson.state['judged-nothing']")
    page.get_by_role("button", name="1", exact=True).click()
    assert page.evaluate("[lesson.numbers.judged, lesson.numbers.isDone]") == [0, False]
    expect(page.locator(".stage")).to_contain_text("Pair 1 of 20")
    page = open_lesson("better")  # as from the path, without an address
    assert "judged" not in page.url
    page.get_by_role("button", name="3", exact=True).click()
    expect(page.locator(".stage")).to_contain_text("Pair 11 of 20")
    assert page.evaluate("lesson.state['judged-nothing']") == before
    reload_later(page)
    page.wait_for_selector(".lesson[data-drawn]")
    assert page.evaluate("lesson.state['judged-nothing']") == before


@pytest.mark.browser
def test_judgments_and_what_they_reveal_are_kept_and_forgotten_together(open_lesson: Open) -> None:
    page = open_lesson("better")
    page.click(".skip")
    expect(page.locator(".undecided")).to_contain_text("when you have decided one of them")
    judge(page, "new")
    expect(page.locator(".fails")).to_be_visible()  # two more comparisons are an extra
    low, high = stats.binomtest(20, 20).proportion_ci(method="exact")
    expect(page.locator(".stage [role=status]")).to_contain_text(
        f"20 of 20: an interval from {100 * low:.1f}\N{NO-BREAK SPACE}% to {100 * high:.1f}\N{NO-BREAK SPACE}%")
    page = open_lesson("better")
    expect(page.locator(".fails")).to_be_visible()
    expect(page.locator(".readout")).to_contain_text("20 of 20: better")
    again = page.get_by_role("button", name="Start again")
    expect(again).to_have_count(1)
    again.click()
    for shown in (page, open_lesson("better")):
        expect(shown.locator(".fails")).to_be_hidden()
        expect(shown.locator(".readout")).to_contain_text("0 of 20 judged")
        expect(shown.locator(".claim")).to_contain_text("Without labels, people")  # the answer stays


@pytest.mark.browser
def test_a_presentation_begins_without_the_teacher_s_judgments(open_lesson: Open) -> None:
    page = open_lesson("better")
    page.click(".skip")
    judge(page, "new", 3)
    page.get_by_role("button", name="Present").click()
    assert page.evaluate("lesson.numbers.judged") == 0
    page.evaluate("lesson.change({ 'judged-joined': [1] })")
    page.keyboard.press("Escape")
    assert page.evaluate("lesson.numbers.judged") == 3
    assert open_lesson("better").evaluate("lesson.numbers.judged") == 3


@pytest.mark.browser
def test_equal_is_no_vote(compute: Callable[..., Any]) -> None:
    votes = [1] * 14 + [0] * 2 + [2] * 4
    shown = compute("better", {"judged-joined": [3 * pair + vote for pair, vote in enumerate(votes)]})
    assert (shown["own"]["after"], shown["own"]["count"]) == (14, 16)
    assert shown["own"]["chance"] == pytest.approx(stats.binomtest(14, 16).pvalue)
    assert shown["pair"] >= PLANNED  # a judged pair does not come again


@pytest.mark.browser
def test_the_second_opinion_waits_for_the_reader_s_own_judgments(open_lesson: Open) -> None:
    page = open_lesson("better")
    page.click(".skip")
    dots = page.locator(".stage .plane circle")
    for asked in (10, 200):  # the slider gives nothing away
        page.evaluate("asked => lesson.change({ asked })", asked)
        assert page.evaluate("lesson.numbers.opinion.count") == asked
        expect(page.locator(".readout > div").nth(1)).to_have_text("second opinionafter 20 judgments")
        expect(dots).to_have_count(0)
        expect(page.locator(".formula")).not_to_contain_text("of 200 pairs")
    page.get_by_role("button", name="now", exact=True).click()
    expect(page.locator(".readout > div").nth(1)).to_contain_text("of 200: better")
    expect(dots).to_have_count(1)
    page.get_by_role("button", name="after my 20 judgments").click()
    judge(page, "new")
    expect(page.locator(".readout > div").nth(1)).to_contain_text("of 200: better")


@pytest.mark.browser
def test_a_presentation_hides_the_second_opinion_until_it_is_asked(open_lesson: Open) -> None:
    page = open_lesson("better", "?present=1")
    page.set_viewport_size({"width": 1024, "height": 768})
    dots = page.locator(".stage .plane circle")
    for kind in ("do", "see", "formula"):
        page.evaluate("""kind => { const { presentation } = lesson;
            presentation.turn(presentation.slides.findIndex((slide) => slide.kind === kind) - presentation.slide); }""",
                      kind)
        expect(page.locator(".readout > div").nth(1)).to_have_text("second opinionafter 20 judgments")
        expect(dots).to_have_count(0)
        expect(page.locator(".formula")).to_contain_text("appears after 20 judgments")
        expect(page.locator(".formula math").last).to_contain_text(f"{stats.binomtest(7, 10).pvalue:.3f}")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("button", name="after my 20 judgments")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="now", exact=True).click()
    expect(page.locator(".readout > div").nth(1)).to_contain_text("of 10: cannot tell")


@pytest.mark.browser
def test_an_example_is_drawn_until_a_bar_of_the_reader_s_own(open_lesson: Open) -> None:
    """The slides on bars showed none before 20 judgments."""
    known = [stats.binomtest(*counts).proportion_ci(method="exact") for counts in ((7, 10), (70, 100))]
    page = open_lesson("better", "?present=1")
    page.set_viewport_size({"width": 1024, "height": 768})
    bar = page.locator(".stage .plane line[stroke-linecap=round]")
    unit = page.locator(".stage .plane text").filter(has_text=re.compile(r"^(0|100)\s%$"))
    for drawn in (1, 2, 2):  # what to do, what to see, the formula
        page.keyboard.press("ArrowRight")
        expect(bar).to_have_count(drawn)
        left, right = (float(text.get_attribute("x") or "") for text in unit.all())
        ends = [(float(line.get_attribute(end) or "") - left) / (right - left)
                for line in bar.all() for end in ("x1", "x2")]
        if page.evaluate("lesson.root.dataset.slide") == "see":  # where no number is moved to keep it on the picture
            assert ends == pytest.approx([share for interval in known for share in (interval.low, interval.high)],
                                         abs=0.01)
        for words in ("35 % to 93 %", "7 of 10", *(["60 % to 79 %", "70 of 100"] if drawn > 1 else [])):
            expect(page.locator(".stage .plane")).to_contain_text(words.replace(" %", "\N{NO-BREAK SPACE}%"))
    page.evaluate("lesson.change({ opinion: 'now' })")
    expect(page.locator(".stage .plane")).not_to_contain_text("example")
    expect(bar).to_have_count(1)  # of the second opinion


@pytest.mark.browser
def test_a_bar_holds_the_shares_under_which_its_votes_are_not_rare(open_lesson: Open) -> None:
    low, high = open_lesson("better").evaluate("lesson.lesson.interval(14, 20)")
    assert stats.binom.sf(13, 20, low) == pytest.approx(0.025, abs=1e-4)
    assert stats.binom.cdf(14, 20, high) == pytest.approx(0.025, abs=1e-4)
    assert "so many votes or more, and so many or fewer, would each have a chance of at least 2.5 %" in SCRIPT
