"""Baselines that learn a linear metric from the nearest neighbors' classes: NCA and LMNN."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from scipy.optimize import minimize
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from torch import Tensor

from udml_core.arrays import Array
from udml_core.data.training import TrainingData
from udml_core.declaration import Shown
from udml_core.errors import UserError
from udml_core.losses.lmnn import large_margin_loss
from udml_core.methods.base import Card, Epoch, Method, Setting, State
from udml_core.methods.closed_form import check_directions, only_epoch, principal_directions
from udml_core.methods.embedder import Head, unit
from udml_core.neighbors import nearest


class NeighborhoodMethod(Method):
    """What NCA and LMNN share: unit features, reduced by PCA, and a matrix found by L-BFGS in one pass."""

    BYTES_A_PAIR: ClassVar[float] = 0.0
    """What is kept for every two images."""

    dimension: Annotated[int, Field(ge=1, le=4096), Shown(symbol="d", step=1, high=128)] = 32
    """Width of the embedding; at most the features' width and the number of images."""

    reduced: Annotated[int, Field(ge=1, le=4096), Shown(step=1, high=512)] = 256
    """Principal components that the matrix is learnt on, for its cost; all there are where there are not so many."""

    iterations: Annotated[int, Field(ge=1, le=10_000), Shown(step=1, high=200)] = 50
    """Steps of L-BFGS, at most."""

    def check(self, images: int, width: int | None) -> None:
        check_directions(self.dimension, images, width)

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        return 1.5 * self.iterations * images**2 * (8e-9 + 1e-10 * self.reduced) + 1e-10 * images * width**2

    def expected_bytes(self, images: int, width: int) -> float:
        return super().expected_bytes(images, width) + self.BYTES_A_PAIR * images**2

    def _width(self, rows: Tensor) -> int:
        """How many principal components of rows (n, D) to learn on."""
        return min(max(self.reduced, self.dimension), *rows.shape)

    def fit(self, data: TrainingData, setting: Setting, start: State | None = None) -> Iterator[Epoch]:
        if start is not None:
            return
        rows, labels = unit(data.features.to(setting.device)), data.labels
        self.check(*rows.shape)
        sizes = labels.unique(return_counts=True)[1]
        if len(sizes) < 2 or int(sizes.max()) < 2:
            raise UserError(f"{type(self).__name__} needs at least 2 classes and a class of at least 2 images, got "
                            f"{len(sizes)} classes, the largest of {int(sizes.max())}. Add images, or choose another "
                            "split.")
        components = principal_directions(rows, self._width(rows))
        weight, curves = self._learn(rows @ components, labels, setting)
        yield only_epoch(setting, Head(components @ weight, normalized=False), curves)

    @abstractmethod
    def _learn(self, points: Tensor, labels: Tensor, setting: Setting) -> tuple[Tensor, dict[str, float]]:
        """A matrix (r, d) from points (n, r), and the final loss where it is told."""

    def _heard(self, setting: Setting) -> Callable[[Any], None]:
        """Called after each iteration: tells the share that is done."""
        done = iter(range(1, self.iterations + 1))
        return lambda *_: setting.report(next(done, self.iterations) / self.iterations)


class NCA(NeighborhoodMethod):
    """Neighborhood components analysis, scikit-learn's."""

    card: ClassVar[Card] = Card(
        name="nca",
        title="NCA",
        paper="J. Goldberger, S. Roweis, G. Hinton, R. Salakhutdinov: Neighbourhood Components Analysis, NIPS 2004.",
        idea=("Each image picks a neighbor at random, the nearer the likelier, and a matrix is learnt that makes it "
              "likely that the neighbor is of its class. It needs all labels, and compares every two images at every "
              "step."),
        supervision="all",
        promise="may fall",
        source="It is a baseline of NML's paper, for classes that were seen in training.")
    BYTES_A_PAIR: ClassVar[float] = 33.0
    MOST_IMAGES: ClassVar[int] = 20_000

    def check(self, images: int, width: int | None) -> None:
        if images > self.MOST_IMAGES:
            raise UserError(f"NCA keeps matrices of every two training images and takes at most {self.MOST_IMAGES:,}, "
                            f"got {images:,}. Choose LMNN, which goes through them in parts, or ML.")
        super().check(images, width)

    def _learn(self, points: Tensor, labels: Tensor, setting: Setting) -> tuple[Tensor, dict[str, float]]:
        heard = self._heard(setting)
        found = NeighborhoodComponentsAnalysis(self.dimension, init="pca", max_iter=self.iterations,
                                               random_state=setting.seed, callback=lambda *_: heard(None))
        found.fit(points.cpu().numpy().astype(np.float64), labels.numpy())
        return torch.from_numpy(found.components_.T.astype(np.float32)).to(points.device), {}


