"""Every measure, compared with literal loops.

The data include ties, duplicates and classes of one image."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import pearsonr
from sklearn.datasets import load_digits
from sklearn.manifold import trustworthiness as sklearn_trustworthiness
from sklearn.metrics import normalized_mutual_info_score

from udml_core.base import arrays
from udml_core.base.arrays import Array
from udml_core.numerics.evaluation import (
    average_precisions,
    cluster_measures,
    distortion,
    effective_rank,
    evaluate,
    headline_measures,
    kmeans_clusters,
    knn_accuracy,
    label_purity,
    linear_accuracy,
    map_at_r,
    mean_precision_at_k,
    nearest_is_hit,
    neighbor_stability,
    neighborhood_purity,
    nmi,
    pairwise_f,
    ranking,
    rankings,
    recall_at_k,
    recall_in_gallery,
    similarity_correlation,
    summary,
    trustworthiness,
)
from udml_core.numerics.evaluation.structure import same_distances

Case = tuple[Array, Array]

with_examples = settings(max_examples=60, deadline=None, derandomize=True)


@st.composite
def tied_embeddings(draw: st.DrawFn) -> Case:
    """Draw a few points on a small integer grid.

    Duplicates, ties and classes of one point are frequent."""
    count, dimension = draw(st.integers(2, 12)), draw(st.integers(1, 3))
    rows = st.lists(st.integers(-2, 2), min_size=dimension, max_size=dimension)
    embeddings = draw(st.lists(rows, min_size=count, max_size=count))
    labels = draw(st.lists(st.integers(0, 4), min_size=count, max_size=count))
    return np.array(embeddings, dtype=np.float32), np.array(labels)


labelings = st.integers(1, 12).flatmap(lambda count: st.tuples(
    *[st.lists(st.integers(-1, 4), min_size=count, max_size=count).map(np.array)] * 2))


def generic(count: int = 90, dimension: int = 6, classes: int = 8, seed: int = 0) -> Case:
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, classes, count)
    labels[0] = classes  # a class with one point
    return (generator.normal(size=(count, dimension)) + labels[:, None] % 3).astype(np.float32), labels


def order(embeddings: Array, query: int) -> list[int]:
    """Return all other points by distance, with ties by index."""
    exact = [[float(value) for value in row] for row in embeddings]
    others = [j for j in range(len(exact)) if j != query]
    return sorted(others, key=lambda j: (sum((a - b) ** 2 for a, b in zip(exact[query], exact[j], strict=True)), j))


def literal_recall(embeddings: Array, labels: Array, k: int) -> float:
    hits = sum(any(labels[j] == labels[i] for j in order(embeddings, i)[:k]) for i in range(len(labels)))
    return hits / len(labels)


def literal_map(embeddings: Array, labels: Array) -> tuple[float, int]:
    scores = []
    for i, label in enumerate(labels):
        others = int((labels == label).sum()) - 1
        if others:
            hits = [labels[j] == label for j in order(embeddings, i)[:others]]
            scores.append(sum(sum(hits[:r]) / r for r in range(1, others + 1) if hits[r - 1]) / others)
    return (sum(scores) / len(scores) if scores else math.nan), len(labels) - len(scores)


def literal_pairs(clusters: Array, labels: Array) -> dict[str, float]:
    pairs = [(clusters[i] == clusters[j], labels[i] == labels[j]) for i, j in combinations(range(len(labels)), 2)]
    correct, predicted, true = (sum(map(test, pairs)) for test in (all, lambda pair: pair[0], lambda pair: pair[1]))
    precision, recall = correct / predicted if predicted else 0.0, correct / true if true else 0.0
    return {"precision": precision, "recall": recall,
            "f": 2 * precision * recall / (precision + recall) if precision + recall else 0.0}


def literal_purity(clusters: Array, labels: Array) -> float:
    majorities = (max(np.sum(labels[clusters == c] == y) for y in set(labels)) for c in set(clusters))
    return float(sum(majorities) / len(labels))


@with_examples
@given(case=tied_embeddings())
def test_rankings_are_by_distance_then_index_without_the_query(case: Case) -> None:
    embeddings, _ = case
    (queries, neighbors), = rankings(embeddings, len(embeddings) - 1)
    assert queries.tolist() == list(range(len(embeddings)))
    assert neighbors.tolist() == [order(embeddings, i) for i in range(len(embeddings))]


@with_examples
@given(case=tied_embeddings())
def test_recall_and_map_equal_literal_loops_with_ties(case: Case) -> None:
    recall = recall_at_k(*case, ks=(1, 2, 4, 30))
    assert recall == pytest.approx({k: literal_recall(*case, k) for k in (1, 2, 4, 30)}, abs=1e-12)
    assert map_at_r(*case) == pytest.approx(literal_map(*case), abs=1e-12, nan_ok=True)
    embeddings, labels = case
    assert nearest_is_hit(*case).tolist() == [labels[order(embeddings, i)[0]] == labels[i] for i in range(len(labels))]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("unit", [False, True])
def test_recall_and_map_equal_literal_loops_on_generic_points(seed: int, unit: bool) -> None:
    embeddings, labels = generic(seed=seed)
    if unit:
        embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    assert recall_at_k(embeddings, labels) == pytest.approx(
        {k: literal_recall(embeddings, labels, k) for k in (1, 2, 4, 8)})
    assert map_at_r(embeddings, labels) == pytest.approx(literal_map(embeddings, labels))


def many(kind: str) -> Array:
    """Return enough points for rankings in float32: generic ones, or such with equal or nearly equal distances."""
    random = np.random.default_rng(7)
    points = random.normal(size=(2200, 12)).astype(np.float32)
    match kind:
        case "ties":
            return random.integers(-1, 2, size=(2200, 5)).astype(np.float32)
        case "duplicates":
            points[random.integers(0, 2200, 1500)] = points[3]  # more than candidates
        case "clump":
            points[:400] = points[0] + 3e-4 * points[:400]  # float32 cannot tell these distances apart
        case "far":
            points += 3e3
        case "wide":
            return random.normal(size=(2200, 300)).astype(np.float32)
    return points


@pytest.mark.parametrize("kind", ["generic", "ties", "duplicates", "clump", "far", "wide"])
def test_rankings_in_float32_equal_the_exact_ones(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    points, asked = many(kind), np.array([5, 3, 2199, 700])
    fast = np.concatenate([neighbors for _, neighbors in rankings(points, 40)])
    of_asked = [np.concatenate(parts) for parts in zip(*rankings(points, 40, asked), strict=True)]
    monkeypatch.setattr(ranking, "MANY", len(points) + 1)
    exact = np.concatenate([neighbors for _, neighbors in rankings(points, 40)])
    np.testing.assert_array_equal(fast, exact)
    np.testing.assert_array_equal(of_asked[0], asked)
    np.testing.assert_array_equal(of_asked[1], exact[asked])
    np.testing.assert_array_equal(next(rankings(points, 40, asked))[1], exact[asked])


@pytest.mark.parametrize("count", [600, 2200])
def test_a_far_point_changes_no_ranking_of_the_others(count: int) -> None:
    points = np.random.default_rng(8).normal(size=(count, 6))
    before = np.concatenate([neighbors for _, neighbors in rankings(points, 20)])
    far = np.concatenate([points, 1e5 * points[:1]])
    after = np.concatenate([neighbors for _, neighbors in rankings(far, 20)])
    np.testing.assert_array_equal(after[:count], before)


@pytest.mark.parametrize("error", [0.01, 0.5, 20.0])
def test_the_order_of_distances_with_errors_is_mended(error: float) -> None:
    points, random = np.random.default_rng(5).normal(size=(200, 4)), np.random.default_rng(6)
    exact, distances = next(rankings(points, 20))[1], ranking.Distances(points)
    squared = ((points[:, None] - points) ** 2).sum(axis=2) + random.uniform(-error, error, (200, 200))
    found = np.argsort(squared, axis=1)[:, :60]
    mended = ranking._put_in_order(distances, np.arange(200), np.take_along_axis(squared, found, axis=1), found, 20,
                                   2 * error)
    np.testing.assert_array_equal(mended, exact)


def test_wide_points_are_compared_in_blocks_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    points, labels = generic(30, 40)
    points = points.astype(np.float64) + 1e4  # which costs digits unless the points are centered
    points[7] = points[3]
    narrow = (rankings_of(points, 12), recall_at_k(points, labels), map_at_r(points, labels),
              distortion(points[::-1], points, 5), effective_rank(points))
    monkeypatch.setattr(ranking, "WIDE", 8)
    monkeypatch.setattr(arrays, "BLOCK_ENTRIES", 7 * len(points))
    wide = (rankings_of(points, 12), recall_at_k(points, labels), map_at_r(points, labels),
            distortion(points[::-1], points, 5), effective_rank(points))
    np.testing.assert_array_equal(wide[0], narrow[0])
    assert wide[1:3] == narrow[1:3]
    np.testing.assert_array_equal(wide[3], narrow[3])
    assert wide[4] == pytest.approx(narrow[4], rel=1e-7)


def rankings_of(points: Array, k: int) -> Array:
    """Return the k nearest other points (n, k) of each point."""
    return np.concatenate([neighbors for _, neighbors in rankings(points, k)])


def test_fewer_points_than_dimensions_are_clustered_by_their_distances(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(2)
    true = np.repeat(np.arange(4), 15)
    points = 5 * random.normal(size=(4, 300))[true] + random.normal(size=(60, 300)) + 100
    turned = same_distances(points)
    assert turned.shape == (60, 60)
    expected = np.linalg.norm(points[:, None] - points, axis=2)
    np.testing.assert_allclose(np.linalg.norm(turned[:, None] - turned, axis=2), expected, atol=1e-4)
    seen = []
    monkeypatch.setattr(cluster_measures, "WIDE", 200)
    monkeypatch.setattr(cluster_measures, "same_distances", lambda rows: seen.append(rows) or same_distances(rows))
    assert nmi(kmeans_clusters(points, 4), true) == pytest.approx(1)
    assert len(seen) == 1


def test_asked_queries_search_all_images_and_have_a_margin() -> None:
    embeddings, labels = generic()
    asked = np.arange(0, len(labels), 3)
    row = evaluate(embeddings, labels, embeddings, asked=asked)
    hits = [float(labels[order(embeddings, i)[0]] == labels[i]) for i in asked]
    scores = average_precisions(embeddings, labels)[asked]
    assert row["queries"] == len(asked)
    assert row["recall@1"] == pytest.approx(100 * np.mean(hits))
    assert row["map@r"] == pytest.approx(100 * np.nanmean(scores))
    assert row["recall@1 margin"] == pytest.approx(196 * np.std(hits, ddof=1) / np.sqrt(len(asked)))
    known = scores[~np.isnan(scores)]
    assert row["map@r margin"] == pytest.approx(196 * np.std(known, ddof=1) / np.sqrt(len(known)))
    assert "queries" not in evaluate(embeddings, labels, embeddings)
    of_classes = evaluate(embeddings, None, embeddings, classes=labels[:, None] == np.unique(labels), asked=asked)
    assert of_classes["queries"] == len(asked)
    assert of_classes["mprec@1"] == pytest.approx(row["mprec@1"])


def test_results_do_not_depend_on_the_chunk_size(monkeypatch: pytest.MonkeyPatch) -> None:
    embeddings, labels = generic()
    in_one_chunk = recall_at_k(embeddings, labels), map_at_r(embeddings, labels)
    trust_in_one_chunk = trustworthiness(embeddings[::-1], embeddings)
    monkeypatch.setattr(ranking, "CHUNK_ENTRIES", 7 * len(labels))
    monkeypatch.setattr(ranking, "LEAST_ROWS", 1)
    assert len(list(rankings(embeddings, 3))) == 13
    in_chunks = recall_at_k(embeddings, labels), map_at_r(embeddings, labels)
    trust_in_chunks = trustworthiness(embeddings[::-1], embeddings)
    assert in_one_chunk == in_chunks
    np.testing.assert_array_equal(trust_in_one_chunk, trust_in_chunks)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_retrieval_does_not_depend_on_scale_and_origin(scale: float, offset: float) -> None:
    """A large common offset costs digits of the distances; they must not become ties."""
    embeddings, labels = generic(seed=5)
    moved = (embeddings.astype(np.float64) + offset) * scale
    assert recall_at_k(moved, labels) == recall_at_k(embeddings, labels)
    assert map_at_r(moved, labels) == pytest.approx(map_at_r(embeddings, labels))


def test_a_collapsed_embedding_is_ranked_by_distance() -> None:
    """Unit vectors at distances of 1e-5 differ in float32 and must not rank as ties."""
    embeddings, labels = generic(seed=6)
    collapsed = np.ones((len(labels), 1), dtype=np.float64) + 1e-5 * embeddings
    collapsed = collapsed.astype(np.float32)
    (_, neighbors), = rankings(collapsed, 3)
    assert neighbors.tolist() == [order(collapsed, i)[:3] for i in range(len(labels))]


@pytest.mark.parametrize(("labels", "recall", "score", "left_out"), [
    ([0, 0], 1.0, 1.0, 0),
    ([0, 1], 0.0, math.nan, 2),
])
def test_two_points(labels: list[int], recall: float, score: float, left_out: int) -> None:
    embeddings = np.array([[0.0], [3.0]])
    assert recall_at_k(embeddings, np.array(labels)) == dict.fromkeys((1, 2, 4, 8), recall)
    assert map_at_r(embeddings, np.array(labels)) == pytest.approx((score, left_out), nan_ok=True)


def test_map_at_r_by_hand() -> None:
    """Four points on a line have the classes a a b a, so R = 2 for class a.

    The first point has a hit at rank 1, with AP (1/1)/2, the last one at rank 2, with AP (1/2)/2.
    """
    points, labels, shares = np.array([[0.0], [1], [2.5], [4]]), np.array([0, 0, 1, 0]), list[float]()
    np.testing.assert_allclose(average_precisions(points, labels, shares.append), [0.5, 0.5, np.nan, 0.25])
    assert shares == [1.0]
    assert map_at_r(points, labels) == (pytest.approx((0.5 + 0.5 + 0.25) / 3), 1)


@with_examples
@given(case=labelings)
def test_cluster_measures_equal_literal_loops(case: Case) -> None:
    clusters, labels = case
    assert nmi(clusters, labels) == pytest.approx(normalized_mutual_info_score(labels, clusters), abs=1e-12)
    assert pairwise_f(clusters, labels) == pytest.approx(literal_pairs(clusters, labels), abs=1e-12)
    assert label_purity(clusters, labels) == pytest.approx(literal_purity(clusters, labels), abs=1e-12)


@with_examples
@given(case=labelings)
def test_cluster_measures_do_not_depend_on_cluster_names(case: Case) -> None:
    clusters, labels = case
    renamed = 7 - 3 * clusters
    assert nmi(renamed, labels) == pytest.approx(nmi(clusters, labels), abs=1e-12)
    assert pairwise_f(renamed, labels) == pairwise_f(clusters, labels)
    assert label_purity(renamed, labels) == label_purity(clusters, labels)


def test_nmi_uses_the_arithmetic_mean_of_the_entropies() -> None:
    """Four singletons, two classes of 2: I = H(labels) = log 2, H(clusters) = log 4."""
    assert nmi(np.arange(4), np.array([0, 0, 1, 1])) == pytest.approx(math.log(2) / ((math.log(4) + math.log(2)) / 2))


@pytest.mark.parametrize("k", [1, 5, 12])
def test_mean_trustworthiness_equals_scikit_learn(k: int) -> None:
    space, _ = generic(count=80, dimension=10)
    embedding = space[:, :2] + 0.1 * np.random.default_rng(1).normal(size=(80, 2)).astype(np.float32)
    for first, second in [(space, embedding), (embedding, space)]:
        trust = trustworthiness(first, second, k)
        assert trust.shape == (80,)
        assert trust.mean() == pytest.approx(sklearn_trustworthiness(first, second, n_neighbors=k), abs=1e-6)
    np.testing.assert_array_equal(trustworthiness(space, 2 * space, k), np.ones(80))


def literal_trustworthiness(space: Array, embedding: Array, k: int) -> list[float]:
    count = len(space)
    values = []
    for i in range(count):
        ranks = {j: rank for rank, j in enumerate(order(space, i), start=1)}
        penalty = sum(max(0, ranks[j] - k) for j in order(embedding, i)[:k])
        values.append(1 - 2 * penalty / (k * (2 * count - 3 * k - 1)))
    return values


@with_examples
@given(tied_embeddings(), st.integers(0, 2**31), st.integers(1, 5))
def test_distortion_equals_a_literal_loop_with_ties(case: Case, seed: int, k: int) -> None:
    space = case[0]
    embedding = np.random.default_rng(seed).integers(-2, 3, (len(space), 2)).astype(np.float32)
    if k >= len(space) / 2:
        return
    trust, continuity = distortion(space, embedding, k)
    np.testing.assert_allclose(trust, literal_trustworthiness(space, embedding, k))
    np.testing.assert_allclose(continuity, literal_trustworthiness(embedding, space, k))
    np.testing.assert_array_equal(trust, trustworthiness(space, embedding, k))
    np.testing.assert_array_equal(continuity, trustworthiness(embedding, space, k))


def test_mean_distortion_on_digits_equals_scikit_learn() -> None:
    """Random projections remove ties, which scikit-learn does not resolve reliably."""
    random = np.random.default_rng(0)
    space = (load_digits().data @ random.normal(size=(64, 32))).astype(np.float32)
    embedding = space @ random.normal(size=(32, 2)).astype(np.float32)
    shares: list[float] = []
    trust, continuity = distortion(space, embedding, report=shares.append)
    assert trust.mean() == pytest.approx(sklearn_trustworthiness(space, embedding, n_neighbors=12), abs=1e-6)
    assert continuity.mean() == pytest.approx(sklearn_trustworthiness(embedding, space, n_neighbors=12), abs=1e-6)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


@pytest.mark.parametrize(("embeddings", "expected"), [
    (np.linspace(-1, 1, 50)[:, None] * np.ones(64), 1.0),
    (np.vstack([np.eye(7), -np.eye(7)]), 7.0),
    (np.vstack([np.eye(7), -np.eye(7)]) + 40, 7.0),
    (np.ones((20, 3)), 1.0),
    (np.array([[3.0, 0], [-3, 0], [0, 1], [0, -1]]), math.exp(-0.75 * math.log(0.75) - 0.25 * math.log(0.25))),
], ids=["line", "isotropic", "off center", "point", "two to one"])
def test_known_effective_ranks(embeddings: Array, expected: float) -> None:
    assert effective_rank(embeddings) == pytest.approx(expected, rel=1e-4)


def test_neighbor_stability_is_the_mean_overlap() -> None:
    before, _ = generic(count=40)
    after = before + np.random.default_rng(2).normal(size=before.shape).astype(np.float32)
    overlaps = [len(set(order(before, i)[:5]) & set(order(after, i)[:5])) / 5 for i in range(40)]
    assert 0.1 < np.mean(overlaps) < 0.9
    assert neighbor_stability(before, after, 5) == pytest.approx(np.mean(overlaps))
    assert neighbor_stability(before, -3 * before, 5) == 1.0


def test_kmeans_finds_separated_groups_and_is_repeatable() -> None:
    embeddings, labels = generic(classes=3)
    separated = embeddings + 50 * (labels[:, None] == np.arange(6))
    clusters = kmeans_clusters(separated, 4)
    assert nmi(clusters, labels) == pytest.approx(1)
    np.testing.assert_array_equal(clusters, kmeans_clusters(separated, 4))


def test_many_classes_add_deep_recalls(monkeypatch: pytest.MonkeyPatch) -> None:
    embeddings, labels = generic()
    for many, depths in ((10, (1, 2, 4, 8)), (9, (1, 2, 4, 8, 10, 100, 1_000))):
        monkeypatch.setattr(summary, "MANY_CLASSES", many)
        found = evaluate(embeddings, labels, embeddings)
        expected = recall_at_k(embeddings, labels, depths)
        assert {name: value for name, value in found.items() if name.startswith("recall@")} == pytest.approx(
            {f"recall@{k}": 100 * value for k, value in expected.items()})


def test_evaluate_returns_all_measures_in_percent() -> None:
    embeddings, labels = generic()
    space = np.hstack([embeddings, np.random.default_rng(3).normal(size=(90, 4))])
    shares: list[float] = []
    result = evaluate(embeddings, labels, space, shares.append)
    clusters = kmeans_clusters(embeddings, 9)
    expected = {f"recall@{k}": 100 * value for k, value in recall_at_k(embeddings, labels).items()}
    expected |= {name: 100 * value for name, value in pairwise_f(clusters, labels).items()}
    expected |= {f"mprec@{k}": 100 * mean_precision_at_k(embeddings, labels, (k,))[k] for k in range(1, 51)}
    score, left_out = map_at_r(embeddings, labels)
    expected |= {"images": 90, "dimension": 6, "map@r": 100 * score, "map@r left out": left_out,
                 "nmi": 100 * nmi(clusters, labels), "purity": 100 * label_purity(clusters, labels),
                 "trustworthiness": 100 * trustworthiness(space, embeddings).mean(),
                 "continuity": 100 * trustworthiness(embeddings, space).mean(),
                 "effective rank": effective_rank(embeddings)}
    assert result == pytest.approx(expected)
    assert [name for name in headline_measures(result) if "mprec" in name] == ["mprec@10"]
    assert len(headline_measures(result)) == len(result) - 49
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    unlabeled = evaluate(embeddings, None, space)
    assert unlabeled == {name: result[name] for name in unlabeled}
    assert {"trustworthiness", "continuity", "effective rank"} <= set(unlabeled)
    assert "nmi" not in unlabeled


@pytest.mark.parametrize("count", [2, 3, 4, 5, 24, 25, 26])
def test_distortion_of_few_images_uses_fewer_neighbors(count: int) -> None:
    space = generic()[0][:count]
    result = evaluate(space[:, :2], None, space)
    assert ("trustworthiness" in result) == ("continuity" in result) == (count > 2)
    if count > 2:
        k = min(12, (count - 1) // 2)
        assert result["trustworthiness"] == pytest.approx(100 * trustworthiness(space, space[:, :2], k).mean())
        assert 0 <= result["trustworthiness"] <= 100


@pytest.mark.parametrize(("call", "message"), [
    (lambda: recall_at_k(np.ones((3, 2)), np.zeros(2)), r"each of the 3 embeddings, got shape \(2,\)"),
    (lambda: map_at_r(np.ones((3, 2)), np.zeros((3, 1))), r"each of the 3 embeddings, got shape \(3, 1\)"),
    (lambda: recall_at_k(np.ones((1, 2)), np.zeros(1)), "at least 2 embeddings, got 1"),
    (lambda: map_at_r(np.ones((0, 2)), np.zeros(0)), "at least 2 embeddings, got 0"),
    (lambda: recall_at_k(np.ones((3, 2)), np.zeros(3), ks=(1, 0)), r"needs k ≥ 1, got \(1, 0\)"),
    (lambda: pairwise_f(np.zeros(3), np.zeros(4)), r"lists of equal length, got \(3,\) and \(4,\)"),
    (lambda: label_purity(np.zeros(0), np.zeros(0)), "lists of equal length"),
    (lambda: trustworthiness(np.ones((10, 2)), np.ones((10, 2)), 5), "got k=5 for n=10"),
    (lambda: trustworthiness(np.ones((10, 2)), np.ones((10, 2)), 0), "got k=0 for n=10"),
])
def test_invalid_input_raises_an_error_with_the_value(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_neighborhood_purity_equals_a_literal_loop() -> None:
    random = np.random.default_rng(0)
    labels = random.integers(0, 4, 50)
    neighbors = np.stack([random.permutation(np.delete(np.arange(50), row))[:7] for row in range(50)])
    members = random.random((50, 7)) < 0.5
    sets = [labels[[row, *neighbors[row][members[row]]]] for row in range(50)]
    expected = np.mean([np.bincount(members).max() / len(members) for members in sets])
    purity, size = neighborhood_purity(neighbors, members, labels)
    assert purity == pytest.approx(expected)
    assert size == pytest.approx(np.mean([len(members) for members in sets]))
    assert neighborhood_purity(neighbors, np.zeros_like(members), labels) == (1.0, 1.0)


def test_similarity_correlation_equals_scipy_over_all_pairs() -> None:
    random = np.random.default_rng(1)
    labels = random.integers(0, 3, 40)
    similarities = random.random((40, 40))
    similarities = similarities + similarities.T
    pairs = [(row, column) for row in range(40) for column in range(row)]
    expected = pearsonr([similarities[pair] for pair in pairs], [float(labels[i] == labels[j]) for i, j in pairs])
    assert similarity_correlation(similarities, labels) == pytest.approx(expected.statistic)
    assert similarity_correlation(labels[:, None] == labels, labels) == pytest.approx(1)


def literal_precision(embeddings: Array, has_class: Array, k: int) -> float:
    """Compute mprec@k as in NML's paper, class by class and query by query."""
    squared = ((embeddings[:, None] - embeddings[None]) ** 2).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    means = []
    for label in range(has_class.shape[1]):
        queries = np.flatnonzero(has_class[:, label])
        if len(queries):
            shares = [has_class[np.argsort(squared[query], kind="stable")[:k], label].mean() for query in queries]
            means.append(np.mean(shares))
    return float(np.mean(means))


