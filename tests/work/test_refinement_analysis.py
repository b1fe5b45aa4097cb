"""Refinements stored beside a run."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.running import worked
from udml_core.base.errors import UserError
from udml_core.data.splits import make_split
from udml_core.numerics.evaluation import map_at_r, neighbor_stability, recall_at_k
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.refinement import Refiner
from udml_core.runs import Run
from udml_core.runs.analyses import AnalysisSpec, Refined, plan_analysis
from udml_core.runs.analyses.kinds.refine import Refinement
from udml_core.work import jobs
from udml_core.work.workers import analyse as worker


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return worked(tmp_path_factory.mktemp("runs"))


@pytest.fixture
def run(finished: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr("udml_core.work.jobs.launch.launch", worker.work)
    return Run(Path(shutil.copytree(finished.folder, tmp_path / "runs" / finished.id)))


def refined(run: Run, **values: Any) -> Refined:
    analysis = jobs.analyse(run, plan_analysis(kind="refine", **values))
    assert analysis.status().state == "done", analysis.status().message
    return analysis.result_of(Refinement)


def test_the_test_half_is_refined_with_whitening_from_the_training_half(run: Run) -> None:
    recipe = "whiten:k=4+average:k=6,alpha=1"
    result = refined(run, recipe=recipe)
    split, rows = make_split(run.dataset(), "seen"), np.asarray(run.embeddings("final"))
    expected = Refiner(recipe).fit(rows[split.test], training=rows[split.train])
    np.testing.assert_array_equal(result.indices, split.test)
    np.testing.assert_allclose(result.embedding, expected.embedding_, atol=1e-5)
    np.testing.assert_array_equal(result.neighbors[:, :5], expected.neighbors(5).indices)
    np.testing.assert_array_equal(result.before[:, :5], nearest(rows[split.test], 5)[1])
    assert result.neighbors.shape == result.scores.shape == result.before.shape == (len(split.test), 100)
    assert result.protocol == "transductive"
    assert result.seen == (("whiten", "training half"), ("average", "gallery"))
    labels = run.dataset().labels[split.test]
    before, after = rows[split.test], result.embedding
    for position, embedding in enumerate((before, after)):
        assert result.measures["recall@1"][position] == pytest.approx(100 * recall_at_k(embedding, labels)[1])
        assert result.measures["map@r"][position] == pytest.approx(100 * map_at_r(embedding, labels)[0], abs=0.05)
    stability = 100 * neighbor_stability(before, after)
    assert result.measures["neighbor stability"] == pytest.approx((100, stability), abs=0.2)


@pytest.mark.slow
def test_views_are_averaged_before_the_head(run: Run) -> None:
    result = refined(run, recipe="views:zoom=1", scope="all", frames=("frozen",))
    pixels = np.stack([np.asarray(run.dataset().images[index])[..., 0] for index in range(50)]).astype(np.float32)
    mean = (pixels + pixels[:, :, ::-1]).reshape(50, -1)
    expected = mean / np.linalg.norm(mean, axis=1, keepdims=True)
    np.testing.assert_allclose(result.embedding[:50], expected, atol=1e-5)
    assert result.protocol == "inductive"
    assert result.seen == (("views", "nothing"),)


def test_all_images_are_fitted_on_themselves(run: Run) -> None:
    result = refined(run, recipe="whiten", scope="all")
    assert result.seen == (("whiten", "gallery"),)
    assert result.protocol == "transductive"


def test_equal_recipes_are_one_analysis() -> None:
    spec = AnalysisSpec(kind="refine", recipe="whiten:k=5 + average:k=10,times=2")
    assert spec.recipe == "whiten+average:times=2"
    assert spec.id == AnalysisSpec(kind="refine", recipe="whiten+average:times=2,alpha=0").id
    assert (spec.scope, spec.frames) == ("test", ("final",))


@pytest.mark.parametrize(("values", "message"), [
    ({"recipe": "whitten"}, r"computed: A recipe has the steps .*; got 'whitten'\.$"),
    ({"recipe": "whiten:k=0"},
     r"^The analysis cannot be computed: whiten: k must be a whole number between 1 and 100, got 0\.$"),
    ({"frames": ("initial", "final")}, "a refinement has exactly one frame, got initial, final")])
def test_a_request_that_does_not_fit_is_rejected(values: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        plan_analysis(kind="refine", **values)
