"""SSDML: triplets from propagated affinities, and a smooth angular loss.

An orthonormal projection and the network learn in turn.

U. K. Dutta, M. Harandi, C. Chandra Sekhar, "Semi-Supervised Metric Learning: A Deep Resurrection"; equation numbers are
that paper's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from udml_core.base.declaration import Shown
from udml_core.base.errors import UserError
from udml_core.data.training_data import TrainingData
from udml_core.methods.base import Card, Epoch, Method, Setting, State
from udml_core.methods.embedder import Embedder, Head, unit
from udml_core.methods.fields import (
    Angle,
    BatchNorm,
    BatchSize,
    Beginning,
    Dimension,
    Epochs,
    LearningRate,
    Momentum,
    Partition,
    PartitionEpochs,
    Trains,
    UnitLength,
    WalkProbability,
    WeightDecay,
)
from udml_core.methods.shared.distributed import agree
from udml_core.methods.shared.epoch_loop import EncoderLoop, StepCurves
from udml_core.methods.shared.few_labels import (
    SSDML_PAPER,
    Partitions,
    check_neighbors,
    pretrain_encoder,
)
from udml_core.methods.shared.manifold_search import ManifoldSearch
from udml_core.methods.shared.projection import check_projection, first_projection
from udml_core.methods.shared.training import SGDRates, rows_at
from udml_core.numerics.explanations import Affinities
from udml_core.numerics.geometry import Euclidean, Grassmann, Manifold
from udml_core.numerics.graph import propagate
from udml_core.numerics.losses.angular import (
    Scale,
    SmoothAngular,
    SmoothAngularEvaluation,
    smooth_angular_loss,
    triplets_used,
)
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.sampling import affinity_triplets


class SSDML(Method):
    """Semi-supervised metric learning by Algorithm 1.

    An orthonormal projection L takes the place of the metric M.

    Affinities: W = (1−γ)(I−γQ)⁻¹W0, symmetrized, where W0 holds +1 for equal and −1 for different labels and Q is the
    row-normalized kNN graph. Triplets: the k neighbors of every image, sorted by W, give the pairs (j, j+k/2).
    Loss (eq. 3): J = mean softplus(z) with z = δ²(a,p) − 4tan²α·δ²(n,m), m = (a+p)/2 and LᵀL = I.

    Departures from the paper: the mean in place of the printed sum, and a twentieth of the printed learning rate. With
    the printed values the loss can push all points apart until they are evenly spread; select the epoch by validation.
    """

    card: ClassVar[Card] = Card(
        name="ssdml",
        order=40,
        title="SSDML",
        paper=SSDML_PAPER,
        summary=("Passes a few labels from each image to its neighbors, then brings images with similar labels "
                 "together and moves others apart. It helps if you can label a few images of each class and "
                 "neighbors mostly share a class."),
        idea=("The few labels spread along a graph that connects each image with its nearest neighbors. The neighbors "
              "of an image are sorted by the affinities that result: the upper half are positives, the lower half "
              "negatives. An orthonormal projection and the network below it learn from these triplets in turn."),
        supervision="few",
        promise="may fall",
        source="Paper, table 1: the best epoch is above Initial on every data set.")

    shares_batches: ClassVar[bool] = True
    main_fields: ClassVar[tuple[str, ...]] = ("alpha", "n_neighbors", "dimension", "trains", "epochs", "learning_rate")

    trains: Trains = "head"
    """Train only the projection of frozen features, or the encoder's last blocks or all layers with it."""

    epochs: Epochs = 10
    """Passes over the partition's triplets. The paper takes at most 50 and keeps the best."""

    batch: BatchSize = 100
    """Triplets in a batch."""

    learning_rate: LearningRate = 5e-6
    """Learning rate of SGD on the encoder. The paper uses 1e-4, which spreads all points evenly within a few epochs."""

    momentum: Momentum = 0.9

    weight_decay: WeightDecay = 0.0
    """Weight decay of SGD; the paper prints none."""

    batch_norm: BatchNorm = "frozen"
    partition: Partition = 9000
    partition_epochs: PartitionEpochs = 10
    dimension: Dimension = 64

    n_neighbors: Annotated[int, Field(ge=2, le=500, multiple_of=2), Shown(symbol="k", step=2, high=100)] = 10
    """Even number of neighbors of each image in the graph; half of them become positives."""

    gamma: WalkProbability = 0.99
    """Probability that a random walk continues at each step. Larger values spread the labels farther. At the paper's
    0.99 a walk has 99 steps on average, and an image's own label hardly counts; 0.7 gives purer triplets."""

    alpha: Angle = 40.0
    """Upper bound on half the angle at the negative (eq. 3)."""

    orthogonal: Annotated[bool, Shown(label="Orthonormal projection")] = True
    """Keep the projection orthonormal, LᵀL = I. The paper's table 4 compares both cases."""

    scale: Annotated[Scale, Shown(label="Loss of a batch")] = "mean"
    """Average the losses of a batch, or sum them as eq. 3 prints. 'relative' first divides squared distances by their
    mean, so that larger distances alone do not lower the loss."""

    steps: Annotated[int, Field(ge=0, le=100), Shown(step=1, high=20, label="Conjugate-gradient steps")] = 10
    """Conjugate-gradient steps on the projection in each batch or partition; 0 leaves the initial projection
    unchanged."""

    alternation: Annotated[Literal["batch", "partition"], Shown(label="Projection learns")] = "batch"
    """Learn the projection in each batch before the step of the network, or once in each partition, from all its
    triplets. With frozen features the latter takes a single epoch."""

    pretraining: Annotated[int, Field(ge=0, le=1000), Shown(step=1, high=100, label="Pretraining epochs")] = 0
    """Passes over the labeled images that first train the encoder as a classifier. The paper takes 30 on CIFAR-10."""

    pretraining_rate: Annotated[float, Field(gt=0, le=10),
                                Shown(low=1e-4, high=1, logarithmic=True, label="Pretraining learning rate")] = 0.05
    """Learning rate of SGD in the pretraining. The paper gives no value."""

    beginning: Beginning = "random"
    """Initial projection: a random subspace, or the principal components."""

    unit_length: UnitLength = False
    """Normalize the embeddings to unit length. The paper's distance δ is Euclidean in the projected space."""

    @property
    def epochs_planned(self) -> int:
        # Without a network that moves the features there is nothing to alternate with, and L is learned once.
        return self.epochs if self.trains_encoder or self.alternation == "batch" else 1

    @property
    def partitions(self) -> Partitions:
        """The partitions' size and length."""
        return Partitions(self.partition, self.partition_epochs)

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        size = self.partitions.most_images(images)
        batches = size * self.n_neighbors / 2 / self.batch
        network = 9 * self.batch * image_seconds if self.trains_encoder else 0.0
        searches, triplets = (batches, self.batch) if self.alternation == "batch" else (1, batches * self.batch)
        metric = self.steps * (1e-3 + 1e-9 * triplets * width * self.dimension)
        return 1e-9 * size**2 + searches * metric + batches * network

    def check(self, images: int, width: int | None) -> None:
        check_projection(type(self).__name__, self.dimension, self.beginning, images, width)
        check_neighbors(type(self).__name__, self.n_neighbors, images)
        if not self.trains_encoder and not self.steps:
            raise UserError(f"{type(self).__name__} with steps=0 on frozen features learns nothing. Raise the field "
                            "'steps', or set 'trains' to 'last' or 'all'.")

    def initial(self, data: TrainingData, setting: Setting) -> Embedder:
        return Embedder(setting.encoder, self._head(self._first_projection(data, setting)))

    def fit(self, data: TrainingData, setting: Setting, start: State | None = None) -> Iterator[Epoch]:
        if self.pretraining and self.trains_encoder and start is None:
            rates = SGDRates(self.pretraining_rate, self.momentum, self.weight_decay)
            setting = pretrain_encoder(data, setting, self.pretraining, rates, self.batch, self.batch_norm,
                                       self.trained_part)
        yield from _SSDMLLoop(self, data, setting, start).run()

    def _first_projection(self, data: TrainingData, setting: Setting) -> Tensor:
        rows = unit(data.features)
        self.check(*rows.shape)
        return first_projection(rows, self.dimension, self.beginning, setting.seed).to(setting.device)

    def _head(self, projection: Tensor) -> Head:
        return Head(projection, normalized=self.unit_length)

    def _manifold(self, width: int) -> Manifold:
        """Return the search space of L.

        An orthonormal L counts only by its subspace, as J(LB) = J(L) for BᵀB = I.
        """
        return Grassmann(width, self.dimension) if self.orthogonal else Euclidean(width, self.dimension)


