"""The geometry of triplets that the page draws, beside loops and the loss's own functions, on digits that RPML used."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from udml_core.arrays import Array
from udml_core.backbones import Encoder, choose_spec
from udml_core.data import catalog
from udml_core.data.features import embed_pixels, pixels_of
from udml_core.data.training import training_data
from udml_core.explanations import Triplets, to_arrays
from udml_core.exploration import triplets as views
from udml_core.losses.angular import angle, angular_argument
from udml_core.methods import RPML, Setting

IMAGES = 300
ALPHA = 40.0


@cache
def used() -> tuple[Triplets, Array, Array]:
    """The triplets of one epoch of RPML on 300 digits, the projection (n, l) that their loss saw, and the classes."""
    dataset = catalog.load("digits")
    encoder = Encoder(choose_spec("pixels", dataset.native_size, dataset.gray))
    features = embed_pixels(encoder, np.array(pixels_of(dataset, encoder))[:IMAGES])
    data = training_data(features, None, np.arange(IMAGES), "none")
    method = RPML(alpha=ALPHA, dimension=8, epochs=1, steps=2, epsilon=0.5, n_neighbors=20)
    epoch = next(iter(method.fit(data, Setting(0, torch.device("cpu"), encoder))))
    record = next(one for one in epoch.explanations if isinstance(one, Triplets))
    rows = torch.nn.functional.normalize(torch.from_numpy(features), dim=1) @ epoch.state["projection"]
    assert dataset.labels is not None
    return Triplets(**to_arrays(record)), rows.numpy(), dataset.labels[:IMAGES]


def seen() -> views.Shape:
    """The shapes of the used triplets, from the embedding itself."""
    record, rows, _ = used()
    return views.shape_in(rows, record.anchor, record.positive, record.negative)


def test_what_the_loss_kept_is_the_geometry_of_its_embedding() -> None:
    record, kept = used()[0], views.shape_of(used()[0])
    for name in ("near", "far", "side", "angle"):
        np.testing.assert_allclose(getattr(kept, name), getattr(seen(), name), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(kept.argument(ALPHA), record.argument, rtol=1e-3, atol=1e-5)


def test_distances_are_those_of_a_loop() -> None:
    record, rows, _ = used()
    shape = seen()
    for place in range(0, len(record.anchor), 97):
        a, p, n = (rows[part[place]].astype(float) for part in (record.anchor, record.positive, record.negative))
        assert shape.near[place] == pytest.approx(sum((x - y) ** 2 for x, y in zip(a, p, strict=True)))
        assert shape.side[place] == pytest.approx(sum((x - y) ** 2 for x, y in zip(a, n, strict=True)))
        assert shape.far[place] == pytest.approx(
            sum((z - (x + y) / 2) ** 2 for x, y, z in zip(a, p, n, strict=True)))
        median = 2 * shape.far[place] + shape.near[place] / 2 - shape.side[place]
        assert median == pytest.approx(sum((x - y) ** 2 for x, y in zip(p, n, strict=True)))


@pytest.mark.parametrize("alpha", [5.0, ALPHA, 45.0, 75.0])
def test_the_angle_is_the_loss_s_and_exceeds_alpha_exactly_where_it_violates(alpha: float) -> None:
    record, rows, _ = used()
    parts = [torch.from_numpy(rows[part]).double() for part in (record.anchor, record.positive, record.negative)]
    shape = seen()
    np.testing.assert_allclose(shape.angle, angle(*parts), rtol=1e-9)
    np.testing.assert_allclose(shape.argument(alpha), angular_argument(*parts, alpha), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(shape.angle > alpha, shape.argument(alpha) > 0)
    share = (shape.angle > alpha).mean()
    assert 0 < share < 1 or alpha in (5.0, 75.0)


def test_corners_are_the_triangle_to_scale() -> None:
    record, rows, _ = used()
    shape = seen()
    for place in range(0, len(record.anchor), 53):
        points = [rows[part[place]].astype(float) for part in (record.anchor, record.positive, record.negative)]
        corners = views.corners(shape, place)
        assert corners.shape == (4, 2)
        np.testing.assert_allclose(corners[0], -corners[1])
        for one, other in ((0, 1), (0, 2), (1, 2)):
            assert np.linalg.norm(corners[one] - corners[other]) == pytest.approx(
                np.linalg.norm(points[one] - points[other]), abs=1e-6)
        _assert_mirrored(corners, shape.angle[place])


def _assert_mirrored(corners: Array, degrees: float) -> None:
    """The fourth corner is as far from anchor as from positive, and its bisected angle is the one that counts."""
    anchor, positive, _, mirrored = corners
    assert np.linalg.norm(mirrored - anchor) == pytest.approx(np.linalg.norm(mirrored - positive))
    half = np.arctan2(np.linalg.norm(anchor - positive) / 2, np.linalg.norm(mirrored))
    assert np.tan(half) == pytest.approx(np.tan(np.radians(degrees)), rel=1e-6)


@given(st.lists(st.floats(-3, 3, allow_subnormal=False), min_size=6, max_size=6))
def test_corners_of_any_triplet_in_the_plane_keep_its_distances(numbers: list[float]) -> None:
    points = np.array(numbers).reshape(3, 2)
    shape = views.shape_in(points, np.array([0]), np.array([1]), np.array([2]))
    corners = views.corners(shape, 0)
    assert np.isfinite(corners).all()
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert np.linalg.norm(corners[one] - corners[other]) == pytest.approx(
            np.linalg.norm(points[one] - points[other]), abs=1e-5)


@pytest.mark.parametrize("by", ["loss", "weight", "angle"])
def test_the_largest_come_first_and_equals_as_they_were(by: views.Order) -> None:
    record = used()[0]
    values = views.shape_of(record).angle if by == "angle" else getattr(record, by)
    assert views.order(record, by).tolist() == sorted(range(len(values)), key=lambda place: -values[place])


def test_a_triplet_is_true_where_its_positive_is_of_the_class_and_its_negative_is_not() -> None:
    record, _, labels = used()
    positive, negative = views.truth(record, labels)
    rows = list(zip(record.anchor, record.positive, record.negative, strict=True))
    assert positive.tolist() == [labels[a] == labels[p] for a, p, _ in rows]
    assert negative.tolist() == [labels[a] != labels[n] for a, _, n in rows]
    assert 0 < (positive & negative).mean() < 1


def test_each_anchor_is_listed_once_by_its_first_triplet() -> None:
    record = used()[0]
    places = views.order(record, "angle")[:500]
    expected = list({int(record.anchor[place]): int(place) for place in reversed(places)}.values())[::-1]
    found = views.first_of_each_anchor(record, places)
    assert sorted(found.tolist()) == sorted(expected)
    assert (np.diff([places.tolist().index(place) for place in found]) > 0).all()
    assert len(found) < len(places), "some anchor comes twice"