@pytest.mark.parametrize("several", [False, True], ids=["one class per image", "several classes"])
def test_mean_precision_averages_over_queries_then_over_classes(several: bool) -> None:
    random = np.random.default_rng(3)
    embeddings = random.normal(size=(70, 4))
    labels = np.repeat([2, 5, 11], [50, 15, 5])
    has_class = labels[:, None] == np.array([2, 5, 7, 11])
    if several:
        has_class = has_class | (random.random(has_class.shape) < 0.2)
        has_class[:3] = False  # images without a class are in the gallery but are no queries
        has_class[:, 2] = False
    precision = mean_precision_at_k(embeddings, has_class if several else labels, (1, 10, 50, 69))
    assert precision == pytest.approx({k: literal_precision(embeddings, has_class, k) for k in (1, 10, 50, 69)})
    assert mean_precision_at_k(embeddings, labels, (100,))[100] == pytest.approx(
        mean_precision_at_k(embeddings, labels, (69,))[69])


def test_recall_in_a_gallery_equals_a_literal_loop_with_ties() -> None:
    random = np.random.default_rng(3)
    embeddings, labels = random.integers(0, 4, (60, 2)).astype(float), random.integers(0, 6, 60)
    queries = random.random(60) < 0.4
    gallery = np.flatnonzero(~queries)
    expected = {1: 0, 3: 0, 99: 0}
    for query in np.flatnonzero(queries):
        order = sorted(gallery, key=lambda index: (((embeddings[index] - embeddings[query]) ** 2).sum(), index))
        for k in expected:
            expected[k] += bool((labels[order[:k]] == labels[query]).any())
    measured = recall_in_gallery(embeddings, labels, queries, tuple(expected))
    assert measured == pytest.approx({k: hits / queries.sum() for k, hits in expected.items()})
    with pytest.raises(ValueError, match="needs queries and a gallery, got 60 and 0"):
        recall_in_gallery(embeddings, labels, np.ones(60, bool), (1,))


