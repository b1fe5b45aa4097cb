"""PLM: piecewise-linear manifolds of nearest-neighbor batches, and proxies with linear neighborhoods of their own.

S. Bhatnagar, N. Ahuja, "Piecewise-Linear Manifolds for Deep Metric Learning"; equation numbers are that paper's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from udml_core.backbones import EncoderSpec
from udml_core.data.augmentation import CROPS
from udml_core.data.training import TrainingData
from udml_core.declaration import Shown
from udml_core.errors import UserError
from udml_core.explanations import Proxies
from udml_core.graph import linear_neighborhoods, linear_neighborhoods_at
from udml_core.losses.piecewise import Kind, piecewise_loss
from udml_core.methods.base import Card, Epoch, Method, Setting, State, mean_curves
from udml_core.methods.embedder import Embedder, unit
from udml_core.methods.shared.projection import (
    Beginning,
    check_batch_norm,
    check_projection,
    check_trainable,
    first_network,
)
from udml_core.methods.shared.training import (
    Network,
    embedded,
    follow_batches,
    load_module,
    load_optimizer,
    module_state,
    optimizer_state,
    random_views,
)
from udml_core.neighbors import nearest
from udml_core.sampling import generator, neighbor_batches


class PLM(Method):
    """Piecewise-linear manifolds: on features of random views, or with the encoder trained end to end."""

    card: ClassVar[Card] = Card(
        name="plm",
        title="PLM",
        paper="S. Bhatnagar, N. Ahuja: Piecewise-Linear Manifolds for Deep Metric Learning.",
        idea=("Around each image its nearest neighbors are fitted by a flat of a few dimensions, and only those that "
              "lie in it are admitted. Two images are alike if one is reached from the other along the flats rather "
              "than across them, and distances are trained to agree. Proxies with flats of their own stand for the "
              "parts of the data that a batch does not see."),
        supervision="none",
        promise="may fall",
        source=("Paper, table 1: gains with the encoder trained. A linear head alone on frozen features starts at PCA"
                " and has little to gain; in trials on birds it stayed within half a point of it."))

    dimension: Annotated[int, Field(ge=1, le=4096), Shown(symbol="l", step=1, high=512)] = 128
    """Width of the embedding."""

    trains: Literal["head", "encoder"] = "head"
    """A linear head on the frozen features of random views, or the encoder with it."""

    epochs: Annotated[int, Field(ge=1, le=1000), Shown(step=1, high=200)] = 20
    """Passes; the nearest-neighbor batches are drawn afresh in each. The paper trains a GoogLeNet for 200."""

    learning_rate: Annotated[float, Field(gt=0, le=1), Shown(symbol="η", low=1e-6, high=0.01, logarithmic=True)] = 1e-4
    """Step of Adam on the network. The paper trains a GoogLeNet with 5e-4."""

    proxy_rate: Annotated[float, Field(ge=0, le=10_000), Shown(step=1, high=100)] = 1.0
    """How many times larger the step on proxies and their directions is. The paper has 100; measured here, all proxies
    then leave the data and meet in one point (see the curve of their mean distance), where they stand for nothing."""

    candidates: Annotated[int, Field(ge=1, le=200), Shown(symbol="k", step=1, high=50)] = 10
    """Nearest embeddings of a batch that may enter a linear neighborhood."""

    flat: Annotated[int, Field(ge=1, le=50), Shown(symbol="m", step=1, high=10)] = 3
    """Dimensions of a linear neighborhood."""

    threshold: Annotated[float, Field(gt=0, le=1), Shown(symbol="T", step=0.01)] = 0.9
    """Least share of every member's squared distance that a linear neighborhood must hold."""

    admission: bool = True
    """Whether candidates that do not fit are refused; without it all are members (ablation 1)."""

    similarity: Kind = "linear"
    """Similarity along and across the flats (eq. 2–5), or 1 for members and 0 for others (ablation 2)."""

    n_alpha: Annotated[float, Field(ge=0, le=100), Shown(symbol="Nα", step=0.1, high=10)] = 4.0
    """How sharply similarity decays across a flat (eq. 3). From 2Nβ on that is sharper than along it, near and far."""

    n_beta: Annotated[float, Field(ge=0, le=100), Shown(symbol="Nβ", step=0.1, high=10)] = 0.5
    """How sharply similarity decays along a flat (eq. 4)."""

    scale: Annotated[float, Field(gt=0, le=2), Shown(symbol="δ", step=0.05)] = 2.0
    """The distance that images without any similarity are pushed to (eq. 6)."""

    proxies: Annotated[int, Field(ge=0, le=5000), Shown(symbol="Nρ", step=10, high=500)] = 100
    """Proxies that stand for what a batch does not see."""

    similarity_gradient: bool = False
    """Whether proxies also learn through their similarities, which the paper leaves open."""

    momentum: Annotated[float, Field(ge=0, lt=1), Shown(symbol="γ", step=0.001)] = 0.999
    """How slowly the momentum encoder, which the neighborhoods come from, follows (eq. 1)."""

    batch: Annotated[int, Field(ge=4, le=2000), Shown(step=1, high=400)] = 100
    """Images in a batch; each is seen in two random views."""

    group: Annotated[int, Field(ge=2, le=100), Shown(step=1, high=20)] = 5
    """A batch is made of seeds, each with its nearest images: so many in all."""

    views: Annotated[int, Field(ge=2, le=64), Shown(step=1, high=16)] = 4
    """Random views of each image whose frozen features are kept, where only the head trains."""

    beginning: Beginning = "pca"
    """Where the projection starts: the principal components, or a random subspace."""

    batch_norm: Literal["frozen", "batch"] = "batch"
    """Whether batch normalization keeps its pretrained statistics or follows the batches, where the encoder trains.
    Measured on birds at 64 pixels: with frozen ones recall@1 falls from 48 to 28 within five epochs, as the weights
    move away from them."""

    def check_encoder(self, encoder: EncoderSpec) -> None:
        if self.trains_encoder:
            check_trainable(encoder)
        check_batch_norm(self, self.batch_norm, encoder)

    @property
    def trains_encoder(self) -> bool:
        return self.trains == "encoder"

    @property
    def views_needed(self) -> int:
        return self.views if self.trains == "head" else 0

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        batches = images / self.batch
        step = 0.02 + 1e-8 * self.batch * width * self.dimension / 100 + 1e-4 * self.proxies
        return batches * step + (7 * images * image_seconds if self.trains_encoder else 0)

    def check(self, images: int, width: int | None) -> None:
        check_projection("PLM", self.dimension, self.beginning, images, width)
        if not self.flat <= self.candidates:
            raise UserError(f"PLM.flat must be at most the number of candidates {self.candidates}, got {self.flat}. "
                            "Raise the field 'candidates' or lower 'flat'.")
        if self.flat > self.dimension:
            raise UserError(f"PLM.flat must be at most the embedding's dimension {self.dimension}, got {self.flat}. "
                            "Lower the field 'flat'.")
        least = max(self.candidates // 2 + 1, self.group)
        if min(images, self.batch) < least:
            raise UserError(f"PLM needs at least {least} training images in a batch for {self.candidates} candidates "
                            f"and groups of {self.group}, got {min(images, self.batch)}. Raise the field 'batch', or "
                            "lower 'candidates' or 'group'.")

    def initial(self, data: TrainingData, setting: Setting) -> Embedder:
        return self._network(data, setting).embedder(setting.encoder)

    def fit(self, data: TrainingData, setting: Setting, start: State | None = None) -> Iterator[Epoch]:
        student = self._network(data, setting)
        teacher = student.momentum_copy()
        model = _Proxies(*self._first_proxies(embedded(student, data, setting.device), setting.seed)).to(setting.device)
        groups: list[dict[str, Any]] = [{"params": [*student.parameters()]}, {
            "params": [*model.parameters()], "lr": self.learning_rate * self.proxy_rate}]
        adam = torch.optim.Adam(groups, lr=self.learning_rate)
        named = [*((f"student.{name}", one) for name, one in student.named_parameters()), *model.named_parameters()]
        done = 0
        if start is not None:
            done = int(start["epoch"])
            for name, module in (("student", student), ("teacher", teacher), ("proxies", model)):
                load_module(name, module, start)
            load_optimizer(adam, named, start)
        for epoch in range(done + 1, self.epochs + 1):
            random = generator(setting.seed, epoch)
            points = embedded(student, data, setting.device)
            neighbors = torch.from_numpy(nearest(points.cpu().numpy(), self.group - 1)[1])
            follow_batches(student, self.batch_norm == "batch")
            batches = list(neighbor_batches(neighbors, min(self.batch, len(data)), random))
            seen = []
            for position, batch in enumerate(batches):
                seen.append(self._step(self._views(data, batch, setting, random), student, teacher, model, adam))
                setting.report((position + 1) / len(batches))
            student.eval()
            state = {"epoch": torch.tensor(epoch)} | optimizer_state(adam, named)
            for name, module in (("student", student), ("teacher", teacher), ("proxies", model)):
                state |= module_state(name, module)
            yield Epoch(epoch, mean_curves(seen) | model.spread(), student.embedder(setting.encoder),
                        model.explained(), state)

    def _step(self, given: Tensor, student: Network, teacher: Network, model: _Proxies,
              adam: torch.optim.Optimizer) -> dict[str, float]:
        """One batch of images, both views of each below each other (section 3.6.4)."""
        with torch.no_grad():
            steady = teacher(given)
        hoods = linear_neighborhoods(steady, self.candidates, self.flat, self.threshold, self.admission)
        loss = piecewise_loss(student(given), steady, hoods, model.places, model.directions, n_alpha=self.n_alpha,
                              n_beta=self.n_beta, scale=self.scale, kind=self.similarity,
                              similarity_gradient=self.similarity_gradient)
        adam.zero_grad(set_to_none=True)
        loss.total.backward()
        adam.step()
        model.straighten()
        teacher.follow(student, self.momentum)
        return {"loss": loss.total.item(), "point loss": loss.point.item(), "proxy loss": loss.proxy.item(),
                "neighborhood loss": loss.neighborhood.item(), "admitted": hoods.members.float().mean().item()}

    def _network(self, data: TrainingData, setting: Setting) -> Network:
        return first_network(self, data, setting, self.dimension, self.beginning)

    def _first_proxies(self, points: Tensor, seed: int) -> tuple[Tensor, Tensor]:
        """Random training embeddings (c, l), none twice while there are enough, and the plain local PCA at each
        (c, l, m)."""
        rounds = -(-self.proxies // len(points))
        random = generator(seed, 0)
        drawn = [torch.randperm(len(points), generator=random) for _ in range(rounds)]
        chosen = torch.cat([*drawn, torch.zeros(0, dtype=torch.int64)])[:self.proxies]
        places = points[chosen]
        if not self.proxies:
            return places, points.new_zeros(0, points.shape[1], self.flat)
        array = points.cpu().numpy()
        found = nearest(array, min(self.candidates, len(points)), array[chosen.numpy()])[1]
        near = torch.from_numpy(found).to(points.device)
        return places, linear_neighborhoods_at(places, points, near, self.flat, admission=False).basis

    def _views(self, data: TrainingData, batch: Tensor, setting: Setting, random: torch.Generator) -> Tensor:
        """Two random views of every image, the second ones below the first: images, or features of kept views."""
        read = data.images(batch) if self.trains_encoder else data.view_features(batch)
        return random_views(read.to(setting.device), 2, random, CROPS if self.trains_encoder else None)


class _Proxies(nn.Module):
    """ρ (c, l) of any length, and Ψ (c, l, m) with orthonormal columns."""

    def __init__(self, places: Tensor, directions: Tensor) -> None:
        super().__init__()
        self.places = nn.Parameter(places.clone())
        self.directions = nn.Parameter(directions.clone())

    def straighten(self) -> None:
        """Make Ψ orthonormal again; R's diagonal is kept positive, so that no column turns round under its moment."""
        if not len(self.directions):
            return
        with torch.no_grad():
            q, r = torch.linalg.qr(self.directions)
            self.directions.copy_(q * torch.where(r.diagonal(dim1=1, dim2=2) < 0, -1.0, 1.0)[:, None])

    def spread(self) -> dict[str, float]:
        """How far apart two proxies are on average: near 0, all stand for the same, or for nothing."""
        if len(self.places) < 2:
            return {}
        return {"proxy spread": torch.pdist(unit(self.places.detach())).mean().item()}

    def explained(self) -> tuple[Proxies, ...]:
        if not len(self.places):
            return ()
        return (Proxies(unit(self.places.detach()).clone(), self.directions.detach().clone()),)
