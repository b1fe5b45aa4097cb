"""Features are computed once, in blocks that survive an interruption.

They are memory-mapped.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from udml_core.base.errors import UserError
from udml_core.data import catalog, features
from udml_core.data.augmentation import CROPS
from udml_core.data.dataset import ArrayImages, Dataset, step_name
from udml_core.data.encoders import Encoder, choose_spec
from udml_core.data.features import (
    BLOCK,
    activations_of,
    crop_sources_of,
    features_of,
    features_path,
    features_so_far,
    pixels_of,
    views_of,
)

IMAGES = 600


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Dataset, Encoder]:
    """The first digits and an encoder, with an empty cache."""
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(features, "KEPT_SECONDS", 1e9)  # on a busy machine too, 8 blocks are kept at once
    digits = catalog.load("digits")
    assert isinstance(digits.images, ArrayImages)
    dataset = replace(digits, images=ArrayImages(digits.images.pixels[:IMAGES]), labels=None,
                      names=digits.names[:IMAGES], fingerprint="first-digits")
    return dataset, Encoder(choose_spec("cnn", dataset.native_size, dataset.gray))


class CountingEncoder(torch.nn.Module):
    """An encoder that counts its images and is interrupted after `limit` images."""

    def __init__(self, encoder: Encoder, limit: int = 10**9) -> None:
        super().__init__()
        self.encoder, self.limit, self.count = encoder, limit, 0
        self.spec, self.dimension, self.prepare = encoder.spec, encoder.dimension, encoder.prepare
        self.preparation = encoder.preparation

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if self.count + len(images) > self.limit:
            raise KeyboardInterrupt
        self.count += len(images)
        return self.encoder(images)


def compute(dataset: Dataset, encoder: Any, **options: Any) -> Any:
    return features_of(dataset, encoder, **options)


def test_features_are_computed_once_and_memory_mapped(images: tuple[Dataset, Encoder]) -> None:
    dataset, encoder = images
    counting = CountingEncoder(encoder)
    shares: list[float] = []
    first = compute(dataset, counting, report=lambda share, _step: shares.append(share))
    assert counting.count == len(dataset)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    second = compute(dataset, counting)
    assert counting.count == len(dataset)
    assert isinstance(second, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        second[0] = 0
    np.testing.assert_array_equal(first, second)
    with torch.inference_mode():
        expected = encoder(torch.from_numpy(np.array(pixels_of(dataset, encoder)[:200])))
    np.testing.assert_allclose(first[:200], expected.numpy(), atol=1e-5)


def test_the_speed_is_part_of_the_progress(
        images: tuple[Dataset, Encoder], monkeypatch: pytest.MonkeyPatch) -> None:
    for least, detail in ((-1.0, r" · [\d,.]+ images per second"), (1e9, "")):
        features_path(images[0], images[1].spec).unlink(missing_ok=True)
        monkeypatch.setattr(features, "MEASURED_SECONDS", least)
        steps: list[str] = []
        compute(*images, report=lambda _share, step, steps=steps: steps.append(step))
        assert len(steps) > 2
        assert steps[:2] == ["loading the network", "features"], "the time of the first block counts, too"
        assert all(re.fullmatch(f"features{detail}", step) for step in steps[2:])
        assert {step_name(step) for step in steps[1:]} == {"features"}


def test_an_interrupted_computation_resumes_after_its_stored_blocks(images: tuple[Dataset, Encoder]) -> None:
    dataset, encoder = images
    with pytest.raises(KeyboardInterrupt):
        compute(dataset, CountingEncoder(encoder, limit=9 * BLOCK))
    assert not features_path(dataset, encoder.spec).exists()
    resumed = CountingEncoder(encoder)
    features = compute(dataset, resumed)
    assert resumed.count == len(dataset) - 8 * BLOCK
    features_path(dataset, encoder.spec).unlink()
    np.testing.assert_array_equal(features, compute(dataset, encoder))


@pytest.mark.parametrize(("seconds", "kept"), [(1e9, 0), (0.0, 3 * BLOCK)])
def test_finished_features_are_at_hand_while_others_are_computed(
        seconds: float, kept: int, images: tuple[Dataset, Encoder], monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, encoder = images
    monkeypatch.setattr(features, "KEPT_SECONDS", seconds)
    assert features_so_far(dataset, encoder.spec) is None
    with pytest.raises(KeyboardInterrupt):
        compute(dataset, CountingEncoder(encoder, limit=3 * BLOCK))
    found = features_so_far(dataset, encoder.spec)
    assert (found is None) == (kept == 0)
    if found is not None:
        finished, rows = found
        assert finished.tolist() == list(range(kept))
        np.testing.assert_array_equal(rows[finished], compute(dataset, encoder)[finished])
    compute(dataset, encoder)
    assert features_so_far(dataset, encoder.spec) is None, "all are at hand"


class SmallMemory(CountingEncoder):
    """An encoder on a device that holds a number of images at once."""

    def __init__(self, encoder: Encoder, most: int) -> None:
        super().__init__(encoder)
        self.most, self.sizes = most, list[int]()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        self.sizes.append(len(images))
        if len(images) > self.most:
            raise torch.OutOfMemoryError("out of memory")
        return super().forward(images)


def test_a_small_memory_halves_the_batch_once_and_gives_the_same_features(
        images: tuple[Dataset, Encoder], caplog: pytest.LogCaptureFixture) -> None:
    dataset, encoder = images
    small = SmallMemory(encoder, 20)
    with caplog.at_level("INFO"):
        features = np.array(compute(dataset, small))
    assert small.sizes[:3] == [BLOCK, BLOCK // 2, BLOCK // 4]
    assert max(small.sizes[3:]) == BLOCK // 4
    assert small.count == len(dataset)
    assert f"{IMAGES} of {IMAGES} rows computed" in caplog.text
    features_path(dataset, encoder.spec).unlink()
    np.testing.assert_allclose(features, compute(dataset, encoder), rtol=1e-4, atol=1e-5)


def test_a_memory_for_no_image_is_a_user_error(images: tuple[Dataset, Encoder]) -> None:
    dataset, encoder = images
    with pytest.raises(UserError, match=r"'cpu' is too small for one image of 8 pixels. Lower the image size"):
        compute(dataset, SmallMemory(encoder, 0))


class Noting(torch.nn.Module):
    """An encoder whose copies note their blocks: the first image's sum for each block, in a list of their own."""

    def __init__(self, encoder: Encoder, notes: list[Noting]) -> None:
        super().__init__()
        self.encoder, self.notes, self.blocks = encoder, notes, list[int]()
        self.spec, self.dimension, self.prepare = encoder.spec, encoder.dimension, encoder.prepare
        self.preparation = encoder.preparation
        notes.append(self)

    def __deepcopy__(self, _memo: Any) -> Noting:
        return Noting(self.encoder, self.notes)

    def early(self, images: torch.Tensor) -> torch.Tensor:
        return self.encoder.early(images)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        self.blocks.append(len(images))
        return self.encoder(images)


