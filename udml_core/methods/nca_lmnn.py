"""NCA and LMNN: linear metrics learned from the classes of the nearest neighbors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from udml_core.base.arrays import Array
from udml_core.base.declaration import Shown
from udml_core.base.errors import UserError
from udml_core.data.training_data import TrainingData
from udml_core.methods.base import Card, Epoch, Method, Setting, State
from udml_core.methods.closed_form import check_directions, principal_directions, single_epoch
from udml_core.methods.embedder import Head, unit
from udml_core.methods.fields import PairDimension
from udml_core.numerics.losses.lmnn import large_margin_loss
from udml_core.numerics.neighbors import nearest


class NeighborhoodMethod(Method):
    """A linear map of the principal components of unit features.

    L-BFGS finds it in a single epoch.
    """

    BYTES_A_PAIR: ClassVar[float] = 0.0
    """Memory for every two training images."""

    dimension: PairDimension = 32
    """Dimension of the embedding, at most the features' dimension and the number of images."""

    reduced: Annotated[int, Field(ge=1, le=4096), Shown(step=1, high=512, label="Principal components")] = 256
    """Number of principal components that the map is learned on; fewer are faster."""

    iterations: Annotated[int, Field(ge=1, le=10_000), Shown(step=1, high=200, label="L-BFGS iterations")] = 50
    """Largest number of L-BFGS iterations."""

    def check(self, images: int, width: int | None) -> None:
        check_directions(self.dimension, images, width)

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        return 1.5 * self.iterations * images**2 * (8e-9 + 1e-10 * self.reduced) + 1e-10 * images * width**2

    def expected_bytes(self, images: int, width: int) -> float:
        return super().expected_bytes(images, width) + self.BYTES_A_PAIR * images**2

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
        components = principal_directions(rows, self._components(rows))
        weight, curves = self._learn(rows @ components, labels, setting)
        yield single_epoch(setting, Head(components @ weight, normalized=False), curves)

    def _components(self, rows: Tensor) -> int:
        """Return the number of principal components of rows (n, D) to learn on."""
        return min(max(self.reduced, self.dimension), *rows.shape)

    @abstractmethod
    def _learn(self, points: Tensor, labels: Tensor, setting: Setting) -> tuple[Tensor, dict[str, float]]:
        """Learn a map (r, d) of points (n, r).

        The final loss is returned as well if the optimizer gives it.
        """

    def _reporter(self, setting: Setting) -> Callable[[Any], None]:
        """Return a callback for the optimizer that reports the finished share."""
        done = iter(range(1, self.iterations + 1))
        return lambda *_: setting.report(next(done, self.iterations) / self.iterations)


class NCA(NeighborhoodMethod):
    """Neighborhood components analysis, by scikit-learn."""

    BYTES_A_PAIR: ClassVar[float] = 33.0
    MOST_IMAGES: ClassVar[int] = 20_000

    card: ClassVar[Card] = Card(
        name="nca",
        order=150,
        title="NCA",
        paper="J. Goldberger, S. Roweis, G. Hinton, R. Salakhutdinov: Neighbourhood Components Analysis.",
        summary=("Looks at the class of each image's neighbors and changes the distances so that neighbors more "
                 "often share its class. It needs the label of every training image, and helps for the classes it "
                 "was trained on."),
        idea=("Each image picks a neighbor at random, and near neighbors are more likely. The learned map makes it "
              "likely that the neighbor has the same class. NCA needs all labels and compares every two images in "
              "every step."),
        supervision="all",
        promise="may fall",
        source="NML's paper uses it as a baseline for classes of the training half.")

    def check(self, images: int, width: int | None) -> None:
        if images > self.MOST_IMAGES:
            raise UserError(f"{type(self).__name__} stores matrices of all pairs of training images and accepts at "
                            f"most {self.MOST_IMAGES:,} images, got {images:,}. Use fewer images, or choose a method "
                            "that processes the pairs in parts.")
        super().check(images, width)

    def _learn(self, points: Tensor, labels: Tensor, setting: Setting) -> tuple[Tensor, dict[str, float]]:
        from sklearn.neighbors import NeighborhoodComponentsAnalysis  # slow to import

        report = self._reporter(setting)
        nca = NeighborhoodComponentsAnalysis(self.dimension, init="pca", max_iter=self.iterations,
                                             random_state=setting.seed, callback=lambda *_: report(None))
        nca.fit(points.cpu().numpy().astype(np.float64), labels.numpy())
        return torch.from_numpy(nca.components_.T.astype(np.float32)).to(points.device), {}


