"""RPML and sRPML: what they draw, what they follow, and what they leave alone."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from udml_core.arrays import Array
from udml_core.backbones import Encoder, choose_spec
from udml_core.data import catalog
from udml_core.data.features import embed_pixels, pixels_of
from udml_core.data.splits import make_split
from udml_core.data.training import TrainingData, training_data
from udml_core.errors import UserError
from udml_core.evaluation import effective_rank
from udml_core.explanations import Clusters, Triplets
from udml_core.graph import AuthorityShift
from udml_core.losses.angular import angular_argument, bilinear_weight, concatenated_weight, tightness
from udml_core.methods import RPML, SRPML, Epoch, Method, Setting

CPU = torch.device("cpu")
IMAGES = 300
TINY = {"dimension": 8, "epochs": 3, "epsilon": 0.5, "n_neighbors": 20}
DEEP = SRPML(dimension=8, epochs=3, batch=60, steps=1, epsilon=0.3, n_neighbors=20, learning_rate=0.05)


@cache
def given(backbone: str = "pixels") -> tuple[TrainingData, Encoder, Array]:
    """300 digits of the classes 0–4: features, encoder, and prepared images."""
    dataset = catalog.load("digits")
    encoder = Encoder(choose_spec(backbone, dataset.native_size, dataset.gray))
    pixels = np.array(pixels_of(dataset, encoder))
    train = make_split(dataset, "zero-shot").train[:IMAGES]
    features = embed_pixels(encoder, pixels)
    return training_data(features, None, train, "none", pixels), encoder, pixels[train]


def fitted(method: Method, backbone: str = "pixels", seed: int = 0, start: Any = None) -> list[Epoch]:
    data, encoder, _ = given(backbone)
    return list(method.fit(data, Setting(seed, CPU, encoder), start))


def rows() -> Tensor:
    return torch.nn.functional.normalize(given()[0].features, dim=1)


@pytest.mark.parametrize("make", [RPML, SRPML])
def test_the_pseudo_labels_are_authority_shifts_and_come_once(make: type[Method]) -> None:
    first, *rest = fitted(make(**TINY))
    clusters = next(one for one in first.explanations if isinstance(one, Clusters))
    reference = AuthorityShift(n_neighbors=20, epsilon=0.5, gamma=100.0).fit(rows().numpy())
    np.testing.assert_array_equal(clusters.labels.numpy(), reference.labels_)
    np.testing.assert_array_equal(clusters.parents.numpy(), reference.parents_)
    assert all(not isinstance(one, Clusters) for epoch in rest for one in epoch.explanations)
    assert all(torch.equal(epoch.state["labels"], clusters.labels) for epoch in rest)


@pytest.mark.parametrize("weight", ["bilinear", "concatenated"])
@pytest.mark.parametrize("make", [RPML, SRPML])
def test_each_epoch_shows_the_triplets_that_it_used_with_their_z_and_w(make: type[Method], weight: str) -> None:
    epochs = fitted(make(**TINY, weight=weight, alpha=40.0))
    for epoch in epochs:
        shown = next(one for one in epoch.explanations if isinstance(one, Triplets))
        labels = epoch.state["labels"]
        assert (labels[shown.anchor] == labels[shown.positive]).all()
        assert (labels[shown.anchor] != labels[shown.negative]).all()
        assert ((shown.weight > 0) & (shown.weight < 1)).all()
        if make is RPML:  # sRPML's are of each batch's own moment
            parts = [rows()[index] for index in (shown.anchor, shown.positive, shown.negative)]
            argument = angular_argument(*(part @ epoch.state["projection"] for part in parts), 40.0)
            torch.testing.assert_close(shown.argument, argument, rtol=1e-3, atol=1e-4)
            parameter = epoch.state["parameter"]
            expected = (bilinear_weight(*(part @ parameter for part in parts)) if weight == "bilinear"
                        else concatenated_weight(*parts, parameter))
            torch.testing.assert_close(shown.weight, expected, rtol=1e-3, atol=1e-5)
            assert epoch.losses["mean weight"] == pytest.approx(float(expected.mean()), abs=1e-5)
            assert epoch.losses["violating"] == pytest.approx(float((argument > 0).float().mean()), abs=1e-3)
    first, second = (next(one for one in epoch.explanations if isinstance(one, Triplets)) for epoch in epochs[:2])
    assert not torch.equal(first.negative, second.negative), "triplets are drawn afresh in each pass"


@pytest.mark.parametrize("weight", ["bilinear", "concatenated"])
@pytest.mark.parametrize("make", [RPML, SRPML])
def test_what_is_kept_of_a_triplet_makes_up_its_z_weight_and_loss(make: type[Method], weight: str) -> None:
    for epoch in fitted(make(**TINY, weight=weight, alpha=40.0)):
        shown = next(one for one in epoch.explanations if isinstance(one, Triplets))
        kappa = tightness(40.0)
        torch.testing.assert_close(shown.near - kappa * shown.far, shown.argument, rtol=1e-4, atol=1e-5)
        to_positive = 2 * shown.far + shown.near / 2 - shown.side  # the median's length gives the third side
        assert (to_positive > -1e-4).all()
        sides = [part.clamp_min(0).sqrt() for part in (shown.near, shown.side, to_positive)]
        assert all((sides[one] <= sides[one - 1] + sides[one - 2] + 1e-3).all() for one in range(3))
        softplus = torch.nn.functional.softplus
        torch.testing.assert_close(softplus(shown.weight * softplus(shown.argument)), shown.loss, rtol=1e-5, atol=1e-6)
        if make is RPML:  # sRPML's curve is the mean over batches, which may differ in size
            assert epoch.losses["loss"] == pytest.approx(float(shown.loss.mean()), rel=1e-5)
        if weight == "bilinear":
            torch.testing.assert_close((shown.similar + shown.dissimilar) / 2, shown.weight)
        else:
            assert shown.similar.isnan().all()
            assert shown.dissimilar.isnan().all()


@pytest.mark.parametrize("method", [RPML(**TINY), SRPML(**TINY)], ids=lambda one: one.card.name)
def test_the_projection_stays_orthonormal_and_the_loss_falls(method: Method) -> None:
    epochs = fitted(method)
    for epoch in epochs:
        projection = epoch.state["projection"].double()
        torch.testing.assert_close(projection.mT @ projection, torch.eye(8, dtype=torch.float64), atol=1e-5, rtol=0)
    assert epochs[-1].losses["loss"] < epochs[0].losses["loss"]


@pytest.mark.parametrize("method", [RPML(**TINY), SRPML(**TINY), DEEP], ids=["rpml", "srpml", "srpml-cnn"])
def test_what_was_yielded_stays_as_it_was_while_training_goes_on(method: Method) -> None:
    backbone = "cnn" if method is DEEP else "pixels"
    data, encoder, pixels = given(backbone)
    kept = []
    for epoch in method.fit(data, Setting(0, CPU, encoder)):
        state = {name: value.clone() for name, value in epoch.state.items()}
        kept.append((epoch, state, embed_pixels(epoch.embedder.eval(), pixels[:50])))
    assert len(kept) == 3
    for epoch, state, embedded in kept:
        assert all(torch.equal(epoch.state[name], value) for name, value in state.items())
        np.testing.assert_array_equal(embed_pixels(epoch.embedder.eval(), pixels[:50]), embedded)
    assert not np.array_equal(kept[0][2], kept[-1][2])


def test_both_starts_are_what_they_say() -> None:
    data, encoder, _ = given()
    for beginning, is_pca in (("random", False), ("pca", True)):
        method = RPML(**TINY, beginning=beginning)  # type: ignore[arg-type]
        head = method.initial(data, Setting(0, CPU, encoder)).head
        assert head.weight is not None
        _, _, principal = torch.linalg.svd(rows().double(), full_matrices=False)
        basis = principal[:8].mT.float()
        kept = float((basis.mT @ head.weight).square().sum())
        assert (kept == pytest.approx(8, abs=1e-3)) == is_pca
        again = method.initial(data, Setting(0, CPU, encoder)).head.weight
        assert torch.equal(head.weight, torch.as_tensor(again))


@pytest.mark.parametrize(("fields", "message"), [
    ({"epsilon": 1.0}, "left each of the 300 images alone at ε=1.*Lower the field 'epsilon'"),
    ({"epsilon": 0.0, "n_neighbors": 299}, "all 300 images into one cluster at ε=0.*Raise the field 'epsilon'"),
    ({"dimension": 65}, "dimension must be at most the features' width 64, got 65"),
])
@pytest.mark.parametrize("make", [RPML, SRPML])
def test_fields_that_leave_nothing_to_learn_are_told(make: type[Method], fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        fitted(make(**{**TINY, **fields}))


def test_more_neighbors_than_images_are_cut_to_what_there_is() -> None:
    most, beyond = (fitted(RPML(**{**TINY, "epsilon": 0.9, "n_neighbors": k})) for k in (IMAGES - 1, 500))
    assert torch.equal(most[-1].state["projection"], beyond[-1].state["projection"])


@pytest.mark.parametrize("batch_norm", ["frozen", "batch"])
def test_batch_normalization_keeps_or_follows_its_statistics(batch_norm: str) -> None:
    before = {name: value.clone() for name, value in given("cnn")[1].state_dict().items() if "running" in name}
    assert before
    *_, last = fitted(DEEP.model_copy(update={"batch_norm": batch_norm, "epochs": 1}), "cnn")
    after = last.embedder.encoder.state_dict()
    stayed = all(torch.equal(after[name], value) for name, value in before.items())
    assert stayed == (batch_norm == "frozen")
    assert not last.embedder.encoder.training


def test_momentum_is_part_of_the_state() -> None:
    """A state without it goes on differently, so a resumed run needs it."""
    first, *rest = fitted(DEEP, "cnn")
    assert sum(name.startswith("optimizer.") for name in first.state) == sum(
        1 for _ in given("cnn")[1].network.parameters())
    forgetful = {name: value for name, value in first.state.items() if not name.startswith("optimizer.")}
    resumed = fitted(DEEP, "cnn", start=forgetful)
    assert [epoch.number for epoch in resumed] == [2, 3]
    assert not torch.equal(resumed[-1].state["projection"], rest[-1].state["projection"])


def test_a_finished_state_has_nothing_left_to_do() -> None:
    for method, backbone in ((RPML(**TINY), "pixels"), (DEEP, "cnn")):
        assert fitted(method, backbone, start=fitted(method, backbone)[-1].state) == []


def test_progress_is_told_from_zero_to_one_in_each_epoch() -> None:
    for method in (RPML(**TINY), SRPML(**TINY)):
        data, encoder, _ = given()
        shares: list[float] = []
        for _ in method.fit(data, Setting(0, CPU, encoder, shares.append)):
            assert shares == sorted(shares)
            assert shares[0] > 0
            assert shares[-1] == pytest.approx(1.0)
            del shares[:]


def test_the_embedding_does_not_collapse_with_the_bilinear_weight() -> None:
    *_, last = fitted(RPML(**{**TINY, "epochs": 10}))
    embedded = last.embedder.embed_features(given()[0].features.numpy())
    assert effective_rank(embedded) > 3
    assert last.losses["mean weight"] > 0.1
