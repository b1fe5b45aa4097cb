"""Groups of similar images at any number, from a tree that is built once, and what stands at their borders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.optimize import linear_sum_assignment

from udml_core.base.arrays import Array, Booleans, Floats, Integers, rows_by_group, rows_of
from udml_core.data.given.group_changes import GroupChange
from udml_core.numerics.neighbors import Report, ignore_progress
from udml_core.numerics.neighbors.centers import nearest_center, sample_rows, train_centers
from udml_core.numerics.refinement.linear import unit_rows

MOST_LEAVES = 2_000
"""Largest number of images whose tree is exact; of more images, this many centers are the leaves."""
MOST_MATCHED = 500
"""Most groups whose numbers are matched at best; the time grows with the cube of their number."""
TYPICAL_SIZES = (60, 40, 30, 20, 15, 12)
"""Mean sizes of groups among which the first number of groups is chosen: a user sees all images of such a group."""
MOST_GROUPS = 300
"""Most groups that are formed unless a user asks for more: each is looked at."""
AS_GOOD = 0.01
"""Silhouettes that differ less count as equal, and more groups are purer."""
VERY_ALIKE, ALIKE = 0.25, 0.12
"""How similar images of a group are (see `alikeness`) from which pages say so. At 132 groups of 1,589 birds, very
similar groups had 87 % images of one species on average, similar groups 74 %, and mixed groups 45 %."""
WIDTH, SAMPLED = 64, 40
"""Components that centers of many images are found in, and sampled images a center or a group."""


@dataclass(frozen=True)
class GroupTree:
    """Ward's tree of images: at each number of groups, the two groups are joined whose images lie nearest.

    Attributes:
        leaves: Leaf of the tree (n,) of each image, 0 … m−1.
        merges: (m − 1, 4) merges in their order, as `scipy.cluster.hierarchy.linkage` returns them.
    """

    leaves: Integers
    merges: Floats

    @property
    def most(self) -> int:
        """Largest number of groups."""
        return len(self.merges) + 1

    def groups(self, count: int) -> Integers:
        """Return the group (n,) of each image at a number of groups, numbered by falling size."""
        count = min(max(count, 1), self.most)
        cut = np.ones(1, int) if not len(self.merges) else fcluster(self.merges, count, "maxclust")
        return by_size(cut[self.leaves])


def first_number(tree: GroupTree, points: Floats, most: int = MOST_GROUPS) -> int:
    """Return the number of groups of a useful size that are best apart.

    The images lie nearest to the mean of their own group, compared with the nearest other mean (a silhouette by means).
    For 1,589 birds of 100 species it is 132, and 72 % are of the most frequent species of their group (31 % at 30
    groups); for 1,797 digits it is 29 (95 %). The largest gaps of the trees leave 3 and 7 groups.

    Args:
        tree: The tree of the images.
        points: (n, d) their embedding.
        most: Most groups.
    """
    counts = sorted({min(max(len(points) // size, 2), most, tree.most) for size in TYPICAL_SIZES})
    if len(counts) < 2:
        return counts[0]
    rows = sample_rows(len(points), MOST_LEAVES)
    apart = np.array([_silhouette(np.asarray(points, np.float32), tree.groups(count), rows).mean() for count in counts])
    return counts[int(np.flatnonzero(apart >= apart.max() - AS_GOOD)[-1])]


def _silhouette(points: Floats, groups: Integers, rows: Integers) -> Floats:
    """Return how much nearer images (m,) lie to their own group without themselves than to the next, from −1 to 1."""
    sizes = np.bincount(groups)
    means = _means(points, groups)
    images, own = points[rows], groups[rows]
    squares = np.einsum("md,md->m", images, images)[:, None] - 2 * images @ means.T + (means ** 2).sum(axis=1)
    to_own = squares[np.arange(len(rows)), own] * (sizes[own] / np.maximum(sizes[own] - 1, 1)) ** 2
    squares[:, sizes == 0] = np.inf
    squares[np.arange(len(rows)), own] = np.inf
    to_next = squares.min(axis=1)
    to_next[np.isinf(to_next)] = to_own[np.isinf(to_next)]  # a single group is not apart from any
    apart = (to_next - to_own) / np.maximum(np.maximum(to_next, to_own), 1e-12)
    return np.where(sizes[own] > 1, apart, 0.0)


def _means(points: Floats, groups: Integers) -> Floats:
    """Return the mean (g, d) of the points (n, d) of each group."""
    members = sparse.csr_array((np.ones(len(groups), np.float32), groups, np.arange(len(groups) + 1)))
    return np.asarray(members.T @ points) / np.maximum(np.bincount(groups), 1)[:, None]


def alikeness(points: Floats, groups: Integers) -> Floats:
    """Return how similar the images of each group (g,) are beside the next group: a silhouette by means, −1 to 1.

    The value of equal images is 1, and about 0 if they are as near to the next group. A group of one image has 1.

    Args:
        points: Embedding (n, d).
        groups: Group (n,) of each image, 0 … g−1.
    """
    sizes, rows = np.bincount(groups), _some_of_each(groups, SAMPLED)
    apart = _silhouette(np.asarray(unit_rows(points), np.float32), groups, rows)
    counts = np.maximum(np.bincount(groups[rows], minlength=len(sizes)), 1)
    return np.where(sizes == 1, 1.0, np.bincount(groups[rows], apart, len(sizes)) / counts)


def _some_of_each(groups: Integers, most: int) -> Integers:
    """Return the rows of at most so many images of each group (n,), evenly through the group."""
    order, sizes = np.argsort(groups, kind="stable"), np.bincount(groups)
    places = np.arange(len(groups)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return order[places % np.maximum(-(-sizes // most), 1)[groups[order]] == 0]


def most_alike_first(alike: Floats, sizes: Integers) -> Integers:
    """Return the groups (g,) in the order to name them: very similar ones, similar, mixed; the largest of each first.

    Groups of one image come last. Of the first twenty of 132 groups of 1,522 birds, 18 were pure to 80 % in this order,
    with 386 images; by the likeness alone all were, with 349.
    """
    word = np.where(alike >= VERY_ALIKE, 0, np.where(alike >= ALIKE, 1, 2))
    return np.lexsort((-sizes, np.where(sizes > 1, word, 3)))


def order_to_name(likeness: Floats, sizes: Integers, left: Integers) -> Integers:
    """Return the groups that have images in the order to name them: `most_alike_first`, then leftovers, then named.

    Args:
        likeness: How similar the images of each group (g,) are.
        sizes: Number of images of each group (g,); the order is without groups of none.
        left: Number of these without a name (g,).
    """
    order = most_alike_first(likeness, sizes)
    order = order[sizes[order] > 0]
    rank = np.where(left == 0, 2, are_leftovers(left, sizes))
    return order[np.argsort(rank[order], kind="stable")]


def are_leftovers(left: Integers, sizes: Integers) -> Booleans:
    """Return whether the images without a name are left over: a single image, or some of the group have a name."""
    return np.less(left, np.maximum(sizes, 2))


def similar_groups(points: Floats, count: int) -> Integers:
    """Return the group (n,) of each point (n, d) by k-means of the directions, numbered by falling size.

    Args:
        points: Embedding (n, d).
        count: Largest number of groups, ≤ n.
    """
    rows = unit_rows(points)
    return by_size(nearest_center(rows, train_centers(rows[sample_rows(len(rows), MOST_LEAVES)], count)))


def by_size(groups: Integers) -> Integers:
    """Number groups (n,) by falling size; of equal groups the first number stays first."""
    _, codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    ranks = np.empty(len(sizes), int)
    ranks[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    return ranks[codes]


def keep_numbers(groups: Integers, earlier: Integers) -> Integers:
    """Number groups (n,) as earlier groups that share most images with them; further groups get the free numbers.

    Args:
        groups: Group (n,) of each image, 0 … g−1.
        earlier: Earlier group (n,) of each image; −1 for images that had none.
    """
    count, known = groups.max(initial=-1) + 1, earlier >= 0
    most = max(count, earlier.max(initial=-1) + 1)
    numbered = np.full(count, -1)
    rows, numbers = (_best_pairs if most <= MOST_MATCHED else _first_pairs)(groups[known], earlier[known], most)
    numbered[rows] = numbers
    free = np.setdiff1d(np.arange(2 * most), numbered)
    numbered[numbered < 0] = free[:int((numbered < 0).sum())]
    return numbered[groups]


def _best_pairs(groups: Integers, earlier: Integers, most: int) -> tuple[Integers, Integers]:
    """Pair groups and earlier groups (n,) so that the pairs share most images in all."""
    shared = np.zeros((most, most), int)
    np.add.at(shared, (groups, earlier), 1)
    rows, numbers = linear_sum_assignment(-shared)
    is_kept = shared[rows, numbers] > 0
    return rows[is_kept], numbers[is_kept]


def _first_pairs(groups: Integers, earlier: Integers, most: int) -> tuple[Integers, Integers]:
    """Pair thousands of groups and earlier groups (n,), most shared images first, within milliseconds."""
    pairs, shared = np.unique(groups.astype(np.int64) * most + earlier, return_counts=True)
    free_rows, free_numbers = np.ones(most, bool), np.ones(most, bool)
    kept: list[tuple[int, int]] = []
    for pair in pairs[np.argsort(-shared, kind="stable")].tolist():
        row, number = divmod(pair, most)
        if free_rows[row] and free_numbers[number]:
            free_rows[row] = free_numbers[number] = False
            kept.append((row, number))
    found = np.array(kept, int).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def build_tree(points: Floats, report: Report = ignore_progress) -> GroupTree:
    """Build the tree of images (n, d); many images are joined to centers first."""
    report(0.0, "groups")
    if len(points) <= MOST_LEAVES:
        return GroupTree(np.arange(len(points)), _merges(np.asarray(points, np.float64)))
    rows = np.asarray(points, np.float32)
    reduced = _main_components(rows, report)
    sample = reduced[sample_rows(len(reduced), MOST_LEAVES * SAMPLED)]
    centers = train_centers(sample, MOST_LEAVES, lambda share, _step: report(0.2 + 0.7 * share, "groups"))
    _, leaves = np.unique(nearest_center(reduced, centers), return_inverse=True)
    sums = np.zeros((leaves.max() + 1, reduced.shape[1]))
    np.add.at(sums, leaves, reduced)
    return GroupTree(leaves, _merges(sums / np.bincount(leaves)[:, None]))


def _merges(points: Floats) -> Floats:
    return np.zeros((0, 4)) if len(points) < 2 else linkage(points, "ward")


def _main_components(rows: Floats, report: Report) -> Floats:
    """Return rows (n, d) in their first components (n, at most `WIDTH`), found on a sample."""
    sample = rows[sample_rows(len(rows), MOST_LEAVES * SAMPLED)]
    mean = sample.mean(axis=0)
    report(0.1, "groups")
    axes = np.linalg.eigh(np.cov(sample - mean, rowvar=False))[1][:, ::-1][:, :WIDTH]
    return np.ascontiguousarray((rows - mean) @ axes, np.float32)


def split_group(points: Floats, parts: int) -> Integers:
    """Split the images of a group into parts by their own tree, numbered by falling size.

    Args:
        points: (m, d) embedding of the group's images.
        parts: Number of parts.
    """
    return build_tree(points).groups(parts)


def edit_groups(groups: Integers, images: Integers, changes: Sequence[GroupChange],
                is_later: Booleans | None = None) -> Integers:
    """Change groups (n,) of images by hand, the first change first; all other groups keep their numbers.

    A part keeps the number that most of its images had, unless images outside the change or an earlier part have it.
    Images that came later follow: where all other images of their group are in a change, they join the part that has
    most of these.

    Args:
        groups: Group (n,) of each image.
        images: Image indices (n,), ascending.
        changes: The changes; images that are not among these images are passed over.
        is_later: Whether each image (n,) was added to the folder after its first state; none if None.
    """
    changed = np.array(groups, int)
    fresh = changed.max(initial=-1) + 1
    for change in changes:
        rows = rows_of(images, change.images)
        inside, parts = rows[rows >= 0], change.parts[rows >= 0]
        if is_later is not None:
            inside, parts = _with_followers(changed, inside, parts, is_later)
        before = changed[inside]
        changed[inside] = -1
        for part in np.unique(parts):
            numbers, counts = np.unique(before[parts == part], return_counts=True)
            free = [number for number in numbers[np.argsort(-counts, kind="stable")] if not (changed == number).any()]
            changed[inside[parts == part]] = free[0] if free else fresh
            fresh += not free
    return changed


def _with_followers(groups: Integers, inside: Integers, parts: Integers, is_later: Booleans
                    ) -> tuple[Integers, Integers]:
    """Return the rows and parts of a change with the later images that follow it."""
    is_outside = np.ones(len(groups), bool)
    is_outside[inside] = False
    for number in np.unique(groups[inside]).tolist():
        outside = np.flatnonzero(is_outside & (groups == number))
        if len(outside) and is_later[outside].all():
            leading = np.bincount(parts[groups[inside] == number]).argmax()
            inside, parts = np.append(inside, outside), np.append(parts, np.full(len(outside), leading))
    return inside, parts


def from_center(points: Floats) -> Integers:
    """Return the rows (m,) of a group's images (m, d), the most typical image first, its border images last."""
    rows = np.asarray(points, np.float32)
    return np.argsort(((rows - rows.mean(axis=0)) ** 2).sum(axis=1), kind="stable")


