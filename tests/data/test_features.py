"""Features: computed once, in blocks that survive, mapped from disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from udml_core.backbones import Encoder, choose_spec
from udml_core.data import catalog
from udml_core.data.features import BLOCK, features_of, features_path, pixels_of
from udml_core.errors import UserError


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Encoder]:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    dataset = catalog.load("digits")
    return dataset, Encoder(choose_spec("cnn", dataset.native_size, dataset.gray))


class Counted(torch.nn.Module):
    """Counts the images that go through an encoder, and fails after a number of them."""

    def __init__(self, encoder: Encoder, most: int = 10**9) -> None:
        super().__init__()
        self.encoder, self.most, self.seen = encoder, most, 0
        self.spec, self.dimension, self.prepare = encoder.spec, encoder.dimension, encoder.prepare

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if self.seen + len(images) > self.most:
            raise KeyboardInterrupt
        self.seen += len(images)
        return self.encoder(images)


def test_features_are_computed_once_and_mapped(fresh: tuple[Any, Encoder]) -> None:
    dataset, encoder = fresh
    counted = Counted(encoder)
    shares: list[float] = []
    first = features_of(dataset, counted, lambda share, _what: shares.append(share))  # type: ignore[arg-type]
    assert counted.seen == len(dataset)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    again = features_of(dataset, counted)  # type: ignore[arg-type]
    assert counted.seen == len(dataset)
    assert isinstance(again, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        again[0] = 0
    np.testing.assert_array_equal(first, again)
    with torch.inference_mode():
        whole = encoder(torch.from_numpy(np.array(pixels_of(dataset, encoder)[:200])))
    np.testing.assert_allclose(first[:200], whole.numpy(), atol=1e-5)


def test_an_interrupted_computation_goes_on_from_its_kept_blocks(fresh: tuple[Any, Encoder]) -> None:
    dataset, encoder = fresh
    interrupted = Counted(encoder, most=20 * BLOCK)
    with pytest.raises(KeyboardInterrupt):
        features_of(dataset, interrupted)  # type: ignore[arg-type]
    assert not features_path(dataset, encoder.spec).exists()
    rest = Counted(encoder)
    features = features_of(dataset, rest)  # type: ignore[arg-type]
    assert rest.seen == len(dataset) - 16 * BLOCK
    features_path(dataset, encoder.spec).unlink()
    np.testing.assert_array_equal(features, features_of(dataset, encoder))


def test_values_that_are_not_finite_are_not_kept(fresh: tuple[Any, Encoder]) -> None:
    dataset, encoder = fresh
    with torch.no_grad():
        next(encoder.parameters()).fill_(float("nan"))
    with pytest.raises(UserError, match="not finite"):
        features_of(dataset, encoder)
    assert not features_path(dataset, encoder.spec).exists()


def test_what_a_lost_partial_file_had_counts_for_nothing(fresh: tuple[Any, Encoder]) -> None:
    """A person deletes it where the disk is full; how far it was stands in a file of its own."""
    dataset, encoder = fresh
    partial = features_path(dataset, encoder.spec).with_suffix(".part")
    for most in (20 * BLOCK, 2 * BLOCK):
        partial.unlink(missing_ok=True)
        with pytest.raises(KeyboardInterrupt):
            features_of(dataset, Counted(encoder, most))  # type: ignore[arg-type]
    whole = Counted(encoder)
    found = np.array(features_of(dataset, whole))  # type: ignore[arg-type]
    assert whole.seen == len(dataset)
    assert np.abs(found).max(axis=1).min() > 0
