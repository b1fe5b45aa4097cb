"""A training that is watched: its map by epoch, and clusters as colors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock

import numpy as np

from udml_core.base.arrays import Array, Integers, evenly_spaced, rows_of
from udml_core.exploration.quick_map import next_frame

PERPLEXITY = 30.0
FEWEST = 12
"""Images that t-SNE needs to say more than the principal plane."""
FIRST_STEPS = 80, 100
"""Steps of the first frame, a quarter of the steps of a stored map: the picture must be there at once."""
MOST_AT_ONCE = 12
"""Frames that one step computes at most; of more new epochs some are passed over, the last never."""
ROOM = 1.1
"""Least share by which the view is wider than the points, so that few epochs move it."""
SEEN = 99.0
"""Percent of the points that the view holds for certain; a few that lie far out would leave most of it empty."""


def live_frame(embedding: Array, previous: Array | None) -> Array:
    """Lay out an embedding by t-SNE, as the frame after another: it starts where the points are.

    The principal plane of a trained embedding shows few of its groups. It is used for less than a dozen points.

    Args:
        embedding: (n, d).
        previous: The frame before, (n, 2), of the same images; None for the first frame.

    Returns:
        (n, 2) float32 with mean 0 and a mean squared radius of 1.
    """
    if len(embedding) < FEWEST:
        return next_frame(embedding, previous)
    from udml_core.numerics.projection.tsne import continue_layout, tsne_layout  # a second

    perplexity = min(PERPLEXITY, (len(embedding) - 1) // 3 - 1)
    layout = (tsne_layout(embedding, perplexity, steps=FIRST_STEPS) if previous is None
              else continue_layout(embedding, previous, perplexity))
    centered = layout - layout.mean(axis=0)
    return (centered / max(float(np.sqrt((centered ** 2).sum(axis=1).mean())), 1e-12)).astype(np.float32)


class LiveMap:
    """The layouts of a fixed sample by epoch, each computed once and turned to the layout before it.

    Several sessions may watch the same run.
    """

    def __init__(self) -> None:
        self._frames: dict[float, Array] = {}
        self._lock = Lock()

    def frame(self, epoch: float, epochs: Sequence[float], sample: Callable[[float], Array],
              start: Array | None = None) -> Array:
        """Return the layout (s, 2) of an epoch; layouts of earlier epochs are computed first.

        Args:
            epoch: The number of finished epochs, among `epochs`.
            epochs: The stored epochs and the steps within them, ascending.
            sample: Returns the sample's embedding (s, d) after one of them.
            start: The layout (s, 2) that was shown before the first epoch, to which the first layout is turned.
        """
        with self._lock:
            missing = [number for number in epochs if number <= epoch and number > max(self._frames, default=-1)]
            for place in evenly_spaced(len(missing), MOST_AT_ONCE):
                number = missing[place]
                earlier = self._frames[max(self._frames)] if self._frames else start
                self._frames[number] = live_frame(sample(number), earlier)
            if epoch not in self._frames:  # it was passed over
                before = max((number for number in self._frames if number < epoch), default=None)
                self._frames[epoch] = live_frame(sample(epoch), None if before is None else self._frames[before])
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
