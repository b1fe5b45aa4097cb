"""SSDML's baselines with an encoder: their pairs, and a step by hand."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.methods.test_ssdml import training_setup
from udml_core.methods import find_method
from udml_core.methods.embedder import unit
from udml_core.methods.shared import pair_metric
from udml_core.numerics.losses.mahalanobis import LabeledPairs, labeled_pairs
from udml_core.numerics.sampling import generator, weighted_edges

DEEP: dict[str, Any] = {"trains": "all", "partition": 0, "partition_epochs": 2, "epochs": 2, "batch": 300}


def test_pairs_of_few_labels_are_enumerated_and_pairs_of_many_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = torch.arange(60) % 4 - 1
    every = labeled_pairs(labels)
    assert [{*map(tuple, part.tolist())} for part in pair_metric.some_pairs(labels, 10_000, generator(0, 0))] == [
        {*map(tuple, part.tolist())} for part in every]
    assert [len(part) for part in pair_metric.some_pairs(labels, 70, generator(0, 0))] == [70, 70]
    monkeypatch.setattr(pair_metric, "LISTED", len(every.similar) + len(every.dissimilar) - 1)
    monkeypatch.setattr(pair_metric, "labeled_pairs", lambda _labels: pytest.fail("18 million pairs of 6,000 labels"))
    for count in (labels, torch.arange(6000) % 10):
        drawn = pair_metric.some_pairs(count, 70, generator(0, 0))
        assert [part.shape for part in drawn] == [(70, 2), (70, 2)]
        assert _kinds(count, drawn) == [True, False]
        assert (count[torch.cat(drawn)] >= 0).all()
        assert (drawn.similar[:, 0] != drawn.similar[:, 1]).all()
        again = pair_metric.some_pairs(count, 70, generator(0, 0))
        assert all(torch.equal(*parts) for parts in zip(drawn, again, strict=True))


def test_seraph_pairs_every_image_with_others_and_never_with_itself() -> None:
    features, labels = torch.randn(6, 2), torch.zeros(6, dtype=torch.long)
    seraph = find_method("seraph").make({"n_neighbors": 5})
    drawn = torch.cat([seraph.build_graph(features, labels, generator(0, seed)).neighbors for seed in range(20)], dim=1)
    assert drawn.shape == (6, 100)
    for image, others in enumerate(drawn.tolist()):
        assert set(others) == set(range(6)) - {image}


def _kinds(labels: Tensor, pairs: LabeledPairs) -> list[bool]:
    """Return for each part whether its pairs share a label.

    All pairs of a part share a label, or none does.
    """
    same = [labels[part[:, 0]] == labels[part[:, 1]] for part in pairs]
    assert all(part.all() or not part.any() for part in same)
    return [bool(part.all()) for part in same]


@pytest.mark.parametrize("name", ["lrml", "seraph"])
def test_a_resumed_run_equals_a_whole_run_with_sampled_pairs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_metric, "LISTED", 0)
    monkeypatch.setattr(pair_metric, "labeled_pairs", lambda _labels: pytest.fail("the pairs must be sampled"))
    method = find_method(name).make(DEEP | ({"steps": 5} if name == "seraph" else {}))
    first, second = method.fit(*training_setup("cnn"))
    (resumed,) = method.fit(*training_setup("cnn"), first.state)
    assert resumed.losses == second.losses
    assert all(torch.equal(value, resumed.state[key]) for key, value in second.state.items())


WEIGHTS = {"weight_similar": 2.0, "weight_dissimilar": 0.5, "weight_edges": 3.0}


@pytest.mark.parametrize(("name", "rate", "fields"), [
    ("lrml", 0.1, WEIGHTS), ("apllr", 1e-5, WEIGHTS),  # APLLR's metric is large
    ("seraph", 0.1, {"threshold": 0.9, "weight_unlabeled": 0.7, "steps": 5})])
def test_a_step_of_the_network_follows_the_gradient_of_its_objective(
        name: str, rate: float, fields: dict[str, Any]) -> None:
    """Compute the second epoch as one batch without momentum: θ − rate·gradient.

    The second epoch learns no metric.
    """
    data, setting = training_setup("cnn")
    method = find_method(name).make(DEEP | fields | {
        "batch": 2000, "momentum": 0.0, "learning_rate": rate, "batch_norm": "statistics"})
    first, second = method.fit(data, setting)
    random = generator(setting.seed, 2)
    others, counts = weighted_edges(first.state["neighbors"], first.state["weights"], random)
    labeled = pair_metric.some_pairs(data.labels, pair_metric.MOST_PAIRS, random)
    torch.randperm(len(data), generator=random)  # draws the order of the edges, which are all in one batch
    drawn = [pairs[torch.randint(len(pairs), (2000,), generator=random)] for pairs in labeled]
    encoder = deepcopy(first.embedder.encoder)
    mapped = unit(encoder(data.images(torch.arange(len(data))))) @ first.state["root"]
    similar, dissimilar, edges = (
        (mapped[pairs[:, 0]] - mapped[pairs[:, 1]]).square().sum(1)
        for pairs in (*drawn, torch.stack([torch.arange(len(data)), others], dim=1)))
    if name == "seraph":
        likelihood = torch.cat([1 / (1 + (similar - 0.9).exp()), 1 / (1 + (0.9 - dissimilar).exp())])
        similar_edge = 1 / (1 + (edges - 0.9).exp())
        loss = (-likelihood.log().mean()
                - 0.7 * (similar_edge * similar_edge.log() + (1 - similar_edge) * (1 - similar_edge).log()).mean())
    else:
        loss = (2 * similar.mean() - float(first.state["dissimilar"]) * dissimilar.mean()
                + 3 * (counts * edges).mean())
    assert second.losses["loss"] == pytest.approx(loss.item(), rel=1e-4)
    loss.backward()
    for key, weight in encoder.named_parameters():
        assert weight.grad is not None
        assert weight.grad.any()
        torch.testing.assert_close(second.state[f"encoder.{key}"], weight.detach() - rate * weight.grad,
                                   rtol=1e-6, atol=5e-3 * rate * float(weight.grad.abs().max()))
