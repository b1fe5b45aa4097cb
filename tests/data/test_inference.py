"""ONNX Runtime in place of torch: agreement, one graph for each network, and torch wherever it is not possible."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_sample_image

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.data import inference
from udml_core.data.dataset import ArrayImages, Dataset, FileImages, reduced
from udml_core.data.encoders import Encoder, EncoderSpec
from udml_core.data.encoders.graphs import engine_words, network_graph
from udml_core.data.features import features_of_some
from udml_core.data.inference import embed_pixels, inference_of, torch_inference
from udml_core.data.refinement_views import View, view_features, view_features_of_some

PHOTOS = np.random.default_rng(0).integers(0, 256, (20, 40, 40, 3), dtype=np.uint8)
BY_TORCH = f"torch {torch.__version__}"


def photos(name: str = "photos", pixels: Array = PHOTOS) -> Dataset:
    """Return random photographs."""
    return Dataset(name, "Photos", ArrayImages(pixels), None, (), name, 40, False,
                   tuple(f"photo {index}" for index in range(len(pixels))))


@pytest.fixture(autouse=True)
def graphs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine on which no network was converted yet, and on which every network is worth it."""
    monkeypatch.setenv("UDML_CACHE", str(tmp_path))
    monkeypatch.setattr(inference, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(inference, "_opened", {})
    monkeypatch.setattr(inference, "_agreeing", {})
    return tmp_path / "graphs"


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with each network that is converted."""
    counts: list[int] = []

    def counted(*arguments: Any) -> bytes:
        counts.append(1)
        return network_graph(*arguments)

    monkeypatch.setattr(inference, "network_graph", counted)
    return counts


def squeezenet(size: int = 40) -> Encoder:
    return Encoder(EncoderSpec(backbone="squeezenet", size=size))


def cosines(rows: Array, others: Array) -> Array:
    """Return the cosine similarities of paired rows."""
    products: Array = (rows * others).sum(axis=1)
    return products / (np.linalg.norm(rows, axis=1) * np.linalg.norm(others, axis=1))


@pytest.mark.parametrize("encoder", [
    EncoderSpec(backbone="squeezenet", size=40), EncoderSpec(backbone="cnn", size=40),
    *(pytest.param(EncoderSpec(backbone=name, size=size, pooling=pooling), marks=pytest.mark.slow)
      for name, size, pooling in (("efficientnet-lite0", 64, "mean"), ("efficientnet-lite0", 64, "rmac"),
                                  ("squeezenet", 96, "rmac"), ("lenet", 28, "mean"), ("cifar-quick", 32, "mean"),
                                  ("resnet18-small", 32, "mean")))], ids=lambda spec: spec.key)
def test_both_engines_give_the_same_features(encoder: EncoderSpec) -> None:
    network, generator = Encoder(encoder), np.random.default_rng(1)
    chosen = inference_of(network, photos(), 20)
    assert chosen.engine == engine_words()
    side = encoder.size
    for images in (generator.integers(0, 256, (7, 3, side, side), dtype=np.uint8),  # another number than converted with
                   generator.integers(0, 256, (3, 1, side, side), dtype=np.uint8),  # gray
                   generator.uniform(0, 255, (1, 3, side, side)).astype(np.float32)):  # a random view
        rows, expected = chosen.rows(images), embed_pixels(network, images)
        assert rows.dtype == np.float32
        assert cosines(rows, expected).min() > 0.999999
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), np.linalg.norm(expected, axis=1), rtol=1e-4)
    assert len(chosen.rows(np.zeros((0, 3, side, side), np.uint8))) == 0


def test_a_network_is_converted_once_and_kept(graphs: Path, written: list[int],
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    images = photos()
    assert inference_of(squeezenet(), images, 20).engine == engine_words()
    assert inference_of(squeezenet(), photos("others"), 1).engine == engine_words()
    monkeypatch.setattr(inference, "_opened", {})  # another process
    monkeypatch.setattr(inference, "WORTH_SECONDS", 1e9)
    assert inference_of(squeezenet(), images, 1).engine == engine_words()  # the graph is there
    assert len(written) == 1
    assert len(list(graphs.glob("*.onnx"))) == 1


@pytest.mark.slow
def test_other_weights_and_other_sizes_have_graphs_of_their_own(written: list[int]) -> None:
    images, encoder, trained = photos(), squeezenet(), squeezenet()
    with torch.no_grad():
        next(trained.parameters()).add_(0.2)
    block = PHOTOS[:4].transpose(0, 3, 1, 2)
    rows = inference_of(encoder, images, 20).rows(block)
    other = inference_of(trained, images, 20).rows(block)
    assert cosines(other, embed_pixels(trained, block)).min() > 0.999999
    assert cosines(other, rows).min() < 0.999
    inference_of(squeezenet(48), images, 20)
    assert len(written) == 3


def test_a_graph_that_disagrees_is_not_used(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    other = squeezenet()
    with torch.no_grad():
        next(other.parameters()).add_(0.2)
    monkeypatch.setattr(inference, "network_graph", lambda _network, example: network_graph(other, example))
    images, encoder = photos(), squeezenet()
    for _ in range(2):
        chosen = inference_of(encoder, images, 20)
        assert chosen.engine == BY_TORCH
    np.testing.assert_array_equal(chosen.rows(PHOTOS[:2].transpose(0, 3, 1, 2)),
                                  embed_pixels(encoder, PHOTOS[:2].transpose(0, 3, 1, 2)))
    (warning,) = [record.getMessage() for record in caplog.records if record.name == inference.__name__]
    assert "cosine similarity of only 0." in warning


def test_a_network_that_cannot_be_converted_is_tried_once(monkeypatch: pytest.MonkeyPatch,
                                                          caplog: pytest.LogCaptureFixture) -> None:
    tries: list[int] = []

    def fail(*_arguments: object) -> bytes:
        tries.append(1)
        raise RuntimeError("no operator for this layer\nmany lines for developers")

    monkeypatch.setattr(inference, "network_graph", fail)
    assert {inference_of(squeezenet(), photos(), 20).engine for _ in range(3)} == {BY_TORCH}
    assert len(tries) == 1
    assert [record.getMessage() for record in caplog.records if record.name == inference.__name__] == [
        "squeezenet, mean, 40 px: torch computes the features, as ONNX Runtime cannot: no operator for this layer"]


@pytest.mark.parametrize("error", [
    OSError(28, "No space left on device"), MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")])
@pytest.mark.parametrize("step", ["network_graph", "replace_bytes", "Graph"])
def test_a_full_disk_or_memory_is_no_failure_of_the_network(
        error: Exception, step: str, graphs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: object) -> None:
        try:
            raise error
        except Exception as cause:
            raise RuntimeError("the step failed") from cause

    with monkeypatch.context() as full:
        full.setattr(inference, "network_graph", lambda *_: b"a graph")
        full.setattr(inference, step, fail)
        assert inference_of(squeezenet(), photos(), 20).engine == BY_TORCH
    assert not list(graphs.glob("*.json")), "a later run tries again"


def test_a_damaged_graph_is_not_used(graphs: Path, written: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    inference_of(squeezenet(), photos(), 20)
    next(graphs.glob("*.onnx")).write_bytes(b"damaged")
    monkeypatch.setattr(inference, "_opened", {})
    assert inference_of(squeezenet(), photos(), 20).engine == BY_TORCH
    assert len(written) == 1
    assert inference_of(squeezenet(), photos(), 20).engine != BY_TORCH, "it was written again"
    assert len(written) == 2


@pytest.mark.parametrize(("spec", "count"), [
    (EncoderSpec(backbone="squeezenet", size=40), 3), (EncoderSpec(backbone="pixels", size=8), 10**9)])
def test_torch_computes_what_is_not_worth_a_graph(spec: EncoderSpec, count: int, written: list[int],
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference, "WORTH_SECONDS", 1.0)
    assert inference_of(Encoder(spec), photos(), count).engine == BY_TORCH
    assert not written


def test_values_that_are_not_finite_are_a_user_error(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = squeezenet()
    chosen = inference_of(encoder, photos(), 20)
    with pytest.raises(UserError, match=r"returned 512 values that are not finite"):
        chosen.rows(np.full((1, 3, 40, 40), np.nan, np.float32))


@pytest.mark.parametrize("view", [View(), View(0.8, flip=True)])
def test_features_of_views_come_from_the_same_engine(view: View, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    images, encoder = photos(), squeezenet()
    stored = view_features(images, encoder, view)
    assert f"20 of 20 rows computed by {engine_words()}" in caplog.text
    np.testing.assert_allclose(view_features_of_some(images, encoder, view, [3, 5]), stored[[3, 5]], rtol=1e-5)
    pixels = np.stack([view(images.images[index], encoder) for index in range(20)])
    assert cosines(stored, torch_inference(encoder).rows(pixels)).min() > 0.999999


def test_a_large_photograph_keeps_its_features_when_it_is_decoded_smaller(tmp_path: Path) -> None:
    for number, name in enumerate(("china.jpg", "flower.jpg")):  # real photographs
        large = Image.fromarray(load_sample_image(name)).resize((2560, 1708), Image.Resampling.LANCZOS)
        large.save(tmp_path / f"{number}.jpg", quality=90)
    images = FileImages(tmp_path, ("0.jpg", "1.jpg"))
    dataset = Dataset("large", "Large", images, None, (), "large", 1708, False, images.files)
    encoder = squeezenet(112)
    assert reduced(images, 0, 112).size == (640, 427)
    features = features_of_some(dataset, encoder, np.arange(2))
    whole = embed_pixels(encoder, np.stack([encoder.prepare(images[index]) for index in range(2)]))
    assert 0.998 < cosines(features, whole).min() < 1
