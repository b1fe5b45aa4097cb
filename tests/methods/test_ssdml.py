"""SSDML and its baselines: an epoch by hand, partitions, collapse, bad fields."""

from __future__ import annotations

import gc
from copy import deepcopy
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.encoders import Encoder, choose_spec
from udml_core.data.features import features_of, pixels_of
from udml_core.data.label_budget import drawn_labels
from udml_core.data.splits import make_split
from udml_core.data.training_data import TrainingData, training_data
from udml_core.methods import METHODS, Epoch, Setting, find_method
from udml_core.methods.embedder import unit
from udml_core.methods.rpml import SRPML
from udml_core.methods.shared.few_labels import pretrain_encoder
from udml_core.methods.shared.pair_metric import heat_kernel
from udml_core.methods.shared.training import SGDRates
from udml_core.methods.ssdml import SSDML
from udml_core.methods.triplet_angular import Triplet
from udml_core.numerics.evaluation import map_at_r
from udml_core.numerics.explanations import Affinities, Triplets
from udml_core.numerics.geometry import ConjugateGradient, Grassmann
from udml_core.numerics.graph import propagate, propagate_affinities
from udml_core.numerics.losses.angular import (
    SmoothAngular,
    SmoothAngularEvaluation,
    WeightedAngularEvaluation,
    smooth_angular_loss,
)
from udml_core.numerics.losses.mahalanobis import (
    Bounds,
    close_metric,
    information_theoretic_prior,
    labeled_pairs,
    laplacian_metric,
    likelihood_ratio_prior,
    pair_entropy,
    scatter,
)
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.sampling import affinity_triplets, generator

FEW = [method for method in METHODS if method.card.supervision == "few"]
TINY: dict[str, Any] = {"dimension": 16, "epochs": 2, "partition": 0, "steps": 2, "batch": 500}


@cache
def training_setup(backbone: str = "pixels", per_class: int = 8) -> tuple[TrainingData, Setting]:
    dataset = catalog.load("digits")
    encoder = Encoder(choose_spec(backbone, dataset.native_size, dataset.gray))
    train = make_split(dataset, "zero-shot").train
    few = drawn_labels(dataset, train, per_class, 0)
    data = training_data(features_of(dataset, encoder), dataset.labels, train, "few", pixels_of(dataset, encoder),
                         few=few)
    return data, Setting(0, torch.device("cpu"), encoder)


def fit_epochs(backbone: str = "pixels", **fields: Any) -> list[Epoch]:
    return list(SSDML(**TINY | fields).fit(*training_setup(backbone)))


def find_explanation(epoch: Epoch, kind: type[Any]) -> Any:
    return next((record for record in epoch.explanations if isinstance(record, kind)), None)


@pytest.mark.parametrize("batch", [10_000, 2000])
def test_the_first_epoch_on_frozen_features_follows_the_algorithm_of_the_paper(batch: int) -> None:
    """Compute one batch and three batches by hand.

    L and the length of the last step pass from batch to batch.
    """
    data, setting = training_setup()
    method = SSDML(**TINY | {"epochs": 1, "batch": batch})
    (epoch,) = method.fit(data, setting)
    points = unit(data.features)
    neighbors = nearest(points.numpy(), 10)[1]
    affinity = propagate(neighbors, data.labels.numpy(), 0.99)
    used = find_explanation(epoch, Triplets)
    triplets = torch.stack([used.anchor, used.positive, used.negative], dim=1)
    for row in (0, 5, 400):
        order = neighbors[row][np.argsort(-affinity.after[row].astype(np.float32), kind="stable")]
        assert {*map(tuple, triplets[triplets[:, 0] == row].tolist())} == {
            (row, *pair) for pair in zip(order[:5].tolist(), order[5:].tolist(), strict=True)}
    assert len(triplets) == 5 * len(data)  # every point is an anchor: n·k/2, as in the paper
    projection = method.initial(data, setting).head.weight
    assert projection is not None
    optimizer = ConjugateGradient(Grassmann(64, 16))
    step = 0.0
    for part in triplets.split(batch):
        objective = SmoothAngular(points, part, 40.0, method.scale)
        progress = optimizer.start(objective, (projection,), step)
        for _ in range(2):
            progress = optimizer.step(objective, progress)
        (projection,), step = progress.point, progress.step
    torch.testing.assert_close(epoch.state["projection"], projection, rtol=1e-4, atol=1e-5)
    assert float(epoch.state["step"]) == pytest.approx(step, rel=1e-3)


