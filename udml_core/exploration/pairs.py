"""Pairs of images: distances against b ± m, contradictions, pairs worth labeling."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from udml_core.base.arrays import Array
from udml_core.data.given.pair_sets import pair_keys
from udml_core.numerics.losses.kernels import Linear
from udml_core.numerics.losses.pair_hinge import PairHinge
from udml_core.numerics.neighbors import nearest

BINS = 40
SHOWN_SHARE = 0.98
"""Minimum share of the squared distances that a histogram's axis covers."""
NEAREST = 10
DRAWN = 20_000
"""Number of random candidate pairs, in addition to each image and its nearest images."""


def hinge_arguments(squared: Array, same: Array, bias: float, margin: float) -> Array:
    """Compute the hinge argument m − y(b − d²) of each pair.

    A positive argument is a violation, and its value is the pair's loss.

    Args:
        squared: (p,) squared distances d².
        same: (p,) bool, whether the pair is similar (y = 1) or dissimilar (y = −1).
        bias: Bias b.
        margin: Margin m.

    Returns:
        (p,) arguments.
    """
    hinge = PairHinge(Linear(), bias, margin)
    return hinge.argument(torch.from_numpy(np.asarray(squared)), torch.from_numpy(np.asarray(same))).numpy()


@dataclass(frozen=True)
class DistanceHistograms:
    """Histograms of squared distances before and after training.

    The last bin includes everything beyond it.

    Attributes:
        edges: (41,) bin edges.
        before: (2, 40) counts of similar and dissimilar pairs before training.
        after: (2, 40) counts after training.
    """

    edges: Array
    before: Array
    after: Array


def distance_histograms(before: Array, after: Array, same: Array, reach: float) -> DistanceHistograms:
    """Count squared distances in bins.

    Args:
        before: (p,) squared distances before training.
        after: (p,) squared distances after training.
        same: (p,) bool, whether the pair is similar.
        reach: Minimum end of the axis.
    """
    end = max(reach, *(float(np.quantile(part, SHOWN_SHARE)) for part in (before, after) if len(part)))
    edges = np.linspace(0, end, BINS + 1)
    counts = [np.stack([np.histogram(np.minimum(part[kind], end), edges)[0] for kind in (same, ~same)])
              for part in (before, after)]
    return DistanceHistograms(edges, *counts)


def class_contradictions(pairs: Array, same: Array, labels: Array) -> Array:
    """Return which pairs (p, 2) contradict the true classes, (p,) bool.

    Args:
        pairs: (p, 2) images.
        same: (p,) bool, whether the pair is similar.
        labels: (n,) true classes.
    """
    return (labels[pairs[:, 0]] == labels[pairs[:, 1]]) != same


def contradicting_pairs(pairs: Array, same: Array) -> Array:
    """Return the positions of pairs (p, 2) that contradict other pairs.

    A dissimilar pair is a contradiction if a chain of similar pairs connects its images: a = b and b = c, but a ≠ c.
    """
    _, ends, links = _link_images(pairs, same)
    component = connected_components(links, directed=False)[1]
    return np.flatnonzero(~same & (component[ends[:, 0]] == component[ends[:, 1]]))


def chain(pairs: Array, same: Array, position: int) -> tuple[int, ...]:
    """Return the shortest chain of images that contradicts a pair.

    Args:
        pairs: (p, 2) images.
        same: (p,) bool, whether the pair is similar.
        position: Position of a contradicting pair.

    Returns:
        Images from one end of the pair to the other; consecutive images form similar pairs.
    """
    images, ends, links = _link_images(pairs, same)
    first, last = ends[position]
    parents = breadth_first_order(links, last, directed=False)[1]
    path = [first]
    while path[-1] != last:
        path.append(parents[path[-1]])
    return tuple(images[path].tolist())


def _link_images(pairs: Array, same: Array) -> tuple[Array, Array, csr_array]:
    """Return the images (i,), the pairs (p, 2), and the graph of similar pairs.

    The pairs are positions among the images.
    """
    images, ends = np.unique(pairs, return_inverse=True)
    ends = ends.reshape(pairs.shape)
    links = ends[same]
    return images, ends, csr_array((np.ones(len(links)), (links[:, 0], links[:, 1])), shape=(len(images), len(images)))


def position_of_pair(pairs: Array, pair: tuple[int, ...]) -> int | None:
    """Return the position of a pair, in either order, among pairs (p, 2).

    The position is None if the pair is not among them.
    """
    if len(pair) != 2:
        return None
    positions = np.flatnonzero((np.sort(pairs, axis=1) == sorted(pair)).all(axis=1))
    return int(positions[0]) if len(positions) else None


def first_new_pair(pairs: Array, known: Array) -> int | None:
    """Return the position of the first pair (p, 2) that is new.

    The known pairs (k, 2) may be in either order.
    """
    positions = np.flatnonzero(~np.isin(pair_keys(pairs), pair_keys(known)))
    return int(positions[0]) if len(positions) else None


