"""Layouts snapped to a grid with one image per cell and minimal displacement."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from udml_core.base.arrays import Array

MAX_EXACT = 2_000
"""Maximum number of images assigned at once: 2,000 take 1.4 s on one core, 5,000 would take 30 s."""
WINDOW = 24
"""Side length in cells of the windows in which larger assignments are solved exactly."""
SHIFTS = ((0, 0), (1, 1), (0, 1), (1, 0))
"""Vertical and horizontal shifts of the windows, in half windows."""
MAX_ROUNDS = 3
MIN_GAIN = 0.002
"""The refinement ends after a round over all windows that lowers the cost by less than this share."""


def snap_to_grid(layout: Array, report: Callable[[float], None] = lambda _: None) -> tuple[Array, int, int]:
    """Assign each point of a layout to its own grid cell.

    The assignment minimizes Σ ‖point − cell‖². The grid has the aspect of the layout and about as many cells as points.
    Up to 2,000 points are assigned exactly. More points are first assigned by recursive halving. The assignment is then
    solved exactly within overlapping windows until this hardly improves it; the result is at most a few percent above
    the minimum.

    Args:
        layout: (m, 2).
        report: Called with the finished share.

    Returns:
        The distinct cells (m,) int64, numbered row · columns + column, the number of rows, and the number of columns.
    """
    points, rows, columns = _fit_to_grid(np.asarray(layout, dtype=np.float64))
    centers = np.stack(np.divmod(np.arange(rows * columns), columns), axis=1)[:, ::-1] + 0.5
    if len(points) <= MAX_EXACT:
        cells = _best_cells(points, centers)
    else:
        cells = _halve(points, rows, columns)
        cells = _refine(points, centers, cells, rows, columns, report)
    report(1.0)
    return cells, rows, columns


def seams(vectors: Array, cells: Array, rows: int, columns: int) -> tuple[Array, Array]:
    """Compute the distances between the embeddings of adjacent cells.

    Args:
        vectors: (m, d), the embeddings.
        cells: (m,) int64, from `snap_to_grid`.
        rows: Number of grid rows.
        columns: Number of grid columns.

    Returns:
        Distances to the right neighbor (rows, columns − 1) and to the neighbor below (rows − 1, columns), float32; NaN
        next to an empty cell.
    """
    table = np.full((rows * columns, vectors.shape[1]), np.nan, dtype=np.float32)
    table[cells] = vectors
    table = table.reshape(rows, columns, -1)
    return (np.linalg.norm(table[:, 1:] - table[:, :-1], axis=2), np.linalg.norm(table[1:] - table[:-1], axis=2))


def _best_cells(points: Array, centers: Array) -> Array:
    """Return each point's center in the assignment of minimal squared distance.

    The total over all points is minimal.
    """
    from scipy.optimize import linear_sum_assignment  # at first use, because it slows the start of the command line
    from scipy.spatial.distance import cdist

    return linear_sum_assignment(cdist(points, centers, "sqeuclidean"))[1]


def _fit_to_grid(layout: Array) -> tuple[Array, int, int]:
    """Choose the numbers of rows and columns, and scale the layout to them.

    The range is from 0 to columns and from 0 to rows.
    """
    low = layout.min(axis=0)
    extent = np.maximum(layout.max(axis=0) - low, 1e-12)
    aspect = min(max(extent[0] / extent[1], 1 / 4), 4.0)
    columns = max(1, round(math.sqrt(len(layout) * aspect)))
    rows = math.ceil(len(layout) / columns)
    return (layout - low) / extent * (columns, rows), rows, columns


def _halve(points: Array, rows: int, columns: int) -> Array:
    """Return a first assignment by repeated halving of the rectangle of cells.

    A rectangle is halved along its longer side, and its points are split by rank.
    """
    cells = np.empty(len(points), dtype=np.int64)
    pending = [(np.arange(len(points)), 0, rows, 0, columns)]
    while pending:
        members, top, bottom, left, right = pending.pop()
        if not len(members):
            continue
        height, width = bottom - top, right - left
        if height * width == 1:
            cells[members] = top * columns + left
            continue
        axis = 0 if width >= height else 1
        middle = (left + right) // 2 if axis == 0 else (top + bottom) // 2
        capacity = height * (middle - left) if axis == 0 else width * (middle - top)
        ordered = members[np.argsort(points[members, axis], kind="stable")]
        # Split where the points lie, as far as both halves have enough cells. This leaves the empty cells where the
        # layout is empty.
        count = int((points[members, axis] < middle).sum())
        count = min(max(count, len(members) - (height * width - capacity)), capacity)
        if axis == 0:
            pending += [(ordered[:count], top, bottom, left, middle), (ordered[count:], top, bottom, middle, right)]
        else:
            pending += [(ordered[:count], top, middle, left, right), (ordered[count:], middle, bottom, left, right)]
    return cells


def _refine(points: Array, centers: Array, cells: Array, rows: int, columns: int,
            report: Callable[[float], None]) -> Array:
    """Solve the assignment within windows that tile the grid, at four shifts.

    The rounds stop when a round hardly lowers the cost.
    """
    cells = cells.copy()
    owner = np.full(len(centers), -1)
    owner[cells] = np.arange(len(points))
    cost = ((points - centers[cells]) ** 2).sum()
    windows = [window for shift in SHIFTS for window in _windows(rows, columns, *shift)]
    for finished in range(MAX_ROUNDS):
        for number, window in enumerate(windows):
            members = owner[window][owner[window] >= 0]
            best = window[_best_cells(points[members], centers[window])]
            owner[window] = -1
            owner[best] = members
            cells[members] = best
            report((finished + (number + 1) / len(windows)) / MAX_ROUNDS)
        previous, cost = cost, ((points - centers[cells]) ** 2).sum()
        if previous - cost < MIN_GAIN * previous:
            break
    return cells


def _windows(rows: int, columns: int, shift_up: int, shift_left: int) -> Iterator[Array]:
    """Yield the cell numbers of each window that tiles the grid.

    The windows are shifted by half windows up and left.
    """
    half = WINDOW // 2
    for top in range(-shift_up * half, rows, WINDOW):
        for left in range(-shift_left * half, columns, WINDOW):
            inside_rows = np.arange(max(top, 0), min(top + WINDOW, rows))
            inside_columns = np.arange(max(left, 0), min(left + WINDOW, columns))
            yield (inside_rows[:, None] * columns + inside_columns).ravel()
