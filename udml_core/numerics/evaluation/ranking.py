"""Rankings of points by distance, the same on every machine.

Neighbors are nearest by Euclidean distance, which for unit embeddings is the order by cosine. Ties go to the lowest
index, so the measures are defined for duplicates.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from udml_core.base.arrays import Array

CHUNK_ENTRIES = 1_500_000
"""Number of distances computed at once, few enough to stay in the processor's cache."""
QUANTUM = 1e-9
"""Resolution of squared distances, as a share of the largest squared norm. It is coarser than rounding errors."""


class Distances:
    """Distances of points as integer keys that contain the distance and the index.

    Squared distances are rounded to a multiple of `QUANTUM`, which removes rounding errors. Ties are then exact, and
    the index in the key decides them.
    """

    def __init__(self, embeddings: Array) -> None:
        points = torch.as_tensor(np.asarray(embeddings, dtype=np.float64))
        self._points = points - points.mean(0)  # a common offset would cost digits without changing distances
        self._norms = self._points.square().sum(1)
        self._quantum = max(float(self._norms.max()), 1e-300) * QUANTUM

    def keys(self, rows: Tensor) -> Tensor:
        """Return the keys (q, n) int64 from points (q,) to all points.

        They are distinct and ascend with the distance; the own key is largest.
        """
        indices = torch.arange(len(self._points))
        squared = torch.addmm(self._norms[rows, None] + self._norms, self._points[rows], self._points.T, alpha=-2)
        keys = squared.div_(self._quantum).round_().clamp_min_(0).to(torch.int64).mul_(len(indices)).add_(indices)
        keys[torch.arange(len(rows)), rows] = torch.iinfo(torch.int64).max
        return keys


def rankings(embeddings: Array, k: int) -> Iterator[tuple[Array, Array]]:
    """Yield each point's k nearest other points in chunks.

    A chunk has queries (q,) and neighbors (q, k).

    Args:
        embeddings: (n, d).
        k: Number of neighbors, at most n − 1.
    """
    distances = Distances(embeddings)
    for rows in row_chunks(len(embeddings), len(embeddings)):
        neighbors = torch.topk(distances.keys(rows), k, dim=1, largest=False, sorted=True).indices
        yield rows.numpy(), neighbors.numpy()


def row_chunks(count: int, width: int) -> tuple[Tensor, ...]:
    """Split the row numbers into chunks (q,) whose distances are computed together.

    Args:
        count: Number of rows.
        width: Number of points to which each row has a distance.
    """
    return torch.arange(count).split(max(1, CHUNK_ENTRIES // width))
