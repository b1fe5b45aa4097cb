"""The images whose nearest neighbors changed most through training."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import numpy as np

from udml_core.base.arrays import Array
from udml_core.exploration.map_values import neighbors_kept
from udml_core.numerics.explanations import Affinities, Clusters, Explanation, Pairs, Triplets, Uncertainty
from udml_core.numerics.neighbors import nearest

MOST_QUERIES = 400
LARGEST_GALLERY = 6000
"""More images are thinned to these numbers, evenly spread, so that the answer takes a fraction of a second."""


def most_changed(before: Array, after: Array, labels: Array | None = None, k: int = 10,
                 most_queries: int = MOST_QUERIES, largest_gallery: int = LARGEST_GALLERY) -> Array:
    """Order images by the change of their nearest neighbors, largest change first.

    With labels, the change is the difference of hits among the k nearest neighbors, in either direction; of equal
    changes, a gain precedes a loss. Of remaining ties, and of images without labels, images with near neighbors before
    training come first: the results of an outlier, such as a strip among photographs, change much and show nothing.
    Then the number of neighbors that are the same before and after decides, fewest first.

    Args:
        before: Embeddings (n, l) before training.
        after: Embeddings (n, m) of the same images after training.
        labels: Their classes (n,), −1 for unknown.
        k: Number of neighbors.
        most_queries: More images are thinned to so many queries.
        largest_gallery: More images are thinned to so many images to search.

    Returns:
        Rows (q,) of the queries, most interesting first; empty for fewer than two images.
    """
    gallery = evenly_spread(len(before), largest_gallery)
    if len(gallery) < 2:
        return np.zeros(0, dtype=np.int64)
    queries = evenly_spread(len(gallery), most_queries)
    k = min(k, len(gallery) - 1)
    (far, first), (_, second) = (nearest(points[gallery], k, own=queries) for points in (before, after))
    kept, is_far = neighbors_kept(first, second), ~_has_near(far)
    if labels is None:
        return gallery[queries[np.lexsort((kept, is_far))]]
    classes = np.asarray(labels)[gallery]
    own = classes[queries][:, None]
    hits = [((classes[neighbors] == own) & (own >= 0)).sum(axis=1) for neighbors in (first, second)]
    gain = hits[1] - hits[0]
    return gallery[queries[np.lexsort((kept, is_far, -gain, -np.abs(gain)))]]


def _has_near(distances: Array) -> Array:
    """Return whether the neighbors of each image, by their squared distances (q, k), are at most as far as usual."""
    mean = distances.mean(axis=1)
    near: Array = mean <= np.median(mean)
    return near


def gains_and_losses_in_turn(gains: Sequence[int]) -> list[int]:
    """Order changes so that gains and losses take turns, largest first, and the more frequent kind leads.

    Args:
        gains: A change for each row, negative for a loss.

    Returns:
        Rows; those without a change come last.
    """
    order = sorted(range(len(gains)), key=lambda row: -abs(gains[row]))
    kinds = [[row for row in order if gains[row] * sign > 0] for sign in (1, -1)]
    leading, other = sorted(kinds, key=len, reverse=True)
    turns = [row for pair in zip_longest(leading, other) for row in pair if row is not None]
    return [*turns, *(row for row in order if not gains[row])]


def first_query(before: Array, after: Array, labels: Array | None, k: int = 10) -> int:
    """Return the row of the image that training improves most, the query that a played training begins with.

    Without classes, the results of an image with near neighbors that change most, as in `most_changed`.

    Args:
        before: Embedding (s, d) before training.
        after: Embedding (s, l) of the same images after it.
        labels: Classes (s,); None without classes.
        k: Number of neighbors, at most s − 1.
    """
    if len(before) < 2:
        return 0
    (far, first), (_, last) = (nearest(points, min(k, len(points) - 1)) for points in (before, after))
    if labels is None:
        usual = np.flatnonzero(_has_near(far))
        return int(usual[clearest_row(first[usual], last[usual])])
    return clearest_row(first, last, (labels[first] == labels[:, None], labels[last] == labels[:, None]))


def clearest_row(first: Array, last: Array, hits: tuple[Array, Array] | None = None) -> int:
    """Return the row that gains most hits; without classes, the row that keeps fewest neighbors.

    Args:
        first: Rows (s, k) of the neighbors before training.
        last: Rows (s, k) of the neighbors after it.
        hits: Whether each neighbor has the image's class, before and after; None without classes.
    """
    if hits is not None:
        return int((hits[1].sum(axis=1) - hits[0].sum(axis=1)).argmax())
    return int((first[:, :, None] == last[:, None, :]).sum(axis=(1, 2)).argmin())


def recorded_rows(record: Explanation) -> Array | None:
    """Return the training images (m,) that a record says something about, ascending; None if it names no images.

    A cluster of one image says nothing, a triplet is shown at its anchor, and pairs at an image that has similar and
    dissimilar ones, if there is any.
    """
    match record:
        case Clusters():
            return np.flatnonzero(np.bincount(record.labels)[record.labels] > 1)
        case Triplets():
            return np.unique(record.anchor)
        case Affinities():
            return np.unique(record.points)
        case Pairs():
            similar, dissimilar = (np.unique(record.pairs[record.same == kind]) for kind in (True, False))
            both = np.intersect1d(similar, dissimilar)
            return both if len(both) else np.union1d(similar, dissimilar)
        case Uncertainty():
            return np.arange(len(record.sigma))
        case _:
            return None


def evenly_spread(count: int, limit: int) -> Array:
    """Return at most `limit` evenly spread rows of `count`, ascending (r,)."""
    return np.arange(count) if count <= limit else np.linspace(0, count - 1, limit).astype(np.int64)


def classes_in_turn(labels: Array) -> Array:
    """Return rows (n,) so that the first row of every class comes first, then every second one, and so on.

    Args:
        labels: Classes (n,) of a list, most important first.
    """
    turns: dict[int, int] = {}
    turn_of = np.empty(len(labels), dtype=np.int64)
    for row, label in enumerate(np.asarray(labels).tolist()):
        turn_of[row] = turns[label] = turns.get(label, -1) + 1
    return np.argsort(turn_of, kind="stable")
