"""The network in training and its deterministic gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.methods.test_ssdml import training_setup
from udml_core.backbones import Encoder, EncoderSpec
from udml_core.methods.embedder import unit
from udml_core.methods.shared.training import EncoderInTraining, Network, SGDRates, rows_at


def test_the_gradient_of_selected_rows_is_deterministic() -> None:
    features, indices = torch.randn(200, 128, requires_grad=True), torch.randint(200, (500,))
    weights = torch.randn(500, 128)
    gradients = [torch.autograd.grad((rows_at(features, indices) * weights).sum(), features)[0] for _ in range(50)]
    assert torch.equal(rows_at(features, indices), features[indices])
    assert all(torch.equal(gradients[0], gradient) for gradient in gradients)


@pytest.mark.parametrize("batch_norm", [True, False])
def test_an_encoder_in_training_embeds_with_its_statistics_and_keeps_them(batch_norm: bool) -> None:
    """The graph of a partition must not depend on the images that pass the encoder together."""
    data, setting = training_setup("cnn")
    network = EncoderInTraining(data, setting, SGDRates(0.1), batch_norm, None)
    before = {name: value.clone() for name, value in network.snapshot().state_dict().items()}
    images = torch.arange(20)
    with torch.no_grad():
        expected = unit(setting.encoder.eval()(data.images(images)))
    torch.testing.assert_close(network.embed(images), expected, rtol=1e-5, atol=1e-6)
    assert all(torch.equal(value, before[name]) for name, value in network.snapshot().state_dict().items())
    updated = network.features(images)
    assert torch.allclose(updated, expected, rtol=1e-5, atol=1e-6) == (not batch_norm)


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
