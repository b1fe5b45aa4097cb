"""Instance discrimination around an image, compared with literal loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from udml_core.data.augmentation import COLORS, CROPS
from udml_core.exploration import instances
from udml_core.methods.embedder import LatentHead
from udml_core.numerics.losses.instance_discrimination import adaptable_softmax
from udml_core.numerics.refinement.linear import unit_rows

RANDOM = np.random.default_rng(0)
ROWS = RANDOM.normal(size=(30, 6)).astype(np.float32)
LABELS = np.repeat(np.arange(3), [20, 8, 2])


def cosine(first: np.ndarray, second: np.ndarray) -> float:
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))


def test_similarities_are_the_cosines_to_the_nearest_images_of_both_kinds() -> None:
    similar = instances.pair_similarities(ROWS, instances.same_class(LABELS), 5)
    positive, negative = [], []
    for query in range(30):
        rest = [(cosine(ROWS[query], ROWS[other]), LABELS[other] == LABELS[query])
                for other in range(30) if other != query]
        positive += sorted((value for value, same in rest if same), reverse=True)[:5]
        negative += sorted((value for value, same in rest if not same), reverse=True)[:5]
    assert len(similar.positive) == 28 * 5 + 2, "each of the last class's two images has one positive"
    np.testing.assert_allclose(np.sort(similar.positive), np.sort(positive), atol=1e-5)
    np.testing.assert_allclose(np.sort(similar.negative), np.sort(negative), atol=1e-5)


def test_auc_counts_pairs_and_halves_ties() -> None:
    similar = instances.Similarities(np.array([0.1, 0.5, 0.9]), np.array([0.5, 0.2]))
    pairs = [(p > n) + 0.5 * (p == n) for p in similar.positive for n in similar.negative]
    assert similar.auc == pytest.approx(np.mean(pairs))
    assert math.isnan(instances.Similarities(np.zeros(0), np.ones(3)).auc)


def test_histograms_include_values_below_the_axis() -> None:
    similar = instances.pair_similarities(ROWS, instances.same_class(LABELS))
    edges = instances.common_edges([similar])
    assert edges[-1] == 1
    lowest = min(np.quantile(cosines, 0.05) for cosines in (similar.positive, similar.negative))
    assert edges[0] <= lowest < edges[0] + 0.05, "few cosines make no wide axis"
    np.testing.assert_allclose(similar.shares(edges).sum(axis=1), 100)
    assert similar.shares(np.linspace(0.9, 1, 3))[1, 0] > 50


def test_the_nearest_images_replace_the_class_of_unlabeled_data() -> None:
    own = instances.nearest_mask(ROWS, 4)
    for query in range(30):
        ranked = sorted((other for other in range(30) if other != query),
                        key=lambda other: -cosine(ROWS[query], ROWS[other]))
        assert set(np.flatnonzero(own[query])) == set(ranked[:4])
    assert instances.nearest_mask(ROWS[:3], 5).sum() == 6
    similar = instances.pair_similarities(ROWS, own, 4)
    assert similar.positive.mean() > similar.negative.mean()


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=40), st.floats(-1, 1), st.floats(0.01, 2), st.floats(1, 200))
def test_the_softmax_equals_the_literal_sums(cosines: list[float], own: float, temperature: float, eta: float) -> None:
    softmax = instances.softmax(np.array(cosines), own, temperature, eta)
    assert softmax.own + softmax.shares.sum() == pytest.approx(1)
    assert 1 - 1e-9 <= softmax.competitors <= len(cosines) * (1 + 1e-9)
    denominator = math.exp(own / temperature) + eta * sum(math.exp(value / temperature) for value in cosines)
    assert softmax.own == pytest.approx(math.exp(own / temperature) / denominator)
    for value, share in zip(cosines, softmax.shares, strict=True):
        assert share / eta == pytest.approx(math.exp(value / temperature) / denominator)
    without_eta = instances.softmax(np.array(cosines), own, temperature, 1.0)
    assert without_eta.competitors == pytest.approx(softmax.competitors)


def test_the_softmax_equals_the_training_loss() -> None:
    cosines, own = np.array([0.4, 0.1, -0.2]), 0.7
    softmax = instances.softmax(cosines, own, 0.3, 10.0)
    loss = adaptable_softmax(torch.tensor([[own, *cosines]]) / 0.3, torch.tensor([0]),
                             torch.tensor([[False, True, True, True]]), 10.0)
    assert loss.item() == pytest.approx(-math.log(softmax.own) - 10 * np.log1p(-softmax.shares / 10).sum(), rel=1e-6)


def test_equally_similar_images_all_count_as_competitors() -> None:
    assert instances.softmax(np.full(7, 0.3), 0.9, 0.1, 5.0).competitors == pytest.approx(7)


def test_other_images_are_ranked_by_cosine() -> None:
    among = np.array([2, 5, 9, 11, 20])
    ranked = instances.rank_others(ROWS, 9, among)
    assert set(ranked.indices) == {2, 5, 11, 20}
    assert (np.diff(ranked.cosines) <= 0).all()
    for index, value in zip(ranked.indices, ranked.cosines, strict=True):
        assert value == pytest.approx(cosine(ROWS[9], ROWS[index]), abs=1e-6)


def test_a_batch_contains_the_image_and_others_of_its_half() -> None:
    half = np.arange(100, 200)
    batch = instances.draw_batch(half, 140, 16, seed=3)
    assert len(batch) == len(set(batch)) == 16
    assert 140 in batch
    assert set(batch) <= set(half)
    assert batch.tolist() == instances.draw_batch(half, 140, 16, seed=3).tolist()
    assert batch.tolist() != instances.draw_batch(half, 140, 16, 4).tolist()
    assert len(instances.draw_batch(half, 140, 500, 0)) == 100


def test_latent_rows_equal_the_output_of_the_head() -> None:
    weight = RANDOM.normal(size=(6, 6)).astype(np.float32)
    rows = unit_rows(ROWS)
    head = LatentHead(torch.eye(6), torch.from_numpy(weight))
    np.testing.assert_allclose(instances.latent_rows(rows, weight), head.latent_of(torch.from_numpy(rows)), atol=1e-6)


@pytest.mark.parametrize("augmentation", [CROPS, COLORS], ids=("crops", "colors"))
def test_two_views_differ_and_are_reproducible(augmentation) -> None:  # type: ignore[no-untyped-def]
    pixels = RANDOM.integers(0, 256, size=(3, 12, 12), dtype=np.uint8)
    pair = instances.two_views(pixels, augmentation, 5)
    assert pair.shape == (2, 3, 12, 12)
    assert pair.dtype == np.uint8
    assert (pair[0] != pair[1]).any()
    np.testing.assert_array_equal(pair, instances.two_views(pixels, augmentation, 5))
    assert (pair != instances.two_views(pixels, augmentation, 6)).any()


def test_the_most_certain_images_have_the_smallest_sigma() -> None:
    certain, uncertain = instances.uncertainty_extremes(np.array([0.3, 0.1, 0.9, 0.2]), 2)
    assert certain.tolist() == [1, 3]
    assert uncertain.tolist() == [2, 0]
