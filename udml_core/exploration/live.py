"""A training that is watched: its map by epoch, and clusters as colors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock

import numpy as np

from udml_core.base.arrays import Array, Integers, evenly_spaced, rows_of
from udml_core.exploration.quick_map import next_frame

MOST_AT_ONCE = 60
"""Frames that one step computes at most; of more new epochs some are passed over, the last never."""
ROOM = 1.1
"""Least share by which the view is wider than the points, so that few epochs move it."""
SEEN = 99.0
"""Percent of the points that the view holds for certain; a few that lie far out would leave most of it empty."""


class LiveMap:
    """The layouts of a fixed sample by epoch, each computed once and turned to the layout before it.

    Several sessions may watch the same run.
    """

    def __init__(self) -> None:
        self._frames: dict[int, Array] = {}
        self._lock = Lock()

    def frame(self, epoch: int, epochs: Sequence[int], sample: Callable[[int], Array],
              start: Array | None = None) -> Array:
        """Return the layout (s, 2) of an epoch; layouts of earlier epochs are computed first.

        Args:
            epoch: The epoch, among `epochs`.
            epochs: The stored epochs, ascending.
            sample: Returns the sample's embedding (s, d) of an epoch.
            start: The layout (s, 2) that was shown before the first epoch, to which the first layout is turned.
        """
        with self._lock:
            missing = [number for number in epochs if number <= epoch and number > max(self._frames, default=-1)]
            for place in evenly_spaced(len(missing), MOST_AT_ONCE):
                number = missing[place]
                earlier = self._frames[max(self._frames)] if self._frames else start
                self._frames[number] = next_frame(sample(number), earlier)
            if epoch not in self._frames:  # it was passed over
                before = max((number for number in self._frames if number < epoch), default=None)
                self._frames[epoch] = next_frame(sample(epoch), None if before is None else self._frames[before])
            return self._frames[epoch]


def view_of(frame: Array) -> tuple[float, float]:
    """Return half the width and half the height of a view around 0 that holds a layout (s, 2).

    They are multiples of a quarter, so that the view rests while points move from epoch to epoch.
    """
    x, y = np.ceil(4 * ROOM * np.maximum(np.percentile(np.abs(frame), SEEN, axis=0), 0.1)) / 4
    return float(x), float(y)


def clusters_of(assignment: Array, trained: Integers, images: Integers) -> Integers:
    """Return the cluster of each image, −1 for an image that was not trained on and for a singleton.

    Args:
        assignment: Cluster of each training image, (t,).
        trained: Data set indices of the training images, (t,), ascending.
        images: Data set indices, (s,).
    """
    rows = rows_of(trained, images)
    sizes = np.bincount(assignment)
    clusters = np.where(rows >= 0, np.asarray(assignment)[np.maximum(rows, 0)], -1)
    return np.where((clusters >= 0) & (sizes[np.maximum(clusters, 0)] > 1), clusters, -1).astype(np.int64)