@dataclass(frozen=True)
class Proposal:
    """Unlabeled images that look like a class.

    Attributes:
        code: The class.
        rows: Rows (m,) of the images, the least certain first: they are at the border.
        certainty: Certainty (m,) of the class.
    """

    code: int
    rows: Integers
    certainty: Floats


def proposals(best: Integers, certainty: Floats, codes: Integers) -> list[Proposal]:
    """Propose names by class, the class with the most images first.

    Args:
        best: Proposed class (n,) of each image; −1 without any.
        certainty: Its certainty (n,).
        codes: Class (n,) of each labeled image; −1 for the others.
    """
    rows = np.flatnonzero((codes < 0) & (best >= 0))
    found = []
    for code in np.unique(best[rows]).tolist():
        own = rows[best[rows] == code]
        own = own[np.argsort(certainty[own], kind="stable")]
        found.append(Proposal(code, own, certainty[own]))
    return sorted(found, key=lambda proposal: -len(proposal.rows))


def remaining_groups(groups: Integers, is_open: Array) -> list[Integers]:
    """Return the rows of each group's images that have no name yet, the largest group first.

    Args:
        groups: Group (n,) of each image.
        is_open: Whether an image has no name (n,) bool.
    """
    return sorted(rows_by_group(np.flatnonzero(is_open), groups), key=lambda part: -len(part))
