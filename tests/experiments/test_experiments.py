"""Experiments: search of the learning rate, early stopping, resumed records, triplets of a row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from experiments import pairs, seen_categories, semi_supervised
from experiments.zero_shot import parse_row
from tests.running import worked
from udml_core.data import catalog
from udml_core.methods.closed_form import PCA, Frozen
from udml_core.methods.ml_kml import ML
from udml_core.methods.nml import NML
from udml_core.numerics.explanations import Affinities
from udml_core.numerics.neighbors import nearest
from udml_core.runs import Run


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pairs.ExperimentData:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path))
    return pairs.ExperimentData("digits", patience=3)


@pytest.mark.parametrize(("best", "measured"), [
    (0.3, [0.1, 0.3, 1.0]), (0.01, [0.003, 0.01, 0.03, 0.1, 0.3, 1.0]), (5.0, [0.1, 0.3, 1.0, 3.0])])
def test_the_search_moves_from_the_default_to_the_best_rate_or_the_end_of_the_grid(
        best: float, measured: list[float], data: pairs.ExperimentData, monkeypatch: pytest.MonkeyPatch) -> None:
    rates: list[float] = []

    def measure(method: NML, _seed: int) -> dict[str, float]:
        rates.append(method.learning_rate)
        return {"validation": -abs(np.log(method.learning_rate / best))}

    monkeypatch.setattr(data, "measure", measure)
    assert data.tune(NML()).model_dump()["learning_rate"] == min(best, 3.0)
    assert sorted(rates) == measured
    assert data.tune(Frozen()) == Frozen()


def test_training_stops_after_epochs_without_a_better_validation_score(
        data: pairs.ExperimentData, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = iter([0.5, 0.4, 0.6, 0.6, 0.5, 0.55, 0.9])
    original = data._precision

    def precision(embedder: Any, images: Any) -> dict[int, float]:
        score = next(scores, None)
        return original(embedder, images) if len(images) == 359 else {10: score or 0.0}

    test_half = len(pairs.make_split(data.dataset, "seen", "validation", 0).test)
    assert test_half == 359
    monkeypatch.setattr(data, "_precision", precision)
    result = data.measure(ML(dimension=4, epochs=50), 0)
    assert (result["epoch"], result["validation"]) == (3, 60), "0.9 in epoch 7 comes after three epochs without a gain"


def test_pca_is_centered_and_keeps_lengths(data: pairs.ExperimentData) -> None:
    result = data.measure(PCA(dimension=16, unit_length=False), 0)
    split = pairs.make_split(data.dataset, "seen", "validation", 0)
    rows = data.features / np.linalg.norm(data.features, axis=1, keepdims=True)
    center = rows[split.train].mean(0)
    directions = np.linalg.svd(rows[split.train] - center, full_matrices=False)[2][:16]
    embeddings = (rows[split.test] - center) @ directions.T
    neighbors = nearest(embeddings.astype(np.float32), 1)[1][:, 0]
    labels = np.asarray(data.dataset.labels)[split.test]
    assert result["recall@1"] == pytest.approx(100 * (labels == labels[neighbors]).mean())


def test_a_record_of_the_same_command_is_resumed(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    assert pairs.read_results(path, "python -m experiments.pairs digits") == {}
    path.write_text(json.dumps({"command": "python -m experiments.pairs digits", "datasets": {"Digits": {"rows": {}}}}))
    assert pairs.read_results(path, "python -m experiments.pairs digits") == {"Digits": {"rows": {}}}
    assert pairs.read_results(path, "python -m experiments.pairs digits --seeds 1") == {}


def few_runs(folder: Path) -> Iterator[Run]:
    for seed in (0, 1):
        yield worked(folder, method="ssdml", labels_per_class=20, seed=seed,
                     fields={"dimension": 8, "epochs": 1, "partition": 0, "steps": 1, "batch": 10_000, "gamma": 0.5})


@pytest.mark.slow
def test_a_row_tells_which_share_of_positives_and_negatives_has_the_class_of_the_anchor(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    runs = list(few_runs(tmp_path / "runs"))
    dataset = catalog.load("digits")
    shares = semi_supervised.judge_triplets(runs, dataset)
    labels = np.asarray(dataset.labels)
    for order in ("affinity", "distance"):
        expected = []
        for run in runs:
            train = pairs.make_split(dataset, "seen").train
            record = next(record for record in run.explanations(1) if isinstance(record, Affinities))
            counts = np.zeros(2)
            for point, neighbors, values in zip(record.points, record.neighbors, record.after, strict=True):
                ranks = np.argsort(-values, kind="stable") if order == "affinity" else np.arange(10)
                same = labels[train[neighbors[ranks]]] == labels[train[point]]
                counts += same[:5].sum(), same[5:].sum()
            expected.append(100 * counts / (5 * len(train)))
        for share, values in zip(("positives", "negatives"), np.transpose(expected), strict=True):
            assert shares[f"{share} by {order}"] == pytest.approx([values.mean(), values.std(ddof=1)], abs=0.01)
    assert shares["positives by affinity"][0] > shares["positives by distance"][0] + 0.1
    assert semi_supervised.judge_triplets([worked(tmp_path / "runs", method="frozen")], dataset) == {}


def test_a_run_of_the_same_spec_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    options: Any = SimpleNamespace(labels_per_class=10, head=True, epochs=2, settings=["dimension=8"], select="recall",
                                   backbone="pixels", seeds=1)
    dataset = catalog.load("digits")
    (ten,) = semi_supervised.plan_row(options, "ssdml", dataset)
    (fifty,) = semi_supervised.plan_row(options, "ssdml @labels=50 gamma=0.5", dataset)
    assert (ten.labels_per_class, ten.fields["gamma"], ten.fields["dimension"]) == (10, 0.99, 8)
    assert (fifty.labels_per_class, fifty.fields["gamma"], fifty.select) == (50, 0.5, "recall")
    first = semi_supervised.find_or_create_run(ten, tmp_path / "runs")
    assert semi_supervised.find_or_create_run(fifty, tmp_path / "runs").id != first.id
    (again,) = semi_supervised.plan_row(options, "ssdml", dataset)
    assert semi_supervised.find_or_create_run(again, tmp_path / "runs").id == first.id


def test_the_fields_of_a_row_replace_common_fields_which_replace_the_settings_from_scratch() -> None:
    row = seen_categories.complete_row("pslr scale=sum learning_rate=1e-5", 10, "trains=head learning_rate=0.001")
    fields = parse_row(row)["fields"]
    assert (fields["learning_rate"], fields["trains"], fields["batch"], fields["epochs"], fields["scale"]) == (
        1e-5, "head", 128, 10, "sum")
