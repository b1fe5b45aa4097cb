"""Authority ascent shift: its laws, and a slow literal RPML eq. (3)–(4)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.metrics import normalized_mutual_info_score

from tests.tiers import fast_first
from udml_core.base.arrays import Array
from udml_core.numerics.graph import AuthorityGraph, AuthorityShift

SETTINGS = [(0.0, 100.0), (0.4, 100.0), (0.65, 100.0), (0.65, 1e8), (0.8, 100.0), (0.9, 0.0)]


@dataclass
class Reference:
    """W, ω and P as dense float64 arrays."""

    affinity: Array
    authority: Array
    transition: Array

    @staticmethod
    def of(points: Array, k: int) -> Reference:
        count = len(points)
        exact = points.astype(np.float64)
        squared = np.stack([((exact - row) ** 2).sum(axis=1) for row in exact])
        neighbors = [[j for j in np.argsort(row, kind="stable") if j != i][:k] for i, row in enumerate(squared)]
        sigma = np.median([np.sqrt(squared[i, j]) for i in range(count) for j in neighbors[i]])
        affinity = np.zeros((count, count))
        for i in range(count):
            for j in neighbors[i]:
                affinity[i, j] = np.exp(-squared[i, j] / (2 * sigma**2))
        affinity = np.maximum(affinity, affinity.T)
        degree = affinity.sum(axis=1)
        return Reference(affinity, degree / degree.sum(), affinity / degree[:, None])

    def clusters(self, epsilon: float, gamma: float, scale: float = 1.0) -> tuple[list[int], list[int]]:
        """Return the parents, and the root at the end of each point's path."""
        omega = self.authority
        parents = []
        for i, transition in enumerate(self.transition):
            best, parent = 0.0, i
            for j in np.flatnonzero(transition):
                degree = self.affinity[i].sum()
                psi = degree * transition[j] * np.exp(-gamma * (scale * (omega[j] - omega[i])) ** 2)
                ascent = transition[j] * (omega[j] - omega[i])
                if psi > epsilon and ascent > best:
                    best, parent = ascent, int(j)
            parents.append(parent)
        roots = []
        for i in range(len(parents)):
            while parents[i] != i:
                i = parents[i]
            roots.append(i)
        return parents, roots


@cache
def digits() -> tuple[Array, Array]:
    data = load_digits()
    points = data.data.astype(np.float32)
    return points / np.linalg.norm(points, axis=1, keepdims=True), data.target


@cache
def digits_graph() -> AuthorityGraph:
    return AuthorityGraph.build(digits()[0], 50)


@cache
def digits_reference() -> Reference:
    return Reference.of(digits()[0], 50)


def blobs(count: int = 60, seed: int = 0) -> Array:
    """Return two groups of points far apart, so that their graph has two components."""
    generator = np.random.default_rng(seed)
    return (generator.normal(size=(count, 4)) + 100 * (np.arange(count) % 2)[:, None]).astype(np.float32)


def test_authority_and_affinity_equal_the_reference() -> None:
    graph, reference = digits_graph(), digits_reference()
    np.testing.assert_allclose(graph.authority, reference.authority, rtol=1e-5)
    np.testing.assert_allclose(graph.affinity, reference.affinity[graph.rows, graph.columns], rtol=1e-5)
    climbing = (reference.affinity > 0) & (reference.authority[None, :] > reference.authority[:, None])
    assert len(graph.rows) == climbing.sum()


@pytest.mark.parametrize(("epsilon", "gamma"), fast_first(SETTINGS, 2))
def test_clusters_equal_the_reference(epsilon: float, gamma: float) -> None:
    """Parents, modes and labels are exactly equal.

    No two ascents on the digits differ by less than float32 errors.
    """
    clusters = digits_graph().clusters(epsilon, gamma)
    parents, roots = digits_reference().clusters(epsilon, gamma)
    np.testing.assert_array_equal(clusters.parents, parents)
    np.testing.assert_array_equal(clusters.modes[clusters.labels], roots)
    np.testing.assert_array_equal(clusters.modes, np.unique(roots))


