"""The distance up to which two images are "the same", from pairs that a user judges.

The population is the pairs of an image and one of its nearest images in an embedding, each pair once, since a search
shows these pairs. Ranked by distance they are divided into cells, each twice as large as the one before, so that the
range of every possible threshold is covered. The random order within a cell depends on the two images alone: two
embeddings whose cells share pairs draw the same pairs first, and a judgment serves both.

The next cell depends on the judgments so far, and users look at the result after each. Neither does harm: the bounds
come from bets on the judgments that are fair whatever was judged before (a test martingale), so they hold at every
stop. A judgment counts by the size of its cell (Horvitz and Thompson).

References:
    D. Horvitz, D. Thompson, "A Generalization of Sampling Without Replacement From a Finite Universe", JASA 1952.
    I. Waudby-Smith, A. Ramdas, "Estimating Means of Bounded Random Variables by Betting", JRSS B 2024.
    J. Spertus, M. Sridhar, P. Stark, "Sequential Stratified Inference for the Mean", 2024: bets in several strata.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from udml_core.base.arrays import Array, Booleans, Floats, Integers

NEIGHBORS = 50
"""Number of nearest images with which an image forms pairs."""
MOST_CELLS, SMALLEST = 12, 12
"""Largest number of cells, and the smallest number of pairs in one."""
MOST_DRAWN = 300
"""Largest number of pairs that are drawn from a cell."""
DIFFERENT, SAME, SKIPPED, OPEN, LEFT_OUT = 0, 1, -1, -2, -3
"""Answers about a pair; an open pair has none yet, and a left out pair is never asked."""
BETS, CAPITAL = np.array([1.0, 0.8, 0.5, 0.25]), np.array([0.4, 0.3, 0.2, 0.1])
"""The parts of their capital that gamblers risk on a judgment, and the capital with which each begins."""
FULL = 1 / 8
"""Share of all pairs from which a stratum's judgments are bet on in full; in smaller strata less is risked."""
BELOW, ABOVE = 0.04, 0.01
"""Probability that the truth lies below or above an interval: most of the 5 % at the lower end, which decides."""
EXPLORING = 5
"""One of this many judgments leaves the cells up to the likely threshold: in turn for the next cell, and for the cell
that adds most to the uncertainty."""
PATIENCE = 3
"""Number of skipped pairs after which a cell without judgments no longer comes first."""
STEPS = 45
"""Bisections, which find a bound to ten digits."""


@dataclass(frozen=True, eq=False)
class Plan:
    """The pairs to judge, and the sizes of the parts of the population from which they are drawn.

    Attributes:
        pairs: Image indices (p, 2) of the drawn pairs, cell by cell from the nearest, each cell in random order.
        distances: Their distances (p,).
        parts: The part (p,) of each pair, 0 … m−1.
        sizes: Number of pairs (m,) of the population in each part, nearest first.
        edges: Distance (m,) up to which a pair belongs to a part or an earlier part: the possible thresholds.
        cells: The cell (m,) of each part, 0 … c−1; most cells have two parts.
    """

    pairs: Integers
    distances: Floats
    parts: Integers
    sizes: Integers
    edges: Floats
    cells: Integers

    @cached_property
    def drawn_cells(self) -> Integers:
        """The cell (p,) of each pair."""
        return self.cells[self.parts]

    @property
    def ends(self) -> Integers:
        """The last part (c,) of each cell."""
        return np.flatnonzero(np.append(self.cells[1:] != self.cells[:-1], True))

    def up_to_edges(self, values: Array) -> Floats:
        """Return the sums (m, c) of values (m,) of the parts up to each edge, by cell."""
        return np.cumsum(np.eye(self.cells[-1] + 1)[self.cells] * values[:, None], axis=0)


