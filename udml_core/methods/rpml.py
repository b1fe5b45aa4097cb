"""RPML and sRPML: pseudo-labels by authority ascent, weighted angular triplets, Riemannian optimization.

U. K. Dutta, M. Harandi, C. Chandra Sekhar, "A Probabilistic Approach for Learning Embeddings without Supervision";
equation numbers are that paper's.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from udml_core.backbones import EncoderSpec
from udml_core.data.training import TrainingData
from udml_core.declaration import Shown
from udml_core.errors import UserError
from udml_core.explanations import Clusters, Explanation
from udml_core.geometry import ConjugateGradient, Euclidean, Grassmann, Point, Product
from udml_core.graph import AuthorityGraph
from udml_core.losses.angular import (
    Weight,
    WeightedAngular,
    WeightedAngularEvaluation,
    triplets_used,
    weighted_angular_loss,
)
from udml_core.methods.base import Card, Epoch, Method, Setting, State, mean_curves
from udml_core.methods.embedder import Embedder, Head, unit
from udml_core.methods.shared.projection import Beginning, check_batch_norm, check_projection, first_projection
from udml_core.methods.shared.training import EncoderInTraining, SGDRates, rows_at
from udml_core.sampling import cluster_triplets, generator, pair_batches, semi_hard_triplets

PAPER = ("U. K. Dutta, M. Harandi, C. Chandra Sekhar: A Probabilistic Approach for Learning Embeddings "
         "without Supervision.")


class AuthorityMethod(Method):
    """What RPML and sRPML share: the pseudo-labels, the weight, the search space and its start."""


    alpha: Annotated[float, Field(gt=0, lt=90), Shown(symbol="α", unit="°", step=1)] = 45.0
    """Upper bound on the angle at the negative (eq. 8). Smaller asks for negatives that are farther away."""

    epsilon: Annotated[float, Field(ge=0, le=1), Shown(symbol="ε", step=0.01)] = 0.65
    """Least relevancy of an edge that authority ascent may follow (eq. 4). Lower merges, higher shatters."""

    gamma: Annotated[float, Field(ge=0, le=100_000), Shown(symbol="γ", step=1, high=1000)] = 100.0
    """How much a steep rise in authority lowers relevancy (eq. 3)."""

    n_neighbors: Annotated[int, Field(ge=2, le=500), Shown(symbol="k", step=1, high=200)] = 50
    """Neighbors of each image in the graph; at most the number of images less one."""

    dimension: Annotated[int, Field(ge=1, le=4096), Shown(symbol="l", step=1, high=512)] = 128
    """Width of the embedding."""

    weight: Weight = "bilinear"
    """Weight of a triplet: two bilinear similarities (eq. 25, RPMLv1), or the concatenated triplet (eq. 10), whose
    optimum is the collapse of all weights."""

    beginning: Beginning = "random"
    """Where the projection starts: a random subspace, as in the paper, or the principal components."""

    epochs: Annotated[int, Field(ge=1, le=1000), Shown(step=1, high=100)] = 10
    """Passes. Triplets are drawn afresh in each."""

    @abstractmethod
    def fit(self, data: TrainingData, setting: Setting, start: State | None = None) -> Iterator[Epoch]: ...

    def check(self, images: int, width: int | None) -> None:
        check_projection(type(self).__name__, self.dimension, self.beginning, images, width)

    def initial(self, data: TrainingData, setting: Setting) -> Embedder:
        return Embedder(setting.encoder, Head(self._first_point(data, setting)[1]))

    def _first_point(self, data: TrainingData, setting: Setting) -> Point:
        """The weight's parameter and L. R starts at a seeded Gaussian/√d, as R = 0 is stationary; r at 0, w = ½."""
        rows = unit(data.features)
        self.check(*rows.shape)
        width = rows.shape[1]
        projection = first_projection(rows, self.dimension, self.beginning, setting.seed)
        if self.weight == "bilinear":
            parameter = Euclidean(width, self.dimension, scale=width**-0.5).random(setting.seed + 1)[0]
        else:
            parameter = torch.zeros(2 * width)
        return parameter.to(setting.device), projection.to(setting.device)

    def _space(self, width: int) -> Product:
        """R^{d×l} × Grassmann(l, d), or R^{2d} × Grassmann(l, d) (eq. 13)."""
        shape = (width, self.dimension) if self.weight == "bilinear" else (2 * width,)
        return Product(Euclidean(*shape), Grassmann(width, self.dimension))

    def _clusters(self, data: TrainingData) -> Clusters:
        """The pseudo-labels of the frozen features.

        Raises:
            UserError: no cluster has two images, or all images are in one.
        """
        neighbors = min(self.n_neighbors, len(data) - 1)
        graph = AuthorityGraph.build(unit(data.features).numpy(), neighbors)
        found = graph.clusters(self.epsilon, self.gamma)
        if len(found.modes) == 1:
            raise UserError(f"Authority ascent put all {len(data)} images into one cluster at ε={self.epsilon:g}, so "
                            "there are no negatives. Raise the field 'epsilon'.")
        if len(found.modes) == len(data):
            raise UserError(f"Authority ascent left each of the {len(data)} images alone at ε={self.epsilon:g}, so "
                            "there are no positives. Lower the field 'epsilon'.")
        return Clusters(*(torch.from_numpy(part) for part in (found.labels, found.modes, found.parents)))

    def _resume(self, data: TrainingData, setting: Setting,
                start: State | None) -> tuple[int, Point, float, Tensor, tuple[Explanation, ...]]:
        """Epoch, point, remembered step, pseudo-labels, and what explains them (only where they are new)."""
        if start is None:
            clusters = self._clusters(data)
            return 0, self._first_point(data, setting), 0.0, clusters.labels, (clusters,)
        point = (start["parameter"].to(setting.device), start["projection"].to(setting.device))
        return int(start["epoch"]), point, float(start["step"]), start["labels"], ()

    def _state(self, epoch: int, point: Point, step: float, labels: Tensor) -> dict[str, Tensor]:
        return {"epoch": torch.tensor(epoch), "parameter": point[0], "projection": point[1],
                "step": torch.tensor(step, dtype=torch.float64), "labels": labels}


