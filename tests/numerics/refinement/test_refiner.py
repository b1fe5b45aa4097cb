"""The refiner: laws that hold for every recipe, and each step against its formula."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.data.encoders import Encoder, EncoderSpec
from udml_core.data.training_data import TrainingData
from udml_core.methods import Setting
from udml_core.methods.closed_form import Whiten
from udml_core.numerics.graph.mutual_neighbors import mutual_pairs_of
from udml_core.numerics.refinement import Refiner
from udml_core.numerics.refinement.averaging import average_neighbors, expand_queries
from udml_core.numerics.refinement.linear import SpanMap, reduction, unit_rows, whitening
from udml_core.numerics.refinement.unit_neighbors import nearest_unit

RECIPES = ["", "whiten:k=3", "whiten:covariance=images", "average:k=4,times=2,alpha=2", "reduce:dimension=5",
           "whiten:k=3+average:k=3,alpha=2+reduce:dimension=6+expand:k=2", "rerank:k1=6,k2=3",
           "diffuse:k=6,shortlist=30", "average:k=2,alpha=2+expand:k=2+rerank:k1=5,k2=2,shortlist=20"]


def rows_of(seed: int, count: int, dimension: int = 8) -> Array:
    return np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32)


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_order_of_the_gallery_does_not_matter(recipe: str) -> None:
    gallery, queries = rows_of(0, 60), rows_of(1, 7)
    order = np.random.default_rng(2).permutation(60)
    plain, permuted = Refiner(recipe).fit(gallery), Refiner(recipe).fit(gallery[order])
    similarity = plain.embedding_ @ plain.embedding_.T
    np.testing.assert_allclose(permuted.embedding_ @ permuted.embedding_.T, similarity[np.ix_(order, order)],
                               atol=1e-5)
    # Averaging without weights would make images with the same neighbors equal, and equal images have no order.
    np.testing.assert_array_equal(order[permuted.neighbors(8).indices], plain.neighbors(8).indices[order])
    np.testing.assert_array_equal(order[permuted.search(queries, 8).indices], plain.search(queries, 8).indices)
    np.testing.assert_allclose(permuted.neighbors(8).scores, plain.neighbors(8).scores[order], atol=1e-4)


@pytest.mark.parametrize("recipe", RECIPES)
def test_queries_from_outside_change_neither_the_gallery_nor_each_other(recipe: str) -> None:
    gallery, queries = rows_of(0, 60), rows_of(1, 9)
    refiner = Refiner(recipe).fit(gallery)
    embedding, neighbors = refiner.embedding_.copy(), refiner.neighbors(5)
    ranking = refiner.search(queries, 5)
    changed = np.concatenate([queries[:1], 3 * rows_of(5, 40)])
    again = refiner.search(changed, 5)
    np.testing.assert_array_equal(again.indices[0], ranking.indices[0])
    np.testing.assert_allclose(again.scores[0], ranking.scores[0], atol=1e-6)
    np.testing.assert_array_equal(refiner.embedding_, embedding)
    np.testing.assert_array_equal(refiner.neighbors(5).indices, neighbors.indices)
    assert np.abs(again.scores[1] - ranking.scores[1]).max() > 1e-3


@pytest.mark.parametrize("recipe", RECIPES)
def test_rankings_have_every_image_once_and_never_the_query(recipe: str) -> None:
    gallery = rows_of(0, 40)
    refiner = Refiner(recipe).fit(gallery)
    inside, outside = refiner.neighbors(100), refiner.search(rows_of(1, 6), 100)
    assert inside.indices.shape == (40, 39)
    for image, ranked in enumerate(inside.indices):
        assert sorted(ranked) == [other for other in range(40) if other != image]
    assert [sorted(ranked) for ranked in outside.indices] == [list(range(40))] * 6
    for ranking in (inside, outside):
        assert (np.diff(ranking.scores, axis=1) <= 1e-6).all()


def test_no_function_receives_labels() -> None:
    for name in ("fit", "transform", "fit_transform", "neighbors", "search"):
        parameters = set(inspect.signature(getattr(Refiner, name)).parameters)
        assert parameters <= {"self", "gallery", "y", "training", "report", "rows", "k", "queries"}
    gallery, labels = rows_of(0, 30), np.arange(30) % 3
    np.testing.assert_array_equal(Refiner("average:k=3").fit(gallery, labels).embedding_,
                                  Refiner("average:k=3").fit(gallery).embedding_)


def test_the_constructor_only_stores() -> None:
    assert vars(Refiner("no such step")) == {"recipe": "no such step"}


def test_a_refiner_is_a_step_of_scikit_learn() -> None:
    gallery, queries = rows_of(0, 40), rows_of(1, 5)
    expected = Refiner("whiten:k=3").fit(gallery)
    copy = clone(expected).set_params(recipe="whiten:k=3")
    assert not hasattr(copy, "embedding_")
    pipeline = make_pipeline(StandardScaler(with_mean=False, with_std=False), copy).fit(gallery, np.arange(40) % 2)
    np.testing.assert_array_equal(pipeline.transform(gallery), expected.embedding_)
    np.testing.assert_array_equal(pipeline.transform(queries), expected.transform(queries))
    first = make_pipeline(Refiner("average:k=3"), Refiner("whiten:k=3")).fit(gallery, np.arange(40) % 2)
    assert first.transform(gallery).shape == (40, 8)


def test_rows_of_the_gallery_return_their_refined_rows_in_any_order_and_others_are_queries() -> None:
    gallery = rows_of(0, 30)
    refiner = Refiner("average:k=3").fit(gallery)
    np.testing.assert_array_equal(refiner.transform(gallery.tolist()), refiner.embedding_)
    np.testing.assert_array_equal(refiner.transform(gallery[[7, 2, 2]]), refiner.embedding_[[7, 2, 2]])
    np.testing.assert_array_equal(refiner.transform(2 * gallery[:1]), refiner.embedding_[:1])
    gallery[4] = -gallery[4]
    changed = refiner.transform(gallery)
    np.testing.assert_allclose(changed[4], unit_rows(gallery)[4], atol=1e-6)
    np.testing.assert_array_equal(np.delete(changed, 4, axis=0), np.delete(refiner.embedding_, 4, axis=0))


def test_wrong_calls_of_a_refiner_raise_an_error() -> None:
    for call in (lambda new: new.transform(rows_of(0, 3)), lambda new: new.neighbors(3),
                 lambda new: new.search(rows_of(0, 3), 3), lambda new: new.protocol(inside=True)):
        with pytest.raises(UserError, match="not fitted; its recipe is 'whiten'"):
            call(Refiner("whiten"))
    refiner = Refiner("whiten:k=3").fit(rows_of(0, 20))
    for call in (refiner.transform, lambda rows: refiner.search(rows, 3)):
        with pytest.raises(UserError, match="queries must have the gallery's dimension 8; got 5"):
            call(rows_of(0, 3, 5))
        with pytest.raises(UserError, match="queries must be an array of numbers; got a list"):
            call([[1.0, 2.0], [3.0]])
        with pytest.raises(UserError, match=r"shape \(n, d\); got \(8,\)"):
            call(rows_of(0, 1)[0])
    with pytest.raises(UserError, match="training half must have the gallery's dimension 8; got 5"):
        Refiner("whiten:k=3").fit(rows_of(0, 20), training=rows_of(0, 20, 5))


def test_each_step_names_the_images_it_has_seen() -> None:
    gallery, training = rows_of(0, 30), rows_of(1, 30)
    inductive = Refiner("whiten:k=3+reduce:dimension=4").fit(gallery, training=training)
    assert inductive.seen_ == [("whiten", "training half"), ("reduce", "training half")]
    assert inductive.neighbors(3).protocol == inductive.search(gallery[:2], 3).protocol == "inductive"
    fitted = Refiner("whiten:k=3").fit(gallery)
    assert fitted.seen_ == [("whiten", "gallery")]
    averaged = Refiner("whiten:k=3+average:k=2").fit(gallery, training=training)
    assert averaged.seen_ == [("whiten", "training half"), ("average", "gallery")]
    for refiner in (fitted, averaged):
        assert refiner.neighbors(3).protocol == "transductive"
        assert refiner.search(gallery[:2], 3).protocol == "gallery"


def test_inductive_steps_do_not_depend_on_the_gallery() -> None:
    training, image = rows_of(1, 40), rows_of(2, 1)
    recipe = "whiten:k=3+reduce:dimension=4"
    first = Refiner(recipe).fit(rows_of(3, 30), training=training).transform(image)
    second = Refiner(recipe).fit(rows_of(4, 20), training=training).transform(image)
    np.testing.assert_array_equal(first, second)
    assert first.shape == (1, 4)


def test_views_are_averaged_before_unit_length() -> None:
    gallery = np.array([[[3.0, 0.0], [0.0, 1.0]], [[0.0, 2.0], [0.0, 4.0]]], np.float32)
    np.testing.assert_allclose(Refiner("views").fit_transform(gallery), [[3 / 10**0.5, 1 / 10**0.5], [0, 1]], atol=1e-6)


@given(st.integers(0, 100), st.floats(0, 8), st.integers(1, 3))
@settings(max_examples=20, deadline=None)
def test_an_average_over_no_neighbors_is_the_identity(seed: int, alpha: float, times: int) -> None:
    rows, queries = unit_rows(rows_of(seed, 12)), unit_rows(rows_of(seed + 1, 3))
    np.testing.assert_array_equal(average_neighbors(rows, 0, times, alpha), rows)
    np.testing.assert_array_equal(expand_queries(queries, rows, 0, alpha), queries)


@pytest.mark.parametrize("alpha", [0.0, 3.0])
@pytest.mark.parametrize("times", [1, 2])
def test_averages_equal_a_loop(alpha: float, times: int) -> None:
    rows = unit_rows(rows_of(0, 30)).astype(np.float64)
    result = average_neighbors(rows, 4, times, alpha)
    for _ in range(times):
        cosine = rows @ rows.T
        means = []
        for image in range(30):
            others = [other for other in np.argsort(-cosine[image]) if other != image][:4]
            total = rows[image] + sum(max(0.0, cosine[image, other]) ** alpha * rows[other] for other in others)
            means.append(total / np.linalg.norm(total))
        rows = np.array(means)
    np.testing.assert_allclose(result, rows, atol=1e-5)


def test_expansion_uses_the_nearest_gallery_images() -> None:
    gallery = np.eye(3, dtype=np.float32)
    query = unit_rows(np.array([[2.0, 1.0, 0.0]]))
    cosine = 2 / 5**0.5
    expected = np.array([cosine + cosine**2, 1 / 5**0.5, 0])
    result = expand_queries(query, gallery, 1, 2.0)[0]
    np.testing.assert_allclose(result, expected / np.linalg.norm(expected), atol=1e-6)


def test_neighbor_whitening_equals_the_method_whiten() -> None:
    rows = unit_rows(rows_of(0, 50))
    setting = Setting(0, torch.device("cpu"), Encoder(EncoderSpec(backbone="pixels", size=4)))
    (epoch,) = Whiten(n_neighbors=4, shrinkage=0.7).fit(TrainingData(torch.from_numpy(rows)), setting)
    expected = epoch.embedder.embed_features(rows)
    np.testing.assert_allclose(whitening(rows, "neighbors", 4, 0.7)(rows), expected, atol=1e-5)


def test_whitening_all_images_makes_the_covariance_white() -> None:
    rows = unit_rows(rows_of(0, 400) * np.linspace(0.3, 2, 8, dtype=np.float32))
    linear = whitening(rows, "images", shrinkage=1e-6)
    covariance = np.cov(((rows - linear.offset) @ linear.weight).T, bias=True)
    np.testing.assert_allclose(covariance, np.eye(8), atol=1e-3)


@pytest.mark.parametrize("covariance", ["neighbors", "images"])
@pytest.mark.parametrize("shrinkage", [0.7, 0.0])
def test_whitening_in_the_span_of_few_images_equals_that_of_all_dimensions(covariance: Any, shrinkage: float) -> None:
    """A row that is orthogonal to all images leads the map out of their span."""
    rows = unit_rows(np.random.default_rng(3).standard_normal((30, 50)).astype(np.float32) + 0.4)
    rows[:5] = rows[5:10]  # fewer directions than images
    linear, mean = whitening(rows, covariance, 4, shrinkage), rows.mean(axis=0)
    pairs = mutual_pairs_of(nearest_unit(rows, 4)[1])
    difference = (rows[pairs[:, 0]] - rows[pairs[:, 1]] if covariance == "neighbors" else rows - mean).astype(float)
    matrix = difference.T @ difference / len(difference)
    values, vectors = np.linalg.eigh(matrix + (shrinkage * np.trace(matrix) / 50 or 1) * np.eye(50))
    expected = vectors / np.sqrt(values) @ vectors.T
    assert isinstance(linear, SpanMap)
    np.testing.assert_allclose(linear.weight, expected, atol=2e-5 * np.abs(expected).max())
    new = np.random.default_rng(4).standard_normal((7, 50)).astype(np.float32)
    np.testing.assert_allclose(linear(new), unit_rows((new - mean) @ expected), atol=2e-5)


def test_reduction_of_few_images_equals_that_of_all_dimensions() -> None:
    rows = unit_rows(np.random.default_rng(3).standard_normal((30, 50)).astype(np.float32))
    centered = (rows - rows.mean(axis=0)).astype(float)
    expected = np.linalg.eigh(centered.T @ centered).eigenvectors[:, ::-1][:, :6]
    weight = reduction(rows, 6).weight
    np.testing.assert_allclose(np.abs((weight * expected).sum(axis=0)), 1, atol=1e-5)


def test_reduction_keeps_the_directions_of_largest_variance() -> None:
    rows = unit_rows(rows_of(0, 200) * np.array([3, 1, 1, 1, 1, 1, 1, 2], np.float32))
    linear = reduction(rows, 2)
    variance = np.var((rows - linear.offset) @ linear.weight, axis=0)
    np.testing.assert_allclose(variance, np.linalg.eigvalsh(np.cov(rows.T, bias=True))[::-1][:2], rtol=1e-4)


@pytest.mark.parametrize(("recipe", "gallery", "message"), [
    ("whiten", rows_of(0, 5), "`whiten` needs more images than k; got 5 images and k=5"),
    ("reduce:dimension=9", rows_of(0, 20), "at most 8 dimensions of 20 images with 8-d embeddings; got dimension=9"),
    ("", rows_of(0, 1), "at least 2 images; got 1"),
    ("views", rows_of(0, 9), r"shape \(n, v, d\), the features of several views; got \(9, 8\)"),
    ("", np.zeros((3, 2, 4)), r"shape \(n, d\); got \(3, 2, 4\)"),
    ("", np.full((3, 4), np.nan), "12 that are NaN or infinite"), ("nope", rows_of(0, 9), "got 'nope'"),
    ("average:k=x", rows_of(0, 9), "got 'x'"), (None, rows_of(0, 9), "recipe must be a recipe or its text, .* None"),
    (3, rows_of(0, 9), "recipe must be a recipe or its text, .* got 3"),
])
def test_unsuitable_arguments_raise_an_error_that_users_of_scikit_learn_expect(
        recipe: Any, gallery: Array, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        Refiner(recipe).fit(gallery)
    assert isinstance(caught.value, UserError)
