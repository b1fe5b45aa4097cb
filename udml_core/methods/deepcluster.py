"""DeepCluster: the clusters of the embedding are the classes that the network learns next.

M. Caron, P. Bojanowski, A. Joulin, M. Douze, "Deep Clustering for Unsupervised Learning of Visual Features", ECCV 2018.
Equation and section numbers are that paper's. It learns from images alone.

Each round alternates two steps:
- Clusters: min over centers C (l, k) of (1/n) Σ_i min_j ‖φ(x_i) − c_j‖² (eq. 2), by k-means on the whitened and
  normalized embeddings φ of the training images without augmentation. The nearest center is image i's pseudo-label y_i.
- Classes: min over the network θ and a classifier g_W of (1/n) Σ_i −log softmax(g_W(f_θ(view of i)))_{y_i} (eq. 1), by
  SGD on random views. The classifier is set to new values first, because the numbers of the clusters mean nothing
  from one round to the next.

Two trivial solutions are avoided (section 3.3):
- Empty clusters: an empty cluster gets the center of a random other cluster with a small random change, and the images
  of that cluster are divided between the two centers.
- Few large clusters: images are drawn with probability 1/(size of their cluster), so that clusters are drawn equally.

Left open, and decided here:
- f_θ is the embedding unit(unit(f)·W), the same as in every other method, and is clustered in all its dimensions; the
  paper reduces the encoder's features to 256. Scores are divided by τ, because the embedding has unit length.
- k-means starts at k random images and runs 20 steps, as in the authors' code. The paper does not say how small the
  change of an empty cluster's center is; here it is a hundredth of a unit vector.
- The classifier starts at the centers of the clusters' embeddings, so that it fits the clusters from the first step: a
  round here may have twenty steps, in the paper it has thousands. `first_classifier` = "random" is the paper's.
- One SGD trains both, with the same rate; the authors' code gives the classifier no momentum. Its momentum
  is forgotten whenever it is reset.
- Colors stay; the paper replaces them by edges (Sobel filters), for which pretrained encoders have no weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from udml_core.base.declaration import Shown
from udml_core.base.errors import UserError
from udml_core.data.training_data import TrainingData
from udml_core.methods.base import Card, Setting
from udml_core.methods.embedder import unit
from udml_core.methods.shared.classifier import (
    Classifier,
    FirstClassifier,
    Sharpness,
    classifier_seconds,
    random_weights,
)
from udml_core.methods.shared.distributed import agree
from udml_core.methods.shared.instance import Curves, InstanceMethod, Objective
from udml_core.methods.shared.training import Network, embed_training_half
from udml_core.numerics.evaluation import nmi
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.sampling import generator

KMEANS_STEPS = 20
CHANGE = 0.01
"""Length of the random change of an empty cluster's new center."""
LEAST_VARIANCE = 1e-6
"""Least variance that whitening divides by, as a share of the largest."""


class DeepCluster(InstanceMethod):
    """Alternation of k-means and classification of its clusters."""

    card: ClassVar[Card] = Card(
        name="deepcluster",
        order=210,
        title="DeepCluster",
        paper=("M. Caron, P. Bojanowski, A. Joulin, M. Douze: Deep Clustering for Unsupervised Learning of Visual "
               "Features."),
        summary=("Sorts all images into groups by similarity, trains the network to recognize an image's group, and "
                 "repeats. It needs no labels, and helps if the groups follow the classes; wrong groups are learned "
                 "as well."),
        idea=("Cluster the embeddings of all training images by k-means. Then train the network to classify random "
              "views of each image into its cluster, with a new classifier, and repeat. Clusters that share a visual "
              "pattern become tighter from round to round."),
        supervision="none",
        promise="may fall",
        source=("PSLR's paper, tables 1–5: below NCE, ISIF and PSLR on CIFAR-10, STL-10, cars and products; on the "
                "last two also below the initial network; on birds above NCE, but below ISIF and PSLR. The paper's "
                "reason: wrong pseudo-labels are learned as well."))
    views: ClassVar[int] = 1

    main_fields: ClassVar[tuple[str, ...]] = ("clusters", "round_epochs", "dimension", "trains", "epochs",
                                              "learning_rate")

    clusters: Annotated[int, Field(ge=2, le=100_000), Shown(symbol="k", step=10, high=1000)] = 100
    """Number of clusters, at most the number of training images. The paper uses ten times the number of classes."""

    round_epochs: Annotated[int, Field(ge=1, le=1000), Shown(step=1, high=10, label="Epochs per clustering")] = 1
    """Epochs of classification after each clustering."""

    whitened: Annotated[bool, Shown(label="Whiten before clustering")] = True
    """Whiten the embeddings before clustering, so that all their directions count equally."""

    first_classifier: Annotated[FirstClassifier, Shown(label="Classifier after clustering")] = "centers"
    """Reset the classifier to the clusters' mean embeddings, or to small random weights as in the paper, which many
    steps must then train."""

    temperature: Sharpness = 0.1
    """Divisor of the classifier's scores; lower values give the nearest cluster a larger share."""

    def check(self, images: int, width: int | None) -> None:
        super().check(images, width)
        if self.clusters > images:
            raise UserError(f"DeepCluster.clusters must be at most the number of training images {images}, got "
                            f"{self.clusters}. Lower the field 'clusters'.")

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        embedding = images * image_seconds / self.round_epochs if self.trains_encoder else 0
        clustering = KMEANS_STEPS * classifier_seconds(images, self.clusters, self.dimension) / self.round_epochs
        return super().expected_seconds(images, width, image_seconds) + embedding + clustering

    def objective(self, network: Network, data: TrainingData, setting: Setting) -> Objective:
        return _Clustering(self, len(data), setting.seed).to(setting.device)


