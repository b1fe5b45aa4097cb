"""Checks of what a user hands in."""

from __future__ import annotations

import numpy as np

from udml_core.base.arrays import Array, Floats, Integers
from udml_core.base.errors import UserError, counted

LARGEST_ID = 2**31 - 1


def check_shape(vectors: Array, dimension: int | None = None, name: str = "vectors") -> None:
    """Check that an array has rows of numbers of the required dimension.

    Raises:
        UserError: It has not.
    """
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiu" or not vectors.shape[1]:
        raise UserError(f"The {name} must be an array of numbers (n, d); got {vectors.dtype} {vectors.shape}.")
    if dimension is not None and vectors.shape[1] != dimension:
        raise UserError(f"The {name} must have the gallery's dimension {dimension}; got {vectors.shape[1]}. Compute "
                        "them with the model that computed the gallery.")


def finite_rows(vectors: Array, name: str = "vectors") -> Floats:
    """Return rows as float32.

    Raises:
        UserError: A value is not finite in float32.
    """
    with np.errstate(over="ignore"):
        rows = np.ascontiguousarray(vectors, np.float32)
    # A squared distance must fit into float32 too.
    bad = ~np.isfinite(np.einsum("nd,nd->n", rows, rows))
    if bad.any():
        raise UserError(f"The {name} must have finite values; {counted(int(bad.sum()), 'row')} of these "
                        f"{len(rows):,} have not. Remove them.")
    return rows


def checked_vectors(vectors: Array, dimension: int, name: str) -> Floats:
    """Return rows (n, d) float32 of the required dimension.

    Raises:
        UserError: The array has another shape, or a value is not finite.
    """
    vectors = np.asarray(vectors)
    check_shape(vectors, dimension, name)
    return finite_rows(vectors, name)


def checked_ids(ids: Array, count: int) -> Integers:
    """Return distinct ids (count,) int64.

    Raises:
        UserError: They are not `count` distinct integers between 0 and 2³¹ − 1.
    """
    ids = np.asarray(ids)
    if ids.dtype.kind not in "iu" or ids.shape != (count,):
        raise UserError(f"The ids must be {counted(count, 'integer')}, one for each vector; got {ids.dtype} "
                        f"{ids.shape}.")
    if count and not 0 <= int(ids.min()) <= int(ids.max()) <= LARGEST_ID:
        outside = ids[(ids < 0) | (ids > LARGEST_ID)][0]
        raise UserError(f"An id must be between 0 and {LARGEST_ID:,}; got {outside}.")
    values, counts = np.unique(ids, return_counts=True)
    if len(values) < count:
        raise UserError(f"The ids must be distinct; {values[counts > 1][0]} occurs {counts.max()} times.")
    return ids.astype(np.int64)
