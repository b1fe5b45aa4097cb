"""Affinity propagation: the dense closed form, its laws, the selected inverse."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from tests.numerics.graph.naive import propagated
from tests.tiers import fast_first
from udml_core.base.arrays import Array
from udml_core.numerics.graph import propagate, propagate_affinities
from udml_core.numerics.graph.selected_inverse import selected_inverse
from udml_core.numerics.neighbors import nearest


def graph(count: int, k: int, classes: int, labeled: int, seed: int = 0) -> tuple[Array, Array]:
    """Return the neighbors of points around class centers, and some of the labels."""
    random = np.random.default_rng(seed)
    truth = random.integers(0, classes, count)
    points = random.normal(size=(classes, 8))[truth] + random.normal(size=(count, 8))
    labels = np.full(count, -1)
    chosen = random.permutation(count)[:labeled]
    labels[chosen] = truth[chosen]
    return nearest(points, k)[1], labels


@pytest.mark.parametrize(("count", "k", "labeled"), [(1500, 10, 100), (700, 4, 20), (300, 50, 300), (40, 2, 0)])
@pytest.mark.parametrize("gamma", fast_first([0.99, 0.5, 0.9999]))
def test_affinities_equal_the_dense_closed_form(count: int, k: int, labeled: int, gamma: float) -> None:
    neighbors, labels = graph(count, k, 10, labeled)
    dense = propagated(neighbors, labels, gamma)
    affinities = propagate_affinities(neighbors, labels, gamma)
    expected = dense[np.arange(count)[:, None], neighbors]
    np.testing.assert_allclose(affinities, expected, rtol=0, atol=1e-10 * abs(dense).max())
    upper, expected_upper = ([{*row[np.argsort(-values, kind="stable")[: k // 2]]} for row, values in
                              zip(neighbors, np.round(matrix, 12), strict=True)] for matrix in (affinities, expected))
    assert np.mean([half == other for half, other in zip(upper, expected_upper, strict=True)]) >= 0.99


@settings(max_examples=60, deadline=None)
@given(count=st.integers(3, 60), k=st.integers(1, 6), seed=st.integers(0, 10_000), gamma=st.floats(0.01, 0.999))
def test_affinities_are_exact_on_any_directed_graph(count: int, k: int, seed: int, gamma: float) -> None:
    """The graphs include kNN graphs, disconnected graphs and cycles.

    Some points have no incoming edges.
    """
    random = np.random.default_rng(seed)
    k = min(k, count - 1)
    neighbors = np.stack([random.permutation(np.delete(np.arange(count), point))[:k] for point in range(count)])
    labels = random.integers(-1, 4, count)
    expected = propagated(neighbors, labels, gamma)[np.arange(count)[:, None], neighbors]
    np.testing.assert_allclose(propagate_affinities(neighbors, labels, gamma), expected, atol=1e-10)


def test_reach_is_the_probability_that_a_walk_ends_at_a_label_of_the_class() -> None:
    neighbors, labels = graph(400, 6, 3, 60)
    labels[labels >= 0] += 4  # labels need not start at 0
    propagation = propagate(neighbors, labels, 0.9)
    assert propagation.classes.tolist() == [4, 5, 6]
    assert (propagation.reach >= 0).all()
    assert (propagation.reach.sum(1) <= 1 + 1e-12).all()
    fully_labeled = propagate(neighbors, np.arange(400) % 3, 0.9)
    np.testing.assert_allclose(fully_labeled.reach.sum(1), 1, rtol=1e-12)
    random = np.random.default_rng(0)
    position = np.zeros(20_000, np.int64)
    walking = np.ones(len(position), bool)
    while walking.any():
        walking &= random.random(len(position)) < 0.9
        position = np.where(walking, neighbors[position, random.integers(0, 6, len(position))], position)
    shares = [np.mean(labels[position] == label) for label in propagation.classes]
    np.testing.assert_allclose(shares, propagation.reach[0], atol=0.012)


def test_initial_affinities_compare_the_labels_of_neighbors() -> None:
    neighbors = np.array([[1, 2], [2, 0], [3, 0], [2, 1]])
    propagation = propagate(neighbors, np.array([7, 7, 3, -1]))
    assert propagation.before.tolist() == [[1, -1], [-1, 1], [0, -1], [0, 0]]
    unlabeled = propagate(neighbors, np.full(4, -1))
    assert unlabeled.reach.shape == (4, 0)
    assert (unlabeled.after > 0).all()


@pytest.mark.parametrize("gamma", [0.0, 1.0, -0.5, float("nan")])
def test_a_gamma_outside_zero_and_one_raises_an_error(gamma: float) -> None:
    with pytest.raises(ValueError, match="gamma must be between 0 and 1"):
        propagate_affinities(np.array([[1], [0]]), np.array([-1, -1]), gamma)


@pytest.mark.parametrize("density", [0.0, 0.01, 0.1, 1.0])
def test_the_selected_inverse_equals_the_inverse_on_the_pattern_of_both_directions(density: float) -> None:
    random = np.random.default_rng(1)
    matrix = -random.random((80, 80)) * (random.random((80, 80)) < density)
    np.fill_diagonal(matrix, 1 + abs(matrix).sum(1))
    inverse, solution = selected_inverse(sparse.csr_array(matrix), matrix @ np.arange(160.0).reshape(80, 2))
    np.testing.assert_allclose(solution, np.arange(160.0).reshape(80, 2), atol=1e-10)
    pattern = (matrix != 0) | (matrix.T != 0)
    np.testing.assert_allclose(inverse.toarray(), np.where(pattern, np.linalg.inv(matrix), 0), atol=1e-12)
