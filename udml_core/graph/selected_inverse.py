"""Some entries of a sparse matrix's inverse, without the others.

The matrix is factored by the multifrontal method (J. Liu, SIAM Review 1992) into blocks that share their rows, so that
all arithmetic is on dense matrices. Going back down the same tree gives the inverse on the matrix's own pattern
(K. Takahashi, J. Fagan, M. Chen 1973; A. Erisman, W. Tinney 1975): a block needs the inverse only at rows that its
parent block holds.
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

from udml_core.arrays import Array

SHARED = 20_000
"""From so many rows on, blocks are large enough for several threads to gain on them more than they lose on small ones
(9,100 rows on two busy cores: 1.0 s with one thread, 1.7 to 4.9 s with two)."""
ZEROS_ALLOWED = 0.2
"""The share of a block's entries that may be zeros, for the sake of fewer and larger blocks."""


@dataclass
class _Block:
    """Columns that are eliminated together, and the rows below them, both in elimination order.

    Once factored, with F the block's matrix in its part for (columns, rows): `inverse` F₁₁⁻¹, `above` F₁₁⁻¹F₁₂ and
    `beside` F₂₁F₁₁⁻¹.
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
    """A⁻¹ at the entries where A or Aᵀ has one, and A⁻¹·right.

    There is no pivoting: A has to be strictly diagonally dominant by rows, as I − γQ is.

    Args:
        matrix: A (n, n). right: (n, c).

    Returns:
        The entries of A⁻¹ on the pattern of A + Aᵀ + I, and the solution (n, c).
    """
    order = _elimination_order(matrix)
    permuted = sparse.csr_array(matrix)[order][:, order].tocoo()
    pattern = sparse.csr_array((np.ones(permuted.nnz), permuted.coords), permuted.shape)
    pattern = sparse.csr_array(pattern + pattern.T + sparse.eye_array(len(order)))
    pattern.sort_indices()
    blocks = _blocks(pattern)
    owner = _owners(blocks, len(order))
    wanted = pattern.tocoo()
    with _threads(1 if len(order) < SHARED else torch.get_num_threads()):
        solution = _factor(blocks, _Entries(permuted, owner, len(blocks)), right[order])
        wanted.data = _invert(blocks, _Entries(wanted, owner, len(blocks)), len(wanted.data))
    back = np.argsort(order)
    return sparse.csr_array(wanted.tocsr()[back][:, back]), solution[back]


def _elimination_order(matrix: sparse.sparray) -> Array:
    """SuperLU's minimum degree ordering of A + Aᵀ. An incomplete factorization that drops everything tells it."""
    options = {"SymmetricMode": True}
    dropped = spilu(sparse.csc_array(matrix), drop_tol=1.0, fill_factor=1, permc_spec="MMD_AT_PLUS_A",
                    diag_pivot_thresh=0, options=options)
    return np.argsort(dropped.perm_c)


def _blocks(pattern: sparse.csr_array) -> list[_Block]:
    """Columns with the same rows below them, children before parents."""
    waiting: defaultdict[int, list[_Block]] = defaultdict(list)
    finished: list[_Block] = []
    nothing = np.zeros((0, 0))
    for column in range(pattern.shape[0]):
        own = pattern.indices[pattern.indptr[column]:pattern.indptr[column + 1]]
        own = own[np.searchsorted(own, column, side="right"):]
        children = waiting.pop(column, [])
        below = [child.rows[1:] for child in children]
        alone = len(children) == 1 and _within(own, below[0])
        rows = below[0] if alone else np.unique(np.concatenate([own, *below]))
        block = _Block([column], rows, 0, children, nothing, nothing, nothing)
        if children:
            largest = max(children, key=lambda child: len(child.rows))
            block = _merged(block, largest) or block
        finished.extend(child for child in children if child is not block)
        if len(rows):
            waiting[int(rows[0])].append(block)
        else:
            finished.append(block)
    return finished


def _within(some: Array, all_: Array) -> bool:
    """Whether sorted `all_` holds each of `some`."""
    if not len(some):
        return True
    if not len(all_) or some[-1] > all_[-1]:
        return False
    return bool((all_[np.searchsorted(all_, some)] == some).all())