def test_mean_precision_is_nan_without_classes_and_rejects_invalid_input() -> None:
    embeddings = np.zeros((4, 2))
    assert math.isnan(mean_precision_at_k(embeddings, np.zeros((4, 3), dtype=bool))[10])
    with pytest.raises(ValueError, match="k ≥ 1"):
        mean_precision_at_k(embeddings, np.zeros(4, int), (0,))
    with pytest.raises(ValueError, match="one entry for each"):
        mean_precision_at_k(embeddings, np.zeros(3, int))


def knn_by_loops(train: Array, labels: Array, test: Array, truth: Array, k: int, temperature: float) -> float:
    correct = 0
    for row, true in zip(test, truth, strict=True):
        cosine = [float(row @ other / (np.linalg.norm(row) * np.linalg.norm(other))) for other in train]
        neighbors = sorted(range(len(train)), key=lambda index: (-round(cosine[index] / 1e-6), index))[:k]
        scores = {name: sum(math.exp(cosine[index] / temperature) for index in neighbors if labels[index] == name)
                  for name in sorted(set(labels.tolist()))}
        correct += max(scores, key=lambda name: scores[name]) == true
    return correct / len(test)


@pytest.mark.parametrize(("k", "temperature"), [(1, 0.1), (7, 0.1), (7, 5.0), (200, 0.1)])
def test_weighted_knn_equals_a_literal_vote_with_any_chunk_size(
        k: int, temperature: float, monkeypatch: pytest.MonkeyPatch) -> None:
    points, labels = generic(150, 4, 5)
    points = points + 0.5 * labels[:, None]
    seen = (points[:100], labels[:100], points[100:], labels[100:])
    expected = knn_by_loops(*seen, k, temperature)
    assert knn_accuracy(*seen, k, temperature) == expected
    monkeypatch.setattr(ranking, "CHUNK_ENTRIES", 700)
    assert knn_accuracy(*seen, k, temperature) == expected


