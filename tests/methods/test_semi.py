"""The baselines of SSDML with an encoder: what they draw, and their first steps written out."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.methods.test_ssdml import given
from udml_core.losses.metrics import Pairs, labeled_pairs
from udml_core.methods import find_method, semi
from udml_core.sampling import generator

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
