"""UMAP, compared with umap-learn's own class, and aligned layouts of frames."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from tests.numerics.projection.laws import median_move
from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.numerics.evaluation import trustworthiness
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.projection import umap


@pytest.fixture(scope="module")
def layout(digits: Array) -> Array:
    return umap.umap_layouts([digits])[0]


@pytest.fixture(scope="module")
def model(digits: Array) -> Any:
    """umap-learn's own model of the digits.

    It gets the exact neighbors and skips umap-learn's own search, which takes seconds to compile.
    """
    from umap import UMAP

    squared, indices = nearest(digits, 14)
    own = np.arange(len(digits))[:, None]
    neighbors = np.hstack([own, indices]), np.hstack([0 * own, np.sqrt(squared)]).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = UMAP(random_state=0, n_jobs=1, precomputed_knn=neighbors).fit(digits)
    # `transform` refuses a model without a search index, unless it may compute all distances itself.
    del model._knn_search_index
    model._small_data = True
    return model


@pytest.mark.slow
def test_one_frame_equals_umap_to_the_last_bit(digits: Array, layout: Array, model: Any) -> None:
    np.testing.assert_array_equal(layout, model.embedding_)
    assert trustworthiness(digits, layout).mean() > 0.95


@pytest.mark.slow
def test_new_points_are_placed_like_umap_transform(digits: Array, moved: Array, model: Any) -> None:
    placed = umap.place(digits, model.embedding_, 15, 0.1, 42, moved[:100])
    assert median_move(model.transform(moved[:100]), placed) < 0.01


def test_known_images_are_placed_near_their_own_points(digits: Array, layout: Array) -> None:
    before = layout.copy()
    assert median_move(layout[:100], umap.place(digits, layout, 15, 0.1, 0, digits[:100])) < 0.02
    np.testing.assert_array_equal(layout, before)


@pytest.mark.slow
def test_aligned_frames_are_repeatable_and_keep_their_orientation(digits: Array, moved: Array) -> None:
    shares: list[float] = []
    frames = umap.umap_layouts([digits, moved], min_dist=0.3, report=shares.append)
    np.testing.assert_array_equal(frames, umap.umap_layouts([digits, moved], min_dist=0.3))
    assert median_move(*frames) < 0.05
    assert all(trustworthiness(digits, frame).mean() > 0.95 for frame in frames)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_identical_points_and_disconnected_graphs_have_a_layout(
        collapsed: Array, recwarn: pytest.WarningsRecorder) -> None:
    assert np.isfinite(umap.umap_layouts([collapsed], n_neighbors=5)[0]).all()
    assert not recwarn.list


def test_the_error_for_too_many_neighbors_names_the_largest_possible(digits: Array) -> None:
    with pytest.raises(UserError, match=r"UMAP with 15 neighbors .* there are 15\. .* at most 14"):
        umap.umap_layouts([digits[:15]])
