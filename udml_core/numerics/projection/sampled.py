"""Layouts of very many points: a sample is laid out, and every other point lies among its neighbors in the sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from udml_core.base.arrays import Array
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.neighbors.centers import sample_rows

SAMPLE = 20_000
"""Points of a sample; UMAP and t-SNE lay them out in minutes."""
NEIGHBORS = 5
"""Neighbors in the sample that a point is placed by."""
BLOCK = 50_000
Report = Callable[[float], None]


def sampled_layouts(frames: Sequence[Array], lay_out: Callable[[list[Array], Report], list[Array]],
                    report: Report = lambda _: None, size: int = SAMPLE) -> list[Array]:
    """Compute a layout (n, 2) float32 of each frame from the layouts of the same sample.

    Args:
        frames: Points (n, d) each, the same points in the same order.
        lay_out: Computes a layout (s, 2) of each frame's sample (s, d), and reports the finished share.
        report: Called with the finished share.
        size: Number s of points in the sample.
    """
    rows = sample_rows(len(frames[0]), size)
    samples = [np.asarray(points[rows]) for points in frames]
    layouts = lay_out(samples, lambda share: report(share / 2))
    placed = []
    for number, (points, sample, layout) in enumerate(zip(frames, samples, layouts, strict=True)):
        def report_frame(share: float, done: int = number) -> None:
            report(0.5 + (done + share) / 2 / len(frames))

        whole = place_by_neighbors(sample, layout, points, report_frame)
        whole[rows] = layout
        placed.append(whole)
    return placed


def place_by_neighbors(sample: Array, layout: Array, points: Array, report: Report = lambda _: None) -> Array:
    """Place points (n, d) at the weighted means of their neighbors' positions, (n, 2) float32.

    A neighbor at the distance d weighs exp(−(d² − d₁²) / d̄²), where d₁ is the distance of the nearest neighbor and d̄²
    the mean square over the neighbors: the scale is the point's own, as in UMAP and t-SNE.

    Args:
        sample: Points (s, d) of the layout.
        layout: Their positions (s, 2).
        points: The points to place.
        report: Called with the finished share.
    """
    placed = np.empty((len(points), 2), np.float32)
    k = min(NEIGHBORS, len(sample))
    for start in range(0, len(points), BLOCK):
        block = slice(start, min(start + BLOCK, len(points)))
        squared, neighbors = nearest(sample, k, np.asarray(points[block]))
        scale = np.maximum(squared.mean(axis=1, keepdims=True), np.finfo(np.float32).tiny)
        weights = np.exp((squared[:, :1] - squared) / scale)
        weights /= weights.sum(axis=1, keepdims=True)
        placed[block] = np.einsum("nk,nkd->nd", weights, layout[neighbors])
        report(block.stop / len(points))
    return placed
