"""The conclusion of a race with stored judgments: it follows each of them, and costs little."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.exploration.test_race import comparison, judged, race_of
from tests.running import worked
from udml_core.base.memory import Memory
from udml_core.base.paths import dataset_cache
from udml_core.data.given.exclusions import exclude
from udml_core.exploration.race import Outcome, Race, Setup
from udml_core.exploration.race_conclusion import Conclusion, conclude
from udml_core.runs import Run
from udml_core.runs.analyses import Analysis, create_analysis, plan_analysis
from udml_core.runs.analyses.kinds.advice import Advice
from udml_core.runs.analyses.kinds.refine import Refinement
from udml_core.runs.search import Retrieval
from udml_core.runs.search.differing import Comparison, Side, compare
from udml_core.runs.search.judging import Choice, Judging
from udml_core.work.jobs import concluding
from udml_core.work.jobs.concluding import Suggestion, advised_beside, conclusion_of, suggested_by_race
from udml_core.work.workers import analyse as worker


def raced(run: Run) -> Analysis:
    """Return a race for first results that advises whitening, and refine all images."""
    better = comparison("better", "cannot tell")
    outcome = Outcome(name="Whitening", setup=Setup(backbone="pixels", recipe="whiten"), against_best=better,
                      against_start=better, run=run.id, kept=True)
    race = Race(serves="first", budget=2, start=Setup(backbone="pixels"), run=run.id, outcomes=(outcome,))
    plan = plan_analysis(Refinement, recipe="whiten")
    create_analysis(run, plan, state="done", result=worker.compute(run, plan, lambda *_: None))
    return create_analysis(run, plan_analysis(Advice, budget=2.0, serves="first"), state="done",
                           result={"race": np.array(race.model_dump_json())})


def judging_of(run: Run, judge: str = "me") -> Judging:
    retrieval = Retrieval(run)
    return Judging(compare(Side(retrieval, "final"), Side(retrieval, plan_analysis(Refinement, recipe="whiten").id),
                           "all"), judge)


def answer(judging: Judging, is_second: bool | None) -> None:
    """Answer the next query for B, for A, or for neither."""
    question = judging.question()
    assert question is not None
    is_second_left = question.left == judging.comparison.options(question.position)[1]
    choice: Choice = "both right" if is_second is None else "left" if is_second_left == is_second else "right"
    judging.answer(question, choice)


def test_a_conclusion_follows_each_judgment_and_its_undoing(tmp_path: Path) -> None:
    run = worked(tmp_path, method="frozen", split="all")
    analysis, dataset = raced(run), run.dataset()
    beside = worked(tmp_path, method="pca", split="all", fields={"dimension": 4})
    assert conclusion_of(analysis).basis == "race"
    assert advised_beside(beside, dataset) is not None
    judging, bases = judging_of(run), []
    for _judgment in range(16):
        answer(judging, is_second=False)
        bases.append(conclusion_of(analysis, dataset).basis)
    said = conclusion_of(analysis, dataset)
    assert bases == sorted(bases, reverse=True), "the race, until judgments contradict it for good"
    assert set(bases) == {"race", "contradicted"}
    assert said.sure == "How sure: 16 of 16 for the plain search; that is too one-sided for chance (95 % certainty)."
    assert advised_beside(beside, dataset) is None, "no page offers it in place of another run"
    suggestion = suggested_by_race(dataset, tmp_path)
    assert suggestion is not None
    assert (suggestion.method, suggestion.words) == (
        "", "First results: Keep the plain search: your 16 judgments prefer it.")
    assert not suggestion.is_trained
    began = time.process_time()
    for _page in range(10):
        conclusion_of(analysis, dataset)
    assert time.process_time() - began < 10 * 0.1, "every page asks for it"
    while bases[-1] != "race":
        judging.undo()
        bases.append(conclusion_of(analysis, dataset).basis)
    few = conclusion_of(analysis, dataset)
    assert few.next_step.startswith("Your ")
    assert few.next_step.endswith(
        " more, 20 in all: they decide if one search is far better; a smaller difference takes 50 or more.")


def test_a_comparison_outlives_a_restart_until_images_are_excluded_or_its_file_is_damaged(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    run = worked(tmp_path, method="frozen", split="all")
    analysis, dataset, searches = raced(run), run.dataset(), []

    def counted_compare(*sides: Any) -> Comparison:
        searches.append(sides)
        return compare(*sides)

    def restart() -> Conclusion:
        monkeypatch.setattr(concluding, "_MEMORY", Memory(16))
        return conclusion_of(analysis, dataset)

    monkeypatch.setattr(concluding, "compare", counted_compare)
    for _ in range(4):
        answer(judging_of(run), is_second=True)
    said = restart()
    assert len(searches) == 1
    assert restart() == said
    assert len(searches) == 1, "it is read"
    (stored,) = (dataset_cache(dataset.fingerprint) / "comparisons").iterdir()
    whole = stored.read_bytes()
    stored.write_bytes(whole[:100])
    assert restart() == said
    assert len(searches) == 2
    assert stored.stat().st_size == len(whole)
    exclude(dataset, [int(judging_of(run).comparison.differing[-1])])
    restart()
    assert len(searches) == 3


def test_judgments_count_under_whatever_name_of_the_frozen_features_they_were_given(tmp_path: Path) -> None:
    run = worked(tmp_path, method="frozen", split="all")
    analysis, dataset = raced(run), run.dataset()
    trained = worked(tmp_path, method="pca", split="all", fields={"dimension": 4})
    refined = Side(Retrieval(run), plan_analysis(Refinement, recipe="whiten").id)
    smaller = worked(tmp_path, method="frozen", split="all", size=6)
    asked = (trained, "final", "race"), (smaller, "frozen", "race"), (trained, "frozen", "contradicted")
    for of, frame, basis in asked:
        judging = Judging(compare(Side(Retrieval(of), frame), refined, "all"))
        for _judgment in range(16):
            answer(judging, is_second=False)
        assert conclusion_of(analysis, dataset).basis == basis, (of.spec().method, frame)


def test_judgments_of_several_people_are_named_and_equal_answers_alone_do_not_stop_them(tmp_path: Path) -> None:
    run = worked(tmp_path, method="frozen", split="all")
    analysis, dataset = raced(run), run.dataset()
    ann, bob = judging_of(run, "Ann"), judging_of(run, "Bob")
    for _judgment in range(20):
        answer(ann, None)
    assert conclusion_of(analysis, dataset).headline == (
        "Either search will do: 20 judgments by Ann cannot tell which is better; most results were equal.")
    for _judgment in range(20):
        answer(bob, None)
    both = conclusion_of(analysis, dataset)
    assert (both.basis, both.action) == ("race", "judge")
    assert "20 judgments by Ann and Bob do not decide yet: more judgments could decide." in both.next_step


def test_the_training_to_begin_with_is_the_largest_sure_gain_if_the_best_search_needs_none(tmp_path: Path) -> None:
    analysis = raced(worked(tmp_path, method="frozen", split="all"))

    def training(*outcomes: Outcome) -> Outcome | None:
        race = race_of(*outcomes)
        return Suggestion(analysis, race, conclude(race)).training

    best, trained, less = judged("Best", 0.012, 0.001), judged("PLM", 0.008, 0.001, "plm"), judged(
        "STML", 0.006, 0.001, "stml")
    assert training(best, less, trained) == trained
    assert training(best, judged("PLM", 0.008, 0.006, "plm")) is None, "its gain may be chance"
    assert training(less) == less, "the search to use"
