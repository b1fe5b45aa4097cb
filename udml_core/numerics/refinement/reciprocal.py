"""k-reciprocal re-ranking (Zhong, Zheng, Cao, Li, CVPR 2017), sparse.

The set R(i, k) has the images j with j among the k nearest of i and i among the k nearest of j, and i itself. It is
expanded to R*(i, k₁) by the sets R(j, k₁/2) of its members of which at least two thirds are in R(i, k₁). Each image is
encoded by V_i, which is exp(−d(i, j)) on R*(i, k₁) and zero elsewhere, and then averaged over the k₂ nearest images.
Images are ranked by (1 − λ)·(1 − Σ_j min(V_qj, V_gj) / Σ_j max(V_qj, V_gj)) + λ·d(q, g).

The paper leaves the scale of d open. Here d = 1 − cosine. The authors' code divides the squared distance by the
largest of the query, which needs all n² distances, and asks for more than two thirds. As in the authors' code, V is
divided by its sum.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy import sparse

from udml_core.base.arrays import Array, Floats, Integers
from udml_core.numerics.refinement.sparse_loops import compiled, in_threads
from udml_core.numerics.refinement.unit_neighbors import nearest_others, nearest_unit

Ranked = tuple[Integers, Floats]


class ReciprocalRanking:
    """The gallery's reciprocal neighbors, for the ranking of its own images and of queries from outside.

    Attributes:
        rows: Unit rows (n, d) of the gallery.
        order: Indices (n, k₁ + 1) of each image itself and its nearest images.
    """

    def __init__(self, rows: Array, k1: int = 20, k2: int = 6, weight: float = 0.3, shortlist: int = 200) -> None:
        """Find the reciprocal neighbors.

        Args:
            rows: Unit rows (n, d), n ≥ 2.
            k1: Number k₁ of neighbors; all other images if there are fewer.
            k2: Number k₂ of nearest images, the image included, over which V is averaged.
            weight: Weight λ of the original distance.
            shortlist: Number of images to rank for each query.
        """
        self.rows = np.ascontiguousarray(rows, np.float32)
        self.k1, self.k2 = min(k1, len(rows) - 1), min(k2, len(rows))
        self.weight, self.shortlist = weight, shortlist
        depth = min(max(self.k1, self.k2 - 1, shortlist), len(rows) - 1)
        distances, indices = nearest_unit(self.rows, depth)
        self._radius = distances[:, self.k1 - 1]
        self._nearest = indices
        self.order = np.concatenate([np.arange(len(rows))[:, None], indices], axis=1)[:, : max(self.k1 + 1, self.k2)]
        reciprocal = reciprocal_sets(self.order, self.k1)
        self._half = reciprocal_sets(self.order, round(self.k1 / 2))
        self._single = encode(self.rows, self.rows, expand(reciprocal, self._half))

    @cached_property
    def encoding(self) -> sparse.csr_matrix:
        """V (n, n), averaged over the k₂ nearest images."""
        return average_encodings(self._single, self.order[:, : self.k2])

    @cached_property
    def _inverted(self) -> sparse.csr_matrix:
        return self.encoding.T.tocsr()

    def neighbors(self, k: int, own: Integers | None = None) -> Ranked:
        """Rank the gallery for its images.

        Args:
            k: Number of images to return for each.
            own: Indices (q,) of the images to rank for; all n if None.

        Returns:
            Indices (q, k), nearest first and without the image itself, and scores (q, k), one minus the distance.
        """
        if own is None:
            return self._rank(self.rows, self.encoding, self._nearest, k, np.arange(len(self.rows)))
        return self._rank(self.rows[own], self.encoding[own], self._nearest[own], k, own)

    def search(self, queries: Array, k: int) -> Ranked:
        """Rank the gallery for queries from outside, which change nothing in the gallery.

        A query is reciprocal to a gallery image among its k₁ nearest if it is at most as far from it as the image's
        own k₁-th neighbor.

        Args:
            queries: Unit rows (q, d).
            k: Number of images to return for each query.

        Returns:
            Indices (q, k), nearest first, and scores (q, k), one minus the distance.
        """
        queries = np.ascontiguousarray(queries, np.float32)
        depth = min(max(self.k1, self.k2, self.shortlist), len(self.rows))
        distances, indices = nearest_unit(self.rows, depth, queries)
        is_mutual = distances[:, : self.k1] <= self._radius[indices[:, : self.k1]]
        starts = np.concatenate([[0], np.cumsum(is_mutual.sum(axis=1))])
        reciprocal = starts, indices[:, : self.k1][is_mutual]
        single = encode(queries, self.rows, expand(reciprocal, self._half))
        own = sparse.identity(len(queries), np.float32, "csr")
        chosen = _choice_matrix(indices[:, : self.k2 - 1], len(self.rows))
        encoding = _rows_to_sum_one(own @ single + chosen @ self._single)
        return self._rank(queries, encoding, indices, k, np.full(len(queries), -1))

    def _rank(self, queries: Array, encoding: sparse.csr_matrix, listed: Integers, k: int, own: Integers) -> Ranked:
        """Rank the images of the smallest Jaccard distance and the listed images.

        Args:
            queries: Unit rows (q, d).
            encoding: V (q, n) of the queries.
            listed: Indices (q, s) of the gallery images nearest to each query.
            k: Number of images to return.
            own: Index (q,) of each query in the gallery, or −1.
        """
        inside = bool(len(own)) and own[0] >= 0
        k = min(k, len(self.rows) - inside)
        length = max(k, self.shortlist) + inside
        if listed.shape[1] < k:
            listed = (nearest_others(self.rows, k, own) if inside else nearest_unit(self.rows, k, queries))[1]
        indices, scores = np.full((len(queries), k), -1), np.zeros((len(queries), k), np.float32)
        inverted = self._inverted
        in_threads(lambda start, stop: rank_by_overlap(
            start, stop, queries, self.rows, encoding.indptr, encoding.indices, encoding.data, inverted.indptr,
            inverted.indices, inverted.data, listed[:, :length], own, float(self.weight), length, indices,
            scores), len(queries))
        return indices, scores


Lists = tuple[Integers, Integers]
"""Lists of different lengths: starts (n + 1,), and all indices one after the other."""


def reciprocal_sets(order: Integers, k: int) -> Lists:
    """Return R(i, k) for each image, the image itself included.

    Args:
        order: Indices (n, at least k + 1) of each image itself and its nearest images.
        k: Number of neighbors.
    """
    is_mutual = mutual_mask(np.ascontiguousarray(order[:, : k + 1]))
    return np.concatenate([[0], np.cumsum(is_mutual.sum(axis=1))]), order[:, : k + 1][is_mutual]


@compiled
def mutual_mask(order: Array) -> Array:
    """Return whether the image occurs in the list of each image of its own list, (n, k) bool."""
    count, width = order.shape
    mask = np.zeros((count, width), np.bool_)
    for image in range(count):
        for position in range(width):
            other = order[image, position]
            for back in range(width):
                if order[other, back] == image:
                    mask[image, position] = True
                    break
    return mask


def expand(reciprocal: Lists, half: Lists) -> Lists:
    """Return R*: each set of `reciprocal`, expanded by the sets of `half` of which two thirds are in it."""
    starts, members = reciprocal
    half_starts, half_members = half
    marks = np.zeros(len(half_starts) - 1, np.int64)
    sizes = np.zeros(len(starts) - 1, np.int64)
    nothing = np.zeros(0, np.int64)
    fill_expanded(starts, members, half_starts, half_members, marks, sizes, np.zeros(0, np.int64), nothing)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    expanded = np.zeros(bounds[-1], np.int64)
    marks[:] = 0
    fill_expanded(starts, members, half_starts, half_members, marks, sizes, bounds, expanded)
    return bounds, expanded


@compiled
def fill_expanded(starts: Array, members: Array, half_starts: Array, half_members: Array, marks: Array, sizes: Array,
                  bounds: Array, expanded: Array) -> None:
    """Count each expanded set in `sizes`; with `bounds`, also write the sets to `expanded`."""
    for row in range(len(starts) - 1):
        # 2·row + 1 marks members of R, and 2·row + 2 marks members that the expansion added: the test below counts R.
        in_set, added = 2 * row + 1, 2 * row + 2
        size = 0
        for position in range(starts[row], starts[row + 1]):
            marks[members[position]] = in_set
            if len(bounds):
                expanded[bounds[row] + size] = members[position]
            size += 1
        for position in range(starts[row], starts[row + 1]):
            begin, end = half_starts[members[position]], half_starts[members[position] + 1]
            common = 0
            for other in range(begin, end):
                common += marks[half_members[other]] == in_set
            if 3 * common < 2 * (end - begin):
                continue
            for other in range(begin, end):
                member = half_members[other]
                if marks[member] != in_set and marks[member] != added:
                    marks[member] = added
                    if len(bounds):
                        expanded[bounds[row] + size] = member
                    size += 1
        sizes[row] = size


def encode(queries: Array, gallery: Array, sets: Lists) -> sparse.csr_matrix:
    """Return V (q, n): exp(−d) on each query's set, divided by the sum.

    Args:
        queries: Unit rows (q, d).
        gallery: Unit rows (n, d).
        sets: Set of gallery images of each query.
    """
    starts, members = sets
    values = np.zeros(len(members), np.float32)
    in_threads(lambda start, stop: fill_similarities(start, stop, queries, gallery, starts, members, values),
               len(queries))
    matrix = sparse.csr_matrix((np.exp(values - 1), members, starts), shape=(len(queries), len(gallery)))
    return _rows_to_sum_one(matrix)


@compiled
def fill_similarities(first: int, last: int, queries: Array, gallery: Array, starts: Array, members: Array,
                      values: Array) -> None:
    """Write the cosine of each query and its set's members to `values`."""
    for row in range(first, last):
        for position in range(starts[row], starts[row + 1]):
            values[position] = np.dot(queries[row], gallery[members[position]])


