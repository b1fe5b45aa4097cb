"""Live refinement: equal to the Refiner where nothing is left out, and votes that add up."""

from __future__ import annotations

import numpy as np
import pytest

from udml_core.base.arrays import Array
from udml_core.exploration.refining import (
    LiveGallery,
    RefinedGallery,
    choose_queries,
    measure,
    rounded_sample,
    seen_images,
    votes_for,
)
from udml_core.exploration.refining.effects import count_hits, recall_change
from udml_core.exploration.refining.stages import main_components
from udml_core.numerics.refinement import Recipe, Refiner
from udml_core.numerics.refinement.ranking_measures import label_free_measures, retrieval_measures

RECIPES = ["", "whiten", "whiten:covariance=images,shrinkage=0.3", "average:k=7", "average:k=6,times=3,alpha=2",
           "whiten:k=4+average:k=5,times=2+reduce:dimension=6", "reduce:dimension=5+expand:k=4,alpha=1",
           "whiten+rerank:k1=12,k2=4", "average:k=4,alpha=3+rerank:weight=0,k2=1", "diffuse:k=9,alpha=0.9",
           "expand:k=0", "average:k=0", "whiten+average:k=3,alpha=2+diffuse:shortlist=89"]


@pytest.fixture(scope="module")
def points() -> tuple[Array, Array]:
    """90 points of nine overlapping Gaussians, and the number of each point's Gaussian."""
    generator = np.random.default_rng(3)
    labels = np.repeat(np.arange(9), 10)
    return (generator.normal(size=(9, 12))[labels] + 0.9 * generator.normal(size=(90, 12))).astype(np.float32), labels


@pytest.fixture(scope="module")
def gallery(points: tuple[Array, Array]) -> LiveGallery:
    return LiveGallery(points[0], candidates=89, sample=90)


def refined(gallery: LiveGallery, recipe: str) -> RefinedGallery:
    return gallery.refine(Recipe.parse(recipe))


def by_distance(rows: Array) -> Array:
    """Return the other points (n, n − 1) of each point by Euclidean distance, nearest first."""
    squared = ((rows[:, None].astype(float) - rows) ** 2).sum(axis=2)
    np.fill_diagonal(squared, -1)
    return np.argsort(squared, axis=1)[:, 1:]


@pytest.mark.parametrize("offset", [0, 100])
def test_before_a_recipe_neighbors_are_nearest_by_distance_and_not_by_cosine(
        offset: int, points: tuple[Array, Array]) -> None:
    rows = points[0] + np.float32(offset)
    expected, live = by_distance(rows), LiveGallery(rows, candidates=89, sample=90)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    assert (by_distance(unit)[:, 0] != expected[:, 0]).mean() > 0.1
    np.testing.assert_array_equal(live.before.ranking, expected)
    np.testing.assert_array_equal(live.before.rank(np.array([17]))[0], expected[17])
    np.testing.assert_array_equal(live.before.rank(np.array([4, 80])), expected[[4, 80]])
    if not offset:
        np.testing.assert_array_equal(live.before.neighbors, expected[:, :10])


@pytest.mark.parametrize("recipe", [pytest.param(recipe, marks=() if number % 3 == 1 else pytest.mark.slow)
                                    for number, recipe in enumerate(RECIPES)])
def test_with_all_candidates_and_components_the_ranking_is_the_refiner_s(
        recipe: str, points: tuple[Array, Array], gallery: LiveGallery) -> None:
    live, exact = refined(gallery, recipe), Refiner(recipe).fit(points[0])
    np.testing.assert_allclose(live.stage.rows, exact.embedding_, atol=2e-5)
    ranking = exact.neighbors(89)
    scores = np.full((90, 90), np.nan)
    np.put_along_axis(scores, ranking.indices, ranking.scores, axis=1)
    # Images with equal neighbors have equal scores, and their order is open.
    shown = np.take_along_axis(scores, live.rank(np.arange(90), 20), axis=1)
    np.testing.assert_allclose(shown, ranking.scores[:, :20], atol=1e-5)


