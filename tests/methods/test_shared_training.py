"""The network in training and its deterministic gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from udml_core.backbones import Encoder, EncoderSpec
from udml_core.methods.shared.training import Network, rows_at


def test_the_gradient_of_selected_rows_is_deterministic() -> None:
    features, indices = torch.randn(200, 128, requires_grad=True), torch.randint(200, (500,))
    weights = torch.randn(500, 128)
    gradients = [torch.autograd.grad((rows_at(features, indices) * weights).sum(), features)[0] for _ in range(50)]
    assert torch.equal(rows_at(features, indices), features[indices])
    assert all(torch.equal(gradients[0], gradient) for gradient in gradients)


class OnGPU(Tensor):
    """A CPU tensor that claims to be on a GPU.

    The CPU's own mixed precision is then enabled.
    """

    is_cuda = True


@pytest.mark.parametrize(("kind", "inside"), [(Tensor, torch.float32), (OnGPU, torch.bfloat16)])
def test_the_encoder_computes_in_bfloat16_on_a_gpu_only_and_returns_float32(
        kind: type[Tensor], inside: torch.dtype) -> None:
    network = Network(torch.randn(128, 4), Encoder(EncoderSpec(backbone="cnn", size=16)))
    assert network.encoder is not None
    dtypes: list[torch.dtype] = []
    network.encoder.network.register_forward_hook(lambda _module, _inputs, maps: dtypes.append(maps.dtype))
    embeddings = network(torch.randint(256, (5, 3, 16, 16), dtype=torch.uint8).as_subclass(kind))
    assert dtypes == [inside]
    assert embeddings.dtype == torch.float32
    # Rows rounded to bfloat16 would not have unit length.
    torch.testing.assert_close(embeddings.as_subclass(Tensor).norm(dim=1), torch.ones(5))
    embeddings.sum().backward()
    assert {weight.grad.dtype for weight in network.parameters() if weight.grad is not None} == {torch.float32}
