"""The played training: layouts in one orientation, neighbors and recall by epoch."""

from __future__ import annotations

import numpy as np
import pytest

from udml_core.exploration.instrument import lie_down, make_instrument, orient


@pytest.fixture
def samples() -> list[np.ndarray]:
    """A mixed and a separated embedding of three classes of eight images."""
    generator = np.random.default_rng(0)
    centers = np.repeat(10 * np.eye(3, 5), 8, axis=0)
    return [generator.normal(size=(24, 5)), centers + generator.normal(size=(24, 5))]


LABELS = np.repeat([0, 1, 2], 8)


def test_neighbors_and_recall_agree_with_a_search_of_all_pairs(samples: list[np.ndarray]) -> None:
    played = make_instrument(samples, LABELS, k=4)
    assert played.hits is not None
    assert played.recall is not None
    for sample, neighbors, hits, recall in zip(samples, played.neighbors, played.hits, played.recall, strict=True):
        distances = ((sample[:, None] - sample[None]) ** 2).sum(axis=2)
        np.fill_diagonal(distances, np.inf)
        nearest = distances.argsort(axis=1)[:, :4]
        assert np.array_equal(neighbors, nearest)
        assert np.array_equal(hits, LABELS[nearest] == LABELS[:, None])
        assert recall == pytest.approx(100 * np.mean(LABELS[nearest[:, 0]] == LABELS))
    assert played.recall[1] == 100


def test_the_first_query_gains_most_hits(samples: list[np.ndarray]) -> None:
    played = make_instrument(samples, LABELS, k=4)
    assert played.hits is not None
    gains = played.hits[1].sum(axis=1).astype(int) - played.hits[0].sum(axis=1)
    assert gains[played.clearest_query] == gains.max() > gains.min()


def test_the_query_that_differs_from_a_rival_follows_the_direction_of_most_rows(samples: list[np.ndarray]) -> None:
    played = make_instrument(samples, LABELS, k=4)
    rival = played.neighbors[0].copy()  # mixed, so that training gains for most rows
    rival[5] = np.setdiff1d(np.arange(8, 24), [5])[:4]  # no hit at all
    after, before = ((LABELS[rows] == LABELS[:, None]).sum(axis=1) for rows in (played.neighbors[1], rival))
    gains = after - before
    assert gains[played.changed_query(rival, LABELS)] == gains.max() == 4
    worse = make_instrument(samples[::-1], LABELS, k=4)  # ends mixed
    lost = (LABELS[worse.neighbors[1]] == LABELS[:, None]).sum(axis=1) - 4
    assert lost[worse.changed_query(worse.neighbors[0], LABELS)] == lost.min() < 0


def test_images_without_classes_have_no_recall_and_a_query_that_changes(samples: list[np.ndarray]) -> None:
    played = make_instrument(samples, None, k=4)
    assert played.hits is None
    assert played.recall is None
    kept = [len(set(first) & set(last)) for first, last in zip(*played.neighbors, strict=True)]
    assert kept[played.clearest_query] == min(kept) < max(kept)


def test_layouts_are_turned_to_the_last_one_and_have_one_size() -> None:
    last = np.random.default_rng(1).normal(size=(30, 2)) * [2, 1]
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    mirror = np.array([[-1.0, 0.0], [0.0, 1.0]])
    layouts = orient([7 * last @ turn + 5, 0.1 * last @ mirror - 2, last])
    assert np.allclose(layouts[0], layouts[2])
    assert np.allclose(layouts[1], layouts[2])
    assert np.allclose(layouts.mean(axis=1), 0)
    assert np.allclose((layouts ** 2).sum(axis=2).mean(axis=1), 1)
    centered = last - last.mean(axis=0)
    ratios = layouts[2] / centered
    assert np.allclose(ratios, ratios[0, 0]), "the last layout is not turned"


def test_equal_points_and_few_points_are_laid_out() -> None:
    played = make_instrument([np.ones((3, 4)), np.eye(3, 4)], np.array([0, 0, 1]))
    assert played.neighbors.shape == (2, 3, 2)
    assert np.isfinite(played.positions).all()


def test_the_last_layout_is_longest_from_left_to_right_and_all_layouts_turn_together() -> None:
    generator = np.random.default_rng(2)
    first, last = generator.normal(size=(40, 2)), generator.normal(size=(40, 2)) * [1, 3]
    last = (last - last.mean(axis=0)) @ np.array([[0.8, 0.6], [-0.6, 0.8]])
    turned = lie_down(np.stack([first, last]))
    assert turned[1].std(axis=0)[0] > 2 * turned[1].std(axis=0)[1]
    assert abs(np.corrcoef(turned[1].T)[0, 1]) < 1e-6, "the axes are the principal axes"
    together = np.concatenate([first, last])
    distances = np.linalg.norm(together[:, None] - together, axis=2)
    after = turned.reshape(-1, 2)
    assert np.allclose(np.linalg.norm(after[:, None] - after, axis=2), distances)
