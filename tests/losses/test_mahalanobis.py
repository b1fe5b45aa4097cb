"""The metrics of the semi-supervised baselines beside slow solvers, and what they do where there is no solution."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch import Tensor

from udml_core.losses.mahalanobis import (
    Bounds,
    Pairs,
    close_metric,
    entropy_metric,
    information_theoretic_prior,
    labeled_pairs,
    laplacian_metric,
    likelihood_ratio_prior,
    matrix_root,
    pair_entropy,
    positive_part,
    scatter,
    squared_distances,
)

DIMENSION = 4


def points(count: int = 30, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Points (n, 4) of three classes, and labels of every second one."""
    random = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % 3
    centers = 2 * torch.randn(3, DIMENSION, generator=random, dtype=torch.float64)
    values = centers[labels] + torch.randn(count, DIMENSION, generator=random, dtype=torch.float64)
    return values, torch.where(torch.arange(count) % 2 == 0, labels, -1)


def scaled(values: Tensor, pairs: Tensor, metric: Tensor) -> Tensor:
    """(x−y)ᵀM(x−y) of each pair."""
    difference = values[pairs[:, 0]] - values[pairs[:, 1]]
    return ((difference @ metric) * difference).sum(1)


def least(objective: Callable[[Tensor], Tensor], seed: int = 1) -> Tensor:
    """The M = AAᵀ of least objective by quasi-Newton steps on A, from a random start."""
    start = torch.randn(DIMENSION, DIMENSION, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)

    def evaluate(flat: np.ndarray) -> tuple[float, np.ndarray]:  # type: ignore[type-arg]
        factor = torch.from_numpy(flat.reshape(DIMENSION, DIMENSION)).requires_grad_()
        value = objective(factor @ factor.mT)
        value.backward()
        assert factor.grad is not None
        return value.item(), factor.grad.numpy().ravel()

    found = minimize(evaluate, (start + 2 * torch.eye(DIMENSION)).numpy().ravel(), jac=True,
                     options={"maxiter": 5000, "gtol": 1e-10})
    factor = torch.from_numpy(found.x.reshape(DIMENSION, DIMENSION))
    return factor @ factor.mT


def scatters() -> tuple[Tensor, Tensor, Tensor]:
    values, labels = points()
    edges = torch.stack([torch.arange(30), (torch.arange(30) + 3) % 30], dim=1)
    return (*(scatter(values, part) for part in labeled_pairs(labels)), scatter(values, edges))


def test_pairs_and_scatter_are_those_of_a_plain_loop() -> None:
    values, labels = points(12)
    pairs = labeled_pairs(labels)
    similar = [(i, j) for i in range(12) for j in range(i + 1, 12) if labels[i] == labels[j] >= 0]
    dissimilar = [(i, j) for i in range(12) for j in range(i + 1, 12)
                  if labels[i] >= 0 and labels[j] >= 0 and labels[i] != labels[j]]
    assert pairs.similar.tolist() == [list(one) for one in similar]
    assert pairs.dissimilar.tolist() == [list(one) for one in dissimilar]
    weights = torch.arange(1.0, len(similar) + 1, dtype=torch.float64)
    total = sum(w * torch.outer(values[i] - values[j], values[i] - values[j])
                for w, (i, j) in zip(weights, similar, strict=True))
    torch.testing.assert_close(scatter(values, pairs.similar, weights), total / weights.sum())


