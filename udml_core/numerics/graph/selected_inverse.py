"""Selected inverse: entries of a sparse inverse on the matrix's own pattern.

The other entries are not computed. The multifrontal method (J. Liu, SIAM Review 1992) factors the matrix into blocks of
columns with a common set of rows, so that all arithmetic is on dense matrices. Takahashi's recurrence (K. Takahashi, J.
Fagan, M. Chen 1973; A. Erisman, W. Tinney 1975) then computes the inverse from the last block to the first. A block
needs the inverse only at rows that its parent block contains, so the entries outside the pattern are never computed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from scipy import sparse
from scipy.sparse.linalg import spilu

from udml_core.base.arrays import Array

MULTITHREADED_ROWS = 20_000
"""Number of rows from which several threads pay off. Below it the blocks are small and threads cost more than they
gain (9,100 rows on two busy cores: 1.0 s with one thread, 1.7 to 4.9 s with two)."""
MAX_ZERO_SHARE = 0.2
"""Largest share of a block's entries that may be explicit zeros in exchange for fewer and larger blocks."""


@dataclass
class _Block:
    """Columns that are eliminated together, and the rows below them.

    Both are in elimination order. Let F be the block's frontal matrix, with part 1 for its columns and part 2 for its
    rows.

    Attributes:
        columns: The columns that the block eliminates.
        rows: (r,) int, the later rows that the columns have entries in.
        zeros: Number of explicit zeros that merging columns has added.
        children: The blocks whose updates this block receives.
        inverse: F₁₁⁻¹, once factored.
        above: F₁₁⁻¹F₁₂, once factored.
        beside: F₂₁F₁₁⁻¹, once factored.
    """

    columns: list[int]
    rows: Array
    zeros: int
    children: list[_Block]
    inverse: Array
    above: Array
    beside: Array

    @property
    def indices(self) -> Array:
        return np.concatenate([np.array(self.columns), self.rows])


def selected_inverse(matrix: sparse.sparray, right: Array) -> tuple[sparse.csr_array, Array]:
    """Compute A⁻¹ at the entries where A or Aᵀ is stored, and A⁻¹·right.

    The elimination does not pivot, so A must be strictly diagonally dominant by rows, as I − γQ is.

    Args:
        matrix: A, (n, n).
        right: (n, c).

    Returns:
        The entries of A⁻¹ on the pattern of A + Aᵀ + I, and the solution (n, c).
    """
    order = _elimination_order(matrix)
    permuted = sparse.csr_array(matrix)[order][:, order].tocoo()
    # The recurrence needs a symmetric pattern with a full diagonal: it then equals the pattern of the wanted entries.
    pattern = sparse.csr_array((np.ones(permuted.nnz), permuted.coords), permuted.shape)
    pattern = sparse.csr_array(pattern + pattern.T + sparse.eye_array(len(order)))
    pattern.sort_indices()
    blocks = _blocks(pattern)
    owner = _owners(blocks, len(order))
    selected = pattern.tocoo()
    with _threads(1 if len(order) < MULTITHREADED_ROWS else torch.get_num_threads()):
        solution = _factor(blocks, _Entries(permuted, owner, len(blocks)), right[order])
        selected.data = _invert(blocks, _Entries(selected, owner, len(blocks)), len(selected.data))
    original = np.argsort(order)
    return sparse.csr_array(selected.tocsr()[original][:, original]), solution[original]


def _elimination_order(matrix: sparse.sparray) -> Array:
    """Return SuperLU's minimum degree ordering of A + Aᵀ, (n,).

    SciPy has no function for the ordering alone. An incomplete factorization that drops every entry returns it at
    almost no cost.
    """
    options = {"SymmetricMode": True}
    dropped = spilu(sparse.csc_array(matrix), drop_tol=1.0, fill_factor=1, permc_spec="MMD_AT_PLUS_A",
                    diag_pivot_thresh=0, options=options)
    return np.argsort(dropped.perm_c)


def _blocks(pattern: sparse.csr_array) -> list[_Block]:
    """Group columns with (almost) the same rows below them into blocks.

    Children come before their parents.
    """
    waiting: defaultdict[int, list[_Block]] = defaultdict(list)
    finished: list[_Block] = []
    empty = np.zeros((0, 0))
    for column in range(pattern.shape[0]):
        own = pattern.indices[pattern.indptr[column]:pattern.indptr[column + 1]]
        own = own[np.searchsorted(own, column, side="right"):]
        # A child is a block whose first row is this column. Eliminating it fills this column at all its other rows.
        children = waiting.pop(column, [])
        filled = [child.rows[1:] for child in children]
        unchanged = len(children) == 1 and _is_subset(own, filled[0])  # the usual case, without a sort
        rows = filled[0] if unchanged else np.unique(np.concatenate([own, *filled]))
        block = _Block([column], rows, 0, children, empty, empty, empty)
        if children:
            largest = max(children, key=lambda child: len(child.rows))
            block = _merge_into_child(block, largest) or block
        finished.extend(child for child in children if child is not block)
        if len(rows):
            waiting[int(rows[0])].append(block)
        else:
            finished.append(block)
    return finished


def _is_subset(subset: Array, superset: Array) -> bool:
    """Return whether a sorted `superset` contains every element of `subset`.

    `subset` is sorted, too.
    """
    if not len(subset):
        return True
    if not len(superset) or subset[-1] > superset[-1]:
        return False
    return bool((superset[np.searchsorted(superset, subset)] == subset).all())