@pytest.mark.parametrize("recipe", ["whiten+average:k=6", "expand:k=5", "rerank:k1=10,shortlist=89"])
def test_measures_are_those_of_the_refiner_s_ranking(recipe: str, points: tuple[Array, Array],
                                                    gallery: LiveGallery) -> None:
    rows, labels = points
    before, after = by_distance(rows), Refiner(recipe).fit(rows).neighbors(89).indices
    measures = measure(refined(gallery, recipe), labels)
    for name, value in retrieval_measures(after, labels, labels, True).items():
        assert measures[name] == pytest.approx((retrieval_measures(before, labels, labels, True)[name], value))
    free = label_free_measures(after, before)
    # Re-ranking lists twice as many images as the measures need, which can miss a few of the last ranks.
    close = {"abs": 0.5} if "rerank" in recipe else {"rel": 1e-5}
    assert measures["reciprocity"][0] == pytest.approx(label_free_measures(before)["reciprocity"])
    assert measures["reciprocity"][1] == pytest.approx(free["reciprocity"], **close)
    assert measures["hubness"][1] == pytest.approx(free["hubness"], abs=0.05)
    assert measures["neighbor stability"] == (100, pytest.approx(free["neighbor stability"], **close))


def test_without_labels_only_label_free_measures_are_given(gallery: LiveGallery) -> None:
    assert list(measure(refined(gallery, "average"), None)) == ["reciprocity", "hubness", "neighbor stability"]
    assert list(measure(refined(gallery, "diffuse"), None)) == ["neighbor stability"]


@pytest.mark.parametrize("recipe", ["whiten:k=4", "average:k=4,alpha=2+whiten:k=3+reduce:dimension=5",
                                    "reduce:dimension=4+average:k=3"])
def test_linear_steps_are_fitted_on_the_training_half(recipe: str, points: tuple[Array, Array]) -> None:
    rows, labels = points
    gallery, training = rows[labels % 2 == 0], rows[labels % 2 == 1]
    live = LiveGallery(gallery, training, candidates=89)
    exact = Refiner(recipe).fit(gallery, training=training)
    np.testing.assert_allclose(refined(live, recipe).stage.rows, exact.embedding_, atol=2e-5)
    assert not np.allclose(exact.embedding_, Refiner(recipe).fit(gallery).embedding_, atol=1e-3)


def test_a_recipe_begins_with_embeddings_of_views_and_is_compared_with_the_stored_ones(
        points: tuple[Array, Array]) -> None:
    rows, labels = points
    viewed = rows + np.random.default_rng(5).normal(size=rows.shape).astype(np.float32)
    live = refined(LiveGallery(rows, viewed=viewed, candidates=89, sample=90), "average:k=4")
    np.testing.assert_allclose(live.stage.rows, Refiner("average:k=4").fit(viewed).embedding_, atol=2e-5)
    before = by_distance(rows)
    assert measure(live, labels)["map@r"][0] == pytest.approx(retrieval_measures(before, labels, labels, True)["map@r"])
    np.testing.assert_array_equal(live.before.neighbors, before[:, :10])


def test_the_candidates_limit_the_neighbors(points: tuple[Array, Array]) -> None:
    few = LiveGallery(points[0], candidates=5)
    nearest = few.start.candidates
    unit = points[0] / np.linalg.norm(points[0], axis=1, keepdims=True)
    mean = unit[:1] + unit[nearest[0]].sum(axis=0)
    np.testing.assert_allclose(refined(few, "average:k=20").stage.rows[0], mean[0] / np.linalg.norm(mean), atol=1e-6)


def test_the_main_components_keep_the_largest_squared_length() -> None:
    rows = np.array([[0.8, 0, 0.6], [0.8, 0.6, 0], [1, 0, 0]], np.float32)
    directions, share = main_components(rows, 2)
    _, values, right = np.linalg.svd(rows)
    assert share == pytest.approx((values[:2] ** 2).sum() / 3, abs=1e-6)
    assert directions is not None
    np.testing.assert_allclose(directions @ directions.T, right[:2].T @ right[:2], atol=1e-6)
    assert main_components(rows, 3) == (None, 1.0)


