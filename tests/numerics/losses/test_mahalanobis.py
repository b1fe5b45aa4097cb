"""The metrics of the semi-supervised baselines, compared with slow solvers.

Cases without a solution are included.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch import Tensor

from udml_core.numerics.losses.mahalanobis import (
    Bounds,
    LabeledPairs,
    close_metric,
    distances_by_metric,
    entropy_metric,
    information_theoretic_prior,
    labeled_pairs,
    laplacian_metric,
    likelihood_ratio_prior,
    matrix_root,
    pair_entropy,
    positive_part,
    scatter,
)

DIMENSION = 4


def points(count: int = 30, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Return points (n, 4) of three classes, and labels of every second point."""
    random = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % 3
    centers = 2 * torch.randn(3, DIMENSION, generator=random, dtype=torch.float64)
    values = centers[labels] + torch.randn(count, DIMENSION, generator=random, dtype=torch.float64)
    return values, torch.where(torch.arange(count) % 2 == 0, labels, -1)


def metric_distances(values: Tensor, pairs: Tensor, metric: Tensor) -> Tensor:
    """Return (x−y)ᵀM(x−y) of each pair."""
    difference = values[pairs[:, 0]] - values[pairs[:, 1]]
    return ((difference @ metric) * difference).sum(1)


def minimizer(objective: Callable[[Tensor], Tensor], seed: int = 1) -> Tensor:
    """Minimize over M = AAᵀ by quasi-Newton steps on A from a random start."""
    start = torch.randn(DIMENSION, DIMENSION, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)

    def evaluate(flat: np.ndarray) -> tuple[float, np.ndarray]:  # type: ignore[type-arg]
        factor = torch.from_numpy(flat.reshape(DIMENSION, DIMENSION)).requires_grad_()
        value = objective(factor @ factor.mT)
        value.backward()
        assert factor.grad is not None
        return value.item(), factor.grad.numpy().ravel()

    result = minimize(evaluate, (start + 2 * torch.eye(DIMENSION)).numpy().ravel(), jac=True,
                      options={"maxiter": 5000, "gtol": 1e-10})
    factor = torch.from_numpy(result.x.reshape(DIMENSION, DIMENSION))
    return factor @ factor.mT


def scatters() -> tuple[Tensor, Tensor, Tensor]:
    values, labels = points()
    edges = torch.stack([torch.arange(30), (torch.arange(30) + 3) % 30], dim=1)
    return (*(scatter(values, part) for part in labeled_pairs(labels)), scatter(values, edges))


def test_pairs_and_scatter_equal_a_plain_loop() -> None:
    values, labels = points(12)
    pairs = labeled_pairs(labels)
    similar = [(i, j) for i in range(12) for j in range(i + 1, 12) if labels[i] == labels[j] >= 0]
    dissimilar = [(i, j) for i in range(12) for j in range(i + 1, 12)
                  if labels[i] >= 0 and labels[j] >= 0 and labels[i] != labels[j]]
    assert pairs.similar.tolist() == [list(pair) for pair in similar]
    assert pairs.dissimilar.tolist() == [list(pair) for pair in dissimilar]
    weights = torch.arange(1.0, len(similar) + 1, dtype=torch.float64)
    total = sum(w * torch.outer(values[i] - values[j], values[i] - values[j])
                for w, (i, j) in zip(weights, similar, strict=True))
    torch.testing.assert_close(scatter(values, pairs.similar, weights), total / weights.sum())


def test_lrml_minimizes_its_objective_under_its_constraint() -> None:
    similar, dissimilar, edges = scatters()
    metric, used = laplacian_metric(similar, dissimilar, edges, 1.0, 0.05, 1.0)
    assert used == 0.05
    assert float(torch.logdet(metric)) == pytest.approx(0, abs=1e-9)
    combined = similar - 0.05 * dissimilar + edges

    def objective(candidate: Tensor) -> Tensor:
        """Return the objective scaled to |M| = 1.

        The minimum is on the boundary of the constraint.
        """
        return (candidate / torch.linalg.det(candidate) ** (1 / DIMENSION) * combined).sum()

    best = minimizer(objective)
    torch.testing.assert_close(metric, best / torch.linalg.det(best) ** (1 / DIMENSION), rtol=1e-3, atol=1e-4)
    random = torch.Generator().manual_seed(0)
    for _ in range(50):  # no matrix with a larger determinant is better
        factor = matrix_root(metric) + 0.1 * torch.randn(DIMENSION, DIMENSION, generator=random, dtype=torch.float64)
        other = factor @ factor.mT
        other = other / torch.linalg.det(other).clamp_max(1) ** (1 / DIMENSION)
        assert (other * combined).sum() >= (metric * combined).sum() - 1e-9


