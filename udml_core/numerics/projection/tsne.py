"""t-SNE with exact neighbors, repeatable for a given seed.

L. van der Maaten, G. Hinton, "Visualizing data using t-SNE", JMLR 9, 2008, in openTSNE's implementation.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from openTSNE import TSNE, TSNEEmbedding
from openTSNE.affinity import PerplexityBasedNN
from openTSNE.nearest_neighbors import KNNIndex

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.projection.align import procrustes
from udml_core.numerics.projection.pca import pca_layout

EXAGGERATED_STEPS, NORMAL_STEPS = 250, 500
"""Numbers of steps with exaggerated affinities and after them, openTSNE's defaults."""
STEPS_PER_REPORT = 10
START_SPREAD, JITTER = 1e-4, 0.01
"""Standard deviation of the start, and of its noise as a share of that."""
PLACING_PERPLEXITY = 5
CONTINUED_SPREAD = 8.0
"""Root mean square coordinate from which a layout is continued, about that of a finished one of a thousand points."""
PARTING, PARTING_STEPS, SETTLING_STEPS = 4.0, 30, 60
"""Exaggeration and numbers of steps of a continued layout."""


class _ExactIndex(KNNIndex):
    """openTSNE's interface to exact neighbors.

    The neighbors are of the points themselves, and of new points.
    """

    def __init__(self, points: Array, k: int) -> None:
        self.points, self.k, self.n_samples = points, k, len(points)

    def build(self) -> tuple[Array, Array]:
        squared, indices = nearest(self.points, self.k)
        return indices, np.sqrt(squared)

    def query(self, query: Array, k: int) -> tuple[Array, Array]:
        squared, indices = nearest(self.points, k, query)
        return indices, np.sqrt(squared)


def tsne_layout(points: Array, perplexity: float = 30.0, seed: int = 0, before: Array | None = None,
                report: Callable[[float], None] = lambda _: None,
                steps: tuple[int, int] = (EXAGGERATED_STEPS, NORMAL_STEPS)) -> Array:
    """Compute the t-SNE layout (n, 2) of points (n, d).

    Args:
        points: (n, d).
        perplexity: Effective number of neighbors of each point.
        seed: The random seed.
        before: The layout (n, 2) of the frame before. The new layout starts from it and is aligned with it. None
            starts from the principal plane.
        report: Called with the share of finished steps.
        steps: Numbers of steps with exaggerated affinities and after them.

    Raises:
        UserError: The perplexity is too large for the number of points.
    """
    affinities = _affinities(points, perplexity)
    finished = 0

    def count_steps(*_: Any) -> bool:
        nonlocal finished
        finished += STEPS_PER_REPORT
        report(min(1.0, finished / sum(steps)))
        return False  # openTSNE stops at True

    start = _shrink(pca_layout(points) if before is None else before, seed)
    tsne = TSNE(early_exaggeration_iter=steps[0], n_iter=steps[1], n_jobs=os.cpu_count(),
                random_state=seed, callbacks=count_steps, callbacks_every_iters=STEPS_PER_REPORT)
    layout = np.asarray(tsne.fit(affinities=affinities, initialization=start))
    return layout if before is None else procrustes(layout, before)(layout)


def continue_layout(points: Array, before: Array, perplexity: float = 30.0, seed: int = 0) -> Array:
    """Move a layout (n, 2) of points in another embedding by a few steps of t-SNE, to a layout of the points (n, d).

    Groups part and meet again from where they are, in a tenth of the time of a new layout.

    Args:
        points: (n, d).
        before: The layout (n, 2) of the frame before, of any scale.
        perplexity: Effective number of neighbors of each point.
        seed: The random seed.

    Raises:
        UserError: The perplexity is too large for the number of points.
    """
    spread = np.sqrt(np.square(before - before.mean(axis=0)).mean()) or 1.0
    layout = TSNEEmbedding(CONTINUED_SPREAD * np.asarray(before, dtype=np.float64) / spread,
                           _affinities(points, perplexity), negative_gradient_method="bh", random_state=seed,
                           n_jobs=os.cpu_count())
    # A little exaggeration first: without it a group that has come together stays apart in pieces.
    layout = layout.optimize(PARTING_STEPS, exaggeration=PARTING, learning_rate="auto", momentum=0.8)
    moved = np.asarray(layout.optimize(SETTLING_STEPS, learning_rate="auto", momentum=0.8))
    return procrustes(moved, before)(moved)


def place(points: Array, layout: Array, perplexity: float, seed: int, new: Array) -> Array:
    """Place new points (q, d) on the layout (n, 2) of the points (n, d).

    The points of the layout do not move. This is openTSNE's transform, on an embedding rebuilt from the stored layout
    and recomputed affinities.
    """
    embedding = TSNEEmbedding(np.array(layout, dtype=np.float64), _affinities(points, perplexity), random_state=seed,
                              negative_gradient_method="bh", n_jobs=os.cpu_count())
    placed = embedding.transform(np.asarray(new), perplexity=min(PLACING_PERPLEXITY, len(points) // 3))
    # openTSNE moves its copy of the layout to mean 0, so the placed points are moved back.
    return np.asarray(placed) + (np.asarray(layout)[0] - np.asarray(embedding)[0])


def _shrink(layout: Array, seed: int) -> Array:
    """Shrink a layout to a spread of 1e-4 and add noise.

    t-SNE unfolds well from a small start. The noise separates identical points, which would otherwise never part.
    """
    centered = layout - layout.mean(axis=0)
    spread = centered.std() or 1.0
    return START_SPREAD * (centered / spread + np.random.default_rng(seed).normal(0.0, JITTER, centered.shape))


def _affinities(points: Array, perplexity: float) -> PerplexityBasedNN:
    needed = int(3 * perplexity)
    if needed >= len(points):
        raise UserError(f"t-SNE at perplexity {perplexity:g} needs at least {needed + 1} images, three times the "
                        f"perplexity plus one, and there are {len(points)}. Lower the perplexity to at most "
                        f"{(len(points) - 1) // 3}, or choose more images.")
    return PerplexityBasedNN(perplexity=perplexity, knn_index=_ExactIndex(points, needed), n_jobs=os.cpu_count())
