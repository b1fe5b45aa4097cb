"""PSLR: instance discrimination in a latent space with learned noise.

M. Ye, J. Shen, "Probabilistic Structural Latent Representation for Unsupervised Embedding"; equation numbers are that
paper's. Departures from the paper:

- The softmax compares both views in both directions (see `losses.instance_discrimination`).
- The printed loss adds sums over a batch to a mean (eq. 12). Here the whole printed loss is divided by the 2m rows of a
  batch, so that the learning rate does not depend on the batch size; `scale` offers the printed sums.
- log σ starts at 0 everywhere, where the divergence has no gradient toward σ. The paper does not print a start.
- The neighbor graph joins mutual nearest neighbors within each of the two views; an edge between the views of an image
  would make them equal in Z. The paper only says that it uses the graph of another method.
- Embeddings and the displayed σ are computed from an image alone, without its neighbors.
- Views of photographs are crops of at least 16 % of the area, resized and flipped (PLM's), in place of random crops of
  227 pixels from images of 256 pixels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from udml_core.base.declaration import Shown
from udml_core.base.errors import UserError
from udml_core.data.training_data import TrainingData
from udml_core.methods.base import Card, Setting
from udml_core.methods.embedder import AnyHead, Embedder, LatentHead, Representation
from udml_core.methods.fields import NegativeWeight, Temperature
from udml_core.methods.shared.distributed import agree
from udml_core.methods.shared.instance import Curves, InstanceMethod, Objective, measure_alignment
from udml_core.methods.shared.training import Network, embed_training_half
from udml_core.numerics.explanations import LatentLayer, Uncertainty
from udml_core.numerics.losses.instance_discrimination import (
    Form,
    divergence,
    graph_layer_input,
    instance_loss,
    latent,
    normalized_graph,
    reconstruction_loss,
    structure_loss,
)
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.sampling import generator, neighbor_batches

TermScale = Literal["mean", "sum", "mixed"]


class PSLR(InstanceMethod):
    """Adaptable softmax on a latent graph representation.

    The loss adds variational reconstruction and structure.

    L = L_z + L_r + λ(L_g + L_kl) (eq. 13): softmax on z (eq. 3–5), reconstruction of x from z* = z + σ∘ε (eq. 7),
    agreement of z* along the graph (eq. 11) and divergence of N(z, σ²) from N(0, 1) (eq. 12).
    """

    card: ClassVar[Card] = Card(
        name="pslr",
        order=170,
        title="PSLR",
        paper="M. Ye, J. Shen: Probabilistic Structural Latent Representation for Unsupervised Embedding.",
        summary=("Compares two randomly changed copies of each image, pulls them together and pushes other images "
                 "away, and also learns how uncertain each image's position is. It needs no labels, and helps most "
                 "when the network itself is trained."),
        idea=("Two random views of an image should be nearest to each other in a latent space behind the embedding, so "
              "that the embedding itself need not separate all images. Learned noise is added to each latent point, "
              "and the embedding must be reconstructed from the result. The learned amount of noise measures how "
              "uncertain the position of an image is."),
        supervision="none",
        promise="may fall",
        source=("Paper, tables 3–5: gains with the encoder trained. A linear head on frozen features starts at PCA and "
                "has little to gain."))

    main_fields: ClassVar[tuple[str, ...]] = ("temperature", "n_neighbors", "dimension", "trains", "epochs",
                                              "learning_rate")

    temperature: Temperature = 0.1

    eta: NegativeWeight = 1.0
    """Weight of the other images in the softmax (eq. 3–5). The paper uses 1 for pretrained encoders and 100 on
    CIFAR-10."""

    form: Annotated[Form, Shown(label="Softmax direction")] = "both"
    """Softmax over both views in both directions, or from second to first views only, as the paper prints it."""

    one_sided: Annotated[bool, Shown(label="One-sided gradient")] = False
    """Stop the gradient of the images that a view is compared with."""

    latent: Annotated[bool, Shown(label="Latent representation")] = True
    """Compare latent representations z behind a graph layer (eq. 2); if off, compare the instance features x."""

    graph: Annotated[Literal["itself", "neighbors"], Shown(label="Latent graph")] = "itself"
    """Graph of the latent layer: without edges (A = I), or between mutual nearest neighbors in the batch. Neighbors are
    not used as negatives, and batches are then made of neighbors."""

    n_neighbors: Annotated[int, Field(ge=1, le=100), Shown(symbol="k", step=1, high=20, label="Graph neighbors")] = 4
    """Nearest images that may become neighbors in the graph; computed again in every epoch."""

    reconstruction: Annotated[bool, Shown(label="Reconstruction loss")] = True
    """Reconstruct the instance features from the noisy latent representations (eq. 7)."""

    fixed_target: Annotated[bool, Shown(label="Fixed reconstruction target")] = False
    """Stop the gradient of the instance features in the reconstruction. Otherwise it pulls all instance features toward
    the decoder's output, which is nearly constant while the noise is large."""

    structure: Annotated[bool, Shown(label="Structure loss")] = True
    """Make the noisy latent representations of connected images similar (eq. 11)."""

    structure_edges: Annotated[Literal["graph", "views"], Shown(label="Structure loss edges")] = "graph"
    """Edges of the structure loss: the graph's, or additionally an edge between the two views of each image. With A = I
    the graph connects each view only with itself."""

    divergence: Annotated[bool, Shown(label="Divergence loss")] = True
    """Draw the latent distribution toward a standard normal distribution (eq. 12)."""

    weight: Annotated[float, Field(ge=0, le=100),
                      Shown(symbol="λ", step=0.01, high=1, label="Weight of structure and divergence")] = 0.1
    """Weight of structure and divergence (eq. 13). The divergence draws σ toward 1, the reconstruction draws it toward
    0."""

    scale: Annotated[TermScale, Shown(label="Scale of the loss terms")] = "mean"
    """Divide all four terms by the rows of a batch, or use the printed sums (eq. 5, 7, 11, 12), which multiply the loss
    by twice the batch size and need a learning rate as many times smaller. 'mixed' is the scale of version 0.2: the
    divergence counts 'twice the batch size' times too much, and the structure loss is a mean over edges."""

    first_log_sigma: Annotated[float, Field(ge=-10, le=2), Shown(step=0.5, label="Initial log σ")] = 0.0
    """Logarithm of the noise before training. Below 0, the divergence raises it; if the divergence weighs much, its
    gradient then pulls the embeddings toward one direction."""

    embeds: Annotated[Representation, Shown(label="Embedding")] = "instance"
    """Embedding of an image: the instance feature x as in the paper, or z. The evaluation of x lists z as well."""

    def check(self, images: int, width: int | None) -> None:
        super().check(images, width)
        if self.graph == "neighbors" and self.n_neighbors >= min(images, self.batch):
            raise UserError(f"{type(self).__name__}.n_neighbors must be below the images in a batch, "
                            f"{min(images, self.batch)}, got {self.n_neighbors}. Lower the field 'n_neighbors', "
                            "or raise 'batch'.")
        if self.embeds == "latent" and not self.latent:
            raise UserError(f"{type(self).__name__}.embeds must be 'instance' if there is no latent representation, "
                            "got 'latent' with latent=false. Set the field 'latent' to true, or leave 'embeds' out.")

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
    """The graph layer W (l, l), the linear layer of log σ, and the decoder.

    It also stores each image's neighbors (n, k).
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
            self.log_sigma.bias.fill_(method.first_log_sigma)
            self.decoder.weight.copy_((2 * torch.rand(width, width, generator=random) - 1) * bound)
            self.decoder.bias.zero_()
        self._neighbors: Tensor | None = None

    def begin(self, network: Network, data: TrainingData) -> None:
        if self._method.graph == "neighbors":
            points = embed_training_half(network, data, self.layer.device)
            neighbors = torch.from_numpy(nearest(points.cpu().numpy(), self._method.n_neighbors)[1]).to(points.device)
            agree([neighbors])
            self._neighbors = neighbors.cpu()

    def batches(self, images: int, size: int, random: torch.Generator) -> Iterator[Tensor]:
        if self._neighbors is None:
            return super().batches(images, size, random)
        return neighbor_batches(self._neighbors, size, random)

    def loss(self, instance: Tensor, batch: Tensor, random: torch.Generator) -> tuple[Tensor, Curves]:
        method = self._method
        connected = self._connected(batch)
        adjacency = None
        if connected is not None:
            # The blocks keep the two views apart: an edge between them would make their rows of z equal, and the
            # softmax would have nothing left to learn.
            adjacency = torch.block_diag(connected.float(), connected.float()).to(instance.device)
        graph = None if adjacency is None else normalized_graph(adjacency)
        rows = latent(instance, self.layer, graph) if method.latent else instance
        # Neighbors probably show the same class, so neither of their views may count as a negative.
        excluded = None if connected is None else connected.repeat(2, 2).to(instance.device)
        # The softmax compares z without noise, so that a large σ cannot hide the differences between images from it.
        terms = {"latent loss": instance_loss(rows, method.temperature, method.eta, method.form, method.one_sided,
                                              excluded)}
        curves = measure_alignment(instance)
        if method.latent:
            curves |= measure_alignment(rows, "latent ")
        if method.is_noisy:
            log_sigma = self.log_sigma(graph_layer_input(instance, graph))
            noise = torch.randn(rows.shape, generator=random).to(rows.device)
            # Reparameterization (eq. 6): with the noise as a constant, gradients reach both z and σ.
            terms |= self._variational(instance, rows, log_sigma, rows + log_sigma.exp() * noise, adjacency)
            curves["log sigma"] = log_sigma.detach().mean()
        factors = self._factors(len(rows), adjacency)
        terms = {name: factors[name] * value for name, value in terms.items()}
        total = terms["latent loss"] + terms.get("reconstruction", 0)
        for term in ("structure", "divergence"):
            total = total + method.weight * terms.get(term, 0)
        return total, {name: value.detach() for name, value in terms.items()} | curves

    def head(self, weight: Tensor) -> AnyHead | None:
        if not self._method.latent:
            return None
        return LatentHead(weight.detach().clone(), self.layer.detach().clone(), self._method.embeds)

    def explained(self, network: Network, data: TrainingData) -> tuple[Uncertainty, ...]:
        """Return the mean σ of each image, computed without its neighbors."""
        if not self._method.is_noisy:
            return ()
        with torch.no_grad():
            return (Uncertainty(self.log_sigma(embed_training_half(network, data, self.layer.device)).exp().mean(1)),)

    def _variational(self, instance: Tensor, rows: Tensor, log_sigma: Tensor, noisy: Tensor,
                     adjacency: Tensor | None) -> Curves:
        """Return the enabled terms that need the noise."""
        method = self._method
        terms: Curves = {}
        if method.reconstruction:
            # The reconstruction limits σ: noise that hides z makes x impossible to rebuild. The printed loss also
            # moves x toward its reconstruction; `fixed_target` removes that route.
            target = instance.detach() if method.fixed_target else instance
            terms["reconstruction"] = reconstruction_loss(target, self.decoder(noisy))
        if method.structure:
            # Noisy neighbors should still agree, so the graph holds for the distributions and not only for their means.
            terms["structure"] = structure_loss(noisy, self._edges(adjacency, len(rows)))
        if method.divergence:
            # The divergence is the counterweight of the reconstruction: without it σ would shrink to 0.
            terms["divergence"] = divergence(rows, log_sigma)
        return terms

    def _factors(self, rows: int, adjacency: Tensor | None) -> Mapping[str, float | Tensor]:
        """Return each term's factor for the chosen scale; the terms come divided by the 2m rows."""
        method = self._method
        if method.scale == "mixed":
            edges = self._edges(adjacency, rows)
            count = rows if edges is None else edges.count_nonzero()
            return {"latent loss": 1, "reconstruction": 1, "structure": rows / count, "divergence": rows}
        size = rows if method.scale == "sum" else 1
        # The printed form has one summand for every second view, and its loss comes divided by their number m.
        return {"latent loss": size / 2 if method.form == "printed" else size, "reconstruction": size,
                "structure": size, "divergence": size}

    def _edges(self, adjacency: Tensor | None, count: int) -> Tensor | None:
        """Return A (2m, 2m) of the structure loss; None for A = I."""
        if self._method.structure_edges == "graph":
            return adjacency
        own = torch.eye(count // 2, device=self.layer.device).repeat(2, 2)
        return own if adjacency is None else torch.maximum(own, adjacency)

    def _connected(self, batch: Tensor) -> Tensor | None:
        """Return which images of a batch are the same or mutual neighbors.

        The result is (m, m) bool; None for A = I.
        """
        if self._neighbors is None:
            return None
        listed = (self._neighbors[batch][:, :, None] == batch).any(1)
        return (listed & listed.mT) | (batch[:, None] == batch)
