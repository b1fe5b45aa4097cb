"""A run on several encoders: planned, trained, searched, exported and judged as a run on one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.running import spec, trained
from udml_core.base.errors import UserError
from udml_core.base.paths import dataset_cache
from udml_core.data import catalog
from udml_core.data.encoders import Encoder
from udml_core.data.features import features_of, features_path
from udml_core.data.side_by_side import frozen_encoder
from udml_core.methods import Embedder
from udml_core.numerics.refinement.linear import unit_rows
from udml_core.runs import Run
from udml_core.runs.opinions import obstacle
from udml_core.runs.sample_opinion import judge_features
from udml_core.runs.search import Retrieval
from udml_core.work.exporting import export_model
from udml_core.work.jobs.estimate import estimate, missing_sources
from udml_core.work.sweeps.group import key_of

BOTH = {"method": "pca", "backbone": "cnn+pixels:0.5", "fields": {"dimension": 12}, "size": 8}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A finished run on two encoders, with a cache of its own."""
    folder = tmp_path_factory.mktemp("several")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UDML_CACHE", str(folder / "cache"))
        yield trained(folder / "runs", **BOTH)


def test_a_run_on_two_encoders_is_searched_by_uploads_too(run: Run) -> None:
    dataset, train = run.dataset(), run.spec().halves(run.dataset()).train
    assert run.status().state == "done"
    assert run.embeddings("final").shape == (len(dataset), 12)
    opened = Retrieval(run, dataset)
    for name in ("final", "frozen"):
        frame = opened.frame(name)
        np.testing.assert_allclose(frame.model.embed(dataset.images[5]), frame.rows[5], atol=1e-5)
    parts = [unit_rows(features_of(dataset, Encoder(part))) for part in run.spec().encoder.parts]
    assert [part.shape[1] for part in parts] == [128, 64]
    expected = frozen_encoder(dataset, run.spec().encoder, train)
    stored = Embedder.load(run.embedder_path).encoder
    np.testing.assert_array_equal(stored.joint.weight.numpy(), expected.joint.weight.numpy())


def test_uploads_need_no_cache(run: Run) -> None:
    dataset = run.dataset()
    row = np.array(Retrieval(run, dataset).frame("frozen").rows[5])
    for path in dataset_cache(dataset.fingerprint).glob("*-map.npy"):
        path.unlink()
    np.testing.assert_allclose(Retrieval(run, dataset).frames.model("frozen").embed(dataset.images[5]), row, atol=1e-5)


def test_a_plan_depends_on_the_training_images_and_costs_only_what_is_missing(run: Run) -> None:
    dataset = run.dataset()
    others = [spec(**(BOTH | options)) for options in ({"split": "all"}, {"seed": 5, "split": "seen"}, {
        "whitening": "none"}, {"backbone": "cnn+pixels"})]
    assert len({run.spec().encoder.key, *(other.encoder.key for other in others)}) == 5
    assert len({key_of(run.spec()), *map(key_of, others)}) == 5
    again = spec(**(BOTH | {"whitening": "each"}))
    assert missing_sources(dataset, again.encoder) == []
    assert estimate(again, dataset).feature_seconds == 0
    features_path(dataset, again.encoder.parts[0]).unlink()
    assert [part.backbone for part in missing_sources(dataset, again.encoder)] == ["cnn"]
    assert estimate(again, dataset).feature_seconds > 0


def test_methods_that_train_the_encoder_refuse_several() -> None:
    for fields in ({"trains": "all"}, {"trains": "last"}):
        with pytest.raises(UserError, match=r"side by side are not trained, got 'cnn\+pixels'.*'head'"):
            spec(method="plm", backbone="cnn+pixels", size=8, fields=fields)
    with pytest.raises(UserError, match="applies to several encoders side by side, got 'each' with cnn"):
        spec(method="pca", backbone="cnn", size=8, fields={"dimension": 8}, whitening="each")


def test_no_part_judges_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, draw = catalog.load("digits"), np.random.default_rng(0)
    known = {name: draw.normal(size=(len(dataset), 8)) for name in ("efficientnet-lite0", "squeezenet")}
    for module in ("sample_opinion", "opinions"):
        monkeypatch.setattr(f"udml_core.runs.{module}.stored_features", lambda _dataset, name: known.get(name))
    for backbone, judge in (("cnn+pixels", "efficientnet-lite0"), ("pixels+efficientnet-lite0:0.5", "squeezenet")):
        np.testing.assert_array_equal(judge_features(dataset, backbone), known[judge])
    assert judge_features(dataset, "squeezenet+efficientnet-lite0") is None


def test_a_run_whose_parts_are_all_judges_says_what_to_do(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert obstacle(run) == ""
    known = run.spec().model_copy(update={"backbone": "efficientnet-lite0+squeezenet"})
    monkeypatch.setattr(Run, "spec", lambda _self: known)
    assert "efficientnet-lite0 and squeezenet took part in this run, and pixels cannot judge alone" in obstacle(run)


@pytest.mark.slow
def test_an_export_is_one_graph_with_its_card(run: Run, tmp_path: Path) -> None:
    export_model(run, tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text(encoding="utf-8"))
    assert config["onnx"]["smallest_cosine_similarity"] > 0.99999
    assert list(config["preprocessing"]["inside_the_model"]) == ["cnn", "pixels"]
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert "cnn+pixels:0.5, images of 8 × 8 pixels. The unit features of these encoders stand side by side" in card
    assert (tmp_path / "model" / "search.py").exists()
