"""The network in training and its deterministic gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from tests.methods.test_ssdml import training_setup
from udml_core.backbones import Encoder, EncoderSpec
from udml_core.methods import ISIF, PLM
from udml_core.methods.embedder import unit
from udml_core.methods.fields import BatchNorm
from udml_core.methods.shared.training import EncoderInTraining, Network, SGDRates, rows_at, trained_parameters


def test_the_gradient_of_selected_rows_is_deterministic() -> None:
    features, indices = torch.randn(200, 128, requires_grad=True), torch.randint(200, (500,))
    weights = torch.randn(500, 128)
    gradients = [torch.autograd.grad((rows_at(features, indices) * weights).sum(), features)[0] for _ in range(50)]
    assert torch.equal(rows_at(features, indices), features[indices])
    assert all(torch.equal(gradients[0], gradient) for gradient in gradients)


@pytest.mark.parametrize("batch_norm", ["batch", "statistics", "frozen"])
def test_an_encoder_in_training_embeds_with_its_statistics_and_keeps_them(batch_norm: BatchNorm) -> None:
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
    assert torch.allclose(updated, expected, rtol=1e-5, atol=1e-6) == (batch_norm != "batch")


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


def batch_norm_values(encoder: nn.Module) -> dict[str, list[Tensor]]:
    """Return copies of the scales, shifts and running means of all batch-normalization layers."""
    layers = [layer for layer in encoder.modules() if isinstance(layer, nn.BatchNorm2d)]
    return {name: [getattr(layer, name).detach().clone() for layer in layers]
            for name in ("weight", "bias", "running_mean")}


@pytest.mark.parametrize(("batch_norm", "rate", "moved"), [
    ("frozen", 0.1, []), ("statistics", 0.1, ["weight", "bias"]), ("batch", 0.1, ["weight", "bias", "running_mean"]),
    ("batch", 0.0, ["running_mean"])])
def test_batch_normalization_moves_only_what_its_field_and_the_rate_allow(
        batch_norm: BatchNorm, rate: float, moved: list[str]) -> None:
    data, setting = training_setup("cnn")
    network = EncoderInTraining(data, setting, SGDRates(rate, weight_decay=0.1), batch_norm, None)
    before, convolution = batch_norm_values(network.snapshot()), setting.encoder.network[0].weight.clone()
    network.step(network.features(torch.arange(20)).sum())
    after = batch_norm_values(network.snapshot())
    assert [name for name in before if not all(map(torch.equal, before[name], after[name]))] == moved
    assert torch.equal(network.snapshot().network[0].weight, convolution) == (rate == 0)
    named = [name for name in network.state() if name.startswith("optimizer.network.1.")]
    assert named == ([] if batch_norm == "frozen" else [f"optimizer.network.1.{name}.momentum_buffer"
                                                        for name in ("weight", "bias")])


@pytest.mark.parametrize(("method", "trained"), [
    (PLM(trains="all", dimension=8, batch_norm="frozen"), False), (PLM(trains="all", dimension=8), True),
    (ISIF(trains="all", dimension=8), False), (ISIF(trains="all", dimension=8, batch_norm="statistics"), True)])
def test_a_network_with_frozen_batch_normalization_trains_convolutions_and_the_head_only(
        method: PLM | ISIF, trained: bool) -> None:
    names = {name for name, _ in trained_parameters(method._network(*training_setup("cnn")))}
    scales = {f"encoder.network.{layer}.{part}" for layer in (1, 5, 9, 12) for part in ("weight", "bias")}
    assert names == {"weight", *(f"encoder.network.{layer}.weight" for layer in (0, 4, 8, 11))} | (
        scales if trained else set())
