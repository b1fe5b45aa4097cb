"""Test-time views, with an encoder of raw pixels."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from udml_core.data import refinement_views
from udml_core.data.dataset import ArrayImages, Dataset
from udml_core.data.encoders import Encoder, EncoderSpec
from udml_core.data.refinement_views import (
    View,
    average_features,
    center_crop,
    stored_view_features,
    view_features,
    view_features_of_some,
    views_of_step,
)
from udml_core.numerics.refinement.recipe import Views


def dataset_of(count: int = 5, key: str = "b") -> Dataset:
    pixels = np.random.default_rng(0).integers(0, 256, (count, 8, 8), dtype=np.uint8)
    return Dataset("noise", "Noise", ArrayImages(pixels), None, (), key * 64, 8, True,
                   tuple(f"{number}" for number in range(count)))


ENCODER = Encoder(EncoderSpec(backbone="pixels", size=8, gray=True))


def test_a_crop_keeps_the_center() -> None:
    image = Image.fromarray(np.arange(100, dtype=np.uint8).reshape(10, 10))
    assert np.asarray(center_crop(image, 0.4))[:, 0].tolist() == [33, 43, 53, 63]
    assert center_crop(image, 1.0) is image


def test_features_of_a_mirrored_view_are_the_mirrored_pixels() -> None:
    dataset = dataset_of()
    plain = view_features(dataset, ENCODER, View()).reshape(5, 8, 8)
    mirrored = view_features(dataset, ENCODER, View(flip=True)).reshape(5, 8, 8)
    np.testing.assert_array_equal(mirrored, plain[:, :, ::-1])


def test_a_zoomed_view_shows_the_resized_center() -> None:
    dataset = dataset_of()
    zoomed = view_features(dataset, ENCODER, View(0.5))
    expected = dataset.images[3].crop((2, 2, 6, 6)).resize((8, 8), Image.Resampling.BICUBIC)
    np.testing.assert_allclose(zoomed[3], np.asarray(expected)[:, :, 0].ravel() / 255, atol=1e-6)


def test_the_view_of_some_images_is_computed_once_with_its_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, view, some, told = dataset_of(150), View(0.85, flip=True), np.arange(0, 150, 2), list[tuple[float, str]]()
    expected = view_features_of_some(dataset, ENCODER, view, some)
    rows = stored_view_features(dataset, ENCODER, view, some, lambda *at: told.append(at))
    np.testing.assert_array_equal(rows, expected)
    assert [round(share, 2) for share, _ in told] == [0.0, 0.85, 1.0], "in blocks of 64"
    assert {step for _, step in told} == {"changed copies"}
    monkeypatch.setattr(refinement_views, "inference_of", None)
    np.testing.assert_array_equal(stored_view_features(dataset, ENCODER, view, some), expected)
    with pytest.raises(TypeError):
        stored_view_features(dataset, ENCODER, view, some[:-1])


def test_the_average_is_the_mean_over_views_with_and_without_the_cache() -> None:
    dataset, views = dataset_of(), [View(), View(0.5), View(0.5, True)]
    expected = np.mean([view_features(dataset, ENCODER, view) for view in views], axis=0)
    for cached in (True, False):
        np.testing.assert_allclose(average_features(dataset, ENCODER, views, cached=cached), expected, atol=1e-6)


@pytest.mark.parametrize("cached", [True, False])
def test_each_image_is_read_once_for_all_views_with_equal_features(cached: bool, monkeypatch: pytest.MonkeyPatch
                                                                   ) -> None:
    dataset, views = dataset_of(150, "c" if cached else "d"), views_of_step(Views())
    parts = [np.array(view_features(dataset_of(150, "e"), ENCODER, view)) for view in views]
    expected, reads = np.zeros((150, 64), np.float32), list[int]()
    for part in parts:
        expected += part
    read = ArrayImages.__getitem__
    monkeypatch.setattr(ArrayImages, "__getitem__", lambda self, index: (reads.append(index), read(self, index))[1])
    told = list[tuple[float, str]]()
    averaged = average_features(dataset, ENCODER, views, lambda *at: told.append(at), cached)
    np.testing.assert_array_equal(averaged, expected / 4)
    assert sorted(reads) == list(range(150))
    assert [share for share, _ in told] == sorted(share for share, _ in told)
    assert told[-1] == (1.0, "features of views")
    if cached:
        for view, part in zip(views, parts, strict=True):
            np.testing.assert_array_equal(view_features(dataset, ENCODER, view), part)
        assert len(reads) == 150


def test_views_that_were_interrupted_go_on_and_meet_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, views, reads = dataset_of(1100, "f"), [View(0.7), View(flip=True)], list[int]()
    expected = [np.array(view_features(dataset_of(1100, "0"), ENCODER, view)) for view in views]

    def stop(share: float, _step: str) -> None:
        if share > 0.6:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        view_features(dataset, ENCODER, views[0], stop)
    read = ArrayImages.__getitem__
    monkeypatch.setattr(ArrayImages, "__getitem__", lambda self, index: (reads.append(index), read(self, index))[1])
    np.testing.assert_array_equal(average_features(dataset, ENCODER, views), (expected[0] + expected[1]) / 2)
    assert min(reads.count(image) for image in range(1100)) == 1
    assert len(reads) <= 1100 + 64, "a block ahead of the meeting point is read again at most"


def test_a_step_lists_its_views() -> None:
    assert views_of_step(Views()) == [View(), View(flip=True), View(0.7), View(0.7, True)]
    assert views_of_step(Views(zoom=1.0)) == [View(), View(flip=True)]
    assert views_of_step(Views(flip=False, zoom=0.5)) == [View(), View(0.5)]
