"""Which pairs of images are worth asking a person about."""

from __future__ import annotations

from typing import Any

import numpy as np

from udml_core.neighbors import nearest

Array = np.ndarray[Any, Any]
NEAREST = 10
DRAWN = 20_000
"""Pairs at random among which, beside each image's nearest, is looked."""


def informative_pairs(embedding: Array, bias: float, margin: float, count: int, known: Array | None = None,
                      seed: int = 0) -> tuple[Array, Array]:
    """Pairs whose squared distance is nearest to where NML's hinge bends: half of those taken for the same, d² < b,
    nearest to b − m, and half of those taken for different, nearest to b + m; in turn, the most doubtful first.

    Looked for among each image's nearest and some random pairs. Of a kind of which there are not so many, there are
    fewer.

    Args:
        embedding: (n, l), n ≥ 2. known: (k, 2) pairs that are not asked again.

    Returns:
        Pairs (c, 2) of rows, the lower first, and their squared distances (c,).
    """
    total = len(embedding)
    first, second = _candidates(embedding, seed)
    fresh = first * total + second
    if known is not None and len(known):
        ordered = np.sort(np.asarray(known), axis=1)
        fresh = fresh[~np.isin(fresh, ordered[:, 0] * total + ordered[:, 1])]
    pairs = np.column_stack([fresh // total, fresh % total])
    rows = np.asarray(embedding, dtype=np.float64)
    squared = np.concatenate([((rows[part[:, 0]] - rows[part[:, 1]]) ** 2).sum(axis=1)
                              for part in np.array_split(pairs, max(1, len(pairs) // 4096))])
    kinds = [np.flatnonzero(squared < bias), np.flatnonzero(squared >= bias)]
    picked = [kind[np.argsort(np.abs(squared[kind] - edge), kind="stable")][:half]
              for kind, edge, half in zip(kinds, (bias - margin, bias + margin), (count - count // 2, count // 2),
                                          strict=True)]
    turn = np.concatenate([np.arange(len(one)) for one in picked])
    chosen = np.concatenate(picked)[np.argsort(turn, kind="stable")]
    return pairs[chosen], squared[chosen]


def _candidates(embedding: Array, seed: int) -> tuple[Array, Array]:
    """Each pair once, the lower row first, (c,) each."""
    total = len(embedding)
    near = nearest(embedding, min(NEAREST, total - 1))[1]
    drawn = np.random.default_rng(seed).integers(total, size=(DRAWN, 2))
    first = np.concatenate([np.repeat(np.arange(total), near.shape[1]), drawn[:, 0]])
    second = np.concatenate([near.ravel(), drawn[:, 1]])
    keys = np.unique(np.minimum(first, second) * total + np.maximum(first, second))
    first, second = keys // total, keys % total
    apart = first != second
    return first[apart], second[apart]
