"""Averages of neighbors: database-side averaging and query expansion."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from udml_core.base.arrays import Array, Floats, Integers
from udml_core.numerics.refinement.linear import unit_rows
from udml_core.numerics.refinement.unit_neighbors import nearest_unit

CHUNK = 1024
"""Rows whose neighbors are gathered at once: (1024, k, d) float32."""


def average_neighbors(rows: Array, k: int, times: int = 1, alpha: float = 0.0,
                      report: Callable[[float], None] = lambda _: None) -> Floats:
    """Replace each row by the weighted mean of itself and its k nearest other rows, then repeat.

    x_i ← unit(x_i + Σ_{j among the k nearest of i} max(0, x_i·x_j)^α x_j)

    Args:
        rows: Unit rows (n, d) of the gallery.
        k: Number of neighbors; all other rows if there are fewer. 0 changes nothing.
        times: Number of repetitions; the neighbors are searched again before each.
        alpha: Exponent α of the weights; 0 gives the plain mean.
        report: Called with the finished share.

    Returns:
        Unit rows (n, d) float32.

    References:
        P. Turcot, D. Lowe, "Better Matching with Fewer Features", ICCV Workshops 2009 (mean).
        A. Gordo, J. Almazán, J. Revaud, D. Larlus, "End-to-End Learning of Deep Visual Representations for Image
        Retrieval", IJCV 2017 (weights).
    """
    k = min(k, len(rows) - 1)
    if k < 1:
        return np.asarray(rows, np.float32)
    for done in range(times):
        rows = mean_with(rows, rows, nearest_unit(rows, k)[1], alpha)
        report((done + 1) / times)
    return rows


def expand_queries(queries: Array, gallery: Array, k: int, alpha: float = 0.0) -> Floats:
    """Replace each query by the weighted mean of itself and its k nearest gallery rows.

    q ← unit(q + Σ_{j among the k nearest of q} max(0, q·x_j)^α x_j). The gallery does not change, and queries do not
    see each other.

    Args:
        queries: Unit rows (q, d).
        gallery: Unit rows (n, d).
        k: Number of gallery rows; all if there are fewer. 0 changes nothing.
        alpha: Exponent α of the weights; 0 gives the plain mean (AQE).

    Returns:
        Unit rows (q, d) float32.

    References:
        O. Chum, J. Philbin, J. Sivic, M. Isard, A. Zisserman, "Total Recall", ICCV 2007 (mean).
        F. Radenović, G. Tolias, O. Chum, "Fine-Tuning CNN Image Retrieval with No Human Annotation", TPAMI 2019
        (weights).
    """
    k = min(k, len(gallery))
    if k < 1 or not len(queries):
        return np.asarray(queries, np.float32)
    return mean_with(queries, gallery, nearest_unit(gallery, k, queries)[1], alpha)


def mean_with(rows: Array, others: Array, neighbors: Integers, alpha: float) -> Floats:
    """Return the weighted mean of each row and its neighbors, as unit rows.

    Args:
        rows: Unit rows (q, d).
        others: Unit rows (n, d).
        neighbors: Indices (q, k) of rows of `others`.
        alpha: Exponent α of the weights max(0, x·x_j)^α.
    """
    result = np.empty(rows.shape, np.float32)
    for start in range(0, len(rows), CHUNK):
        part = slice(start, start + CHUNK)
        neighbor_rows = others[neighbors[part]]
        if alpha == 0:
            result[part] = rows[part] + neighbor_rows.sum(axis=1)
        else:
            cosine = np.einsum("qd,qkd->qk", rows[part], neighbor_rows)
            weights = np.maximum(cosine, 0) ** np.float32(alpha)
            result[part] = rows[part] + np.einsum("qk,qkd->qd", weights, neighbor_rows)
    return unit_rows(result)