def test_lrml_halves_the_dissimilar_weight_until_the_objective_is_bounded() -> None:
    similar, dissimilar, edges = scatters()
    assert torch.linalg.eigvalsh(similar + edges - 8 * dissimilar)[0] < 0
    metric, used = laplacian_metric(similar, dissimilar, edges, 1.0, 8.0, 1.0)
    assert used in [8.0 / 2**halvings for halvings in range(1, 10)]
    assert torch.linalg.eigvalsh(similar + edges - used * dissimilar)[0] > 0
    assert torch.linalg.eigvalsh(similar + edges - 2 * used * dissimilar)[0] <= 0
    assert torch.linalg.eigvalsh(metric)[0] > 0
    zero = torch.zeros_like(similar)
    metric, used = laplacian_metric(zero, dissimilar, edges, 1.0, 1.0, 0.0)
    assert used < 1e-12
    assert torch.isfinite(metric).all()


def test_the_close_metric_minimizes_burgs_divergence_plus_the_edge_term() -> None:
    similar, _, edges = scatters()
    prior = torch.linalg.inv(similar)

    def objective(candidate: Tensor) -> Tensor:
        ratio = candidate @ torch.linalg.inv(prior)
        return ratio.trace() - torch.logdet(ratio) + 0.7 * (candidate * edges).sum()

    torch.testing.assert_close(close_metric(prior, edges, 0.7), minimizer(objective), rtol=1e-4, atol=1e-6)
    singular = prior.clone()
    singular[0] = singular[:, 0] = 0
    metric = close_metric(singular, edges)
    assert torch.isfinite(metric).all()
    assert metric[0].abs().max() < 1e-9  # directions outside the prior's range stay at zero


def test_the_likelihood_ratio_prior_is_positive_definite_and_reports_the_rank() -> None:
    similar, dissimilar, _ = scatters()
    prior, rank = likelihood_ratio_prior(similar, dissimilar)
    assert rank == DIMENSION
    assert torch.linalg.eigvalsh(prior)[0] > 0
    torch.testing.assert_close(
        prior, positive_part(torch.linalg.inv(similar) - torch.linalg.inv(dissimilar)), rtol=0.1, atol=0.02)
    rank_one = torch.outer(torch.ones(DIMENSION), torch.ones(DIMENSION)).double()
    prior, rank = likelihood_ratio_prior(rank_one, 2 * rank_one)  # a single pair of each kind
    assert torch.isfinite(prior).all()
    assert rank == 1
    prior, _ = likelihood_ratio_prior(dissimilar, 0.5 * dissimilar)  # similar pairs farther apart
    assert torch.linalg.eigvalsh(prior)[0] > 0


def test_the_likelihood_ratio_prior_adds_a_thousandth_of_the_mean_eigenvalue() -> None:
    similar, dissimilar = (torch.tensor(values).double().diag() for values in ([2.0, 6.0], [4.0, 3.0]))
    prior, _ = likelihood_ratio_prior(similar, dissimilar)
    # The mean eigenvalues of S and D are 4 and 3.5; the second difference is negative, so the metric has 0 there.
    difference = 1 / 2.004 - 1 / 4.0035
    ridge = 0.001 * (difference + 0) / 2
    torch.testing.assert_close(prior.diag(), torch.tensor([difference + ridge, ridge]).double(), rtol=1e-6, atol=0)
    assert prior[0, 1] == prior[1, 0] == 0


