"""t-SNE with exact neighbors: the same layout at every call with the same seed.

L. van der Maaten, G. Hinton, "Visualizing data using t-SNE", JMLR 9, 2008, as openTSNE computes it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from openTSNE import TSNE, TSNEEmbedding
from openTSNE.affinity import PerplexityBasedNN
from openTSNE.nearest_neighbors import KNNIndex

from udml_core.arrays import Array
from udml_core.errors import UserError
from udml_core.neighbors import nearest
from udml_core.projection.align import procrustes
from udml_core.projection.pca import pca_layout

EXAGGERATED, ITERATIONS = 250, 500
"""Steps with exaggerated affinities, and after them: openTSNE's own numbers."""
TELL_EVERY = 10
START, JITTER = 1e-4, 0.01
PLACING_PERPLEXITY = 5


class _Exact(KNNIndex):
    """The exact neighbors that openTSNE asks for, of the points and of new ones."""

    def __init__(self, points: Array, k: int) -> None:
        self.points, self.k, self.n_samples = points, k, len(points)

    def build(self) -> tuple[Array, Array]:
        squared, indices = nearest(self.points, self.k)
        return indices, np.sqrt(squared)

    def query(self, query: Array, k: int) -> tuple[Array, Array]:
        squared, indices = nearest(self.points, k, query)
        return indices, np.sqrt(squared)


def tsne_layout(points: Array, perplexity: float = 30.0, seed: int = 0, before: Array | None = None,
                report: Callable[[float], None] = lambda _: None) -> Array:
    """Points (n, d) laid out in the plane, (n, 2).

    Args:
        before: the layout (n, 2) that it starts from and is turned towards; the principal plane without it.
        report: called with the share of the steps that is done.

    Raises:
        UserError: the perplexity is too large for so few points.
    """
    affinities = _affinities(points, perplexity)
    done = 0

    def tell(*_now: Any) -> bool:
        nonlocal done
        done += TELL_EVERY
        report(min(1.0, done / (EXAGGERATED + ITERATIONS)))
        return False

    start = _small(pca_layout(points) if before is None else before, seed)
    tsne = TSNE(early_exaggeration_iter=EXAGGERATED, n_iter=ITERATIONS, n_jobs=os.cpu_count(), random_state=seed,
                callbacks=tell, callbacks_every_iters=TELL_EVERY)
    layout = np.asarray(tsne.fit(affinities=affinities, initialization=start))
    return layout if before is None else procrustes(layout, before)(layout)


def place(points: Array, layout: Array, perplexity: float, seed: int, new: Array) -> Array:
    """New points (q, d) on the layout (n, 2) of the points (n, d), which stay where they are.

    openTSNE's transform on an embedding put together again from the stored positions and recomputed affinities.
    """
    embedding = TSNEEmbedding(np.array(layout, dtype=np.float64), _affinities(points, perplexity), random_state=seed,
                              negative_gradient_method="bh", n_jobs=os.cpu_count())
    placed = embedding.transform(np.asarray(new), perplexity=min(PLACING_PERPLEXITY, len(points) // 3))
    return np.asarray(placed) + (np.asarray(layout)[0] - np.asarray(embedding)[0])  # transform centres its layout


def _small(layout: Array, seed: int) -> Array:
    """A layout of spread 1e-4, from which t-SNE unfolds well, with points that coincide a little apart."""
    centered = layout - layout.mean(axis=0)
    spread = centered.std() or 1.0
    return START * (centered / spread + np.random.default_rng(seed).normal(0.0, JITTER, centered.shape))


def _affinities(points: Array, perplexity: float) -> PerplexityBasedNN:
    needed = int(3 * perplexity)
    if needed >= len(points):
        raise UserError(f"t-SNE at perplexity {perplexity:g} needs at least {needed + 1} images, three neighbors for "
                        f"each unit, and there are {len(points)}. Lower the perplexity to at most "
                        f"{(len(points) - 1) // 3}, or choose more images.")
    return PerplexityBasedNN(perplexity=perplexity, knn_index=_Exact(points, needed), n_jobs=os.cpu_count())