class LMNN(NeighborhoodMethod):
    """Large-margin nearest neighbors by L-BFGS over the projection; targets are the nearest of the class at the start.

    Our own, as metric-learn 0.7 does not run beside the current scikit-learn. Made to run, on 600 digits, it ends at
    11.1 of this loss (from 375 at the start) after 79 s, where this ends at .70 after 4 s.
    """

    card: ClassVar[Card] = Card(
        name="lmnn",
        title="LMNN",
        paper=("K. Q. Weinberger, L. K. Saul: Distance Metric Learning for Large Margin Nearest Neighbor "
               "Classification, JMLR 2009."),
        idea=("Each image's nearest ones of its class are to stay near, and every image of another class a margin "
              "farther than these. It needs all labels, and compares every two images at every step."),
        supervision="all",
        promise="may fall",
        source="It is a baseline of NML's paper, for classes that were seen in training.")

    variant: Literal["square", "rectangular"] = "rectangular"
    """LMNN(s): a square matrix on as many principal components as the embedding has dimensions. LMNN(r): a rectangular
    one on `reduced` components."""

    targets: Annotated[int, Field(ge=1, le=50), Shown(symbol="k", step=1, high=10)] = 3
    """Nearest images of its class that each image is kept near to."""

    mu: Annotated[float, Field(gt=0, lt=1), Shown(symbol="μ", step=0.05)] = 0.5
    """Share of the margins in the loss, beside the pull to the targets."""

    def _width(self, rows: Tensor) -> int:
        return self.dimension if self.variant == "square" else super()._width(rows)

    def _learn(self, points: Tensor, labels: Tensor, setting: Setting) -> tuple[Tensor, dict[str, float]]:
        rows, targets = target_neighbors(points.cpu().numpy(), labels.numpy(), self.targets)
        kept = torch.from_numpy(rows).to(points.device)
        some, classes = points[kept], labels.to(points.device)[kept]
        near = torch.from_numpy(targets).to(points.device)
        shape = (points.shape[1], self.dimension)

        def objective(flat: Array) -> tuple[float, Array]:
            weight = torch.from_numpy(flat.reshape(shape).astype(np.float32)).to(points.device)
            value, gradient = large_margin_loss(some, weight, classes, near, self.mu)
            return value, gradient.cpu().numpy().ravel().astype(np.float64)

        found = minimize(objective, np.eye(*shape).ravel(), jac=True, method="L-BFGS-B", callback=self._heard(setting),
                         options={"maxiter": self.iterations})
        weight = torch.from_numpy(found.x.reshape(shape).astype(np.float32)).to(points.device)
        return weight, {"loss": float(found.fun)}


def target_neighbors(points: Array, labels: Array, count: int) -> tuple[Array, Array]:
    """The images of classes of two or more, (m,) rows ascending, and each one's nearest of its class, (m, k), numbered
    among these; of a class with fewer others they repeat, so that each image counts as much."""
    sizes = np.unique(labels, return_inverse=True, return_counts=True)
    rows = np.flatnonzero(sizes[2][sizes[1]] > 1)
    classes = labels[rows]
    found = np.empty((len(rows), count), dtype=np.int64)
    for label in np.unique(classes):
        members = np.flatnonzero(classes == label)
        near = members[nearest(points[rows[members]], min(count, len(members) - 1))[1]]
        found[members] = near[:, np.arange(count) % near.shape[1]]
    return rows, found
