"""PSLR: an image is told from the others in a latent space, whose noise is learnt with it.

M. Ye, J. Shen, "Probabilistic Structural Latent Representation for Unsupervised Embedding"; equation numbers are that
paper's. Departures: the softmax's form (see `losses.instance`); log σ starts at −3 everywhere; the neighbor graph, of
which the paper only says that it uses another method's, joins mutual nearest neighbors within each of the two views, as
an edge between an image's own views would make them equal in Z; what is embedded, and the σ that is shown, is an
image's alone, without them. Views of photographs are crops of at least .16 of the area, resized and flipped (PLM's),
where the paper reads images at 256 pixels and crops 227 of them at random.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from udml_core.data.training import TrainingData
from udml_core.declaration import Shown
from udml_core.errors import UserError
from udml_core.explanations import LatentLayer, Uncertainty
from udml_core.losses.instance_discrimination import (
    Form,
    divergence,
    instance_loss,
    latent,
    mixed,
    normalized_graph,
    reconstruction_loss,
    structure_loss,
)
from udml_core.methods.base import Card, Setting
from udml_core.methods.embedder import AnyHead, Embedder, LatentHead, Representation
from udml_core.methods.shared.distributed import agree
from udml_core.methods.shared.instance import Curves, InstanceMethod, Objective, alignment
from udml_core.methods.shared.training import Network, embedded
from udml_core.neighbors import nearest
from udml_core.sampling import generator, neighbor_batches

FIRST_LOG_SIGMA = -3.0


class PSLR(InstanceMethod):
    """Adaptable softmax on a graph latent representation, with variational reconstruction and structure."""

    card: ClassVar[Card] = Card(
        name="pslr",
        title="PSLR",
        paper="M. Ye, J. Shen: Probabilistic Structural Latent Representation for Unsupervised Embedding.",
        idea=("Two random views of an image are to be told as one among a batch, in a latent space behind the "
              "embedding, so that the embedding itself does not have to tell everything apart. From the latent point,"
              " blurred by a noise that is learnt for every image, the embedding must be rebuilt. How much noise an "
              "image bears tells how certain its place is."),
        supervision="none",
        promise="may fall",
        source=("Paper, tables 3–5: gains with the encoder trained. A linear head alone on frozen features starts at "
                "PCA and has little to gain."))

    temperature: Annotated[float, Field(gt=0, le=10), Shown(symbol="τ", low=0.02, high=1, logarithmic=True)] = 0.1
    """What similarities are divided by in the softmax."""

    eta: Annotated[float, Field(ge=1, le=10_000), Shown(symbol="η", low=1, high=100, logarithmic=True)] = 1.0
    """How many times the other images count (eq. 3–5). The paper has 1 of pretrained encoders, 100 on CIFAR-10."""

    form: Form = "both"
    """The softmax over both views in both directions, or from second views to first ones alone, as printed."""

    one_sided: bool = False
    """Whether an image learns only as the one that is compared, not as what others are compared with."""

    latent: bool = True
    """Whether the softmax compares latent representations z behind a graph layer (eq. 2), or the instance features."""

    graph: Literal["itself", "neighbors"] = "itself"
    """What the graph layer mixes an image with: nothing (A = I), or its mutual nearest neighbors in the batch, which
    then are no negatives of it; batches are made of neighbors."""

    n_neighbors: Annotated[int, Field(ge=1, le=100), Shown(symbol="k", step=1, high=20)] = 4
    """Nearest images that may be neighbors, where the graph has any; found anew in every epoch."""

    reconstruction: bool = True
    """Whether instance features are rebuilt from noisy latent ones (eq. 7)."""

    fixed_target: bool = False
    """Whether the features that are to be rebuilt get no gradient from that."""

    structure: bool = True
    """Whether noisy latent representations are to be alike where the graph has an edge (eq. 11)."""

    structure_edges: Literal["graph", "views"] = "graph"
    """The graph's edges, which with A = I join each row with itself alone, or also those between an image's views."""

    divergence: bool = True
    """Whether the noise is drawn towards that of a standard normal distribution (eq. 12)."""

    weight: Annotated[float, Field(ge=0, le=100), Shown(symbol="λ", step=0.01, high=1)] = 0.1
    """Weight of structure and divergence (eq. 13). z has length 1 and so the divergence draws every σ towards 1, where
    noise drowns z: watch the curve of log σ, and lower the weight or leave the divergence out where it rises."""

    embeds: Representation = "instance"
    """What the embedding is: x, as in the paper, or z. The evaluation of x shows z beside it."""

    def check(self, images: int, width: int | None) -> None:
        super().check(images, width)
        if self.graph == "neighbors" and self.n_neighbors >= min(images, self.batch):
            raise UserError(f"PSLR.n_neighbors must be below the images in a batch, {min(images, self.batch)}, got "
                            f"{self.n_neighbors}. Lower the field 'n_neighbors', or raise 'batch'.")
        if self.embeds == "latent" and not self.latent:
            raise UserError("PSLR.embeds must be 'instance' where there is no latent representation, got 'latent' with "
                            "latent=false. Set the field 'latent' to true, or leave 'embeds' out.")

    def initial(self, data: TrainingData, setting: Setting) -> Embedder:
        network = self._network(data, setting)
        return network.embedder(setting.encoder, self.objective(network, data, setting).head(network.weight))

    def objective(self, network: Network, data: TrainingData, setting: Setting) -> Objective:
        return _Latent(self, setting.seed).to(setting.device)

    def extra_candidates(self, embedder: Embedder, final: Tensor) -> dict[str, Tensor]:
        head = embedder.head
        if isinstance(head, LatentHead) and head.shown == "instance":
            return {"latent": head.latent_of(final)}
        return {}

    def embedder_explanations(self, embedder: Embedder) -> tuple[LatentLayer, ...]:
        head = embedder.head
        return (LatentLayer(head.latent),) if isinstance(head, LatentHead) and head.shown == "instance" else ()

    @property
    def is_noisy(self) -> bool:
        """Whether any part of the loss needs σ."""
        return self.reconstruction or self.structure or self.divergence


class _Latent(Objective):
    """W (l, l) of the graph layer, the layer of log σ, and the decoder; and each image's neighbors (n, k), for a pass.
    """

    def __init__(self, method: PSLR, seed: int) -> None:
        super().__init__()
        self._method = method
        random, width = generator(seed, 0), method.dimension
        bound = 1 / math.sqrt(width)
        self.layer = nn.Parameter((2 * torch.rand(width, width, generator=random) - 1) * bound)
        self.log_sigma = nn.Linear(width, width)
        self.decoder = nn.Linear(width, width)
        with torch.no_grad():
            self.log_sigma.weight.zero_()
            self.log_sigma.bias.fill_(FIRST_LOG_SIGMA)
            self.decoder.weight.copy_((2 * torch.rand(width, width, generator=random) - 1) * bound)
            self.decoder.bias.zero_()
        self._neighbors: Tensor | None = None

    def begin(self, network: Network, data: TrainingData) -> None:
        if self._method.graph == "neighbors":
            points = embedded(network, data, self.layer.device)
            found = torch.from_numpy(nearest(points.cpu().numpy(), self._method.n_neighbors)[1]).to(points.device)
            agree([found])
            self._neighbors = found.cpu()

    def batches(self, images: int, size: int, random: torch.Generator) -> Iterator[Tensor]:
        if self._neighbors is None:
            return super().batches(images, size, random)
        return neighbor_batches(self._neighbors, size, random)

    def loss(self, instance: Tensor, batch: Tensor, random: torch.Generator) -> tuple[Tensor, Curves]:
        method = self._method
        near = self._near(batch)
        adjacency = None if near is None else torch.block_diag(near.float(), near.float()).to(instance.device)
        graph = None if adjacency is None else normalized_graph(adjacency)
        rows = latent(instance, self.layer, graph) if method.latent else instance
        alike = None if near is None else near.repeat(2, 2).to(instance.device)
        found = {"latent loss": instance_loss(rows, method.temperature, method.eta, method.form, method.one_sided,
                                              alike)}
        curves = alignment(instance)
        if method.latent:
            curves |= alignment(rows, "latent ")
        if method.is_noisy:
            log_sigma = self.log_sigma(mixed(instance, graph))
            noise = torch.randn(rows.shape, generator=random).to(rows.device)
            found |= self._variational(instance, rows, log_sigma, rows + log_sigma.exp() * noise, adjacency)
            curves["log sigma"] = log_sigma.detach().mean()
        total = found["latent loss"] + found.get("reconstruction", 0)
        for part in ("structure", "divergence"):
            total = total + method.weight * found.get(part, 0)
        return total, {name: value.detach() for name, value in found.items()} | curves

    def head(self, weight: Tensor) -> AnyHead | None:
        if not self._method.latent:
            return None
        return LatentHead(weight.detach().clone(), self.layer.detach().clone(), self._method.embeds)

    def explained(self, network: Network, data: TrainingData) -> tuple[Uncertainty, ...]:
        """The mean σ of each image alone, also where a graph mixes it with its neighbors in training."""
        if not self._method.is_noisy:
            return ()
        with torch.no_grad():
            return (Uncertainty(self.log_sigma(embedded(network, data, self.layer.device)).exp().mean(1)),)

    def _variational(self, instance: Tensor, rows: Tensor, log_sigma: Tensor, noisy: Tensor,
                     adjacency: Tensor | None) -> Curves:
        """The parts that need the noise, as far as they are asked for."""
        method, found = self._method, {}
        if method.reconstruction:
            target = instance.detach() if method.fixed_target else instance
            found["reconstruction"] = reconstruction_loss(target, self.decoder(noisy))
        if method.structure:
            found["structure"] = structure_loss(noisy, self._edges(adjacency, len(rows)))
        if method.divergence:
            found["divergence"] = divergence(rows, log_sigma)
        return found

    def _edges(self, adjacency: Tensor | None, count: int) -> Tensor | None:
        """A of the structural loss (2m, 2m); None for A = I."""
        if self._method.structure_edges == "graph":
            return adjacency
        own = torch.eye(count // 2, device=self.layer.device).repeat(2, 2)
        return own if adjacency is None else torch.maximum(own, adjacency)

    def _near(self, batch: Tensor) -> Tensor | None:
        """Which images of a batch are the same or each other's neighbors, (m, m) bool; None for A = I."""
        if self._neighbors is None:
            return None
        names = (self._neighbors[batch][:, :, None] == batch).any(1)
        return (names & names.mT) | (batch[:, None] == batch)