class _Clustering(Objective):
    """The pseudo-labels and their classifier.

    Attributes:
        assignment: Cluster of each training image (n,) int64; −1 before the first clustering.
        finished: Number of epochs () int64 that have begun.
        stability: NMI () of the last two clusterings; −1 before the second one.
    """

    assignment: Tensor
    finished: Tensor
    stability: Tensor

    def __init__(self, method: DeepCluster, images: int, seed: int) -> None:
        super().__init__()
        self._method, self._seed = method, seed
        self.classifier = Classifier(torch.zeros(method.clusters, method.dimension), method.temperature)
        self.register_buffer("assignment", torch.full((images,), -1))
        self.register_buffer("finished", torch.tensor(0))
        self.register_buffer("stability", torch.tensor(-1.0))

    def begin(self, network: Network, data: TrainingData) -> None:
        """Cluster the training images and reset the classifier, at the first epoch of each round."""
        self.restarted = ()
        if int(self.finished) % self._method.round_epochs == 0:
            random = generator(self._seed, -1 - int(self.finished))
            rows = embed_training_half(network, data, self.assignment.device)
            clusters = cluster(whiten(rows) if self._method.whitened else rows, self._method.clusters, random)
            agree([clusters])
            if int(self.assignment[0]) >= 0:
                self.stability.fill_(nmi(self.assignment.cpu().numpy(), clusters.cpu().numpy()))
            self.assignment.copy_(clusters)
            self.classifier.reset(self._first_weights(rows, random))
            agree(self.classifier.parameters())
            self.restarted = tuple(self.classifier.parameters())
        self.finished += 1

    def batches(self, images: int, size: int, random: torch.Generator) -> Iterator[Tensor]:
        """Yield as many images as an epoch has, drawn with equal probability for every cluster."""
        clusters = self.assignment.cpu()
        drawn = torch.multinomial(1 / clusters.bincount()[clusters], images, replacement=True, generator=random)
        yield from drawn[: images - images % size].split(size)

    def loss(self, instance: Tensor, batch: Tensor, random: torch.Generator) -> tuple[Tensor, Curves]:
        value, curves = self.classifier.loss(instance, self.assignment[batch.to(instance.device)])
        if self.stability >= 0:
            curves["cluster stability"] = self.stability.clone()
        return value, curves

    def _first_weights(self, rows: Tensor, random: torch.Generator) -> Tensor:
        """Return the classifier's weights (k, l) at the start of a round."""
        if self._method.first_classifier == "random":
            return random_weights(self._method.clusters, rows.shape[1], random).to(rows.device)
        return unit(_centers(rows, self.assignment, self._method.clusters))


def whiten(rows: Tensor) -> Tensor:
    """Center rows (n, l), divide them by the standard deviation in each principal direction, and normalize them."""
    centered = rows - rows.mean(0)
    variances, directions = torch.linalg.eigh(centered.mT @ centered / len(rows))
    least = max(LEAST_VARIANCE * float(variances[-1]), torch.finfo(rows.dtype).tiny)  # equal images have no variance
    return unit(centered @ directions / variances.clamp_min(least).sqrt())


def cluster(points: Tensor, count: int, random: torch.Generator) -> Tensor:
    """Return the k-means clusters (n,) int64 of points (n, l).

    The start is `count` random points. A cluster that becomes empty takes a part of another one. Only clusters of
    equal points cannot be divided, so with many equal points some clusters can stay empty.
    """
    centers = points[torch.randperm(len(points), generator=random)[:count].to(points.device)]
    clusters = _nearest_center(points, centers)
    for _ in range(KMEANS_STEPS):
        centers = fill_empty(_centers(points, clusters, count), clusters, random)
        clusters = _nearest_center(points, centers)
    return clusters


def fill_empty(centers: Tensor, clusters: Tensor, random: torch.Generator) -> Tensor:
    """Move the center of each empty cluster beside that of a random cluster of two or more points.

    Args:
        centers: (k, l); the rows of empty clusters are not used.
        clusters: (n,) int64.
        random: Random stream.
    """
    sizes = clusters.bincount(minlength=len(centers)).cpu()
    empty, divisible = torch.nonzero(sizes == 0).squeeze(1), torch.nonzero(sizes > 1).squeeze(1)
    if not len(empty) or not len(divisible):
        return centers
    source = divisible[torch.randint(len(divisible), (len(empty),), generator=random)]
    change = CHANGE * unit(torch.randn(len(empty), centers.shape[1], generator=random))
    filled = centers.clone()
    filled[empty.to(centers.device)] = centers[source.to(centers.device)] + change.to(centers)
    return filled


def _centers(points: Tensor, clusters: Tensor, count: int) -> Tensor:
    """Return the mean point (k, l) of each cluster; zero for an empty cluster."""
    sums = points.new_zeros(count, points.shape[1]).index_add_(0, clusters, points)
    return sums / clusters.bincount(minlength=count).clamp_min(1)[:, None]


def _nearest_center(points: Tensor, centers: Tensor) -> Tensor:
    indices = nearest(centers.cpu().numpy(), 1, points.cpu().numpy())[1][:, 0]
    return torch.from_numpy(indices).to(points.device)
