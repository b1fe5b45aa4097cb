"""An image among all others, beside literal loops over the sums."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from udml_core.data.augmentation import COLORS, CROPS
from udml_core.exploration import instances as views
from udml_core.losses.instance_discrimination import adaptable_softmax
from udml_core.methods.embedder import LatentHead

RANDOM = np.random.default_rng(0)
ROWS = RANDOM.normal(size=(30, 6)).astype(np.float32)
LABELS = np.repeat(np.arange(3), [20, 8, 2])


def cosine(first: np.ndarray, second: np.ndarray) -> float:
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))


def test_similarities_are_those_of_the_nearest_of_both_kinds() -> None:
    found = views.similarities(ROWS, views.same_class(LABELS), 5)
    positive, negative = [], []
    for query in range(30):
        rest = [(cosine(ROWS[query], ROWS[one]), LABELS[one] == LABELS[query]) for one in range(30) if one != query]
        positive += sorted((value for value, same in rest if same), reverse=True)[:5]
        negative += sorted((value for value, same in rest if not same), reverse=True)[:5]
    assert len(found.positive) == 28 * 5 + 2  # the two of the last class have one other each
    np.testing.assert_allclose(np.sort(found.positive), np.sort(positive), atol=1e-5)
    np.testing.assert_allclose(np.sort(found.negative), np.sort(negative), atol=1e-5)


def test_auc_counts_pairs_and_halves_ties() -> None:
    found = views.Similarities(np.array([0.1, 0.5, 0.9]), np.array([0.5, 0.2]))
    pairs = [(p > n) + 0.5 * (p == n) for p in found.positive for n in found.negative]
    assert found.auc == pytest.approx(np.mean(pairs))
    assert math.isnan(views.Similarities(np.zeros(0), np.ones(3)).auc)


def test_shares_hold_everything_and_what_lies_beyond() -> None:
    found = views.similarities(ROWS, views.same_class(LABELS))
    edges = views.common_edges([found])
    assert edges[-1] == 1
    assert np.quantile(found.negative, 0.01) > edges[0]
    np.testing.assert_allclose(found.shares(edges).sum(axis=1), 100)
    assert found.shares(np.linspace(0.9, 1, 3))[1, 0] > 50


def test_without_classes_an_images_kind_are_its_nearest_at_the_start() -> None:
    own = views.nearest_of(ROWS, 4)
    for query in range(30):
        ranked = sorted((one for one in range(30) if one != query), key=lambda one: -cosine(ROWS[query], ROWS[one]))
        assert set(np.flatnonzero(own[query])) == set(ranked[:4])
    assert views.nearest_of(ROWS[:3], 5).sum() == 6
    found = views.similarities(ROWS, own, 4)
    assert found.positive.mean() > found.negative.mean()


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=40), st.floats(-1, 1), st.floats(0.01, 2), st.floats(1, 200))
def test_the_softmax_is_the_papers(cosines: list[float], own: float, temperature: float, eta: float) -> None:
    found = views.softmax(np.array(cosines), own, temperature, eta)
    assert found.own + found.shares.sum() == pytest.approx(1)
    assert 1 - 1e-9 <= found.competitors <= len(cosines) * (1 + 1e-9)
    denominator = math.exp(own / temperature) + eta * sum(math.exp(one / temperature) for one in cosines)
    assert found.own == pytest.approx(math.exp(own / temperature) / denominator)
    for one, share in zip(cosines, found.shares, strict=True):
        assert share / eta == pytest.approx(math.exp(one / temperature) / denominator)
    assert views.softmax(np.array(cosines), own, temperature, 1.0).competitors == pytest.approx(found.competitors)


def test_the_softmax_is_what_training_minimizes() -> None:
    cosines, own = np.array([0.4, 0.1, -0.2]), 0.7
    found = views.softmax(cosines, own, 0.3, 10.0)
    loss = adaptable_softmax(torch.tensor([[own, *cosines]]) / 0.3, torch.tensor([0]),
                             torch.tensor([[False, True, True, True]]), 10.0)
    assert loss.item() == pytest.approx(-math.log(found.own) - 10 * np.log1p(-found.shares / 10).sum(), rel=1e-6)


def test_equally_near_ones_all_compete() -> None:
    assert views.softmax(np.full(7, 0.3), 0.9, 0.1, 5.0).competitors == pytest.approx(7)


def test_others_are_the_rest_nearest_first() -> None:
    among = np.array([2, 5, 9, 11, 20])
    found = views.others(ROWS, 9, among)
    assert set(found.positions) == {2, 5, 11, 20}
    assert (np.diff(found.cosines) <= 0).all()
    for place, value in zip(found.positions, found.cosines, strict=True):
        assert value == pytest.approx(cosine(ROWS[9], ROWS[place]), abs=1e-6)


def test_a_batch_holds_the_image_and_others_of_its_half() -> None:
    half = np.arange(100, 200)
    batch = views.a_batch(half, 140, 16, seed=3)
    assert len(batch) == len(set(batch)) == 16
    assert 140 in batch
    assert set(batch) <= set(half)
    assert batch.tolist() == views.a_batch(half, 140, 16, seed=3).tolist() != views.a_batch(half, 140, 16, 4).tolist()
    assert len(views.a_batch(half, 140, 500, 0)) == 100


def test_latent_rows_are_those_of_the_head() -> None:
    weight = RANDOM.normal(size=(6, 6)).astype(np.float32)
    rows = views.unit_rows(ROWS)
    head = LatentHead(torch.eye(6), torch.from_numpy(weight))
    np.testing.assert_allclose(views.latent_rows(rows, weight), head.latent_of(torch.from_numpy(rows)), atol=1e-6)


@pytest.mark.parametrize("augmentation", [CROPS, COLORS], ids=("crops", "colors"))
def test_two_views_differ_and_come_again(augmentation) -> None:  # type: ignore[no-untyped-def]
    pixels = RANDOM.integers(0, 256, size=(3, 12, 12), dtype=np.uint8)
    pair = views.two_views(pixels, augmentation, 5)
    assert pair.shape == (2, 3, 12, 12)
    assert pair.dtype == np.uint8
    assert (pair[0] != pair[1]).any()
    np.testing.assert_array_equal(pair, views.two_views(pixels, augmentation, 5))
    assert (pair != views.two_views(pixels, augmentation, 6)).any()


def test_the_most_certain_have_the_smallest_noise() -> None:
    certain, uncertain = views.most_certain(np.array([0.3, 0.1, 0.9, 0.2]), 2)
    assert certain.tolist() == [1, 3]
    assert uncertain.tolist() == [2, 0]