def test_lrml_is_the_least_of_its_objective_under_its_constraint() -> None:
    similar, dissimilar, edges = scatters()
    metric, used = laplacian_metric(similar, dissimilar, edges, 1.0, 0.05, 1.0)
    assert used == 0.05
    assert float(torch.logdet(metric)) == pytest.approx(0, abs=1e-9)
    weighed = similar - 0.05 * dissimilar + edges

    def objective(given: Tensor) -> Tensor:  # on the constraint's edge, where the least is: scaled to |M| = 1
        return (given / torch.linalg.det(given) ** (1 / DIMENSION) * weighed).sum()

    best = least(objective)
    torch.testing.assert_close(metric, best / torch.linalg.det(best) ** (1 / DIMENSION), rtol=1e-3, atol=1e-4)
    random = torch.Generator().manual_seed(0)
    for _ in range(50):  # and no larger determinant is better
        factor = matrix_root(metric) + 0.1 * torch.randn(DIMENSION, DIMENSION, generator=random, dtype=torch.float64)
        other = factor @ factor.mT
        other = other / torch.linalg.det(other).clamp_max(1) ** (1 / DIMENSION)
        assert (other * weighed).sum() >= (metric * weighed).sum() - 1e-9


def test_lrml_without_a_lower_bound_halves_the_weight_that_is_to_blame() -> None:
    similar, dissimilar, edges = scatters()
    assert torch.linalg.eigvalsh(similar + edges - 8 * dissimilar)[0] < 0
    metric, used = laplacian_metric(similar, dissimilar, edges, 1.0, 8.0, 1.0)
    assert used in [8.0 / 2**halvings for halvings in range(1, 10)]
    assert torch.linalg.eigvalsh(similar + edges - used * dissimilar)[0] > 0
    assert torch.linalg.eigvalsh(similar + edges - 2 * used * dissimilar)[0] <= 0
    assert torch.linalg.eigvalsh(metric)[0] > 0
    nothing = torch.zeros_like(similar)
    metric, used = laplacian_metric(nothing, dissimilar, edges, 1.0, 1.0, 0.0)
    assert used < 1e-12
    assert torch.isfinite(metric).all()


def test_a_metric_close_to_a_prior_is_the_least_of_burgs_divergence_and_the_edges() -> None:
    similar, _, edges = scatters()
    prior = torch.linalg.inv(similar)

    def objective(given: Tensor) -> Tensor:
        ratio = given @ torch.linalg.inv(prior)
        return ratio.trace() - torch.logdet(ratio) + 0.7 * (given * edges).sum()

    torch.testing.assert_close(close_metric(prior, edges, 0.7), least(objective), rtol=1e-4, atol=1e-6)
    singular = prior.clone()
    singular[0] = singular[:, 0] = 0
    metric = close_metric(singular, edges)
    assert torch.isfinite(metric).all()
    assert metric[0].abs().max() < 1e-9  # what the prior does not see stays unseen


def test_the_likelihood_ratio_is_a_metric_and_says_how_singular_it_is() -> None:
    similar, dissimilar, _ = scatters()
    prior, rank = likelihood_ratio_prior(similar, dissimilar)
    assert rank == DIMENSION
    assert torch.linalg.eigvalsh(prior)[0] > 0
    torch.testing.assert_close(
        prior, positive_part(torch.linalg.inv(similar) - torch.linalg.inv(dissimilar)), rtol=0.1, atol=0.02)
    one = torch.outer(torch.ones(DIMENSION), torch.ones(DIMENSION)).double()
    prior, rank = likelihood_ratio_prior(one, 2 * one)  # two labeled pairs: as singular as can be
    assert torch.isfinite(prior).all()
    assert rank == 1
    prior, _ = likelihood_ratio_prior(dissimilar, 0.5 * dissimilar)  # similar pairs farther apart than others
    assert torch.linalg.eigvalsh(prior)[0] > 0


