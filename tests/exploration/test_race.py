"""The race for the best search: its decisions with stubbed opinions, its recipes, and its sentences."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from udml_core.base.errors import UserError
from udml_core.base.ticking import ticking
from udml_core.exploration.plain_names import PLAIN, new_words, plain_words
from udml_core.exploration.race import Duel, Outcome, Race, Setup
from udml_core.exploration.race_advice import (
    advice_words,
    both_aims_words,
    equals_words,
    figure_line,
    star_words,
    tell_advice,
)
from udml_core.exploration.race_certainty import certainty_words, resolution_words
from udml_core.exploration.race_clock import Countdown, RaceClock, RaceProgress
from udml_core.exploration.race_conclusion import Judgments, conclude
from udml_core.exploration.race_elsewhere import find_elsewhere
from udml_core.exploration.race_figures import (
    COUNTED,
    SAID,
    balance_words,
    changed_words,
    counts_words,
    figure_words,
    interval_words,
    said_of_measured,
    said_word,
    setup_words,
    verdict_words,
)
from udml_core.exploration.race_gaps import early_words, gap_words, took_words
from udml_core.exploration.race_measured import FAMILY, REVERSED, Comparison, Count, Measured, Verdict
from udml_core.exploration.race_parts import parts_of
from udml_core.exploration.race_running import (
    METHODS,
    Idea,
    OutOfTimeError,
    complexity,
    list_ideas,
    run_race,
    seconds_to_settle,
    settle,
    slow_steps_late,
    with_step,
)
from udml_core.exploration.race_words import (
    brief_words,
    caution_words,
    needs_eyes,
    outcome_words,
    race_judges_words,
    searched_words,
)
from udml_core.numerics.changed_groups import NOTICED
from udml_core.numerics.refinement.recipe import Recipe
from udml_core.results import benchmark
from udml_core.runs.analyses.kinds.advice import Advice

START = Setup(backbone="net")
SIGNS: Mapping[Verdict, float] = {"better": 1.0, "cannot tell": 0.0, "worse": -1.0}
TITLES = {"net": "Net", "other": "Other"} | {name: name.upper() for name in METHODS}


def measured(verdict: Verdict, size: float = 0.02) -> Measured:
    difference = SIGNS[verdict] * size
    return Measured(verdict=verdict, difference=difference, low=difference - size / 2, high=difference + size / 2)


def comparison(first: Verdict, groups: Verdict = "cannot tell", size: float = 0.02) -> Comparison:
    return Comparison(first=measured(first), groups=measured(groups, size), judges=("judge",))


class Stub:
    """A track on which each recipe has a known quality, and each comparison takes a known time."""

    def __init__(self, quality: Mapping[str, float], seconds: float = 1.0, expected: Mapping[str, float] | None = None,
                 broken: str = "nothing", late: str = "nothing", refused: str = "") -> None:
        self.quality, self.seconds, self.expected = quality, seconds, expected or {}
        self.broken, self.late, self.refused = broken, late, refused
        self.time, self.compared = 0.0, list[tuple[str, str]]()
        self.unmeasured, self.announced = set[str](), list[tuple[str, float | None]]()

    def refuses(self, _best: Setup, setup: Setup) -> str:
        return "No judge is left." if setup.backbone == self.refused else ""

    def expects(self, setup: Setup) -> float:
        return self.expected.get(setup.recipe, self.seconds)

    def is_measured(self, setup: Setup) -> bool:
        return setup.recipe not in self.unmeasured

    def announce(self, name: str, left: float | None, own: float) -> None:
        self.announced.append((name, left))

    def elapsed(self) -> float:
        return self.time

    def run_of(self, setup: Setup) -> str:
        return f"run of {setup.method}"

    def compare(self, before: Setup, after: Setup) -> Comparison:
        self.time += self.seconds
        if self.broken in after.recipe:
            raise UserError("too few images")
        if self.late in after.recipe:
            raise OutOfTimeError("the time is up")
        self.compared.append((before.recipe, after.recipe))
        gain = self.quality[after.recipe] - self.quality[before.recipe]
        return comparison("better" if gain > 0 else "worse" if gain < 0 else "cannot tell")


def idea(recipe: str) -> Idea:
    """Return the candidate that adds a step."""
    (step,) = Recipe.parse(recipe).steps
    return Idea(recipe, lambda best: best.model_copy(update={"recipe": str(with_step(best.parsed, step))}))


def raced(track: Stub, *recipes: str, seconds: float = 100, **rest: Any) -> list[Outcome]:
    return list(run_race(START, [idea(recipe) for recipe in recipes], track, "first", seconds, **rest))


@pytest.mark.parametrize(("served", "other", "serves"), [
    (served, other, serves) for served, other in itertools.product(SIGNS, SIGNS) for serves in ("first", "groups")])
def test_a_step_is_kept_if_it_is_better_and_the_other_measure_not_worse(
        served: Verdict, other: Verdict, serves: Any) -> None:
    of = comparison(served, other) if serves == "first" else comparison(other, served)
    assert of.earns_its_place(serves) == (served == "better" and other != "worse"), "an equal loss is too large"


def test_a_loss_in_the_other_measure_must_be_smaller_than_the_gain() -> None:
    assert comparison("better", "worse", size=0.019).earns_its_place("first")
    assert not comparison("better", "worse", size=0.021).earns_its_place("first")
    assert comparison("worse", "better", size=0.021).earns_its_place("groups")


def test_each_candidate_is_tried_on_top_of_the_best_so_far_and_must_beat_it() -> None:
    track = Stub({"": 0, "views": 1, "views+whiten": 0.5, "views+average": 2, "views+average+rerank": 2})
    outcomes = raced(track, "views", "whiten", "average", "rerank")
    assert [(outcome.setup.recipe, outcome.kept) for outcome in outcomes] == [
        ("views", True), ("views+whiten", False), ("views+average", True), ("views+average+rerank", False)]
    assert track.compared == [("", "views"), ("views", "views+whiten"), ("", "views+whiten"),
                              ("views", "views+average"), ("", "views+average"),
                              ("views+average", "views+average+rerank"), ("", "views+average+rerank")]
    whitened = outcomes[1]
    assert whitened.against_best is not None
    assert whitened.against_start is not None
    assert (whitened.against_best.first.verdict, whitened.against_start.first.verdict) == ("worse", "better")


def test_a_candidate_that_does_not_fit_into_the_time_is_listed_and_cheaper_ones_are_tried() -> None:
    quality = {"": 0, "views": 1, "whiten": 1, "whiten+rerank": 0, "whiten+diffuse": 0}
    track = Stub(quality, seconds=2, expected={"views": 11, "whiten+rerank": 4, "whiten+diffuse": 6})
    outcomes = raced(track, "views", "whiten", "rerank", "diffuse", seconds=10)
    assert [(outcome.name, outcome.state) for outcome in outcomes] == [
        ("views", "not tried"), ("whiten", "judged"), ("rerank", "judged"), ("diffuse", "not tried")]
    assert [outcome.seconds for outcome in outcomes] == [11, 2, 4, 6]
    assert track.time <= 10


def test_a_candidate_that_is_not_possible_says_why_and_the_race_goes_on() -> None:
    outcomes = raced(Stub({"": 0, "whiten": 1, "views": 2}, broken="rerank"), "rerank", "whiten")
    assert [outcome.state for outcome in outcomes] == ["not possible", "judged"]
    assert outcome_words(outcomes[0], race_of()) == "rerank: not possible. too few images"
    (late,) = raced(Stub({"": 0}, seconds=120, late="rerank"), "rerank", seconds=200)
    assert outcome_words(late, race_of()) == "rerank: given up after 2 min, because it took too long."
    refused = run_race(START, [Idea("Other", lambda _best: Setup(backbone="other"))],
                       Stub({}, refused="other"), "first", 10)
    assert [outcome.reason for outcome in refused] == ["No judge is left."]


def test_an_earlier_attempt_is_continued_without_comparing_again() -> None:
    quality = {"": 0, "views": 1, "views+whiten": 2, "views+whiten+average": 3}
    first = Stub(quality, expected={"views+whiten+average": 1000})
    earlier = raced(first, "views", "whiten", "average")
    assert earlier[-1].state == "not tried"
    second = Stub(quality)
    outcomes = raced(second, "views", "whiten", "average",
                     known={outcome.setup: outcome for outcome in earlier})
    assert outcomes[:2] == earlier[:2]
    assert second.compared == [("views+whiten", "views+whiten+average"), ("", "views+whiten+average")]
    assert outcomes[-1].kept


def test_one_search_is_tried_once() -> None:
    outcomes = raced(Stub({"": 0, "whiten": 0, "rerank": 0}), "whiten", "rerank", "whiten")
    assert [outcome.name for outcome in outcomes] == ["whiten", "rerank"]


@pytest.mark.parametrize(("before", "step", "without", "after"), [
    ("", "whiten", (), "whiten"), ("average:k=3", "whiten", (), "whiten+average:k=3"),
    ("whiten+average:k=3", "average:k=5,times=2", (), "whiten+average:k=5,times=2"),
    ("views+average:k=3+rerank", "diffuse", ("average",), "views+diffuse"),
    ("whiten+diffuse", "rerank", (), "whiten+rerank"), ("whiten+rerank", "views", (), "views+whiten+rerank")])
def test_a_step_takes_its_usual_place(before: str, step: str, without: tuple[str, ...], after: str) -> None:
    assert str(with_step(Recipe.parse(before), Recipe.parse(step).steps[0], without)) == after


def test_the_ideas_begin_with_cheap_steps_and_end_with_other_encoders() -> None:
    ideas = list_ideas(["other"], TITLES, has_images=True)
    best = Setup(backbone="net", recipe="whiten+average:k=3")
    setups = [idea.change(best) for idea in ideas]
    assert [idea.name for idea in ideas][:3] == [
        "Several views of each image", "Whitening", "Averaging with 3 neighbors"]
    assert len({idea.name for idea in ideas}) == len(ideas)
    assert setups[-1] == Setup(backbone="other", recipe="whiten+average:k=3")
    assert [setup.method for setup in setups if setup and setup.method != "frozen"] == list(METHODS)
    without = [idea for idea in ideas if idea.name.endswith("without averages")]
    assert [idea.change(START) for idea in without] == [None] * len(without), "there are no averages to leave out"
    tables = list_ideas(["other"], TITLES, has_images=False)
    assert {setup.recipe.split("+")[0] for idea in tables if (setup := idea.change(START))} == {
        "whiten", "average:k=3,alpha=3", "average:alpha=3", "average:k=20,times=2,alpha=3", "rerank",
        "rerank:k1=40,k2=10,weight=0.1", "diffuse:k=20,alpha=0.9"}


def test_the_methods_are_those_that_gain_in_the_record_without_labels() -> None:
    record, gains = benchmark.read(), dict[str, list[float]]()
    assert record is not None
    for dataset in record.datasets.values():
        methods = {entry.method: entry for entry in dataset.entries.values() if entry.is_method}
        for name, entry in methods.items():
            if entry.supervision == "none":
                gain = entry.summary["map@r"][0] - methods["frozen"].summary["map@r"][0]
                gains.setdefault(name, []).append(gain)
    means = [sum(gains[name]) / len(gains[name]) for name in METHODS]
    assert min(means) > 0
    assert means == sorted(means, reverse=True)


def test_sentences_state_the_verdict_the_interval_and_the_decision() -> None:
    def words(of: Comparison, serves: Any = "first", recipe: str = "whiten") -> str:
        return outcome_words(Outcome(name="Step", setup=Setup(backbone="net", recipe=recipe), against_best=of,
                                     against_start=of, kept=of.earns_its_place(serves)),
                             race_of().model_copy(update={"serves": serves}))

    assert words(comparison("better")) == (
        "Whitening: better first results (+0.020, 0.003 to 0.037), no clear "
        "difference in whole groups (0.000, −0.017 to 0.017); kept for the next steps.")
    assert words(comparison("worse", "better"), recipe="rerank") == (
        "Re-ranking: no verdict on first results (−0.020, −0.037 to −0.003, but judges underrate this kind of "
        "search), better whole groups (+0.020, 0.003 to 0.037).")
    assert words(comparison("worse", "better"), recipe="views") == (
        "Several views of each image: worse first results (−0.020, −0.037 to −0.003), better whole groups (+0.020, "
        "0.003 to 0.037).")
    assert "no clear difference in whole groups (0.000, −0.017 to 0.017), better first results" in words(
        comparison("better"), "groups")
    assert words(comparison("better", "worse", 0.01)).endswith(
        "better first results (+0.020, 0.003 to 0.037), worse whole groups (−0.010, −0.018 to −0.002), which lose less "
        "than first results gain; kept for the next steps.")
    assert words(comparison("better", "worse", 0.03)).endswith(
        "worse whole groups (−0.030, −0.055 to −0.005), which lose more than first results gain.")
    split = comparison("cannot tell").model_copy(update={"first": measured("better").model_copy(
        update={"verdict": "cannot tell"})})
    assert "the judges disagree on first results (+0.020, 0.003 to 0.037)" in words(split)
    late = Outcome(name="Views", setup=START, state="not tried", seconds=200)
    assert outcome_words(late, race_of()) == (
        "Views: not tried, because it takes about 3 min, and less time was left.")


def limits(race: Race) -> str:
    """Return how sure a race is of its call, unless it is a close one, and what it can tell."""
    return f"{certainty_words(race, race.best or race.judged[0])} {resolution_words(race)}".lstrip()


def test_the_advice_names_the_winner_or_says_that_nothing_wins() -> None:
    race = Race(serves="groups", budget=5, start=START, run="run", titles=TITLES)
    assert advice_words(race) == "No candidate was judged in this time. Allow more minutes."
    lost = Outcome(name="A", setup=Setup(backbone="net", recipe="rerank"), against_best=comparison("worse", "worse"),
                   against_start=comparison("worse", "worse"))
    beaten = race.model_copy(update={"outcomes": (lost,)})
    assert advice_words(beaten) == (
        "Nothing is better: keep the plain search. The plain search is the pretrained network as it is. No "
        f"candidate is better in whole groups. The race ended when every candidate was tried (1). {limits(beaten)}")
    better = comparison("cannot tell", "better")
    kept = Outcome(name="B", setup=Setup(backbone="other", method="plm", recipe="views+rerank"), kept=True,
                   against_best=better, against_start=better)
    won = race.model_copy(update={"outcomes": (kept, lost)})
    assert won.best == kept
    assert setup_words(won, kept.setup) == "Other, then PLM, then several views of each image, then re-ranking"
    assert ("plain search: better whole groups (+0.020, 0.003 to 0.037), no clear difference in first results (0.000"
            in advice_words(won))
    lines = [outcome.model_dump(mode="json") for outcome in (lost, kept, lost)]
    assert race.with_lines(lines).outcomes == (lost, kept), "a repeated search counts once"


def judged(name: str, gain: float, error: float, method: str = "frozen", kept: bool = False,
           changed: float | None = None) -> Outcome:
    """Return a candidate whose gain in first results has a standard error."""
    verdict: Verdict = "better" if gain > 1.96 * error else "worse" if gain < -1.96 * error else "cannot tell"
    first = Measured(verdict=verdict, difference=gain, low=gain - 1.96 * error, high=gain + 1.96 * error)
    of = Comparison(first=first, groups=measured("cannot tell"), judges=("judge",), changed=changed)
    return Outcome(name=name, setup=Setup(backbone="net", method=method, recipe="" if method != "frozen" else "whiten"),
                   kept=kept, against_best=of, against_start=of, run=f"run of {name}")


def race_of(*outcomes: Outcome) -> Race:
    return Race(serves="first", budget=5, start=START, run="run", titles=TITLES, outcomes=outcomes)


def test_the_advice_is_the_largest_certain_gain_whatever_was_tried_first() -> None:
    first, larger = judged("First", 0.003, 0.001, kept=True), judged("Larger", 0.009, 0.001)
    doubtful = judged("Doubtful", 0.012, 0.006)
    for order in itertools.permutations((first, larger, doubtful)):
        assert race_of(*order).best == larger


NET, TRAINED = Setup(backbone="net"), Setup(backbone="net", method="plm")
BY_SIMPLICITY = [NET.model_copy(update={"recipe": "whiten"}), NET.model_copy(update={"recipe": "views+whiten"}),
                 NET.model_copy(update={"recipe": "rerank"}), NET.model_copy(update={"recipe": "whiten+average"}),
                 TRAINED, Setup(backbone="net", method="plm", recipe="whiten"),
                 Setup(backbone="other", recipe="rerank")]


def test_a_linear_map_is_simpler_than_refined_images_and_these_than_training() -> None:
    order = [complexity(START, setup) for setup in BY_SIMPLICITY]
    assert order == sorted(order)
    assert len(set(order)) == len(order)
    assert complexity(START, START) < order[0]


class Direct(Stub):
    """A track that knows the gain of each search over the start, and how uncertain a direct comparison is."""

    def __init__(self, gains: Mapping[Setup, float], error: float, removed: Setup | None = None, **rest: Any) -> None:
        super().__init__({}, **rest)
        self.gains, self.error, self.removed, self.pairs = gains, error, removed, list[tuple[Setup, Setup]]()

    def compare(self, before: Setup, after: Setup) -> Comparison:
        self.pairs.append((before, after))
        if self.removed in (before, after):
            raise UserError("the run was removed")
        return gained(self.gains[after] - self.gains[before], self.error)


def gained(gain: float, error: float) -> Comparison:
    """Return a comparison whose gain in first results has a standard error."""
    verdict: Verdict = "better" if gain > 1.96 * error else "worse" if gain < -1.96 * error else "cannot tell"
    first = Measured(verdict=verdict, difference=gain, low=gain - 1.96 * error, high=gain + 1.96 * error)
    return Comparison(first=first, groups=measured("cannot tell"), judges=("judge",))


def settled(gains: Mapping[Setup, float], error: float, **rest: Any) -> tuple[Race, Direct]:
    """Return a race of searches with known gains, whose overlapping intervals say nothing, after its comparisons."""
    outcomes = [Outcome(name=str(number), setup=setup, against_best=gained(gain, 0.002), run="run",
                        against_start=gained(gain, 0.002)) for number, (setup, gain) in enumerate(gains.items())]
    track = Direct(gains, error, **rest)
    return settle(race_of(*outcomes), track), track


def test_the_simplest_candidate_that_cannot_be_told_from_the_largest_gain_is_advised() -> None:
    whiten, viewed, rerank, _, trained, *_ = BY_SIMPLICITY
    gains = {trained: 0.020, rerank: 0.019, whiten: 0.012, viewed: 0.0185}
    race, track = settled(gains, error=0.001)
    assert race.best is not None
    assert race.best.setup == viewed, "whitening is surely worse; views and whitening are simpler than re-ranking"
    assert track.pairs == [(whiten, trained), (viewed, trained)], "the comparisons end at the simplest equal"
    assert race.largest is not None
    assert race.largest.setup == trained
    nothing = {setup: gain for setup, gain in gains.items() if setup != rerank}
    assert settled(nothing, error=0.0001)[0].best == race.largest, "every simpler candidate is surely worse"
    undervalued = settled(gains, error=0.0001)[0]
    assert undervalued.best is not None
    assert undervalued.best.setup == rerank, "no verdict tells that it is worse for a step that judges undervalue"
    assert ("Why this search: judges rate the trained search (PLM) higher, but in tests with known classes they rated "
            "searches like this one too low, and it is simpler.") in advice_words(undervalued)
    above = settled(gains | {viewed: 0.0195}, error=0.0001)[0]
    assert above.best == undervalued.best
    assert ("Why this search: judges rate 2 other searches, such as the trained search (PLM), higher, but "
            ) in advice_words(above)
    assert star_words(undervalued) == "advised: simpler, judges underrate it"
    everything = settled(gains, error=0.01)[0]
    assert everything.best is not None
    assert everything.best.setup == whiten
    assert race_of(*race.outcomes).best == race.largest, "without direct comparisons the largest gain is advised"


def test_the_largest_gain_stays_if_nothing_simpler_is_certain_or_comparable() -> None:
    whiten, *_ = BY_SIMPLICITY
    race, track = settled({whiten: 0.02, TRAINED: 0.019}, error=1.0)
    assert race.best == race.largest
    assert track.pairs == [], "nothing is simpler than the largest gain"
    race, track = settled({whiten: 0.001, TRAINED: 0.019}, error=1.0)
    assert (race.best, track.pairs) == (race.largest, []), "the gain of whitening may be chance"
    other = Setup(backbone="other")
    race, _ = settled({whiten: 0.01, other: 0.02}, error=1.0, refused="other")
    assert race.duels == (), "no judge can compare the two"
    race, _ = settled({whiten: 0.01, TRAINED: 0.02}, error=1.0, removed=whiten)
    assert race.best == race.largest


def test_an_advice_that_is_simpler_says_so() -> None:
    whiten, *_ = BY_SIMPLICITY
    race, _ = settled({whiten: 0.018, TRAINED: 0.02}, error=0.002)
    assert advice_words(race) == (
        "Best search: the refined search (whitening). First results are clearly better than with the plain search, "
        "in the judges' eyes. "
        "Why this search: it is simpler than the trained search (PLM), and the judges see no clear difference between "
        "the two. Compared with the plain search: "
        "better first results (+0.018, 0.011 to 0.025), no clear difference in whole groups (0.000, −0.017 to 0.017). "
        "For first results, 2 of 2 candidates are better beyond chance. The race ended when every candidate was tried "
        f"(2). {limits(race)}")


def test_an_advice_names_how_many_do_about_as_well_and_the_simplest_of_them() -> None:
    whiten, viewed, *_ = BY_SIMPLICITY
    best, level = judged("PLM", 0.02, 0.002, "plm"), judged("NCE", 0.018, 0.002, "nce")
    simple = judged("Whitening", 0.017, 0.002)
    race = race_of(best, simple, level)
    assert equals_words(race) == (
        "2 other candidates do about as well. Without training, the best is the refined search (whitening).")
    of = conclude(race)
    assert of.equals == f"{equals_words(race)} Why this search: its gain is the largest."
    assert equals_words(race) not in of.details, "said once"
    assert "About as good: whitening; nce." in of.details
    assert not any("its gain is the largest" in words for words in of.details), "said once"
    assert conclude(race_of(best)).equals == "", "nothing else does as well, so its reason needs no word"
    assert conclude(race, Judgments("worse", 20, score="18 of 20 for the plain search")).equals == "", "judged worse"
    assert equals_words(race_of(best, level)) == "1 other candidate does about as well.", "it is as complex"
    less = race_of(best, judged("Whitening", 0.009, 0.002))
    untrained = "Without training, the best is the refined search (whitening)."
    assert equals_words(less) == untrained, "its interval ends below the gain"
    assert equals_words(race_of(best, judged("Whitening", 0.004, 0.006))) == "", "it is not certain itself"
    race, _ = settled({whiten: 0.015, TRAINED: 0.02}, error=0.001)
    assert race.best is not None
    assert race.best.setup == TRAINED, "the direct comparison finds it better"
    assert equals_words(race) == untrained, "one rule: it is no equal then"
    race, _ = settled({whiten: 0.018, viewed: 0.018, TRAINED: 0.02}, error=0.002)
    assert equals_words(race) == "1 other candidate does about as well."
    race, _ = settled({whiten: 0.019, viewed: 0.02}, error=0.002)
    assert equals_words(race.model_copy(update={"duels": ()})) == (
        "1 other candidate does about as well and is simpler: another refined search (whitening).")


@pytest.mark.parametrize(("serves", "simpler", "advised"), [
    ("first", "whiten", "whiten"), ("first", "", ""), ("groups", "whiten", "")])
def test_a_training_must_win_first_results_by_the_interval_of_every_page(serves: Any, simpler: str, advised: str
                                                                         ) -> None:
    """The gain over the simpler search is 2.3 standard errors: sure in a single comparison, not among 50."""
    setup = Setup(backbone="net", recipe=simpler) if simpler else Setup(backbone="net", method="nce")
    trained = Setup(backbone="net", method="plm", recipe="" if simpler else "whiten")
    gains = [Outcome(name=name, setup=each, run=name, against_start=Comparison(
        first=measured("better", size), groups=measured("better", size), judges=()))
        for name, each, size in (("simpler", setup, 0.03), ("trained", trained, 0.04))]
    gain = Measured(verdict="better", difference=0.01, low=0.0015, high=0.0185)
    duel = Duel(simpler=setup, largest=trained, comparison=Comparison(first=gain, groups=gain, judges=()))
    less = Duel(simpler=Setup(backbone="net", method="nce", recipe="views"), largest=trained,
                comparison=comparison("better", "better"))
    race = race_of(*gains).model_copy(update={"serves": serves, "duels": (duel, less)})
    assert race.best is not None
    assert race.best.name == ("simpler" if advised else "trained")
    assert not advised or "simpler still" not in advice_words(race), "another training is not simpler than none"


def test_an_advice_that_refines_the_images_at_hand_says_what_it_means_for_new_images() -> None:
    for setup, is_at_hand in zip(BY_SIMPLICITY, (False, False, True, True, False, False, True), strict=True):
        assert ("what new images gain was not measured" in advice_words(settled({setup: 0.02}, 0.1)[0])) == is_at_hand


def outcome_in(state: Any, setup: Setup = TRAINED, seconds: float = 100.0, name: str = "PLM") -> Outcome:
    return Outcome(name=name, setup=setup, state=state, seconds=seconds, reason="too few images")


def test_a_kind_of_candidate_that_was_not_judged_is_named_with_what_mends_it() -> None:
    won = judged("Whitening", 0.02, 0.001).model_copy(update={"seconds": 250.0})
    views = outcome_in("given up", Setup(backbone="net", recipe="views"), 200.0, "Several views of each image")
    assert gap_words(race_of(won, outcome_in("not tried"))).endswith(
        "Short trainings were not tried: they would not have fitted into the time that was left. Run again with 15 "
        "minutes.")
    assert gap_words(race_of(won, views, outcome_in("not tried", seconds=1000))).endswith(
        "Several views of each image were given up after 3 min, because it took too long. "
        "Short trainings were not tried: they would not have fitted into the time that was left. Run again "
        "with 30 minutes.")
    assert gap_words(race_of(won, outcome_in("not tried", seconds=7000))).endswith("Run again with 3 hours.")
    assert gap_words(race_of(outcome_in("not tried"), judged("Exemplar", 0.01, 0.001, "exemplar"))) == "", (
        "one training was judged")
    assert gap_words(race_of(outcome_in("not tried"), judged("Exemplar", 0.001, 0.003, "exemplar"))) == (
        "Other short trainings were not tried: they would not have fitted into the time that was left. Run again with "
        "15 minutes."), "nothing won"
    assert gap_words(race_of(outcome_in("not possible"))) == "Short trainings were not possible: too few images"
    assert gap_words(race_of(won, outcome_in("not possible", Setup(backbone="other")))) == "", "they are not promised"
    assert "not tried" not in advice_words(race_of(won, outcome_in("not tried")), is_done=False)
    lost = judged("Whitening", -0.02, 0.001)
    assert advice_words(race_of(lost, outcome_in("not tried"))).startswith(
        "Nothing is better: keep the plain search. The plain search is the pretrained network as it is. No "
        "candidate is better in first results. Short trainings were not tried")


@pytest.mark.parametrize(("errors", "said"), [(3.2, "cannot tell"), (3.4, "better"), (-3.4, "worse")])
@pytest.mark.parametrize("count", [0, 1, 10, 49])
def test_a_verdict_does_not_depend_on_how_many_candidates_were_tried(count: int, errors: float, said: Verdict) -> None:
    outcome, others = judged("A", errors, 1.0), [judged(f"Other {number}", -0.1, 1.0, str(number))
                                                 for number in range(count)]
    race = race_of(outcome, *others)
    assert race.verdicts(outcome) == (said, "cannot tell"), "3.29 standard errors are needed"
    assert (race.best == outcome) == (said == "better")
    assert f"({interval_words(race.gain(outcome))})" in outcome_words(outcome, race)
    assert outcome_words(outcome, race) == outcome_words(outcome, race_of(outcome))
    assert verdict_words(race.gain(outcome), "first results").startswith(SAID[said])


def test_a_race_that_runs_says_of_its_leader_what_stays_true() -> None:
    told = tell_advice(race_of(judged("Whitening", 0.02, 0.001), judged("PLM", 0.0, 0.001, "plm")), is_done=False)
    assert told.sentences == [
        "Better so far: the refined search (whitening).",
        "It beats the plain search beyond chance; a later candidate may gain more, and of equals the simplest is "
        "chosen."]


def test_no_race_compares_more_candidates_than_a_verdict_holds_for() -> None:
    """Count the largest plan: as many encoders as are allowed, alone and beside the start's, and the parts of a search.

    The longest search has four steps on a trained head. The race has tried its first step alone, and all steps without
    the head.
    """
    (most,) = (note.max_length for note in Advice.model_fields["encoders"].metadata if hasattr(note, "max_length"))
    encoders = [f"encoder {number}" for number in range(2 * most)]
    ideas = list_ideas(encoders, {name: name for name in (*METHODS, *encoders)}, has_images=True)
    longest = Setup(backbone="net", method="plm", recipe="views+whiten+average+rerank")
    assert [step.role for step in longest.parsed.steps].count("ranking") == 1, "a search has one ranking"
    tried = ideas[0].change(START), longest.model_copy(update={"method": "frozen"})
    assert len(ideas) + len(set(parts_of(START, longest)).difference(tried)) == FAMILY


def test_a_gain_that_may_be_chance_is_no_winner() -> None:
    lucky = judged("Lucky", 2.2, 1.0)
    others = [judged(f"Other {number}", -0.1, 1.0) for number in range(10)]
    race = race_of(lucky, *others)
    assert advice_words(race) == (
        "No clear winner for first results: keep the plain search. "
        "The plain search is the pretrained network as it is. In first results, "
        "none of 11 candidates is better beyond chance. Keep the plain search; to decide it, judge the largest gain "
        "yourself: the refined search (whitening). The largest gain, of the refined search, may be chance (+2.200, "
        "−1.091 to 5.491). "
        "Beside that: no clear difference in whole groups (0.000, −0.017 to 0.017). The race ended when every "
        f"candidate was tried (11). {limits(race)}")
    assert "It changes the first result of 13 % of images." in advice_words(
        race_of(judged("Lucky", 2.2, 1.0, changed=0.13), *others))
    assert race_of(judged("Sure", 3.4, 1.0), *others).best is not None


def test_an_advice_says_how_much_changes_and_what_labels_said() -> None:
    plm, whiten = judged("PLM", 0.02, 0.001, "plm", changed=0.13), judged("Whitening", 0.019, 0.001)
    race = race_of(plm, whiten)
    assert advice_words(race) == (
        "Best search: the trained search (PLM). It changes the first result of 13 % of images: a small change, so "
        "confirm it by eye. Why this search: its gain is the largest. "
        "1 other candidate does about as well. Without training, the best is the refined search (whitening). "
        "About as good: whitening. "
        "Compared with the plain search: better first results (+0.020, 0.017 to 0.023), no clear difference in "
        "whole groups (0.000, −0.017 to 0.017). For first results, 2 of 2 candidates are better beyond chance. The "
        f"race ended when every candidate was tried (2). {limits(race)}")
    assert needs_eyes(race)
    assert caution_words(race).startswith(
        "PLM found 0.0 to 2.5 fewer right first images in 100 searches")
    assert not caution_words(race_of(whiten)), "nothing is trained"
    assert "So look before you use it." in caution_words(race)
    assert needs_eyes(race_of(judged("PLM", 0.02, 0.001, "plm", changed=0.3))), "of a training, no label said more"
    assert needs_eyes(race_of(judged("Whitening", 0.02, 0.001, changed=0.13)))
    assert not needs_eyes(race_of(judged("Whitening", 0.02, 0.001, changed=0.3)))
    assert searched_words(race, plm) == (
        "The race for the best search compared the trained search (PLM) with the plain search, without labels: "
        "better first results "
        "(+0.020, 0.017 to 0.023), no clear difference in whole groups (0.000, −0.017 to 0.017). It changes the "
        "first result of 13 % of images: a small change, so confirm it by eye.")


@pytest.mark.parametrize(("better", "worse", "said"), [
    (0.09, 0.02, "9 find a better first image, 2 a worse one, and 89 the same one"),
    (0.011, 0.001, "1 finds a better first image, fewer than 1 a worse one, and 99 the same one"),
    (0.3, 0.0, "30 find a better first image, 0 a worse one, and 70 the same one")])
def test_the_headline_says_of_100_images_how_many_find_a_better_first_image(better: float, worse: float,
                                                                           said: str) -> None:
    first = Measured(verdict="better", difference=0.02, low=0.01, high=0.03)
    of = Comparison(first=first, groups=measured("better", 0.02), judges=("judge",), changed=better + worse,
                    better=better, worse=worse)
    best = Outcome(name="Whitening", setup=Setup(backbone="net", recipe="whiten"), kept=True, against_best=of,
                   against_start=of, run="run")
    small = ": a small change, so confirm it by eye" if better + worse < 0.2 else ""
    words = f"Of 100 searches, {said}, as the judges see it, by looks, not by species or class"
    assert tell_advice(race_of(best)).sentences[:2] == [
        "Best search: the refined search (whitening).", f"{words}{small}."]
    said_of_it = conclude(race_of(best))
    assert said_of_it.counted == f"{words}{small}.", "a gain is called large only beside its count"
    assert " ".join(said_of_it.sentences).count(words) == 1
    for_groups = tell_advice(race_of(best).model_copy(update={"serves": "groups"})).sentences
    assert for_groups[:2] == ["Best search: the refined search (whitening).", (
        "Whole groups are clearly better than with the plain search, in the judges' eyes, by looks, not by species or "
        "class.")]
    count = said.partition(" ")[0]
    better = f"{count} {'gets' if count == '1' else 'get'} better"
    assert f"better first results (of 100 searches {better}, " in for_groups[2], (
        "what whole groups mean does not speak of the first image")


def test_a_race_for_groups_says_of_100_images_how_many_get_a_better_group_with_an_interval() -> None:
    groups = Measured(verdict="better", difference=0.02, low=0.01, high=0.03, before=0.35, after=0.37)
    of = Comparison(first=measured("cannot tell"), groups=groups, judges=("judge",), changed=0.3, better=0.2, worse=0.1,
                    within=(0.15, 0.25), whole=Count(changed=0.9, better=0.58, worse=0.32, low=0.52, high=0.641))
    best = Outcome(name="Whitening", setup=Setup(backbone="net", recipe="whiten"), kept=True, against_best=of,
                   against_start=of, run="run")
    race = race_of(best).model_copy(update={"serves": "groups"})
    told = tell_advice(race)
    assert f"one in {'ten' if NOTICED == 10 else NOTICED} of its images" in COUNTED["groups"], "the rule in words"
    assert "as the judges see it" not in searched_words(race, best), "both counts stand beside the verdicts"
    few = best.model_copy(update={"against_start": of.model_copy(update={"first": measured("better"), "changed": 0.1})})
    assert searched_words(race, few).endswith("It is a small change, so confirm it by eye.")
    assert told.shown == ("Of 100 searches, 58 get a better group of results, 32 a worse one, and 10 nearly the same "
                          "group, as the judges see it, by looks, not by species or class; by species or class, "
                          "41 to 72 may get better.",)
    assert "better whole groups (of 100 searches 58 get better, 32 worse; +0.020, 0.003 to 0.037)" in told.details[0]
    assert "no clear difference in first results (of 100 searches 20 get better, 10 worse;" in told.details[0]
    assert figure_line(race) == (
        "95 % intervals, for all candidates at once: 47 to 69 of 100 better; mean "
        "similarity 0.350 → 0.370: +0.020, 0.003 to 0.037, of a query and its results as judges see them, on a scale "
        "from −1 to 1."), "wider by 3.29 / 1.96"
    first = race.model_copy(update={"serves": "first"})
    assert "58 get a better group of results" in advice_words(first), "a race without a winner tells of the other aim"
    assert tell_advice(first).headline == "Nothing is better: keep the plain search."
    few = of.model_copy(update={"whole": Count(changed=0.02)})
    assert changed_words(few, "groups") == "It changes the group of results of 2 % of images"


@pytest.mark.parametrize(("better", "said"), [
    (0.78, "; by species or class, 61 to 92 may get better"),
    (0.9, "; by species or class, 73 to 100 may get better"), (0.1, "")])
def test_a_count_of_groups_never_stands_without_what_limits_it(better: float, said: str) -> None:
    count = Count(changed=0.98, better=better, worse=0.2, low=better - 0.06, high=better + 0.06)
    groups = measured("better").model_copy(update={"count": count})
    of = Comparison(first=groups, groups=groups, judges=("judge",), whole=count, changed=0.98, better=better,
                    worse=0.2, within=(better - 0.06, better + 0.06))
    outcome = Outcome(name="A", setup=Setup(backbone="net", recipe="whiten"), against_best=of, against_start=of)
    race = race_of(outcome)
    assert counts_words(groups, "groups") == counts_words(groups) + said
    assert changed_words(of, "groups").endswith(said)
    lines = (both_aims_words(race, outcome), brief_words(race, outcome), said_of_measured("groups", "better", groups))
    assert all(said in line for line in lines)
    assert "by class" not in said_of_measured("first", "better", groups)


def test_a_reader_who_adds_a_gain_finds_the_similarity_after_it() -> None:
    of = Measured(verdict="better", difference=0.0276, low=0.02, high=0.04, before=0.3527, after=0.3803)
    assert interval_words(of) == "similarity 0.353 → 0.381: +0.028, 0.015 to 0.048"


@pytest.mark.parametrize(("better", "said"), [(0.6, "better"), (0.45, "cannot tell"), (0.3, "cannot tell")])
def test_a_verdict_that_the_count_does_not_bear_out_is_no_verdict(better: float, said: Verdict) -> None:
    count = Count(changed=0.9, better=better, worse=0.9 - better, low=better - 0.05, high=better + 0.05)
    of = Comparison(first=measured("cannot tell"), groups=measured("better"), judges=("judge",), whole=count)
    assert of.groups.said == of.groups.alone == said
    assert of.groups.reversed.said == {"better": "worse", "cannot tell": "cannot tell"}[said]
    assert of.earns_its_place("groups") == (better > 0.4), "a race builds on what the count does not contradict"
    assert Comparison.model_validate_json(of.model_dump_json()).groups.said == said, "as it is stored"
    assert (verdict_words(of.groups, "whole groups") == "better whole groups") == (said == "better")
    if said != "better":
        why = ", but the gains are larger than the losses" if better < 0.4 else ""
        counted = f"of 100 searches {100 * better:.0f} get better, {90 - 100 * better:.0f} worse{why}"
        assert said_of_measured("groups", said, of.groups) == f"Whole group: no clear difference ({counted})"


CHANCE = ", but the difference on average may be chance"


@pytest.mark.parametrize(("difference", "better", "said"), [
    (0.02, 0.6, ""), (0.02, 0.5, ""), (0.02, 0.57, ""), (0.02, 0.595, ""), (0.02, 0.45, ""),
    (0.02, 0.3, ", but the gains are larger than the losses"),
    (0.001, 0.3, ", but the gains are larger than the losses"), (0.001, 0.5, ""), (0.001, 0.7, CHANCE),
    (-0.001, 0.3, CHANCE), (-0.001, 0.7, ", but the losses are larger than the gains"),
    (-0.02, 0.45, ""), (-0.02, 0.3, "")])
def test_a_count_that_leans_against_the_mean_or_alone_says_so(difference: float, better: float, said: str) -> None:
    verdict = "better" if difference > 0.01 else "worse" if difference < -0.01 else "cannot tell"
    count = Count(changed=0.98, better=better, worse=0.98 - better, low=better - 0.06, high=better + 0.06)
    measured = Measured(verdict=verdict, difference=difference, low=difference - 0.005, high=difference + 0.005,
                        count=count)
    assert balance_words(measured) == said
    of = Comparison(first=measured, groups=measured, judges=("judge",), whole=count, changed=0.98, better=better,
                    worse=0.98 - better, within=(better - 0.06, better + 0.06))
    outcome = Outcome(name="A", setup=Setup(backbone="net", recipe="whiten"), against_best=of, against_start=of)
    for words in (changed_words(of), changed_words(of, "groups"), outcome_words(outcome, race_of(outcome)),
                  brief_words(race_of(outcome), outcome)):
        assert said in words
    unknown = count.model_copy(update={"low": None})
    assert balance_words(measured.model_copy(update={"count": unknown})) == ""


def test_a_chart_says_why_its_star_is_not_the_largest_gain() -> None:
    whiten, *_ = BY_SIMPLICITY
    race, _ = settled({whiten: 0.018, TRAINED: 0.02}, error=0.002)
    assert star_words(race) == "advised: simpler, no clear difference to the largest gain"
    assert star_words(race_of(judged("A", 0.02, 0.001))) == "", "it is the largest gain"
    assert star_words(race_of(judged("A", 0.02, 0.001), judged("B", 0.03, 0.02))) == "more to the right: may be chance"
    dear = comparison("better", "worse", 0.05)
    outcome = Outcome(name="C", setup=TRAINED, against_best=dear, against_start=dear)
    assert star_words(race_of(judged("A", 0.01, 0.001), outcome)) == "more to the right: loses in whole groups"
    assert star_words(race_of(judged("A", 0.001, 0.01))) == "", "nothing is advised"


def test_each_name_in_a_race_has_a_phrase_and_a_list_explains_it_once() -> None:
    ideas = list_ideas(["other"], TITLES, has_images=True)
    best = Setup(backbone="net", recipe="whiten+average:k=3")
    for setup in filter(None, (idea.change(best) for idea in ideas)):
        phrases = plain_words(race_of(), setup)
        changes = len(setup.parsed.steps) + (setup.method != "frozen") + (setup.backbone != "net")
        assert len(phrases) == changes, "no part is left without a phrase"
        assert all(0 < len(words.split()) <= 12 for words in phrases.values())
    assert plain_words(race_of(), START) == {"Plain search": "the pretrained network as it is"}
    whiten, viewed, *_ = BY_SIMPLICITY
    race, _ = settled({whiten: 0.01, viewed: 0.01, TRAINED: 0.01}, error=0.01)
    assert list(new_words(race).values()) == [PLAIN["whiten"], PLAIN["views"], PLAIN["plm"]]


def test_figures_have_their_start_where_it_is_known_in_either_order() -> None:
    known = measured("better").model_copy(update={"before": 0.281, "after": 0.301})
    assert interval_words(known) == "similarity 0.281 → 0.301: +0.020, 0.003 to 0.037"
    assert interval_words(known.reversed) == "similarity 0.301 → 0.281: −0.020, −0.037 to −0.003"
    assert interval_words(measured("better")) == "+0.020, 0.003 to 0.037", "a race of an earlier version"
    of = comparison("cannot tell").model_copy(update={"groups": known})
    best = Outcome(name="Whitening", setup=Setup(backbone="net", recipe="whiten"), against_best=of, against_start=of)
    assert tell_advice(race_of(best).model_copy(update={"serves": "groups"})).sentences[1] == (
        "Whole groups are clearly better than with the plain search, by looks, not by species or class: the mean "
        "similarity of a query and its results, in the judges' eyes, rises from 0.281 to 0.301, on a scale from −1 to "
        "1.")


def test_candidates_of_earlier_versions_have_the_names_of_now() -> None:
    names = {former: Outcome(name=former, setup=Setup(backbone="net")).name for former in (
        "Test-time views", "k-reciprocal re-ranking (40 neighbors) without averages", "Whitening")}
    assert list(names.values()) == [
        "Several views of each image", "Re-ranking (40 neighbors) without averages", "Whitening"]


def test_a_race_names_its_judges_with_what_they_count() -> None:
    of = judged("Whitening", 0.02, 0.001)
    assert of.against_start is not None
    both = of.model_copy(update={"against_start": of.against_start.model_copy(update={
        "judges": ("squeezenet", "pixels")})})
    weighed = race_of(both).model_copy(update={"weights": {"squeezenet": 0.9, "pixels": 0.3}})
    assert race_judges_words(weighed) == (
        "SqueezeNet 1.1 (counts for 75 %), which took no part, and the raw pixels (count for 25 %), which "
        "differ as soon as an object moves")
    light = weighed.model_copy(update={"weights": {"squeezenet": 0.9, "pixels": 0.05}})
    assert race_judges_words(light) == "SqueezeNet 1.1, which took no part", "pixels hardly count"
    assert race_judges_words(race_of(both)) == "squeezenet and the raw pixels", "an earlier race without weights"


def test_the_time_that_is_left_counts_the_candidates_that_fit_and_is_silent_without_measurements() -> None:
    quality = {"": 0, "views": 0, "whiten": 0, "rerank": 0}
    track = Stub(quality, seconds=2, expected={"views": 3, "whiten": 90, "rerank": 4})
    raced(track, "views", "whiten", "rerank", seconds=20)
    assert track.announced == [("views", 7), ("whiten", 4), ("rerank", 4)]
    track = Stub(quality, seconds=2, expected={"views": 3, "whiten": 5, "rerank": 4})
    track.unmeasured.add("whiten")
    raced(track, "views", "whiten", "rerank", seconds=20)
    assert track.announced == [("views", None), ("whiten", None), ("rerank", 4)]


def test_the_share_and_the_time_of_a_race_belong_together_and_the_bar_is_never_full() -> None:
    now, seen = [0.0], list[tuple[float, str]]()
    progress = RaceProgress(lambda share, step: seen.append((round(share, 3), step)), lambda: now[0], 300)
    progress(0.9, "judge")
    now[0] = 150.0
    progress(1.0, "judge")
    progress.announce("Whitening", 50.0, 50.0)
    now[0] = 180.0
    progress(0.5, "training · 50 %")
    now[0] = 400.0
    progress(0.5, "training · 60 %")
    assert seen == [(0.0, "judge · 0:00 of 5:00 min, 5:00 of its time left"),
                    (0.5, "judge · 2:30 of 5:00 min, 2:30 of its time left"),
                    (0.5, "trying Whitening · 2:30 min so far, about 2 min left"),
                    (0.857, "training · 50 % · 3:00 min so far, about 30 s left"),
                    (0.99, "training · 60 % · 6:40 min so far, finishing")]


def test_the_time_of_a_race_goes_on_while_nothing_is_reported() -> None:
    now, seen = [0.0], list[tuple[float, str]]()
    progress = RaceProgress(lambda share, step: seen.append((round(share, 3), step)), lambda: now[0], 300)
    progress.tick()
    assert not seen, "nothing was reported yet"
    progress.announce("Whitening", 50.0, 50.0)
    progress(0.2, "judge compares · 20 of 100")
    now[0] = 30.0
    progress.tick()
    now[0] = 100.0
    progress.tick()
    assert seen[1:] == [(0.0, "judge compares · 20 of 100 · 0:00 min so far, about 50 s left"),
                        (0.6, "judge compares · 20 of 100 · 0:30 min so far, about 20 s left"),
                        (0.833, "judge compares · 20 of 100 · 1:40 min so far, more than 20 s left")], (
        "the count stays, the time goes on, and a time that was too short stands still, as the sentence says")


def test_the_clock_of_a_race_ticks_until_the_race_ends_and_an_error_in_it_harms_nothing() -> None:
    told, ticked = list[str](), threading.Event()

    def report(_share: float, step: str) -> None:
        told.append(step)
        if len(told) > 2:
            ticked.set()
            raise KeyboardInterrupt

    progress = RaceProgress(report, lambda: 1.0, 300)
    with ticking(progress.tick, 0.01):
        progress(0.0, "judge")
        assert ticked.wait(10), "only the first report is the race's own"
    count = len(told)
    assert not any(thread.name == "ticking" for thread in threading.enumerate())
    assert count == len(told) == 3


def test_the_shown_time_runs_down_and_never_rises() -> None:
    shown = Countdown()
    assert shown(0, 83) == 83
    assert shown(2, 31) == 56, "after two seconds, half of the excess is left"
    assert shown(8, 25) < 30, "and little soon"
    assert shown(20, 24) == pytest.approx(24, abs=1)
    assert not shown.is_late
    before = shown(21, 24)
    assert shown(21, 60) == before, "it stands still while the estimate is longer"
    assert shown.is_late, "and this is said"
    assert shown(22, 5) < before
    assert not shown.is_late
    rng, left, _now = np.random.default_rng(0), [], 0.0
    # a true time of 60 s, guessed with errors of up to 20 %
    left.extend(shown(100 + now, (60 - now) * rng.uniform(0.8, 1.2)) for now in range(60))
    assert left == sorted(left, reverse=True)


def test_a_time_left_is_shown_from_the_first_second_and_never_rises_though_judges_take_longer() -> None:
    now, seen = [0.0], list[str]()
    progress = RaceProgress(lambda _share, step: seen.append(step.split(", ")[-1]), lambda: now[0], 300, 0.2)
    for at in (0, 20, 230, 260, 330):
        now[0] = at
        progress(0.0, "judge")
    progress.begin_candidates(390)
    progress.announce("Whitening", None, 0.0)
    now[0] = 350.0
    progress.tick()
    progress.announce("Averaging", 10.0, 10.0)
    now[0] = 356.0
    progress.tick()
    now[0] = 362.0
    progress.tick()
    assert seen == [*(f"{left} of its time left" for left in (
        "5:00", "4:40", "1:10", "1:00", "1:00", "1:00", "0:40")), "about 40 s left", "about 8 s left",
        "more than 8 s left"], "the judges leave a fifth of the time in any case"


def test_the_clock_of_a_race_stands_still_while_it_waits() -> None:
    now = [10.0]
    clock = RaceClock(lambda: now[0])
    for is_waiting, later, expected in (
            (False, 15, 15), (True, 25, 15), (True, 30, 15), (False, 32, 17), (True, 40, 17)):
        clock.wait(is_waiting)
        now[0] = later
        assert clock() == expected


def test_a_figure_is_never_a_signed_zero_and_never_hides_that_an_interval_excludes_0() -> None:
    assert [figure_words(value) for value in (-0.0004, 0.0004, -0.00001, 0.0, -0.0126)] == [
        "−0.0004", "0.0004", "0.000", "0.000", "−0.013"]
    assert [figure_words(value, "+") for value in (0.0, 0.0123, -0.0123)] == ["0.000", "+0.012", "−0.012"]


def test_a_gain_that_may_be_chance_says_so_in_a_search_too() -> None:
    lucky = judged("Lucky", 2.2, 1.0)
    race = race_of(lucky)
    for words in (searched_words(race, lucky), brief_words(race, lucky)):
        assert "no clear difference in first results" in words
        assert "better" not in words
    assert "(+2.200, −1.091 to 5.491)" in searched_words(race, lucky), "the interval says it, too"


def for_groups(first: Measured) -> Race:
    """Return a race for whole groups whose best search has a known gain in first results."""
    of = Comparison(first=first, groups=measured("better", 0.05), judges=("judge",))
    best = Outcome(name="Best", setup=Setup(backbone="net", recipe="views+whiten"), kept=True, against_best=of,
                   against_start=of, run="run of Best")
    return race_of(best).model_copy(update={"serves": "groups", "budget": 2.0})


def test_a_race_without_a_winner_names_the_search_that_a_later_race_found_better_in_the_same_measure() -> None:
    unclear = race_of(judged("Whitening", 0.004, 0.003), outcome_in("not tried"))
    found = find_elsewhere(unclear, [(for_groups(measured("better", 0.02)), True)])
    assert found is not None
    assert found.wins(unclear)
    words = advice_words(unclear, elsewhere=found)
    assert words.startswith(
        "Best search, found by a later race for whole groups, in 2 minutes: the refined search (several views of each "
        "image, then whitening). First results are clearly better than with the plain search, in the judges' eyes. "
        "Compared with "
        "the plain search: better first results (+0.020, 0.003 to 0.037), better whole groups (+0.050, 0.008 "
        "to 0.092). This race alone has no clear winner. The largest gain, of another refined search (whitening), "
        "may be chance")
    assert "Short trainings were not tried" in words
    assert "keep the plain search" not in words


def test_another_race_with_a_larger_gain_is_told_with_the_words_of_its_search() -> None:
    own = race_of(judged("Whitening", 0.01, 0.001))
    found = find_elsewhere(own, [(for_groups(measured("better", 0.02)), False)])
    assert found is not None
    assert not found.wins(own)
    assert advice_words(own, elsewhere=found).endswith(
        "An earlier race for whole groups, in 2 minutes, says of another refined search (several views of each "
        "image, then whitening): better "
        "first results (+0.020, 0.003 to 0.037), better whole groups (+0.050, 0.008 to 0.092).")


def test_another_race_is_silent_if_its_search_is_the_same_or_gains_nothing_more() -> None:
    unclear, certain = race_of(judged("Whitening", 0.004, 0.003)), race_of(judged("Whitening", 0.03, 0.001))
    level, better = for_groups(measured("cannot tell")), for_groups(measured("better", 0.02))
    assert find_elsewhere(unclear, [(level, True)]) is None
    doubtful = Measured(verdict="better", difference=0.007, low=0.001, high=0.013)
    assert find_elsewhere(unclear, [(for_groups(doubtful), True)]) is None, "it may be chance"
    assert find_elsewhere(certain, [(better, True)]) is None, "its own gain is larger"
    assert find_elsewhere(race_of(judged("Whitening", 0.01, 0.001)), [(better, True)]) is not None
    assert find_elsewhere(better.model_copy(update={"serves": "first"}), [(better, True)]) is None, "the same search"


def test_a_training_that_was_given_up_counts_as_tried() -> None:
    distill = Setup(backbone="net", method="distill")
    rows = (outcome_in("given up", seconds=43.0), outcome_in("not tried", distill, 21.0))
    assert gap_words(race_of(judged("Whitening", 0.02, 0.001), *rows)).startswith(
        "PLM was given up after 43 s, because it took too long. Other "
        "short trainings were not tried: they would not have fitted into the time that was left. Run again with")
    assert gap_words(race_of(judged("Whitening", 0.02, 0.001), rows[0])).startswith(
        "PLM was given up after 43 s, because it took too long. Run again with")


@pytest.mark.parametrize(("expected", "state"), [(60, "judged"), (80, "not tried")])
def test_a_candidate_that_may_fit_is_tried_at_the_end_in_place_of_unused_time(expected: float, state: str) -> None:
    """The views may take 60 of the 50 seconds that are left: whitening takes one, and the estimate is rough."""
    track = Stub({"": 0, "views": 1, "whiten": 0}, expected={"views": expected})
    outcomes = raced(track, "views", "whiten", seconds=50)
    assert [(outcome.name, outcome.state) for outcome in outcomes[:2]] == [("views", "not tried"), ("whiten", "judged")]
    assert [outcome.state for outcome in outcomes[2:]] == ["judged"] * (state == "judged")
    assert {outcome.setup: outcome.state for outcome in outcomes}[outcomes[0].setup] == state
    assert [name for name, _ in track.announced][-1] == ("views" if state == "judged" else "whiten")


def test_a_race_that_ends_before_its_time_says_how_long_what_was_left_takes() -> None:
    won = judged("Whitening", 0.02, 0.001)
    left = outcome_in("not tried", seconds=720), outcome_in("given up", Setup(backbone="other"), 30.0).model_copy(
        update={"needs": 900.0})
    early = race_of(won, *left).model_copy(update={"seconds": 220.0})
    said = "The race ended after 3:40 of 5:00 min: what was left needs at least about 12 min."
    assert early_words(early) == said
    assert said in tell_advice(early).shown
    assert said not in tell_advice(early, is_done=False).shown
    one = early.model_copy(update={"outcomes": (won, left[0])})
    assert early_words(one).endswith("what was left needs about 12 min.")
    for silent in ({"seconds": 0.0}, {"seconds": 290.0}, {"outcomes": (won,)}):
        assert early_words(early.model_copy(update=silent)) == "", "an earlier version, its time, nothing was left"


def test_a_race_says_how_long_it_took_and_why_it_ended() -> None:
    outcome = judged("Whitening", 0.02, 0.001)
    assert not took_words(race_of(outcome)), "an earlier version stored no time"
    whole = race_of(outcome, judged("PLM", 0.01, 0.001, "plm")).model_copy(update={"seconds": 192.0, "budget": 5.0})
    assert took_words(whole) == "The race took 3:12 of 5:00 min: 2 candidates judged, every candidate was tried."
    short = race_of(outcome, outcome_in("not tried", seconds=720)).model_copy(update={"seconds": 301.0, "budget": 5.0})
    assert took_words(short) == "The race took 5:01 of 5:00 min: 1 candidate judged, 1 more did not fit into the time."


def test_settling_takes_a_usual_comparison_for_each_simpler_candidate() -> None:
    rows = [judged("Whitening", 0.02, 0.001), judged("PLM", 0.03, 0.001, "plm"), judged("Averaging", 0.0, 0.1)]
    race = race_of(*(row.model_copy(update={"seconds": seconds}) for row, seconds in zip(
        rows, (4.0, 90.0, 2.0), strict=True)))
    assert seconds_to_settle(race) == 4.0, "the trained search gains most, and one is simpler"
    assert seconds_to_settle(race_of(rows[0])) == seconds_to_settle(race_of(rows[2])) == 0.0


class Trainings(Stub):
    """A track on which each training takes a known time."""

    def expects(self, setup: Setup) -> float:
        return self.expected[setup.method]

    def compare(self, before: Setup, after: Setup) -> Comparison:
        self.time += self.expected[after.method] if before == START else 0.0
        return comparison("cannot tell")


@pytest.mark.parametrize(("seconds", "order"), [(200, ["plm", "exemplar", "distill"]),
                                                (60, ["distill", "exemplar", "plm"])])
def test_cheap_trainings_run_first_if_not_all_fit(seconds: float, order: list[str]) -> None:
    ideas = [Idea(name, lambda best, name=name: best.model_copy(update={"method": name}), trains=True)  # type: ignore
             for name in ("plm", "exemplar", "distill")]
    track = Trainings({}, expected={"plm": 50, "exemplar": 30, "distill": 20})
    assert [outcome.name for outcome in run_race(START, ideas, track, "first", seconds)] == order


@pytest.mark.parametrize(("is_measured", "seconds", "state"), [
    (False, 60, "not tried"), (False, 63, "judged"), (True, 60, "judged"), (True, 45, "not tried")])
def test_a_training_begins_only_if_its_expected_time_fits_with_a_margin_where_it_was_never_measured(
        is_measured: bool, seconds: float, state: str) -> None:
    idea = Idea("PLM", lambda best: best.model_copy(update={"method": "plm"}), trains=True)
    track = Trainings({}, expected={"plm": 50})
    track.is_measured = lambda _setup: is_measured  # type: ignore[method-assign]
    outcome = next(iter(run_race(START, [idea], track, "first", seconds)))
    assert (outcome.state, outcome.seconds) == (state, 50)


@pytest.mark.parametrize(("seconds", "states"), [
    (60, ["not tried", "judged"]), (41, ["not tried", "judged"]), (39, ["not tried"])])
def test_a_training_that_was_left_out_is_tried_at_the_end_though_its_time_was_never_measured(
        seconds: float, states: list[str]) -> None:
    idea = Idea("PLM", lambda best: best.model_copy(update={"method": "plm"}), trains=True)
    track = Trainings({}, expected={"plm": 50})
    track.is_measured = lambda _setup: False  # type: ignore[method-assign]
    assert [outcome.state for outcome in run_race(START, [idea], track, "first", seconds)] == states


@pytest.mark.parametrize(("seconds", "order"), [(30, ["views", "whiten", "rerank"]),
                                                (20, ["whiten", "rerank", "views"])])
def test_a_step_that_takes_much_of_the_time_comes_after_the_other_steps(seconds: float, order: list[str]) -> None:
    quality = dict.fromkeys(("", "views", "whiten", "rerank"), 0.0)
    track = Stub(quality, expected={"views": 10, "whiten": 1, "rerank": 1})
    assert [outcome.name for outcome in raced(track, "views", "whiten", "rerank", seconds=seconds)] == order
    trains = Idea("plm", lambda best: best.model_copy(update={"method": "plm"}), trains=True)
    ideas = slow_steps_late([idea("views"), idea("whiten"), trains], START, track, 20)
    assert [each.name for each in ideas] == ["whiten", "views", "plm"], "trainings stay last"


def test_only_trainings_are_sorted_by_their_time() -> None:
    assert [idea.trains for idea in list_ideas(["other"], TITLES, has_images=True)][-5:] == [True] * 4 + [False]
    quality = {"": 0, "whiten": 0, "rerank": 0}
    assert [outcome.name for outcome in raced(Stub(quality, expected={"whiten": 9, "rerank": 1}), "whiten", "rerank",
                                              seconds=30)] == ["whiten", "rerank"]


def test_rows_name_the_whole_search_and_say_what_is_kept_for_the_next_steps() -> None:
    whiten, *_ = BY_SIMPLICITY
    race, _ = settled({whiten: 0.018, TRAINED.model_copy(update={"recipe": "whiten"}): 0.02}, error=0.002)
    simple, longer = (outcome.model_copy(update={"kept": True}) for outcome in race.outcomes)
    race = race.model_copy(update={"outcomes": (simple, longer)})
    assert outcome_words(longer, race).startswith(
        "PLM, then whitening: better first")
    for outcome in (simple, longer):
        assert outcome_words(outcome, race).endswith("); kept for the next steps.")
        assert outcome_words(outcome.model_copy(update={"kept": False}), race).endswith(").")


def test_a_certain_gain_with_too_large_a_price_is_no_winner_and_says_the_price() -> None:
    of = comparison("better", "worse", 0.03)
    dear = Outcome(name="Whitening", setup=BY_SIMPLICITY[0], against_best=of, against_start=of, run="run")
    assert advice_words(race_of(dear)) == (
        "No clear winner for first results: keep the plain search. "
        "The plain search is the pretrained network as it is. What gains in first "
        "results loses more in whole groups. Keep the plain search; to decide it, judge the largest gain yourself: "
        "the refined search (whitening). Whitening: "
        "better first results (+0.020, 0.003 to 0.037), worse whole groups (−0.030, −0.055 to −0.005), which lose more "
        "than first results gain. The race ended when every candidate was tried (1). "
        f"{limits(race_of(dear))}")


@pytest.mark.parametrize(("verdict", "low", "alone", "said"), [
    ("better", 0.02, "better", "better"), ("better", 0.001, "better", "cannot tell"),
    ("cannot tell", 0.02, "cannot tell", "cannot tell"), ("cannot tell", -0.01, "cannot tell", "cannot tell")])
def test_a_difference_is_said_only_if_it_is_certain_among_a_family(
        verdict: Any, low: float, alone: str, said: str) -> None:
    measured = Measured(verdict=verdict, difference=0.03, low=low, high=0.06 - low)
    assert (measured.alone, measured.said) == (alone, said)
    assert measured.reversed.said == {"better": "worse"}.get(said, said)


@pytest.mark.parametrize(("before", "after", "told"), [
    ("", "average", ("better", "cannot tell")), ("", "rerank", ("better", "cannot tell")),
    ("whiten", "whiten+diffuse", ("better", "cannot tell")), ("", "whiten", ("better", "worse")),
    ("", "views+reduce", ("better", "worse")), ("average:k=3", "whiten+average", ("better", "worse")),
    ("average", "average+rerank", ("better", "cannot tell")), ("rerank", "", ("cannot tell", "worse")),
    ("rerank", "average", ("cannot tell", "cannot tell"))])
def test_no_verdict_speaks_against_a_step_that_judges_undervalue(before: str, after: str, told: tuple[str, str]
                                                                 ) -> None:
    """Neither is a search worse for such a step, nor another better than a search that has it."""
    recipes = Recipe.parse(before), Recipe.parse(after)
    for serves in ("first", "groups"):
        said = tuple(comparison(verdict, verdict).between(*recipes).served(serves) for verdict in ("better", "worse"))
        assert tuple(of.said for of in said) == told
        assert tuple(of.alone for of in said) == told
        assert tuple(of.reversed.said for of in said) == tuple(REVERSED[verdict] for verdict in told)
        assert [of.is_undervalued for of in said] == [verdict == "cannot tell" for verdict in told]
        assert [of.agreed for of in said] == ["better", "worse"], "what a race builds on does not change"
    nothing = comparison("cannot tell").between(*recipes).first
    assert not nothing.is_undervalued, "there is no difference to tell"


def test_a_stored_race_and_its_duels_leave_out_what_judges_undervalue() -> None:
    lost = comparison("worse", "worse")
    outcome = Outcome(name="A", setup=Setup(backbone="net", recipe="rerank"), against_best=lost, against_start=lost)
    again = Outcome.model_validate(outcome.model_dump(mode="json"))
    assert race_of(again).verdicts(again) == ("cannot tell", "cannot tell")
    assert said_word(race_of(again).gain(again)) == "no verdict"
    duel = Duel(simpler=outcome.setup, largest=Setup(backbone="net", method="plm"), comparison=comparison("better"))
    assert Duel.model_validate(duel.model_dump(mode="json")).is_level("first")
    assert not duel.model_copy(update={"comparison": comparison("better")}).is_level("first")
