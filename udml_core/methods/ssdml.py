"""SSDML: triplets from propagated affinities, a smooth angular loss, an orthonormal metric and the network below it.

U. K. Dutta, M. Harandi, C. Chandra Sekhar, "Semi-Supervised Metric Learning: A Deep Resurrection"; equation numbers are
that paper's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from udml_core.data.training import TrainingData
from udml_core.declaration import Shown
from udml_core.errors import UserError
from udml_core.explanations import Affinities, Explanation
from udml_core.geometry import ConjugateGradient, Euclidean, Grassmann, Manifold
from udml_core.graph import propagate
from udml_core.losses.angular import Scale, SmoothAngular, SmoothAngularEvaluation, smooth_angular_loss, triplets_used
from udml_core.methods.base import Card, Epoch, Setting, State, mean_curves
from udml_core.methods.embedder import Embedder, Head, unit
from udml_core.methods.shared.few_labels import Partitioned, check_neighbors, pretrained
from udml_core.methods.shared.projection import Beginning, check_projection, first_projection
from udml_core.methods.shared.training import EncoderInTraining, SGDRates, rows_at
from udml_core.neighbors import nearest
from udml_core.sampling import affinity_triplets, generator


class SSDML(Partitioned):
    """Algorithm 1 with L in place of M: for each batch conjugate gradient on L, then one SGD step on the network.

    On frozen features there is no network, and only L learns.

    The collapse. The loss asks for z = δ²(a,p) − 4tan²α·δ²(n,m) ≪ 0, and softplus(z) is not scale invariant, as the
    paper calls it: an equilateral triplet, which says nothing, loses less the larger it is once α > 30°, and neighbors
    of one image are nearly equilateral to it. So everything flees from everything, true neighbors too, of which the
    negatives are hardly fewer than the positives (on Fashion-MNIST with the untrained LeNet 73 % and 75 % are of the
    anchor's class). On the unit sphere that ends in an even spread: the effective rank *rises*, recall gains a little
    as the common mean of all embeddings goes, then neighborhoods dissolve. Measured there with 100 labels, α=40°,
    100 triplets a batch and l=64 (one seed; 2,500 test images and 10 steps on L above the line, 2,000 and 4 below):

    ======================  ====  =====  ====  ===========  =======  =========
    rate × batches           R@1  MAP@R   NMI  mean of z    δ²(a,p)  eff. rank
    ======================  ====  =====  ====  ===========  =======  =========
    0                       73.2   30.0  51.8          .92     .016       43.5
    1e-3 × 75               73.5   20.5  34.2          .16     .16        56.7
    1e-3 × 150              62.5    6.9   8.0          .14     .46        60.3
    1e-3 × 150, L fixed     71.8   16.6  27.3          .16     .47        56.8
    ----------------------  ----  -----  ----  -----------  -------  ---------
    0                       72.0   29.9  50.5          .92     .016       43.4
    3e-4 × 50               72.7   30.4  50.5          .87     .025       42.4
    3e-4 × 150              74.0   27.7  47.0          .15     .04        52.2
    1e-3 × 150, α=30°       71.2   19.6  33.6          .13     .04        56.8
    1e-3 × 150, relative    71.9   26.5  49.1          .91     .007       48.6
    ======================  ====  =====  ====  ===========  =======  =========

    What counts is the product of rate and batches: the paper's 1e-4 is at 1e-3 × 75 in the second of its epochs of 450
    batches, and at 1e-3 × 150 in the fourth. Conjugate gradient on L, which each batch bends its own way, speeds it up
    and does not cause it. The norm of Lᵀz does not matter (.71 at first, .76 at last). The sum in place of the mean is
    a rate a hundred times as large. On the whole of Fashion-MNIST at 2e-5 (three seeds, the record fashion-mnist-ssdml)
    MAP@R of held-out images is 30 after three epochs, where it began, while recall@1 gains three points; it is 28 after
    the fourth and 23 after the fifth. Hence the defaults: the mean, and a twentieth of the printed rate, of which ten
    epochs come as far as two and a half of these. With learning_rate=1e-4 or scale="sum" the collapse can be watched;
    choosing the epoch by validation is part of the method.
    """

    card: ClassVar[Card] = Card(
        name="ssdml",
        title="SSDML",
        paper="U. K. Dutta, M. Harandi, C. Chandra Sekhar: Semi-Supervised Metric Learning: A Deep Resurrection.",
        idea=("What few labels say spreads along a neighbor graph, as a walk that ends at labeled images. Each "
              "image's neighbors are sorted by the affinity that it found: the upper half are positives, the lower "
              "half negatives. An orthonormal projection and the network below it learn from these triplets in turn."),
        supervision="few",
        promise="may fall",
        source="Paper, table 1: above Initial on every data set, by the best epoch.")

    dimension: Annotated[int, Field(ge=1, le=4096), Shown(symbol="l", step=1, high=512)] = 64
    """Width of the embedding."""

    n_neighbors: Annotated[int, Field(ge=2, le=500, multiple_of=2), Shown(symbol="k", step=2, high=100)] = 10
    """Neighbors of each image in the graph, half of them positives; even."""

    gamma: Annotated[float, Field(gt=0, lt=1), Shown(symbol="γ", step=0.01)] = 0.99
    """How far labels reach: a walk goes on with this probability at each step."""

    alpha: Annotated[float, Field(gt=0, lt=90), Shown(symbol="α", unit="°", step=1)] = 40.0
    """Upper bound on the angle at the negative (eq. 3)."""

    orthogonal: bool = True
    """Whether LᵀL = I (the paper's table 4 is without)."""

    learning_rate: Annotated[float, Field(gt=0, le=10), Shown(symbol="η", low=1e-6, high=0.1, logarithmic=True)] = 5e-6
    """Step of SGD on the encoder. The paper's is 1e-4, which within a few epochs ends in an even spread."""

    scale: Scale = "mean"
    """Whether a batch's losses are averaged, summed as eq. 3 prints, or relative to the batch's distances, so that
    nothing is won by growing."""

    steps: Annotated[int, Field(ge=0, le=100), Shown(step=1, high=20)] = 10
    """Conjugate-gradient steps on L for each batch; 0 leaves L as it begins."""

    pretraining: Annotated[int, Field(ge=0, le=1000), Shown(step=1, high=100)] = 0
    """Passes over the labeled images before the first, as a classifier; the paper takes 30 on CIFAR-10."""

    pretraining_rate: Annotated[float, Field(gt=0, le=10), Shown(low=1e-4, high=1, logarithmic=True)] = 0.05
    """Step of SGD in these (the paper does not say)."""

    beginning: Beginning = "random"
    """Where the projection starts: a random subspace, or the principal components."""

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        seen = self._partitioned(images)
        batches = seen * self.n_neighbors / 2 / self.batch
        metric = self.steps * (1e-3 + 1e-8 * self.batch * width * self.dimension)
        network = 9 * self.batch * image_seconds if self.trains_encoder else 0.0
        return 1e-9 * seen**2 + batches * (metric + network)

    def check(self, images: int, width: int | None) -> None:
        check_projection("SSDML", self.dimension, self.beginning, images, width)
        check_neighbors("SSDML", self.n_neighbors, images)
        if not self.trains_encoder and not self.steps:
            raise UserError("SSDML with steps=0 on frozen features learns nothing. Raise the field 'steps', or set "
                            "'trains' to 'encoder'.")

    def initial(self, data: TrainingData, setting: Setting) -> Embedder:
        return Embedder(setting.encoder, Head(self._first_projection(data, setting)))

    def fit(self, data: TrainingData, setting: Setting, start: State | None = None) -> Iterator[Epoch]:
        if self.pretraining and self.trains_encoder and start is None:
            rates = SGDRates(self.pretraining_rate, self.momentum, self.weight_decay)
            setting = pretrained(data, setting, self.pretraining, rates, self.batch, self.batch_norm == "batch")
        network = self._network(data, setting, start)
        if start is None:
            done, projection, step = 0, self._first_projection(data, setting), 0.0
            triplets = torch.zeros(0, 3, dtype=torch.int64)
        else:
            done, projection, step = int(start["epoch"]), start["projection"].to(setting.device), float(start["step"])
            triplets = start["triplets"]
        optimizer = ConjugateGradient(self._space(data.features.shape[1]))
        for epoch in range(done + 1, self.epochs + 1):
            explained: tuple[Explanation, ...] = ()
            if self._begins(epoch):
                affinities = self._affinities(network, data, setting, epoch)
                triplets, explained = affinity_triplets(affinities.neighbors, affinities.after,
                                                        affinities.points), (affinities,)
            random = generator(setting.seed, epoch)
            batches = triplets[torch.randperm(len(triplets), generator=random)].split(self.batch)
            curves, measured = [], []
            for position, batch in enumerate(batches):
                projection, step, last = self._learn(network, batch, optimizer, projection, step)
                curves.append(_curves(last))
                measured.append(last.measures())
                setting.report((position + 1) / len(batches))
            embedder = Embedder(network.snapshot(), Head(projection), trained=network.trains)
            state = {"epoch": torch.tensor(epoch), "projection": projection, "triplets": triplets,
                     "step": torch.tensor(step, dtype=torch.float64)} | network.state()
            used = triplets_used(torch.cat(batches), measured)
            yield Epoch(epoch, mean_curves(curves), embedder, (*explained, used), state)

    def _learn(self, network: EncoderInTraining, batch: Tensor, optimizer: ConjugateGradient, projection: Tensor,
               step: float) -> tuple[Tensor, float, SmoothAngularEvaluation]:
        """One batch of triplets: L with the network fixed, then the network with L fixed."""
        images, local = torch.unique(batch, return_inverse=True)
        features = network.features(images)
        rows = local.to(features.device)
        objective = SmoothAngular(features.detach(), rows, self.alpha, self.scale)
        progress = optimizer.start(objective, (projection,), step)
        for _ in range(self.steps):
            progress = optimizer.step(objective, progress)
        (projection,) = progress.point
        anchor, positive, negative = (rows_at(features, part) for part in rows.unbind(1))
        network.step(smooth_angular_loss(anchor, positive, negative, projection, self.alpha, self.scale))
        return projection, progress.step, objective((projection,))

    def _first_projection(self, data: TrainingData, setting: Setting) -> Tensor:
        rows = unit(data.features)
        self.check(*rows.shape)
        return first_projection(rows, self.dimension, self.beginning, setting.seed).to(setting.device)

    def _space(self, width: int) -> Manifold:
        """J does not change under L → LB with orthogonal B, so orthonormal L are searched by subspace."""
        return Grassmann(width, self.dimension) if self.orthogonal else Euclidean(width, self.dimension)

    def _affinities(self, network: EncoderInTraining, data: TrainingData, setting: Setting, epoch: int) -> Affinities:
        """The partition's graph on the unit features below L as they are now, and what labels say about it."""
        points = self._drawn(data.labels, setting, epoch)
        labels = data.labels[points]
        near = nearest(network.embedded(points).cpu().numpy(), min(self.n_neighbors, len(points) - 1))[1]
        found = propagate(near, labels.numpy(), self.gamma)
        before, after, reach = (torch.from_numpy(part).float() for part in (found.before, found.after, found.reach))
        return Affinities(points, points[torch.from_numpy(near)], before, after, labels, reach,
                          torch.from_numpy(found.classes))


def _curves(last: SmoothAngularEvaluation) -> dict[str, float]:
    """What a person watches: the mean loss, the violating share, and how far positives and negatives are apart: both
    grow while everything flees from everything."""
    return {"loss": float(last.loss.mean()), "violating": float((last.argument > 0).float().mean()),
            "positive distance": float(last.near.square().sum(1).mean()),
            "negative distance": float(last.far.square().sum(1).mean())}
