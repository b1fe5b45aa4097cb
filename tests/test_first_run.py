"""The first run: its own curve shows a clear gain, and it ends above PCA of the same width."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from udml_core import jobs
from udml_core.backbones import Encoder
from udml_core.data import catalog
from udml_core.data.features import features_of
from udml_core.data.splits import make_split
from udml_core.data.training import training_data
from udml_core.evaluation import map_at_r
from udml_core.methods import PCA, Setting
from udml_core.runs import Run, create_run
from udml_core.workers import train as worker


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = create_run(jobs.plan(jobs.FIRST_RUN, catalog.load(jobs.FIRST_RUN.dataset)), tmp_path_factory.mktemp("runs"))
    assert worker.work(run).state == "done"
    return run


def test_the_curve_of_the_first_run_rises_clearly(first: Run) -> None:
    curves, _ = first.metrics()
    assert curves[-1]["sample map@r"] > 3 * curves[0]["sample map@r"]
    assert curves[-1]["sample recall@1"] > curves[0]["sample recall@1"] + 0.3


def test_the_first_run_ends_above_pca_of_the_same_width(first: Run) -> None:
    result = first.evaluation()
    assert result is not None
    assert result["final"]["map@r"] > result["pca"]["map@r"] + 5
    assert result["final"]["recall@1"] > result["pca"]["recall@1"] + 5


def test_the_first_run_ends_above_centered_pca(first: Run, tmp_path: Path) -> None:
    spec, dataset = first.spec(), first.dataset()
    encoder = Encoder(spec.encoder)
    features, split = np.array(features_of(dataset, encoder)), make_split(dataset, spec.split)
    data = training_data(features, None, split.train, "none")
    (epoch,) = PCA(dimension=4, centered=True).fit(data, Setting(0, torch.device("cpu"), encoder))
    result, labels = first.evaluation(), dataset.labels
    assert result is not None
    assert labels is not None
    centered = map_at_r(epoch.embedder.embed_features(features[split.test]), labels[split.test])[0]
    assert result["final"]["map@r"] > 100 * centered + 5


def test_the_first_run_uses_no_labels(first: Run) -> None:
    assert first.spec().build_method().card.supervision == "none"
