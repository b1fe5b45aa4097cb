"""STML: the contextualized similarity, the losses, and training of encoder and heads by the formulas, step by step."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor

from tests.methods.golden_instance import (
    DECAY,
    FIELDS,
    IMAGES,
    MOMENTUM,
    WIDTH,
    Model,
    all_images,
    assert_same_training,
    double_precision,
    literal_epochs,
    small_images,
    unit,
)
from tests.methods.test_instance_methods import fit_epochs
from udml_core.base.errors import UserError
from udml_core.methods.stml import (
    STML,
    contextualized_similarity,
    distillation_loss,
    relative_distances,
    relaxed_contrastive_loss,
)
from udml_core.numerics.sampling import generator

SIGMA, DELTA, GROUP, KEPT = 0.7, 0.9, 3, 0.6


def rows_of(count: int, seed: int = 0) -> Tensor:
    return unit(torch.randn(count, 4, generator=generator(seed, 0), dtype=torch.float64))


def literal_similarity(t: Tensor, images: list[int], k: int) -> Tensor:
    """Compute w of each pair from sets of reciprocal neighbors."""
    count = len(t)
    pairwise = [[math.exp(-float((t[i] - t[j]).square().sum()) / SIGMA) for j in range(count)] for i in range(count)]

    def near(i: int, number: int) -> list[int]:
        return sorted(range(count), key=lambda j: -1.0 if images[i] == images[j] else -pairwise[i][j])[:number]

    mutual = [{j for j in near(i, k) if i in near(j, k)} for i in range(count)]
    shared = [[len(mutual[i] & mutual[j]) / len(mutual[i]) if j in mutual[i] else 0 for j in range(count)]
              for i in range(count)]
    mean = [[sum(shared[h][j] for h in near(i, k // 2)) / (k // 2) for j in range(count)] for i in range(count)]
    return torch.tensor([[(pairwise[i][j] + (mean[i][j] + mean[j][i]) / 2) / 2 for j in range(count)]
                         for i in range(count)])


def literal_distances(x: Tensor) -> list[list[Tensor]]:
    count = len(x)
    plain = [[(x[i] - x[j]).norm() if i != j else torch.zeros(()) for j in range(count)] for i in range(count)]
    return [[distance * count / torch.stack(row).sum() for distance in row] for row in plain]


def literal_contrastive(d: list[list[Tensor]], w: Tensor) -> Tensor:
    count, total = len(d), torch.zeros(())
    for i in range(count):
        for j in range(count):
            if i != j:
                push = torch.maximum(DELTA - d[i][j], torch.zeros(()))
                total = total + w[i, j] * d[i][j] ** 2 + (1 - w[i, j]) * push**2
    return total / (count * (count - 1))


def literal_distillation(f: list[list[Tensor]], g: list[list[Tensor]]) -> Tensor:
    total = torch.zeros(())
    for row_f, row_g in zip(f, g, strict=True):
        student, teacher = (torch.exp(-torch.stack(row)) for row in (row_f, row_g))
        p, q = (teacher / teacher.sum()).detach(), student / student.sum()
        total = total + (p * torch.log(p / q)).sum()
    return total / len(f)


@dataclass
class Heads(Model):
    """A model whose rows are f and g side by side, trained by AdamW."""

    squares: dict[str, Tensor] = field(default_factory=dict)
    steps: list[int] = field(default_factory=list)

    def embed(self, images: Tensor, by_batch: bool) -> Tensor:
        features = self.features(images, by_batch)
        return torch.cat([unit(features @ self.parameters[f"network.{name}"]) for name in ("weight", "wide")], dim=1)

    def descend(self, loss: Tensor, rate: float) -> None:
        """Shrink w by rate·decay·w, then step by the moving averages of gradients and of their squares."""
        self.steps.append(1)
        time = len(self.steps)
        gradients = torch.autograd.grad(loss, list(self.parameters.values()))
        with torch.no_grad():
            for (name, value), gradient in zip(self.parameters.items(), gradients, strict=True):
                first = MOMENTUM * self.velocities.get(name, torch.zeros(())) + (1 - MOMENTUM) * gradient
                second = 0.999 * self.squares.get(name, torch.zeros(())) + 0.001 * gradient**2
                self.velocities[name], self.squares[name] = first, second
                value -= rate * DECAY * value
                value -= rate * first / (1 - MOMENTUM**time) / ((second / (1 - 0.999**time)).sqrt() + 1e-8)

    def state(self) -> dict[str, Tensor]:
        moments = {f"optimizer.{name}.{kind}": value for name in self.velocities for kind, value in (
            ("exp_avg", self.velocities[name]), ("exp_avg_sq", self.squares[name]),
            ("step", torch.tensor(float(len(self.steps)))))}
        return {name: value.detach().clone() for name, value in (self.parameters | self.buffers | moments).items()}

    def follow(self, student: Model) -> None:
        """Move to KEPT·own + (1 − KEPT)·student; counts are copied."""
        with torch.no_grad():
            for own, other in ((self.parameters, student.parameters), (self.buffers, student.buffers)):
                for name, value in other.items():
                    floating = value.is_floating_point()
                    own[name] = KEPT * own[name] + (1 - KEPT) * value if floating else value.clone()


class Shown(Heads):
    """The same model with f alone as its embedding, to compare with the method's embedder."""

    def embed(self, images: Tensor, by_batch: bool) -> Tensor:
        return super().embed(images, by_batch)[:, :WIDTH]