def default_hinge(embedding: Array, seed: int = 0) -> tuple[float, float]:
    """Choose a bias and a margin for an embedding that was trained without them.

    The bias is midway between the median squared distance of an image to its nearest image and that of two random
    images. The margin is about a tenth of the bias.

    Args:
        embedding: (n, l) with n ≥ 2.
        seed: Seed of the random images.
    """
    near, far = _near_and_random(embedding, seed)
    bias = max(1e-12, (near + far) / 2)
    unit = slider_step(bias)
    return round(bias / unit) * unit, unit * max(1, round(bias / unit / 10))


def labeling_hinge(embedding: Array, seed: int = 0) -> tuple[float, float]:
    """Choose a bias and a margin whose bends lie where an embedding is least certain, if none was learned.

    b - m is the median squared distance of an image to its nearest image, b + m lies a quarter of the way from there
    to that of two random images. Halfway, most pairs of a data set with many classes are obviously different: of
    photographs of 100 species 13 % show the same species there, and 36 to 45 % at these bends.

    Args:
        embedding: (n, l) with n ≥ 2.
        seed: Seed of the random images.
    """
    near, far = _near_and_random(embedding, seed)
    bias = max(1e-12, near + (far - near) / 8)
    unit = slider_step(bias)
    return round(bias / unit) * unit, unit * max(1, round(abs(far - near) / 8 / unit))


def _near_and_random(embedding: Array, seed: int) -> tuple[float, float]:
    """Return the median squared distances of an image to its nearest image, and of two random images."""
    first, second = np.random.default_rng(seed).integers(len(embedding), size=(2, 1000))
    # The nearest of the two neighbors is the image itself, so the larger distance belongs to another image.
    nearest_squared = nearest(embedding, 2, embedding[np.unique(first)])[0].max(axis=1)
    random_squared = ((np.asarray(embedding[first], dtype=np.float64) - embedding[second]) ** 2).sum(axis=1)
    return float(np.median(nearest_squared)), float(np.median(random_squared))


def slider_step(value: float) -> float:
    """Return a slider step for a positive value: the unit of its second digit."""
    return float(10.0 ** (math.floor(math.log10(value)) - 1))


@dataclass(frozen=True)
class Candidates:
    """Candidate pairs for labeling; they do not depend on b and m.

    Attributes:
        pairs: (c, 2) rows of an embedding, each pair once, the lower row first.
        squared: (c,) squared distances.
    """

    pairs: Array
    squared: Array


def candidates(embedding: Array, among: Array, seed: int = 0) -> Candidates:
    """Collect candidate pairs: each image with its nearest images, and random pairs.

    Args:
        embedding: (n, l) embedding.
        among: (a,) rows to choose from, ascending, a ≥ 2.
        seed: Seed of the random pairs.
    """
    rows, total = np.asarray(embedding[among], dtype=np.float64), len(among)
    neighbors = nearest(rows, min(NEAREST, total - 1))[1]
    drawn = np.random.default_rng(seed).integers(total, size=(DRAWN, 2))
    first = np.concatenate([np.repeat(np.arange(total), neighbors.shape[1]), drawn[:, 0]])
    second = np.concatenate([neighbors.ravel(), drawn[:, 1]])
    distinct = first != second
    keys = np.unique((np.minimum(first, second) * total + np.maximum(first, second))[distinct])
    pairs = np.column_stack([keys // total, keys % total])
    squared = np.concatenate([((rows[part[:, 0]] - rows[part[:, 1]]) ** 2).sum(axis=1)
                              for part in np.array_split(pairs, max(1, len(pairs) // 4096))])
    return Candidates(among[pairs], squared)


def informative_pairs(pool: Candidates, bias: float, margin: float, count: int,
                      known: Array | None = None) -> tuple[Array, Array]:
    """Choose pairs whose squared distance is nearest to a bend of NML's hinge.

    Half of them are predicted as similar (d² < b), nearest to b − m. The other half are predicted as dissimilar,
    nearest to b + m. The two kinds alternate, the most uncertain pairs first.

    Args:
        pool: Candidate pairs.
        bias: Bias b.
        margin: Margin m.
        count: Number of pairs; fewer if there are not enough of a kind.
        known: (k, 2) pairs to leave out.

    Returns:
        Pairs (c, 2), and their squared distances (c,).
    """
    squared = pool.squared
    is_new = np.ones(len(squared), dtype=bool) if known is None else (
        ~np.isin(pair_keys(pool.pairs), pair_keys(known)))
    kinds = [np.flatnonzero(is_new & (squared < bias)), np.flatnonzero(is_new & (squared >= bias))]
    picked = [kind[np.argsort(np.abs(squared[kind] - edge), kind="stable")][:half]
              for kind, edge, half in zip(kinds, (bias - margin, bias + margin), (count - count // 2, count // 2),
                                          strict=True)]
    turn = np.concatenate([np.arange(len(positions)) for positions in picked])
    chosen = np.concatenate(picked)[np.argsort(turn, kind="stable")]
    return pool.pairs[chosen], squared[chosen]