@pytest.mark.parametrize("gamma", [0.1, 100.0])
def test_rescaled_authority_gives_gamma_an_effect(gamma: float) -> None:
    points = digits()[0][:300]
    graph = AuthorityGraph.build(points, 20, rescaled=True)
    np.testing.assert_array_equal(graph.clusters(0.5, gamma).parents,
                                  Reference.of(points, 20).clusters(0.5, gamma, scale=300)[0])
    assert len(graph.clusters(0.5, 100.0).modes) > len(graph.clusters(0.5, 0.1).modes)


@pytest.mark.parametrize(("epsilon", "clusters", "agreement"), [(0.40, 9, 0.75), (0.65, 95, 0.84), (0.80, 825, 0.58)])
def test_digits_give_the_recorded_clusters(epsilon: float, clusters: int, agreement: float) -> None:
    points, classes = digits()
    labels = AuthorityShift(epsilon=epsilon).fit_predict(points)
    assert labels.max() + 1 == clusters
    assert normalized_mutual_info_score(classes, labels) == pytest.approx(agreement, abs=0.02)


@pytest.mark.parametrize("build", [digits_graph, lambda: AuthorityGraph.build(blobs(), 7)], ids=["digits", "blobs"])
@pytest.mark.parametrize(("epsilon", "gamma"), SETTINGS)
def test_paths_climb_to_the_modes(build: Any, epsilon: float, gamma: float) -> None:
    graph = build()
    clusters = graph.clusters(epsilon, gamma)
    points = np.arange(len(graph.authority))
    has_parent = clusters.parents != points
    assert (graph.authority[clusters.parents] > graph.authority)[has_parent].all()
    np.testing.assert_array_equal(clusters.modes, points[~has_parent])
    np.testing.assert_array_equal(clusters.labels[clusters.parents], clusters.labels)
    np.testing.assert_array_equal(clusters.labels[clusters.modes], np.arange(len(clusters.modes)))


def test_raising_epsilon_adds_modes_and_removes_none() -> None:
    """The clusters are not nested.

    A point that loses its parent may climb into another tree.
    """
    modes = [set(digits_graph().clusters(epsilon).modes) for epsilon in np.linspace(0, 1, 21)]
    assert all(before <= after for before, after in pairwise(modes))


def test_the_order_of_calls_does_not_matter() -> None:
    graph = AuthorityGraph.build(digits()[0], 50)
    for epsilon, gamma in [*SETTINGS, *reversed(SETTINGS)]:
        fresh = digits_graph().clusters(epsilon, gamma)
        np.testing.assert_array_equal(graph.clusters(epsilon, gamma).parents, fresh.parents)


class InterruptedGraph(AuthorityGraph):
    """A graph shared with another browser session.

    The other session asks for another γ after each access to the cache.
    """

    other_gamma: float | None = None

    def interrupt(self, name: str) -> None:
        gamma = self.other_gamma
        if name in ("_staircase", "relevancy") and gamma is not None:
            self.other_gamma = None  # the other session's own accesses are not interrupted
            self.clusters(0.4, gamma)
            self.other_gamma = gamma

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if name not in ("interrupt", "other_gamma"):
            self.interrupt(name)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        self.interrupt(name)


@pytest.mark.parametrize("cached_gamma", [None, 0.1, 100.0])
def test_sessions_that_share_a_graph_do_not_get_each_others_gamma(cached_gamma: float | None) -> None:
    """One session uses γ = 0.1 and another γ = 100.

    The cache is empty or holds either γ at the start.
    """
    points = digits()[0][:300]
    expected = AuthorityGraph.build(points, 20, rescaled=True)
    shared = InterruptedGraph(**vars(expected))
    if cached_gamma is not None:
        shared.clusters(0.5, cached_gamma)
    for gamma, other_gamma in ((0.1, 100.0), (100.0, 0.1)):
        shared.other_gamma = other_gamma
        clusters = shared.clusters(0.5, gamma)
        np.testing.assert_array_equal(clusters.parents, expected.clusters(0.5, gamma).parents)
    assert not np.array_equal(expected.clusters(0.5, 0.1).parents, expected.clusters(0.5, 100.0).parents)