def test_each_batch_trains_first_the_projection_and_then_the_network() -> None:
    """Compute Algorithm 1 on two batches by hand.

    SGD's steps are v ← 0.9v + gradient and θ ← θ − rate·v.
    """
    data, setting = training_setup("cnn")
    rate = 0.01
    method = SSDML(**TINY | {"trains": "all", "epochs": 1, "batch": 2500, "learning_rate": rate,
                              "batch_norm": "statistics"})
    (epoch,) = method.fit(data, setting)
    used = find_explanation(epoch, Triplets)
    batches = torch.stack([used.anchor, used.positive, used.negative], dim=1).split(2500)
    assert len(batches) == 2
    encoder = deepcopy(setting.encoder)
    velocity = [torch.zeros_like(weight) for weight in encoder.parameters()]
    projection, step = method.initial(data, setting).head.weight, 0.0
    optimizer = ConjugateGradient(Grassmann(128, 16))
    for part in batches:
        features = unit(encoder(data.images(torch.arange(len(data)))))
        objective = SmoothAngular(features.detach(), part, 40.0)
        progress = optimizer.start(objective, (projection,), step)
        for _ in range(2):
            progress = optimizer.step(objective, progress)
        (projection,), step = progress.point, progress.step
        loss = smooth_angular_loss(*(features[rows] for rows in part.unbind(1)), projection, 40.0)
        gradients = torch.autograd.grad(loss, [*encoder.parameters()])
        for weight, speed, gradient in zip(encoder.parameters(), velocity, gradients, strict=True):
            weight.data -= rate * speed.mul_(0.9).add_(gradient)
    torch.testing.assert_close(epoch.state["projection"], projection, rtol=1e-3, atol=1e-4)
    for (name, weight), speed in zip(encoder.named_parameters(), velocity, strict=True):
        torch.testing.assert_close(epoch.state[f"encoder.{name}"], weight.detach(), rtol=1e-6,
                                   atol=5e-3 * rate * float(speed.abs().max()))


def test_frozen_features_learn_the_projection_of_a_partition_once_from_all_triplets() -> None:
    data, setting = training_setup()
    method = SSDML(**TINY | {"epochs": 3, "alternation": "partition"})
    (epoch,) = method.fit(data, setting)
    assert method.epochs_planned == 1
    points = unit(data.features)
    neighbors = nearest(points.numpy(), 10)[1]
    affinity = propagate(neighbors, data.labels.numpy(), 0.99)
    triplets = affinity_triplets(torch.from_numpy(neighbors), torch.from_numpy(affinity.after).float(),
                                 torch.arange(len(data)))
    objective = SmoothAngular(points, triplets, 40.0)
    first = method.initial(data, setting).head.weight
    assert first is not None
    optimizer = ConjugateGradient(Grassmann(64, 16))
    progress = optimizer.start(objective, (first,))
    for _ in range(2):
        progress = optimizer.step(objective, progress)
    torch.testing.assert_close(epoch.state["projection"], progress.point[0], rtol=1e-4, atol=1e-5)
    assert list(method.fit(data, setting, epoch.state)) == []


def test_the_projection_stays_until_the_next_partition_begins() -> None:
    projections = [epoch.state["projection"] for epoch in fit_epochs(
        "cnn", trains="encoder", epochs=3, partition=100, partition_epochs=2, alternation="partition")]
    assert torch.equal(projections[0], projections[1])
    assert (projections[1] - projections[2]).abs().max() > 0.01


@pytest.mark.parametrize("unit_length", [False, True])
def test_embeddings_are_projected_unit_features_with_or_without_unit_length(unit_length: bool) -> None:
    data, setting = training_setup()
    method = SSDML(**TINY | {"epochs": 1, "batch": 10_000, "unit_length": unit_length})
    (epoch,) = method.fit(data, setting)
    for embedder in (method.initial(data, setting), epoch.embedder):
        weight = embedder.head.weight
        assert isinstance(weight, Tensor)
        expected = data.features / data.features.norm(dim=1, keepdim=True) @ weight
        lengths = expected.norm(dim=1, keepdim=True)
        assert lengths.max() < 0.99, "a projection to 16 of 64 dimensions shortens unit features"
        torch.testing.assert_close(torch.from_numpy(embedder.embed_features(data.features.numpy())),
                                   expected / lengths if unit_length else expected)


