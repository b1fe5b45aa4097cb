"""Triplets, pairs and batches from labels, pseudo-labels and affinities.

Every draw derives from a generator that the caller seeds.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor


def generator(seed: int, epoch: int) -> torch.Generator:
    """The random stream of one epoch, so that a resumed run draws what an uninterrupted one would have drawn."""
    return torch.Generator().manual_seed((seed * 1_000_003 + epoch) & 0x7FFF_FFFF_FFFF_FFFF)


def cluster_triplets(labels: Tensor, per_anchor: int, most: int, random: torch.Generator) -> Tensor:
    """Triplets whose anchor and positive share a cluster and whose negative does not, (t, 3) int64.

    Every point of a cluster of two or more is the anchor `per_anchor` times, with uniform positives and negatives;
    points alone in their cluster serve as negatives only. Above `most` triplets a uniform sample of them remains.

    Args:
        labels: (n,) int64, 0 … c−1.

    Returns:
        An empty (0, 3) tensor where no cluster has two points, or only one cluster exists.
    """
    members, starts, sizes = _groups(labels)
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
    """Pairs of points that share a label, and as many that do not: (p, 2) int64 and whether they are the same (p,).

    At most `most`, and no more of a kind than there are different pairs of the same; drawn with replacement.

    Args:
        labels: (n,) int64, not negative.

    Returns:
        Empty tensors where no label has two points, or there is only one label.
    """
    members, starts, sizes = _groups(labels)
    anchors = torch.nonzero(sizes[labels] > 1).squeeze(1)
    half = min(most // 2, int((sizes * (sizes - 1) // 2).sum()))
    if int((sizes > 0).sum()) < 2 or not half:
        return torch.zeros(0, 2, dtype=torch.int64), torch.zeros(0, dtype=torch.bool)
    anchor = anchors[torch.randint(len(anchors), (half,), generator=random)]
    other = torch.randint(len(labels), (half,), generator=random)
    same = torch.stack([anchor, _partner(anchor, labels, members, starts, sizes, random)], dim=1)
    different = torch.stack([other, _outsider(labels[other], members, starts, sizes, random)], dim=1)
    return torch.cat([same, different]), torch.arange(2 * half) < half


def balanced_draw(same: Tensor, count: int, random: torch.Generator) -> Tensor:
    """`count` positions in a list of pairs, drawn with replacement, (count,) int64: of each kind half, in random order.

    Args:
        same: (p,) bool, of both kinds at least one.
    """
    kinds = [torch.nonzero(same == kind).squeeze(1) for kind in (True, False)]
    halves = (count // 2, count - count // 2)
    drawn = torch.cat([kind[torch.randint(len(kind), (half,), generator=random)]
                       for kind, half in zip(kinds, halves, strict=True)])
    return drawn[torch.randperm(count, generator=random)]


def pair_batches(labels: Tensor, size: int, random: torch.Generator) -> Iterator[Tensor]:
    """Batches of size/2 anchors, each followed by a partner of its cluster, (size,) int64: even rows are anchors.

    One pass takes every point of a cluster of two or more as an anchor once, in random order; what does not fill a
    batch is left for another epoch's order, unless it is all there is.
    """
    members, starts, sizes = _groups(labels)
    anchors = torch.nonzero(sizes[labels] > 1).squeeze(1)
    order = anchors[torch.randperm(len(anchors), generator=random)]
    half = min(size // 2, len(order))
    for start in range(0, len(order) - half + 1, max(1, half)):
        anchor = order[start : start + half]
        if len(anchor):
            partner = _partner(anchor, labels, members, starts, sizes, random)
            yield torch.stack([anchor, partner], dim=1).flatten()


def neighbor_batches(neighbors: Tensor, size: int, random: torch.Generator) -> Iterator[Tensor]:
    """Batches of random seeds, each followed by its nearest, (size,) int64 (PLM section 3.1.1).

    One pass draws about n/size batches; every point is a seed at most once, and may come in several batches.

    Args:
        neighbors: (n, g − 1) int64, the nearest of each point, itself excluded.
    """
    count, others = neighbors.shape
    seeds = max(1, size // (others + 1))
    order = torch.randperm(count, generator=random)
    for start in range(max(1, count // size)):
        seed = order[start * seeds:(start + 1) * seeds]
        yield torch.cat([seed[:, None], neighbors[seed]], dim=1).flatten()


def affinity_triplets(neighbors: Tensor, affinities: Tensor, anchors: Tensor) -> Tensor:
    """Triplets of each anchor with its neighbors, sorted by falling affinity: the j-th of the upper half is the
    positive, the j-th of the lower half the negative (SSDML), (a·k/2, 3) int64. Of an odd k the last is left out.

    Args:
        neighbors, affinities: (a, k). anchors: (a,).
    """
    half = neighbors.shape[1] // 2
    ordered = neighbors.gather(1, affinities.argsort(dim=1, descending=True, stable=True))
    rows = anchors[:, None].expand(-1, half)
    return torch.stack([rows, ordered[:, :half], ordered[:, half:2 * half]], dim=2).reshape(-1, 3)


def weighted_edges(neighbors: Tensor, weights: Tensor, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """One neighbor of every point, drawn by its weight, (n,) int64, and what it counts, (n,): the point's total weight
    over the points' mean. The mean of what the drawn edges have, times what they count, is thus expected to be the
    weighted mean over all edges. A point without weight counts as 0.

    Args:
        neighbors: (n, k) int64. weights: (n, k), at least 0.
    """
    chosen = torch.multinomial(weights.clamp_min(1e-12), 1, generator=random)
    totals = weights.sum(1)
    return neighbors.gather(1, chosen).squeeze(1), totals / totals.mean().clamp_min(1e-12)


def semi_hard_triplets(embeddings: Tensor, labels: Tensor, margin: float, random: torch.Generator) -> Tensor:
    """One triplet for each row of a batch of pairs (see `pair_batches`), positions within the batch, (t, 3) int64.

    The positive is the row's partner. The negative is drawn among the semi-hard ones,
    δ²(a,p) < δ²(a,n) < δ²(a,p) + margin, and among all of other clusters where there is none.

    Args:
        embeddings: (b, l). labels: (b,) their clusters.

    Returns:
        Fewer than b rows where a row has no other cluster in the batch.
    """
    rows = torch.arange(len(labels))
    partner = rows ^ 1
    squared = torch.cdist(embeddings, embeddings).square()
    allowed = labels[:, None] != labels
    own = squared[rows, partner][:, None]
    semi_hard = allowed & (squared > own) & (squared < own + margin)
    pool = torch.where(semi_hard.any(1, keepdim=True), semi_hard, allowed)
    kept = torch.nonzero(pool.any(1)).squeeze(1)
    scores = torch.rand(pool.shape, generator=random).masked_fill(~pool, -1.0)
    return torch.stack([kept, partner[kept], scores[kept].argmax(1)], dim=1)


def _groups(labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Points ordered by cluster, where each cluster starts in that order, and its size."""
    sizes = torch.bincount(labels)
    return torch.argsort(labels, stable=True), sizes.cumsum(0) - sizes, sizes


def _partner(anchor: Tensor, labels: Tensor, members: Tensor, starts: Tensor, sizes: Tensor,
             random: torch.Generator) -> Tensor:
    """A uniform other member of each anchor's cluster."""
    place = torch.empty_like(members)
    place[members] = torch.arange(len(members))
    group = labels[anchor]
    others = sizes[group] - 1
    step = 1 + (torch.rand(len(anchor), generator=random, dtype=torch.float64) * others).long()
    return members[starts[group] + (place[anchor] - starts[group] + step) % sizes[group]]


def _outsider(group: Tensor, members: Tensor, starts: Tensor, sizes: Tensor, random: torch.Generator) -> Tensor:
    """A uniform point outside each cluster: positions are counted past the cluster's block."""
    outside = len(members) - sizes[group]
    position = (torch.rand(len(group), generator=random, dtype=torch.float64) * outside).long()
    return members[torch.where(position >= starts[group], position + sizes[group], position)]
