"""The network in training and its deterministic gradients."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.methods.test_ssdml import training_setup
from udml_core.backbones import Encoder, EncoderSpec
from udml_core.methods.embedder import Embedder, unit
from udml_core.methods.fields import Beginning
from udml_core.methods.shared.projection import first_head, first_projection
from udml_core.methods.shared.training import EncoderInTraining, Network, SGDRates, rows_at

BEGINNINGS: tuple[Beginning, ...] = ("random", "pca")


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


def test_a_network_with_a_bias_embeds_as_its_embedder_and_its_stored_file(tmp_path: Path) -> None:
    random = torch.Generator().manual_seed(0)
    rows, weight = torch.rand(9, 16, generator=random), torch.randn(16, 4, generator=random)
    bias = torch.tensor([0.5, -1.0, 2.0, 0.0])
    network, encoder = Network(weight, bias=bias), Encoder(EncoderSpec(backbone="pixels", size=4))
    expected = (rows / rows.norm(dim=1, keepdim=True)) @ weight + bias
    expected = expected / expected.norm(dim=1, keepdim=True)
    torch.testing.assert_close(network(rows), expected)
    embedder = network.embedder(encoder)
    network.follow(Network(-weight, bias=-bias), 0.0)  # training on does not change the embedder
    torch.testing.assert_close(network(rows), -expected)
    embedder.save(tmp_path / "embedder.safetensors")
    for copy in (embedder, Embedder.load(tmp_path / "embedder.safetensors")):
        torch.testing.assert_close(torch.from_numpy(copy.embed_features(rows.numpy())), expected)


def test_centered_principal_components_begin_at_the_centered_features() -> None:
    rows = unit(torch.rand(50, 12, generator=torch.Generator().manual_seed(0)))
    weight, bias = first_head(rows, 4, "centered", 0)
    assert bias is not None
    expected = (rows - rows.mean(0)) @ weight
    torch.testing.assert_close(rows @ weight + bias, expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(expected.mean(0), torch.zeros(4), rtol=0, atol=1e-6)
    variance = torch.linalg.svdvals((rows - rows.mean(0)).double())[:4].square().sum()
    assert expected.square().sum().item() == pytest.approx(variance.item(), rel=1e-5)
    for beginning in BEGINNINGS:
        without, nothing = first_head(rows, 4, beginning, 0)
        assert nothing is None
        torch.testing.assert_close(without, first_projection(rows, 4, beginning, 0))


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
