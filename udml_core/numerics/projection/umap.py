"""UMAP and aligned UMAP with exact neighbors, from umap-learn's functions.

L. McInnes, J. Healy, J. Melville, "UMAP: Uniform Manifold Approximation and Projection for Dimension Reduction", 2018.

`umap.UMAP` and `umap.AlignedUMAP` call the same functions. Calling them here has four advantages: progress is reported,
the neighbors are exact, the separate layout of each frame, which AlignedUMAP computes and discards, is skipped, and the
aligned optimizer gets a and b of `min_dist`, which AlignedUMAP does not pass on.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
import scipy.sparse

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.projection.align import procrustes

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # umap-learn warns about optional packages
    from umap.aligned_umap import build_neighborhood_similarities
    from umap.layouts import optimize_layout_aligned_euclidean, optimize_layout_euclidean
    from umap.spectral import spectral_layout
    from umap.umap_ import (
        compute_membership_strengths,
        find_ab_params,
        fuzzy_simplicial_set,
        init_graph_transform,
        make_epochs_per_sample,
        simplicial_set_embedding,
        smooth_knn_dist,
    )

for _compiled in (smooth_knn_dist, compute_membership_strengths, build_neighborhood_similarities):
    _compiled.enable_caching()  # else each process compiles them again, ten seconds for a map of epochs

Report = Callable[[float], None]
WINDOW = 3
"""Number of frames before and after a frame that it is aligned with."""
ALIGNED_EPOCHS, PLACING_EPOCHS = 200, 100
NEGATIVES = 5
"""Number of negative samples per edge, umap-learn's default."""
EXTENT = 10.0
"""Largest coordinate of a start, as in umap-learn."""


def umap_layouts(frames: Sequence[Array], n_neighbors: int = 15, min_dist: float = 0.1, seed: int = 0,
                 report: Report = lambda _: None) -> list[Array]:
    """Compute the layout of each frame, (n, 2) float32.

    One frame is laid out by UMAP. Several frames are laid out together by aligned UMAP, which keeps each point close to
    its positions in adjacent frames.

    Args:
        frames: (n, d) each, the same points in the same order.
        n_neighbors: Number of neighbors of each point, including the point itself.
        min_dist: Minimum distance of points in the layout.
        seed: The random seed.
        report: Called with the share of finished epochs.

    Raises:
        UserError: There are too few points for the number of neighbors.
    """
    if n_neighbors >= len(frames[0]):
        raise UserError(f"UMAP with {n_neighbors} neighbors needs at least {n_neighbors + 1} images, and there are "
                        f"{len(frames[0])}. Lower the number of neighbors to at most {len(frames[0]) - 1}.")
    a, b = find_ab_params(1.0, min_dist)
    progress = {"file": _ProgressFile(report), "bar_format": "{n}/{total}", "mininterval": 0.3, "disable": False}
    with warnings.catch_warnings():
        # umap-learn warns about disconnected graphs. Their components are laid out next to each other.
        warnings.simplefilter("ignore")
        graphs = [_graph(points, n_neighbors) for points in frames]
        random = np.random.RandomState(seed)
        if len(frames) > 1:
            starts = [spectral_layout(points, graph, 2, random) for points, graph in zip(frames, graphs, strict=True)]
            return _aligned(starts, graphs, a, b, random, progress)
        layout, _ = simplicial_set_embedding(
            frames[0], graphs[0], 2, 1.0, a, b, 1.0, NEGATIVES, None, "spectral", random, "euclidean", {}, False, {},
            False, tqdm_kwds=progress)
    return [layout]


