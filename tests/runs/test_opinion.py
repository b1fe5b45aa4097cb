"""The second opinion of a run: the judges' differences, who may judge, and what it never reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.numerics.test_second_opinion import noisy, world
from tests.running import worked
from udml_core.base.errors import UserError
from udml_core.data.encoders import Encoder, choose_spec
from udml_core.data.features import features_of
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.refinement.linear import unit_rows
from udml_core.numerics.second_opinion import Judge, judge_rankings, second_opinion
from udml_core.runs import Run
from udml_core.runs.analyses import analysis_at, plan_analysis
from udml_core.runs.analyses.kinds.opinion import Opinions, SecondOpinion
from udml_core.runs.analyses.kinds.refine import Refinement
from udml_core.work.workers import analyse


class WithoutLabels:
    """A run of which only the vectors are known: reading its data set fails."""

    backbone = "squeezenet"

    def __init__(self, vectors: dict[str, np.ndarray], judges: dict[str, np.ndarray]) -> None:
        self._vectors, self._judges = vectors, judges

    def report(self, _share: float, _step: str) -> None: ...

    def indices(self, _scope: str) -> np.ndarray:
        return np.arange(len(self._vectors["frozen"]))

    def ranking(self, frame: str, indices: np.ndarray, queries: np.ndarray, k: int) -> np.ndarray:
        return nearest(self._vectors[frame][indices], k, own=queries)[1]

    def judge_features(self, backbone: str) -> np.ndarray:
        return self._judges[backbone]


def opinions_of(kind: SecondOpinion, material: Any) -> Opinions:
    return kind.result(kind.compute(material))


def test_two_of_three_judges_decide_on_each_embedding_without_labels() -> None:
    own, judged_by = world(0)
    other = world(0)[1] + 0.1 * np.random.default_rng(3).normal(size=judged_by.shape)
    blind = np.random.default_rng(4).normal(size=judged_by.shape)
    vectors = {"frozen": noisy(own, 1.0), "initial": noisy(own, 2.0), "final": own}
    opinions = opinions_of(
        SecondOpinion(frames=("frozen", "initial", "final"), judges=("efficientnet-lite0", "pixels", "cnn")),
        WithoutLabels(vectors, {"efficientnet-lite0": judged_by, "pixels": other, "cnn": blind}))
    assert opinions.verdicts("initial") == ("worse", "worse")
    assert opinions.verdicts("final") == ("better", "better")
    assert opinions.opinions["final"]["cnn"].groups.verdict == "cannot tell"


@pytest.mark.slow
def test_a_run_is_judged_by_each_encoder_but_its_own(tmp_path: Path) -> None:
    run = worked(tmp_path)
    spec = plan_analysis(SecondOpinion, judges=("efficientnet-lite0", "pixels"))
    opinions: Any = analyse.keep(run, spec, lambda _share, _step: None).result()
    dataset, test = run.dataset(), run.spec().halves(run.dataset()).test
    features = features_of(dataset, Encoder(choose_spec("efficientnet-lite0", dataset.native_size, dataset.gray)))
    frozen = features_of(dataset, Encoder(run.spec().encoder))
    expected = second_opinion(Judge.of(features[test]), unit_rows(frozen[test]), run.embeddings("final")[test])
    assert opinions.opinions["final"] == {"efficientnet-lite0": expected}
    assert opinions.reference == "frozen"


@pytest.mark.slow
def test_a_refinement_is_judged_by_its_own_ranking(tmp_path: Path) -> None:
    run = worked(tmp_path)
    refined: Any = analyse.keep(run, plan_analysis(Refinement, recipe="rerank"), lambda _share, _step: None)
    spec = plan_analysis(SecondOpinion, judges=("efficientnet-lite0",), frames=("final", refined.id))
    opinions: Any = analyse.keep(run, spec, lambda _share, _step: None).result()
    dataset, ranking = run.dataset(), refined.result_of(Refinement)
    features = features_of(dataset, Encoder(choose_spec("efficientnet-lite0", dataset.native_size, dataset.gray)))
    queries = np.arange(len(ranking.indices))
    expected = judge_rankings(Judge.of(features[ranking.indices]), queries, ranking.before[:, :60],
                              ranking.neighbors[:, :60])
    assert opinions.opinions[refined.id]["efficientnet-lite0"] == expected
    with pytest.raises(UserError, match="covers 359 images"):
        analyse.compute(run, plan_analysis(SecondOpinion, scope="train", frames=("final", refined.id)),
                        lambda _share, _step: None)


@pytest.mark.slow
def test_the_command_line_prints_differences_with_their_intervals(tmp_path: Path) -> None:
    run = worked(tmp_path)
    spec = plan_analysis(SecondOpinion, judges=("efficientnet-lite0",))
    analyse.keep(run, spec, lambda _share, _step: None)
    opinions: Any = analysis_at(run, spec).result()
    kind = spec.build_kind()
    found = kind.findings(lambda: opinions)
    of = opinions.opinions["final"]["efficientnet-lite0"].groups
    assert found["opinions"]["final"]["efficientnet-lite0"]["groups"] == {
        "difference": of.difference, "low": of.low, "high": of.high}
    assert kind.lines(found)[1] == (f"final against frozen, efficientnet-lite0, groups: {of.difference:+.4f}, "
                                    f"95 % interval {of.low:+.4f} to {of.high:+.4f}")


@pytest.mark.parametrize("judges", [("pixels",), (), ("efficientnet-lite0", "squeznet")])
def test_a_run_without_an_independent_judge_is_refused(tmp_path: Path, judges: tuple[str, ...]) -> None:
    run: Run = worked(tmp_path)
    with pytest.raises(UserError, match=r"pixels took part in this run|judges|got 'squeznet'"):
        plan_analysis(SecondOpinion, judges=judges).build_kind().check_run(run)


def test_one_embedding_is_not_compared_with_itself() -> None:
    with pytest.raises(UserError, match="name at least two frames, got final"):
        plan_analysis(SecondOpinion, frames=("final",))