class LMNN(NeighborhoodMethod):
    """Large-margin nearest neighbors by L-BFGS over the projection.

    (1−μ)·Σ_targets ‖L(x_i−x_j)‖² + μ·Σ_impostors [1 + ‖L(x_i−x_j)‖² − ‖L(x_i−x_q)‖²]₊. The targets of an image are its
    nearest neighbors of the same class before training. This is our own implementation, because metric-learn 0.7 does
    not run with the current scikit-learn.
    """

    card: ClassVar[Card] = Card(
        name="lmnn",
        order=160,
        title="LMNN",
        paper=("K. Q. Weinberger, L. K. Saul: Distance Metric Learning for Large Margin Nearest Neighbor "
               "Classification, JMLR 2009."),
        summary=("Looks at the nearest images of the same class, keeps them close, and pushes images of other "
                 "classes beyond them. It needs the label of every training image, and helps for the classes it was "
                 "trained on."),
        idea=("The nearest neighbors of the same class should stay close to each image. Images of other classes should "
              "be farther away by at least a margin. LMNN needs all labels and compares every two images in every "
              "step."),
        supervision="all",
        promise="may fall",
        source="NML's paper uses it as a baseline for classes of the training half.")

    variant: Annotated[Literal["square", "rectangular"], Shown(label="Shape of the map")] = "rectangular"
    """LMNN(s) learns a square matrix on as many principal components as the embedding has dimensions; LMNN(r) learns a
    rectangular matrix on `reduced` components."""

    targets: Annotated[int, Field(ge=1, le=50), Shown(symbol="k", step=1, high=10, label="Target neighbors")] = 3
    """Number of nearest images of the same class that stay close to each image."""

    mu: Annotated[float, Field(gt=0, lt=1), Shown(symbol="μ", step=0.05, label="Weight of the margins")] = 0.5
    """Weight of the margins in the loss; the pull toward the targets has the weight 1 − μ."""

    def _components(self, rows: Tensor) -> int:
        return self.dimension if self.variant == "square" else super()._components(rows)

    def _learn(self, points: Tensor, labels: Tensor, setting: Setting) -> tuple[Tensor, dict[str, float]]:
        from scipy.optimize import minimize  # slow to import

        positions, targets = target_neighbors(points.cpu().numpy(), labels.numpy(), self.targets)
        rows = torch.from_numpy(positions).to(points.device)
        anchors, classes = points[rows], labels.to(points.device)[rows]
        neighbors = torch.from_numpy(targets).to(points.device)
        shape = (points.shape[1], self.dimension)

        def objective(flat: Array) -> tuple[float, Array]:
            weight = torch.from_numpy(flat.reshape(shape).astype(np.float32)).to(points.device)
            value, gradient = large_margin_loss(anchors, weight, classes, neighbors, self.mu)
            return value, gradient.cpu().numpy().ravel().astype(np.float64)

        result = minimize(objective, np.eye(*shape).ravel(), jac=True, method="L-BFGS-B",
                          callback=self._reporter(setting), options={"maxiter": self.iterations})
        weight = torch.from_numpy(result.x.reshape(shape).astype(np.float32)).to(points.device)
        return weight, {"loss": float(result.fun)}


def target_neighbors(points: Array, labels: Array, count: int) -> tuple[Array, Array]:
    """Return the images of classes with two or more images, and their targets.

    The targets of an image are the nearest images of its class.

    Args:
        points: Points (n, r).
        labels: Labels (n,).
        count: Number k of target neighbors. In a smaller class they repeat, so that each image has the same weight.

    Returns:
        Ascending row numbers (m,), and for each the target neighbors (m, k) as positions in these rows.
    """
    sizes = np.unique(labels, return_inverse=True, return_counts=True)
    rows = np.flatnonzero(sizes[2][sizes[1]] > 1)
    classes = labels[rows]
    targets = np.empty((len(rows), count), dtype=np.int64)
    for label in np.unique(classes):
        members = np.flatnonzero(classes == label)
        neighbors = members[nearest(points[rows[members]], min(count, len(members) - 1))[1]]
        targets[members] = neighbors[:, np.arange(count) % neighbors.shape[1]]
    return rows, targets
