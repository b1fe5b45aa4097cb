"""What race and judgments say of a chosen search, and how it stands in a race."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.exploration.test_race import START, comparison, measured, race_of
from tests.running import worked
from tests.work.test_concluding import answer, judging_of, raced
from udml_core.exploration.race import Outcome, Setup
from udml_core.exploration.race_conclusion import conclude
from udml_core.exploration.race_measured import Count, Verdict
from udml_core.work.jobs.answering import aim_of, evidence_words, judged_words, relation_to
from udml_core.work.jobs.raced import races_from


@pytest.mark.parametrize(("is_second", "count", "said"), [
    (True, 16, "First result: better; your 16 judgments agree."),
    (False, 16, "First result: better; your 16 judgments prefer the plain search."),
    (None, 20, "First result: better; your 20 judgments cannot tell which is better."),
    (True, 1, "First result: better; your 1 judgment does not decide yet.")])
def test_the_evidence_names_the_judges_verdict_and_what_judgments_say_of_it(
        tmp_path: Path, is_second: bool | None, count: int, said: str) -> None:
    run = worked(tmp_path, method="frozen", split="all")
    raced(run)
    race, *_ = races_from(run)[0]
    (outcome,) = race.judged
    assert evidence_words(race, outcome, tmp_path) == "First result: better. Whole group: no clear difference."
    assert not judged_words(race, outcome, tmp_path)
    judging = judging_of(run)
    for _ in range(count):
        answer(judging, is_second)
    assert evidence_words(race, outcome, tmp_path) == f"{said} Whole group: no clear difference."
    assert judged_words(race, outcome, tmp_path) == said.replace("better; ", "")


def outcome_of(recipe: str, first: Verdict = "better", groups: Verdict = "cannot tell", run: str = "run") -> Outcome:
    of = comparison(first, groups)
    return Outcome(name=recipe, setup=Setup(backbone=START.backbone, recipe=recipe), against_best=of, against_start=of,
                   run=run)


def test_a_chosen_search_is_the_advice_does_about_as_well_or_took_no_part() -> None:
    best, worse = outcome_of("whiten"), outcome_of("rerank", "cannot tell")
    equal = outcome_of("views+whiten")
    race = race_of(best, equal, worse)
    of = conclude(race)
    assert of.use is not None
    others = {relation_to(of, race, "run", recipe)[0]: recipe for recipe in ("whiten", "views+whiten", "rerank")}
    assert set(others) == {"same", "equal", "other"}
    assert others["other"] == "rerank"
    assert others["same"] == of.use.setup.recipe
    assert relation_to(of, race, "run", "whiten:k=5")[1] == best, "a recipe may write its defaults"
    assert relation_to(of, race, "another", "whiten") == ("unjudged", None)
    assert relation_to(of, race, "run", None) == ("unjudged", None)
    assert relation_to(conclude(race_of(worse)), race_of(worse), "run", "rerank")[0] == "other"


@pytest.mark.parametrize(("first", "groups", "aim"), [
    ("better", "cannot tell", "first"), ("cannot tell", "better", "groups"), ("worse", "better", "groups"),
    ("better", "better", "first"), ("cannot tell", "cannot tell", "first")])
def test_a_search_is_compared_by_what_it_gains(first: Verdict, groups: Verdict, aim: str) -> None:
    assert aim_of(race_of(), outcome_of("whiten", first, groups)) == aim


@pytest.mark.parametrize(("better", "said"), [
    (0.76, "better (by looks, 76 of 100 searches better, 22 worse)"),
    (0.45, "no clear difference (by looks, 45 of 100 searches better, 53 worse)")])
def test_a_gain_that_its_counts_do_not_show_is_no_gain(better: float, said: str) -> None:
    """The mean is better, although more results may get worse."""
    count = Count(changed=0.98, better=better, worse=0.98 - better, low=better - 0.06, high=better + 0.06)
    of = comparison("better").model_copy(update={"first": measured("better").model_copy(update={"count": count})})
    outcome = outcome_of("whiten").model_copy(update={"against_start": of})
    assert evidence_words(race_of(outcome), outcome, Path("nowhere")).startswith(f"First result: {said}.")
