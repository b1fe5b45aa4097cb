"""The baselines of SSDML with an encoder: what they draw, and their first steps written out."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.methods.test_ssdml import given
from udml_core.losses.mahalanobis import Pairs, labeled_pairs
from udml_core.methods import find_method
from udml_core.methods.embedder import unit
from udml_core.methods.shared import pair_metric as semi
from udml_core.sampling import generator, weighted_edges

DEEP: dict[str, Any] = {"trains": "encoder", "partition": 0, "partition_epochs": 2, "epochs": 2, "batch": 300}


def test_of_few_labels_the_pairs_are_listed_and_of_many_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = torch.arange(60) % 4 - 1
    every = labeled_pairs(labels)
    assert [{*map(tuple, part.tolist())} for part in semi.some_pairs(labels, 10_000, generator(0, 0))] == [
        {*map(tuple, part.tolist())} for part in every]
    assert [len(part) for part in semi.some_pairs(labels, 70, generator(0, 0))] == [70, 70]
    monkeypatch.setattr(semi, "LISTED", len(every.similar) + len(every.dissimilar) - 1)
    monkeypatch.setattr(semi, "labeled_pairs", lambda _labels: pytest.fail("18 million pairs of 6,000 labels"))
    for count in (labels, torch.arange(6000) % 10):
        drawn = semi.some_pairs(count, 70, generator(0, 0))
        assert [part.shape for part in drawn] == [(70, 2), (70, 2)]
        assert _kinds(count, drawn) == [True, False]
        assert (count[torch.cat(drawn)] >= 0).all()
        assert (drawn.similar[:, 0] != drawn.similar[:, 1]).all()
        assert all(torch.equal(*pair) for pair in zip(drawn, semi.some_pairs(count, 70, generator(0, 0)), strict=True))


def _kinds(labels: Tensor, pairs: Pairs) -> list[bool]:
    """Of each part whether its pairs share a label; all do or none does."""
    same = [labels[part[:, 0]] == labels[part[:, 1]] for part in pairs]
    assert all(one.all() or not one.any() for one in same)
    return [bool(one.all()) for one in same]


@pytest.mark.parametrize("name", ["lrml", "seraph"])
def test_with_drawn_pairs_too_a_resumed_run_equals_a_whole_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(semi, "LISTED", 0)
    monkeypatch.setattr(semi, "labeled_pairs", lambda _labels: pytest.fail("they are not to be listed"))
    method = find_method(name).make(DEEP)
    first, second = method.fit(*given("cnn"))
    (resumed,) = method.fit(*given("cnn"), first.state)
    assert resumed.losses == second.losses
    assert all(torch.equal(value, resumed.state[key]) for key, value in second.state.items())


WEIGHTS = {"weight_similar": 2.0, "weight_dissimilar": 0.5, "weight_edges": 3.0}


@pytest.mark.parametrize(("name", "rate", "fields"), [
    ("lrml", 0.1, WEIGHTS), ("apllr", 1e-5, WEIGHTS),  # whose metric is large
    ("seraph", 0.1, {"threshold": 0.9, "weight_unlabeled": 0.7, "steps": 5})])
def test_a_step_of_the_network_is_that_of_its_objective_written_out(
        name: str, rate: float, fields: dict[str, Any]) -> None:
    """The second epoch, which learns no metric, in one batch, without momentum: ← − rate · gradient."""
    data, setting = given("cnn")
    method = find_method(name).make(DEEP | fields | {"batch": 2000, "momentum": 0.0, "learning_rate": rate})
    first, second = method.fit(data, setting)
    random = generator(setting.seed, 2)
    others, counts = weighted_edges(first.state["neighbors"], first.state["weights"], random)
    known = semi.some_pairs(data.labels, semi.MOST_PAIRS, random)
    torch.randperm(len(data), generator=random)  # the order of edges, which are all in one batch
    drawn = [one[torch.randint(len(one), (2000,), generator=random)] for one in known]
    encoder = deepcopy(first.embedder.encoder)
    mapped = unit(encoder(data.images(torch.arange(len(data))))) @ first.state["root"]
    similar, dissimilar, edges = (
        (mapped[one[:, 0]] - mapped[one[:, 1]]).square().sum(1)
        for one in (*drawn, torch.stack([torch.arange(len(data)), others], dim=1)))
    if name == "seraph":
        rightly = torch.cat([1 / (1 + (similar - 0.9).exp()), 1 / (1 + (0.9 - dissimilar).exp())])
        chance = 1 / (1 + (edges - 0.9).exp())
        loss = (-rightly.log().mean()
                - 0.7 * (chance * chance.log() + (1 - chance) * (1 - chance).log()).mean())
    else:
        loss = (2 * similar.mean() - float(first.state["dissimilar"]) * dissimilar.mean()
                + 3 * (counts * edges).mean())
    assert second.losses["loss"] == pytest.approx(loss.item(), rel=1e-4)
    loss.backward()
    for key, one in encoder.named_parameters():
        assert one.grad is not None
        assert one.grad.any()
        torch.testing.assert_close(second.state[f"encoder.{key}"], one.detach() - rate * one.grad,
                                   rtol=1e-6, atol=5e-3 * rate * float(one.grad.abs().max()))
