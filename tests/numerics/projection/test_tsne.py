"""t-SNE: repeatable, faithful, and stable from one frame to the next."""

from __future__ import annotations

import numpy as np
import pytest

from tests.numerics.projection.laws import median_move
from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.numerics.evaluation import trustworthiness
from udml_core.numerics.projection import tsne


@pytest.fixture(scope="module")
def layout(digits: Array) -> Array:
    return tsne.tsne_layout(digits)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_layout_on_any_number_of_cores(
        digits: Array, layout: Array, monkeypatch: pytest.MonkeyPatch) -> None:
    shares: list[float] = []
    monkeypatch.setattr(tsne.os, "cpu_count", lambda: 1)
    np.testing.assert_array_equal(tsne.tsne_layout(digits, report=shares.append), layout)
    assert shares == sorted(shares)
    assert len(shares) == 75
    assert shares[-1] == 1.0


def test_map_neighbors_are_true_neighbors(digits: Array, layout: Array) -> None:
    assert trustworthiness(digits, layout).mean() > 0.97


@pytest.mark.slow
def test_the_next_frame_keeps_the_orientation_of_the_frame_before(
        digits: Array, moved: Array, layout: Array) -> None:
    mirrored = layout[:, ::-1]  # t-SNE without a start would not give this orientation
    following = tsne.tsne_layout(moved, before=mirrored)
    # One draw of noise can turn a cluster over, and which one depends on the processor's arithmetic.
    others = [digits + np.random.default_rng(seed).normal(0, 0.02, digits.shape).astype(np.float32) for seed in (1, 2)]
    moves = [median_move(mirrored, after) for after in
             (following, *(tsne.tsne_layout(other, before=mirrored) for other in others))]
    assert np.median(moves) < 0.05
    assert median_move(mirrored, tsne.tsne_layout(moved)) > 0.15
    assert trustworthiness(moved, following).mean() > 0.97


def test_known_images_are_placed_on_their_own_points_and_the_map_does_not_move(digits: Array, layout: Array) -> None:
    before = layout.copy()
    placed = tsne.place(digits, layout, 30.0, 0, digits[:80])
    assert median_move(layout[:80], placed) < 0.005
    np.testing.assert_array_equal(layout, before)
    shifted = tsne.place(digits, layout + 50.0, 30.0, 0, digits[:80])
    np.testing.assert_allclose(shifted, placed + 50.0, atol=0.5)


def test_identical_points_have_a_layout(collapsed: Array) -> None:
    assert np.isfinite(tsne.tsne_layout(collapsed, perplexity=5)).all()
    assert np.isfinite(tsne.tsne_layout(np.zeros((40, 4), np.float32), perplexity=5)).all()


def test_the_error_for_a_large_perplexity_names_the_largest_possible(digits: Array) -> None:
    with pytest.raises(UserError, match=r"perplexity 30 needs at least 91 images.*there are 60\. .* at most 19"):
        tsne.tsne_layout(digits[:60])
    assert tsne.tsne_layout(digits[:60], perplexity=19).shape == (60, 2)
