"""Closed-form methods that every other is measured beside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from udml_core.data.training import TrainingData
from udml_core.declaration import Shown
from udml_core.errors import UserError
from udml_core.graph import mutual_pairs
from udml_core.methods.base import Card, Epoch, Method, Setting, State
from udml_core.methods.embedder import Embedder, Head, unit


class Frozen(Method):
    """The backbone's features as they are."""

    card: ClassVar[Card] = Card(
        name="frozen",
        title="Frozen features",
        paper="No paper: the figure that any learning has to beat.",
        idea=("Nothing is learnt. The backbone's pooled features are compared by their angle. Whoever cannot beat "
              "this should not train."),
        supervision="none",
        promise="may fall",
        source="It equals its own start.")

    def fit(self, data: TrainingData, setting: Setting, start: State | None = None) -> Iterator[Epoch]:
        if start is None:
            yield only_epoch(setting, Head())


class PCA(Method):
    """Principal components of unit features."""

    card: ClassVar[Card] = Card(
        name="pca",
        title="PCA",
        paper="K. Pearson, 1901.",
        idea=("Keep the directions along which unit features spread most. Nothing about similarity is learnt, but "
              "noise is left out and the embedding is small. On strong features this is hard to beat at the same "
              "size."),
        supervision="none",
        promise="may fall",
        source="Trials on birds100: 48.2 against 48.9 of the full features (MAP@R).")

    dimension: Annotated[int, Field(ge=1, le=4096), Shown(symbol="l", step=1, high=512)] = 128
    """Width of the embedding; at most the features' width and the number of images."""

    centered: bool = False
    """Subtract the mean first. Cosine comparison of the result then sees only differences from the mean image."""

    def check(self, images: int, width: int | None) -> None:
        check_directions(self.dimension, images, width)

    def fit(self, data: TrainingData, setting: Setting, start: State | None = None) -> Iterator[Epoch]:
        if start is None:
            rows = unit(data.features.to(setting.device))
            offset = rows.mean(0) if self.centered else None
            yield only_epoch(setting, Head(principal_directions(rows, self.dimension, offset), offset))


class Whiten(Method):
    """Whitening by what differs between images that are each other's nearest."""

    card: ClassVar[Card] = Card(
        name="whiten",
        title="Whitening from mutual neighbors",
        paper="Within-class whitening (R. Fisher, 1936), with mutual neighbors in place of classes.",
        idea=("Two images that are among each other's nearest probably show the same thing. Directions along which "
              "such pairs differ are shrunk, around the mean image. One covariance and one matrix root: no training "
              "loop, and often the best row of the table."),
        supervision="none",
        promise="gain",
        source="Trials on birds100: MAP@R 51.4 against 48.9 of the frozen features.")

    n_neighbors: Annotated[int, Field(ge=1, le=100), Shown(symbol="k", step=1, high=30)] = 5
    """Two images are a pair if each is among the other's k nearest."""

    shrinkage: Annotated[float, Field(gt=0, le=100), Shown(symbol="s", step=0.05, high=5.0)] = 1.0
    """How many times the mean variance is added to every direction; larger changes the features less."""

    def check(self, images: int, width: int | None) -> None:
        if images <= self.n_neighbors:
            raise UserError(f"Whiten needs more images than n_neighbors, got {images} images and "
                            f"n_neighbors={self.n_neighbors}. Lower n_neighbors or add images.")

    def fit(self, data: TrainingData, setting: Setting, start: State | None = None) -> Iterator[Epoch]:
        if start is not None:
            return
        rows = unit(data.features.to(setting.device))
        self.check(*rows.shape)
        pairs = torch.from_numpy(mutual_pairs(rows.cpu().numpy(), self.n_neighbors)).to(setting.device)
        difference = (rows[pairs[:, 0]] - rows[pairs[:, 1]]).double()
        covariance = difference.mT @ difference / max(1, len(pairs))
        values, vectors = torch.linalg.eigh(covariance)
        level = float(values.mean()) * self.shrinkage or 1.0
        weight = vectors * (values.clamp_min(0) + level).rsqrt() @ vectors.mT
        yield only_epoch(setting, Head(weight.float(), rows.mean(0)), {"mutual pairs": float(len(pairs))})


def principal_directions(rows: Tensor, count: int, offset: Tensor | None = None) -> Tensor:
    """The `count` directions (d, l) of largest second moment of rows (n, d) − offset, each turned to sum positively.

    Raises:
        UserError: more directions than the rows or their width allow.
    """
    check_directions(count, *rows.shape)
    wide = (rows if offset is None else rows - offset).double()
    vectors = torch.linalg.eigh(wide.mT @ wide).eigenvectors.flip(1)[:, :count]
    sign = torch.where(vectors.sum(0) < 0, -1.0, 1.0)
    return (vectors * sign).float().contiguous()


def check_directions(count: int, images: int, width: int | None) -> None:
    """Raises:
    UserError: so many images, or features of that width where it is known, do not span `count` directions."""
    most = images if width is None else min(images, width)
    if count > most:
        features = "" if width is None else f" of {width}-d features"
        raise UserError(f"The embedding can have at most {most} dimensions ({images} images{features}), got "
                        f"dimension={count}. Lower the field 'dimension'.")


def only_epoch(setting: Setting, head: Head, losses: dict[str, float] | None = None) -> Epoch:
    """The one epoch of a method that is done in a single pass."""
    embedder = Embedder(setting.encoder, head.to(setting.device))
    return Epoch(1, losses or {}, embedder, (), {"epoch": torch.tensor(1)})


