"""What methods share that train a network."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from udml_core.backbones import Encoder, EncoderSpec
from udml_core.methods.shared.training import Network, rows_at


def test_rows_have_a_gradient_that_does_not_depend_on_how_threads_take_turns() -> None:
    features, indices = torch.randn(200, 128, requires_grad=True), torch.randint(200, (500,))
    weights = torch.randn(500, 128)
    gradients = [torch.autograd.grad((rows_at(features, indices) * weights).sum(), features)[0] for _ in range(50)]
    assert torch.equal(rows_at(features, indices), features[indices])
    assert all(torch.equal(gradients[0], one) for one in gradients)


class OnGPU(Tensor):
    """A tensor of the CPU that says it lies on a GPU, so that the CPU's own mixed precision is switched on."""

    is_cuda = True


@pytest.mark.parametrize(("kind", "inside"), [(Tensor, torch.float32), (OnGPU, torch.bfloat16)])
def test_on_a_gpu_the_encoder_computes_in_half_the_bits_and_its_features_have_all(
        kind: type[Tensor], inside: torch.dtype) -> None:
    network = Network(torch.randn(128, 4), Encoder(EncoderSpec(backbone="cnn", size=16)))
    assert network.encoder is not None
    seen: list[torch.dtype] = []
    network.encoder.network.register_forward_hook(lambda _module, _given, maps: seen.append(maps.dtype))
    embeddings = network(torch.randint(256, (5, 3, 16, 16), dtype=torch.uint8).as_subclass(kind))
    assert seen == [inside]
    assert embeddings.dtype == torch.float32
    torch.testing.assert_close(embeddings.as_subclass(Tensor).norm(dim=1), torch.ones(5))  # not rounded to bfloat16
    embeddings.sum().backward()
    assert {one.grad.dtype for one in network.parameters() if one.grad is not None} == {torch.float32}