class RPML(AuthorityMethod):
    """Reweighted probabilistic unsupervised embedding learning, on the frozen features, full batch (algorithm 1)."""

    card: ClassVar[Card] = Card(
        name="rpml",
        title="RPML",
        paper=PAPER,
        idea=("Images climb a neighbor graph towards denser places; those that reach the same summit share a pseudo-"
              "label. Triplets drawn from the pseudo-labels ask that the negative sees anchor and positive under a "
              "small angle, and a learnt weight lowers the say of doubtful triplets. An orthonormal projection is "
              "optimized by conjugate gradient on the Grassmann manifold."),
        supervision="none",
        promise="gain",
        source="Paper, table 1: above Initial (Random) on every data set.")

    per_anchor: Annotated[int, Field(ge=1, le=100), Shown(step=1, high=50)] = 10
    """Triplets of each anchor in a pass (the paper does not say)."""

    steps: Annotated[int, Field(ge=1, le=1000), Shown(step=1, high=50)] = 10
    """Conjugate-gradient steps in a pass (the paper does not say)."""

    MOST_TRIPLETS: ClassVar[int] = 200_000

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        triplets = min(self.MOST_TRIPLETS, images * self.per_anchor)
        return self.steps * self.dimension * (2e-10 * images * width + 1.5e-8 * triplets)

    def fit(self, data: TrainingData, setting: Setting, start: State | None = None) -> Iterator[Epoch]:
        done, point, step, labels, explained = self._resume(data, setting, start)
        rows = unit(data.features.to(setting.device))
        optimizer = ConjugateGradient(self._space(rows.shape[1]))
        for epoch in range(done + 1, self.epochs + 1):
            triplets = cluster_triplets(labels, self.per_anchor, self.MOST_TRIPLETS, generator(setting.seed, epoch))
            objective = WeightedAngular(rows, triplets.to(setting.device), self.alpha, self.weight)
            progress = optimizer.start(objective, point, step)
            for position in range(self.steps):
                progress = optimizer.step(objective, progress)
                setting.report((position + 1) / self.steps)
            point, step = progress.point, progress.step
            last = objective(point)
            used = triplets_used(triplets, [last.measures()])
            embedder = Embedder(setting.encoder, Head(point[1]))
            yield Epoch(epoch, _curves(last), embedder, (*explained, used), self._state(epoch, point, step, labels))
            explained = ()


