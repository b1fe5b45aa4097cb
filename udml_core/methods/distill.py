"""Distillation: a single view learns the neighborhoods of refined embeddings.

The targets come from the training half without labels, by steps of `udml_core.numerics.refinement`: the mean over
views, whitening, and averages with neighbors. All of them cost time at retrieval or need a gallery; the student does
not.

- Mean over views and whitening: t_i = unit((unit(v_i) − mean)·W·P), where v_i is the mean of the frozen features of
  image i's views, W the whitening by mutual neighbors and P the first l principal directions.
- Refinement: r_i is t_i averaged with its k nearest neighbors (α-weighted, repeated).
- Loss of a batch B of m images with student embeddings z_i of one random view each:
  (1/m)·Σ_i [KL(p_i ‖ q_i) + λ·(1 − z_i·t_i)], where p_i and q_i are the softmax over j ∈ B, j ≠ i, of r_i·r_j/τ and of
  z_i·z_j/τ.

The targets are fixed: t and r are computed once, from the frozen encoder, before the first epoch. There is no teacher
by momentum, whose refined neighborhoods would follow the student: each update of r needs several views of every
training image, whitening and a neighbor search again. Whether it would gain anything has not been measured. Fixed
averages have a price: more epochs overfit the training images. Refinement means averages only: k-reciprocal
re-ranking gives no vectors, and its similarities are not targets.

The student starts at the whitening head. This is our own method. Its parts are known: relations as targets (Park et
al., "Relational Knowledge Distillation", CVPR 2019), and softened similarities (Hinton et al., "Distilling the
Knowledge in a Neural Network", 2015).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar, Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import cross_entropy

from udml_core.base.declaration import Shown
from udml_core.base.errors import UserError
from udml_core.data.training_data import TrainingData
from udml_core.methods.base import Card, Epoch, Method, Setting, State
from udml_core.methods.closed_form import principal_directions
from udml_core.methods.embedder import Embedder, unit
from udml_core.methods.fields import BatchNorm, BatchSize, Dimension, Epochs, KeptViews, LearningRate, Trains
from udml_core.methods.shared.distributed import agree, gather_rows
from udml_core.methods.shared.epoch_loop import NetworkLoop
from udml_core.methods.shared.projection import check_projection, first_projection, network_with_head
from udml_core.methods.shared.training import EMBEDDED, Network, encode, trained_parameters, view_inputs
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.refinement.averaging import average_neighbors
from udml_core.numerics.refinement.linear import unit_rows, whitening
from udml_core.numerics.sampling import neighbor_batches


class Targets(NamedTuple):
    """The student's start and its targets.

    Attributes:
        weight: Whitening and reduction W·P (d, l), the head's first projection.
        bias: −mean·W·P (l,), the head's first bias.
        whitened: t (n, l), unit rows.
        refined: r (n, l), unit rows.
        neighbors: The nearest refined rows of each refined row (n, g − 1), for the batches.
    """

    weight: Tensor
    bias: Tensor
    whitened: Tensor
    refined: Tensor
    neighbors: Tensor


class Distill(Method):
    """Train a single view to reproduce refined neighborhoods of the training half."""

    card: ClassVar[Card] = Card(
        name="distill",
        order=900,
        title="Distilled refinement",
        paper="No paper; our own method from the steps of the view Refine.",
        summary=("Improves the search with slow steps that need several views and the neighbors of each image, then "
                 "trains the network to give a similar result from one view. It needs no labels, and helps if new "
                 "images must be searched quickly."),
        idea=("Averaging an image's views, whitening and averaging neighbors improve retrieval without labels. Here "
              "these steps run once on the training half, and the encoder learns to give the same neighborhoods from "
              "a single view. New images then need no refinement."),
        supervision="none",
        promise="may fall",
        source=("Measured on birds at 112 pixels with three seeds: MAP@R 33.2 with frozen features, 34.4 at the "
                "whitened start and 35.0 after two epochs (record 'Training the last blocks of the encoder on birds'). "
                "Most of the gain of refinement is not reproduced by a single view. On CIFAR-10 a head of 64 "
                "dimensions ends at 37.1, where frozen features have 36.8, a head at a learning rate of 0 has 37.5 and "
                "PCA 38.9 (record 'Benchmark of all methods: digits, CIFAR-10, clothes and birds')."))

    shares_batches: ClassVar[bool] = True
    main_fields: ClassVar[tuple[str, ...]] = ("averaged", "times", "dimension", "trains", "epochs", "learning_rate")

    dimension: Dimension = 512
    """Dimension of the embedding, at most the features' dimension and the number of training images."""

    beginning: Annotated[Literal["whitening", "random"], Shown(label="Initial projection")] = "whitening"
    """Initial projection: the whitening head, from which training has least to do, or a random subspace, which shows
    what training alone achieves."""

    trains: Trains = "last"

    epochs: Epochs = 2
    """Epochs. The targets stay fixed, so many epochs overfit the training images."""

    learning_rate: LearningRate = 1e-4
    """Learning rate of Adam on the network."""

    temperature: Annotated[float, Field(gt=0, le=10),
                           Shown(symbol="τ", low=0.02, high=1, logarithmic=True)] = 0.1
    """Temperature of both softmaxes; lower values concentrate on the most similar images."""

    regression: Annotated[float, Field(ge=0, le=100),
                          Shown(symbol="λ", step=0.1, high=10, label="Weight of the regression")] = 1.0
    """Weight of the distance to the whitened mean of the image's own views; at 0 only neighborhoods are learned."""

    kept_views: KeptViews = 6
    """Views of each image, the whole image and random views: their mean is the target, and one of them is the input
    in each step. If all layers are trained, inputs are new random views."""

    whitening_neighbors: Annotated[int, Field(ge=1, le=100),
                                   Shown(step=1, high=30, label="Neighbors for whitening")] = 5
    """Two images form a pair for whitening if each is among this number of nearest neighbors of the other."""

    shrinkage: Annotated[float, Field(gt=0, le=100), Shown(symbol="s", step=0.05, high=5.0)] = 1.0
    """Multiple of the mean variance that whitening adds in every direction; larger values change the features less."""

    averaged: Annotated[int, Field(ge=0, le=500), Shown(symbol="k", step=1, high=50, label="Averaged neighbors")] = 10
    """Nearest neighbors that each target is averaged with; 0 keeps the whitened mean over views."""

    times: Annotated[int, Field(ge=1, le=10), Shown(step=1, high=5, label="Repeated averages")] = 1
    """Number of times that targets are averaged with their neighbors."""

    alpha: Annotated[float, Field(ge=0, le=20), Shown(symbol="α", step=0.5, high=10, label="Exponent of weights")] = 3.0
    """Exponent of the neighbors' weights, powers of the cosine similarity; 0 gives the plain mean."""

    batch: BatchSize = 100
    """Images in a batch; an image in several groups counts once."""

    group: Annotated[int, Field(ge=2, le=100), Shown(step=1, high=20, label="Group size")] = 5
    """Size of the groups in a batch: a seed image and its nearest refined neighbors."""

    batch_norm: BatchNorm = "frozen"
    """Freeze batch normalization as pretrained, freeze only its statistics, or use each batch's statistics, if encoder
    layers are trained."""

    @property
    def views_needed(self) -> int:
        return 0 if self.trains == "last" else self.kept_views - 1  # the targets need views whatever is trained

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        steps = images / self.batch * (0.003 + 2e-9 * self.batch * width * self.dimension)
        return steps + (3 * images * image_seconds if self.trains_encoder else 0)

    def check(self, images: int, width: int | None) -> None:
        name = type(self).__name__
        check_projection(name, self.dimension, "pca", images, width)
        if images <= self.whitening_neighbors:
            raise UserError(f"{name} needs more images than whitening_neighbors, got {images} images and "
                            f"whitening_neighbors={self.whitening_neighbors}. Lower it or add images.")
        least = max(3, self.group)
        if min(images, self.batch) < least:
            raise UserError(f"{name} needs at least {least} training images in a batch for groups of {self.group}, got "
                            f"{min(images, self.batch)}. Raise the field 'batch', lower 'group' or add images.")

    def initial(self, data: TrainingData, setting: Setting) -> Embedder:
        return self.start_network(data, setting, self.targets(data, setting)).embedder(setting.encoder)

    def start_network(self, data: TrainingData, setting: Setting, targets: Targets) -> Network:
        """Return the untrained student: the whitening head, or a random subspace with a bias of 0."""
        weight, bias = targets.weight, targets.bias
        if self.beginning == "random":
            weight = first_projection(data.features, self.dimension, "random", setting.seed)
            bias = torch.zeros_like(bias)
        return network_with_head(self, setting, weight, bias)

    def fit(self, data: TrainingData, setting: Setting, start: State | None = None) -> Iterator[Epoch]:
        yield from _DistillLoop(self, data, setting, start).run()

    def targets(self, data: TrainingData, setting: Setting) -> Targets:
        """Return the whitening head and the targets, from the frozen encoder."""
        self.check(*data.features.shape)
        rows = unit_rows(self._view_means(data, setting).numpy())
        linear = whitening(rows, k=self.whitening_neighbors, shrinkage=self.shrinkage)
        whitened, matrix, mean = (torch.from_numpy(part).float() for part in (linear(rows), linear.weight,
                                                                              linear.offset))
        reduction = principal_directions(whitened, self.dimension)
        weight = matrix @ reduction
        whitened = unit(whitened @ reduction)
        refined = average_neighbors(whitened.numpy(), self.averaged, self.times, self.alpha)
        tensors = (weight, -(mean @ weight), whitened, torch.from_numpy(refined).float())
        head, bias, whitened, final = (part.to(setting.device) for part in tensors)
        return Targets(head, bias, whitened, final, torch.from_numpy(nearest(refined, self.group - 1)[1]))

    def _view_means(self, data: TrainingData, setting: Setting) -> Tensor:
        """Return the frozen encoder's features (n, d), averaged over the views of each image, on the CPU."""
        parts = []
        for batch in torch.arange(len(data)).split(EMBEDDED):
            if self.trains != "last":
                views = view_inputs("head", data, batch, whole=True)
            else:
                inputs = data.view_activations(batch)
                with torch.no_grad():
                    views = torch.stack([encode(setting.encoder, inputs[:, number].to(setting.device), "last",
                                                setting.precision).cpu() for number in range(inputs.shape[1])], dim=1)
            parts.append(views.mean(1))
        return torch.cat(parts)