@dataclass(frozen=True, eq=False)
class Counts:
    """Judgments by part.

    Attributes:
        plan: The plan.
        same: Number of same pairs (m,).
        different: Number of different pairs (m,).
    """

    plan: Plan
    same: Integers
    different: Integers

    @classmethod
    def of(cls, plan: Plan, answers: Integers) -> Counts:
        """Count answers (p,): `SAME`, `DIFFERENT`, `SKIPPED`, `OPEN` or `LEFT_OUT` for each pair of the plan.

        Answers count up to the first open pair of their cell. Later pairs were judged for another embedding, and would
        not be a random draw from this cell.
        """
        cells = plan.drawn_cells
        opened = np.concatenate([[0], np.cumsum(answers == OPEN)])
        counts = opened[1:] == opened[_starts(cells)][cells]
        same, different = (np.bincount(plan.parts[counts & (answers == answer)], minlength=len(plan.sizes))
                           for answer in (SAME, DIFFERENT))
        return cls(plan, same, different)

    @property
    def total(self) -> int:
        return int(self.same.sum() + self.different.sum())

    @cached_property
    def chance(self) -> Floats:
        """Probability (m,) that a pair of each part is the same: the best fit that never grows with the distance."""
        judged = self.same + self.different
        if not judged.any():
            return np.full(len(judged), 0.5)
        from sklearn.isotonic import IsotonicRegression  # here, because it slows the start of the command line

        known = np.flatnonzero(judged)
        fit = IsotonicRegression(y_min=0, y_max=1, increasing=False, out_of_bounds="clip")
        fit.fit(known, self.same[known] / judged[known], sample_weight=judged[known])
        return np.asarray(fit.predict(np.arange(len(judged))))

    def strata(self) -> tuple[Strata, Strata]:
        """Return the strata up to each edge, and those beyond it."""
        sums = [self.plan.up_to_edges(values) for values in (
            self.plan.sizes, self.same, self.different, self.plan.sizes * self.chance)]
        return Strata(*sums), Strata(*(values[-1] - values for values in sums))


@dataclass(frozen=True, eq=False)
class Strata:
    """Groups of strata, in each of which the judged pairs are a random draw.

    Attributes:
        sizes: Number of pairs (g, s) of the population.
        same: Number of judged pairs (g, s) that are the same.
        different: Number of judged pairs (g, s) that are different.
        expected: Number of same pairs (g, s) expected where none is judged.
    """

    sizes: Array
    same: Array
    different: Array
    expected: Array

    def estimate(self) -> Floats:
        """Return the estimated number (g,) of same pairs: each judged pair counts by its stratum's size."""
        judged = self.same + self.different
        return np.where(judged > 0, self.sizes * self.same / np.maximum(judged, 1), self.expected).sum(axis=1)

    def least(self, error: float) -> Floats:
        """Return a lower bound (g,) of the number of same pairs; see `lower_total`."""
        return lower_total(self.sizes, self.same, self.different, error)

    def most(self, error: float) -> Floats:
        """Return an upper bound (g,) of the number of same pairs."""
        return self.sizes.sum(axis=1) - lower_total(self.sizes, self.different, self.same, error)


@dataclass(frozen=True, eq=False)
class Estimate:
    """What the judgments tell about each possible threshold; intervals hold with 95 % at every stop.

    Attributes:
        target: The precision that the threshold should have, 0.5 … 1.
        edges: The possible thresholds (m,): distances, ascending.
        judged: Number of judgments that count.
        chance: Probability (m,) that a pair of each part is the same.
        precision: Share of same pairs among the pairs up to each edge, with its interval, (3, m): value, low, high.
        recall: Share of all same pairs that lie up to each edge, with its interval, (3, m).
        reachable: Largest precision that the intervals at the ends of cells leave possible.
        needed: About how many more judgments give a threshold; 0 with a threshold, None if it cannot be foreseen.
    """

    target: float
    edges: Floats
    judged: int
    chance: Floats
    precision: Floats
    recall: Floats
    reachable: float
    needed: int | None

    @property
    def threshold(self) -> int | None:
        """The last edge with the target precision whose interval excludes twice the errors; None if there is none."""
        return _last((self.precision[0] >= self.target) & (self.precision[1] >= least_precision(self.target)))

    @property
    def certain(self) -> int | None:
        """The last edge whose whole interval has the target precision; None if there is none."""
        return _last(self.precision[1] >= self.target)

    @property
    def is_unreachable(self) -> bool:
        """Whether no threshold can have the target precision."""
        return self.reachable < self.target


