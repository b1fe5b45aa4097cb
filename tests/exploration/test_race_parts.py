"""The parts of a race's largest gain are tried, so that a simpler search can be advised."""

from __future__ import annotations

from collections.abc import Mapping

from tests.exploration.test_race import START, Stub, idea, measured, race_of
from udml_core.exploration.race import Outcome, Setup
from udml_core.exploration.race_measured import Comparison
from udml_core.exploration.race_parts import parts_of, run_with_parts
from udml_core.exploration.race_running import settle


class Sure(Stub):
    """A track whose comparisons have small intervals."""

    def compare(self, before: Setup, after: Setup) -> Comparison:
        gain = self.quality[after.recipe] - self.quality[before.recipe]
        of = measured("better" if gain > 0 else "worse" if gain < 0 else "cannot tell", 0.02)
        self.time += self.seconds
        return Comparison(first=of.model_copy(update={"difference": gain, "low": gain - 0.001, "high": gain + 0.001}),
                          groups=measured("cannot tell"), judges=("judge",))


def raced_with_parts(quality: Mapping[str, float], seconds: float = 100.0,
                     known: Mapping[Setup, Outcome] | None = None) -> list[Outcome]:
    ideas = [idea("views"), idea("whiten")]
    return list(run_with_parts(race_of(), ideas, Sure(quality), seconds, known))


QUALITY = {"": 0.0, "views": 0.004, "views+whiten": 0.024, "whiten": 0.024}


def test_a_step_that_was_only_tried_after_others_is_tried_alone_and_advised_if_it_is_as_good() -> None:
    outcomes = raced_with_parts(QUALITY)
    assert [outcome.setup.recipe for outcome in outcomes] == ["views", "views+whiten", "whiten"]
    assert not outcomes[-1].kept, "no later candidate builds on a part"
    race = settle(race_of(*outcomes), Sure(QUALITY))
    assert race.best is not None
    assert race.best.setup.recipe == "whiten"


def test_a_part_that_does_not_fit_into_the_time_is_left_out_and_a_known_part_is_not_judged_again() -> None:
    assert len(raced_with_parts(QUALITY, seconds=3.5)) == 2
    known = {outcome.setup: outcome for outcome in raced_with_parts(QUALITY)}
    assert raced_with_parts({}, known=known) == list(known.values())


def test_parts_are_single_steps_and_searches_without_a_step_or_the_trained_head() -> None:
    trained = Setup(backbone="net", method="plm", recipe="views+whiten")
    parts = [(part.method, part.recipe) for part in parts_of(START, trained)]
    assert parts == [("frozen", "views"), ("plm", "views"), ("frozen", "whiten"), ("plm", "whiten"),
                     ("frozen", "views+whiten")]
    assert not parts_of(START, Setup(backbone="net", recipe="whiten"))


def test_the_search_in_use_is_judged_first_and_no_candidate_builds_on_it() -> None:
    chosen = Setup(backbone="net", recipe="rerank")
    quality = QUALITY | {"rerank": 0.05, "views+rerank": 0.06}
    ideas = [idea("views"), idea("whiten")]
    outcomes = list(run_with_parts(race_of(), ideas, Sure(quality), 100.0, chosen=chosen))
    assert [outcome.setup.recipe for outcome in outcomes] == ["rerank", "views", "views+whiten"]
    assert not outcomes[0].kept
    assert race_of(*outcomes).largest == outcomes[0], "it can be advised"
    known = {outcome.setup: outcome for outcome in outcomes}
    assert list(run_with_parts(race_of(), ideas, Sure({}), 100.0, known, chosen)) == outcomes
    assert list(run_with_parts(race_of(), ideas, Sure(QUALITY), 100.0, chosen=START)) == raced_with_parts(QUALITY)
