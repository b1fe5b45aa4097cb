"""What the ε and γ sliders show, beside loops over every point, on the digits' own neighbor graph."""

from __future__ import annotations

import itertools
from collections import Counter
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import normalized_mutual_info_score

from udml_core.arrays import Array
from udml_core.data import catalog
from udml_core.explanations import Clusters
from udml_core.exploration import clusters as views
from udml_core.exploration.lessons import digits_vectors
from udml_core.graph import AuthorityGraph

EPSILONS = (0.0, 0.35, 0.6, 0.8, 1.0)
some_labels = st.lists(st.integers(0, 5), min_size=1, max_size=40)


@cache
def digits() -> tuple[AuthorityGraph, Array, Array]:
    """The graph of 700 digits, their vectors (n, d) and classes (n,)."""
    vectors, labels = digits_vectors()[:700], catalog.load("digits").labels
    assert labels is not None
    return AuthorityGraph.build(vectors, 20), vectors, labels[:700]


def groups(clusters: Clusters) -> dict[int, list[int]]:
    """The members of each authority, each point followed upwards by itself."""
    found: dict[int, list[int]] = {}
    for point in range(len(clusters.parents)):
        at = point
        while clusters.parents[at] != at:
            at = int(clusters.parents[at])
        found.setdefault(at, []).append(point)
    return found


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_numbers_are_those_of_a_loop_over_every_point(epsilon: float) -> None:
    graph, _, labels = digits()
    clusters = graph.clusters(epsilon)
    expected = groups(clusters)
    found = views.summary(clusters, labels)
    assert found.count == len(expected)
    assert found.sizes.tolist() == [len(expected[mode]) for mode in clusters.modes]
    assert found.singletons == sum(len(members) == 1 for members in expected.values())
    assert found.coverage == pytest.approx(sum(len(m) for m in expected.values() if len(m) > 1) / len(labels))
    majority = sum(Counter(labels[members].tolist()).most_common(1)[0][1] for members in expected.values())
    assert found.purity == pytest.approx(majority / len(labels))
    assert found.nmi == pytest.approx(normalized_mutual_info_score(labels, clusters.labels))
    without = views.summary(clusters)
    assert (without.purity, without.nmi) == (None, None)


def test_a_higher_epsilon_never_merges() -> None:
    graph, _, labels = digits()
    swept = views.sweep(graph, EPSILONS, 100.0, labels)
    assert [one.count for one in swept] == sorted(one.count for one in swept)
    assert swept[0].count < 60
    assert swept[-1].count == swept[-1].singletons == len(labels)
    assert swept[-1].coverage == 0
    for one, epsilon in zip(swept, EPSILONS, strict=True):
        alone = views.summary(graph.clusters(epsilon, 100.0), labels)
        assert (one.count, one.purity, one.nmi) == (alone.count, alone.purity, alone.nmi)


def test_gamma_matters_once_authority_is_rescaled() -> None:
    graph = digits()[0]
    wide = views.rescaled(graph)
    assert not graph.rescaled
    as_printed = [graph.clusters(0.5, gamma).labels for gamma in (0.0, 100.0)]
    multiplied = [wide.clusters(0.5, gamma).labels for gamma in (0.0, 100.0)]
    np.testing.assert_array_equal(*as_printed)
    np.testing.assert_array_equal(as_printed[0], multiplied[0])
    assert multiplied[1].max() > multiplied[0].max()


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_each_cluster_s_class_is_its_most_frequent_one(epsilon: float) -> None:
    graph, _, labels = digits()
    clusters = graph.clusters(epsilon)
    majority, share = views.cluster_purity(clusters, labels)
    for place, members in enumerate(groups(clusters)[mode] for mode in clusters.modes):
        counts = Counter(labels[members].tolist())
        most = max(counts.values())
        assert majority[place] == min(label for label, count in counts.items() if count == most)
        assert share[place] == pytest.approx(most / len(members))


def slowly_moved(before: list[int], after: list[int]) -> list[int]:
    heirs = {}
    for cluster in set(before):
        counts = Counter(new for old, new in zip(before, after, strict=True) if old == cluster)
        heirs[cluster] = min(new for new, count in counts.items() if count == max(counts.values()))
    return [point for point, (old, new) in enumerate(zip(before, after, strict=True)) if heirs[old] != new]


@given(some_labels, st.data())
def test_who_moved_is_what_a_loop_finds(before: list[int], data: st.DataObject) -> None:
    after = data.draw(st.lists(st.integers(0, 5), min_size=len(before), max_size=len(before)))
    assert views.moved(np.array(before), np.array(after)).tolist() == slowly_moved(before, after)


def test_who_moved_between_two_positions_of_the_slider() -> None:
    graph = digits()[0]
    clusterings = [graph.clusters(epsilon).labels for epsilon in (0.5, 0.55, 0.7)]
    for before in clusterings:
        assert not len(views.moved(before, before))
        for after in clusterings:
            assert views.moved(before, after).tolist() == slowly_moved(before.tolist(), after.tolist())


@given(some_labels)
def test_nobody_moves_where_clusters_only_merge_or_are_numbered_anew(before: list[int]) -> None:
    labels = np.array(before)
    for rename in (np.zeros(6, dtype=np.int64), np.arange(6) // 2, np.arange(6)[::-1]):
        assert not len(views.moved(labels, rename[labels]))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_an_ascent_path_climbs_along_relevant_edges_to_the_authority(epsilon: float) -> None:
    graph = digits()[0]
    clusters = graph.clusters(epsilon)
    relevancy = dict(zip(zip(graph.rows.tolist(), graph.columns.tolist(), strict=True),
                         graph.relevancy(100.0).tolist(), strict=True))
    for point in range(0, len(clusters.labels), 7):
        path = views.ascent_path(clusters, point)
        assert path[0] == point
        assert path[-1] == clusters.modes[clusters.labels[point]]
        assert (np.diff(graph.authority[path]) > 0).all()
        assert all(relevancy[edge] > epsilon for edge in itertools.pairwise(path))


def test_members_begin_with_the_medoid_and_go_outwards() -> None:
    graph, vectors, _ = digits()
    clusters = graph.clusters(0.6)
    sizes = views.summary(clusters).sizes
    for cluster in np.argsort(-sizes)[:10]:
        inside = views.members(clusters, int(cluster), vectors)
        assert sorted(inside.tolist()) == np.flatnonzero(clusters.labels == cluster).tolist()
        rows = vectors[inside].astype(np.float64)
        totals = ((rows[:, None] - rows) ** 2).sum(axis=(1, 2))
        assert totals[0] == pytest.approx(totals.min())
        assert (np.diff(totals) > -1e-4).all()
