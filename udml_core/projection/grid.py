"""A layout snapped to a grid, one image a cell, with every image as near to its own place as can be."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from udml_core.arrays import Array

EXACT = 2_000
"""Images up to which one assignment is solved for all: 1.4 s for so many on one core, 30 s for 5,000."""
WINDOW = 24
"""Cells along the side of a window in which the assignment is solved exactly where there are more images."""
SHIFTS = ((0, 0), (1, 1), (0, 1), (1, 0))
ROUNDS = 3
LEAST_GAIN = 0.002
"""A round over the four shifts of the windows that gains less than this share is the last."""


def snapped(layout: Array, report: Callable[[float], None] = lambda _: None) -> tuple[Array, int, int]:
    """Cells (m,) = row · columns + column of the points of a layout (m, 2), no two alike; rows; columns.

    The grid has the layout's aspect, and about as many cells as points. Both fill the same rectangle, and the cells
    are assigned so that Σ ‖point − cell‖² is least: exactly for up to 2,000 points. Where there are more, points and
    cells are halved together until the parts are small, and then the assignment is solved exactly within overlapping
    windows until that gains nothing: at most a few percent above the least.
    """
    points, rows, columns = _fitted(np.asarray(layout, dtype=np.float64))
    centers = np.stack(np.divmod(np.arange(rows * columns), columns), axis=1)[:, ::-1] + 0.5
    if len(points) <= EXACT:
        cells = linear_sum_assignment(cdist(points, centers, "sqeuclidean"))[1]
    else:
        cells = _halved(points, rows, columns)
        cells = _refined(points, centers, cells, rows, columns, report)
    report(1.0)
    return cells, rows, columns


def seams(vectors: Array, cells: Array, rows: int, columns: int) -> tuple[Array, Array]:
    """True distances of grid neighbors: to the right (rows, columns − 1) and below (rows − 1, columns), float32.

    NaN beside an empty cell.

    Args:
        vectors: (m, d), the embeddings. cells: (m,), from `snapped`.
    """
    table = np.full((rows * columns, vectors.shape[1]), np.nan, dtype=np.float32)
    table[cells] = vectors
    table = table.reshape(rows, columns, -1)
    return (np.linalg.norm(table[:, 1:] - table[:, :-1], axis=2), np.linalg.norm(table[1:] - table[:-1], axis=2))


def _fitted(layout: Array) -> tuple[Array, int, int]:
    """The layout in units of cells, from 0 to columns and 0 to rows; rows; columns."""
    low = layout.min(axis=0)
    extent = np.maximum(layout.max(axis=0) - low, 1e-12)
    aspect = min(max(extent[0] / extent[1], 1 / 4), 4.0)
    columns = max(1, round(math.sqrt(len(layout) * aspect)))
    rows = math.ceil(len(layout) / columns)
    return (layout - low) / extent * (columns, rows), rows, columns


def _halved(points: Array, rows: int, columns: int) -> Array:
    """A first assignment: the cells' rectangle is halved along its longer side, and the points with it by rank."""
    cells = np.empty(len(points), dtype=np.int64)
    waiting = [(np.arange(len(points)), 0, rows, 0, columns)]
    while waiting:
        members, top, bottom, left, right = waiting.pop()
        if not len(members):
            continue
        tall, wide = bottom - top, right - left
        if tall * wide == 1:
            cells[members] = top * columns + left
            continue
        along = 0 if wide >= tall else 1
        middle = (left + right) // 2 if along == 0 else (top + bottom) // 2
        before = tall * (middle - left) if along == 0 else wide * (middle - top)
        ordered = members[np.argsort(points[members, along], kind="stable")]
        count = int((points[members, along] < middle).sum())
        count = min(max(count, len(members) - (tall * wide - before)), before)
        if along == 0:
            waiting += [(ordered[:count], top, bottom, left, middle), (ordered[count:], top, bottom, middle, right)]
        else:
            waiting += [(ordered[:count], top, middle, left, right), (ordered[count:], middle, bottom, left, right)]
    return cells


def _refined(points: Array, centers: Array, cells: Array, rows: int, columns: int,
             report: Callable[[float], None]) -> Array:
    """Solve exactly within windows that tile the grid, at four shifts, until a round of them hardly gains."""
    cells = cells.copy()
    owner = np.full(len(centers), -1)
    owner[cells] = np.arange(len(points))
    cost = ((points - centers[cells]) ** 2).sum()
    windows = [window for shift in SHIFTS for window in _windows(rows, columns, *shift)]
    for done in range(ROUNDS):
        for number, window in enumerate(windows):
            members = owner[window][owner[window] >= 0]
            found = linear_sum_assignment(cdist(points[members], centers[window], "sqeuclidean"))[1]
            owner[window] = -1
            owner[window[found]] = members
            cells[members] = window[found]
            report((done + (number + 1) / len(windows)) / ROUNDS)
        previous, cost = cost, ((points - centers[cells]) ** 2).sum()
        if previous - cost < LEAST_GAIN * previous:
            break
    return cells


def _windows(rows: int, columns: int, up: int, left_by: int) -> Iterator[Array]:
    """Cell numbers of the windows that tile the grid, moved by half a window up, left, or both."""
    half = WINDOW // 2
    for top in range(-up * half, rows, WINDOW):
        for left in range(-left_by * half, columns, WINDOW):
            inside_rows = np.arange(max(top, 0), min(top + WINDOW, rows))
            inside_columns = np.arange(max(left, 0), min(left + WINDOW, columns))
            yield (inside_rows[:, None] * columns + inside_columns).ravel()
