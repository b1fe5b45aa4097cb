"""How sure a race is of a call: chance, close calls, what it can tell, and races that call one search differently."""

from __future__ import annotations

import numpy as np
import pytest

from tests.exploration.test_race import judged, race_of
from udml_core.exploration.race import Race, Setup
from udml_core.exploration.race_advice import tell_advice
from udml_core.exploration.race_certainty import (
    called_otherwise,
    calls_words,
    certainty_words,
    chance_of,
    close_words,
    is_close,
    resolution_words,
)
from udml_core.exploration.race_measured import ERRORS, FAMILY, TAIL, Measured
from udml_core.exploration.race_words import brief_words, left_out_lines


def race_with(errors: float, others: int = 0, serves: str = "first") -> Race:
    """Return a race with a gain of so many standard errors, beside candidates without any."""
    rest = [judged(f"Other {number}", -0.001, 0.001, f"method {number}") for number in range(others)]
    return race_of(judged("Whitening", errors / 1000, 0.001), *rest).model_copy(update={"serves": serves})


def gain_of(errors: float) -> Measured:
    """Return a gain of so many standard errors, on which all judges agree."""
    return Measured(verdict="better", difference=errors, low=errors - ERRORS, high=errors + ERRORS)


def test_a_gain_is_certain_exactly_where_chance_is_below_the_tail() -> None:
    for errors in np.linspace(1, 5, 41):
        gain = gain_of(errors)
        assert (gain.said == "better") == (chance_of(gain) < TAIL), errors
        assert chance_of(gain) == pytest.approx(chance_of(gain.reversed)), "a loss is as sure as a gain"


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_of_50_candidates_without_any_difference_few_races_call_one_better(correlation: float) -> None:
    """Draw races of null candidates whose gains have the start, and more, in common."""
    rng = np.random.default_rng(0)
    shared, own = rng.standard_normal((10_000, 1)), rng.standard_normal((10_000, FAMILY))
    largest = (np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own).max(axis=1)
    false = np.mean([gain_of(errors).said == "better" for errors in largest])
    assert false <= 0.05
    assert np.mean(largest > ERRORS) > 0.09, "without the family, many races would call one better"


def test_the_chance_is_that_of_the_largest_of_several_draws() -> None:
    draws = np.random.default_rng(0).standard_normal((20_000, FAMILY)).max(axis=1)
    assert chance_of(gain_of(3.0)) == pytest.approx((draws > 3.0).mean(), abs=0.006)


def test_a_call_near_the_limit_is_close_and_says_so_above_the_figures() -> None:
    for errors, others, close in ((2.3, 0, False), (2.9, 0, True), (2.9, 10, True), (3.4, 10, True), (4.5, 10, False)):
        race = race_with(errors, others)
        assert is_close(race, race.judged[0]) == close, (errors, others)
        told = tell_advice(race)
        assert any("a close call" in words.lower() for words in told.shown) == close
        assert any(words.startswith("The judges are") for words in told.details) == (not close)
    won, lost, small, tiny = race_with(3.4), race_with(2.9), race_with(2.5), race_with(2.0)
    assert certainty_words(small, small.judged[0]).startswith(
        "The judges are not sure of the largest gain: chance alone looks this good in at most about ")
    assert certainty_words(tiny, tiny.judged[0]).startswith(
        "The judges are not sure of the largest gain: chance alone often looks this good.")
    assert certainty_words(won, won.judged[0]) == (
        "Slightly better, a close call: chance alone looks this good in at most about 2 of 100 "
        "such races, and other images may turn it over: check it with your eyes.")
    assert certainty_words(lost, lost.judged[0]).startswith(
        "A close call: chance alone looks this good in at most about 9 of 100 such races, which is too "
        "often to call it better.")
    assert tell_advice(won, is_done=False).shown == (
        "Slightly better, a close call: chance alone looks this good in at most about 2 of 100 "
        "such races, and other images may turn it over; a later candidate may gain more.",), "as after the race"
    assert "close call" not in " ".join(tell_advice(race_with(4.5), is_done=False).sentences)


def test_a_gain_that_judges_dispute_is_not_a_matter_of_chance() -> None:
    race = race_with(3.4)
    of = race.judged[0].against_start
    assert of is not None
    disputed = of.model_copy(update={"first": of.first.model_copy(update={"verdict": "cannot tell"})})
    outcome = race.judged[0].model_copy(update={"against_start": disputed})
    race = race.model_copy(update={"outcomes": (outcome,)})
    assert not is_close(race, outcome)
    assert certainty_words(race, outcome) == ""


