"""Closed-form methods: the baselines that every other method is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from udml_core.base.arrays import blocks
from udml_core.base.declaration import Shown
from udml_core.base.errors import UserError
from udml_core.data.training_data import TrainingData
from udml_core.methods.base import Card, Epoch, Method, Setting, State
from udml_core.methods.embedder import Embedder, Head, unit
from udml_core.methods.fields import Dimension, UnitLength
from udml_core.numerics.geometry.whitening import whitening_weight
from udml_core.numerics.graph import mutual_pairs

NO_LENGTH = 1e-6
"""Share of the longest column below which a column carries rounding errors alone."""


class Frozen(Method):
    """The features of the backbone without training."""

    card: ClassVar[Card] = Card(
        name="frozen",
        order=930,
        title="Frozen features",
        paper="No paper; the baseline of all training.",
        summary=("Compares images by the features of the backbone, or by their pixels, and changes nothing. It shows "
                 "what a search finds without training, so every other method should do better."),
        idea=("Nothing is learned. Images are compared by the angle between their features. A method that does not "
              "beat this baseline gains nothing from training."),
        supervision="none",
        promise="may fall",
        source="The result equals the start.")

    def fit(self, data: TrainingData, setting: Setting, start: State | None = None) -> Iterator[Epoch]:
        if start is None:
            yield single_epoch(setting, Head())


class PCA(Method):
    """Principal components of unit features.

    The embedding is unit((unit(x) − mean)·W), or (unit(x) − mean)·W without `unit_length`; without `centered`, no mean
    is subtracted.
    """

    card: ClassVar[Card] = Card(
        name="pca",
        order=920,
        title="PCA",
        paper="K. Pearson, 1901.",
        summary=("Keeps only the directions in which the images differ most, and drops the rest as noise. It needs "
                 "no labels, and is hard to beat at the same dimension if the features are good."),
        idea=("Subtract the mean and keep the directions in which the unit features vary most. Nothing is learned "
              "about similarity, but noise is removed and the embedding is small. With strong features, PCA is hard "
              "to beat at the same dimension."),
        supervision="none",
        promise="may fall",
        source=("The result stays close to the full features; see the record 'Methods without labels on birds' on the "
                "page Results."))

    dimension: Dimension = 128
    """Dimension of the embedding, at most the features' dimension and the number of images."""

    centered: Annotated[bool, Shown(label="Subtract the mean")] = True
    """Subtract the mean first; the cosine then compares differences from the mean image. Without it, the first
    component is close to the mean itself."""

    unit_length: UnitLength = True
    """Scale embeddings to unit length, so that distances order images as the cosine does; if off, embeddings are the
    projections themselves, as in the textbook."""

    def check(self, images: int, width: int | None) -> None:
        check_directions(self.dimension, images, width)

    def fit(self, data: TrainingData, setting: Setting, start: State | None = None) -> Iterator[Epoch]:
        if start is None:
            rows = unit(data.features.to(setting.device))
            offset = rows.mean(0) if self.centered else None
            weight = principal_directions(rows, self.dimension, offset)
            yield single_epoch(setting, Head(weight, offset, self.unit_length))


class Whiten(Method):
    """Whitening by the covariance of the differences between mutual nearest neighbors.

    W = (C + s·v·I)^−½, where C is the covariance of the differences, v its mean eigenvalue and s the shrinkage.
    """

    card: ClassVar[Card] = Card(
        name="whiten",
        order=910,
        title="Whitening from mutual neighbors",
        paper="Within-class whitening (R. Fisher, 1936), with mutual neighbors in place of classes.",
        summary=("Looks for pairs of images that are each other's nearest neighbors, and pays less attention to "
                 "whatever differs within such pairs. It needs no labels, and helps if the features are already "
                 "good."),
        idea=("Two images that are among each other's nearest neighbors probably show the same class. Whitening "
              "shrinks the directions in which such pairs differ. It needs a covariance matrix and no training loop."),
        supervision="none",
        promise="gain",
        source=("The result exceeds the frozen features; see the record 'Methods without labels on birds' on the page "
                "Results."))

    n_neighbors: Annotated[int, Field(ge=1, le=100), Shown(symbol="k", step=1, high=30, label="Paired neighbors")] = 5
    """Two images form a pair if each is among the k nearest neighbors of the other."""

    shrinkage: Annotated[float, Field(gt=0, le=100), Shown(symbol="s", step=0.05, high=5.0)] = 1.0
    """Multiple of the mean variance that is added in every direction; larger values change the features less."""

    def check(self, images: int, width: int | None) -> None:
        if images <= self.n_neighbors:
            raise UserError(f"{type(self).__name__} needs more images than n_neighbors, got {images} images and "
                            f"n_neighbors={self.n_neighbors}. Lower n_neighbors or add images.")

    def fit(self, data: TrainingData, setting: Setting, start: State | None = None) -> Iterator[Epoch]:
        if start is not None:
            return
        rows = unit(data.features.to(setting.device))
        self.check(*rows.shape)
        pairs = torch.from_numpy(mutual_pairs(rows.cpu().numpy(), self.n_neighbors)).to(setting.device)
        difference = (rows[pairs[:, 0]] - rows[pairs[:, 1]]).double()
        covariance = difference.mT @ difference / max(1, len(pairs))
        weight, _ = whitening_weight(covariance, self.shrinkage)
        yield single_epoch(setting, Head(weight.float(), rows.mean(0)), {"mutual pairs": float(len(pairs))})


