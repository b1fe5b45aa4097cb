"""RPML and sRPML: learning from pseudo-labels by authority ascent.

Both optimize weighted angular triplets by Riemannian conjugate gradient.

U. K. Dutta, M. Harandi, C. Chandra Sekhar, "A Probabilistic Approach for Learning Embeddings without Supervision";
equation numbers are that paper's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from udml_core.base.declaration import Shown
from udml_core.data.encoders import EncoderSpec
from udml_core.data.training_data import TrainingData
from udml_core.methods.base import Card, Epoch, Setting, State
from udml_core.methods.fields import BatchNorm, Dampening, KeptViews, LearningRate, Momentum, Trains, WeightDecay
from udml_core.methods.shared.authority_method import AuthorityLoop, AuthorityMethod
from udml_core.methods.shared.distributed import agree
from udml_core.methods.shared.epoch_loop import StepCurves
from udml_core.methods.shared.training import rows_at
from udml_core.numerics.losses.angular import (
    WeightedAngular,
    WeightedAngularEvaluation,
    angular_argument,
    triplets_used,
    weighted_angular_loss,
)
from udml_core.numerics.sampling import cluster_triplets, pair_batches, semi_hard_triplets

RPML_PAPER = ("U. K. Dutta, M. Harandi, C. Chandra Sekhar: A Probabilistic Approach for Learning Embeddings "
         "without Supervision.")


class RPML(AuthorityMethod):
    """Reweighted probabilistic unsupervised embedding learning (algorithm 1).

    It works on frozen features, full batch.

    J = Σ softplus(w·softplus(z)) with z = δ²(a,p) − 4tan²α·δ²(n,m), m = (a+p)/2 and LᵀL = I (eq. 7–12).

    At α = 45° hardly any triplet of unit features violates the bound. The loss then falls mainly through larger
    distances, and L approaches the principal components; `experiments/rpml_regimes.py` measures this.

    Departure from the paper: the weight is RPMLv1's (eq. 25) by default, because eq. 10 has a degenerate optimum at
    w = 0.
    """

    MOST_TRIPLETS: ClassVar[int] = 200_000
    CANDIDATES: ClassVar[int] = 10
    """Random triplets from which mining prefers violating triplets, per triplet of an epoch."""
    MINED_AT_ONCE: ClassVar[int] = 4_000
    """Candidates that are tested together, few enough to stay in the processor's cache."""

    card: ClassVar[Card] = Card(
        name="rpml",
        order=10,
        title="RPML",
        paper=RPML_PAPER,
        summary=("Groups images that gather in the same dense region, then changes the distances so that each group "
                 "moves together and away from others, with less weight on doubtful cases. It needs no labels, and "
                 "helps if the features already place similar images near each other."),
        idea=("Each image moves along a neighbor graph toward denser regions, and images that reach the same mode "
              "share a pseudo-label. Triplets drawn from the pseudo-labels require a small angle at the negative, and "
              "a learned weight down-weights doubtful triplets. Conjugate gradient on the Grassmann manifold optimizes "
              "an orthonormal projection."),
        supervision="none",
        promise="gain",
        source="Paper, table 1: above Initial (Random) on every data set.")

    main_fields: ClassVar[tuple[str, ...]] = ("alpha", "epsilon", "n_neighbors", "dimension", "beginning", "epochs")

    per_anchor: Annotated[int, Field(ge=1, le=100), Shown(step=1, high=50, label="Triplets per anchor")] = 10
    """Triplets drawn for each anchor in each epoch. The paper gives no value."""

    steps: Annotated[int, Field(ge=1, le=1000), Shown(step=1, high=50, label="Conjugate-gradient steps")] = 10
    """Conjugate-gradient steps in each epoch. The paper gives no value."""

    mining: Annotated[Literal["random", "violating"], Shown(label="Mining")] = "random"
    """Triplets of an epoch: random triplets, or triplets beyond the bound when the epoch begins. If too few random
    candidates violate it, satisfied candidates fill up to the same number of triplets."""

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        triplets = min(self.MOST_TRIPLETS, images * self.per_anchor)
        mined = self.CANDIDATES * triplets if self.mining == "violating" else 0
        return self.dimension * (self.steps * (2e-10 * images * width + 1.5e-8 * triplets) + 1e-8 * mined)

    def fit(self, data: TrainingData, setting: Setting, start: State | None = None) -> Iterator[Epoch]:
        yield from _RPMLLoop(self, data, setting, start).run()

    def _triplets(self, projected: Tensor, labels: Tensor, random: torch.Generator) -> Tensor:
        """Draw the triplets (t, 3) of an epoch.

        Args:
            projected: Unit features after the projection (n, l).
            labels: The pseudo-labels (n,).
            random: The generator.
        """
        if self.mining == "random":
            return cluster_triplets(labels, self.per_anchor, self.MOST_TRIPLETS, random)
        most = self.CANDIDATES * self.MOST_TRIPLETS
        candidates = cluster_triplets(labels, self.CANDIDATES * self.per_anchor, most, random)
        violates = self._violates(projected.cpu(), candidates)
        # Candidates are sorted by anchor. In random order the violating candidates come first, then the others.
        order = torch.randperm(len(candidates), generator=random)
        order = torch.cat([order[violates[order]], order[~violates[order]]])
        chosen = order[: len(candidates) // self.CANDIDATES]  # as many as random mining would draw
        return candidates[chosen.sort().values]

    def _violates(self, points: Tensor, triplets: Tensor) -> Tensor:
        """Return which triplets (t, 3) of points (n, l) violate the bound, (t,) bool."""
        violates = []
        for some in triplets.split(self.MINED_AT_ONCE):
            anchor, positive, negative = (points[part] for part in some.unbind(1))
            violates.append(angular_argument(anchor, positive, negative, self.alpha) > 0)
        return torch.cat(violates)


class SRPML(AuthorityMethod):
    """Stochastic RPML, batch by batch.

    Conjugate gradient trains the projection and SGD the encoder.

    As in the authors' code, images are cropped and flipped at random, batches are shuffled, and each anchor has one
    random positive of its cluster and one semi-hard negative by the distance of the features. With SGD's dampening of
    0.9, the velocity is a mean of recent gradients; without dampening it would be ten times as large. With an encoder
    that has nothing to train (raw pixels), only the projection learns, on cached features of whole images.
    """

    card: ClassVar[Card] = Card(
        name="srpml",
        order=20,
        title="sRPML",
        paper=RPML_PAPER,
        summary=("Works like RPML, but on small batches of images, so that the network itself can be trained too. It "
                 "needs no labels but pretrained features that already place similar images near each other, and "
                 "helps with more images than RPML can take at once."),
        idea=("This is RPML in small batches, so that the network itself can learn. In each batch the projection and "
              "the weight of the triplets take a few conjugate-gradient steps, and then the encoder takes one step of "
              "gradient descent on the same loss. The pseudo-labels come from the frozen features and stay the same."),
        supervision="none",
        promise="gain",
        source=("Paper, table 1 (Ours): above Initial (Random) on every data set, with pretrained features. From an "
                "encoder with random weights it may fall; see the record 'Training the whole "
                "encoder on birds' on the page Results."))

    shares_batches: ClassVar[bool] = True
    main_fields: ClassVar[tuple[str, ...]] = ("alpha", "epsilon", "n_neighbors", "dimension", "trains", "epochs")

    trains: Trains = "all"
    """Train the encoder's last blocks or all layers beside the projection, or only the projection on the frozen
    features."""

    batch: Annotated[int, Field(ge=4, le=2000, multiple_of=2), Shown(step=2, high=400, label="Batch size")] = 120
    """Even number of images in a batch; half of them are anchors."""

    steps: Annotated[int, Field(ge=1, le=100), Shown(step=1, high=20, label="Conjugate-gradient steps")] = 5
    """Conjugate-gradient steps on the projection and the weight in each batch."""

    margin: Annotated[float, Field(gt=0, le=4), Shown(step=0.05, high=2, label="Semi-hard margin")] = 0.5
    """A negative is semi-hard if its distance exceeds the positive's by less than this."""

    mining_space: Annotated[Literal["features", "projection"], Shown(label="Mining space")] = "features"
    """Distances for semi-hard negatives: plain distances of the unit features as in the authors' code, or squared
    distances after the projection."""

    crops: Annotated[bool, Shown(label="Random crops and flips")] = True
    """Train the encoder on a random crop of each image, flipped with probability 1/2."""

    kept_views: KeptViews = 6
    """Views of each image, the whole image among them, whose activations are cached if the last blocks are trained on
    random crops."""

    learning_rate: LearningRate = 0.01
    momentum: Momentum = 0.9

    dampening: Dampening = 0.9
    """Share of each gradient that SGD's momentum leaves out. The authors' code has 0.9."""

    weight_decay: WeightDecay = 5e-4
    batch_norm: BatchNorm = "frozen"

    @property
    def cached_views(self) -> int:
        return self.kept_views if self.crops and self.trains_encoder else 0

    def check_encoder(self, encoder: EncoderSpec) -> None:
        if encoder.trainable:  # otherwise only the projection learns
            super().check_encoder(encoder)

    @property
    def learns_from_vectors(self) -> bool:
        return True  # without a trainable encoder the steps on the projection remain

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        batches = 2 * images / self.batch
        network = 2 * images * 3 * image_seconds if self.trains_encoder else 0.0
        return network + batches * self.steps * 1e-9 * self.batch * width * self.dimension

    def fit(self, data: TrainingData, setting: Setting, start: State | None = None) -> Iterator[Epoch]:
        yield from _SRPMLLoop(self, data, setting, start).run()

    def _mining_distances(self, features: Tensor, projection: Tensor) -> Tensor:
        """Return the distances (b, b) by which negatives are semi-hard, of unit features (b, d) and L (d, l)."""
        if self.mining_space == "features":
            return torch.cdist(features, features)
        return torch.cdist(features @ projection, features @ projection).square()


class _RPMLLoop(AuthorityLoop[RPML]):
    """One search in each epoch, on triplets of all images."""

    def _steps(self, epoch: int, random: torch.Generator) -> Iterator[StepCurves]:
        method, search = self.method, self.search
        rows = self.network.features(torch.arange(len(self.data)))
        triplets = method._triplets(rows @ search.point[1], self.labels, random)
        function = WeightedAngular(rows, triplets.to(rows.device), method.alpha, method.weight)
        search.minimize(function, method.steps, self.setting.report)
        last = function(search.point)
        self.explained.append(triplets_used(triplets, [last.measures()]))
        yield _curves(last)


class _SRPMLLoop(AuthorityLoop[SRPML]):
    """One search in each batch, and then a step of the network."""

    def _steps(self, epoch: int, random: torch.Generator) -> Iterator[StepCurves]:
        method, labels = self.method, self.labels
        batches = max(1, int((torch.bincount(labels)[labels] > 1).sum()) // max(1, method.batch // 2))
        mined, measures = [], []
        for position, batch in enumerate(pair_batches(labels, method.batch, random), 1):
            features = self.network.features(batch, random if method.crops else None)
            distances = method._mining_distances(features.detach(), self.search.point[1]).cpu()
            agree([distances])
            triplets = semi_hard_triplets(distances, labels[batch], method.margin, random)
            if not len(triplets):
                continue
            last = self._learn(features, triplets.to(features.device))
            mined.append(batch[triplets])
            measures.append(last.measures())
            yield _curves(last)
            self.setting.report(min(1.0, position / batches))
        if mined:
            self.explained.append(triplets_used(torch.cat(mined), measures))

    def _learn(self, features: Tensor, triplets: Tensor) -> WeightedAngularEvaluation:
        """Learn from a batch: first the weight's parameter and L, then the network.

        Args:
            features: Unit features (b, d) of the batch, with a gradient to the encoder.
            triplets: Triplets (t, 3) as rows of the features.
        """
        method, search = self.method, self.search
        # `detach` fixes the network during the conjugate-gradient steps.
        function = WeightedAngular(features.detach(), triplets, method.alpha, method.weight)
        search.minimize(function, method.steps)
        last = function(search.point)
        # Then the parameter and L are constants, and the same loss trains the network by one step of SGD.
        parameter, projection = search.point
        anchor, positive, negative = (rows_at(features, part) for part in triplets.unbind(1))
        loss = weighted_angular_loss(anchor, positive, negative, parameter, projection, method.alpha, method.weight)
        self.network.step(loss / len(triplets))
        return last


def _curves(last: WeightedAngularEvaluation) -> dict[str, float]:
    """Return the mean loss, the mean weight and the share of violating triplets.

    If the mean weight falls to 0, the loss has collapsed.
    """
    return {"loss": last.value / len(last.argument), "mean weight": float(last.weight.mean()),
            "violating": float((last.argument > 0).float().mean())}