@pytest.mark.parametrize("batch_norm", ["batch", "frozen"])
@double_precision()
def test_training_equals_the_literal_loop(batch_norm: str) -> None:
    data, setting = small_images()
    method = STML.make(FIELDS | {"sigma": SIGMA, "delta": DELTA, "group": GROUP, "teacher_momentum": KEPT,
                                 "batch": 2 * GROUP, "batch_norm": batch_norm})
    start, images = Model.begin(method, data, setting), all_images(data)
    features = data.features.shape[1]
    model = Heads(start.parameters | {"network.wide": torch.eye(features)}, start.buffers)
    teacher, targets = copy.deepcopy(model), torch.zeros(0)
    by_batch = batch_norm == "batch"

    def batches(random: torch.Generator) -> Sequence[Tensor]:
        """Return batches of two groups, each an image and its two nearest images by g."""
        g = model.embed(images, by_batch=False)[:, WIDTH:].detach()
        order = torch.randperm(IMAGES, generator=random).tolist()
        groups = [sorted(range(IMAGES), key=lambda j: float((g[i] - g[j]).norm()) if i != j else -1.0)[:GROUP]
                  for i in order]
        return [torch.tensor([*groups[2 * k], *groups[2 * k + 1]]) for k in range(IMAGES // (2 * GROUP))]

    def watch(views: Tensor, batch: Tensor) -> None:
        nonlocal targets
        targets = teacher.embed(views, by_batch=False)[:, WIDTH:].detach()

    def loss(x: Tensor, batch: Tensor, random: torch.Generator) -> Tensor:
        w = literal_similarity(targets, [*batch.tolist(), *batch.tolist()], 2 * GROUP)
        f, g = literal_distances(x[:, :WIDTH]), literal_distances(x[:, WIDTH:])
        return (literal_contrastive(f, w) + literal_contrastive(g, w)) / 2 + literal_distillation(f, g)

    literal = literal_epochs(model, images, loss, views=2, by_batch=by_batch, plan=batches, watch=watch,
                             remember=lambda _rows, _batch: teacher.follow(model))

    def teacher_state() -> dict[str, Tensor]:
        return {name.replace("network.", "objective.teacher.", 1): value.detach()
                for name, value in (teacher.parameters | teacher.buffers).items()}

    shown = Shown(model.parameters, model.buffers, model.velocities, model.squares, model.steps)
    assert_same_training(method, data, setting, shown, literal, teacher_state)


def test_the_similarity_equals_its_definition_and_is_symmetric() -> None:
    targets, images = rows_of(12), [0, 1, 2, 3, 4, 5] * 2
    same = torch.tensor(images)[:, None] == torch.tensor(images)
    similar = contextualized_similarity(targets, same, 6, SIGMA)
    torch.testing.assert_close(similar, literal_similarity(targets, images, 6).double())
    torch.testing.assert_close(similar, similar.mT)
    assert 0 <= similar.min() <= similar.max() <= 1


def test_images_of_one_clique_are_entirely_similar_and_of_two_cliques_by_their_distance_alone() -> None:
    targets = torch.cat([rows_of(1).expand(4, -1), -rows_of(1).expand(4, -1)])
    similar = contextualized_similarity(targets, torch.eye(8, dtype=torch.bool), 4, 1.0)
    torch.testing.assert_close(similar[:4, :4], torch.ones(4, 4, dtype=torch.float64))
    torch.testing.assert_close(similar[:4, 4:], torch.full((4, 4), math.exp(-4) / 2, dtype=torch.float64))


def test_relative_distances_do_not_depend_on_the_scale_and_have_mean_one() -> None:
    rows = rows_of(7)
    distances = relative_distances(rows)
    torch.testing.assert_close(distances, relative_distances(5 * rows))
    torch.testing.assert_close(distances.mean(1), torch.ones(7, dtype=torch.float64))
    assert relative_distances(torch.ones(3, 2)).isfinite().all()


def test_the_contrastive_loss_vanishes_at_its_targets() -> None:
    """Similar rows at distance 0 and dissimilar rows beyond δ cost nothing."""
    similar = torch.block_diag(torch.ones(2, 2), torch.ones(3, 3))
    assert float(relaxed_contrastive_loss(DELTA * (1 - similar), similar, DELTA)) == pytest.approx(0, abs=1e-12)
    assert float(relaxed_contrastive_loss(DELTA * (1 - similar) / 2, similar, DELTA)) > 0.01


def test_distillation_is_a_divergence() -> None:
    first, second = relative_distances(rows_of(6)), relative_distances(rows_of(6, seed=1))
    assert float(distillation_loss(first, first)) == pytest.approx(0, abs=1e-12)
    assert float(distillation_loss(first, second)) > 0


def test_without_a_learning_rate_nothing_changes() -> None:
    first, last = fit_epochs(STML(dimension=16, epochs=2, learning_rate=0.0))
    for name, value in first.state.items():
        if name.startswith(("network", "objective")):
            torch.testing.assert_close(value, last.state[name], rtol=1e-6, atol=1e-7)


def test_groups_larger_than_a_batch_are_rejected() -> None:
    with pytest.raises(UserError, match=r"STML\.group must be at most the images in a batch, 8, got 9\. Lower"):
        STML(dimension=2, group=9, batch=8).check(100, None)
