"""A training that is watched, on points whose layouts, neighbors and clusters are known."""

from __future__ import annotations

import numpy as np
import pytest

from udml_core.base.arrays import Array
from udml_core.exploration.live import LiveMap, clusters_of, live_frame, view_of
from udml_core.exploration.neighborhoods import nearest_rows
from udml_core.exploration.quick_map import quick_frames


def _embeddings(count: int = 4, points: int = 40) -> list[Array]:
    """Embeddings that turn and grow, with a little noise."""
    random = np.random.default_rng(0)
    base = random.standard_normal((points, 5)) * [5, 3, 1, 1, 1]
    turns = [np.linalg.qr(random.standard_normal((5, 5)))[0] * (1 + step) for step in range(count)]
    return [(base @ turn + 0.05 * random.standard_normal(base.shape)).astype(np.float32) for turn in turns]


def _groups(turn: float = 0.0) -> Array:
    """Three groups of 20 points on the axes of five dimensions, turned in the plane of the first two."""
    random = np.random.default_rng(1)
    points = np.repeat(5 * np.eye(3, 5), 20, axis=0) + 0.2 * random.standard_normal((60, 5))
    plane = np.eye(5)
    plane[:2, :2] = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
    return (points @ plane).astype(np.float32)


def test_layouts_that_come_one_by_one_are_those_of_a_late_visit() -> None:
    embeddings = _embeddings(3)
    early, late = LiveMap(), LiveMap()
    shown = [early.frame(epoch, list(range(epoch + 1)), lambda number: embeddings[int(number)]) for epoch in range(3)]
    np.testing.assert_array_equal(shown[2], late.frame(2, [0, 1, 2], lambda number: embeddings[int(number)]))
    np.testing.assert_array_equal(shown[2], live_frame(embeddings[2], shown[1]))
    for frame in shown:
        np.testing.assert_allclose(np.square(frame).sum(axis=1).mean(), 1, rtol=1e-5)


def test_points_of_one_group_lie_together_and_stay_where_they_are() -> None:
    first = live_frame(_groups(), None)
    first = first @ np.array([[0, 1], [-1, 0]], dtype=np.float32)  # turned, as another frame before might be
    second = live_frame(_groups(turn=1.0), first)
    group = np.repeat(np.arange(3), 20)
    for frame in (first, second):
        assert (group[[nearest_rows(frame, row, 1)[0] for row in range(60)]] == group).all()
    centers = [np.array([frame[group == number].mean(axis=0) for number in range(3)]) for frame in (first, second)]
    assert np.linalg.norm(centers[1] - centers[0], axis=1).max() < 0.3, "a turn of the embedding does not turn the map"


def test_the_first_layout_begins_where_the_map_before_the_run_had_its_points() -> None:
    embedding, shown = _groups(), np.random.default_rng(3).standard_normal((60, 2))
    first = LiveMap().frame(0, [0], lambda _number: embedding, shown)
    np.testing.assert_array_equal(first, live_frame(embedding, shown))


def test_a_group_that_was_spread_over_the_map_comes_together() -> None:
    mixed = np.random.default_rng(2).standard_normal((60, 2))
    frame = live_frame(_groups(), mixed)
    group = np.repeat(np.arange(3), 20)
    assert (group[[nearest_rows(frame, row, 1)[0] for row in range(60)]] == group).mean() > 0.9


def test_few_images_are_laid_out_on_their_principal_plane() -> None:
    points = _embeddings(1, 6)[0]
    np.testing.assert_array_equal(live_frame(points, None), quick_frames([points])[0])
    for count in (12, 13, 20):
        assert np.isfinite(live_frame(_embeddings(1, count)[0], None)).all()


def test_an_epoch_is_read_once_and_a_late_visit_passes_epochs_over() -> None:
    embeddings, read = _embeddings(1, 8)[0], list[float]()

    def sample(epoch: float) -> Array:
        read.append(epoch)
        return embeddings

    live, epochs = LiveMap(), list(range(501))
    live.frame(500, epochs, sample)
    assert len(read) == 12
    assert (read[0], read[-1]) == (0, 500)
    live.frame(500, epochs, sample)
    assert len(read) == 12
    live.frame(1, epochs, sample)  # an epoch that was passed over
    assert read[12:] == [1]


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
