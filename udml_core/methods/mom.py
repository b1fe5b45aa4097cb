"""MOM: triplets mined where Euclidean neighbors and neighbors on the manifold disagree.

A. Iscen, G. Tolias, Y. Avrithis, O. Chum, "Mining on Manifolds: Metric Learning without Labels", CVPR 2018. It learns
from images alone. A random walk on the graph of mutual neighbors shows which images lie on one manifold; the pools of
positives and negatives are fixed before training. The formulas are numbered here and not as in the paper:

(1) W_ij = (x_iᵀx_j)³ for mutual k-nearest neighbors, else 0;  S = D^−½ W D^−½            graph of the frozen features x
(2) f = (I − αS)⁻¹ e_a                                            manifold similarity of all images to an anchor a
(3) P⁺(a) = NNᵐ_k⁺(a) \\ NNᵉ_k⁺(a)                                 near on the manifold, but not among the nearest
(4) P⁻(a) = NNᵉ_k⁻(a) \\ NNᵐ_k⁻(a)                                 among the nearest, but not near on the manifold
(5) anchors: all images, or the local maxima of π = d/Σd           stationary distribution of the walk, d the degree
(6) weighted triplet loss   f_p [m + ‖z_a − z_p‖² − ‖z_a − z_n‖²]₊
(7) contrastive loss        ‖z_a − z_p‖² + [m − ‖z_a − z_n‖]₊²

NNᵉ_k are the k nearest images by x, NNᵐ_k the k images with the largest f. A pool keeps its `pool` best images: P⁺ by
f, P⁻ by x.
What the paper leaves open, or what differs from the authors' public code (github.com/gtolias/mom):

- x are the features of the frozen encoder, without the paper's R-MAC pooling and whitening; choose `pooling` for R-MAC.
- The walk for an anchor is confined to its `shortlist` nearest images, as in the ranking by diffusion of this library.
  Images beyond the list cannot become positives. A list as long as the training half gives (2) exactly.
- An image is not its own neighbor, and a list of neighbors has at most half of the other images; the public code has
  this limit for k⁻ alone.
- Each anchor with both pools occurs once in an epoch, with a random positive and a negative drawn from the
  `hardest` that are nearest in the current embedding. The public code draws as many anchors at random.
- With anchors at local maxima, the paper keeps the 1,500 most visited in the largest connected part; here all are kept.
- The linear head starts at PCA. SGD has no dampening: the paper's rate of 0.01 with dampening 0.9 is 0.001 here.

On Fashion-MNIST's training half (3,000 images, 600 a class) a head hardly learns. The weights f_p average 0.12, so the
gradient is a seventh of the unweighted loss's (norms 0.05 and 0.36), and the head changes by 1.5 % in 20 epochs. A rate
of 0.01 changes it by 12 %, but MAP@R of the test half falls from 55.5 to 54.8; 72 % of the hard negatives have their
anchor's class, because k⁻ = 100 suits birds with 60 images a class. With k⁻ = 1400 at that rate 21 % have it, and MAP@R
rises to 56.7. Measured by `MOM.mine` and `MOM.fit` with one seed and the settings of
`udml train --dataset fashion-mini --method mom --size 96 --set dimension=64`, then with `--set learning_rate=0.01`, and
with `--set negatives=1400` as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from scipy import sparse
from torch import Tensor

from udml_core.base.arrays import Array, Booleans, Floats, Integers
from udml_core.base.declaration import Shown
from udml_core.base.errors import UserError
from udml_core.data.training_data import TrainingData
from udml_core.methods.base import Card, Setting
from udml_core.methods.embedder import unit
from udml_core.methods.fields import GraphNeighbors
from udml_core.methods.shared.distributed import agree
from udml_core.methods.shared.instance import Curves, InstanceMethod, Objective
from udml_core.methods.shared.training import Network, embed_training_half
from udml_core.numerics.refinement.diffusion import DiffusionRanking, mutual_affinities
from udml_core.numerics.refinement.unit_neighbors import nearest_unit

MinedLoss = Literal["weighted", "triplet", "contrastive"]
EXPONENT = 3.0
"""Exponent of the cosine in the affinities (1)."""
UNUSED = -1
"""Fills the end of a short pool."""
ROWS = 1024
"""Number of anchors whose negatives are compared at a time."""
TINY = 1e-12
"""Least squared distance below a square root."""


class MOM(InstanceMethod):
    """Triplets of hard positives and hard negatives, found by diffusion."""

    card: ClassVar[Card] = Card(
        name="mom",
        order=240,
        title="MOM",
        paper="A. Iscen, G. Tolias, Y. Avrithis, O. Chum: Mining on Manifolds: Metric Learning without Labels.",
        summary=("Walks from image to image along nearest neighbors to find images that look different but belong "
                 "together, and images that look similar but do not. It trains the network on both kinds; it needs no "
                 "labels, but good pretrained features."),
        idea=("A random walk on the neighbor graph of the frozen features finds images on the same manifold. Images "
              "that the walk reaches easily but that are not among the nearest are hard positives; images among the "
              "nearest that it hardly reaches are hard negatives. These positives and negatives are found once, before "
              "training."),
        supervision="none",
        promise="may fall",
        source=("RPML's paper, table 1: gains over Initial on birds, cars and products with a pretrained encoder. "
                "PSLR's paper, table 6: below a random network from scratch, because mining needs good features."))
    views: ClassVar[int] = 1

    main_fields: ClassVar[tuple[str, ...]] = ("positives", "negatives", "margin", "trains", "epochs", "learning_rate")

    n_neighbors: GraphNeighbors = 30
    """Neighbors of each image in the graph of the random walk; an edge joins mutual neighbors."""

    alpha: Annotated[float, Field(gt=0, lt=1), Shown(symbol="α", step=0.01, label="Walk probability")] = 0.99
    """Probability that the random walk continues instead of returning to its anchor."""

    shortlist: Annotated[int, Field(ge=2, le=100_000), Shown(step=100, high=5000, label="Walk shortlist")] = 1000
    """Nearest images of an anchor to which its random walk is confined; a longer list takes longer."""

    anchors: Annotated[Literal["all", "modes"], Shown(label="Anchors")] = "all"
    """Use all images as anchors, or only the images that a random walk visits more often than all their neighbors in
    the graph."""

    positives: Annotated[int, Field(ge=1, le=10_000), Shown(symbol="k⁺", step=1, high=200,
                                                            label="Neighbors for positives")] = 50
    """Length of the two lists of neighbors whose difference gives the positives."""

    negatives: Annotated[int, Field(ge=1, le=10_000), Shown(symbol="k⁻", step=1, high=400,
                                                            label="Neighbors for negatives")] = 100
    """Length of the two lists of neighbors whose difference gives the negatives."""

    pool: Annotated[int, Field(ge=1, le=1000), Shown(step=1, high=200, label="Largest pool")] = 50
    """Largest number of positives and of negatives that an anchor keeps."""

    hardest: Annotated[int, Field(ge=1, le=1000), Shown(step=1, high=50, label="Hardest negatives")] = 10
    """Number of an anchor's negatives, the nearest in the current embedding, from which one is drawn."""

    loss: Annotated[MinedLoss, Shown(label="Loss")] = "weighted"
    """Triplet loss weighted by the positive's similarity on the manifold, without weights, or contrastive loss."""

    margin: Annotated[float, Field(gt=0, le=4), Shown(symbol="m", step=0.05, high=2, label="Margin")] = 0.5
    """Margin of the loss."""

    def check(self, images: int, width: int | None) -> None:
        super().check(images, width)
        if images < 4 or self.batch < 3:
            raise UserError(f"{type(self).__name__} needs at least 4 training images and 3 images in a batch, got "
                            f"{images} and {self.batch}. Add images, or raise the field 'batch'.")

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        mining = 2e-7 * images * min(self.shortlist, images) * self.n_neighbors / self.epochs
        # An epoch visits each anchor with a positive and a negative, and embeds all images once more.
        return 3 * super().expected_seconds(images, width, image_seconds) + mining

    def objective(self, network: Network, data: TrainingData, setting: Setting) -> Objective:
        return _MinedTriplets(self, self.mine(unit(data.features).numpy())).to(setting.device)

    def mine(self, rows: Array) -> Pools:
        """Mine the pools of all images (1–5).

        Args:
            rows: Unit features (n, d).

        Raises:
            UserError: No anchor has a positive and a negative.
        """
        most = -(-(len(rows) - 1) // 2)
        short, long = min(self.positives, most), min(self.negatives, most)
        nearest = nearest_unit(rows, max(short, long))[1]
        ranking = DiffusionRanking(rows, self.n_neighbors, self.alpha, EXPONENT, self.shortlist)
        walked, similarities = ranking.neighbors(max(short, long))
        walked = np.where(similarities > 0, walked, UNUSED)  # an image that the walk does not reach is on no manifold
        positives, places = outside(walked[:, :short], nearest[:, :short], self.pool)
        weights = np.where(positives == UNUSED, 0, np.take_along_axis(similarities, places, axis=1))
        negatives, _ = outside(nearest[:, :long], walked[:, :long], self.pool)
        usable = (positives[:, 0] != UNUSED) & (negatives[:, 0] != UNUSED)
        if self.anchors == "modes":
            usable &= modes(mutual_affinities(rows, ranking.k, EXPONENT))
        if not usable.any():
            raise UserError(f"{type(self).__name__} needs an anchor with a hard positive and a hard negative and found "
                            f"none, got {len(rows)} images and positives={self.positives}: the nearest images are also "
                            "nearest on the manifold. Lower the field 'positives', or add images.")
        return Pools(usable, positives, weights.astype(np.float32), negatives)


@dataclass(frozen=True)
class Pools:
    """The mined images of each image; `UNUSED` fills short pools.

    Attributes:
        usable: Whether an image is an anchor with a positive and a negative (n,) bool.
        positives: P⁺ (n, p), most similar on the manifold first.
        weights: Manifold similarity of each positive (n, p).
        negatives: P⁻ (n, q), nearest first.
    """

    usable: Booleans
    positives: Integers
    weights: Floats
    negatives: Integers


def outside(first: Integers, second: Integers, most: int) -> tuple[Integers, Integers]:
    """Return the set difference of each row of two arrays of indices (n, k), in the order of the first (3, 4).

    Args:
        first: Indices (n, k).
        second: Indices (n, k).
        most: Largest number of indices to keep in a row.

    Returns:
        The indices (n, min(k, most)), with `UNUSED` at the end of shorter rows, and their positions in `first`.
    """
    # Each row gets indices of its own, so that one search serves all rows.
    own = np.arange(len(first))[:, None] * (1 + max(first.max(), second.max()))
    kept = (first != UNUSED) & ~np.isin(first + own, (second + own)[second != UNUSED])
    places = np.argsort(~kept, axis=1, kind="stable")[:, :most]
    return np.where(np.take_along_axis(kept, places, axis=1), np.take_along_axis(first, places, axis=1), UNUSED), places


def modes(affinities: sparse.csr_matrix) -> Booleans:
    """Return which images a random walk visits more often than all their neighbors in the graph (5), (n,) bool.

    The stationary distribution of a walk on an undirected graph is proportional to the degree.

    Args:
        affinities: W (n, n).
    """
    degree = np.asarray(affinities.sum(axis=1)).ravel()
    largest = (affinities > 0).multiply(degree).max(axis=1).toarray().ravel()
    is_mode: Booleans = degree > largest
    return is_mode


class _MinedTriplets(Objective):
    """The pools, and the negatives nearest to each anchor in the current embedding.

    Attributes:
        usable: Whether an image is an anchor (n,).
        positives: P⁺ of each image (n, p).
        weights: Manifold similarity of each positive (n, p).
        negatives: P⁻ of each image (n, q).
    """

    usable: Tensor
    positives: Tensor
    weights: Tensor
    negatives: Tensor

    def __init__(self, method: MOM, pools: Pools) -> None:
        super().__init__()
        self._method = method
        # The pools follow from the frozen features, so the state of a run need not hold them.
        for name in ("usable", "positives", "weights", "negatives"):
            self.register_buffer(name, torch.from_numpy(getattr(pools, name)), persistent=False)
        self._hardest = self.negatives.cpu()

    def begin(self, network: Network, data: TrainingData) -> None:
        points = embed_training_half(network, data, self.negatives.device)
        # Unit rows: the nearest have the largest products. −2 is below every product, for unused places.
        products = torch.cat([(points[rows][:, None] * points[pool.clamp_min(0)]).sum(2).masked_fill(pool == UNUSED, -2)
                              for rows, pool in zip(torch.arange(len(points)).split(ROWS), self.negatives.split(ROWS),
                                                    strict=True)])
        nearest = products.argsort(dim=1, descending=True, stable=True)[:, :self._method.hardest]
        hardest = self.negatives.gather(1, nearest)
        agree([hardest])
        self._hardest = hardest.cpu()

    def batches(self, images: int, size: int, random: torch.Generator) -> Iterator[Tensor]:
        """Yield anchors, their positives and their negatives, in this order, (3t,)."""
        anchors = torch.nonzero(self.usable.cpu()).squeeze(1)
        anchors = anchors[torch.randperm(len(anchors), generator=random)]
        positives = _draw(self.positives.cpu()[anchors], random)
        negatives = _draw(self._hardest[anchors], random)
        count = min(size // 3, len(anchors))
        for start in range(0, len(anchors) - count + 1, count):
            part = slice(start, start + count)
            yield torch.cat([anchors[part], positives[part], negatives[part]])

    def loss(self, instance: Tensor, batch: Tensor, random: torch.Generator) -> tuple[Tensor, Curves]:
        anchors, positives, _ = batch.to(instance.device).chunk(3)
        of_anchors, of_positives, of_negatives = instance.chunk(3)
        weights = self.weights[anchors].masked_fill(self.positives[anchors] != positives[:, None], 0).sum(1)
        values = mined_loss(of_anchors, of_positives, of_negatives, weights, self._method.margin, self._method.loss)
        return values.mean(), {"violating": (values.detach() > 0).float().mean(),
                               "mean similarity": instance.detach().mean(0).square().sum()}


def _draw(pools: Tensor, random: torch.Generator) -> Tensor:
    """Draw one used index of each pool (t, k), whose unused places are at its end, (t,)."""
    counts = (pools != UNUSED).sum(1)
    places = (torch.rand(len(pools), generator=random, dtype=torch.float64) * counts).long()
    return pools.gather(1, places[:, None]).squeeze(1)


def mined_loss(anchors: Tensor, positives: Tensor, negatives: Tensor, weights: Tensor, margin: float,
               loss: MinedLoss) -> Tensor:
    """Compute the loss of each triplet (6, 7), (t,).

    Args:
        anchors: z_a (t, l).
        positives: z_p (t, l).
        negatives: z_n (t, l).
        weights: Manifold similarity f_p of the positives (t,).
        margin: m.
        loss: "weighted", "triplet" for f_p = 1, or "contrastive".
    """
    near, far = ((anchors - others).square().sum(1) for others in (positives, negatives))
    if loss == "contrastive":
        # The gradient of a distance is infinite at 0.
        return near + (margin - far.clamp_min(TINY).sqrt()).relu().square()
    values = (margin + near - far).relu()
    return weights * values if loss == "weighted" else values
