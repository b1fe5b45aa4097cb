"""Features are computed once, in blocks that survive an interruption.

They are memory-mapped.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from udml_core.backbones import Encoder, choose_spec
from udml_core.data import catalog
from udml_core.data.dataset import ArrayImages, Dataset
from udml_core.data.features import BLOCK, features_of, features_path, pixels_of
from udml_core.errors import UserError

IMAGES = 600


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Dataset, Encoder]:
    """The first digits and an encoder, with an empty cache."""
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
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
