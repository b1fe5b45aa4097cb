"""Authority ascent shift beside a slow, literal reading of FORMULAS (3)–(4) and METHODS §1, and its laws."""

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

from udml_core.arrays import Array
from udml_core.graph import AuthorityGraph, AuthorityShift

SETTINGS = [(0.0, 100.0), (0.4, 100.0), (0.65, 100.0), (0.65, 1e8), (0.8, 100.0), (0.9, 0.0)]


@dataclass
class Reference:
    """Dense and in float64: W, ω, P."""

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
        """Parents, and the root at the end of each point's path."""
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
    """Two groups far apart, so that their graph falls into two components."""
    generator = np.random.default_rng(seed)
    return (generator.normal(size=(count, 4)) + 100 * (np.arange(count) % 2)[:, None]).astype(np.float32)


def test_authority_and_affinity_are_the_references() -> None:
    graph, reference = digits_graph(), digits_reference()
    np.testing.assert_allclose(graph.authority, reference.authority, rtol=1e-5)
    np.testing.assert_allclose(graph.affinity, reference.affinity[graph.rows, graph.columns], rtol=1e-5)
    climbing = (reference.affinity > 0) & (reference.authority[None, :] > reference.authority[:, None])
    assert len(graph.rows) == climbing.sum()


@pytest.mark.parametrize(("epsilon", "gamma"), SETTINGS)
def test_clusters_are_the_references(epsilon: float, gamma: float) -> None:
    """Parents, modes and labels, exactly: on the digits no two ascents are as near as float32 distances err."""
    found = digits_graph().clusters(epsilon, gamma)
    parents, roots = digits_reference().clusters(epsilon, gamma)
    np.testing.assert_array_equal(found.parents, parents)
    np.testing.assert_array_equal(found.modes[found.labels], roots)
    np.testing.assert_array_equal(found.modes, np.unique(roots))


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
def test_paths_climb_to_fixed_points(build: Any, epsilon: float, gamma: float) -> None:
    graph = build()
    found = graph.clusters(epsilon, gamma)
    points = np.arange(len(graph.authority))
    moving = found.parents != points
    assert (graph.authority[found.parents] > graph.authority)[moving].all()
    np.testing.assert_array_equal(found.modes, points[~moving])
    np.testing.assert_array_equal(found.labels[found.parents], found.labels)
    np.testing.assert_array_equal(found.labels[found.modes], np.arange(len(found.modes)))


def test_raising_epsilon_adds_modes_and_removes_none() -> None:
    """The clusters themselves need not refine: a point whose parent is lost may climb into another tree."""
    modes = [set(digits_graph().clusters(epsilon).modes) for epsilon in np.linspace(0, 1, 21)]
    assert all(before <= after for before, after in pairwise(modes))


def test_the_order_in_which_settings_are_asked_does_not_matter() -> None:
    graph = AuthorityGraph.build(digits()[0], 50)
    for epsilon, gamma in [*SETTINGS, *reversed(SETTINGS)]:
        fresh = digits_graph().clusters(epsilon, gamma)
        np.testing.assert_array_equal(graph.clusters(epsilon, gamma).parents, fresh.parents)


@pytest.mark.parametrize(("points", "k"), [(blobs(), 7), (digits()[0], 50)], ids=["blobs", "digits"])
def test_epsilon_zero_leaves_the_local_maxima_of_authority(points: Array, k: int) -> None:
    reference = Reference.of(points, k)
    linked = reference.affinity > 0
    highest = np.where(linked, reference.authority, -1).max(axis=1)
    peaks = np.flatnonzero(reference.authority >= highest)
    np.testing.assert_array_equal(AuthorityGraph.build(points, k).clusters(0.0).modes, peaks)
    components, of = connected_components(linked)
    assert set(of[peaks]) == set(range(components))


@pytest.mark.parametrize("epsilon", [1.0, 2.0])
def test_epsilon_one_leaves_singletons(epsilon: float) -> None:
    found = digits_graph().clusters(epsilon)
    np.testing.assert_array_equal(found.labels, np.arange(len(found.labels)))
    np.testing.assert_array_equal(found.parents, np.arange(len(found.labels)))


def test_components_never_merge() -> None:
    labels = AuthorityShift(n_neighbors=7, epsilon=0.0).fit_predict(blobs())
    assert set(labels[::2]).isdisjoint(labels[1::2])


def test_duplicates_climb_to_the_same_place() -> None:
    """Every point three times. Copies are equal in authority, so those of a mode do not climb to each other, but all
    others lead to copies of one point."""
    once = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    found = AuthorityGraph.build(np.repeat(once, 3, axis=0), 11).clusters(0.0)
    places = (found.modes[found.labels] // 3).reshape(40, 3)
    assert (places == places[:, :1]).all()
    assert 1 < len(set(places[:, 0])) < 40


def test_all_points_alike_give_some_clustering() -> None:
    shift = AuthorityShift(n_neighbors=4, epsilon=0.5).fit(np.ones((12, 3), dtype=np.float32))
    np.testing.assert_allclose(shift.graph_.authority.sum(), 1)
    np.testing.assert_array_equal(shift.labels_[shift.parents_], shift.labels_)


def test_ties_go_to_the_lowest_index() -> None:
    """A middle of low authority between two mirror images: both ascents are equal to the last bit."""
    graph = AuthorityGraph(authority=np.array([0.2, 0.1, 0.2]), rows=np.array([1, 1]), columns=np.array([0, 2]),
                           affinity=np.array([0.7, 0.7]))
    np.testing.assert_array_equal(graph.clusters(0.5, gamma=0.0).parents, [0, 0, 2])
    np.testing.assert_array_equal(graph.clusters(0.7, gamma=0.0).parents, [0, 1, 2])  # ψ must exceed ε


@pytest.mark.parametrize("count", [2, 50])
def test_too_few_points_say_how_many_neighbors_there_can_be(count: int) -> None:
    with pytest.raises(ValueError, match=f"between 1 and {count - 1}, got 50"):
        AuthorityShift().fit(digits()[0][:count])


def test_the_estimator_keeps_scikit_learns_contract() -> None:
    shift = AuthorityShift(n_neighbors=9, epsilon=0.3, gamma=7.0, rescaled=True)
    assert shift.get_params() == {"n_neighbors": 9, "epsilon": 0.3, "gamma": 7.0, "rescaled": True}
    copy = clone(shift).set_params(epsilon=0.4)
    assert copy.get_params() == {**shift.get_params(), "epsilon": 0.4}
    assert shift.fit(blobs()) is shift
    again = shift.graph_.clusters(0.3, 7.0)
    np.testing.assert_array_equal(shift.labels_, again.labels)
    np.testing.assert_array_equal(shift.modes_, again.modes)
    np.testing.assert_array_equal(shift.parents_, again.parents)
    np.testing.assert_array_equal(clone(shift).fit_predict(blobs()), shift.labels_)
