"""RPML and sRPML: pseudo-labels, triplets, projection, state and rejected fields."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.encoders import Encoder, choose_spec
from udml_core.data.features import pixels_of
from udml_core.data.inference import embed_pixels
from udml_core.data.splits import make_split
from udml_core.data.training_data import TrainingData, training_data
from udml_core.methods import Epoch, Method, Setting
from udml_core.methods.isif import ISIF
from udml_core.methods.plm import PLM
from udml_core.methods.rpml import RPML, SRPML
from udml_core.numerics.evaluation import effective_rank
from udml_core.numerics.explanations import Clusters, Triplets
from udml_core.numerics.geometry import ConjugateGradient, Euclidean, Grassmann, Point, Product
from udml_core.numerics.graph import AuthorityShift
from udml_core.numerics.losses.angular import (
    WeightedAngular,
    angular_argument,
    bilinear_weight,
    concatenated_weight,
    tightness,
)
from udml_core.numerics.sampling import cluster_triplets, generator

CPU = torch.device("cpu")
IMAGES = 300
TINY = {"dimension": 8, "epochs": 3, "epsilon": 0.5, "n_neighbors": 20}
DEEP = SRPML(dimension=8, epochs=3, batch=60, steps=1, epsilon=0.3, n_neighbors=20, learning_rate=0.05,
             batch_norm="statistics")


@cache
def training_half(backbone: str = "pixels") -> tuple[TrainingData, Encoder, Array]:
    """Return 300 digits of the classes 0–4, the encoder, and the prepared images."""
    dataset = catalog.load("digits")
    encoder = Encoder(choose_spec(backbone, dataset.native_size, dataset.gray))
    pixels = np.array(pixels_of(dataset, encoder))
    train = make_split(dataset, "zero-shot").train[:IMAGES]
    features = embed_pixels(encoder, pixels)
    return training_data(features, None, train, "none", pixels), encoder, pixels[train]


def fit_epochs(method: Method, backbone: str = "pixels", seed: int = 0, start: Any = None) -> list[Epoch]:
    data, encoder, _ = training_half(backbone)
    return list(method.fit(data, Setting(seed, CPU, encoder), start))


def triplets_of(epoch: Epoch) -> Triplets:
    return next(record for record in epoch.explanations if isinstance(record, Triplets))


def unit_rows() -> Tensor:
    return torch.nn.functional.normalize(training_half()[0].features, dim=1)


@pytest.mark.parametrize("make", [RPML, SRPML])
def test_pseudo_labels_come_from_authority_ascent_in_the_first_epoch_only(make: type[Method]) -> None:
    first, *rest = fit_epochs(make(**TINY))
    clusters = next(record for record in first.explanations if isinstance(record, Clusters))
    reference = AuthorityShift(n_neighbors=20, epsilon=0.5, gamma=100.0).fit(unit_rows().numpy())
    np.testing.assert_array_equal(clusters.labels.numpy(), reference.labels_)
    np.testing.assert_array_equal(clusters.parents.numpy(), reference.parents_)
    assert all(not isinstance(record, Clusters) for epoch in rest for record in epoch.explanations)
    assert all(torch.equal(epoch.state["labels"], clusters.labels) for epoch in rest)


@pytest.mark.parametrize("weight", ["bilinear", "concatenated"])
@pytest.mark.parametrize("make", [RPML, SRPML])
def test_each_epoch_explains_its_triplets_with_their_argument_and_weight(make: type[Method], weight: str) -> None:
    epochs = fit_epochs(make(**TINY, weight=weight, alpha=40.0))
    for epoch in epochs:
        shown = triplets_of(epoch)
        labels = epoch.state["labels"]
        assert (labels[shown.anchor] == labels[shown.positive]).all()
        assert (labels[shown.anchor] != labels[shown.negative]).all()
        assert ((shown.weight > 0) & (shown.weight < 1)).all()
        if make is RPML:  # sRPML computes them batch by batch, with the L of that batch
            parts = [unit_rows()[index] for index in (shown.anchor, shown.positive, shown.negative)]
            argument = angular_argument(*(part @ epoch.state["projection"] for part in parts), 40.0)
            torch.testing.assert_close(shown.argument, argument, rtol=1e-3, atol=1e-4)
            parameter = epoch.state["parameter"]
            expected = (bilinear_weight(*(part @ parameter for part in parts)) if weight == "bilinear"
                        else concatenated_weight(*parts, parameter))
            torch.testing.assert_close(shown.weight, expected, rtol=1e-3, atol=1e-5)
            assert epoch.losses["mean weight"] == pytest.approx(float(expected.mean()), abs=1e-5)
            assert epoch.losses["violating"] == pytest.approx(float((argument > 0).float().mean()), abs=1e-3)
        if make is RPML:
            drawn = cluster_triplets(labels, 10, 200_000, generator(0, epoch.number))
            assert torch.equal(torch.stack([shown.anchor, shown.positive, shown.negative], dim=1), drawn)


def test_an_epoch_is_conjugate_gradient_on_its_triplets_from_the_last_point_with_the_last_step() -> None:
    method = RPML(**TINY, steps=4)
    states = [epoch.state for epoch in fit_epochs(method)]
    rows, labels = unit_rows(), states[0]["labels"]
    point: Point = (states[0]["parameter"], states[0]["projection"])
    step = float(states[0]["step"])
    assert step > 0
    for epoch, state in enumerate(states[1:], 2):
        triplets = cluster_triplets(labels, 10, 200_000, generator(0, epoch))
        objective = WeightedAngular(rows, triplets, method.alpha, method.weight)
        optimizer = ConjugateGradient(Product(Euclidean(64, 8), Grassmann(64, 8)))
        progress = optimizer.start(objective, point, step)
        for _ in range(4):
            progress = optimizer.step(objective, progress)
        point, step = progress.point, progress.step
        torch.testing.assert_close(state["parameter"], point[0], rtol=0, atol=0)
        torch.testing.assert_close(state["projection"], point[1], rtol=0, atol=0)
        assert float(state["step"]) == step


@pytest.mark.parametrize("weight", ["bilinear", "concatenated"])
@pytest.mark.parametrize("make", [RPML, SRPML])
def test_the_recorded_distances_of_a_triplet_determine_its_argument_weight_and_loss(
        make: type[Method], weight: str) -> None:
    for epoch in fit_epochs(make(**TINY, weight=weight, alpha=40.0)):
        shown = triplets_of(epoch)
        kappa = tightness(40.0)
        torch.testing.assert_close(shown.near - kappa * shown.far, shown.argument, rtol=1e-4, atol=1e-5)
        to_positive = 2 * shown.far + shown.near / 2 - shown.side  # the length of the median determines the third side
        assert (to_positive > -1e-4).all()
        sides = [part.clamp_min(0).sqrt() for part in (shown.near, shown.side, to_positive)]
        assert all((sides[side] <= sides[side - 1] + sides[side - 2] + 1e-3).all() for side in range(3))
        softplus = torch.nn.functional.softplus
        torch.testing.assert_close(softplus(shown.weight * softplus(shown.argument)), shown.loss, rtol=1e-5, atol=1e-6)
        if make is RPML:  # sRPML's curve averages over batches, which may differ in size
            assert epoch.losses["loss"] == pytest.approx(float(shown.loss.mean()), rel=1e-5)
        if weight == "bilinear":
            torch.testing.assert_close((shown.similar + shown.dissimilar) / 2, shown.weight)
        else:
            assert shown.similar.isnan().all()
            assert shown.dissimilar.isnan().all()


@pytest.mark.parametrize("method", [RPML(**TINY), SRPML(**TINY)], ids=lambda method: method.card.name)
def test_the_projection_stays_orthonormal_and_the_loss_falls(method: Method) -> None:
    epochs = fit_epochs(method)
    for epoch in epochs:
        projection = epoch.state["projection"].double()
        torch.testing.assert_close(projection.mT @ projection, torch.eye(8, dtype=torch.float64), atol=1e-5, rtol=0)
    assert epochs[-1].losses["loss"] < epochs[0].losses["loss"]


@pytest.mark.parametrize(("alpha", "violates"), [(12.0, True), (89.0, False)])
def test_mining_keeps_random_triplets_that_violate_the_bound_when_the_epoch_begins(
        alpha: float, violates: bool) -> None:
    method = RPML(**TINY, mining="violating", per_anchor=3, alpha=alpha)
    data, encoder, _ = training_half()
    projection = method._first_point(data, Setting(0, CPU, encoder))[1]
    for epoch in fit_epochs(method):
        shown = triplets_of(epoch)
        labels = epoch.state["labels"]
        anchors = int((torch.bincount(labels)[labels] > 1).sum())
        a, p, n = (unit_rows()[part] @ projection for part in (shown.anchor, shown.positive, shown.negative))
        z = (a - p).square().sum(1) - tightness(alpha) * (n - (a + p) / 2).square().sum(1)
        assert (z > 0).all() if violates else not (z > 0).any()
        assert (labels[shown.anchor] == labels[shown.positive]).all()
        assert (labels[shown.anchor] != labels[shown.negative]).all()
        assert len(shown.anchor) == 3 * anchors, "more candidates than needed violate 12°"
        # The candidates are sorted by anchor, so the first candidates would have few anchors.
        assert len(shown.anchor.unique()) > 0.8 * anchors
        projection = epoch.state["projection"]
    resumed = fit_epochs(method, start=fit_epochs(method)[0].state)
    assert torch.equal(resumed[-1].state["projection"], projection)


@pytest.mark.parametrize(("most", "violating"), [(200_000, 1), (200_000, 30), (200_000, 500), (50, 1), (50, 300)])
def test_mining_draws_as_many_triplets_as_random_mining_and_violating_candidates_first(
        most: int, violating: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RPML, "MOST_TRIPLETS", most)
    monkeypatch.setattr(RPML, "MINED_AT_ONCE", 7)
    labels, points = torch.arange(8).repeat_interleave(5), torch.randn(40, 4, generator=generator(1, 0))
    candidates = cluster_triplets(labels, 30, 10 * most, generator(0, 1))
    assert len(candidates) == min(1200, 10 * most)
    a, p, n = (points[part] for part in candidates.unbind(1))
    tangents = (a - p).norm(dim=1) / (2 * (n - (a + p) / 2).norm(dim=1))
    largest = tangents.sort(descending=True).values
    # Equal candidates have equal angles, so the bound lies below the whole group of the chosen angle.
    group = int((tangents >= largest[violating - 1] * 0.99999).sum())
    alpha = float(((largest[group - 1] + largest[group]) / 2).atan().rad2deg())
    drawn = RPML(**TINY, mining="violating", per_anchor=3, alpha=alpha)._triplets(points, labels, generator(0, 1))
    count = len(RPML(**TINY, per_anchor=3)._triplets(points, labels, generator(0, 1)))
    assert len(drawn) == count == min(120, most)
    wanted, chosen = (Counter(map(tuple, rows.tolist())) for rows in (candidates[tangents > largest[group]], drawn))
    assert chosen <= Counter(map(tuple, candidates.tolist()))
    if group <= count:
        assert wanted <= chosen
    else:
        assert chosen <= wanted


@pytest.mark.parametrize("unit_length", [False, True])
@pytest.mark.parametrize("make", [RPML, SRPML])
def test_distances_of_embeddings_are_those_of_the_loss_unless_unit_length_is_chosen(
        make: type[Method], unit_length: bool) -> None:
    method = make(**TINY, unit_length=unit_length)
    data, encoder, _ = training_half()
    starts = method.initial(data, Setting(0, CPU, encoder)), method._first_point(data, Setting(0, CPU, encoder))[1]
    *_, last = fit_epochs(method)
    for embedder, projection in (starts, (last.embedder, last.state["projection"])):
        expected = unit_rows() @ projection
        if unit_length:
            expected = expected / expected.norm(dim=1, keepdim=True)
        embeddings = embedder.embed_features(data.features.numpy())
        np.testing.assert_allclose(embeddings, expected.numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("method", [RPML(**TINY), SRPML(**TINY), DEEP], ids=["rpml", "srpml", "srpml-cnn"])
def test_further_training_does_not_change_a_yielded_epoch(method: Method) -> None:
    backbone = "cnn" if method is DEEP else "pixels"
    data, encoder, pixels = training_half(backbone)
    yielded = []
    for epoch in method.fit(data, Setting(0, CPU, encoder)):
        state = {name: value.clone() for name, value in epoch.state.items()}
        yielded.append((epoch, state, embed_pixels(epoch.embedder.eval(), pixels[:50])))
    assert len(yielded) == 3
    for epoch, state, embeddings in yielded:
        assert all(torch.equal(epoch.state[name], value) for name, value in state.items())
        np.testing.assert_array_equal(embed_pixels(epoch.embedder.eval(), pixels[:50]), embeddings)
    assert not np.array_equal(yielded[0][2], yielded[-1][2])


@pytest.mark.parametrize("make", [RPML, SRPML, ISIF, PLM])
def test_the_initial_projection_is_random_or_the_principal_components(make: type[Method]) -> None:
    data, encoder, _ = training_half()
    for beginning, is_pca in (("random", False), ("pca", True)):
        method = make.make({"dimension": 8, "beginning": beginning})
        head = method.initial(data, Setting(0, CPU, encoder)).head
        assert head.weight is not None
        _, _, principal = torch.linalg.svd(unit_rows().double(), full_matrices=False)
        basis = principal[:8].mT.float()
        overlap = float((basis.mT @ head.weight).square().sum())
        assert (overlap == pytest.approx(8, abs=1e-3)) == is_pca
        if not is_pca:
            gaussian = torch.randn(64, 8, generator=torch.Generator().manual_seed(0))
            torch.testing.assert_close(head.weight, torch.linalg.qr(gaussian).Q)


def test_the_weight_of_a_triplet_starts_at_a_scaled_gaussian_or_at_zero() -> None:
    data, encoder, _ = training_half()
    gaussian = torch.randn(64, 8, generator=torch.Generator().manual_seed(1))
    for weight, expected in (("bilinear", gaussian / 8), ("concatenated", torch.zeros(128))):
        method = RPML(**TINY, weight=weight)  # type: ignore[arg-type]
        torch.testing.assert_close(method._first_point(data, Setting(0, CPU, encoder))[0], expected)


@pytest.mark.parametrize(("fields", "message"), [
    ({"epsilon": 1.0}, "left each of the 300 images alone at ε=1.*Lower the field 'epsilon'"),
    ({"epsilon": 0.0, "n_neighbors": 299}, "all 300 images into one cluster at ε=0.*Raise the field 'epsilon'"),
    ({"dimension": 65}, "dimension must be at most the features' dimension 64, got 65"),
])
@pytest.mark.parametrize("make", [RPML, SRPML])
def test_fields_without_positives_or_negatives_are_rejected(
        make: type[Method], fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        fit_epochs(make(**{**TINY, **fields}))


def test_more_neighbors_than_images_are_reduced_to_the_other_images() -> None:
    largest, beyond = (fit_epochs(RPML(**{**TINY, "epsilon": 0.9, "n_neighbors": k})) for k in (IMAGES - 1, 500))
    assert torch.equal(largest[-1].state["projection"], beyond[-1].state["projection"])


@pytest.mark.parametrize("batch_norm", ["frozen", "batch"])
def test_batch_normalization_keeps_or_updates_its_statistics(batch_norm: str) -> None:
    before = {name: value.clone() for name, value in training_half("cnn")[1].state_dict().items() if "running" in name}
    assert before
    *_, last = fit_epochs(DEEP.model_copy(update={"batch_norm": batch_norm, "epochs": 1}), "cnn")
    after = last.embedder.encoder.state_dict()
    stayed = all(torch.equal(after[name], value) for name, value in before.items())
    assert stayed == (batch_norm == "frozen")
    assert not last.embedder.encoder.training


def test_momentum_is_part_of_the_state() -> None:
    """Without the momentum a resumed run gives another result."""
    first, *rest = fit_epochs(DEEP, "cnn")
    assert sum(name.startswith("optimizer.") for name in first.state) == sum(
        1 for _ in training_half("cnn")[1].network.parameters())
    without_momentum = {name: value for name, value in first.state.items() if not name.startswith("optimizer.")}
    resumed = fit_epochs(DEEP, "cnn", start=without_momentum)
    assert [epoch.number for epoch in resumed] == [2, 3]
    assert not torch.equal(resumed[-1].state["projection"], rest[-1].state["projection"])


def test_a_finished_state_yields_no_further_epoch() -> None:
    for method, backbone in ((RPML(**TINY), "pixels"), (DEEP, "cnn")):
        assert fit_epochs(method, backbone, start=fit_epochs(method, backbone)[-1].state) == []


def test_progress_is_reported_from_zero_to_one_in_each_epoch() -> None:
    for method in (RPML(**TINY), SRPML(**TINY)):
        data, encoder, _ = training_half()
        shares: list[float] = []
        for _ in method.fit(data, Setting(0, CPU, encoder, shares.append)):
            assert shares == sorted(shares)
            assert shares[0] > 0
            assert shares[-1] == pytest.approx(1.0)
            del shares[:]


def test_the_embedding_does_not_collapse_with_the_bilinear_weight() -> None:
    *_, last = fit_epochs(RPML(**{**TINY, "epochs": 10}))
    embeddings = last.embedder.embed_features(training_half()[0].features.numpy())
    assert effective_rank(embeddings) > 3
    assert last.losses["mean weight"] > 0.1
