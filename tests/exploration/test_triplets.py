"""Geometry of RPML's triplets on digits, compared with loops and the loss."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from udml_core.base.arrays import Array
from udml_core.data import catalog
from udml_core.data.encoders import Encoder, choose_spec
from udml_core.data.features import features_of, pixels_of
from udml_core.data.inference import embed_pixels
from udml_core.data.training_data import training_data
from udml_core.exploration import triplets
from udml_core.methods import Setting
from udml_core.methods.rpml import RPML
from udml_core.numerics.explanations import Triplets, to_arrays
from udml_core.numerics.losses.angular import angle, angular_argument

IMAGES = 300
ALPHA = 40.0


@cache
def trained() -> tuple[Triplets, Array, Array]:
    """Return RPML's triplets of one epoch on 300 digits, embedding and classes.

    The embedding (n, l) is that of the loss.
    """
    dataset = catalog.load("digits")
    encoder = Encoder(choose_spec("pixels", dataset.native_size, dataset.gray))
    features = embed_pixels(encoder, np.array(pixels_of(dataset, encoder))[:IMAGES])
    data = training_data(features, None, np.arange(IMAGES), "none")
    method = RPML(alpha=ALPHA, dimension=8, epochs=1, steps=2, epsilon=0.5, n_neighbors=20)
    epoch = next(iter(method.fit(data, Setting(0, torch.device("cpu"), encoder))))
    record = next(record for record in epoch.explanations if isinstance(record, Triplets))
    rows = torch.nn.functional.normalize(torch.from_numpy(features), dim=1) @ epoch.state["projection"]
    assert dataset.labels is not None
    return Triplets(**to_arrays(record)), rows.numpy(), dataset.labels[:IMAGES]


def shape_from_embedding() -> triplets.Shape:
    """Return the shapes of the triplets, computed from the embedding."""
    record, rows, _ = trained()
    return triplets.shape_in(rows, record.anchor, record.positive, record.negative)


def test_recorded_shapes_equal_the_geometry_of_the_embedding() -> None:
    record, recorded = trained()[0], triplets.recorded_shape(trained()[0])
    for name in ("near", "far", "side", "angle"):
        np.testing.assert_allclose(getattr(recorded, name), getattr(shape_from_embedding(), name), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(recorded.argument(ALPHA), record.argument, rtol=1e-3, atol=1e-5)


def test_squared_distances_equal_a_loop() -> None:
    record, rows, _ = trained()
    shape = shape_from_embedding()
    for number in range(0, len(record.anchor), 97):
        a, p, n = (rows[part[number]].astype(float) for part in (record.anchor, record.positive, record.negative))
        assert shape.near[number] == pytest.approx(sum((x - y) ** 2 for x, y in zip(a, p, strict=True)))
        assert shape.side[number] == pytest.approx(sum((x - y) ** 2 for x, y in zip(a, n, strict=True)))
        assert shape.far[number] == pytest.approx(
            sum((z - (x + y) / 2) ** 2 for x, y, z in zip(a, p, n, strict=True)))
        median = 2 * shape.far[number] + shape.near[number] / 2 - shape.side[number]
        assert median == pytest.approx(sum((x - y) ** 2 for x, y in zip(p, n, strict=True)))


@pytest.mark.parametrize("alpha", [5.0, ALPHA, 45.0, 75.0])
def test_the_angle_equals_that_of_the_loss_and_exceeds_alpha_exactly_for_violations(alpha: float) -> None:
    record, rows, _ = trained()
    parts = [torch.from_numpy(rows[part]).double() for part in (record.anchor, record.positive, record.negative)]
    shape = shape_from_embedding()
    np.testing.assert_allclose(shape.angle, angle(*parts), rtol=1e-9)
    np.testing.assert_allclose(shape.argument(alpha), angular_argument(*parts, alpha), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(shape.angle > alpha, shape.argument(alpha) > 0)
    share = (shape.angle > alpha).mean()
    assert 0 < share < 1 or alpha in (5.0, 75.0)


def test_corners_draw_the_triangle_to_scale() -> None:
    record, rows, _ = trained()
    shape = shape_from_embedding()
    for number in range(0, len(record.anchor), 53):
        points = [rows[part[number]].astype(float) for part in (record.anchor, record.positive, record.negative)]
        corners = triplets.corners(shape, number)
        assert corners.shape == (4, 2)
        np.testing.assert_allclose(corners[0], -corners[1])
        for start, end in ((0, 1), (0, 2), (1, 2)):
            assert np.linalg.norm(corners[start] - corners[end]) == pytest.approx(
                np.linalg.norm(points[start] - points[end]), abs=1e-6)
        _assert_symmetrized(corners, shape.angle[number])


def _assert_symmetrized(corners: Array, degrees: float) -> None:
    """Assert that the fourth corner is equidistant from anchor and positive.

    Its half angle must be right as well.
    """
    anchor, positive, _, symmetrized = corners
    assert np.linalg.norm(symmetrized - anchor) == pytest.approx(np.linalg.norm(symmetrized - positive))
    half = np.arctan2(np.linalg.norm(anchor - positive) / 2, np.linalg.norm(symmetrized))
    assert np.tan(half) == pytest.approx(np.tan(np.radians(degrees)), rel=1e-6)


@given(st.lists(st.floats(-3, 3, allow_subnormal=False), min_size=6, max_size=6))
def test_corners_preserve_the_distances_of_any_triplet(numbers: list[float]) -> None:
    points = np.array(numbers).reshape(3, 2)
    shape = triplets.shape_in(points, np.array([0]), np.array([1]), np.array([2]))
    corners = triplets.corners(shape, 0)
    assert np.isfinite(corners).all()
    for start, end in ((0, 1), (0, 2), (1, 2)):
        assert np.linalg.norm(corners[start] - corners[end]) == pytest.approx(
            np.linalg.norm(points[start] - points[end]), abs=1e-5)


@pytest.mark.parametrize("by", ["loss", "weight", "angle"])
def test_triplets_are_sorted_in_descending_order_and_ties_keep_their_order(by: triplets.Order) -> None:
    record = trained()[0]
    values = triplets.recorded_shape(record).angle if by == "angle" else getattr(record, by)
    expected = sorted(range(len(values)), key=lambda number: -values[number])
    assert triplets.sorted_positions(record, by).tolist() == expected


def test_a_triplet_is_true_if_only_its_positive_has_the_anchors_class() -> None:
    record, _, labels = trained()
    positive, negative = triplets.truth(record, labels)
    rows = list(zip(record.anchor, record.positive, record.negative, strict=True))
    assert positive.tolist() == [labels[a] == labels[p] for a, p, _ in rows]
    assert negative.tolist() == [labels[a] != labels[n] for a, _, n in rows]
    assert 0 < (positive & negative).mean() < 1


def test_each_anchor_is_listed_once_with_its_first_triplet() -> None:
    record = trained()[0]
    positions = triplets.sorted_positions(record, "angle")[:500]
    expected = list({int(record.anchor[position]): int(position) for position in reversed(positions)}.values())[::-1]
    firsts = triplets.first_of_each_anchor(record, positions)
    assert sorted(firsts.tolist()) == sorted(expected)
    assert (np.diff([positions.tolist().index(position) for position in firsts]) > 0).all()
    assert len(firsts) < len(positions), "some anchor occurs twice"


def spread_out(shares: list[float], count: int = 400) -> Array:
    """Return points (n, d) with these variances along the axes, without correlation, away from the origin."""
    random = np.random.default_rng(0).standard_normal((count, len(shares)))
    left, _, _ = np.linalg.svd(random - random.mean(axis=0), full_matrices=False)
    return left * np.sqrt(count * np.array(shares)) + 5


def test_the_regime_compares_violations_variance_and_subspace() -> None:
    rows = spread_out([4.0, 2.0, 1.0, 1.0])
    axes = np.eye(4)
    parts = np.random.default_rng(1).integers(400, size=(3, 150))
    first, learned = axes[:, 2:], 3 * axes[:, [0, 2]] @ np.array([[0.6, -0.8], [0.8, 0.6]])
    regime = triplets.regime(rows, parts, first, learned, 35.0)
    for share, projection in ((regime.before, first), (regime.after, learned)):
        count = 0
        for a, p, n in (rows[column] @ projection for column in parts.T):
            median = n - (a + p) / 2
            count += (a - p) @ (a - p) > 4 * np.tan(np.radians(35)) ** 2 * (median @ median)
        assert share == count / 150
    assert 0.2 < regime.before < 0.8
    assert regime.before != regime.after
    assert regime.variance == pytest.approx((4 + 1) / (4 + 2))
    assert regime.overlap == pytest.approx(1 / 2)


def test_the_principal_subspace_is_about_the_mean_and_the_overlap_has_known_values() -> None:
    rows, axes = spread_out([4.0, 2.0, 1.0]), np.eye(3)
    directions, variances = triplets.principal_subspace(rows, 2)
    np.testing.assert_allclose(np.abs(directions), axes[:, :2], atol=1e-9)
    np.testing.assert_allclose(variances, [4, 2])
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    assert triplets.overlap(axes[:, :2] @ turn, axes[:, :2]) == pytest.approx(1)
    assert triplets.overlap(axes[:, :1], axes[:, 1:2]) == 0
    assert triplets.overlap(np.array([[0.6], [0.8], [0.0]]), axes[:, :1]) == pytest.approx(0.36)


@pytest.mark.parametrize(("after", "variance", "overlap", "is_pca"), [
    (0.0, 0.98, 0.88, True), (0.2, 0.98, 0.88, False), (0.0, 0.7, 0.88, False), (0.0, 0.98, 0.5, False)])
def test_a_run_is_close_to_pca_if_the_bound_is_inactive_and_variance_and_subspace_agree(
        after: float, variance: float, overlap: float, is_pca: bool) -> None:
    assert triplets.Regime(0.5, after, variance, overlap).is_pca is is_pca


def test_stored_features_have_unit_length_and_are_missing_without_a_cache(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = catalog.load("digits")
    encoder = Encoder(choose_spec("pixels", dataset.native_size, dataset.gray))
    features = np.array(features_of(dataset, encoder))[[5, 2]].astype(float)
    rows = triplets.stored_rows(dataset, encoder.spec, np.array([5, 2]))
    assert rows is not None
    np.testing.assert_allclose(rows, features / np.linalg.norm(features, axis=1, keepdims=True), rtol=1e-6)
    monkeypatch.setenv("UDML_CACHE", str(tmp_path))
    assert triplets.stored_rows(dataset, encoder.spec, np.array([5, 2])) is None
