"""What the page Neighborhoods draws, against the library on whole sets, literal loops, and planted flats."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from udml_core.explanations import Proxies
from udml_core.exploration import neighborhoods as views
from udml_core.exploration.neighborhoods import Geometry
from udml_core.graph import linear_neighborhoods
from udml_core.losses.piecewise import similarity


def unit_rows(count: int, width: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(count, width))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def embedding() -> np.ndarray:
    return unit_rows(120, 6)


@pytest.mark.parametrize("geometry", [Geometry(), Geometry(25, 4, 0.7), Geometry(6, 1, 0.99, 1.0, 2.0),
                                      Geometry(8, 2, admission=False)])
def test_all_images_at_once_have_the_library_s_neighborhoods(embedding: np.ndarray, geometry: Geometry) -> None:
    around = views.surroundings(embedding, np.arange(120), 40)
    ours = around.neighborhoods(geometry)
    theirs = linear_neighborhoods(torch.from_numpy(embedding), geometry.candidates, geometry.flat, geometry.threshold,
                                  geometry.admission)
    assert (ours.neighbors == theirs.neighbors.numpy()).all()
    assert (ours.members == theirs.members.numpy()).all()
    projectors = (torch.from_numpy(ours.basis) @ torch.from_numpy(ours.basis).mT, theirs.basis @ theirs.basis.mT)
    torch.testing.assert_close(*projectors, atol=1e-4, rtol=0)
    expected = similarity(torch.from_numpy(embedding), theirs.basis, geometry.n_alpha, geometry.n_beta)[:, 0]
    np.testing.assert_allclose(views.similarities(around, ours, geometry), expected, atol=1e-5)


def test_the_nearest_of_an_image_leave_it_out_and_of_a_place_do_not(embedding: np.ndarray) -> None:
    order = np.argsort(((embedding - embedding[7]) ** 2).sum(axis=1), kind="stable")
    assert order[0] == 7
    assert (views.nearest_rows(embedding, 7, 20) == order[1:21]).all()
    assert (views.nearest_rows(embedding, embedding[7], 20) == order[:20]).all()
    assert len(views.nearest_rows(embedding, 7, 500)) == 119


def test_an_image_among_exact_copies_is_not_its_own_candidate() -> None:
    copies = np.repeat(unit_rows(5, 4), 6, axis=0)
    around = views.surroundings(copies, np.arange(30), 3)
    found = around.ids[around.candidates]
    assert (found != np.arange(30)[:, None]).all()
    assert all(len(set(row)) == 3 for row in found.tolist())


def test_an_image_from_outside_is_placed_before_the_others(embedding: np.ndarray) -> None:
    place = unit_rows(1, 6, seed=9)[0]
    near = views.nearest_rows(embedding, place, 15)
    around = views.surroundings(embedding, near, 10, place)
    assert around.rows[0] == -1
    assert (around.rows[1:] == near).all()
    assert (around.ids[around.candidates[0]] == near[:10]).all()
    assert np.allclose(around.centers[0], place)


def test_a_geometry_asks_for_no_more_than_there_is() -> None:
    assert Geometry(50, 8).within(5, 3) == Geometry(5, 3)
    assert Geometry(10, 3).within(49, 64) == Geometry(10, 3)


def test_a_pair_is_split_so_that_its_parts_are_its_distance(embedding: np.ndarray) -> None:
    geometry = Geometry(12, 3, 0.8, 3.0, 0.7)
    around = views.surroundings(embedding, np.arange(120), 12)
    hoods = around.neighborhoods(geometry)
    similar = views.similarities(around, hoods, geometry)
    for other in (1, 50, 119):
        found = views.pair(around.centers[[0, other]], hoods.basis[[0, other]], geometry)
        offset = (embedding[0] - embedding[other]).astype(np.float64)
        for part, basis in ((found.first, hoods.basis[0]), (found.other, hoods.basis[other])):
            assert part.along == pytest.approx(np.linalg.norm(basis.T @ offset), abs=1e-5)
            assert part.across**2 + part.along**2 == pytest.approx(offset @ offset, abs=1e-5)
            assert part.alpha == pytest.approx((1 + part.across / 2) ** -3.0, abs=1e-5)
            assert part.beta == pytest.approx((1 + part.along) ** -0.7, abs=1e-5)
            assert part.share == pytest.approx(part.along**2 / (offset @ offset), abs=1e-4)
        assert found.similarity == pytest.approx(similar[other], abs=1e-5)
        assert found.distance == pytest.approx(np.sqrt(offset @ offset), abs=1e-5)
        assert found.cosine == pytest.approx(embedding[0] @ embedding[other], abs=1e-5)
        turned = views.pair(around.centers[[other, 0]], hoods.basis[[other, 0]], geometry)
        assert (turned.first, turned.other) == (found.other, found.first)


def test_an_image_and_itself_are_as_similar_as_can_be(embedding: np.ndarray) -> None:
    around = views.surroundings(embedding, np.array([3]), 12)
    basis = around.neighborhoods(Geometry()).basis
    found = views.pair(around.centers[[0, 0]], basis[[0, 0]], Geometry())
    assert found.similarity == 1
    assert found.first.share == 1


def test_coordinates_in_the_flat_and_off_it_are_the_whole_distance(embedding: np.ndarray) -> None:
    around = views.surroundings(embedding, np.arange(4), 20)
    hoods = around.neighborhoods(Geometry(20, 3))
    inside, across = views.coordinates(around, hoods)
    assert inside.shape == (20, 3)
    whole = ((embedding[hoods.neighbors[0]] - embedding[0]) ** 2).sum(axis=1)
    np.testing.assert_allclose((inside**2).sum(axis=1) + across**2, whole, atol=1e-5)
    np.testing.assert_allclose((inside**2).sum(axis=1) / whole, hoods.quality[0], atol=1e-4)


def test_planted_directions_lead_to_what_lies_in_them() -> None:
    center = np.array([1.0, 2.0, 3.0, 4.0])
    steps = np.array([[-3, 0, 0, 0], [-1, 0, 0.2, 0], [2, 0, 0, 0], [0, 1, 0, 0], [0, -2, 0, 0.1], [0, 0, 5, 0]])
    first, second = views.along_directions(center + steps, center, np.eye(4)[:, :2], 2)
    assert first.places.tolist() == [0, 1, 2]
    np.testing.assert_allclose(first.coordinates, [-3, -1, 2])
    np.testing.assert_allclose(first.shares, [1, 1 / 1.04, 1])
    assert second.places.tolist() == [4, 3]
    (only,) = views.along_directions(center + steps, center, np.eye(4)[:, :1], 1)
    assert only.places.tolist() == [0, 2], "the purest on either side"
    (none,) = views.along_directions(center + steps[:3], center, np.eye(4)[:, 3:])
    assert not len(none.places)


def test_a_refused_share_never_reads_as_the_threshold() -> None:
    assert views.floored(np.array([0.8999, 0.9, 1.0])).tolist() == [89.9, 90.0, 100.0]


def test_hits_count_what_is_right_among_the_first() -> None:
    assert views.hits(np.array([True, False, True, True]), (1, 2, 4)) == (1, 1, 3)


def test_the_heat_map_is_sorted_by_class_and_counts_each_pair_once(embedding: np.ndarray) -> None:
    rows = np.array([5, 2, 80, 33, 41, 9])
    labels = np.array([2, 0, 2, 0, 1, 2])
    found = views.heat(views.surroundings(embedding, rows, 15), Geometry(15), labels)
    assert labels[found.order].tolist() == [0, 0, 1, 2, 2, 2]
    assert found.starts.tolist() == [0, 2, 3]
    assert np.allclose(found.values, found.values.T)
    assert np.allclose(np.diag(found.values), 1)
    ordered = labels[found.order]
    pairs = [(i, j) for i in range(6) for j in range(i)]
    within = [found.values[i, j] for i, j in pairs if ordered[i] == ordered[j]]
    between = [found.values[i, j] for i, j in pairs if ordered[i] != ordered[j]]
    assert found.within == pytest.approx(np.mean(within))
    assert found.between == pytest.approx(np.mean(between))
    assert -1 <= found.correlation <= 1
    for one in range(3):
        for other in range(3):
            block = [found.values[i, j] for i in range(6) for j in range(6)
                     if i != j and (ordered[i], ordered[j]) == (one, other)]
            assert np.isnan(found.by_class[one, other]) if not block else (
                found.by_class[one, other] == pytest.approx(np.mean(block), abs=1e-6))
    alone = views.heat(views.surroundings(embedding, rows, 15), Geometry(15), np.zeros(6, dtype=int))
    assert np.isnan(alone.between)
    assert np.isnan(alone.correlation)


def test_proxies_lie_amid_their_nearest(embedding: np.ndarray) -> None:
    proxies = Proxies(embedding[[4, 60]], np.zeros((2, 6, 2)))
    near = views.proxies_near(proxies, embedding, 5)
    assert near[:, 0].tolist() == [4, 60]
    positions = np.random.default_rng(1).normal(size=(120, 2))
    np.testing.assert_allclose(views.amid(positions, near)[1], positions[near[1]].mean(axis=0))
    assert views.spread(proxies) == pytest.approx(float(np.linalg.norm(embedding[4] - embedding[60])))
    assert views.spread(Proxies(embedding[:1], np.zeros((1, 6, 2)))) == 0


@pytest.mark.parametrize(("n_alpha", "n_beta"), [(4.0, 0.5), (1.0, 0.5), (2.0, 1.0), (1.0, 1.0), (3.0, 2.0)])
def test_the_toy_falls_faster_across_than_along_exactly_from_twice_on(n_alpha: float, n_beta: float) -> None:
    ticks, values = views.toy(n_alpha, n_beta)
    middle = len(ticks) // 2
    assert values[middle, middle] == 1
    across, along = values[middle + 1:, middle], values[middle, middle + 1:]
    assert (across <= along + 1e-6).all() == (n_alpha >= 2 * n_beta)