def place(points: Array, layout: Array, n_neighbors: int, min_dist: float, seed: int, new: Array) -> Array:
    """Place new points (q, d) on the layout (n, 2) of the points (n, d).

    The points of the layout do not move. These are the steps of `UMAP.transform`, which need only the points and their
    layout. Each new point starts at the weighted mean of its neighbors' positions, and only the new points are
    optimized.
    """
    squared, indices = nearest(points, n_neighbors, new)
    distances = np.sqrt(squared)
    sigmas, rhos = smooth_knn_dist(distances, float(n_neighbors), local_connectivity=0.0)
    rows, columns, strength, _ = compute_membership_strengths(indices.astype(np.int32), distances, sigmas, rhos,
                                                              bipartite=True)
    graph = scipy.sparse.coo_matrix((strength, (rows, columns)), shape=(len(new), len(points)))
    graph.eliminate_zeros()
    fixed = np.array(layout, dtype=np.float32)
    start = init_graph_transform(graph.tocsr(), fixed)
    # An edge is sampled in proportion to its weight. Edges that would not be sampled once are dropped.
    graph.data[graph.data < graph.data.max() / PLACING_EPOCHS] = 0.0
    graph.eliminate_zeros()
    a, b = find_ab_params(1.0, min_dist)
    return optimize_layout_euclidean(
        start, fixed, graph.row, graph.col, PLACING_EPOCHS, len(points),
        make_epochs_per_sample(graph.data, PLACING_EPOCHS), a, b, _random_state(np.random.RandomState(seed)),
        initial_alpha=0.25, negative_sample_rate=NEGATIVES)


def _graph(points: Array, n_neighbors: int) -> scipy.sparse.csr_matrix:
    """Build the fuzzy simplicial set.

    As in umap-learn, each point counts as its own first neighbor.
    """
    squared, indices = nearest(points, n_neighbors - 1)
    own = np.arange(len(points))[:, None]
    return fuzzy_simplicial_set(points, n_neighbors, None, "euclidean", knn_indices=np.hstack([own, indices]),
                                knn_dists=np.hstack([np.zeros_like(own, np.float32), np.sqrt(squared)]))[0]


def _aligned(starts: list[Array], graphs: list[Any], a: float, b: float, random: np.random.RandomState,
             progress: dict[str, Any]) -> list[Array]:
    """Run the steps of AlignedUMAP after the graphs.

    Each point is related to itself in the other frames.
    """
    layouts: list[Array] = []
    for start in starts:
        layout = start * (EXTENT / np.abs(start).max())
        layouts.append(procrustes(layout, layouts[-1])(layout) if layouts else layout)
    positions = numba.typed.List([np.ascontiguousarray(layout, dtype=np.float32) for layout in layouts])
    count, size = len(graphs), len(starts[0])
    relations = np.full((count, 2 * WINDOW + 1, size), -1, dtype=np.int32)
    for frame in range(count):
        for other in range(max(0, frame - WINDOW), min(count, frame + WINDOW + 1)):
            if other != frame:
                relations[frame, other - frame + WINDOW] = np.arange(size)
    edges = [graph.tocoo() for graph in graphs]
    # The weight of a relation is the overlap of the point's neighborhoods in the two frames.
    weights = build_neighborhood_similarities(numba.typed.List([graph.indptr for graph in graphs]),
                                              numba.typed.List([graph.indices for graph in graphs]), relations)
    return list(optimize_layout_aligned_euclidean(
        positions, positions, numba.typed.List([part.row for part in edges]),
        numba.typed.List([part.col for part in edges]), ALIGNED_EPOCHS,
        numba.typed.List([make_epochs_per_sample(part.data, ALIGNED_EPOCHS) for part in edges]), weights, relations,
        _random_state(random), a=a, b=b, lambda_=1e-2, negative_sample_rate=NEGATIVES, parallel=False, move_other=True,
        tqdm_kwds=progress))


def _random_state(random: np.random.RandomState) -> Array:
    """Draw the state of umap-learn's own random number generator, (3,) int64."""
    bounds = np.iinfo(np.int32)
    return random.randint(bounds.min + 1, bounds.max - 1, 3).astype(np.int64)


class _ProgressFile(io.StringIO):
    """A text file for tqdm that reports the share in a line such as ``12/200``.

    It stores nothing.
    """

    def __init__(self, report: Report) -> None:
        super().__init__()
        self._report = report

    def write(self, text: str) -> int:
        finished, _, total = text.strip().partition("/")
        if total:
            self._report(int(finished) / int(total))
        return len(text)