def test_itml_is_the_least_of_its_divergence_with_slack() -> None:
    values, labels = points(20)
    found = labeled_pairs(labels)
    pairs = Pairs(found.similar[:5], found.dissimilar[:5])
    bounds, slack = Bounds(1.0, 12.0), 2.0
    metric = information_theoretic_prior(values, pairs, bounds, slack, cycles=3000)
    difference = [values[part[:, 0]] - values[part[:, 1]] for part in pairs]

    def divergence(distance: Tensor, limit: float) -> Tensor:
        return distance / limit - torch.log(distance / limit) - 1

    def objective(given: Tensor) -> Tensor:
        """The slack variable of a pair is its distance where that breaks the bound, and the bound elsewhere."""
        near, far = (((rows @ given) * rows).sum(1) for rows in difference)
        return (given.trace() - torch.logdet(given) + slack * divergence(near.clamp_min(bounds.near), bounds.near).sum()
                + slack * divergence(far.clamp_max(bounds.far), bounds.far).sum())

    torch.testing.assert_close(metric, least(objective), rtol=2e-3, atol=2e-3)
    easy = information_theoretic_prior(values, pairs, Bounds(1e6, 1e-6))
    torch.testing.assert_close(easy, torch.eye(DIMENSION, dtype=torch.float64))


def test_seraph_descends_to_a_point_that_no_direction_improves() -> None:
    values, labels = points()
    pairs = labeled_pairs(labels)
    kinds = torch.cat([torch.ones(len(pairs.similar)), -torch.ones(len(pairs.dissimilar))]).double()
    labeled = torch.cat(pairs)
    free = torch.arange(30).reshape(2, 15).mT

    def objective(given: Tensor, weight: float) -> Tensor:
        one, other = (scaled(values, pairs, given) for pairs in (labeled, free))
        return pair_entropy(one, kinds, other, 2.0, weight) + 0.01 * given.trace()

    start = torch.eye(DIMENSION, dtype=torch.float64)
    # without entropy it is convex
    metric = entropy_metric(start, values, labeled, kinds, free, 2.0, 0.0, 0.01, steps=4000)
    best = least(lambda given: objective(given, 0.0))
    assert objective(metric, 0.0) == pytest.approx(float(objective(best, 0.0)), rel=1e-4)
    metric = entropy_metric(start, values, labeled, kinds, free, 2.0, 1.0, 0.01, steps=500)
    assert objective(metric, 1.0) < objective(start, 1.0)
    assert torch.linalg.eigvalsh(metric)[0] > -1e-12
    again = entropy_metric(metric, values, labeled, kinds, free, 2.0, 1.0, 0.01, steps=50)
    assert float(objective(metric, 1.0) - objective(again, 1.0)) < 1e-4


@pytest.mark.parametrize(("count", "width", "pairs"), [(30, 4, 100), (30, 40, 400)])
def test_distances_under_a_metric_are_the_same_either_way(count: int, width: int, pairs: int) -> None:
    random = torch.Generator().manual_seed(3)
    values = torch.randn(count, width, generator=random, dtype=torch.float64)
    root = torch.randn(width, width, generator=random, dtype=torch.float64)
    chosen = torch.randint(count, (pairs, 2), generator=random)
    expected = scaled(values, chosen, root @ root.mT)
    metric = (root @ root.mT).requires_grad_()
    found = squared_distances(values, chosen)(metric)
    torch.testing.assert_close(found, expected)
    (gradient,) = torch.autograd.grad(found.sum(), metric)
    difference = values[chosen[:, 0]] - values[chosen[:, 1]]
    torch.testing.assert_close(gradient, difference.mT @ difference)


def test_pair_entropy_is_the_printed_sum_over_both_kinds() -> None:
    distances, kinds = torch.tensor([0.2, 3.0]), torch.tensor([1.0, -1.0])
    free = torch.tensor([0.5])

    def p(kind: float, distance: float) -> float:
        return 1 / (1 + np.exp(kind * (distance - 1.0)))

    unsure = sum(p(kind, 0.5) * np.log(p(kind, 0.5)) for kind in (1, -1))
    expected = -(np.log(p(1, 0.2)) + np.log(p(-1, 3.0))) / 2 - 0.5 * unsure
    assert float(pair_entropy(distances, kinds, free, 1.0, 0.5)) == pytest.approx(expected, rel=1e-5)