def test_triplets_pair_the_upper_half_of_the_sorted_neighbors_with_the_lower_half() -> None:
    neighbors = torch.tensor([[4, 5, 6, 7], [1, 2, 3, 4]])
    affinities = torch.tensor([[0.1, 0.4, 0.3, -0.2], [0.5, 0.5, 0.5, 0.5]])
    assert affinity_triplets(neighbors, affinities, torch.tensor([9, 8])).tolist() == [
        [9, 5, 4], [9, 6, 7], [8, 1, 3], [8, 2, 4]]
    assert affinity_triplets(neighbors[:, :3], affinities[:, :3], torch.tensor([9, 8])).tolist() == [[9, 5, 6],
                                                                                                     [8, 1, 2]]


def test_a_partition_holds_all_labeled_images_and_lasts_for_its_epochs() -> None:
    data, _ = training_setup()
    epochs = fit_epochs(epochs=5, partition=200, partition_epochs=2)
    shown = [find_explanation(epoch, Affinities) for epoch in epochs]
    assert [record is not None for record in shown] == [True, False, True, False, True]
    labeled = {*torch.nonzero(data.labels >= 0).flatten().tolist()}
    for part in shown[::2]:
        assert len(part.points) == 200 + len(labeled)
        assert labeled <= {*part.points.tolist()}
        assert part.neighbors.shape == part.before.shape == part.after.shape == (len(part.points), 10)
        assert {*part.neighbors.flatten().tolist()} <= {*part.points.tolist()}
        assert part.reach.shape == (len(part.points), 5)
        torch.testing.assert_close(part.labels, data.labels[part.points])
    unlabeled = torch.nonzero(data.labels < 0).flatten()
    for epoch, part in zip((1, 3, 5), shown[::2], strict=True):
        sample = unlabeled[torch.randperm(len(unlabeled), generator=generator(0, -epoch))[:200]]
        assert {*part.points.tolist()} == labeled | {*sample.tolist()}
    for epoch in epochs[:2]:
        assert {*find_explanation(epoch, Triplets).anchor.tolist()} == {*shown[0].points.tolist()}


def test_the_projection_is_orthonormal_exactly_if_the_field_says_so() -> None:
    for orthogonal in (True, False):
        weight = fit_epochs(orthogonal=orthogonal)[-1].state["projection"]
        deviation = (weight.mT @ weight - torch.eye(16)).abs().max()
        assert (deviation < 1e-5) == orthogonal


def test_without_steps_the_projection_is_fixed_and_the_encoder_learns() -> None:
    data, setting = training_setup("cnn")
    method = SSDML(**TINY | {"trains": "all", "steps": 0, "epochs": 1})
    (epoch,) = method.fit(data, setting)
    start = method.initial(data, setting).head.weight
    assert start is not None
    assert torch.equal(epoch.state["projection"], start)
    assert epoch.embedder.trained


@pytest.mark.parametrize("method", [SSDML(**TINY | {"epochs": 1}), SRPML(dimension=8, epochs=1, steps=1, batch=200)],
                         ids=lambda method: method.card.name)
def test_an_epoch_does_not_keep_the_features_of_its_batches(method: Any) -> None:
    kinds, alive = (SmoothAngularEvaluation, WeightedAngularEvaluation), []

    def count(_share: float) -> None:
        alive.append(sum(type(item) in kinds for item in gc.get_objects()))

    data, setting = training_setup()
    assert list(method.fit(data, replace(setting, report=count)))
    assert len(alive) > 5
    assert max(alive) <= 2


def test_pretraining_descends_the_cross_entropy_of_a_linear_classifier() -> None:
    """Compute two epochs: v ← 0.9v + gradient + decay·θ for the encoder, without decay for the classifier."""
    data, setting = training_setup("cnn")
    after = pretrain_encoder(data, setting, 2, SGDRates(0.05, 0.9, 0.1), 20, "statistics").encoder
    labeled = torch.nonzero(data.labels >= 0).flatten()
    random, encoder = generator(setting.seed, 0), deepcopy(setting.encoder)
    classifier = (torch.randn(128, 5, generator=random) / 128**0.5).requires_grad_()
    weights = [*encoder.parameters(), classifier]
    velocity = [torch.zeros_like(weight) for weight in weights]
    for _ in range(2):
        for rows in torch.randperm(len(labeled), generator=random).split(20):
            scores = (unit(encoder(data.images(labeled[rows]))) @ classifier).exp()
            truth = scores[torch.arange(len(rows)), data.labels[labeled[rows]]]  # the classes are 0–4
            gradients = torch.autograd.grad(-(truth / scores.sum(1)).log().mean(), weights)
            for weight, speed, gradient in zip(weights, velocity, gradients, strict=True):
                decayed = 0.0 if weight is classifier else 0.1
                speed.mul_(0.9).add_(gradient + decayed * weight.detach())
                weight.data -= 0.05 * speed
    for learned, expected, start in zip(after.parameters(), weights[:-1], setting.encoder.parameters(), strict=True):
        tolerance = 1e-2 * float((expected - start).abs().max())
        torch.testing.assert_close(learned, expected, rtol=0, atol=tolerance)