@pytest.mark.parametrize(("points", "k"), [(blobs(), 7), (digits()[0], 50)], ids=["blobs", "digits"])
def test_at_epsilon_zero_the_modes_are_the_local_maxima_of_authority(points: Array, k: int) -> None:
    reference = Reference.of(points, k)
    linked = reference.affinity > 0
    highest = np.where(linked, reference.authority, -1).max(axis=1)
    peaks = np.flatnonzero(reference.authority >= highest)
    np.testing.assert_array_equal(AuthorityGraph.build(points, k).clusters(0.0).modes, peaks)
    count, component = connected_components(linked)
    assert set(component[peaks]) == set(range(count))


@pytest.mark.parametrize("epsilon", [1.0, 2.0])
def test_from_epsilon_one_every_cluster_is_a_singleton(epsilon: float) -> None:
    clusters = digits_graph().clusters(epsilon)
    np.testing.assert_array_equal(clusters.labels, np.arange(len(clusters.labels)))
    np.testing.assert_array_equal(clusters.parents, np.arange(len(clusters.labels)))


def test_clusters_stay_within_a_component() -> None:
    labels = AuthorityShift(n_neighbors=7, epsilon=0.0).fit_predict(blobs())
    assert set(labels[::2]).isdisjoint(labels[1::2])


def test_duplicates_climb_to_copies_of_one_point() -> None:
    """Every point occurs three times.

    Copies have equal authority, so the copies of a mode do not climb to each other. The copies of any other point lead
    to copies of the same mode.
    """
    distinct = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    clusters = AuthorityGraph.build(np.repeat(distinct, 3, axis=0), 11).clusters(0.0)
    roots = (clusters.modes[clusters.labels] // 3).reshape(40, 3)
    assert (roots == roots[:, :1]).all()
    assert 1 < len(set(roots[:, 0])) < 40


def test_identical_points_have_a_valid_clustering() -> None:
    shift = AuthorityShift(n_neighbors=4, epsilon=0.5).fit(np.ones((12, 3), dtype=np.float32))
    np.testing.assert_allclose(shift.graph_.authority.sum(), 1)
    np.testing.assert_array_equal(shift.labels_[shift.parents_], shift.labels_)


def test_ties_go_to_the_lowest_index() -> None:
    """A point of low authority lies between two mirror images.

    Both ascents are equal to the last bit.
    """
    graph = AuthorityGraph(authority=np.array([0.2, 0.1, 0.2]), rows=np.array([1, 1]), columns=np.array([0, 2]),
                           affinity=np.array([0.7, 0.7]))
    np.testing.assert_array_equal(graph.clusters(0.5, gamma=0.0).parents, [0, 0, 2])
    np.testing.assert_array_equal(graph.clusters(0.7, gamma=0.0).parents, [0, 1, 2])  # ψ must exceed ε


@pytest.mark.parametrize("count", [2, 50])
def test_too_few_points_raise_an_error_with_the_possible_numbers_of_neighbors(count: int) -> None:
    with pytest.raises(ValueError, match=f"between 1 and {count - 1}, got 50"):
        AuthorityShift().fit(digits()[0][:count])


def test_the_estimator_follows_the_scikit_learn_contract() -> None:
    shift = AuthorityShift(n_neighbors=9, epsilon=0.3, gamma=7.0, rescaled=True)
    assert shift.get_params() == {"n_neighbors": 9, "epsilon": 0.3, "gamma": 7.0, "rescaled": True}
    copy = clone(shift).set_params(epsilon=0.4)
    assert copy.get_params() == {**shift.get_params(), "epsilon": 0.4}
    assert shift.fit(blobs()) is shift
    clusters = shift.graph_.clusters(0.3, 7.0)
    np.testing.assert_array_equal(shift.labels_, clusters.labels)
    np.testing.assert_array_equal(shift.modes_, clusters.modes)
    np.testing.assert_array_equal(shift.parents_, clusters.parents)
    np.testing.assert_array_equal(clone(shift).fit_predict(blobs()), shift.labels_)