def _merge_into_child(block: _Block, child: _Block) -> _Block | None:
    """Return the child extended by its parent's single column.

    The result is None if this would store too many zeros.
    """
    zeros = child.zeros + len(child.columns) * (len(block.rows) + 1 - len(child.rows))
    width = len(child.columns) + 1
    if zeros > MAX_ZERO_SHARE * width * (width + len(block.rows)):
        return None
    child.columns += block.columns
    child.rows, child.zeros = block.rows, zeros
    child.children += [other for other in block.children if other is not child]
    return child


def _owners(blocks: list[_Block], count: int) -> Array:
    """Return the number of the block that eliminates each column, (n,)."""
    owner = np.empty(count, np.int64)
    for number, block in enumerate(blocks):
        owner[block.columns] = number
    return owner


class _Entries:
    """A matrix's entries, grouped by block.

    An entry belongs to the block that eliminates the earlier of row and column.
    """

    def __init__(self, matrix: sparse.coo_array, owner: Array, count: int) -> None:
        rows, columns = matrix.coords
        number = np.minimum(owner[rows], owner[columns])
        self._order = np.argsort(number, kind="stable")
        self._starts = np.searchsorted(number[self._order], np.arange(count + 1))
        self._rows, self._columns, self._values = rows, columns, matrix.data

    def of(self, block: int) -> tuple[Array, Array, Array, Array]:
        """Return the rows, columns, values and positions of a block's entries.

        The positions are among all entries.
        """
        chosen = self._order[self._starts[block]:self._starts[block + 1]]
        return self._rows[chosen], self._columns[chosen], self._values[chosen], chosen


def _factor(blocks: list[_Block], entries: _Entries, right: Array) -> Array:
    """Factor every block in place and return A⁻¹·right."""
    position = np.empty(len(right), np.int64)
    updates: dict[int, Array] = {}
    solution = right.astype(np.float64)
    for number, block in enumerate(blocks):
        width, indices = len(block.columns), block.indices
        position[indices] = np.arange(len(indices))
        # The frontal matrix is the sum of the block's own entries and its children's updates.
        front = np.zeros((len(indices), len(indices)))
        rows, columns, values, _ = entries.of(number)
        front[position[rows], position[columns]] = values
        for child in block.children:
            _add_at(front, position[child.rows], updates.pop(id(child)))
        block.inverse = torch.linalg.inv(torch.from_numpy(front[:width, :width])).numpy()
        block.above = _product(block.inverse, front[:width, width:])
        block.beside = _product(front[width:, :width], block.inverse)
        # The Schur complement F₂₂ − F₂₁F₁₁⁻¹F₁₂ is what remains of the front after the elimination.
        updates[id(block)] = front[width:, width:] - _product(front[width:, :width], block.above)
        solution[block.rows] -= block.beside @ solution[block.columns]  # forward substitution
    for block in reversed(blocks):  # backward substitution
        solution[block.columns] = block.inverse @ solution[block.columns] - block.above @ solution[block.rows]
    return solution


def _add_at(front: Array, positions: Array, update: Array) -> None:
    """Add an update to the front at the given positions.

    Consecutive positions are written through a view.
    """
    if len(positions) and positions[-1] - positions[0] == len(positions) - 1:
        front[positions[0]:positions[-1] + 1, positions[0]:positions[-1] + 1] += update
    else:
        front[positions[:, None], positions] += update


def _invert(blocks: list[_Block], entries: _Entries, count: int) -> Array:
    """Return the inverse at all entries, (count,), from the last block to the first.

    Let Z = A⁻¹, J the block's columns and R its rows. The parent has computed Z_RR already, and Takahashi's recurrence
    gives the rest of the front: Z_RJ = −Z_RR F₂₁F₁₁⁻¹, Z_JR = −F₁₁⁻¹F₁₂ Z_RR, Z_JJ = F₁₁⁻¹ − F₁₁⁻¹F₁₂ Z_RJ.
    """
    position = np.empty(sum(len(block.columns) for block in blocks), np.int64)
    values = np.empty(count)
    corners: dict[int, Array] = {}
    empty = np.zeros((0, 0))
    for number in range(len(blocks) - 1, -1, -1):
        block = blocks[number]
        width, indices = len(block.columns), block.indices
        corner = corners.pop(id(block), empty)
        position[indices] = np.arange(len(indices))
        front_inverse = np.empty((len(indices), len(indices)))
        front_inverse[width:, width:] = corner
        front_inverse[width:, :width] = -_product(corner, block.beside)
        front_inverse[:width, width:] = -_product(block.above, corner)
        front_inverse[:width, :width] = block.inverse - _product(block.above, front_inverse[width:, :width])
        block.inverse = block.above = block.beside = empty  # frees memory, which is the limit for large graphs
        rows, columns, _, chosen = entries.of(number)
        values[chosen] = front_inverse[position[rows], position[columns]]
        # A child's rows are columns or rows of this block, so its Z_RR is a part of this block's front.
        for child in block.children:
            positions = position[child.rows]
            corners[id(child)] = front_inverse[positions[:, None], positions]
    return values


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Limit torch to `count` threads within the context."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _product(left: Array, right: Array) -> Array:
    """Multiply two matrices with torch.

    It is faster than NumPy for small matrices on two cores.
    """
    return (torch.from_numpy(left) @ torch.from_numpy(right)).numpy()