def _merged(block: _Block, child: _Block) -> _Block | None:
    """The child with the one column of its parent, unless that stores too many zeros."""
    zeros = child.zeros + len(child.columns) * (len(block.rows) + 1 - len(child.rows))
    width = len(child.columns) + 1
    if zeros > ZEROS_ALLOWED * width * (width + len(block.rows)):
        return None
    child.columns += block.columns
    child.rows, child.zeros = block.rows, zeros
    child.children += [other for other in block.children if other is not child]
    return child


def _owners(blocks: list[_Block], count: int) -> Array:
    """The block that eliminates each column (n,)."""
    owner = np.empty(count, np.int64)
    for number, block in enumerate(blocks):
        owner[block.columns] = number
    return owner


class _Entries:
    """A matrix's entries by the block that eliminates the earlier of row and column."""

    def __init__(self, matrix: sparse.coo_array, owner: Array, count: int) -> None:
        rows, columns = matrix.coords
        number = np.minimum(owner[rows], owner[columns])
        self._order = np.argsort(number, kind="stable")
        self._starts = np.searchsorted(number[self._order], np.arange(count + 1))
        self._rows, self._columns, self._values = rows, columns, matrix.data

    def of(self, block: int) -> tuple[Array, Array, Array, Array]:
        """Rows, columns, values, and positions among all entries."""
        chosen = self._order[self._starts[block]:self._starts[block + 1]]
        return self._rows[chosen], self._columns[chosen], self._values[chosen], chosen


def _factor(blocks: list[_Block], entries: _Entries, right: Array) -> Array:
    """Factor every block in place, and return A⁻¹·right."""
    place = np.empty(len(right), np.int64)
    updates: dict[int, Array] = {}
    solution = right.astype(np.float64)
    for number, block in enumerate(blocks):
        width, indices = len(block.columns), block.indices
        place[indices] = np.arange(len(indices))
        front = np.zeros((len(indices), len(indices)))
        rows, columns, values, _ = entries.of(number)
        front[place[rows], place[columns]] = values
        for child in block.children:
            _add_at(front, place[child.rows], updates.pop(id(child)))
        block.inverse = torch.linalg.inv(torch.from_numpy(front[:width, :width])).numpy()
        block.above = _product(block.inverse, front[:width, width:])
        block.beside = _product(front[width:, :width], block.inverse)
        updates[id(block)] = front[width:, width:] - _product(front[width:, :width], block.above)
        solution[block.rows] -= block.beside @ solution[block.columns]
    for block in reversed(blocks):
        solution[block.columns] = block.inverse @ solution[block.columns] - block.above @ solution[block.rows]
    return solution


def _add_at(front: Array, places: Array, update: Array) -> None:
    """front[places, places] += update, without a copy where the places follow each other."""
    if len(places) and places[-1] - places[0] == len(places) - 1:
        front[places[0]:places[-1] + 1, places[0]:places[-1] + 1] += update
    else:
        front[places[:, None], places] += update


def _invert(blocks: list[_Block], entries: _Entries, count: int) -> Array:
    """The inverse at all entries (count,), from the last block to the first; each block's factors are let go."""
    place = np.empty(sum(len(block.columns) for block in blocks), np.int64)
    values = np.empty(count)
    corners: dict[int, Array] = {}
    nothing = np.zeros((0, 0))
    for number in range(len(blocks) - 1, -1, -1):
        block = blocks[number]
        width, indices = len(block.columns), block.indices
        corner = corners.pop(id(block), nothing)
        place[indices] = np.arange(len(indices))
        whole = np.empty((len(indices), len(indices)))
        whole[width:, width:] = corner
        whole[width:, :width] = -_product(corner, block.beside)
        whole[:width, width:] = -_product(block.above, corner)
        whole[:width, :width] = block.inverse - _product(block.above, whole[width:, :width])
        block.inverse = block.above = block.beside = nothing
        rows, columns, _, chosen = entries.of(number)
        values[chosen] = whole[place[rows], place[columns]]
        for child in block.children:
            places = place[child.rows]
            corners[id(child)] = whole[places[:, None], places]
    return values


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Let torch use so many threads for a while."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _product(left: Array, right: Array) -> Array:
    """A matrix product by torch, which on two cores is faster with small matrices than NumPy's."""
    return (torch.from_numpy(left) @ torch.from_numpy(right)).numpy()
