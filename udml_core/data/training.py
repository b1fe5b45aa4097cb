"""What a method may see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from udml_core.arrays import Array
from udml_core.data.given.pairs import PairSet

Supervision = Literal["none", "few", "pairs", "all"]


class Rows(Protocol):
    """What is read from the disk by positions of the training half, the first axis."""

    def __getitem__(self, indices: Array, /) -> Array: ...


class UndeclaredLabelsError(AttributeError):
    """A method asked for labels that its class does not declare."""


@dataclass(frozen=True)
class TrainingData:
    """The training half, with the labels that the method declared and no others.

    features (n, d) float32: the frozen encoder's, as pooled, not normalized. pixels (n, c, s, s) uint8: the prepared
    images, only for methods that train the encoder. views (n, v, d) float32: the frozen encoder's features of random
    views, only for methods that need them. Test features, test labels, and labels that were not declared, are
    not in this object, so they cannot be reached through it.
    """

    features: Tensor
    pixels: Rows | None = None
    views: Rows | None = None
    given_labels: Tensor | None = None
    given_pairs: PairSet | None = None

    def __len__(self) -> int:
        return len(self.features)

    @property
    def labels(self) -> Tensor:
        """(n,) int64, −1 where unlabeled.

        Raises:
            UndeclaredLabelsError: the method declared no labels.
        """
        if self.given_labels is None:
            raise UndeclaredLabelsError("this method declares supervision = 'none', so it is given no labels; "
                                        "declare 'few' or 'all' on the class to use them")
        return self.given_labels

    @property
    def pairs(self) -> tuple[Tensor, Tensor]:
        """Positions in the training half (p, 2) int64, and whether they are the same (p,) bool.

        Raises:
            UndeclaredLabelsError: the method declared no pairs.
        """
        if self.given_pairs is None:
            raise UndeclaredLabelsError("this method does not declare supervision = 'pairs', so it is given no pairs")
        return torch.from_numpy(self.given_pairs.pairs), torch.from_numpy(self.given_pairs.same)

    def images(self, indices: Tensor) -> Tensor:
        """Prepared images (b, c, s, s) uint8 at positions of the training half."""
        if self.pixels is None:
            raise AttributeError("this method does not declare trains_encoder, so it is given no images")
        return torch.from_numpy(self.pixels[indices.cpu().numpy()])

    def view_features(self, indices: Tensor) -> Tensor:
        """Features (b, v, d) of all views of the images at positions of the training half."""
        if self.views is None:
            raise AttributeError("this method does not declare views_needed, so it is given no views")
        return torch.from_numpy(np.array(self.views[indices.cpu().numpy()]))


def training_data(features: Array, labels: Array | None, train: Array, supervision: Supervision,
                  pixels: Array | None = None, views: Array | None = None, few: Array | None = None,
                  pairs: PairSet | None = None) -> TrainingData:
    """Copy out the training half of arrays over the whole data set.

    Args:
        features: (n, d). labels: (n,) or None. train: positions. pixels: (n, c, s, s) or None.
        supervision: "all" passes labels on, "few" passes `few` on, others nothing.
        views: (n_train, v, d), of the training half alone, or None. few: (n,) labels, −1 for all that stay unknown.
    """
    passed = {"all": labels, "few": few}.get(supervision)
    given = None if passed is None else torch.from_numpy(np.array(passed[train], dtype=np.int64))
    rows = torch.from_numpy(np.array(features[train], dtype=np.float32))
    return TrainingData(rows, None if pixels is None else _Selected(pixels, train), views, given,
                        pairs if supervision == "pairs" else None)


class _Selected:
    """Rows of a memory-mapped array, read when they are asked for."""

    def __init__(self, pixels: Array, rows: Array) -> None:
        self._pixels = pixels
        self._rows = rows

    def __getitem__(self, indices: Array) -> Array:
        return np.ascontiguousarray(self._pixels[self._rows[indices]])
