"""PSLR, ISIF and NCE: a step computed by hand, the effect of every field, parts of a batch, and rejected fields."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from torch import nn

from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.augmentation import CROPS
from udml_core.data.encoders import Encoder, choose_spec
from udml_core.data.features import features_of, pixels_of, views_of
from udml_core.data.splits import make_split
from udml_core.data.training_data import TrainingData, training_data
from udml_core.methods import Epoch, Method, Setting
from udml_core.methods.embedder import Embedder, LatentHead, unit
from udml_core.methods.isif import ISIF
from udml_core.methods.nce import NCE
from udml_core.methods.pslr import PSLR, _Latent
from udml_core.methods.shared.instance import InstanceMethod
from udml_core.methods.shared.projection import first_projection
from udml_core.methods.shared.training import random_views
from udml_core.numerics.explanations import Uncertainty
from udml_core.numerics.losses.instance_discrimination import (
    divergence,
    instance_loss,
    latent,
    reconstruction_loss,
    structure_loss,
)
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.sampling import generator, neighbor_batches
from udml_core.runs import RunRequest, Spec
from udml_core.work.jobs import plan

TINY: dict[str, Any] = {"dimension": 16, "epochs": 2, "learning_rate": 0.05}


@cache
def training_setup(backbone: str = "pixels") -> tuple[TrainingData, Setting]:
    dataset = catalog.load("digits")
    encoder = Encoder(choose_spec(backbone, dataset.native_size, dataset.gray))
    train = make_split(dataset, "zero-shot").train[:300]
    features = features_of(dataset, encoder)
    setting = Setting(0, torch.device("cpu"), encoder)
    if backbone == "pixels":
        views = views_of(dataset, encoder, train, 4, CROPS, 0)
        return training_data(features, None, train, "none", views=views), setting
    return training_data(features, None, train, "none", pixels_of(dataset, encoder)), setting


def fit_epochs(method: Method, backbone: str = "pixels") -> list[Epoch]:
    return list(method.fit(*training_setup(backbone)))


def two_views(data: TrainingData, batch: torch.Tensor, random: torch.Generator, count: int = 2) -> torch.Tensor:
    cached = data.view_features(batch)
    views = torch.rand(cached.shape[:2], generator=random).argsort(1)[:, :count]
    return torch.cat([cached[torch.arange(len(cached)), view] for view in views.unbind(1)])


def graph_of(neighbors: list[set[int]], batch: list[int]) -> torch.Tensor:
    """Compute A of one view: the same image, or images that are among each other's neighbors."""
    return torch.tensor([[float(a == b or (b in neighbors[a] and a in neighbors[b])) for b in batch] for a in batch])


@pytest.mark.parametrize("change", [
    {}, {"latent": False}, {"graph": "neighbors"}, {"reconstruction": False}, {"structure": False},
    {"divergence": False}, {"structure_edges": "views"}, {"graph": "neighbors", "structure_edges": "views"},
    {"eta": 100.0}, {"form": "printed"}, {"one_sided": True}, {"fixed_target": True}, {"weight": 0.0},
    {"temperature": 0.5}, {"beginning": "random"}, {"weight_decay": 0.0}, {"first_log_sigma": -3.0}], ids=str)
