"""The verdict without labels in words, and how it is compared with measures from labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.running import worked
from udml_core.numerics.second_opinion import Interval, Opinion
from udml_core.runs import Run
from udml_core.runs.analyses import create_analysis
from udml_core.runs.analyses.kinds.opinion import Opinions, Verdicts
from udml_core.runs.opinions import (
    OF_REFINEMENTS,
    OF_RUN,
    agreement,
    opinion_of,
    opinion_words,
    preferred_recipe,
    verdicts_of,
)
from udml_core.work.jobs.follow_ups import planned

BETTER, WORSE, UNCLEAR = Interval(0.2, 0.3, 0.01), Interval(0.3, 0.2, 0.01), Interval(0.2, 0.21, 0.02)


def opinions(**judges: Opinion) -> Opinions:
    weights = {name: 1.0 - 0.1 * number for number, name in enumerate(judges)}
    return Opinions("frozen", {"final": judges}, weights, 30)


def keep_opinion(run: Run, first: Interval, groups: Interval, request: Any = OF_RUN, name: str = "final") -> None:
    """Store a finished second opinion of one judge."""
    values = np.array([[[[of.before, of.after, of.error] for of in (first, groups)]]])
    create_analysis(run, request, state="done", result={
        "compared": np.array([name]), "encoders": np.array(["squeezenet"]), "weights": np.array([0.5]),
        "group": np.array(30), "values": values})


def test_the_sentence_states_both_verdicts_and_the_judges() -> None:
    assert opinion_words(opinions(squeezenet=Opinion(BETTER, UNCLEAR))) == (
        "First result: better. Whole group: cannot tell. Compared with the frozen features, without labels, by "
        "SqueezeNet 1.1, which took no part in this run.")
    both = opinions(squeezenet=Opinion(WORSE, BETTER), pixels=Opinion(WORSE, BETTER))
    assert opinion_words(both, reference="the embedding after training") == (
        "First result: worse. Whole group: better. Compared with the embedding after training, without labels, by "
        "SqueezeNet 1.1 and raw pixels, which took no part in this run.")


@pytest.mark.parametrize(("verdict", "difference", "expected"), [
    ("better", 1.0, "agree"), ("better", -1.0, "disagree"), ("worse", -1.0, "agree"), ("worse", 1.0, "disagree"),
    ("cannot tell", 1.0, "undecided"), ("better", 0.0, "undecided")])
def test_verdicts_agree_with_labels_if_the_signs_are_equal(verdict: Any, difference: float, expected: str) -> None:
    evaluation = {"frozen": {"recall@1": 50.0, "map@r": 30.0}, "final": {"recall@1": 50.0 + difference, "map@r": 29.0}}
    assert agreement(Verdicts(verdict, "better"), evaluation) == {"recall@1": expected, "map@r": "disagree"}
    assert agreement(Verdicts(verdict, "better"), {"final": {"effective rank": 3.0}}) == {}


def test_a_run_has_the_verdict_of_its_finished_second_opinion(tmp_path: Path) -> None:
    run = worked(tmp_path)
    assert opinion_of(run) is None
    assert verdicts_of(run) is None
    assert preferred_recipe(run) is None
    keep_opinion(run, BETTER, WORSE)
    assert verdicts_of(run) == ("better", "worse")
    keep_opinion(run, UNCLEAR, BETTER, OF_REFINEMENTS, "whiten")
    assert preferred_recipe(run) == "whiten"


def test_no_refinement_is_preferred_that_makes_the_first_result_worse(tmp_path: Path) -> None:
    run = worked(tmp_path)
    keep_opinion(run, WORSE, BETTER, OF_REFINEMENTS, "whiten+average:k=5")
    assert preferred_recipe(run) == ""


def test_second_opinions_follow_a_run_between_its_maps(tmp_path: Path) -> None:
    run = worked(tmp_path)
    assert [spec.kind for spec in planned(run)] == ["umap", "grid", "opinion", "opinion", "tsne"]
    assert planned(run)[2:4] == (OF_RUN, OF_REFINEMENTS)
