"""The lines to beat in the curves: the same images and the same measures as the curves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import PCA

from tests.running import worked
from udml_core.data.splits import make_split
from udml_core.runs import Run
from udml_core.runs.baselines import (
    BASELINES_FILE,
    baselines_of,
    judged_images,
    read_baselines,
    sample_baselines,
    sample_measures,
)


def naive_measures(points: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Compute R@1 and MAP@R image by image."""
    recalls, precisions = [], []
    for query in range(len(points)):
        order = np.argsort(((points - points[query]) ** 2).sum(axis=1), kind="stable")
        hits = (labels[order[order != query]] == labels[query])
        recalls.append(hits[0])
        count = (labels == labels[query]).sum() - 1
        if count:
            precisions.append(sum(hits[: rank + 1].mean() for rank in range(count) if hits[rank]) / count)
    return {"sample recall@1": float(np.mean(recalls)), "sample map@r": float(np.mean(precisions))}


@pytest.mark.parametrize("unit_length", [True, False])
def test_the_baselines_equal_scikit_learns_pca_and_a_naive_ranking(unit_length: bool) -> None:
    random = np.random.default_rng(3)
    labels = random.integers(0, 4, 90)
    features = random.normal(size=(90, 12)) + 2 * random.normal(size=(4, 12))[labels]
    train, judged = np.arange(0, 40), np.arange(40, 85)
    result = sample_baselines(features, labels, train, judged, 3, unit_length)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    projected = PCA(3).fit(unit[train]).transform(unit[judged])
    if unit_length:
        projected /= np.linalg.norm(projected, axis=1, keepdims=True)
    assert result["frozen"] == pytest.approx(naive_measures(unit[judged], labels[judged]))
    assert result["centered pca"] == pytest.approx(naive_measures(projected, labels[judged]))
    assert result["frozen"] != result["centered pca"]


def test_a_worker_stores_what_an_older_run_gets_computed(tmp_path: Path) -> None:
    run = worked(tmp_path / "runs", fields={"dimension": 6, "epochs": 2, "steps": 3})
    stored = read_baselines(run)
    assert stored is not None
    (run.folder / BASELINES_FILE).unlink()
    computed = baselines_of(run, run.dataset())
    assert computed is not None
    for name, row in stored.items():
        assert computed[name] == pytest.approx(row)


def test_a_run_of_the_frozen_features_lies_on_its_line(tmp_path: Path) -> None:
    run = worked(tmp_path / "runs", method="frozen", fields={})
    stored = read_baselines(run)
    assert stored is not None
    last = run.metrics()[0][-1]
    assert {name: last[name] for name in stored["frozen"]} == pytest.approx(dict(stored["frozen"]))


@pytest.mark.parametrize("unit_length", [True, False])
def test_a_run_of_pca_lies_on_the_line_of_pca(unit_length: bool, tmp_path: Path) -> None:
    run = worked(tmp_path / "runs", method="pca", fields={"dimension": 4, "unit_length": unit_length})
    stored, evaluation = read_baselines(run), run.evaluation()
    assert stored is not None
    assert evaluation is not None
    last = run.metrics()[0][-1]
    assert {name: last[name] for name in stored["centered pca"]} == pytest.approx(dict(stored["centered pca"]))
    for measure in ("recall@1", "map@r"):
        assert evaluation["centered pca"][measure] == pytest.approx(evaluation["final"][measure])


def test_pca_is_compared_as_a_method_that_has_no_field_for_unit_length(tmp_path: Path) -> None:
    fields = {"dimension": 4, "unit_length": False}
    nml = worked(tmp_path / "nml", method="nml", fields={"dimension": 4, "epochs": 1}, most_pairs=100)
    pca = worked(tmp_path / "pca", method="pca", fields=fields)
    assert read_baselines(nml) == read_baselines(pca)
    references = [(run.evaluation() or {})["centered pca"] for run in (nml, pca)]
    assert references[0] == pytest.approx(references[1])


def test_the_judged_images_are_those_of_the_curves(tmp_path: Path) -> None:
    run = worked(tmp_path / "runs")
    dataset = run.dataset()
    assert dataset.labels is not None
    sample = run.sample_indices()
    judged = judged_images(sample, make_split(dataset, "seen").test)
    rows = np.isin(sample, judged)
    last = run.epoch_numbers()[-1]
    measured = sample_measures(run.epoch_sample(last)[rows], dataset.labels[judged])
    row = run.metrics()[0][-1]
    assert measured == pytest.approx({name: row[name] for name in measured})


@pytest.mark.parametrize("content", ["", "[]", '{"frozen": 3}'])
def test_damaged_baselines_are_computed_again(content: str, tmp_path: Path) -> None:
    run: Run = worked(tmp_path / "runs")
    stored = read_baselines(run)
    (run.folder / BASELINES_FILE).write_text(content)
    assert read_baselines(run) is None
    assert baselines_of(run, run.dataset()) is not None
    assert stored is not None