def test_an_advice_that_one_judge_does_not_see_says_which() -> None:
    race, better = race_with(9.0), Measured(verdict="better", difference=0.04, low=0.03, high=0.05)
    unclear = Measured(verdict="cannot tell", difference=0.001, low=-0.002, high=0.004)
    worse = better.reversed
    of = race.judged[0].against_start
    assert of is not None

    def said(**by_judge: Measured) -> str:
        """Return what is said if each judge measures this of the first results, and the opposite of the groups."""
        own = of.model_copy(update={"by_judge": {name: (one, one.reversed) for name, one in by_judge.items()}})
        outcome = race.judged[0].model_copy(update={"against_start": own})
        told = tell_advice(race.model_copy(update={
            "outcomes": (outcome,), "titles": {"net": "The net", "eye": "An eye"},
            "weights": {"pixels": 0.1, "eye": 0.2, "net": 0.7}}))
        return " ".join(words for words in told.shown if "judges agree" in words)

    assert said(net=better, pixels=better) == ""
    assert said(pixels=unclear, net=better) == (
        "Not all judges agree: The net finds it better; the raw pixels, a weak judge, see no clear difference.")
    assert said(net=better, eye=worse) == "Not all judges agree: The net finds it better; An eye finds it worse."
    assert said(net=better, eye=better, pixels=worse) == (
        "Not all judges agree: The net and An eye find it better; the raw pixels, a weak judge, find it worse.")
    assert said(net=better, pixels=worse.model_copy(update={"untold": ("worse",)})) == (
        "Not all judges agree: The net finds it better; the raw pixels, a weak judge, find it worse, which does not "
        "count, as judges underrate such steps.")


def test_no_clear_difference_names_what_the_race_can_tell() -> None:
    race = race_with(5.0).model_copy(update={"images": 1589})
    assert resolution_words(race) == (
        "No clear difference does not mean equal: with 1,589 images, a difference below about 0.003 in the similarity "
        "of first results may be chance.")
    assert "with these images, a difference" in resolution_words(race_with(5.0, 10))


def test_another_race_that_calls_the_same_search_differently_is_named_with_the_reason() -> None:
    sure, unsure = race_with(3.4), race_with(3.2).model_copy(update={"budget": 15})
    assert called_otherwise(unsure, [sure]) == (
        "The race of 5 minutes for first results says of the refined search (whitening): better in first results; "
        "this race says: no clear "
        "difference. The difference is at the limit of what a race can tell: confirm it by blind judgments.")
    assert called_otherwise(race_with(3.4), [race_with(3.4, 40)]) == "", "more candidates change no verdict"
    assert called_otherwise(sure, []) == called_otherwise(sure, [race_of()]) == ""
    judges = unsure.model_copy(update={"weights": {"a": 1.0}}), sure.model_copy(update={"weights": {"b": 1.0}})
    words = called_otherwise(judges[0], [judges[1]])
    assert words.endswith("Why: other judges looked at the results, or the same judges counted differently. "
                          "Judge blindly to decide.")
    assert words in tell_advice(judges[0], others=[judges[1]]).shown
    fewer = sure.model_copy(update={"images": 500}), unsure.model_copy(update={"images": 900})
    assert "that race looks at 500 images, this one at 900" in called_otherwise(fewer[1], [fewer[0]])


def test_only_what_is_better_beyond_chance_counts_as_better() -> None:
    rows = [judged("A", 0.01, 0.001), judged("B", 0.002, 0.001, "b"), judged("C", -0.01, 0.001, "c")]
    assert calls_words(race_of(*rows), "first") == (
        "For first results, 1 of 3 candidates is better beyond chance, 1 is worse and 1 shows no clear difference")
    assert calls_words(race_of(rows[1], rows[1].model_copy(update={"setup": Setup(backbone="x")})), "first") == (
        "For first results, none of 2 candidates is better beyond chance, 2 show no clear difference")


def test_every_candidate_that_was_left_out_is_named_with_its_reason() -> None:
    outcome = judged("PLM", 0.0, 0.1).model_copy(update={"against_start": None, "seconds": 40.0})
    race = race_of(outcome.model_copy(update={"state": "given up", "needs": 180.0}),
                   outcome.model_copy(update={"state": "given up", "name": "Exemplar"}),
                   outcome.model_copy(update={"state": "not tried", "name": "Views"}),
                   outcome.model_copy(update={"state": "not possible", "name": "Net", "reason": "No judge is left."}))
    assert left_out_lines(race) == [
        "Not tried in 5 minutes: Views (it would take about 40 s).",
        "Begun and given up: PLM (after 40 s, because it would take about 3 min); Exemplar (after 40 s, because it "
        "took too long).",
        "Not possible: Net (No judge is left)."]


def test_a_close_call_is_said_wherever_its_verdict_is() -> None:
    close, sure, lost = race_with(3.4), race_with(4.5), race_with(2.9)
    assert close_words(close, close.judged[0]) == ", a close call"
    assert "better first results, a close call" in brief_words(close, close.judged[0])
    assert close_words(sure, sure.judged[0]) == ""
    assert close_words(lost, lost.judged[0]) == "", "no verdict, no close one"