def test_itml_minimizes_its_divergence_with_slack() -> None:
    values, labels = points(20)
    all_pairs = labeled_pairs(labels)
    pairs = LabeledPairs(all_pairs.similar[:5], all_pairs.dissimilar[:5])
    bounds, slack = Bounds(1.0, 12.0), 2.0
    metric = information_theoretic_prior(values, pairs, bounds, slack, cycles=3000)
    difference = [values[part[:, 0]] - values[part[:, 1]] for part in pairs]

    def divergence(distance: Tensor, limit: float) -> Tensor:
        return distance / limit - torch.log(distance / limit) - 1

    def objective(candidate: Tensor) -> Tensor:
        """Return the objective with optimal slack.

        The slack is a pair's distance if it violates the bound, else the bound.
        """
        similar, dissimilar = (((rows @ candidate) * rows).sum(1) for rows in difference)
        violations = (divergence(similar.clamp_min(bounds.similar), bounds.similar).sum()
                      + divergence(dissimilar.clamp_max(bounds.dissimilar), bounds.dissimilar).sum())
        return candidate.trace() - torch.logdet(candidate) + slack * violations

    torch.testing.assert_close(metric, minimizer(objective), rtol=2e-3, atol=2e-3)
    unconstrained = information_theoretic_prior(values, pairs, Bounds(1e6, 1e-6))
    torch.testing.assert_close(unconstrained, torch.eye(DIMENSION, dtype=torch.float64))


def test_seraph_reaches_a_minimum() -> None:
    values, labels = points()
    pairs = labeled_pairs(labels)
    signs = torch.cat([torch.ones(len(pairs.similar)), -torch.ones(len(pairs.dissimilar))]).double()
    labeled = torch.cat(pairs)
    unlabeled = torch.arange(30).reshape(2, 15).mT

    def objective(candidate: Tensor, weight: float) -> Tensor:
        of_labeled, of_unlabeled = (metric_distances(values, pairs, candidate) for pairs in (labeled, unlabeled))
        return pair_entropy(of_labeled, signs, of_unlabeled, 2.0, weight) + 0.01 * candidate.trace()

    start = torch.eye(DIMENSION, dtype=torch.float64)
    # Without the entropy term the objective is convex.
    metric = entropy_metric(start, values, labeled, signs, unlabeled, 2.0, 0.0, 0.01, steps=4000)
    best = minimizer(lambda candidate: objective(candidate, 0.0))
    assert objective(metric, 0.0) == pytest.approx(float(objective(best, 0.0)), rel=1e-4)
    metric = entropy_metric(start, values, labeled, signs, unlabeled, 2.0, 1.0, 0.01, steps=500)
    assert objective(metric, 1.0) < objective(start, 1.0)
    assert torch.linalg.eigvalsh(metric)[0] > -1e-12
    continued = entropy_metric(metric, values, labeled, signs, unlabeled, 2.0, 1.0, 0.01, steps=50)
    assert float(objective(metric, 1.0) - objective(continued, 1.0)) < 1e-4


@pytest.mark.parametrize(("count", "width", "pairs"), [(30, 4, 100), (30, 40, 400)])
def test_both_ways_to_compute_distances_agree(count: int, width: int, pairs: int) -> None:
    random = torch.Generator().manual_seed(3)
    values = torch.randn(count, width, generator=random, dtype=torch.float64)
    root = torch.randn(width, width, generator=random, dtype=torch.float64)
    rows = torch.randint(count, (pairs, 2), generator=random)
    expected = metric_distances(values, rows, root @ root.mT)
    metric = (root @ root.mT).requires_grad_()
    squared = distances_by_metric(values, rows)(metric)
    torch.testing.assert_close(squared, expected)
    (gradient,) = torch.autograd.grad(squared.sum(), metric)
    difference = values[rows[:, 0]] - values[rows[:, 1]]
    torch.testing.assert_close(gradient, difference.mT @ difference)


def test_pair_entropy_equals_the_printed_sum() -> None:
    distances, signs = torch.tensor([0.2, 3.0]), torch.tensor([1.0, -1.0])
    unlabeled = torch.tensor([0.5])

    def p(sign: float, distance: float) -> float:
        return 1 / (1 + np.exp(sign * (distance - 1.0)))

    negative_entropy = sum(p(sign, 0.5) * np.log(p(sign, 0.5)) for sign in (1, -1))
    expected = -(np.log(p(1, 0.2)) + np.log(p(-1, 3.0))) / 2 - 0.5 * negative_entropy
    assert float(pair_entropy(distances, signs, unlabeled, 1.0, 0.5)) == pytest.approx(expected, rel=1e-5)