def test_votes_of_averaging_are_parts_of_the_cosine(points: tuple[Array, Array], gallery: LiveGallery) -> None:
    rows = points[0] / np.linalg.norm(points[0], axis=1, keepdims=True)
    nearest = np.argsort(-(rows @ rows.T), axis=1)[:, :5]  # the image itself and 4 neighbors
    sums = rows[nearest].sum(axis=1)
    means = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    query, image = 17, 12
    votes = votes_for(refined(gallery, "average:k=4"), query, image)
    expected = {int(voter): means[query] @ rows[voter] / np.linalg.norm(sums[image]) for voter in nearest[image]}
    assert dict(zip(votes.rows.tolist(), votes.values.tolist(), strict=True)) == pytest.approx(expected, abs=1e-5)
    assert votes.score == pytest.approx(means[query] @ means[image], abs=1e-5)
    assert (np.diff(votes.values) <= 0).all()
    assert set(votes.rows[votes.common].tolist()) == set(nearest[image]) & set(nearest[query])


def test_votes_of_query_expansion_come_from_the_query_and_its_neighbors(points: tuple[Array, Array],
                                                                       gallery: LiveGallery) -> None:
    rows = points[0] / np.linalg.norm(points[0], axis=1, keepdims=True)
    nearest = np.argsort(-(rows @ rows.T), axis=1)[:, :4]
    query, image = 3, 44
    total = rows[nearest[query]].sum(axis=0)
    votes = votes_for(refined(gallery, "expand:k=3"), query, image)
    expected = {int(voter): rows[voter] @ rows[image] / np.linalg.norm(total) for voter in nearest[query]}
    assert dict(zip(votes.rows.tolist(), votes.values.tolist(), strict=True)) == pytest.approx(expected, abs=1e-5)
    assert votes.score == pytest.approx(rows[image] @ total / np.linalg.norm(total), abs=1e-5)


def test_votes_of_re_ranking_are_the_overlap_of_the_encodings(gallery: LiveGallery) -> None:
    live = refined(gallery, "rerank:k1=8,k2=3,weight=0")
    query = 21
    nearest = int(live.rank(np.array([query]), 1)[0, 0])
    votes = votes_for(live, query, nearest)
    overlaps = np.minimum(live.encoding[0].toarray(), live.encoding[0].toarray()[query]).sum(axis=1)
    assert votes.score == pytest.approx(overlaps[nearest])
    assert overlaps[nearest] == pytest.approx(np.sort(overlaps)[-2])  # the largest overlap is the query's own
    assert votes.common.all()


def test_votes_of_a_diffusion_are_the_walk_s_arrivals(gallery: LiveGallery) -> None:
    live = refined(gallery, "diffuse:k=9,alpha=0.8,shortlist=89")
    query, image = 5, 8
    activation = np.zeros(90)
    activation[query] = 1
    graph = live.graph.toarray()
    walk = np.linalg.solve(np.eye(90) - 0.8 * graph, activation)
    votes = votes_for(live, query, image)
    np.testing.assert_allclose(votes.values, 0.8 * graph[image, votes.rows] * walk[votes.rows], atol=1e-5)
    assert votes.score == pytest.approx(walk[image], abs=1e-5)
    assert set(votes.rows) == set(np.flatnonzero(graph[image] * walk > 0))


def test_without_averaging_common_neighbors_explain_the_rank(gallery: LiveGallery) -> None:
    live = refined(gallery, "whiten")
    votes = votes_for(live, 30, 31)
    cosines = live.stage.rows @ live.stage.rows[[30, 31]].T
    np.testing.assert_allclose(votes.values, cosines[votes.rows].min(axis=1), atol=1e-6)
    assert votes.score == pytest.approx(float(cosines[31, 0]))
    assert not {30, 31} & set(votes.rows.tolist())


def test_queries_that_gain_and_that_lose_the_most_are_chosen(points: tuple[Array, Array],
                                                            gallery: LiveGallery) -> None:
    live, labels = refined(gallery, "average:k=6,times=2"), points[1]
    before, after = count_hits(live, labels, 12)
    gains = dict(zip(gallery.before.queries.tolist(), (after - before).tolist(), strict=True))
    chosen = [gains[row] for row in choose_queries(live, labels, 9).tolist()]
    assert chosen[:6] == sorted(gains.values(), reverse=True)[:6]
    assert chosen[6:] == sorted(gains.values())[:3]


def test_without_labels_the_queries_whose_first_ranks_change_the_most_are_chosen(gallery: LiveGallery) -> None:
    live = refined(gallery, "average:k=6,times=2")
    after, before = live.rank(np.arange(90), 10), gallery.before.ranking[:, :10]
    kept = np.array([len(set(one) & set(other)) for one, other in zip(after.tolist(), before.tolist(), strict=True)])
    chosen = choose_queries(live, None, 9)
    assert len(chosen) == 9
    assert kept[chosen].tolist() == sorted(kept.tolist())[:9]
    assert kept[chosen].max() < kept.max(), "some queries keep more of their results"


