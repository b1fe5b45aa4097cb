"""What a browser needs to play a training: layouts, neighbors and recall of the fixed sample by epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from udml_core.base.arrays import Array
from udml_core.exploration.interesting import clearest_row, gains_and_losses_in_turn
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.projection.align import procrustes
from udml_core.numerics.projection.pca import pca_layout

NEIGHBORS = 10


@dataclass(frozen=True)
class Instrument:
    """A training of e epochs on s images of the fixed sample.

    Attributes:
        positions: (e, s, 2) float32 layouts with mean 0 and a mean squared radius of 1, in one orientation.
        neighbors: (e, s, k) int32 rows of the nearest other images of the sample.
        hits: (e, s, k) bool, whether a neighbor has the image's class; None without classes.
    """

    positions: Array
    neighbors: Array
    hits: Array | None

    @property
    def recall(self) -> Array | None:
        """Recall@1 in percent, (e,); None without classes."""
        return None if self.hits is None else 100 * self.hits[:, :, 0].mean(axis=1)

    @property
    def clearest_query(self) -> int:
        """The row that training improves most."""
        return clearest_row(self.neighbors[0], self.neighbors[-1],
                            None if self.hits is None else (self.hits[0], self.hits[-1]))

    def changed_query(self, rival: Array, labels: Array) -> int:
        """Return the row that differs most from a rival, in the direction in which most rows differ.

        Args:
            rival: The rival's neighbors (s, k).
            labels: Classes (s,).
        """
        assert self.hits is not None, "the images have classes"
        gains = self.hits[-1].sum(axis=1) - (labels[rival] == labels[:, None]).sum(axis=1)
        return gains_and_losses_in_turn(gains.tolist())[0]


def make_instrument(samples: Sequence[Array], labels: Array | None, layouts: Sequence[Array] | None = None,
                    k: int = NEIGHBORS) -> Instrument:
    """Compute what a browser needs to play a training.

    Args:
        samples: The sample's embedding (s, l) after each of e epochs; the first one is before training.
        labels: (s,) classes, or None.
        layouts: A layout (s, 2) of each epoch; by default the principal planes.
        k: Number of neighbors, at most s − 1.
    """
    neighbors = np.stack([near_rows(sample, k) for sample in samples])
    planes = [pca_layout(sample) for sample in samples] if layouts is None else layouts
    hits = None if labels is None else labels[neighbors] == labels[:, None]
    return Instrument(lie_down(orient(planes)).astype(np.float32), neighbors, hits)


def near_rows(sample: Array, k: int = NEIGHBORS) -> Array:
    """Return the rows (s, k) int32 of the nearest other images of a sample's embedding (s, l); fewer than s."""
    return nearest(sample, min(k, len(sample) - 1))[1].astype(np.int32)


def orient(layouts: Sequence[Array]) -> Array:
    """Center and scale layouts (s, 2), and turn each to the following one.

    The last layout keeps its orientation, because training ends there.

    Returns:
        (e, s, 2) with mean 0 and a mean squared radius of 1.
    """
    oriented: list[Array] = []
    for layout in reversed(layouts):
        centered = np.asarray(layout, dtype=np.float64) - np.mean(layout, axis=0)
        scale = np.sqrt((centered ** 2).sum(axis=1).mean())
        scaled = centered / scale if scale > 0 else centered
        oriented.append(procrustes(scaled, oriented[-1])(scaled) if oriented else scaled)
    return np.stack(oriented[::-1])


def lie_down(layouts: Array) -> Array:
    """Turn all layouts (e, s, 2) together, so that the last one is longest from left to right, as a screen is."""
    _, _, axes = np.linalg.svd(layouts[-1], full_matrices=False)
    return layouts @ axes.T
