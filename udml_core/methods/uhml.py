"""UHML-like hierarchy: the levels of hierarchical clusters as graded supervision, in hyperbolic distances.

J. Yan, L. Luo, C. Deng, H. Huang, "Unsupervised Hyperbolic Metric Learning", CVPR 2021. It learns from images alone.
The paper's equations were not at hand: this follows the authors' public code (github.com/JiexiYan/UnHyperML) and is
called UHML-like because of the departures below. The formulas are numbered here:

(1) Ward's tree of the embeddings, cut into C_1 > C_2 > … > C_K clusters, with C_{s+1} = C_s/ratio
(2) g_ij = the number of these levels at which i and j are in different clusters, 0 to K
(3) d_ij = (1/√c) arcosh(1 + ½ sinh²(2√c) ‖x_i − x_j‖²)                              hyperbolic distance of unit rows x
(4) L = mean over (i, j, l) with g_ij = 0 < g_il of (log d_il − log d_ij − β g_il)²   log-ratio loss

(3) is the distance of the points tanh(√c)·x/√c, where the exponential map at the center of the Poincaré ball of
curvature −c takes unit rows x. All of them have the same distance to the center, so that the order of neighbors in the
ball is the order by the cosine, and retrieval needs no hyperbolic geometry.

Departures from the public code:

- The ratio is of distances. The public code has the ratio of inner products of points in the ball, whose logarithm is
  undefined below 0; its target changes by a tenth of log 10 with each level, which is β = 0.23 here.
- The loss is a mean over triplets, not a sum.
- The number of clusters is a field and not the known number of classes of the data set, and the levels have a fixed
  ratio (the public code has 100 and 50 clusters, or 100, 50 and 10 for birds).
- Squared distances below 0.0001 count as 0.0001, because the gradient of the logarithm grows without bound.
- A batch holds images with one partner of their finest cluster each; the public code has eight images of a cluster.
- SGD trains encoder and head together; the public code has Adam at 0.00001 and a frozen encoder.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, ClassVar

import numpy as np
import torch
from pydantic import Field
from scipy.cluster.hierarchy import cut_tree, ward
from torch import Tensor

from udml_core.base.arrays import Array
from udml_core.base.declaration import Shown
from udml_core.base.errors import UserError
from udml_core.data.training_data import TrainingData
from udml_core.methods.base import Card, Setting
from udml_core.methods.shared.distributed import agree
from udml_core.methods.shared.instance import Curves, InstanceMethod, Objective
from udml_core.methods.shared.training import Network, embed_training_half
from udml_core.numerics.sampling import pair_batches

MOST_IMAGES = 20_000
"""Ward's tree needs the distances of all pairs, twice: 3.2 GB for 20,000 images."""
LEAST = 1e-4
"""Least squared distance in the loss."""


class UHML(InstanceMethod):
    """Distances that grow with the level at which the clusters of two images meet."""

    card: ClassVar[Card] = Card(
        name="uhml",
        order=260,
        title="UHML-like hierarchy",
        paper="J. Yan, L. Luo, C. Deng, H. Huang: Unsupervised Hyperbolic Metric Learning.",
        summary=("Sorts images into small groups inside larger groups, and trains the model to keep each group "
                 "closer than the next larger one. It needs no labels, and helps if the classes have subclasses."),
        idea=("Hierarchical clustering of the embeddings gives fine clusters inside coarse clusters. An image of "
              "another fine cluster should be farther than an image of the same cluster, and an image of another "
              "coarse cluster farther still, by a fixed ratio for each level. The clusters are computed again in every "
              "epoch."),
        supervision="none",
        promise="may fall",
        source=("PLM's paper, table 1, prints UHML above AND and PSLR with the encoder trained; this is not its exact "
                "method. A linear head on frozen features starts at PCA and has little to gain."))
    views: ClassVar[int] = 1

    main_fields: ClassVar[tuple[str, ...]] = ("clusters", "levels", "step", "trains", "epochs", "learning_rate")

    clusters: Annotated[int, Field(ge=2, le=10_000), Shown(symbol="C₁", step=1, high=500, label="Finest clusters")
                        ] = 100
    """Number of clusters of the finest level."""

    levels: Annotated[int, Field(ge=1, le=10), Shown(symbol="K", step=1, label="Levels")] = 2
    """Number of levels of clusters."""

    ratio: Annotated[float, Field(gt=1, le=100), Shown(step=0.5, high=10, label="Ratio of levels")] = 2.0
    """Number of clusters of a level, divided by the number of the next coarser level."""

    step: Annotated[float, Field(gt=0, le=10), Shown(symbol="β", step=0.01, high=1, label="Distance of levels")] = 0.23
    """Logarithm of the ratio by which distances grow with each level."""

    curvature: Annotated[float, Field(gt=0, le=4), Shown(symbol="c", step=0.05, label="Curvature")] = 1.0
    """Curvature of the hyperbolic space, as a positive number; near 0, distances are Euclidean."""

    def check(self, images: int, width: int | None) -> None:
        super().check(images, width)
        name = type(self).__name__
        if 2 * self.clusters > images:
            raise UserError(f"{name}.clusters must be at most half the number of training images {images}, got "
                            f"{self.clusters}. Lower the field 'clusters'.")
        if images > MOST_IMAGES:
            raise UserError(f"{name} compares all pairs of images and can train on at most {MOST_IMAGES:,} images, got "
                            f"{images:,}. Choose a smaller data set.")
        if self.counts()[-1] < 2:
            raise UserError(f"{name}.levels must leave at least 2 clusters at the coarsest level, got {self.levels} "
                            f"levels of {', '.join(map(str, self.counts()))} clusters. Lower the field 'levels' or "
                            "'ratio'.")

    def counts(self) -> list[int]:
        """Return the number of clusters of each level, finest first (1)."""
        return [int(self.clusters / self.ratio**level) for level in range(self.levels)]

    def expected_bytes(self, images: int, width: int) -> float:
        return super().expected_bytes(images, width) + 8.0 * images**2

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        return super().expected_seconds(images, width, image_seconds) + 5e-8 * images**2

    def objective(self, network: Network, data: TrainingData, setting: Setting) -> Objective:
        return _Hierarchy(self)


