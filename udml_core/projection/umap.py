"""UMAP and aligned UMAP with exact neighbors, put together from umap-learn's own steps.

L. McInnes, J. Healy, J. Melville, "UMAP: Uniform Manifold Approximation and Projection for Dimension Reduction", 2018.

`umap.UMAP` and `umap.AlignedUMAP` take the same steps. Called one by one they tell how far they are, ask for the exact
neighbors, and do without what AlignedUMAP computes and throws away (a layout of each frame by itself); the aligned
optimizer gets the a and b of `min_dist`, which AlignedUMAP forgets to pass on.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
import scipy.sparse

from udml_core.arrays import Array
from udml_core.errors import UserError
from udml_core.neighbors import nearest
from udml_core.projection.align import procrustes

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it names packages that it would like and does not need
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

Report = Callable[[float], None]
WINDOW = 3
"""Frames before and after that a frame is drawn towards."""
ALIGNED_EPOCHS, PLACING_EPOCHS = 200, 100
NEGATIVES = 5
EXTENT = 10.0


def umap_layouts(frames: Sequence[Array], n_neighbors: int = 15, min_dist: float = 0.1, seed: int = 0,
                 report: Report = lambda _: None) -> list[Array]:
    """Frames of the same points, each (n, d), laid out in the plane: one (n, 2) float32 for each.

    One frame is UMAP; several are laid out together, each point drawn towards its places in the frames beside it.

    Args:
        report: called with the share of the epochs that is done.

    Raises:
        UserError: there are too few points for so many neighbors.
    """
    if n_neighbors >= len(frames[0]):
        raise UserError(f"UMAP with {n_neighbors} neighbors needs more images than that, and there are "
                        f"{len(frames[0])}. Lower the number of neighbors to at most {len(frames[0]) - 1}.")
    a, b = find_ab_params(1.0, min_dist)
    progress = {"file": _Steps(report), "bar_format": "{n}/{total}", "mininterval": 0.3, "disable": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on points in several pieces, which are then laid out one beside the other
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
    """New points (q, d) on the layout (n, 2) of the points (n, d), which stay where they are.

    The steps of `UMAP.transform`, which need the points and their layout and nothing else of the model: each new point
    starts at the weighted mean of its neighbors' places, and the layout is optimized for the new points alone.
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
    graph.data[graph.data < graph.data.max() / PLACING_EPOCHS] = 0.0
    graph.eliminate_zeros()
    a, b = find_ab_params(1.0, min_dist)
    return optimize_layout_euclidean(
        start, fixed, graph.row, graph.col, PLACING_EPOCHS, len(points),
        make_epochs_per_sample(graph.data, PLACING_EPOCHS), a, b, _stream(np.random.RandomState(seed)),
        initial_alpha=0.25, negative_sample_rate=NEGATIVES)


def _graph(points: Array, n_neighbors: int) -> scipy.sparse.csr_matrix:
    """The fuzzy simplicial set; a point counts as its own first neighbor, as umap-learn has it."""
    squared, indices = nearest(points, n_neighbors - 1)
    own = np.arange(len(points))[:, None]
    return fuzzy_simplicial_set(points, n_neighbors, None, "euclidean", knn_indices=np.hstack([own, indices]),
                                knn_dists=np.hstack([np.zeros_like(own, np.float32), np.sqrt(squared)]))[0]


def _aligned(starts: list[Array], graphs: list[Any], a: float, b: float, random: np.random.RandomState,
             progress: dict[str, Any]) -> list[Array]:
    """AlignedUMAP behind the graphs, where each point is itself in every frame."""
    layouts: list[Array] = []
    for start in starts:
        layout = start * (EXTENT / np.abs(start).max())
        layouts.append(procrustes(layout, layouts[-1])(layout) if layouts else layout)
    places = numba.typed.List([np.ascontiguousarray(layout, dtype=np.float32) for layout in layouts])
    count, size = len(graphs), len(starts[0])
    relations = np.full((count, 2 * WINDOW + 1, size), -1, dtype=np.int32)
    for frame in range(count):
        for other in range(max(0, frame - WINDOW), min(count, frame + WINDOW + 1)):
            if other != frame:
                relations[frame, other - frame + WINDOW] = np.arange(size)
    pairs = [graph.tocoo() for graph in graphs]
    likeness = build_neighborhood_similarities(numba.typed.List([graph.indptr for graph in graphs]),
                                               numba.typed.List([graph.indices for graph in graphs]), relations)
    return list(optimize_layout_aligned_euclidean(
        places, places, numba.typed.List([pair.row for pair in pairs]), numba.typed.List([pair.col for pair in pairs]),
        ALIGNED_EPOCHS, numba.typed.List([make_epochs_per_sample(pair.data, ALIGNED_EPOCHS) for pair in pairs]),
        likeness, relations, _stream(random), a=a, b=b, lambda_=1e-2, negative_sample_rate=NEGATIVES, parallel=False,
        move_other=True, tqdm_kwds=progress))


def _stream(random: np.random.RandomState) -> Array:
    """The state of umap-learn's own generator of random numbers."""
    bounds = np.iinfo(np.int32)
    return random.randint(bounds.min + 1, bounds.max - 1, 3).astype(np.int64)


class _Steps(io.StringIO):
    """A text file for tqdm that passes on the share in ``12/200`` and keeps nothing."""

    def __init__(self, report: Report) -> None:
        super().__init__()
        self._report = report

    def write(self, text: str) -> int:
        done, _, total = text.strip().partition("/")
        if total:
            self._report(int(done) / int(total))
        return len(text)