def principal_directions(rows: Tensor, count: int, offset: Tensor | None = None) -> Tensor:
    """Return the directions of the largest second moment.

    Each direction has the sign that makes its sum positive.

    Args:
        rows: Points (n, d).
        count: Number l of directions.
        offset: Point (d,) to subtract; None for the origin.

    Returns:
        Orthonormal columns (d, l).

    Raises:
        UserError: The rows span fewer directions.
    """
    check_directions(count, *rows.shape)
    images, width = rows.shape
    origin = torch.zeros(width, dtype=rows.dtype, device=rows.device) if offset is None else offset
    if images >= width:
        centered = ((rows[some] - origin).double() for some in blocks(images, width))
        vectors = torch.linalg.eigh(_total(block.mT @ block for block in centered)).eigenvectors.flip(1)[:, :count]
        return (vectors * torch.where(vectors.sum(0) < 0, -1.0, 1.0)).float().contiguous()
    # The smaller product saves memory that grows with the square of the width.
    slices = list(blocks(width, images))
    centered = ((rows[:, some] - origin[some]).double() for some in slices)
    turned = torch.linalg.eigh(_total(block @ block.mT for block in centered)).eigenvectors.flip(1)[:, :count]
    columns = torch.empty((width, count), device=rows.device)
    squares, sums = (torch.zeros(count, dtype=torch.float64, device=rows.device) for _ in range(2))
    for some in slices:
        block = (rows[:, some] - origin[some]).double().mT @ turned
        columns[some], squares, sums = block.float(), squares + block.square().sum(0), sums + block.sum(0)
    return _unit_columns(columns, squares.sqrt(), sums)


def _total(parts: Iterator[Tensor]) -> Tensor:
    """Add tensors of one shape, one at a time."""
    return reduce(Tensor.add_, parts)


def _unit_columns(columns: Tensor, lengths: Tensor, sums: Tensor) -> Tensor:
    """Scale orthogonal columns to unit length, with a positive sum each; the columns are overwritten.

    Args:
        columns: Columns (d, l) float32; a column of length 0 becomes orthogonal to all others.
        lengths: Lengths (l,) of the columns.
        sums: Sums (l,) of the columns.
    """
    is_known = lengths > NO_LENGTH * lengths.max()
    columns *= torch.where(is_known, torch.where(sums < 0, -1.0, 1.0) / lengths.clamp_min(1e-300), 0.0).float()
    missing = int((~is_known).sum())
    if missing:
        drawn = torch.randn(len(columns), missing, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        drawn = drawn.to(columns.device)
        slices = list(blocks(*columns.shape))
        for _ in range(2):  # once leaves rounding errors
            shares = _total(columns[some].double().mT @ drawn[some] for some in slices)
            for some in slices:
                drawn[some] -= columns[some].double() @ shares
            drawn = torch.linalg.qr(drawn).Q
        columns[:, ~is_known] = (drawn * torch.where(drawn.sum(0) < 0, -1.0, 1.0)).float()
    return columns


def check_directions(count: int, images: int, width: int | None) -> None:
    """Reject more principal components than the images span.

    Args:
        count: Number of components.
        images: Number of training images.
        width: Dimension d of the features; None if it is unknown.

    Raises:
        UserError: The message names the largest number and the field.
    """
    most = images if width is None else min(images, width)
    if count > most:
        features = "" if width is None else f" of {width}-d features"
        raise UserError(f"The embedding can have at most {most} dimensions ({images} images{features}), got "
                        f"dimension={count}. Lower the field 'dimension'.")


def single_epoch(setting: Setting, head: Head, losses: dict[str, float] | None = None) -> Epoch:
    """Return the single epoch of a closed-form method."""
    embedder = Embedder(setting.encoder, head.to(setting.device))
    return Epoch(1, losses or {}, embedder, (), {"epoch": torch.tensor(1)})
