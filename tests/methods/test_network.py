"""What methods share that train a network."""

from __future__ import annotations

import torch

from udml_core.methods.network import rows_at


def test_rows_have_a_gradient_that_does_not_depend_on_how_threads_take_turns() -> None:
    features, indices = torch.randn(200, 128, requires_grad=True), torch.randint(200, (500,))
    weights = torch.randn(500, 128)
    gradients = [torch.autograd.grad((rows_at(features, indices) * weights).sum(), features)[0] for _ in range(50)]
    assert torch.equal(rows_at(features, indices), features[indices])
    assert all(torch.equal(gradients[0], one) for one in gradients)