def test_ties_go_to_the_lowest_index_and_at_low_temperature_the_nearest_decides() -> None:
    train, labels = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.array([7, 3, 3])
    assert knn_accuracy(train, labels, train[:1], np.array([7]), k=1) == 1
    assert knn_accuracy(train, labels, np.array([[0.5, 1.0]]), np.array([3]), temperature=1e-6) == 1
    with pytest.raises(ValueError, match="k ≥ 1 and a temperature above 0, got 0"):
        knn_accuracy(train, labels, train, labels, k=0)


def test_the_linear_probe_finds_linear_classes_at_any_scale_and_none_in_noise() -> None:
    generator = np.random.default_rng(0)
    points = generator.normal(size=(600, 5)) * [1e-4, 1, 1, 1, 1e3]
    labels = (points[:, 0] > 0).astype(int) + 3
    assert linear_accuracy(points[:400], labels[:400], points[400:], labels[400:]) > 0.95
    noise = generator.integers(0, 2, 600)
    assert 0.35 < linear_accuracy(points[:400], noise[:400], points[400:], noise[400:]) < 0.65


def test_a_linear_probe_of_tiny_classes_gives_no_warning(
        recwarn: pytest.WarningsRecorder) -> None:
    points = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
    assert linear_accuracy(points, np.zeros(12, int), points, np.arange(12) % 3) == pytest.approx(1 / 3)
    assert 0 <= linear_accuracy(points, np.arange(12), points, np.arange(12)) <= 1
    assert not [str(warning.message) for warning in recwarn]
