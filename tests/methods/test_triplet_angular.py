"""Triplet and angular loss on the labeled images alone."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.methods.test_ssdml import training_setup
from udml_core.methods.embedder import unit
from udml_core.methods.triplet_angular import Angular, Triplet
from udml_core.numerics.sampling import cluster_triplets, generator


def triplet(anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """Compute RPML's eq. (1) at τ = 0.3."""
    return (anchor - positive).square().sum(1) - (anchor - negative).square().sum(1) + 0.3


def angular(anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """Compute RPML's eq. (2) at α = 40°."""
    middle = (anchor + positive) / 2
    return (anchor - positive).square().sum(1) - 4 * math.tan(math.radians(40)) ** 2 * (
        negative - middle).square().sum(1)


@pytest.mark.parametrize(("kind", "field", "argument"), [(Triplet, {"margin": 0.3}, triplet),
                                                         (Angular, {"alpha": 40.0}, angular)])
def test_the_first_step_equals_the_equation_of_the_paper(kind: Any, field: dict[str, float], argument: Any) -> None:
    """Compute the mean hinge of one batch and SGD's first step, −rate·gradient."""
    data, setting = training_setup()
    method = kind(**field, dimension=16, epochs=1, batch=10_000, learning_rate=0.1)
    (epoch,) = method.fit(data, setting)
    labeled = torch.nonzero(data.labels >= 0).squeeze(1)
    classes = data.labels[labeled].unique(return_inverse=True)[1]
    triplets = labeled[cluster_triplets(classes, 20, 10_000, generator(setting.seed, 1))]
    start = method.initial(data, setting).head.weight
    weight = start.clone().requires_grad_()
    loss = argument(*(unit(unit(data.features[part]) @ weight) for part in triplets.unbind(1))).clamp_min(0).mean()
    assert loss > 0
    assert epoch.losses["loss"] == pytest.approx(loss.item(), rel=1e-5)
    loss.backward()
    assert weight.grad is not None
    torch.testing.assert_close(epoch.state["network.weight"] - start, -0.1 * weight.grad, rtol=1e-3, atol=1e-6)