@pytest.mark.parametrize("devices", [1, 3, 12])
def test_devices_share_the_blocks_and_give_the_same_features(devices: int, images: tuple[Dataset, Encoder]) -> None:
    """Equal to the last bit, for an uneven number of blocks and for more devices than blocks, too."""
    dataset, encoder = images
    expected = np.array(compute(dataset, encoder))
    features_path(dataset, encoder.spec).unlink()
    copies: list[Noting] = []
    shared = compute(dataset, Noting(encoder, copies), devices=["cpu"] * (devices - 1))
    np.testing.assert_array_equal(shared, expected)
    blocks = [BLOCK] * (IMAGES // BLOCK) + [IMAGES % BLOCK]
    assert [copy.blocks for copy in copies] == [blocks[lane::devices] for lane in range(devices)]
    compute(dataset, Noting(encoder, copies), devices=["cpu"] * 3)
    assert len(copies) == devices + 1, "stored features need no copies"


def test_devices_share_random_views_and_activations(images: tuple[Dataset, Encoder]) -> None:
    dataset, encoder = images
    few = np.arange(3, 3 + 4 * BLOCK)
    for compute_some in (views_of, activations_of):
        alone = np.array(compute_some(dataset, encoder, few, 2, CROPS, 5))
        for path in features_path(dataset, encoder.spec).parent.glob("*.npy"):
            path.unlink()
        shared = compute_some(dataset, encoder, few, 2, CROPS, 5, devices=["cpu", "cpu"])
        np.testing.assert_array_equal(shared, alone)


def test_a_computation_of_several_devices_is_interrupted_and_resumed(images: tuple[Dataset, Encoder]) -> None:
    dataset, encoder = images
    with pytest.raises(KeyboardInterrupt):
        compute(dataset, CountingEncoder(encoder, limit=4 * BLOCK), devices=["cpu"])  # the ninth block fails
    resumed = CountingEncoder(encoder)
    shared = np.array(compute(dataset, resumed))
    assert resumed.count == len(dataset) - 8 * BLOCK
    features_path(dataset, encoder.spec).unlink()
    np.testing.assert_array_equal(shared, compute(dataset, encoder))


def test_values_that_are_not_finite_are_not_stored(images: tuple[Dataset, Encoder]) -> None:
    dataset, encoder = images
    with torch.no_grad():
        next(encoder.parameters()).fill_(float("nan"))
    with pytest.raises(UserError, match="not finite"):
        compute(dataset, encoder)
    assert not features_path(dataset, encoder.spec).exists()


def test_the_progress_of_a_deleted_partial_file_is_ignored(images: tuple[Dataset, Encoder]) -> None:
    """A user may delete the partial file when the disk is full.

    The progress is stored in another file.
    """
    dataset, encoder = images
    partial = features_path(dataset, encoder.spec).with_suffix(".part")
    for limit in (9 * BLOCK, 2 * BLOCK):
        partial.unlink(missing_ok=True)
        with pytest.raises(KeyboardInterrupt):
            compute(dataset, CountingEncoder(encoder, limit))
    counting = CountingEncoder(encoder)
    features = np.array(compute(dataset, counting))
    assert counting.count == len(dataset)
    assert np.abs(features).max(axis=1).min() > 0


def large_digits(dataset: Dataset) -> Dataset:
    """Return some digits enlarged to 40 pixels, each with a row of random pixels."""
    assert isinstance(dataset.images, ArrayImages)
    pixels = np.repeat(np.repeat(dataset.images.pixels[:70], 5, axis=1), 5, axis=2)
    return replace(dataset, images=ArrayImages(pixels), native_size=40, fingerprint="large-digits",
                   names=dataset.names[:70])


def test_crop_sources_are_larger_and_whole_images_stay_the_same(images: tuple[Dataset, Encoder]) -> None:
    dataset = large_digits(images[0])
    encoder = Encoder(choose_spec("cnn", 16, True))
    sources, whole = crop_sources_of(dataset, encoder, CROPS), pixels_of(dataset, encoder)
    assert sources.shape == (70, 1, 32, 32)
    assert whole.shape == (70, 1, 16, 16)
    np.testing.assert_array_equal(sources[3], encoder.prepare(dataset.images[3], 32)[:1])
    np.testing.assert_array_equal(whole[3], encoder.prepare(dataset.images[3])[:1])


def test_activations_are_those_of_the_whole_image_and_of_random_views(images: tuple[Dataset, Encoder]) -> None:
    dataset, indices = large_digits(images[0]), np.arange(69, 0, -1)
    encoder = Encoder(choose_spec("cnn", 16, True))
    stored = activations_of(dataset, encoder, indices, 3, CROPS, 5)
    assert (stored.shape, stored.dtype) == ((69, 3, 128, 4, 4), np.float16)
    with torch.no_grad():
        late = encoder.late(torch.from_numpy(np.array(stored)).flatten(0, 1)).unflatten(0, (69, 3)).numpy()
    np.testing.assert_allclose(late[:, 0], features_of(dataset, encoder)[indices], rtol=2e-3, atol=1e-4)
    views = views_of(dataset, encoder, indices, 2, CROPS, 5)
    np.testing.assert_allclose(late[:, 1:], views, rtol=2e-3, atol=1e-4)
    assert np.abs(late[:, 1] - late[:, 0]).max() > 0.01
    sources = torch.from_numpy(np.array(crop_sources_of(dataset, encoder, CROPS)[indices[:BLOCK]]))
    with torch.no_grad():
        first = encoder(CROPS(sources, torch.Generator().manual_seed(5 * 1_000_003), 16)).numpy()
    np.testing.assert_allclose(views[:BLOCK, 0], first, rtol=1e-4, atol=1e-5)


def test_activations_beyond_half_precision_are_rejected(images: tuple[Dataset, Encoder]) -> None:
    dataset, encoder = images
    with torch.no_grad():
        encoder.network[8].weight.mul_(1e8)
    with pytest.raises(UserError, match="The early blocks of 'cnn' return values beyond 65,504"):
        activations_of(dataset, encoder, np.arange(10), 2, CROPS, 0)