def test_a_change_of_recall_has_an_error_only_on_a_sample(points: tuple[Array, Array], gallery: LiveGallery) -> None:
    for live, sample in ((gallery, 90), (LiveGallery(points[0], candidates=89, sample=30), 30)):
        whitened = refined(live, "whiten")
        before, after = count_hits(whitened, points[1], 1)
        change = 100.0 * (after - before)
        assert len(change) == sample
        assert change.std() > 0
        expected = change.std() / np.sqrt(sample) * np.sqrt(1 - sample / 90)
        assert recall_change(whitened, points[1]) == (pytest.approx(change.mean()), pytest.approx(expected))


def test_an_empty_rank_is_no_hit(points: tuple[Array, Array], gallery: LiveGallery) -> None:
    live, labels = refined(gallery, "average:k=7"), points[1]
    ranking = live.rank_sample(12).copy()
    ranking[80:, 5:] = -1  # of the class of the last image, which a row of −1 would name
    live._sampled = ranking
    expected = [int((labels[row[row >= 0]] == labels[query]).sum()) for query, row in zip(
        gallery.before.queries, ranking, strict=True)]
    assert count_hits(live, labels, 12)[1].tolist() == expected


def test_equal_beginnings_of_recipes_are_computed_once(gallery: LiveGallery) -> None:
    assert refined(gallery, "whiten+average:k=5").stage is refined(gallery, "whiten+average:k=5+rerank").stage
    assert refined(gallery, "whiten+average:k=6").stage is not refined(gallery, "whiten+average:k=5").stage


def test_a_stage_does_not_serve_another_order_of_the_steps(points: tuple[Array, Array], gallery: LiveGallery) -> None:
    for recipe in ("whiten:k=3+reduce:dimension=4+whiten:k=3", "reduce:dimension=4+whiten:k=3", "whiten:k=3"):
        np.testing.assert_allclose(refined(gallery, recipe).stage.rows, Refiner(recipe).fit(points[0]).embedding_,
                                   atol=2e-5)


@pytest.mark.parametrize("recipe", ["views+whiten+average:k=3+rerank", "whiten+reduce:dimension=3", "expand"])
@pytest.mark.parametrize("has_training", [True, False])
def test_steps_have_seen_what_the_refiner_says(recipe: str, has_training: bool, points: tuple[Array, Array]) -> None:
    rows = points[0]
    exact = Refiner(Recipe.parse(recipe).without("views")).fit(rows[:45], training=rows[45:] if has_training else None)
    seen = seen_images(Recipe.parse(recipe), has_training)
    assert [images for name, images in seen if name != "views"] == [images for _, images in exact.seen_]
    assert dict(seen).get("views", "nothing") == "nothing"


def test_evenly_spaced_indices_reach_both_ends() -> None:
    assert rounded_sample(10, 4).tolist() == [0, 3, 6, 9]
    assert rounded_sample(3, 10).tolist() == [0, 1, 2]


@pytest.mark.parametrize("recipe", ["whiten", "average:k=3,alpha=3"])
def test_a_small_gallery_is_ranked_as_its_refinement_is_searched(recipe: str) -> None:
    rng = np.random.default_rng(4)
    rows = (rng.normal(size=(400, 300)) * np.geomspace(1, 0.02, 300)).astype(np.float32)  # wider than a large keeps
    live, exact = refined(LiveGallery(rows), recipe), Refiner(recipe).fit(rows)
    np.testing.assert_array_equal(live.rank(np.arange(400), 5), exact.neighbors(5).indices)


def test_fewer_components_whiten_with_the_mean_variance_of_all_dimensions() -> None:
    rng = np.random.default_rng(4)
    rows = (rng.normal(size=(300, 60)) * np.where(np.arange(60) < 12, 1, 1e-4)).astype(np.float32)
    live, exact = refined(LiveGallery(rows, components=12), "whiten"), Refiner("whiten").fit(rows)
    np.testing.assert_array_equal(live.rank(np.arange(300), 5), exact.neighbors(5).indices)