def test_pretraining_improves_a_copy_of_the_encoder_only_and_survives_a_resume() -> None:
    data, setting = training_setup("cnn")
    before = [value.clone() for value in setting.encoder.parameters()]
    after = pretrain_encoder(data, setting, 20, SGDRates(0.05), 20, "statistics").encoder
    assert all(torch.equal(*pair) for pair in zip(before, setting.encoder.parameters(), strict=True))
    rest = torch.nonzero(data.labels < 0).squeeze(1)
    dataset = catalog.load("digits")
    assert dataset.labels is not None
    truth = dataset.labels[make_split(dataset, "zero-shot").train]
    with torch.no_grad():
        untrained, trained = (map_at_r(unit(encoder(data.images(rest))).numpy(), truth[rest.numpy()])[0]
                              for encoder in (setting.encoder, after))
    assert trained > untrained + 0.05
    *_, last = fit_epochs("cnn", pretraining=1, trains="all", epochs=2, partition=100)
    state = fit_epochs("cnn", pretraining=1, trains="all", epochs=1, partition=100)[0].state
    method = SSDML(**TINY | {"pretraining": 1, "trains": "all", "epochs": 2, "partition": 100})
    (resumed,) = method.fit(data, setting, state)
    assert all(torch.equal(value, resumed.state[name]) for name, value in last.state.items())


def test_the_printed_loss_moves_positives_apart_and_the_relative_loss_does_not() -> None:
    """In the collapse, the distance of positives grows far beyond its initial value."""
    growth = {}
    for scale in ("sum", "relative"):
        epochs = fit_epochs("cnn", scale=scale, trains="all", epochs=3, batch=100, learning_rate=1e-3,
                            partition=150, steps=0)
        first, last = (epoch.losses["positive distance"] for epoch in (epochs[0], epochs[-1]))
        growth[scale] = last / first
    assert growth["sum"] > 1.5
    assert growth["relative"] < 1.2


class Pieces:
    """The parts of the baselines' metrics, computed by hand.

    There are so few labels that all pairs are used.
    """

    def __init__(self) -> None:
        self.data, self.setting = training_setup(per_class=5)
        self.points = unit(self.data.features).double()
        squared, self.neighbors = nearest(self.points.numpy(), 10)
        self.heat = heat_kernel(squared.astype(np.float64))
        self.pairs = labeled_pairs(self.data.labels)
        self.similar, self.dissimilar = (scatter(self.points, part) for part in self.pairs)

    def along(self, weights: Any) -> Tensor:
        """Return the weighted mean outer product of differences along edges."""
        edges = np.stack([np.repeat(np.arange(len(self.points)), 10), self.neighbors.ravel()], axis=1)
        return scatter(self.points, torch.from_numpy(edges), torch.from_numpy(np.ascontiguousarray(weights)).ravel())

    def propagated(self) -> Tensor:
        return self.along(propagate_affinities(self.neighbors, self.data.labels.numpy(), 0.99).clip(0))

    def by_density(self) -> Tensor:
        """Divide each affinity by the density at its two ends.

        The divisor is the root of the product of the mean affinities at the two ends.
        """
        weights = self.heat.copy()
        for row, column in np.ndindex(*weights.shape):
            ends = self.heat[row].mean(), self.heat[self.neighbors[row, column]].mean()
            weights[row, column] /= np.sqrt(ends[0] * ends[1])
        return self.along(weights)

    def bounds(self) -> Bounds:
        squared = torch.cat([(self.points[part[:, 0]] - self.points[part[:, 1]]).square().sum(1)
                             for part in self.pairs])
        return Bounds(*np.quantile(squared.numpy(), [0.05, 0.95]).tolist())

    def metric(self, name: str) -> Tensor:
        """Return M (d, d) of a baseline."""
        if name == "apllr":
            return close_metric(likelihood_ratio_prior(self.similar, self.dissimilar)[0], self.propagated(), 1.0)
        if name == "apit":
            prior = information_theoretic_prior(self.points, self.pairs, self.bounds(), 1.0)
            return close_metric(prior, self.propagated(), 1.0)
        edges = self.along(self.heat) if name == "lrml" else self.by_density()
        return laplacian_metric(self.similar, self.dissimilar, edges, 1.0, 0.1, 1.0)[0]


