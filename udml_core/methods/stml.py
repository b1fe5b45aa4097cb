"""STML: a student learns the contextualized similarities of its own moving average.

S. Kim, D. Kim, M. Cho, S. Kwak, "Self-Taught Metric Learning without Labels", CVPR 2022. It learns from images alone,
in batches of nearest neighbors. The student has two heads on one encoder: g of the features' width, and f, whose output
is the embedding. The teacher is the moving average of the encoder and of g. The formulas are numbered here and not as
in the paper; n is the number of rows of a batch, two views of each image, and t are the teacher's embeddings:

(1) wᴾ_ij = exp(−‖t_i − t_j‖²/σ)                                        pairwise similarity
(2) R(i) = {j : j ∈ N_k(i) and i ∈ N_k(j)}                              reciprocal neighbors; N_k(i) contains i
(3) w̃_ij = |R(i) ∩ R(j)| / |R(i)| if j ∈ R(i), else 0
(4) ŵ_ij = the mean of w̃_hj over h ∈ N_k/2(i),  wᶜ_ij = (ŵ_ij + ŵ_ji)/2   contextual similarity
(5) w_ij = (wᴾ_ij + wᶜ_ij)/2                                            contextualized similarity
(6) d_ij = ‖x_i − x_j‖ / mean_k ‖x_i − x_k‖                             relative distance, x from f or g
(7) L_RC(x) = 1/(n(n − 1)) Σ_i≠j [w_ij d_ij² + (1 − w_ij) [δ − d_ij]₊²]   relaxed contrastive loss
(8) L_KL = (1/n) Σ_i KL(softmax_j(−d_ij of g) ‖ softmax_j(−d_ij of f))   self-distillation; g is constant
(9) L = (L_RC(f) + L_RC(g))/2 + L_KL

What the paper leaves open, or what differs from the authors' public code (github.com/tjddus9597/STML-CVPR22):

- Rows of one image count as equal (wᴾ = 1) when neighbors are listed, and k is the number of rows of a group, twice the
  `group`, both as in the public code. Equal similarities keep the order of the batch.
- f and g have unit length, as every embedding here; in the public code, the student's rows keep their length.
- g starts at the identity, so that it begins with the features, and f at PCA; both are random and orthogonal in the
  paper. Neither has a bias.
- AdamW with β₁ = `momentum`, in place of AdamP, which also removes the part of a step along the weights.
- The teacher also averages the statistics of batch normalization and is never in training mode. It follows after the
  step; in the public code it follows before.
- The neighbors that form a batch are nearest by g of whole images, computed in every epoch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from udml_core.base.declaration import Shown
from udml_core.base.errors import UserError
from udml_core.data.encoders import Encoder, Precision
from udml_core.data.training_data import TrainingData
from udml_core.methods.base import Card, Setting
from udml_core.methods.embedder import unit
from udml_core.methods.fields import Part
from udml_core.methods.shared.distributed import agree, gather_rows
from udml_core.methods.shared.instance import Curves, InstanceMethod, Objective
from udml_core.methods.shared.projection import first_network
from udml_core.methods.shared.training import Network, embed_training_half
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.sampling import neighbor_batches

EXACT = "donot_use_mm_for_euclid_dist"
"""Differences, not products, give distances: a product loses half of the digits of a small distance."""
TINY = 1e-12
"""Least mean distance of a row."""


class STML(InstanceMethod):
    """Relaxed contrastive loss on similarities that take the context of a pair into account."""

    card: ClassVar[Card] = Card(
        name="stml",
        order=250,
        title="STML",
        paper="S. Kim, D. Kim, M. Cho, S. Kwak: Self-Taught Metric Learning without Labels.",
        summary=("Keeps a slowly changing copy of the model as a teacher, which tells how similar images are by "
                 "their distance and shared neighbors; the model learns to agree with it. It needs no labels, and "
                 "helps most when the network itself is trained."),
        idea=("A teacher, the moving average of the network, tells how similar the images of a batch are: by their "
              "distance, and by the number of neighbors that they share. The network learns distances that agree with "
              "these similarities. It has a wide and a narrow head; the narrow head, which is the embedding, also "
              "learns the distances of the wide one."),
        supervision="none",
        promise="may fall",
        source=("PLM's paper, table 1: above AND and PSLR on birds, cars and products, with the encoder trained. A "
                "linear head on frozen features starts at PCA and has little to gain."))

    main_fields: ClassVar[tuple[str, ...]] = ("sigma", "delta", "group", "trains", "epochs", "learning_rate")

    sigma: Annotated[float, Field(gt=0, le=100), Shown(symbol="σ", step=0.1, high=10, label="Similarity bandwidth")
                     ] = 3.0
    """Squared distance in the teacher's embedding at which the pairwise similarity is 1/e."""

    delta: Annotated[float, Field(gt=0, le=10), Shown(symbol="δ", step=0.05, high=2, label="Target distance")] = 1.0
    """Relative distance to which dissimilar images are pushed; 1 is the mean distance of an image to a batch."""

    group: Annotated[int, Field(ge=2, le=100), Shown(step=1, high=20, label="Group size")] = 5
    """Size of the groups in a batch: an image and its nearest neighbors. Twice as many rows are neighbors in the
    contextual similarity."""

    teacher_momentum: Annotated[float, Field(ge=0, lt=1), Shown(step=0.001, label="Teacher momentum")] = 0.999
    """Share of its old value that the teacher keeps in each step."""

    def check(self, images: int, width: int | None) -> None:
        super().check(images, width)
        if min(images, self.batch) < self.group:
            raise UserError(f"{type(self).__name__}.group must be at most the images in a batch, "
                            f"{min(images, self.batch)}, got {self.group}. Lower the field 'group', or raise 'batch'.")

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        # Besides the student, the teacher passes both views, and g passes all images to find neighbors.
        more = 3 * images * image_seconds if self.trains_encoder else 0
        return super().expected_seconds(images, width, image_seconds) + more + 6e-10 * images * width**2

    def optimizer(self, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.AdamW(parameters, lr=self.learning_rate, betas=(self.momentum, 0.999),
                                 weight_decay=self.weight_decay)

    def objective(self, network: Network, data: TrainingData, setting: Setting) -> Objective:
        return _SelfTaught(self, network)

    def _network(self, data: TrainingData, setting: Setting) -> Network:
        return first_network(self, data, setting, self.dimension, self.beginning, _TwoHeads)


class _TwoHeads(Network):
    """A network whose rows are f and g side by side, (b, l + d).

    Attributes:
        weight: The projection of f (d, l).
        wide: The projection of g (d, d), a parameter.
    """

    def __init__(self, weight: Tensor, encoder: Encoder | None = None, part: Part = "all",
                 precision: Precision = "auto", bias: Tensor | None = None) -> None:
        super().__init__(weight, encoder, part, precision, bias)
        self.wide = nn.Parameter(torch.eye(len(weight), dtype=weight.dtype))

    def forward(self, inputs: Tensor) -> Tensor:
        features = self.features(inputs)
        return torch.cat([unit(features @ self.weight), unit(features @ self.wide)], dim=1)


class _SelfTaught(Objective):
    """The teacher, its rows of the current batch, and the nearest neighbors of each image.

    Attributes:
        teacher: The moving average of the student.
    """

    def __init__(self, method: STML, student: Network) -> None:
        super().__init__()
        self._method = method
        self.teacher = student.momentum_copy()
        # In a tuple, because a module would count the student's parameters as its own.
        self._student = (student,)
        self._targets = self._neighbors = torch.empty(0)

    def begin(self, network: Network, data: TrainingData) -> None:
        wide = self._wide(embed_training_half(network, data, self.teacher.weight.device))
        neighbors = torch.from_numpy(nearest(wide.cpu().numpy(), self._method.group - 1)[1])
        agree([neighbors, *self.teacher.parameters()])
        self._neighbors = neighbors

    def batches(self, images: int, size: int, random: torch.Generator) -> Iterator[Tensor]:
        return neighbor_batches(self._neighbors, size, random)

    def watch(self, views: Tensor, images: int) -> None:
        with torch.no_grad():
            self._targets = gather_rows(self._wide(self.teacher(views)), 2, images)

    def loss(self, instance: Tensor, batch: Tensor, random: torch.Generator) -> tuple[Tensor, Curves]:
        method, own = self._method, batch.to(instance.device).repeat(2)
        similar = contextualized_similarity(self._targets, own[:, None] == own, 2 * method.group, method.sigma)
        narrow, wide = (relative_distances(rows) for rows in instance.split(
            [method.dimension, instance.shape[1] - method.dimension], dim=1))
        contrastive = (relaxed_contrastive_loss(narrow, similar, method.delta)
                       + relaxed_contrastive_loss(wide, similar, method.delta)) / 2
        distillation = distillation_loss(narrow, wide.detach())
        others = ~torch.eye(len(own), dtype=torch.bool, device=own.device)
        return contrastive + distillation, {"contrastive loss": contrastive.detach(),
                                            "distillation loss": distillation.detach(),
                                            "teacher similarity": similar[others].mean()}

    def remember(self, instance: Tensor, batch: Tensor) -> None:
        (student,) = self._student
        if self._method.batch_norm == "batch":
            # Each process normalized its own part of the batch. The teacher must be the same in all processes.
            agree(student.buffers())
        self.teacher.follow(student, self._method.teacher_momentum)

    def _wide(self, rows: Tensor) -> Tensor:
        return rows[:, self._method.dimension :]


def contextualized_similarity(targets: Tensor, same: Tensor, k: int, sigma: float) -> Tensor:
    """Compute w (1–5), (n, n), symmetric and in [0, 1].

    Args:
        targets: t (n, d), unit rows.
        same: (n, n) bool, whether two rows show the same image.
        k: Number of neighbors, the row itself among them.
        sigma: σ.
    """
    pairwise = (-torch.cdist(targets, targets, compute_mode=EXACT).square() / sigma).exp()
    order = pairwise.masked_fill(same, 1.0).argsort(dim=1, descending=True, stable=True)[:, :k]
    listed = torch.zeros_like(pairwise).scatter_(1, order, 1.0)
    reciprocal = listed * listed.mT
    # Row i of `reciprocal` marks R(i), so the product counts |R(i) ∩ R(j)|; a row is always its own neighbor.
    shared = reciprocal @ reciprocal.mT * reciprocal / reciprocal.sum(1, keepdim=True)
    directed = shared[order[:, : k // 2]].mean(1)
    contextual = (directed + directed.mT) / 2
    return (pairwise + contextual) / 2


def relative_distances(rows: Tensor) -> Tensor:
    """Compute d (6), (n, n): each row's distances, divided by their mean."""
    distances = torch.cdist(rows, rows, compute_mode=EXACT)
    return distances / distances.mean(1, keepdim=True).clamp_min(TINY)


def relaxed_contrastive_loss(distances: Tensor, similar: Tensor, delta: float) -> Tensor:
    """Compute L_RC (7).

    Args:
        distances: d (n, n).
        similar: w (n, n).
        delta: δ.
    """
    terms = similar * distances.square() + (1 - similar) * (delta - distances).relu().square()
    count = len(distances)
    return terms.masked_fill(torch.eye(count, dtype=torch.bool, device=terms.device), 0).sum() / (count * (count - 1))


def distillation_loss(distances: Tensor, target: Tensor) -> Tensor:
    """Compute L_KL (8).

    Args:
        distances: d of f (n, n).
        target: d of g (n, n), without a gradient.
    """
    student, teacher = (-distances).log_softmax(1), (-target).log_softmax(1)
    return (teacher.exp() * (teacher - student)).sum(1).mean()
