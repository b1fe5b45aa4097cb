"""Cluster statistics, compared with loops over the digits' neighbor graph."""

from __future__ import annotations

import itertools
from collections import Counter
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import normalized_mutual_info_score

from udml_core.base.arrays import Array
from udml_core.data import catalog
from udml_core.exploration.clusters import (
    ascent_path,
    cluster_purity,
    cluster_summary,
    members,
    moved_points,
    rescale_authority,
    summaries_over,
)
from udml_core.exploration.lesson_examples import digits_vectors
from udml_core.numerics.explanations import Clusters
from udml_core.numerics.graph import AuthorityGraph

EPSILONS = (0.0, 0.35, 0.6, 0.8, 1.0)
some_labels = st.lists(st.integers(0, 5), min_size=1, max_size=40)


@cache
def digits() -> tuple[AuthorityGraph, Array, Array]:
    """Return the graph of 700 digits, their vectors (n, d) and classes (n,)."""
    vectors, labels = digits_vectors()[:700], catalog.load("digits").labels
    assert labels is not None
    return AuthorityGraph.build(vectors, 20), vectors, labels[:700]


def points_by_authority(clusters: Clusters) -> dict[int, list[int]]:
    """Return the points of each authority by following every point upward."""
    groups: dict[int, list[int]] = {}
    for point in range(len(clusters.parents)):
        authority = point
        while clusters.parents[authority] != authority:
            authority = int(clusters.parents[authority])
        groups.setdefault(authority, []).append(point)
    return groups


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_summary_equals_a_loop_over_every_point(epsilon: float) -> None:
    graph, _, labels = digits()
    clusters = graph.clusters(epsilon)
    groups = points_by_authority(clusters)
    result = cluster_summary(clusters, labels)
    assert result.count == len(groups)
    assert result.sizes.tolist() == [len(groups[mode]) for mode in clusters.modes]
    assert result.singletons == sum(len(points) == 1 for points in groups.values())
    covered = sum(len(points) for points in groups.values() if len(points) > 1)
    assert result.coverage == pytest.approx(covered / len(labels))
    majority = sum(Counter(labels[points].tolist()).most_common(1)[0][1] for points in groups.values())
    assert result.purity == pytest.approx(majority / len(labels))
    assert result.nmi == pytest.approx(normalized_mutual_info_score(labels, clusters.labels))
    unlabeled = cluster_summary(clusters)
    assert (unlabeled.purity, unlabeled.nmi) == (None, None)


def test_a_higher_epsilon_never_merges_clusters() -> None:
    graph, _, labels = digits()
    summaries = summaries_over(graph, EPSILONS, 100.0, labels)
    assert [each.count for each in summaries] == sorted(each.count for each in summaries)
    assert summaries[0].count < 60
    assert summaries[-1].count == summaries[-1].singletons == len(labels)
    assert summaries[-1].coverage == 0
    for each, epsilon in zip(summaries, EPSILONS, strict=True):
        direct = cluster_summary(graph.clusters(epsilon, 100.0), labels)
        assert (each.count, each.purity, each.nmi) == (direct.count, direct.purity, direct.nmi)


def test_gamma_has_an_effect_only_on_rescaled_authority() -> None:
    graph = digits()[0]
    wide = rescale_authority(graph)
    assert not graph.rescaled
    as_printed = [graph.clusters(0.5, gamma).labels for gamma in (0.0, 100.0)]
    multiplied = [wide.clusters(0.5, gamma).labels for gamma in (0.0, 100.0)]
    np.testing.assert_array_equal(*as_printed)
    np.testing.assert_array_equal(as_printed[0], multiplied[0])
    assert multiplied[1].max() > multiplied[0].max()


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_clusters_class_is_its_most_frequent_label(epsilon: float) -> None:
    graph, _, labels = digits()
    clusters = graph.clusters(epsilon)
    majority, share = cluster_purity(clusters, labels)
    groups = points_by_authority(clusters)
    for number, points in enumerate(groups[mode] for mode in clusters.modes):
        counts = Counter(labels[points].tolist())
        most = max(counts.values())
        assert majority[number] == min(label for label, count in counts.items() if count == most)
        assert share[number] == pytest.approx(most / len(points))


def moved_by_loop(before: list[int], after: list[int]) -> list[int]:
    successors = {}
    for cluster in set(before):
        counts = Counter(new for old, new in zip(before, after, strict=True) if old == cluster)
        successors[cluster] = min(new for new, count in counts.items() if count == max(counts.values()))
    return [point for point, (old, new) in enumerate(zip(before, after, strict=True)) if successors[old] != new]


@given(some_labels, st.data())
def test_moved_points_equal_a_loop_on_random_clusterings(before: list[int], data: st.DataObject) -> None:
    after = data.draw(st.lists(st.integers(0, 5), min_size=len(before), max_size=len(before)))
    assert moved_points(np.array(before), np.array(after)).tolist() == moved_by_loop(before, after)


def test_moved_points_equal_a_loop_between_slider_values() -> None:
    graph = digits()[0]
    clusterings = [graph.clusters(epsilon).labels for epsilon in (0.5, 0.55, 0.7)]
    for before in clusterings:
        assert not len(moved_points(before, before))
        for after in clusterings:
            assert moved_points(before, after).tolist() == moved_by_loop(before.tolist(), after.tolist())


@given(some_labels)
def test_no_point_moves_when_clusters_merge_or_are_renumbered(before: list[int]) -> None:
    labels = np.array(before)
    for renamed in (np.zeros(6, dtype=np.int64), np.arange(6) // 2, np.arange(6)[::-1]):
        assert not len(moved_points(labels, renamed[labels]))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_an_ascent_path_climbs_along_relevant_edges_to_the_authority(epsilon: float) -> None:
    graph = digits()[0]
    clusters = graph.clusters(epsilon)
    relevancy = dict(zip(zip(graph.rows.tolist(), graph.columns.tolist(), strict=True),
                         graph.relevancy(100.0).tolist(), strict=True))
    for point in range(0, len(clusters.labels), 7):
        path = ascent_path(clusters, point)
        assert path[0] == point
        assert path[-1] == clusters.modes[clusters.labels[point]]
        assert (np.diff(graph.authority[path]) > 0).all()
        assert all(relevancy[edge] > epsilon for edge in itertools.pairwise(path))


def test_members_start_with_the_medoid_and_move_outward() -> None:
    graph, vectors, _ = digits()
    clusters = graph.clusters(0.6)
    sizes = cluster_summary(clusters).sizes
    for cluster in np.argsort(-sizes)[:10]:
        points = members(clusters, int(cluster), vectors)
        assert sorted(points.tolist()) == np.flatnonzero(clusters.labels == cluster).tolist()
        rows = vectors[points].astype(np.float64)
        totals = ((rows[:, None] - rows) ** 2).sum(axis=(1, 2))
        assert totals[0] == pytest.approx(totals.min())
        assert (np.diff(totals) > -1e-4).all()