@pytest.mark.parametrize("name", ["lrml", "isdml", "apllr", "apit"])
def test_the_metric_of_a_baseline_on_frozen_features_equals_its_formula(name: str) -> None:
    pieces = Pieces()
    (epoch,) = find_method(name).make({"partition": 0, "weight_dissimilar": 0.1}).fit(pieces.data, pieces.setting)
    weight = epoch.embedder.head.weight
    assert isinstance(weight, Tensor)
    metric, learned = pieces.metric(name), (weight @ weight.mT).double()
    if name != "apit":
        torch.testing.assert_close(learned, metric, rtol=1e-3, atol=1e-4)
        return
    plain = close_metric(torch.eye(len(metric), dtype=torch.float64), pieces.propagated(), 1.0)
    assert (learned - metric).norm() < 0.25 * (plain - metric).norm(), "ITML depends on the order of the pairs"


def test_seraph_improves_its_objective_over_the_euclidean_metric() -> None:
    pieces = Pieces()
    (epoch,) = find_method("seraph").make({"partition": 0}).fit(pieces.data, pieces.setting)
    every = torch.combinations(torch.arange(len(pieces.points)))
    signs = torch.cat([torch.ones(len(pieces.pairs.similar)), -torch.ones(len(pieces.pairs.dissimilar))])

    def objective(embeddings: Tensor) -> float:
        labeled, unlabeled = ((embeddings[pairs[:, 0]] - embeddings[pairs[:, 1]]).square().sum(1)
                              for pairs in (torch.cat(pieces.pairs), every))
        return float(pair_entropy(labeled, signs, unlabeled, 1.0, 1.0))

    learned = torch.from_numpy(epoch.embedder.embed_features(pieces.data.features.numpy()))
    assert objective(learned) < objective(unit(pieces.data.features)) - 0.05


@pytest.mark.parametrize("name", ["lrml", "seraph", "isdml", "apllr", "apit"])
def test_distances_between_embeddings_of_a_baseline_follow_its_metric(name: str) -> None:
    data, setting = training_setup()
    *_, epoch = find_method(name).make({"partition": 0} | ({"steps": 5} if name == "seraph" else {})).fit(data, setting)
    root = epoch.embedder.head.weight
    assert isinstance(root, Tensor)
    embeddings = torch.from_numpy(epoch.embedder.embed_features(data.features.numpy()))
    difference = unit(data.features[:50]) - unit(data.features[50:100])
    torch.testing.assert_close((embeddings[:50] - embeddings[50:100]).square().sum(1),
                               torch.einsum("nd,de,ne->n", difference, root @ root.mT, difference),
                               rtol=1e-3, atol=1e-5)


def test_the_triplet_loss_does_not_depend_on_unlabeled_images() -> None:
    data, setting = training_setup()
    changed = data.features.clone()
    changed[data.labels < 0] = changed[data.labels < 0].flip(0).roll(3, 1)
    method = Triplet(dimension=16, epochs=2, learning_rate=0.1, beginning="random")
    weights = []
    for features in (data.features, changed):
        *_, last = method.fit(TrainingData(features, given_labels=data.labels), setting)
        weights.append(last.state["network.weight"])
    assert torch.equal(*weights)


@pytest.mark.parametrize("method", FEW, ids=lambda method: method.card.name)
def test_an_encoder_with_nothing_to_train_is_rejected(method: Any) -> None:
    with pytest.raises(UserError, match="The backbone 'pixels' has nothing to train"):
        list(method(trains="all").fit(*training_setup()))


@pytest.mark.parametrize(("fields", "message"), [
    ({"dimension": 100}, "SSDML.dimension must be at most the features' dimension 64, got 100"),
    ({"n_neighbors": 500}, None),
    ({"steps": 0}, "learns nothing. Raise the field 'steps'"),
])
def test_impossible_fields_are_rejected(fields: dict[str, Any], message: str | None) -> None:
    method = SSDML(**TINY | fields)
    if message is None:
        method.check(501, 64)
        with pytest.raises(UserError, match="more training images than n_neighbors, got 500 images"):
            method.check(500, 64)
        return
    with pytest.raises(UserError, match=message):
        method.check(900, 64)
    with pytest.raises(UserError, match=r"SSDML.n_neighbors must be .*got 7"):
        SSDML.make({"n_neighbors": 7})