def average_encodings(encoding: sparse.csr_matrix, order: Integers) -> sparse.csr_matrix:
    """Average the encodings (n, n) of the images in each row of `order` (n, k₂)."""
    if order.shape[1] == 1:
        return encoding
    return ((_choice_matrix(order, encoding.shape[0]) @ encoding) / np.float32(order.shape[1])).tocsr()


def _choice_matrix(order: Integers, count: int) -> sparse.csr_matrix:
    """Return the matrix (q, count) with a one for each index in `order` (q, k)."""
    starts = np.arange(len(order) + 1) * order.shape[1]
    return sparse.csr_matrix((np.ones(order.size, np.float32), order.ravel(), starts), shape=(len(order), count))


def _rows_to_sum_one(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    """Divide each row by its sum; an empty row stays empty."""
    sums = np.asarray(matrix.sum(axis=1)).ravel()
    scale = sparse.diags((1 / np.where(sums > 0, sums, 1)).astype(np.float32))
    return (scale @ matrix).tocsr()


@compiled
def rank_by_overlap(first: int, last: int, queries: Array, gallery: Array, starts: Array, members: Array,
                    values: Array, inverted_starts: Array, inverted_members: Array, inverted_values: Array,
                    listed: Array, own: Array, weight: float, shortlist: int, indices: Array, scores: Array) -> None:
    """Write each query's ranking and scores to `indices` and `scores`.

    Only images with a common member have a Jaccard distance below 1, and the inverted lists find them. The original
    distance, whose cost is d for each pair, is computed for the shortlist only.
    """
    overlap = np.zeros(len(gallery), np.float32)
    touched = np.zeros(len(gallery), np.int64)
    for row in range(first, last):
        count = 0
        for position in range(starts[row], starts[row + 1]):
            member, value = members[position], values[position]
            for other in range(inverted_starts[member], inverted_starts[member + 1]):
                image = inverted_members[other]
                if overlap[image] == 0:
                    touched[count] = image
                    count += 1
                overlap[image] += min(value, inverted_values[other])
        # The shortlist: the largest overlaps, then the nearest images that are not among them.
        candidates = touched[:count].copy()
        if count > shortlist:
            candidates = candidates[np.argsort(-overlap[candidates], kind="mergesort")[:shortlist]]
        extra = np.zeros(listed.shape[1], np.int64)
        added = 0
        for position in range(listed.shape[1]):
            if overlap[listed[row, position]] == 0:
                extra[added] = listed[row, position]
                added += 1
        candidates = np.concatenate((candidates, extra[:added]))
        distances = np.zeros(len(candidates), np.float32)
        for position in range(len(candidates)):
            image = candidates[position]
            common = overlap[image]
            distances[position] = (1 - weight) * (1 - common / (2 - common))
            if weight > 0:
                distances[position] += weight * (1 - np.dot(queries[row], gallery[image]))
            if image == own[row]:
                distances[position] = np.inf
        # Equal distances go to the lowest index.
        by_index = np.argsort(candidates, kind="mergesort")
        ranking = by_index[np.argsort(distances[by_index], kind="mergesort")]
        for rank in range(min(indices.shape[1], len(ranking))):
            if distances[ranking[rank]] < np.inf:
                indices[row, rank] = candidates[ranking[rank]]
                scores[row, rank] = 1 - distances[ranking[rank]]
        for position in range(count):
            overlap[touched[position]] = 0
