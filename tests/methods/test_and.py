"""AND: the curriculum, the neighborhoods, and training of the encoder by its formulas, step by step."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from tests.methods.golden_instance import (
    BATCH,
    FIELDS,
    IMAGES,
    Model,
    all_images,
    assert_same_training,
    double_precision,
    literal_epochs,
    small_images,
    unit,
)
from tests.methods.test_instance_methods import fit_epochs
from udml_core.base.errors import UserError
from udml_core.methods.anchor_neighborhoods import AND, discovery_loss, entropies
from udml_core.methods.nce import NCE
from udml_core.numerics.sampling import generator

TAU, KEPT, NEIGHBORS = 0.3, 0.8, 2


def bank_of(count: int, seed: int = 0) -> Tensor:
    return unit(torch.randn(count, 4, generator=generator(seed, 0), dtype=torch.float64))


@pytest.mark.parametrize(("rounds", "anchors", "rates"), [
    (1, [0, None, None], [0.05, 0.05, 0.0005]),  # 0, 1/3 and 2/3 of the only round have passed
    (2, [0, None, IMAGES], [0.05, 0.0005, 0.05]),  # 0 and 2/3 of the first round, 1/3 of the second
    (3, [0, IMAGES // 2, IMAGES], [0.05, 0.05, 0.05])])
@double_precision()
def test_training_equals_the_literal_loop(rounds: int, anchors: list[int | None], rates: list[float]) -> None:
    """Compute neighborhoods, entropies, loss and bank in loops.

    `anchors` has their number in each epoch that begins a round, else None.
    """
    data, setting = small_images()
    method = AND.make(FIELDS | {"temperature": TAU, "memory": KEPT, "neighbors": NEIGHBORS, "rounds": rounds,
                                "batch_norm": "batch"})
    model, images = Model.begin(method, data, setting), all_images(data)
    bank = model.embed(images, by_batch=False).detach()
    calls, known = 0, {"neighbors": torch.zeros(0), "anchored": torch.zeros(0)}

    def discover(count: int) -> None:
        similar = bank @ bank.mT
        probable = torch.exp(similar / TAU) / torch.exp(similar / TAU).sum(1, keepdim=True)
        entropy = [-sum(float(p) * math.log(p) for p in row) for row in probable]
        certain = sorted(range(IMAGES), key=lambda image: entropy[image])[:count]
        known["anchored"] = torch.tensor([image in certain for image in range(IMAGES)])
        known["neighbors"] = similar.fill_diagonal_(-1).argsort(1, descending=True)[:, :NEIGHBORS]

    def loss(x: Tensor, batch: Tensor, random: torch.Generator) -> Tensor:
        nonlocal calls
        epoch, number = divmod(calls, 2)
        count = anchors[epoch]
        if number == 0 and count is not None:
            discover(count)
        calls += 1
        total = torch.zeros(())
        for row, image in zip(x, batch.tolist(), strict=True):
            similar = torch.exp(bank @ row / TAU)
            members = [image, *known["neighbors"][image].tolist()] if known["anchored"][image] else [image]
            total = total - torch.log(similar[members].sum() / similar.sum())
        return total / BATCH

    def remember(x: Tensor, batch: Tensor) -> None:
        for row, image in zip(x, batch.tolist(), strict=True):
            bank[image] = unit((KEPT * bank[image] + (1 - KEPT) * row)[None])[0]

    literal = literal_epochs(model, images, loss, views=1, by_batch=True, remember=remember, rates=rates)
    assert_same_training(method, data, setting, model, literal,
                         lambda: {"objective.bank": bank, "objective.epoch": torch.tensor(calls // 2),
                                  **{f"objective.{name}": value for name, value in known.items()}})


def test_the_paper_begins_without_neighborhoods_and_ends_with_all() -> None:
    method = AND(epochs=1000, rounds=5, learning_rate=0.03, schedule="steps")
    assert [method.anchors(epoch, 50_000) for epoch in (1, 200, 201, 401, 601, 801, 1000)] == [
        0, 0, 12_500, 25_000, 37_500, 50_000, 50_000]
    rates = [method.rate(epoch) for epoch in (1, 80, 81, 121, 161, 200, 201, 281)]
    assert rates == pytest.approx([0.03, 0.03, 0.003, 0.0003, 0.00003, 0.00003, 0.03, 0.003])
    assert AND(epochs=1000).rate(900) == AND().learning_rate


@pytest.mark.parametrize(("epochs", "shares"), [
    (1, [0.0]), (2, [0.0, 1.0]), (3, [0.0, 0.5, 1.0]), (6, [0.0, 0.0, 0.25, 0.5, 0.75, 1.0])])
def test_fewer_epochs_than_rounds_end_with_all_images_as_well(epochs: int, shares: list[float]) -> None:
    method = AND(epochs=epochs, rounds=5)
    assert [method.anchors(epoch, 100) / 100 for epoch in range(1, epochs + 1)] == shares
    assert method.round_of(0) < 0 <= method.round_of(1), "the first epoch discovers"


def test_an_image_in_a_dense_region_has_more_entropy_than_an_image_alone() -> None:
    """Without any structure, the entropy is that of the uniform distribution, log n."""
    assert entropies(torch.ones(7, 1, dtype=torch.float64), 0.1).tolist() == pytest.approx([math.log(7)] * 7)
    crowd = unit(torch.tensor([[1.0, 0.0], [1.0, 0.1], [1.0, -0.1], [-1.0, 0.0]]))
    values = entropies(crowd, 0.1)
    assert values.argmin() == 3
    assert values[3] < 0.01 < values[0]


def test_the_entropies_of_a_large_bank_do_not_depend_on_its_parts() -> None:
    bank = bank_of(1030)
    probable = (bank @ bank.mT / 0.2).softmax(1)
    torch.testing.assert_close(entropies(bank, 0.2), -(probable * probable.log()).sum(1))


def test_a_neighborhood_of_all_images_costs_nothing_and_a_neighbor_never_costs_more() -> None:
    bank, own = bank_of(6), torch.arange(6)
    views = bank_of(6, seed=1)
    others = torch.tensor([[j for j in range(6) if j != i] for i in range(6)])
    alone, one, whole = (float(discovery_loss(views, bank, own, others[:, :k], torch.full((6,), k > 0), 0.1))
                         for k in (0, 1, 5))
    assert whole == pytest.approx(0, abs=1e-12)
    assert 0 < one < alone
    none = discovery_loss(views, bank, own, others, torch.zeros(6, dtype=torch.bool), 0.1)
    assert float(none) == pytest.approx(alone)


def test_small_temperatures_do_not_overflow() -> None:
    bank, own = bank_of(5).float(), torch.arange(5)
    value = discovery_loss(bank, bank, own, own.roll(1)[:, None], torch.ones(5, dtype=torch.bool), 1e-3)
    assert value.isfinite()


def test_one_round_equals_npsoftmax() -> None:
    fields = {"dimension": 16, "epochs": 2, "learning_rate": 0.05, "temperature": 0.07}
    for ours, theirs in zip(fit_epochs(AND(**fields, rounds=1)), fit_epochs(NCE(**fields, softmax="full")),
                            strict=True):
        assert ours.losses["loss"] == pytest.approx(theirs.losses["loss"], rel=1e-5)
        torch.testing.assert_close(ours.state["network.weight"], theirs.state["network.weight"], rtol=1e-4, atol=1e-6)


def test_without_a_learning_rate_only_the_bank_and_the_neighborhoods_change() -> None:
    first, *_, last = fit_epochs(AND(dimension=16, epochs=3, rounds=3, learning_rate=0.0))
    assert torch.equal(first.state["network.weight"], last.state["network.weight"])
    assert [epoch.losses["anchors"] for epoch in (first, last)] == [0, 1]


def test_more_neighbors_than_images_are_rejected() -> None:
    with pytest.raises(UserError, match=r"AND\.neighbors must be below the number of training images 5, got 5"):
        AND(neighbors=5, dimension=2).check(5, None)
