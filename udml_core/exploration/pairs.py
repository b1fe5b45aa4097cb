"""Pairs of images: where they lie against b ± m, which contradict, and which are worth asking a person about."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from udml_core.arrays import Array
from udml_core.data.given.pairs import pair_keys
from udml_core.losses.kernels import Linear
from udml_core.losses.pair_hinge import PairHinge
from udml_core.neighbors import nearest

BINS = 40
SHOWN_SHARE = 0.98
"""Of the squared distances, how many a picture's axis reaches at least."""
NEAREST = 10
DRAWN = 20_000
"""Pairs at random among which, beside each image's nearest, is looked."""


def arguments(squared: Array, same: Array, bias: float, margin: float) -> Array:
    """m − y(b − d²) of squared distances (p,): a pair violates where it is above 0, and its loss is as much."""
    hinge = PairHinge(Linear(), bias, margin)
    return hinge.argument(torch.from_numpy(np.asarray(squared)), torch.from_numpy(np.asarray(same))).numpy()


@dataclass(frozen=True)
class Spread:
    """How squared distances are spread: edges (41,), and how many pairs that are the same, and that are different, lie
    between each and the next, (2, 40); what is beyond the last edge is counted with the last."""

    edges: Array
    before: Array
    after: Array


def spread(before: Array, after: Array, same: Array, reach: float) -> Spread:
    """Squared distances (p,) before and after training, on an axis that reaches so far at least."""
    end = max(reach, *(float(np.quantile(part, SHOWN_SHARE)) for part in (before, after) if len(part)))
    edges = np.linspace(0, end, BINS + 1)
    counts = [np.stack([np.histogram(np.minimum(part[kind], end), edges)[0] for kind in (same, ~same)])
              for part in (before, after)]
    return Spread(edges, *counts)


def against_classes(pairs: Array, same: Array, labels: Array) -> Array:
    """Which pairs (p, 2) were given as the same and are of two classes, or as different and are of one, (p,) bool."""
    return (labels[pairs[:, 0]] == labels[pairs[:, 1]]) != same


def contradicting(pairs: Array, same: Array) -> Array:
    """Places of pairs (p, 2) that are different, though a chain of pairs that are the same joins their images: a = b
    and b = c, yet a ≠ c."""
    _, ends, links = _linked(pairs, same)
    group = connected_components(links, directed=False)[1]
    return np.flatnonzero(~same & (group[ends[:, 0]] == group[ends[:, 1]]))


def chain(pairs: Array, same: Array, place: int) -> tuple[int, ...]:
    """The shortest chain of images from one end of a contradicting pair to the other, each the same as the next."""
    images, ends, links = _linked(pairs, same)
    first, last = ends[place]
    parents = breadth_first_order(links, last, directed=False)[1]
    found = [first]
    while found[-1] != last:
        found.append(parents[found[-1]])
    return tuple(images[found].tolist())


def _linked(pairs: Array, same: Array) -> tuple[Array, Array, csr_array]:
    """The images (i,) of pairs, both ends of each as places among them (p, 2), and a graph of those that are the same.
    """
    images, ends = np.unique(pairs, return_inverse=True)
    ends = ends.reshape(pairs.shape)
    kept = ends[same]
    return images, ends, csr_array((np.ones(len(kept)), (kept[:, 0], kept[:, 1])), shape=(len(images), len(images)))


def place_of(pairs: Array, pair: tuple[int, ...]) -> int | None:
    """Where a pair stands among pairs (p, 2), whichever of its images comes first; None where it does not."""
    if len(pair) != 2:
        return None
    found = np.flatnonzero((np.sort(pairs, axis=1) == sorted(pair)).all(axis=1))
    return int(found[0]) if len(found) else None


def first_unasked(pairs: Array, known: Array) -> int | None:
    """Where the first of pairs (p, 2) stands that is none of the known (k, 2), either way round; None without one."""
    places = np.flatnonzero(~np.isin(pair_keys(pairs), pair_keys(known)))
    return int(places[0]) if len(places) else None


def default_hinge(embedding: Array, seed: int = 0) -> tuple[float, float]:
    """A bias and a margin to ask about pairs with, of an embedding (n, l), n ≥ 2, that was learnt with none: b is amid
    the median squared distance of an image to its nearest and that of two images at random, m a tenth of it."""
    first, second = np.random.default_rng(seed).integers(len(embedding), size=(2, 1000))
    near = nearest(embedding, 2, embedding[np.unique(first)])[0].max(axis=1)  # of the two, the nearer is itself
    far = ((np.asarray(embedding[first], dtype=np.float64) - embedding[second]) ** 2).sum(axis=1)
    bias = max(1e-12, float(np.median(near) + np.median(far)) / 2)
    unit = step_of(bias)
    return round(bias / unit) * unit, unit * max(1, round(bias / unit / 10))


def step_of(value: float) -> float:
    """A slider's step for a number above 0: the unit of its second digit."""
    return float(10.0 ** (math.floor(math.log10(value)) - 1))


@dataclass(frozen=True)
class Candidates:
    """Pairs (c, 2) of rows of an embedding that may be asked about, each once and the lower row first, and their
    squared distances (c,): what is searched once, whatever b and m are."""

    pairs: Array
    squared: Array


def candidates(embedding: Array, among: Array, seed: int = 0) -> Candidates:
    """Some rows (a,) of an embedding (n, l), ascending, a ≥ 2, each with its nearest of these; and some at random."""
    rows, total = np.asarray(embedding[among], dtype=np.float64), len(among)
    near = nearest(rows, min(NEAREST, total - 1))[1]
    drawn = np.random.default_rng(seed).integers(total, size=(DRAWN, 2))
    first = np.concatenate([np.repeat(np.arange(total), near.shape[1]), drawn[:, 0]])
    second = np.concatenate([near.ravel(), drawn[:, 1]])
    apart = first != second
    keys = np.unique((np.minimum(first, second) * total + np.maximum(first, second))[apart])
    pairs = np.column_stack([keys // total, keys % total])
    squared = np.concatenate([((rows[part[:, 0]] - rows[part[:, 1]]) ** 2).sum(axis=1)
                              for part in np.array_split(pairs, max(1, len(pairs) // 4096))])
    return Candidates(among[pairs], squared)


def informative_pairs(found: Candidates, bias: float, margin: float, count: int,
                      known: Array | None = None) -> tuple[Array, Array]:
    """Pairs whose squared distance is nearest to where NML's hinge bends: half of those taken for the same, d² < b,
    nearest to b − m, and half of those taken for different, nearest to b + m; in turn, the most doubtful first. Of a
    kind of which there are not so many, there are fewer.

    Args:
        known: (k, 2) pairs that are not asked again.

    Returns:
        Pairs (c, 2), and their squared distances (c,).
    """
    squared = found.squared
    fresh = np.ones(len(squared), dtype=bool) if known is None else (
        ~np.isin(pair_keys(found.pairs), pair_keys(known)))
    kinds = [np.flatnonzero(fresh & (squared < bias)), np.flatnonzero(fresh & (squared >= bias))]
    picked = [kind[np.argsort(np.abs(squared[kind] - edge), kind="stable")][:half]
              for kind, edge, half in zip(kinds, (bias - margin, bias + margin), (count - count // 2, count // 2),
                                          strict=True)]
    turn = np.concatenate([np.arange(len(one)) for one in picked])
    chosen = np.concatenate(picked)[np.argsort(turn, kind="stable")]
    return found.pairs[chosen], squared[chosen]
