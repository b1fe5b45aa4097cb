"""A map that is there at once: principal axes by a few block power iterations."""

from __future__ import annotations

import numpy as np

from udml_core.base.arrays import Array

BLOCK = 10
ITERATIONS = 6


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
