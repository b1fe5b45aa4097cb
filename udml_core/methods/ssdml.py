"""SSDML: triplets from propagated affinities, a smooth angular loss, an orthonormal metric and the network below it.

U. K. Dutta, M. Harandi, C. Chandra Sekhar, "Semi-Supervised Metric Learning: A Deep Resurrection"; equation numbers are
that paper's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from udml_core.data.training import TrainingData
from udml_core.errors import UserError
from udml_core.explanations import Affinities, Explanation
from udml_core.geometry import ConjugateGradient, Euclidean, Grassmann, Manifold
from udml_core.graph import propagate
from udml_core.losses.angular import Scale, SmoothAngular, SmoothAngularEvaluation, smooth_angular_loss, triplets_used
from udml_core.methods.base import Epoch, Setting, Shown, State, mean_curves
from udml_core.methods.beginning import Beginning, check_projection, first_projection
from udml_core.methods.embedder import Embedder, Head, unit
from udml_core.methods.few import Partitioned, check_neighbors
from udml_core.methods.network import EncoderInTraining
from udml_core.neighbors import nearest
from udml_core.sampling import affinity_triplets, generator


class SSDML(Partitioned):
    """Algorithm 1 with L in place of M: for each batch conjugate gradient on L, then one SGD step on the network."""

    name: ClassVar[str] = "ssdml"
    title: ClassVar[str] = "SSDML"
    idea: ClassVar[str] = (
        "What few labels say spreads along a neighbor graph, as a walk that ends at labeled images. "
        "Each image's neighbors are sorted by the affinity that it found: the upper half are positives, the lower half "
        "negatives. "
        "An orthonormal projection and the network below it learn from these triplets in turn.")
    promise: ClassVar[Literal["gain", "may fall"]] = "may fall"
    promise_source: ClassVar[str] = "Paper, table 1: above Initial on every data set, by the best epoch."

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

    scale: Scale = "mean"
    """Whether a batch's losses are averaged, or summed as eq. 3 prints."""

    steps: Annotated[int, Field(ge=0, le=100), Shown(step=1, high=20)] = 10
    """Conjugate-gradient steps on L for each batch; 0 leaves L as it begins."""

    beginning: Beginning = "random"
    """Where the projection starts: a random subspace, or the principal components."""

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        seen = min(images, self.partition) if self.partition else images
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
        network = self._network(data, setting, start)
        if start is None:
            done, projection, step = 0, self._first_projection(data, setting), 0.0
            triplets = torch.zeros(0, 3, dtype=torch.int64)
        else:
            done, projection, step = int(start["epoch"]), start["projection"].to(setting.device), float(start["step"])
            triplets = start["triplets"]
        optimizer = ConjugateGradient(self._space(setting.encoder.dimension))
        for epoch in range(done + 1, self.epochs + 1):
            explained: tuple[Explanation, ...] = ()
            if self._begins(epoch):
                affinities = self._affinities(network, data, setting, epoch)
                triplets, explained = affinity_triplets(affinities.neighbors, affinities.after,
                                                        affinities.points), (affinities,)
            random = generator(setting.seed, epoch)
            batches = triplets[torch.randperm(len(triplets), generator=random)].split(self.batch)
            seen: list[SmoothAngularEvaluation] = []
            for position, batch in enumerate(batches):
                images, local = torch.unique(batch, return_inverse=True)
                features = network.features(images)
                objective = SmoothAngular(features.detach(), local.to(setting.device), self.alpha, self.scale)
                progress = optimizer.start(objective, (projection,), step)
                for _ in range(self.steps):
                    progress = optimizer.step(objective, progress)
                (projection,), step = progress.point, progress.step
                seen.append(objective((projection,)))
                anchor, positive, negative = (features[part] for part in local.to(setting.device).unbind(1))
                network.step(smooth_angular_loss(anchor, positive, negative, projection, self.alpha, self.scale))
                setting.report((position + 1) / len(batches))
            embedder = Embedder(network.snapshot(), Head(projection), trained=network.trains)
            state = {"epoch": torch.tensor(epoch), "projection": projection, "triplets": triplets,
                     "step": torch.tensor(step, dtype=torch.float64)} | network.state()
            used = triplets_used(torch.cat(batches), seen)
            yield Epoch(epoch, mean_curves([_curves(one) for one in seen]), embedder, (*explained, used), state)

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
