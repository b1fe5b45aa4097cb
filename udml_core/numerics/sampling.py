"""Triplets, pairs and batches drawn from labels, pseudo-labels and affinities.

Every random draw uses a generator that the caller seeds.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor


def generator(seed: int, epoch: int) -> torch.Generator:
    """Return the random generator of one epoch.

    A resumed run then draws the same as an uninterrupted run.
    """
    return torch.Generator().manual_seed((seed * 1_000_003 + epoch) & 0x7FFF_FFFF_FFFF_FFFF)


def cluster_triplets(labels: Tensor, per_anchor: int, most: int, random: torch.Generator) -> Tensor:
    """Draw triplets with anchor and positive from one cluster, (t, 3) int64.

    The negative is from another cluster. Every point of a cluster with at least two points is an anchor `per_anchor`
    times, with uniformly drawn positives and negatives. Singletons are negatives only.

    Args:
        labels: (n,) int64, the clusters 0 … c−1.
        per_anchor: Number of triplets of each anchor.
        most: Maximum number of triplets. If there would be more, `most` anchors are drawn uniformly.
        random: The generator.

    Returns:
        The triplets; none if no cluster has two points, or if there is only one cluster.
    """
    members, starts, sizes = _group_by_cluster(labels)
    anchors = torch.nonzero(sizes[labels] > 1).squeeze(1)
    if len(sizes) < 2 or not len(anchors):
        return torch.zeros(0, 3, dtype=torch.int64)
    total = len(anchors) * per_anchor
    if total > most:
        anchor = anchors[torch.randint(len(anchors), (most,), generator=random)]
    else:
        anchor = anchors.repeat_interleave(per_anchor)
    positive = _partner(anchor, labels, members, starts, sizes, random)
    negative = _outsider(labels[anchor], members, starts, sizes, random)
    return torch.stack([anchor, positive, negative], dim=1)


def label_pairs(labels: Tensor, most: int, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw equally many similar and dissimilar pairs of labeled points.

    The draw is with replacement.

    Args:
        labels: (n,) int64, not negative.
        most: Maximum number of pairs. There are also at most twice as many as distinct similar pairs.
        random: The generator.

    Returns:
        The pairs (p, 2) int64, and whether the labels are equal (p,) bool. Both are empty if no label has two points,
        or if there is only one label.
    """
    members, starts, sizes = _group_by_cluster(labels)
    anchors = torch.nonzero(sizes[labels] > 1).squeeze(1)
    half = min(most // 2, int((sizes * (sizes - 1) // 2).sum()))
    if int((sizes > 0).sum()) < 2 or not half:
        return torch.zeros(0, 2, dtype=torch.int64), torch.zeros(0, dtype=torch.bool)
    anchor = anchors[torch.randint(len(anchors), (half,), generator=random)]
    other = torch.randint(len(labels), (half,), generator=random)
    similar = torch.stack([anchor, _partner(anchor, labels, members, starts, sizes, random)], dim=1)
    dissimilar = torch.stack([other, _outsider(labels[other], members, starts, sizes, random)], dim=1)
    return torch.cat([similar, dissimilar]), torch.arange(2 * half) < half


def balanced_draw(same: Tensor, count: int, random: torch.Generator) -> Tensor:
    """Draw positions in a list of pairs, half similar and half dissimilar, (count,).

    They are int64, and drawn with replacement.

    Args:
        same: (p,) bool, whether each pair is similar; at least one must be similar and one dissimilar.
        count: Number of positions, which come in random order.
        random: The generator.
    """
    pools = [torch.nonzero(same == similar).squeeze(1) for similar in (True, False)]
    halves = (count // 2, count - count // 2)
    drawn = torch.cat([pool[torch.randint(len(pool), (half,), generator=random)]
                       for pool, half in zip(pools, halves, strict=True)])
    return drawn[torch.randperm(count, generator=random)]


def pair_batches(labels: Tensor, size: int, random: torch.Generator) -> Iterator[Tensor]:
    """Yield batches of anchors, each followed by a partner, (size,) int64.

    The partner is from the anchor's cluster. Even positions are anchors. One pass visits the points of clusters with at
    least two points in random order. The remainder that does not fill a batch is skipped, unless it is the only batch.

    Args:
        labels: (n,) int64, the clusters 0 … c−1.
        size: Number of points in a batch.
        random: The generator.
    """
    members, starts, sizes = _group_by_cluster(labels)
    anchors = torch.nonzero(sizes[labels] > 1).squeeze(1)
    order = anchors[torch.randperm(len(anchors), generator=random)]
    half = min(size // 2, len(order))
    for start in range(0, len(order) - half + 1, max(1, half)):
        anchor = order[start : start + half]
        if len(anchor):
            partner = _partner(anchor, labels, members, starts, sizes, random)
            yield torch.stack([anchor, partner], dim=1).flatten()


def neighbor_batches(neighbors: Tensor, size: int, random: torch.Generator) -> Iterator[Tensor]:
    """Yield batches of random seeds, each followed by its nearest neighbors, (size,).

    This is PLM section 3.1.1; the batches are int64. One pass has about n/size batches. Every point is a seed at most
    once, but may occur in several batches.

    Args:
        neighbors: (n, g − 1) int64, the nearest neighbors of each point, without the point itself.
        size: Number of points in a batch.
        random: The generator.
    """
    count, others = neighbors.shape
    seeds = max(1, size // (others + 1))
    order = torch.randperm(count, generator=random)
    for start in range(max(1, count // size)):
        seed = order[start * seeds:(start + 1) * seeds]
        yield torch.cat([seed[:, None], neighbors[seed]], dim=1).flatten()


def affinity_triplets(neighbors: Tensor, affinities: Tensor, anchors: Tensor) -> Tensor:
    """Build triplets of anchors and neighbors by affinity (SSDML), (a·⌊k/2⌋, 3).

    The triplets are int64. The neighbors are sorted by decreasing affinity. The j-th neighbor of the first half is the
    positive, the j-th of the second half the negative. If k is odd, the last neighbor is not used.

    Args:
        neighbors: (a, k) int64.
        affinities: (a, k).
        anchors: (a,) int64.
    """
    half = neighbors.shape[1] // 2
    ordered = neighbors.gather(1, affinities.argsort(dim=1, descending=True, stable=True))
    rows = anchors[:, None].expand(-1, half)
    return torch.stack([rows, ordered[:, :half], ordered[:, half:2 * half]], dim=2).reshape(-1, 3)


def weighted_edges(neighbors: Tensor, weights: Tensor, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw one neighbor of every point with probability proportional to its weight.

    Args:
        neighbors: (n, k) int64.
        weights: (n, k), at least 0.
        random: The generator.

    Returns:
        The neighbors (n,) int64, and the importance of each draw (n,): the point's total weight divided by the mean
        total weight. The mean of a quantity over the drawn edges, weighted by importance, is then an unbiased estimate
        of its weighted mean over all edges.
    """
    drawn = torch.multinomial(weights.clamp_min(1e-12), 1, generator=random)
    totals = weights.sum(1)
    return neighbors.gather(1, drawn).squeeze(1), totals / totals.mean().clamp_min(1e-12)


def semi_hard_triplets(distances: Tensor, labels: Tensor, margin: float, random: torch.Generator) -> Tensor:
    """Draw one triplet for each row of a batch of pairs, (t, 3) int64.

    The triplets are positions in the batch (see `pair_batches`). The positive is the row's partner. The negative is
    drawn from the semi-hard negatives, d(a,p) < d(a,n) < d(a,p) + margin, or from all rows of other clusters if no
    negative is semi-hard.

    Args:
        distances: d (b, b), plain or squared.
        labels: (b,) int64, the clusters.
        margin: Width of the semi-hard range.
        random: The generator.

    Returns:
        The triplets; rows without another cluster in the batch have none.
    """
    rows = torch.arange(len(labels))
    partner = rows ^ 1  # positions 2i and 2i + 1 are partners
    different = labels[:, None] != labels
    to_partner = distances[rows, partner][:, None]
    semi_hard = different & (distances > to_partner) & (distances < to_partner + margin)
    pool = torch.where(semi_hard.any(1, keepdim=True), semi_hard, different)
    anchors = torch.nonzero(pool.any(1)).squeeze(1)
    # The largest of independent random scores is a uniform draw from each row's pool.
    scores = torch.rand(pool.shape, generator=random).masked_fill(~pool, -1.0)
    return torch.stack([anchors, partner[anchors], scores[anchors].argmax(1)], dim=1)


def _group_by_cluster(labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the points ordered by cluster, the start of each cluster, and the sizes.

    A start is the position of the cluster's first point in that order.
    """
    sizes = torch.bincount(labels)
    return torch.argsort(labels, stable=True), sizes.cumsum(0) - sizes, sizes


def _partner(anchor: Tensor, labels: Tensor, members: Tensor, starts: Tensor, sizes: Tensor,
             random: torch.Generator) -> Tensor:
    """Draw another member of each anchor's cluster uniformly."""
    position = torch.empty_like(members)
    position[members] = torch.arange(len(members))
    cluster = labels[anchor]
    others = sizes[cluster] - 1
    # A step of 1 to size − 1 around the cluster's block never returns to the anchor, so nothing must be redrawn.
    step = 1 + (torch.rand(len(anchor), generator=random, dtype=torch.float64) * others).long()
    return members[starts[cluster] + (position[anchor] - starts[cluster] + step) % sizes[cluster]]


def _outsider(cluster: Tensor, members: Tensor, starts: Tensor, sizes: Tensor, random: torch.Generator) -> Tensor:
    """Draw a point outside each cluster uniformly."""
    outside = len(members) - sizes[cluster]
    position = (torch.rand(len(cluster), generator=random, dtype=torch.float64) * outside).long()
    # The outside points are the ordered points without the cluster's block: later positions skip the block.
    return members[torch.where(position >= starts[cluster], position + sizes[cluster], position)]
