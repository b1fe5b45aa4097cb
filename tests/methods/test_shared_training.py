"""The network in training and its deterministic gradients."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from tests.methods.test_ssdml import training_setup
from udml_core.data.encoders import Encoder, EncoderSpec, Precision
from udml_core.methods.embedder import Embedder, unit
from udml_core.methods.fields import BatchNorm, Beginning
from udml_core.methods.isif import ISIF
from udml_core.methods.plm import PLM
from udml_core.methods.shared.projection import first_head, first_projection
from udml_core.methods.shared.training import EncoderInTraining, Network, SGDRates, rows_at, trained_parameters

BEGINNINGS: tuple[Beginning, ...] = ("random", "pca")


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
    for loaded in (embedder, Embedder.load(tmp_path / "embedder.safetensors")):
        torch.testing.assert_close(torch.from_numpy(loaded.embed_features(rows.numpy())), expected)


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
    (PLM(trains="all", dimension=8), False), (PLM(trains="all", dimension=8, batch_norm="batch"), True),
    (ISIF(trains="all", dimension=8), False), (ISIF(trains="all", dimension=8, batch_norm="statistics"), True)])
def test_a_network_with_frozen_batch_normalization_trains_convolutions_and_the_head_only(
        method: PLM | ISIF, trained: bool) -> None:
    names = {name for name, _ in trained_parameters(method._network(*training_setup("cnn")))}
    scales = {f"encoder.network.{layer}.{part}" for layer in (1, 5, 9, 12) for part in ("weight", "bias")}
    convolutions = {f"encoder.network.{layer}.weight" for layer in (0, 4, 8, 11)}
    assert names - {"bias"} == {"weight"} | convolutions | (scales if trained else set())


def test_the_last_blocks_follow_sgd_on_activations_and_early_blocks_stay() -> None:
    """The reference trains the last convolution and its normalization in a copy of the encoder."""
    data, setting = training_setup("cnn")
    reference, targets = copy.deepcopy(setting.encoder), torch.randn(40, 128)
    with torch.no_grad():
        activations = reference.early(data.images(torch.arange(len(data))))[:, None].numpy()
    data = replace(data, pixels=None, activations=activations)
    network = EncoderInTraining(data, setting, SGDRates(0.5, 0.9, 0.01), "batch", None, "last")
    late = reference.network[11:]
    late.train()
    sgd = torch.optim.SGD(late.parameters(), 0.5, 0.9, weight_decay=0.01)
    for images in (torch.arange(40), torch.arange(40, 80)):
        network.prefetch(images)
        network.step((network.features(images) * targets).sum())
        sgd.zero_grad()
        (unit(late(torch.from_numpy(activations[images.numpy(), 0])).mean((2, 3))) * targets).sum().backward()
        sgd.step()
    expected = reference.eval().state_dict()
    for name, value in network.snapshot().state_dict().items():
        torch.testing.assert_close(value, expected[name], rtol=1e-4, atol=1e-5, msg=f"{name}: {{}}".format)
    assert {name.split(".")[2] for name in network.state() if name.startswith("optimizer.")} == {"11", "12"}
    assert [name for name, _ in trained_parameters(network._encoder)] == [
        "network.11.weight", "network.12.weight", "network.12.bias"]
    assert not torch.equal(expected["network.11.weight"], setting.encoder.state_dict()["network.11.weight"])


@pytest.mark.parametrize(("precision", "inside"), [("auto", torch.float32), ("fp32", torch.float32),
                                                   ("bf16", torch.bfloat16)])
def test_the_precision_of_a_run_applies_to_encoders_in_training(precision: Precision, inside: torch.dtype) -> None:
    data, setting = training_setup("cnn")
    setting = replace(setting, precision=precision)
    method = PLM(trains="all", dimension=8)
    network = method._network(data, setting)
    metric = EncoderInTraining(data, setting, SGDRates(0.1), "batch", None)
    assert network.encoder is not None
    dtypes: list[torch.dtype] = []
    for encoder in (network.encoder, metric._encoder):
        encoder.network.register_forward_hook(lambda _module, _inputs, maps: dtypes.append(maps.dtype))
    assert network(data.images(torch.arange(4))).dtype == metric.features(torch.arange(4)).dtype == torch.float32
    assert dtypes == [inside, inside]


def test_compilation_applies_to_the_student_and_to_its_teacher(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    monkeypatch.setattr(Encoder, "compile", lambda encoder: compiled.append(encoder.spec.backbone))
    data, setting = training_setup("cnn")
    network = PLM(trains="all", dimension=8)._network(data, setting)
    network.momentum_copy()
    assert compiled == []
    PLM(trains="all", dimension=8)._network(data, replace(setting, compile=True)).momentum_copy()
    assert compiled == ["cnn", "cnn"]
    EncoderInTraining(data, replace(setting, compile=True), SGDRates(0.1), "batch", None)
    assert compiled == ["cnn"] * 3
