"""Encoders side by side: what scale, order, test images and the cache may not change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.base.paths import dataset_cache
from udml_core.data import features, inference
from udml_core.data.augmentation import CROPS
from udml_core.data.dataset import ArrayImages, Dataset
from udml_core.data.encoder_names import encoders_in, parts_of
from udml_core.data.encoders import Encoder, EncoderSpec, check_trainable, choose_spec, feature_width
from udml_core.data.encoders.graphs import Graph, network_graph, paired_cosines
from udml_core.data.features import features_of, features_of_some, features_path, views_of
from udml_core.data.inference import embed_pixels, joined
from udml_core.data.refinement_views import View, average_features, view_features
from udml_core.data.side_by_side import frozen_encoder
from udml_core.methods import Embedder
from udml_core.methods.embedder import Head
from udml_core.methods.model import Model
from udml_core.numerics.refinement.linear import unit_rows

COUNT, SIDE = 60, 40
TRAIN = np.arange(0, COUNT, 2)
TEST = np.arange(1, COUNT, 2)


def photos(name: str = "photos", seed: int = 0) -> Dataset:
    """Return smooth random photographs in a few groups, so that mutual neighbors exist."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 256, (8, 5, 5, 3))
    small = np.clip(groups[rng.integers(0, 8, COUNT)] + rng.normal(0, 40, (COUNT, 5, 5, 3)), 0, 255).astype(np.uint8)
    pixels = np.stack([np.asarray(Image.fromarray(one).resize((SIDE, SIDE))) for one in small])
    return Dataset(name, "Photos", ArrayImages(pixels), None, (), name, SIDE, False,
                   tuple(f"photo {index}" for index in range(COUNT)))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache; torch computes all features."""
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(inference, "WORTH_SECONDS", 1e9)
    return tmp_path / "cache"


def several(name: str, dataset: Dataset, **options: Any) -> Encoder:
    spec = choose_spec(name, SIDE, False, size=SIDE, **options).fitted(TRAIN, dataset.fingerprint)
    return frozen_encoder(dataset, spec, TRAIN)


def similarities(name: str, dataset: Dataset, **options: Any) -> Array:
    """Return the cosines (n, n) of all images."""
    rows = unit_rows(features_of(dataset, several(name, dataset, **options)))
    return rows @ rows.T


def test_one_part_of_weight_1_without_whitening_equals_that_part() -> None:
    dataset, part = photos(), choose_spec("squeezenet", SIDE, False, size=SIDE)
    spec = EncoderSpec(backbone="squeezenet", size=SIDE, parts=(part,), part_weights=(1.0,), whitening="none")
    rows, alone = (unit_rows(features_of(dataset, encoder)) for encoder in (
        frozen_encoder(dataset, spec, TRAIN), Encoder(part)))
    np.testing.assert_allclose(rows, alone, atol=1e-6)


@pytest.mark.parametrize("whitening", ["together", "each", "none"])
def test_the_order_of_the_parts_changes_no_similarity(whitening: str) -> None:
    dataset = photos()
    first, second = (similarities(name, dataset, whitening=whitening)
                     for name in ("squeezenet:0.7+cnn", "cnn+squeezenet:0.7"))
    np.testing.assert_allclose(first, second, atol=2e-5)


def test_the_weight_of_a_part_is_its_share_of_the_similarity() -> None:
    dataset = photos()
    alone = [similarities(name, dataset) for name in ("squeezenet+cnn:0.01", "squeezenet+cnn:100")]
    both = similarities("squeezenet+cnn", dataset, whitening="none")
    parts = [unit_rows(features_of(dataset, Encoder(choose_spec(name, SIDE, False, size=SIDE))))
             for name in ("squeezenet", "cnn")]
    np.testing.assert_allclose(both, sum(rows @ rows.T for rows in parts) / 2, atol=1e-5)
    weighted = similarities("squeezenet+cnn:3", dataset, whitening="none")
    np.testing.assert_allclose(weighted, (parts[0] @ parts[0].T + 9 * parts[1] @ parts[1].T) / 10, atol=1e-5)
    assert np.abs(alone[0] - alone[1]).max() > 0.1


@pytest.mark.parametrize("whitening", ["together", "each"])
def test_the_scale_of_a_part_changes_nothing(whitening: str) -> None:
    dataset, scaled = photos(), photos("scaled")
    expected = similarities("squeezenet+cnn", dataset, whitening=whitening)
    for name, factor in (("squeezenet", 1.0), ("cnn", 37.0)):
        spec = choose_spec(name, SIDE, False, size=SIDE)
        rows = np.array(features_of(dataset, Encoder(spec)))
        features_path(scaled, spec).parent.mkdir(parents=True, exist_ok=True)
        np.save(features_path(scaled, spec), factor * rows)
    np.testing.assert_allclose(similarities("squeezenet+cnn", scaled, whitening=whitening), expected, atol=1e-5)


@pytest.mark.parametrize("whitening", ["together", "each"])
def test_the_statistics_come_from_the_training_images_only(whitening: str) -> None:
    dataset, poisoned = photos(), photos("poisoned")
    encoder = several("squeezenet+cnn", dataset, whitening=whitening)
    for name in ("squeezenet", "cnn"):
        spec = choose_spec(name, SIDE, False, size=SIDE)
        rows = np.array(features_of(dataset, Encoder(spec)))
        rows[TEST] = np.random.default_rng(1).normal(0, 100, rows[TEST].shape)
        features_path(poisoned, spec).parent.mkdir(parents=True, exist_ok=True)
        np.save(features_path(poisoned, spec), rows)
    other = several("squeezenet+cnn", poisoned, whitening=whitening)
    assert torch.equal(encoder.joint.weight, other.joint.weight)
    assert torch.equal(encoder.joint.offset, other.joint.offset)
    before, after = features_of(dataset, encoder), features_of(poisoned, other)
    np.testing.assert_array_equal(before[TRAIN], after[TRAIN])
    assert not np.allclose(before[TEST], after[TEST])


def test_whitening_centers_the_training_images_and_gives_each_part_one_length() -> None:
    dataset = photos()
    rows = features_of(dataset, several("squeezenet+cnn:0.5", dataset, whitening="each"))[TRAIN].astype(np.float64)
    np.testing.assert_allclose(rows.mean(0), 0, atol=1e-4)
    width = feature_width(choose_spec("squeezenet", SIDE, False, size=SIDE))
    assert [(part**2).sum(1).mean() for part in np.split(rows, [width], axis=1)] == pytest.approx([1, 0.25], rel=1e-3)


def test_an_upload_has_the_features_of_the_same_image_in_the_gallery() -> None:
    dataset = photos()
    encoder = several("squeezenet+cnn+pixels", dataset)
    gallery = Embedder(encoder).embed_features(features_of(dataset, encoder))
    model = Model(Embedder(encoder), lambda: dataset)
    for index in (0, 7):
        np.testing.assert_allclose(model.embed(dataset.images[index]), gallery[index], atol=1e-5)
    np.testing.assert_allclose(features_of_some(dataset, encoder, np.array([3, 8])),
                               features_of(dataset, encoder)[[3, 8]], rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_one_onnx_graph_agrees_with_torch() -> None:
    dataset = photos()
    embedder = Embedder(several("cnn+pixels:0.5", dataset), Head()).eval()
    pixels = np.stack([embedder.encoder.prepare(dataset.images[index]) for index in range(8)])
    graph = Graph(network_graph(embedder, torch.zeros((2, 3, SIDE, SIDE), dtype=torch.uint8)))
    assert paired_cosines(graph(pixels), embed_pixels(embedder, pixels)).min() > 0.99999


def test_a_second_combination_reads_no_image(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, train = photos(), TRAIN[:20]
    first = several("squeezenet+cnn", dataset)
    features_of(dataset, first)
    average_features(dataset, first, [View(), View(flip=True)])
    views_of(dataset, first, train, 2, CROPS, 0)

    def read(*_: object) -> Array:
        raise AssertionError("an image was read")

    monkeypatch.setattr(features.PreparedImages, "__getitem__", read)
    monkeypatch.setattr(inference, "embed_pixels", read)
    monkeypatch.setattr(ArrayImages, "__getitem__", read)
    second = several("cnn:0.5+squeezenet", dataset, whitening="each")
    assert features_of(dataset, second).shape == (COUNT, 640)
    assert average_features(dataset, second, [View(), View(flip=True)]).shape == (COUNT, 640)
    assert views_of(dataset, second, train, 2, CROPS, 0).shape == (20, 2, 640)


def test_views_are_the_joined_views_of_the_parts() -> None:
    dataset = photos()
    encoder = several("squeezenet+cnn", dataset)
    parts = [views_of(dataset, part, TEST, 2, CROPS, 5) for part in encoder.part_encoders]
    np.testing.assert_array_equal(views_of(dataset, encoder, TEST, 2, CROPS, 5), joined(encoder, parts))
    both = [View(), View(flip=True)]
    averages = [(features_of(dataset, part) + view_features(dataset, part, both[1])) / 2
                for part in encoder.part_encoders]
    averaged = average_features(dataset, encoder, both)
    np.testing.assert_allclose(averaged, joined(encoder, averages), rtol=1e-5, atol=1e-5)
    model = Model(Embedder(encoder), lambda: dataset)
    np.testing.assert_allclose(model.embed(dataset.images[3], both), unit_rows(averaged[3:4])[0], atol=1e-5)


def test_a_stored_model_keeps_the_statistics(tmp_path: Path) -> None:
    dataset = photos()
    encoder = several("cnn+pixels", dataset)
    path, whole = tmp_path / "model.safetensors", tmp_path / "whole.safetensors"
    Embedder(encoder).save(path)
    Embedder(encoder).save(whole, whole=True)
    for stored in (Embedder.load(path), Embedder.load(whole)):
        assert torch.equal(stored.encoder.joint.weight, encoder.joint.weight)
        assert stored.encoder.joint.is_fitted
        pixels = stored.encoder.prepare(dataset.images[0])[None]
        np.testing.assert_array_equal(embed_pixels(stored, pixels), embed_pixels(Embedder(encoder), pixels))


def test_without_statistics_nothing_is_computed() -> None:
    dataset = photos()
    encoder = Encoder(choose_spec("cnn+pixels", SIDE, False, size=SIDE))
    assert not encoder.joint.is_fitted
    with pytest.raises(UserError, match="need statistics of training images"):
        features_of(dataset, encoder)


def test_other_training_images_make_other_files() -> None:
    dataset = photos()
    spec = choose_spec("cnn+pixels", SIDE, False, size=SIDE)
    keys = {of.key for of in (spec, spec.fitted(TRAIN, "a"), spec.fitted(TEST, "a"), spec.fitted(TRAIN, "b"), *(
        choose_spec(name, SIDE, False, size=SIDE, **options).fitted(TRAIN, "a") for name, options in (
            ("cnn:2+pixels", {}), ("pixels+cnn", {}), ("cnn+pixels", {"whitening": "each"}),
            ("cnn+pixels", {"seed": 1}))))}
    assert len(keys) == 8
    assert spec.fitted(TRAIN, "a").unfitted == spec
    frozen_encoder(dataset, spec.fitted(TRAIN, dataset.fingerprint), TRAIN)
    assert len(list(dataset_cache(dataset.fingerprint).glob("*-map.npy"))) == 1


def test_a_damaged_map_is_fitted_again() -> None:
    dataset = photos()
    encoder = several("cnn+pixels", dataset)
    (path,) = dataset_cache(dataset.fingerprint).glob("*-map.npy")
    path.write_bytes(path.read_bytes()[:100])
    assert torch.equal(several("cnn+pixels", dataset).joint.weight, encoder.joint.weight)


def test_all_parts_read_one_square() -> None:
    spec = choose_spec("squeezenet+pixels", 500, False)
    assert [(part.backbone, part.size, part.block) for part in spec.parts] == [
        ("squeezenet", 224, 1), ("pixels", 224, 7)]
    assert feature_width(spec) == 512 + 3 * 32**2
    pixels = np.random.default_rng(0).integers(0, 256, (1, 3, 64, 64), dtype=np.uint8)
    means = embed_pixels(Encoder(EncoderSpec(backbone="pixels", size=64, block=2)), pixels)
    expected = pixels.reshape(3, 32, 2, 32, 2).mean((2, 4)).ravel() / 255
    np.testing.assert_allclose(means[0], expected, rtol=1e-5)


@pytest.mark.parametrize(("name", "message"), [
    ("squeezenet+", "joined by a plus sign"), ("+squeezenet", "joined by a plus sign"),
    ("squeezenet+squeezenet:0.5", "stand beside the others once"), ("squeezenet+cnn:0", "between 0.01 and 100, got 0"),
    ("squeezenet+nonsense", "must be one of"), ("squeezenet+table", "must be one of")])
def test_names_that_cannot_be_read_are_explained(name: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        choose_spec(name, SIDE, False)


def test_names_and_weights_are_read() -> None:
    assert [(part.backbone, part.weight) for part in parts_of("squeezenet + timm:vit_tiny:0.5+pixels:2")] == [
        ("squeezenet", 1.0), ("timm:vit_tiny", 0.5), ("pixels", 2.0)]
    assert parts_of("timm:vit_tiny")[0].backbone == "timm:vit_tiny"
    assert encoders_in("squeezenet:0.5+cnn", "pixels") == {"squeezenet", "cnn", "pixels"}


def test_several_encoders_are_not_trained() -> None:
    spec = choose_spec("squeezenet+cnn", SIDE, False)
    assert not spec.trainable
    with pytest.raises(UserError, match=r"side by side are not trained.*'head'"):
        check_trainable(spec)


def test_a_file_of_weights_needs_one_model_that_reads_it() -> None:
    with pytest.raises(UserError, match="has 0 of them"):
        choose_spec("squeezenet+cnn", SIDE, False, weights="model.safetensors")


@pytest.mark.parametrize("name", ["torchvision:resnet18", "timm:test_resnet"])
def test_a_model_of_a_library_reads_the_same_square(name: str) -> None:
    spec = choose_spec(f"{name}:0.5+pixels", SIDE, False, size=64)
    assert (spec.parts[0].square, spec.part_weights) == (True, (0.5, 1.0))
    assert spec.parts[0].key.endswith("-square")
    assert feature_width(spec) is None
    encoder = Encoder(spec, filled=False)
    alone = Encoder(choose_spec(name, SIDE, False, size=64), filled=False)
    wide = Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 128, 3), dtype=np.uint8))
    expected = Encoder(choose_spec("pixels", SIDE, False, size=64)).prepare(wide)
    for part in (encoder, *encoder.part_encoders):
        np.testing.assert_array_equal(part.prepare(wide), expected)
    assert not np.array_equal(alone.prepare(wide), expected)
    assert encoder.dimension == alone.dimension + 3 * 32**2
    assert EncoderSpec.model_validate_json(spec.model_dump_json()) == spec
