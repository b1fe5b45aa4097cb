"""A training that is watched, on points whose layouts, neighbors and clusters are known."""

from __future__ import annotations

import numpy as np
import pytest

from udml_core.base.arrays import Array
from udml_core.exploration.live import LiveMap, clusters_of, view_of
from udml_core.exploration.neighborhoods import nearest_rows
from udml_core.exploration.quick_map import quick_frames


def _embeddings(count: int = 4, points: int = 40) -> list[Array]:
    """Embeddings that turn and grow, with a little noise."""
    random = np.random.default_rng(0)
    base = random.standard_normal((points, 5)) * [5, 3, 1, 1, 1]
    turns = [np.linalg.qr(random.standard_normal((5, 5)))[0] * (1 + step) for step in range(count)]
    return [(base @ turn + 0.05 * random.standard_normal(base.shape)).astype(np.float32) for turn in turns]


def test_layouts_that_come_one_by_one_are_those_of_the_whole_training() -> None:
    embeddings = _embeddings()
    live, whole = LiveMap(), quick_frames(embeddings)
    for epoch in range(4):
        np.testing.assert_allclose(live.frame(epoch, list(range(epoch + 1)), embeddings.__getitem__), whole[epoch],
                                   atol=1e-5)


def test_points_travel_little_although_each_embedding_is_turned() -> None:
    embeddings, live = _embeddings(), LiveMap()
    first, second = (live.frame(epoch, [0, 1], embeddings.__getitem__) for epoch in (0, 1))
    assert np.linalg.norm(second - first, axis=1).max() < 0.2


def test_the_first_layout_is_turned_to_the_map_that_was_shown_before() -> None:
    embeddings = _embeddings()
    shown = LiveMap().frame(0, [0], embeddings.__getitem__)
    turned = shown @ np.array([[0.0, -1.0], [1.0, 0.0]], dtype=np.float32)
    first = LiveMap().frame(0, [0], embeddings.__getitem__, turned)
    np.testing.assert_allclose(first, turned, atol=1e-4)
    assert np.abs(first - shown).max() > 0.5, "without a map before, it has an orientation of its own"


def test_an_epoch_is_read_once_and_a_late_visit_passes_epochs_over() -> None:
    embeddings, read = _embeddings(1)[0], list[int]()

    def sample(epoch: int) -> Array:
        read.append(epoch)
        return embeddings

    live, epochs = LiveMap(), list(range(501))
    live.frame(500, epochs, sample)
    assert len(read) == 60
    assert (read[0], read[-1]) == (0, 500)
    live.frame(500, epochs, sample)
    assert len(read) == 60
    live.frame(1, epochs, sample)  # an epoch that was passed over
    assert read[60:] == [1]


def test_the_view_holds_nearly_all_points_in_steps_of_a_quarter() -> None:
    assert view_of(np.array([[0.0, 1.0], [-1.3, 0.2]])) == (1.5, 1.25)
    assert view_of(np.zeros((3, 2))) == (0.25, 0.25)
    frame = np.random.default_rng(0).uniform(-1, 1, (1000, 2))
    frame[7] = (9, -9)
    assert view_of(frame) == (1.25, 1.25), "one point far out does not leave the view empty"


def test_the_nearest_rows_leave_out_the_query() -> None:
    sample = np.array([[0.0], [1.0], [3.0], [3.5]], dtype=np.float32)
    assert nearest_rows(sample, 2, 2).tolist() == [3, 1]
    assert nearest_rows(sample, 0, 9).tolist() == [1, 2, 3], "fewer images than neighbors"


@pytest.mark.parametrize("trained", [[3, 5, 8, 9], [1, 3, 5, 9]])
def test_images_have_the_cluster_of_their_training_row(trained: list[int]) -> None:
    """Clusters 0, 0, 1 and 2: two singletons, and images outside the training half have none."""
    found = clusters_of(np.array([0, 0, 1, 2]), np.array(trained), np.array([2, *trained]))
    assert found.tolist() == [-1, 0, 0, -1, -1]