class SRPML(AuthorityMethod):
    """Stochastic RPML: conjugate gradient on the projection and SGD on the encoder, batch by batch.

    Per batch, as the authors' code does: ℓ2-normalized features, one random same-cluster positive per anchor and one
    semi-hard negative, five conjugate-gradient steps on (R, L), then one SGD step on the network. With an encoder that
    has nothing to train (raw pixels) only the first part remains, on cached features.
    """

    card: ClassVar[Card] = Card(
        name="srpml",
        title="sRPML",
        paper=PAPER,
        idea=("RPML in small batches, so that the network itself learns. For each batch the projection and the "
              "triplets' weights take a few conjugate-gradient steps, then the encoder takes one step of gradient "
              "descent on the same loss. The pseudo-labels come from the frozen features and stay."),
        supervision="none",
        promise="gain",
        source=("Paper, table 1 (Ours): above Initial (Random) on every data set, from pretrained features. From an "
                "encoder of random weights it may fall (digits, small CNN: MAP@R 22.5 to 19.3), as its pseudo-labels "
                "then mean little."))
    batch: Annotated[int, Field(ge=4, le=2000, multiple_of=2), Shown(step=2, high=400)] = 120
    """Images in a batch, half of them anchors."""

    steps: Annotated[int, Field(ge=1, le=100), Shown(step=1, high=20)] = 5
    """Conjugate-gradient steps for each batch."""

    margin: Annotated[float, Field(gt=0, le=4), Shown(step=0.05, high=2)] = 0.5
    """A negative is semi-hard if its squared distance exceeds the positive's by less than this."""

    learning_rate: Annotated[float, Field(gt=0, le=10), Shown(symbol="η", low=1e-5, high=0.1, logarithmic=True)] = 0.01
    """Step of SGD on the encoder."""

    momentum: Annotated[float, Field(ge=0, lt=1), Shown(step=0.05)] = 0.9
    """Momentum of SGD."""

    weight_decay: Annotated[float, Field(ge=0, le=1), Shown(low=1e-6, high=0.01, logarithmic=True)] = 5e-4
    """Weight decay of SGD."""

    batch_norm: Literal["frozen", "batch"] = "frozen"
    """Whether batch normalization keeps its pretrained statistics or follows the batches; from scratch it must
    follow."""

    def check_encoder(self, encoder: EncoderSpec) -> None:
        check_batch_norm(self, self.batch_norm, encoder)

    @property
    def trains_encoder(self) -> bool:
        return True

    @property
    def learns_from_vectors(self) -> bool:
        return True  # an encoder with nothing to train leaves the steps on the projection

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        batches = 2 * images / self.batch
        return 2 * images * 3 * image_seconds + batches * self.steps * 1e-8 * self.batch * width * self.dimension

    def fit(self, data: TrainingData, setting: Setting, start: State | None = None) -> Iterator[Epoch]:
        done, point, step, labels, explained = self._resume(data, setting, start)
        rates = SGDRates(self.learning_rate, self.momentum, self.weight_decay)
        network = EncoderInTraining(data, setting, rates, self.batch_norm == "batch", start)
        optimizer = ConjugateGradient(self._space(data.features.shape[1]))
        batches = max(1, int((torch.bincount(labels)[labels] > 1).sum()) // max(1, self.batch // 2))
        for epoch in range(done + 1, self.epochs + 1):
            random = generator(setting.seed, epoch)
            curves, seen, measured = [], [], []
            for position, batch in enumerate(pair_batches(labels, self.batch, random)):
                features = network.features(batch)
                rows = features.detach()
                local = semi_hard_triplets((rows @ point[1]).cpu(), labels[batch], self.margin, random)
                if not len(local):
                    continue
                objective = WeightedAngular(rows, local.to(setting.device), self.alpha, self.weight)
                progress = optimizer.start(objective, point, step)
                for _ in range(self.steps):
                    progress = optimizer.step(objective, progress)
                point, step = progress.point, progress.step
                last = objective(point)
                curves.append(_curves(last))
                seen.append(batch[local])
                measured.append(last.measures())
                anchor, positive, negative = (rows_at(features, part) for part in local.to(setting.device).unbind(1))
                loss = weighted_angular_loss(anchor, positive, negative, point[0], point[1], self.alpha, self.weight)
                network.step(loss / len(local))
                setting.report(min(1.0, (position + 1) / batches))
            embedder = Embedder(network.snapshot(), Head(point[1]), trained=network.trains)
            state = self._state(epoch, point, step, labels) | network.state()
            used = (triplets_used(torch.cat(seen), measured),) if seen else ()
            yield Epoch(epoch, mean_curves(curves), embedder, (*explained, *used), state)
            explained = ()


def _curves(last: WeightedAngularEvaluation) -> dict[str, float]:
    """What a person watches: the mean loss, the mean weight (its fall to 0 is the collapse), the violating share."""
    return {"loss": last.value / len(last.argument), "mean weight": float(last.weight.mean()),
            "violating": float((last.argument > 0).float().mean())}
