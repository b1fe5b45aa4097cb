"""Maps that are there at once: principal axes by a few block power iterations, and epochs on the map of the last."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from udml_core.base.arrays import Array
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.projection.align import procrustes

BLOCK = 10
ITERATIONS = 6
NEIGHBORS = 10
"""Neighbors that a point is placed by, as many as a map stores."""


def quick_map(embeddings: Array) -> Array:
    """Project embeddings on their two principal axes, in a fraction of a second.

    The axes come from subspace iteration on the covariance, so that wide embeddings need no full eigendecomposition.
    The result is deterministic; signs are fixed as in `udml_core.numerics.projection.pca.Plane`.

    Args:
        embeddings: (n, d).

    Returns:
        (n, 2) float32.

    References:
        N. Halko, P.-G. Martinsson, J. Tropp, "Finding structure with randomness", SIAM Review 53, 2011, algorithm 4.4.
    """
    points = np.asarray(embeddings, dtype=np.float32)
    centered = points - points.mean(axis=0)
    width = centered.shape[1]
    start = np.random.default_rng(0).standard_normal((width, min(BLOCK, width)))
    basis = np.linalg.qr(start)[0].astype(np.float32)
    for _ in range(ITERATIONS):
        basis = np.linalg.qr(centered.T @ (centered @ basis))[0]
    scores = centered @ basis
    # Inside the converged subspace the small eigenproblem separates the axes.
    rotation = np.linalg.eigh(scores.T.astype(np.float64) @ scores).eigenvectors[:, ::-1][:, :2]
    axes = basis @ rotation
    largest = np.abs(axes).argmax(axis=0)
    signs = np.sign(axes[largest, np.arange(axes.shape[1])])
    layout = np.zeros((len(points), 2), dtype=np.float32)  # the second axis stays zero for embeddings of one dimension
    layout[:, : axes.shape[1]] = scores @ rotation * signs
    return layout


def quick_frames(embeddings: Iterable[Array]) -> Array:
    """Lay out several embeddings of the same n images by PCA.

    Each layout is scaled to unit mean square radius, because embeddings before and after training differ in scale, and
    aligned with the layout before it, so that points travel as little as possible.

    Args:
        embeddings: One embedding (n, d) for each frame; widths may differ.

    Returns:
        (f, n, 2) float32.
    """
    frames: list[Array] = []
    for embedding in embeddings:
        frames.append(next_frame(embedding, frames[-1] if frames else None))
    return np.stack(frames)


def next_frame(embedding: Array, previous: Array | None) -> Array:
    """Lay out an embedding by PCA as the frame after another, as `quick_frames` does.

    Args:
        embedding: (n, d).
        previous: The frame before, (n, 2), of the same images; None for the first frame.

    Returns:
        (n, 2) float32.
    """
    layout = quick_map(embedding)
    layout = layout / max(float(np.sqrt((layout ** 2).sum(axis=1).mean())), 1e-12)
    return layout if previous is None else procrustes(layout, previous)(layout).astype(np.float32)


def place_among_neighbors(embedding: Array, layout: Array, k: int = NEIGHBORS) -> tuple[Array, Array]:
    """Place each point at the mean of its neighbors' positions.

    So the layout after training shows an earlier embedding: points whose neighbors belong to many clusters lie between
    the clusters.

    Args:
        embedding: Points (n, l), at least two.
        layout: Positions (n, 2) of the same points in another embedding.
        k: Number of neighbors; fewer if there are fewer points.

    Returns:
        Positions (n, 2) float32, and the rows (n, k) int32 of the neighbors in the embedding.
    """
    neighbors = nearest(embedding, min(k, len(embedding) - 1))[1].astype(np.int32)
    return np.asarray(layout, dtype=np.float32)[neighbors].mean(axis=1), neighbors