def least_precision(target: float) -> float:
    """Return the precision with twice the errors of a target, which the interval of a threshold excludes."""
    return 2 * target - 1


def neighbor_pairs(images: Integers, neighbors: Integers, distances: Floats) -> tuple[Integers, Floats]:
    """Return each pair of an image and a neighbor once, with the smaller of its distances.

    Args:
        images: Image indices (q,).
        neighbors: Image indices (q, k) of their neighbors; −1 marks none.
        distances: Distances (q, k).

    Returns:
        Pairs i < j (p, 2) and their distances (p,).
    """
    ends = np.stack([np.broadcast_to(images[:, None], neighbors.shape), neighbors], axis=2).reshape(-1, 2)
    valid = (ends[:, 1] >= 0) & (ends[:, 0] != ends[:, 1])
    ends, values = np.sort(ends[valid].astype(np.int64), axis=1), np.asarray(distances).ravel()[valid]
    order = np.lexsort((values, ends[:, 1], ends[:, 0]))
    ends, values = ends[order], values[order]
    is_first = np.ones(len(ends), bool)
    is_first[1:] = (ends[1:] != ends[:-1]).any(axis=1)
    return ends[is_first], values[is_first]


def plan_pairs(pairs: Integers, distances: Floats, keys: Integers) -> Plan:
    """Divide a population into cells by rank, and draw pairs from each.

    Args:
        pairs: The population (p, 2), each pair once, p ≥ 1.
        distances: Their distances (p,).
        keys: A random number (n,) uint64 for each image, such as a hash of its name.
    """
    order = np.argsort(distances, kind="stable")
    ranked, count = np.asarray(distances, np.float64)[order], len(order)
    number = int(np.clip(np.log2(count / SMALLEST) + 1, 1, MOST_CELLS))
    ends = np.ceil(count * 2.0 ** (-np.arange(2 * number - 1, -1, -1) / 2)).astype(np.int64)
    ends = np.searchsorted(ranked, ranked[ends - 1], side="right")  # pairs of equal distance stay together
    ends, first = np.unique(ends, return_index=True)
    cells, sizes = np.unique(first // 2, return_inverse=True)[1], np.diff(ends, prepend=0)
    edges = (ranked[ends - 1] + ranked[np.minimum(ends, count - 1)]) / 2
    edges[-1] += 1e-6 * edges[-1] + 1e-9  # the farthest pair lies within, whatever a search's rounding
    parts = np.repeat(np.arange(len(ends)), sizes)
    in_cell = cells[parts]
    shuffled = np.lexsort((_random_order(keys, pairs[order]), in_cell))
    drawn = shuffled[np.arange(count) - _starts(in_cell)[in_cell] < MOST_DRAWN]
    return Plan(pairs[order[drawn]], ranked[drawn], parts[drawn], sizes, edges, cells)


def next_pair(plan: Plan, answers: Integers, target: float) -> int | None:
    """Return the position of the pair to judge next; None if all drawn pairs have an answer.

    At first every cell has its turn, distant cells in turn, so that the first judgments cover the range. Then most
    judgments go to the cells up to the likely threshold, in proportion to their sizes.

    Args:
        plan: The plan.
        answers: The answers (p,), see `Counts.of`.
        target: The precision that the threshold should have.
    """
    is_open = np.flatnonzero(answers == OPEN)
    if not len(is_open):
        return None
    available, first = np.unique(plan.drawn_cells[is_open], return_index=True)
    counts = Counts.of(plan, answers)
    skipped = np.bincount(plan.drawn_cells[answers == SKIPPED], minlength=plan.cells[-1] + 1)
    cell = _next_cell(counts, skipped, available, target)
    return int(is_open[first[np.searchsorted(available, cell)]])


def _next_cell(counts: Counts, skipped: Integers, available: Integers, target: float) -> int:
    """Return the cell from which the next pair comes.

    Args:
        counts: The judgments.
        skipped: Number of skipped pairs (c,) in each cell.
        available: Cells with open pairs (a,), ascending.
        target: The precision that the threshold should have.
    """
    plan = counts.plan
    same, judged, sizes = (np.bincount(plan.cells, values) for values in (
        counts.same, counts.same + counts.different, plan.sizes))
    seen = judged + skipped
    unjudged = available[(judged[available] == 0) & (seen[available] < PATIENCE)]
    if len(unjudged):
        return int(unjudged[np.lexsort((_spread_out(len(sizes))[unjudged], seen[unjudged]))[0]])
    turn = counts.total % (2 * EXPLORING)
    if turn == 0:
        share = (same + 0.5) / (judged + 1)
        return int(available[np.argmax((sizes * np.sqrt(share * (1 - share)) / (seen + 1))[available])])
    inside = available <= _focus(counts, target)
    if turn == EXPLORING and not inside.all():
        return int(available[~inside][0])
    within = available[inside] if inside.any() else available
    return int(within[np.argmax((sizes / (seen + 1))[within])])


def estimate(plan: Plan, answers: Integers, target: float = 0.95) -> Estimate:
    """Estimate precision and recall of every possible threshold.

    Args:
        plan: The plan.
        answers: The answers (p,), see `Counts.of`.
        target: The precision that the threshold should have, 0.5 … 1.
    """
    counts = Counts.of(plan, answers)
    near, far = counts.strata()
    found, missed, pairs = near.estimate(), far.estimate(), plan.sizes.cumsum()
    precision = np.stack([found, near.least(BELOW), near.most(ABOVE)]) / pairs
    recall = np.stack([_share(found, missed), _share(near.least(BELOW / 2), far.most(BELOW / 2)),
                       _share(near.most(ABOVE / 2), far.least(ABOVE / 2))])
    for value, low, high in (precision, recall):
        np.minimum(low, value, out=low)
        np.maximum(high, value, out=high)
    result = Estimate(target, plan.edges, counts.total, counts.chance, precision, recall,
                      float(precision[2, plan.ends].max()), 0)
    return result if result.threshold is not None else replace(result, needed=_needed(counts, target))


def lower_total(sizes: Array, same: Array, different: Array, error: float) -> Floats:
    """Return a lower bound of the number of same pairs in groups of strata.

    In a stratum with the share m of same pairs, a gambler who risks the part b of a capital multiplies it by
    1 − b + b/m if a judged pair is the same, and by 1 − b if it is not: by 1 on average. The capital ever exceeds
    1/error with a probability of `error` at most, so shares m at which it does are excluded. The bound is the smallest
    total of all shares that are left. This problem is convex, and its condition for each stratum has a closed solution.

    Args:
        sizes: Number of pairs (g, s) in each stratum of each group.
        same: Number of judged pairs (g, s) that are the same, drawn at random from the stratum.
        different: Number of judged pairs (g, s) that are different.
        error: Largest probability that a total is below its bound at any stop.

    Returns:
        Bounds (g,).
    """
    risked = np.minimum(1, sizes / np.maximum(sizes.sum(axis=1, keepdims=True), 1) / FULL)
    bets = BETS[:, None] * risked[:, None]
    is_known = same + different >= sizes
    known = np.where(is_known, same, 0).sum(axis=1)
    sizes, same, different = (np.where(is_known, 0, values)[:, None] for values in (sizes, same, different))
    total = sizes.sum(axis=2)
    weights = sizes / np.maximum(total, 1)[:, :, None]
    with np.errstate(divide="ignore"):
        losses = np.where(different > 0, different, 0) * np.log1p(-np.where(different > 0, bets, 0))
    budget = -np.log(error * CAPITAL) - losses.sum(axis=2)
    ratios = np.divide(same, weights, out=np.zeros(weights.shape), where=weights > 0)
    low, high = np.full(budget.shape, -40.0), np.full(budget.shape, 20.0)  # logarithms of the multiplier
    for _ in range(STEPS):
        middle = (low + high) / 2
        shares = _worst_shares(np.exp(middle), ratios, bets)
        gains = same * np.log(1 - bets + bets / np.where(shares > 0, shares, 1))
        is_possible = gains.sum(axis=2) <= budget
        low, high = np.where(is_possible, low, middle), np.where(is_possible, middle, high)
    bounds = (weights * _worst_shares(np.exp(low), ratios, bets)).sum(axis=2)
    return known + total[:, 0] * np.where(np.isfinite(budget), bounds, 0).max(axis=1)


def _worst_shares(multiplier: Floats, ratios: Floats, bets: Floats) -> Floats:
    """Return the shares (g, b, s) that minimize the total plus a multiplier times the logarithm of the capital.

    With the multiplier λ, a stratum's weight w and its number of same pairs x, the derivative is zero where
    w (m² (1 − b) + m b) = λ x b, which is quadratic in the share m.

    Args:
        multiplier: Multipliers (g, b).
        ratios: Ratios x / w (g, 1, s).
        bets: Bets (g, b, s).
    """
    product = multiplier[:, :, None] * ratios
    root = np.sqrt(bets**2 + 4 * (1 - bets) * bets * product)
    return np.minimum(2 * bets * product / np.maximum(bets + root, 1e-300), 1)


def _focus(counts: Counts, target: float) -> int:
    """Return the cell up to which the next judgments are drawn.

    An edge with half the errors that the target allows soon has a narrow interval. Once there is a threshold, or if no
    edge has so few errors, judgments go to the last edge that may have the target precision.
    """
    plan, (near, _) = counts.plan, counts.strata()
    pairs = plan.sizes.cumsum()
    precision = ((plan.sizes * counts.chance).cumsum() / pairs)[plan.ends]
    safe = _last(precision >= (1 + target) / 2)
    is_found = (near.estimate() / pairs >= target) & (near.least(BELOW) / pairs >= least_precision(target))
    if safe is not None and not is_found.any():
        return safe
    judged = (counts.same + counts.different).cumsum()[plan.ends]
    doubt = np.sqrt(precision * (1 - precision) / np.maximum(judged, 1))
    return _last(precision + doubt >= target) or 0


def _needed(counts: Counts, target: float) -> int | None:
    """Return about how many more judgments give a threshold, if precision stays as it is where they are drawn."""
    cell, least = _focus(counts, target), max(least_precision(target), 1e-9)
    near, _ = counts.strata()
    edge = int(counts.plan.ends[cell])
    sizes, judged = near.sizes[edge], (near.same + near.different)[edge]
    likely = (near.estimate()[edge] / sizes.sum() * judged.sum() + 1) / (judged.sum() + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = np.where(likely < 1, (1 - likely) * np.log1p(-BETS), 0)
        growth = likely * np.log(1 - BETS + BETS / least) + losses
        wanted = np.where(growth > 0, -np.log(BELOW * CAPITAL) / growth, np.inf).min()
    if not np.isfinite(wanted):
        return None
    weights = sizes / sizes.sum()
    useful = (judged / np.maximum(weights, 1e-12))[weights >= FULL].min()  # as many as if all were drawn in proportion
    return max(1, int(np.ceil((wanted - useful) * EXPLORING / (EXPLORING - 1))))


def _spread_out(count: int) -> Integers:
    """Return the turn (c,) of each cell: the reversed binary digits of its number, which spread every first few."""
    digits = max(1, (count - 1).bit_length())
    return np.array([int(f"{cell:0{digits}b}"[::-1], 2) for cell in range(count)])


def _share(part: Floats, rest: Floats) -> Floats:
    return part / np.maximum(part + rest, 1e-12)


def _last(mask: Booleans | Sequence[bool]) -> int | None:
    """Return the last position at which a mask is true."""
    positions = np.flatnonzero(mask)
    return int(positions[-1]) if len(positions) else None


def _starts(groups: Integers) -> Integers:
    """Return the first position of each group of ascending numbers without gaps."""
    return np.searchsorted(groups, np.arange(groups[-1] + 1))


def _random_order(keys: Integers, pairs: Integers) -> Array:
    """Mix the random numbers (n,) of images into one of each pair (p,), uint64, whichever image comes first."""
    ends = np.sort(keys[pairs], axis=1)
    mixed = ends[:, 0] ^ (ends[:, 1] << np.uint64(1) | ends[:, 1] >> np.uint64(63))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):  # SplitMix64
        mixed = (mixed ^ mixed >> np.uint64(shift)) * np.uint64(factor)
    return mixed