def test_the_first_step_of_pslr_equals_the_equations_of_the_paper(change: dict[str, Any]) -> None:
    """Compute eq. 2–13 on one batch and SGD's first step, w − rate·(gradient + decay·w)."""
    data, setting = training_setup()
    method = PSLR(**TINY | {"epochs": 1, "batch": len(data), "eta": 10.0} | change)
    (epoch,) = method.fit(data, setting)
    start = first_projection(unit(data.features), 16, change.get("beginning", "pca"), setting.seed)
    random = generator(setting.seed, 1)
    objective = _Latent(method, setting.seed)
    if method.graph == "neighbors":
        neighbors = nearest(unit(unit(data.features) @ start).numpy(), 4)[1]
        (batch,) = neighbor_batches(torch.from_numpy(neighbors), len(data), random)
        own = graph_of([{*row} for row in neighbors.tolist()], batch.tolist())
    else:
        batch = torch.randperm(len(data), generator=random)
        own = torch.eye(len(data))
    # The graph joins no image to its other view, but a neighbor's second view is no negative either.
    adjacency = torch.block_diag(own, own)
    graph = adjacency / (adjacency.sum(1)[:, None] * adjacency.sum(1)).sqrt()
    excluded = own.repeat(2, 2).bool() if method.graph == "neighbors" else None
    features = unit(two_views(data, batch, random))
    weight = start.clone().requires_grad_()
    instance = unit(features @ weight)
    rows = instance if change.get("latent") is False else latent(instance, objective.layer, graph)
    log_sigma = objective.log_sigma(graph @ instance)
    torch.testing.assert_close(log_sigma, torch.full_like(log_sigma, change.get("first_log_sigma", 0.0)))
    noisy = rows + log_sigma.exp() * torch.randn(rows.shape, generator=random)
    target = instance.detach() if "fixed_target" in change else instance
    joined = torch.zeros_like(adjacency) if method.structure_edges == "graph" else torch.eye(len(own)).repeat(2, 2)
    edges = (adjacency + joined).clamp_max(1)
    softmax = instance_loss(rows, change.get("temperature", 0.1), change.get("eta", 10.0), change.get("form", "both"),
                            "one_sided" in change, excluded)
    parts = {"latent loss": softmax / 2 if "form" in change else softmax,  # m summands among 2m rows
             "reconstruction": reconstruction_loss(target, objective.decoder(noisy)),
             "structure": structure_loss(noisy, edges), "divergence": divergence(rows, log_sigma)}
    parts = {name: value for name, value in parts.items() if change.get(name) is not False}
    factors = {"structure": change.get("weight", 0.1), "divergence": change.get("weight", 0.1)}
    total = torch.stack([factors.get(name, 1.0) * value for name, value in parts.items()]).sum()
    for name, value in (parts | {"loss": total}).items():
        assert epoch.losses[name] == pytest.approx(value.item(), rel=1e-5)
    assert not {"reconstruction", "structure", "divergence"} & set(epoch.losses) - set(parts)
    total.backward()
    for name, parameter in {"network.weight": weight, "objective.layer": objective.layer,
                            "objective.log_sigma.weight": objective.log_sigma.weight}.items():
        gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        decayed = change.get("weight_decay", 5e-4) if parameter.grad is not None else 0.0
        stepped = parameter - 0.05 * (gradient + decayed * parameter)
        torch.testing.assert_close(epoch.state[name], stepped.detach(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("schedule", ["constant", "steps"])
def test_the_second_step_adds_momentum_to_its_own_gradient_at_the_scheduled_rate(schedule: Any) -> None:
    """Compute two steps of SGD: v ← ½v + gradient + decay·w, w ← w − rate·v; a hundredth of the rate in epoch 2."""
    data, setting = training_setup()
    method = ISIF(dimension=16, epochs=2, batch=len(data), learning_rate=0.5, momentum=0.5, weight_decay=0.1,
                  schedule=schedule)
    *_, last = method.fit(data, setting)
    weight, velocity = first_projection(unit(data.features), 16, "pca", 0), torch.zeros(64, 16)
    for epoch, rate in ((1, 0.5), (2, 0.5 if schedule == "constant" else 0.005)):
        random = generator(setting.seed, epoch)
        views = unit(two_views(data, torch.randperm(len(data), generator=random), random))
        weight.requires_grad_()
        (gradient,) = torch.autograd.grad(instance_loss(unit(views @ weight), 0.1), weight)
        weight = weight.detach()
        velocity = velocity / 2 + gradient + 0.1 * weight
        weight = weight - rate * velocity
    torch.testing.assert_close(last.state["network.weight"], weight, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("fields", [{"eta": 1.0}, {"eta": 7.0, "form": "printed", "temperature": 0.3}], ids=str)
def test_isif_equals_pslr_without_its_latent_layer_and_further_terms(fields: dict[str, Any]) -> None:
    reduced = PSLR(**TINY | fields, latent=False, reconstruction=False, structure=False, divergence=False,
                   scale="mixed")  # the scale "mean" halves the printed form's softmax
    for isif, pslr in zip(fit_epochs(ISIF(**TINY | fields)), fit_epochs(reduced), strict=True):
        assert isif.losses["loss"] == pslr.losses["loss"]
        assert torch.equal(isif.state["network.weight"], pslr.state["network.weight"])
        assert pslr.explanations == ()


@pytest.mark.parametrize("change", [{}, {"softmax": "full"}, {"noise": 10}, {"memory": 0.9}, {"temperature": 0.2}],
                         ids=str)
def test_the_first_step_of_nce_equals_its_formula_and_the_bank_averages_old_and_new_embeddings(
        change: dict[str, Any]) -> None:
    """Compute the bank, the noise, Z of the first batch, SGD's first step, and the bank after it."""
    data, setting = training_setup()
    method = NCE(**TINY | {"epochs": 1, "batch": len(data), "noise": 50, "weight_decay": 0.0,
                           "normalizer_memory": 1.0} | change)
    first, second = (list((method.model_copy(update={"epochs": count})).fit(data, setting))[-1] for count in (1, 2))
    weight = first_projection(unit(data.features), 16, "pca", setting.seed).requires_grad_()
    bank = unit(unit(data.features) @ weight).detach()
    random = generator(setting.seed, 1)
    batch = torch.randperm(len(data), generator=random)
    embeddings = unit(unit(two_views(data, batch, random, 1)) @ weight)
    temperature, memory, count = change.get("temperature", 0.07), change.get("memory", 0.5), change.get("noise", 50)
    if "softmax" in change:
        scores = (embeddings @ bank.mT / temperature).exp()
        loss = -(scores[torch.arange(len(batch)), batch] / scores.sum(1)).log().mean()
    else:
        noise = torch.randint(len(bank), (count,), generator=random)
        own = ((embeddings * bank[batch]).sum(1, keepdim=True) / temperature).exp()
        scores = torch.cat([own, (embeddings @ bank[noise].mT / temperature).exp()], dim=1)
        z = len(bank) * scores.detach().mean()
        likely = scores / z / (scores / z + count / len(bank))
        loss = -(likely[:, 0].log() + (1 - likely[:, 1:]).log().sum(1)).mean()
        assert float(first.state["objective.log_z"]) == pytest.approx(math.log(z), rel=1e-5)
        assert torch.equal(first.state["objective.log_z"], second.state["objective.log_z"])
    assert first.losses["loss"] == pytest.approx(loss.item(), rel=1e-4)
    (gradient,) = torch.autograd.grad(loss, weight)
    torch.testing.assert_close(first.state["network.weight"], (weight - 0.05 * gradient).detach(), rtol=1e-3, atol=1e-5)
    expected = unit(memory * bank[batch] + (1 - memory) * embeddings.detach())
    torch.testing.assert_close(first.state["objective.bank"][batch], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("method", "kept"), [
    ("pslr", {"scale": "mixed", "first_log_sigma": -3.0}), ("nce", {"normalizer_memory": 1.0})])
def test_a_stored_run_of_version_0_2_keeps_its_loss(method: str, kept: dict[str, Any]) -> None:
    request = {"dataset": "digits", "backbone": "pixels", "method": method, "fields": {"dimension": 16}}
    spec = plan(RunRequest.make(request), catalog.load("digits")).model_dump(mode="json")
    for name in kept:
        del spec["fields"][name]
    stored = Spec.model_validate_json(json.dumps(spec | {"version": "0.2.0"})).fields
    assert {name: stored[name] for name in kept} == kept


def test_connected_images_are_mutual_neighbors_or_the_same_image() -> None:
    objective = _Latent(PSLR(dimension=4, graph="neighbors"), 0)
    objective._neighbors = torch.tensor([[1, 2], [0, 3], [3, 1], [2, 0]])
    connected = objective._connected(torch.tensor([0, 1, 2, 0]))
    assert connected is not None
    assert connected.tolist() == [[True, True, False, True], [True, True, False, True], [False, False, True, False],
                                  [True, True, False, True]]


def test_uncertainty_is_the_mean_sigma_of_each_image_without_augmentation() -> None:
    data, setting = training_setup()
    for epoch in fit_epochs(PSLR(**TINY)):
        (record,) = epoch.explanations
        assert isinstance(record, Uncertainty)
        rows = torch.from_numpy(Embedder(setting.encoder, epoch.embedder.head).embed_features(data.features.numpy()))
        log_sigma = rows @ epoch.state["objective.log_sigma.weight"].mT + epoch.state["objective.log_sigma.bias"]
        torch.testing.assert_close(record.sigma, log_sigma.exp().mean(1), rtol=1e-4, atol=1e-6)
        assert record.sigma.std() > 0


def test_both_x_and_z_can_be_the_embedding_and_be_stored(tmp_path: Any) -> None:
    data, setting = training_setup()
    epoch = fit_epochs(PSLR(**TINY))[-1]
    head = epoch.embedder.head
    assert isinstance(head, LatentHead)
    rows = data.features[:5]
    z = latent(head(rows), epoch.state["objective.layer"])
    torch.testing.assert_close(head.latent_of(head(rows)), z)
    shown = fit_epochs(PSLR(**TINY, embeds="latent"))[-1].embedder.head
    torch.testing.assert_close(shown(rows), z)
    Embedder(setting.encoder, shown).save(tmp_path / "z.safetensors")
    torch.testing.assert_close(Embedder.load(tmp_path / "z.safetensors").head(rows), z)


@pytest.mark.parametrize("kind", [PSLR, ISIF, NCE])
def test_a_batch_in_parts_gives_the_gradient_of_the_whole_batch(kind: type[InstanceMethod]) -> None:
    fields = {"dimension": 8, "epochs": 1, "batch": 100, "trains": "all", "learning_rate": 0.01}
    whole, parts = (fit_epochs(kind.make(fields | {"parts": count}), "cnn")[-1] for count in (1, 3))
    assert parts.losses["loss"] == pytest.approx(whole.losses["loss"], rel=1e-4)
    for name, value in whole.state.items():
        torch.testing.assert_close(parts.state[name], value, rtol=1e-3, atol=1e-4, msg=name)


def test_batch_normalization_updates_its_statistics_once_for_each_part() -> None:
    data, setting = training_setup("cnn")
    method = ISIF(dimension=8, epochs=1, batch=len(data), trains="all", batch_norm="batch", parts=2)
    (epoch,) = method.fit(data, setting)
    random = generator(setting.seed, 1)
    images = data.images(torch.randperm(len(data), generator=random))
    expected = copy.deepcopy(setting.encoder)
    expected.train()
    with torch.no_grad():
        for part in random_views(images, 2, random, CROPS).chunk(2):
            expected(part)
    for name, value in expected.network.named_buffers():
        torch.testing.assert_close(epoch.state[f"network.encoder.network.{name}"], value)


@pytest.mark.parametrize("parts", [1, 3])
def test_dropout_is_inactive_so_that_an_epoch_depends_on_the_seed_alone(parts: int) -> None:
    data, setting = training_setup("cnn")
    encoder = copy.deepcopy(setting.encoder)
    encoder.network = nn.Sequential(encoder.network, nn.Dropout(0.5))
    method = ISIF(dimension=8, epochs=1, batch=150, trains="all", batch_norm="batch", parts=parts)
    epochs: list[Epoch] = []
    for global_seed in (1, 2):
        torch.manual_seed(global_seed)
        epochs += method.fit(data, replace(setting, encoder=encoder))
    assert epochs[0].losses == epochs[1].losses
    assert all(torch.equal(epochs[0].state[name], value) for name, value in epochs[1].state.items())


def test_the_learning_rate_falls_as_in_the_paper() -> None:
    method = PSLR(epochs=200, learning_rate=0.03, schedule="steps")
    rates = [method.rate(epoch) for epoch in (1, 120, 121, 160, 161, 200)]
    assert rates == pytest.approx([0.03, 0.03, 0.003, 0.003, 0.0003, 0.0003])
    assert PSLR(epochs=200).rate(200) == PSLR().learning_rate


def test_half_a_cosine_begins_at_the_learning_rate_and_ends_near_0() -> None:
    method = ISIF(epochs=4, learning_rate=0.2, schedule="cosine")
    rates = [method.rate(epoch) for epoch in (1, 2, 3, 4)]
    assert rates == pytest.approx([0.2, 0.1 * (1 + math.sqrt(0.5)), 0.1, 0.1 * (1 - math.sqrt(0.5))])


@pytest.mark.parametrize(("method", "message"), [
    (PSLR(dimension=100), "PSLR.dimension must be at most the features' dimension 64, got 100"),
    (ISIF(dimension=16, trains="all"), "The backbone 'pixels' has nothing to train. Set the field 'trains'"),
    (PSLR(dimension=16, latent=False, embeds="latent"), "PSLR.embeds must be 'instance' if there is no latent"),
    (PSLR(dimension=16, graph="neighbors", batch=4), "PSLR.n_neighbors must be below the images in a batch, 4, got 4"),
])
def test_impossible_fields_are_rejected_with_the_field_to_change(method: Method, message: str) -> None:
    with pytest.raises(UserError, match=message):
        fit_epochs(method)