class _DistillLoop(NetworkLoop[Distill]):
    """The student, its targets, and Adam."""

    whole = True

    def __init__(self, method: Distill, data: TrainingData, setting: Setting, start: State | None) -> None:
        self.targets = method.targets(data, setting)
        agree(self.targets)
        network = method.start_network(data, setting, self.targets)
        named = trained_parameters(network)
        adam = torch.optim.Adam([parameter for _, parameter in named], lr=method.learning_rate)
        super().__init__(method, data, setting, start, network, adam, {"network": network}, named)

    def _batches(self, epoch: int, random: torch.Generator) -> Iterable[Tensor]:
        size = min(self.method.batch, len(self.data))
        # A repeated image would be its own nearest neighbor in the softmax.
        return [batch.unique() for batch in neighbor_batches(self.targets.neighbors, size, random)]

    def _step(self, batch: Tensor, inputs: Tensor, random: torch.Generator) -> dict[str, float]:
        method, targets, own = self.method, self.targets, batch.to(self.setting.device)
        rows = gather_rows(self._replica(self._views(inputs, 1, batch, random)), 1, len(batch))
        neighborhood = relation_loss(rows, targets.refined[own], method.temperature)
        regression = (1 - (rows * targets.whitened[own]).sum(1)).mean()
        loss = neighborhood + method.regression * regression
        self._descend(loss)
        return {"loss": loss.item(), "neighborhood loss": neighborhood.item(), "regression loss": regression.item()}


def relation_loss(rows: Tensor, targets: Tensor, temperature: float) -> Tensor:
    """Return the mean divergence KL(p_i ‖ q_i) of a batch.

    p_i and q_i are the softmax of target and student similarities of image i with every other image of the batch.

    Args:
        rows: Student's unit rows (m, l).
        targets: Refined unit rows (m, l).
        temperature: τ.
    """
    others = ~torch.eye(len(rows), dtype=torch.bool, device=rows.device)
    student, target = ((points @ points.mT / temperature)[others].view(len(rows), -1) for points in (rows, targets))
    probabilities = target.softmax(1)
    return cross_entropy(student, probabilities) - cross_entropy(target, probabilities)