class _Hierarchy(Objective):
    """The clusters of every level in the current epoch."""

    def __init__(self, method: UHML) -> None:
        super().__init__()
        self._method = method
        self._labels = torch.empty(0)

    def begin(self, network: Network, data: TrainingData) -> None:
        points = embed_training_half(network, data, network.weight.device)
        labels = torch.from_numpy(hierarchy(points.cpu().numpy(), self._method.counts()))
        agree([labels])
        self._labels = labels

    def batches(self, images: int, size: int, random: torch.Generator) -> Iterator[Tensor]:
        return pair_batches(self._labels[:, 0], size, random)

    def loss(self, instance: Tensor, batch: Tensor, random: torch.Generator) -> tuple[Tensor, Curves]:
        method = self._method
        gaps = level_gaps(self._labels[batch]).to(instance.device)
        distances = hyperbolic_distances(instance, method.curvature)
        value, ratio = log_ratio_loss(distances, gaps, method.step)
        return value, {"distance ratio": ratio, "mean similarity": instance.detach().mean(0).square().sum()}


def hierarchy(points: Array, counts: list[int]) -> Array:
    """Return the clusters of points (n, d) at each level of Ward's tree, (n, K) int64.

    Args:
        points: The points.
        counts: Number of clusters of each level, finest first.
    """
    tree = ward(points.astype(np.float64))
    return np.stack([cut_tree(tree, count).ravel() for count in counts], axis=1).astype(np.int64)


def level_gaps(labels: Tensor) -> Tensor:
    """Return g (2), (m, m) int64, of the clusters of m images at each level, (m, K)."""
    return (labels[:, None] != labels).sum(2)


def hyperbolic_distances(rows: Tensor, curvature: float) -> Tensor:
    """Compute d (3), (m, m), of unit rows (m, l)."""
    root = math.sqrt(curvature)
    squared = (2 - 2 * rows @ rows.mT).clamp_min(LEAST)
    excess = 0.5 * math.sinh(2 * root) ** 2 * squared
    # arcosh(1 + e) = log(1 + e + √(e(e + 2))), without the difference that loses digits for a small e.
    return torch.log1p(excess + (excess * (excess + 2)).sqrt()) / root


def log_ratio_loss(distances: Tensor, gaps: Tensor, step: float) -> tuple[Tensor, Tensor]:
    """Compute L (4), and the geometric mean of d_il/d_ij over the triplets.

    Args:
        distances: d (m, m).
        gaps: g (m, m).
        step: β.
    """
    near = ((gaps == 0) & ~torch.eye(len(gaps), dtype=torch.bool, device=gaps.device)).to(distances.dtype)
    far = (gaps > 0).to(distances.dtype)
    logs = distances.log()
    targets = logs - step * gaps
    # Σ_jl (a_ij − b_il)² = n_far Σ_j a² + n_near Σ_l b² − 2 Σ_j a Σ_l b for each i, without an array of all triplets.
    count_near, count_far = near.sum(1), far.sum(1)
    sum_near, sum_far = (near * logs).sum(1), (far * targets).sum(1)
    squares = (count_far * (near * logs.square()).sum(1) + count_near * (far * targets.square()).sum(1)
               - 2 * sum_near * sum_far)
    triplets = (count_near * count_far).sum().clamp_min(1)
    ratio = (count_near * (far * logs).sum(1) - count_far * sum_near).detach().sum() / triplets
    return squares.sum() / triplets, ratio.exp()
