"""Linear neighborhoods around an image, compared with reference results.

The references are the library on full sets, literal loops and planted flats.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from udml_core.exploration import neighborhoods
from udml_core.exploration.neighborhoods import Geometry
from udml_core.numerics.explanations import Proxies
from udml_core.numerics.graph import linear_neighborhoods
from udml_core.numerics.losses.piecewise import similarity


def unit_rows(count: int, width: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(count, width))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def embedding() -> np.ndarray:
    return unit_rows(120, 6)


@pytest.mark.parametrize("geometry", [Geometry(), Geometry(25, 4, 0.7), Geometry(6, 1, 0.99, 1.0, 2.0),
                                      Geometry(8, 2, admission=False), Geometry(12, 3, 0.8, through="origin"),
                                      Geometry(12, 1, admission=False, through="origin")])
def test_neighborhoods_equal_those_of_the_library(embedding: np.ndarray, geometry: Geometry) -> None:
    around = neighborhoods.surroundings(embedding, np.arange(120), 40)
    hoods = around.neighborhoods(geometry)
    expected = linear_neighborhoods(torch.from_numpy(embedding), geometry.candidates, geometry.flat, geometry.threshold,
                                  geometry.admission, geometry.through)
    assert (hoods.neighbors == expected.neighbors.numpy()).all()
    assert (hoods.members == expected.members.numpy()).all()
    projectors = (torch.from_numpy(hoods.basis) @ torch.from_numpy(hoods.basis).mT, expected.basis @ expected.basis.mT)
    torch.testing.assert_close(*projectors, atol=1e-4, rtol=0)
    similar = similarity(torch.from_numpy(embedding), expected.basis, geometry.n_alpha, geometry.n_beta)[:, 0]
    np.testing.assert_allclose(neighborhoods.similarities(around, hoods, geometry), similar, atol=1e-5)


@pytest.mark.parametrize("geometry", [Geometry(threshold=0.9999), Geometry(threshold=0.9999, through="origin")])
def test_the_candidates_called_untested_are_the_members_that_no_test_refuses(embedding: np.ndarray,
                                                                             geometry: Geometry) -> None:
    hoods = neighborhoods.surroundings(embedding, np.arange(120), 10).neighborhoods(geometry)
    assert (hoods.members == (np.arange(10) < geometry.untested)).all()


def test_nearest_rows_exclude_a_row_but_not_a_copy_from_outside(embedding: np.ndarray) -> None:
    order = np.argsort(((embedding - embedding[7]) ** 2).sum(axis=1), kind="stable")
    assert order[0] == 7
    assert (neighborhoods.nearest_rows(embedding, 7, 20) == order[1:21]).all()
    assert (neighborhoods.nearest_rows(embedding, embedding[7], 20) == order[:20]).all()
    assert len(neighborhoods.nearest_rows(embedding, 7, 500)) == 119


def test_an_image_among_exact_copies_is_not_its_own_candidate() -> None:
    copies = np.repeat(unit_rows(5, 4), 6, axis=0)
    around = neighborhoods.surroundings(copies, np.arange(30), 3)
    candidates = around.ids[around.candidates]
    assert (candidates != np.arange(30)[:, None]).all()
    assert all(len(set(row)) == 3 for row in candidates.tolist())


def test_an_image_from_outside_becomes_the_first_center(embedding: np.ndarray) -> None:
    outside = unit_rows(1, 6, seed=9)[0]
    nearest = neighborhoods.nearest_rows(embedding, outside, 15)
    around = neighborhoods.surroundings(embedding, nearest, 10, outside)
    assert around.rows[0] == -1
    assert (around.rows[1:] == nearest).all()
    assert (around.ids[around.candidates[0]] == nearest[:10]).all()
    assert np.allclose(around.centers[0], outside)


def test_a_geometry_is_limited_to_the_available_candidates_and_dimensions() -> None:
    assert Geometry(50, 8).within(5, 3) == Geometry(5, 3)
    assert Geometry(10, 3).within(49, 64) == Geometry(10, 3)


def test_the_parts_across_and_along_add_up_to_a_pairs_distance(embedding: np.ndarray) -> None:
    geometry = Geometry(12, 3, 0.8, 3.0, 0.7)
    around = neighborhoods.surroundings(embedding, np.arange(120), 12)
    hoods = around.neighborhoods(geometry)
    similar = neighborhoods.similarities(around, hoods, geometry)
    for other in (1, 50, 119):
        pair = neighborhoods.pair(around.centers[[0, other]], hoods.basis[[0, other]], geometry)
        offset = (embedding[0] - embedding[other]).astype(np.float64)
        for part, basis in ((pair.first, hoods.basis[0]), (pair.other, hoods.basis[other])):
            assert part.along == pytest.approx(np.linalg.norm(basis.T @ offset), abs=1e-5)
            assert part.across**2 + part.along**2 == pytest.approx(offset @ offset, abs=1e-5)
            assert part.alpha == pytest.approx((1 + part.across / 2) ** -3.0, abs=1e-5)
            assert part.beta == pytest.approx((1 + part.along) ** -0.7, abs=1e-5)
            assert part.share == pytest.approx(part.along**2 / (offset @ offset), abs=1e-4)
        assert pair.similarity == pytest.approx(similar[other], abs=1e-5)
        assert pair.distance == pytest.approx(np.sqrt(offset @ offset), abs=1e-5)
        assert pair.cosine == pytest.approx(embedding[0] @ embedding[other], abs=1e-5)
        swapped = neighborhoods.pair(around.centers[[other, 0]], hoods.basis[[other, 0]], geometry)
        assert (swapped.first, swapped.other) == (pair.other, pair.first)


def test_an_image_has_similarity_one_with_itself(embedding: np.ndarray) -> None:
    around = neighborhoods.surroundings(embedding, np.array([3]), 12)
    basis = around.neighborhoods(Geometry()).basis
    pair = neighborhoods.pair(around.centers[[0, 0]], basis[[0, 0]], Geometry())
    assert pair.similarity == 1
    assert pair.first.share == 1


def test_coordinates_in_the_flat_and_distances_from_it_add_up_to_the_distance(embedding: np.ndarray) -> None:
    around = neighborhoods.surroundings(embedding, np.arange(4), 20)
    hoods = around.neighborhoods(Geometry(20, 3))
    inside, across = neighborhoods.coordinates(around, hoods)
    assert inside.shape == (20, 3)
    squared = ((embedding[hoods.neighbors[0]] - embedding[0]) ** 2).sum(axis=1)
    np.testing.assert_allclose((inside**2).sum(axis=1) + across**2, squared, atol=1e-5)
    np.testing.assert_allclose((inside**2).sum(axis=1) / squared, hoods.quality[0], atol=1e-4)


def test_images_planted_along_a_direction_are_found() -> None:
    center = np.array([1.0, 2.0, 3.0, 4.0])
    steps = np.array([[-3, 0, 0, 0], [-1, 0, 0.2, 0], [2, 0, 0, 0], [0, 1, 0, 0], [0, -2, 0, 0.1], [0, 0, 5, 0]])
    first, second = neighborhoods.along_directions(center + steps, center, np.eye(4)[:, :2], 2)
    assert first.positions.tolist() == [0, 1, 2]
    np.testing.assert_allclose(first.coordinates, [-3, -1, 2])
    np.testing.assert_allclose(first.shares, [1, 1 / 1.04, 1])
    assert second.positions.tolist() == [4, 3]
    (only,) = neighborhoods.along_directions(center + steps, center, np.eye(4)[:, :1], 1)
    assert only.positions.tolist() == [0, 2], "the purest image on either side"
    (none,) = neighborhoods.along_directions(center + steps[:3], center, np.eye(4)[:, 3:])
    assert not len(none.positions)


def test_a_share_below_the_threshold_never_displays_as_equal_to_it() -> None:
    assert neighborhoods.floor_percent(np.array([0.8999, 0.9, 1.0])).tolist() == [89.9, 90.0, 100.0]


def test_a_candidate_without_a_test_has_no_quality() -> None:
    assert neighborhoods.tested_words(np.array([1.0, 0.8999, 0.9]), 1) == ["always", "0.899", "0.900"]


def test_hits_are_counted_among_the_first_images() -> None:
    assert neighborhoods.hits_among_first(np.array([True, False, True, True]), (1, 2, 4)) == (1, 1, 3)


def test_the_heat_map_is_sorted_by_class_and_averages_each_pair_once(embedding: np.ndarray) -> None:
    rows = np.array([5, 2, 80, 33, 41, 9])
    labels = np.array([2, 0, 2, 0, 1, 2])
    heat = neighborhoods.heat(neighborhoods.surroundings(embedding, rows, 15), Geometry(15), labels)
    assert labels[heat.order].tolist() == [0, 0, 1, 2, 2, 2]
    assert heat.starts.tolist() == [0, 2, 3]
    assert np.allclose(heat.values, heat.values.T)
    assert np.allclose(np.diag(heat.values), 1)
    ordered = labels[heat.order]
    pairs = [(i, j) for i in range(6) for j in range(i)]
    within = [heat.values[i, j] for i, j in pairs if ordered[i] == ordered[j]]
    between = [heat.values[i, j] for i, j in pairs if ordered[i] != ordered[j]]
    assert heat.within == pytest.approx(np.mean(within))
    assert heat.between == pytest.approx(np.mean(between))
    assert -1 <= heat.correlation <= 1
    for first in range(3):
        for second in range(3):
            block = [heat.values[i, j] for i in range(6) for j in range(6)
                     if i != j and (ordered[i], ordered[j]) == (first, second)]
            assert np.isnan(heat.by_class[first, second]) if not block else (
                heat.by_class[first, second] == pytest.approx(np.mean(block), abs=1e-6))
    one_class = neighborhoods.heat(neighborhoods.surroundings(embedding, rows, 15), Geometry(15),
                                   np.zeros(6, dtype=int))
    assert np.isnan(one_class.between)
    assert np.isnan(one_class.correlation)


def test_a_proxy_is_drawn_at_the_mean_of_its_nearest_images(embedding: np.ndarray) -> None:
    proxies = Proxies(embedding[[4, 60]], np.zeros((2, 6, 2)))
    nearest = neighborhoods.nearest_to_proxies(proxies, embedding, 5)
    assert nearest[:, 0].tolist() == [4, 60]
    positions = np.random.default_rng(1).normal(size=(120, 2))
    np.testing.assert_allclose(neighborhoods.mean_positions(positions, nearest)[1], positions[nearest[1]].mean(axis=0))
    assert neighborhoods.proxy_distance(proxies) == pytest.approx(float(np.linalg.norm(embedding[4] - embedding[60])))
    assert neighborhoods.proxy_distance(Proxies(embedding[:1], np.zeros((1, 6, 2)))) == 0


@pytest.mark.parametrize(("n_alpha", "n_beta"), [(4.0, 0.5), (1.0, 0.5), (2.0, 1.0), (1.0, 1.0), (3.0, 2.0)])
def test_similarity_decays_faster_across_if_n_alpha_is_twice_n_beta_or_more(n_alpha: float, n_beta: float) -> None:
    ticks, values = neighborhoods.similarity_in_plane(n_alpha, n_beta)
    middle = len(ticks) // 2
    assert values[middle, middle] == 1
    across, along = values[middle + 1:, middle], values[middle, middle + 1:]
    assert (across <= along + 1e-6).all() == (n_alpha >= 2 * n_beta)


def test_an_embedding_of_one_image_has_no_neighbors() -> None:
    alone = np.ones((1, 4), np.float32)
    assert neighborhoods.nearest_rows(alone, 0, 5).shape == (0,)
    assert neighborhoods.surroundings(alone, np.array([0])).ids.shape == (0,)