class _SSDMLLoop(EncoderLoop[SSDML]):
    """The partition's triplets, the search for L, and the network."""

    def __init__(self, method: SSDML, data: TrainingData, setting: Setting, start: State | None) -> None:
        super().__init__(method, data, setting, start)
        if start is None:
            projection, step = method._first_projection(data, setting), 0.0
            self._triplets = torch.zeros(0, 3, dtype=torch.int64)
        else:
            projection, step = start["projection"].to(setting.device), float(start["step"])
            self._triplets = start["triplets"]
        self._search = ManifoldSearch(method._manifold(data.features.shape[1]), (projection,), step)

    def _steps(self, epoch: int, random: torch.Generator) -> Iterator[StepCurves]:
        network = self.network
        # The graph, the affinities and the triplets stay the same for a whole partition, because propagation needs
        # the features of all its images and would be too slow after every step of the network.
        if self.method.partitions.begin_with(epoch):
            self._begin_partition(self._affinities(epoch))
        batches = self._triplets[torch.randperm(len(self._triplets), generator=random)].split(self.method.batch)
        measures = []
        network.prefetch(batches[0].unique())
        for position, batch in enumerate(batches, 1):
            if position < len(batches):
                network.prefetch(batches[position].unique())
            last = self._learn(batch)
            measures.append(last.measures())
            yield _curves(last)
            self.setting.report(position / len(batches))
        self.explained.append(triplets_used(torch.cat(batches), measures))

    def _head(self) -> Head:
        return self.method._head(self._search.point[0])

    def _state(self) -> dict[str, Tensor]:
        return super()._state() | {"projection": self._search.point[0], "triplets": self._triplets,
                                   "step": torch.tensor(self._search.step, dtype=torch.float64)}

    def _begin_partition(self, affinities: Affinities) -> None:
        """Choose the partition's triplets, and learn L from all of them in an alternation per partition."""
        self.explained.append(affinities)
        self._triplets = affinity_triplets(affinities.neighbors, affinities.after, affinities.points)
        agree([self._triplets])
        if self.method.alternation == "partition":
            function = self._function(*_rows_of(self._triplets, self.network.embed))
            self._search.minimize(function, self.method.steps)

    def _learn(self, batch: Tensor) -> SmoothAngularEvaluation:
        """Learn from one batch of triplets (t, 3).

        First L learns with the network fixed, then the network with L fixed.
        """
        method, search = self.method, self._search
        features, rows = _rows_of(batch, self.network.features)
        # The first half of the alternation: `detach` fixes the network, so that J depends on L alone and conjugate
        # gradient can search the Grassmann manifold. An alternation per partition has already learned L. Few steps
        # suffice, because the next batch moves L again.
        function = self._function(features.detach(), rows)
        if method.alternation == "batch":
            search.minimize(function, method.steps)
        last = function(search.point)
        # The second half: L now is a constant, and the same loss flows through the features to the encoder. The
        # features still come from before the step on L, which costs one forward pass less and changes nothing,
        # because they do not depend on L.
        anchor, positive, negative = (rows_at(features, part) for part in rows.unbind(1))
        (projection,) = search.point
        self.network.step(smooth_angular_loss(anchor, positive, negative, projection, method.alpha, method.scale))
        return last

    def _function(self, features: Tensor, triplets: Tensor) -> SmoothAngular:
        """Return J of triplets (t, 3) of constant features (i, d) as a function of L."""
        return SmoothAngular(features, triplets, self.method.alpha, self.method.scale)

    def _affinities(self, epoch: int) -> Affinities:
        """Propagate the labels along the partition's kNN graph.

        The graph joins the current unit features, below L.
        """
        method, data = self.method, self.data
        points = method.partitions.draw(data.labels, self.setting.seed, epoch)
        labels = data.labels[points]
        neighbors = nearest(self.network.embed(points).cpu().numpy(), min(method.n_neighbors, len(points) - 1))[1]
        propagation = propagate(neighbors, labels.numpy(), method.gamma)
        before, after, reach = (torch.from_numpy(part).float() for part in (propagation.before, propagation.after,
                                                                            propagation.reach))
        return Affinities(points, points[torch.from_numpy(neighbors)], before, after, labels, reach,
                          torch.from_numpy(propagation.classes))


def _rows_of(triplets: Tensor, features: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    """Return the features of the images of triplets, and the triplets as their rows.

    Every image is computed once; both results are on the device of the features.
    """
    images, local = torch.unique(triplets, return_inverse=True)
    rows = features(images)
    return rows, local.to(rows.device)


def _curves(last: SmoothAngularEvaluation) -> dict[str, float]:
    """Return a batch's curves.

    If both distances grow together, all points move apart and the embedding collapses.
    """
    return {"loss": float(last.loss.mean()), "violating": float((last.argument > 0).float().mean()),
            "positive distance": float(last.base.square().sum(1).mean()),
            "negative distance": float(last.median.square().sum(1).mean())}
