"""The part of a data set that a method may see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from udml_core.base.arrays import Array, Integers
from udml_core.data.given.pair_sets import PairSet

Supervision = Literal["none", "few", "pairs", "all"]


class Rows(Protocol):
    """Rows that are read from disk by their index in the training half."""

    def __getitem__(self, indices: Integers, /) -> Array: ...


class UndeclaredLabelsError(AttributeError):
    """A method accessed labels or pairs that its class does not declare."""


@dataclass(frozen=True)
class TrainingData:
    """The training half, with only the labels that the method declares.

    Test features, test labels and undeclared labels are not part of this object, so a method cannot reach them.

    Attributes:
        features: Pooled features of the frozen encoder (n, d) float32, not normalized.
        pixels: Prepared images (n, c, s, s) uint8; None unless the method trains the whole encoder.
        sources: The images (n, c, S, S) uint8 that random views are cropped from; None for `pixels` themselves.
        activations: Activations of the encoder's early blocks (n, v, c, h, w) float16, of the whole image and of random
            views; None unless the method trains the last blocks.
        views: Features of random views by the frozen encoder (n, v, d) float32; None unless the method needs them.
        given_labels: Labels (n,) int64, −1 where unknown; None unless the method declares labels.
        given_pairs: Pairs of indices into the training half; None unless the method declares pairs.
    """

    features: Tensor
    pixels: Rows | None = None
    views: Rows | None = None
    given_labels: Tensor | None = None
    given_pairs: PairSet | None = None
    sources: Rows | None = None
    activations: Rows | None = None

    def __len__(self) -> int:
        return len(self.features)

    @property
    def labels(self) -> Tensor:
        """Labels (n,) int64, −1 where unknown.

        Raises:
            UndeclaredLabelsError: The method does not declare labels.
        """
        if self.given_labels is None:
            raise UndeclaredLabelsError("this method does not declare labels, so it receives none; "
                                        "declare 'few' or 'all' on the class to use labels")
        return self.given_labels

    @property
    def pairs(self) -> tuple[Tensor, Tensor]:
        """The training pairs (p, 2) int64, and whether each pair is similar, (p,) bool.

        The pairs are indices into the training half.

        Raises:
            UndeclaredLabelsError: The method does not declare pairs.
        """
        if self.given_pairs is None:
            raise UndeclaredLabelsError("this method does not declare supervision = 'pairs', so it receives no pairs; "
                                        "declare it on the class to use pairs")
        return torch.from_numpy(self.given_pairs.pairs), torch.from_numpy(self.given_pairs.same)

    def images(self, indices: Tensor) -> Tensor:
        """Return prepared images (b, c, s, s) uint8 by index in the training half."""
        if self.pixels is None:
            raise AttributeError("this method does not declare trains_encoder, so it receives no images")
        return torch.from_numpy(self.pixels[indices.cpu().numpy()])

    def crop_sources(self, indices: Tensor) -> Tensor:
        """Return the images (b, c, S, S) uint8 that views are cropped from, by index in the training half."""
        if self.sources is None:
            return self.images(indices)
        return torch.from_numpy(self.sources[indices.cpu().numpy()])

    def view_activations(self, indices: Tensor) -> Tensor:
        """Return the early blocks' activations (b, v, c, h, w) float16 of all views of images.

        `indices` (b,) are positions in the training half. The first view is the whole image.
        """
        if self.activations is None:
            raise AttributeError("this method does not declare activations_needed, so it receives no activations")
        return torch.from_numpy(np.array(self.activations[indices.cpu().numpy()]))

    def whole_activations(self, indices: Tensor) -> Tensor:
        """Return the early blocks' activations (b, c, h, w) float16 of whole images."""
        return self.view_activations(indices)[:, 0]

    def view_features(self, indices: Tensor) -> Tensor:
        """Return the features (b, v, d) of all views of images.

        `indices` (b,) are positions in the training half.
        """
        if self.views is None:
            raise AttributeError("this method does not declare views_needed, so it receives no views")
        return torch.from_numpy(np.array(self.views[indices.cpu().numpy()]))


def training_data(features: Array, labels: Integers | None, train: Integers, supervision: Supervision,
                  pixels: Array | None = None, views: Array | None = None, few: Integers | None = None,
                  pairs: PairSet | None = None, sources: Array | None = None,
                  activations: Array | None = None) -> TrainingData:
    """Copy the training half of arrays over the whole data set.

    Args:
        features: Features of all images (n, d).
        labels: Labels of all images (n,), or None.
        train: Indices of the training half.
        supervision: The method's supervision: "all" uses `labels`, "few" uses `few` and "pairs" uses `pairs`.
        pixels: Prepared images (n, c, s, s), or None.
        views: Features of random views of the training half (n_train, v, d), or None.
        few: Labels of all images (n,), −1 where unknown, or None.
        pairs: Pairs of indices into the training half, or None.
        sources: Images (n, c, S, S) that views are cropped from, or None.
        activations: Activations of views of the training half (n_train, v, c, h, w), or None.
    """
    declared = {"all": labels, "few": few}.get(supervision)
    declared_labels = None if declared is None else torch.from_numpy(np.array(declared[train], dtype=np.int64))
    rows = torch.from_numpy(np.asarray(features[train], dtype=np.float32))  # already a copy
    return TrainingData(rows, None if pixels is None else _SelectedRows(pixels, train), views, declared_labels,
                        pairs if supervision == "pairs" else None,
                        None if sources is None else _SelectedRows(sources, train), activations)


class _SelectedRows:
    """Selected rows of a memory-mapped array, read on access."""

    def __init__(self, pixels: Array, rows: Integers) -> None:
        self._pixels = pixels
        self._rows = rows

    def __getitem__(self, indices: Integers) -> Array:
        return np.ascontiguousarray(self._pixels[self._rows[indices]])
