"""Choose a few of many images: diverse, typical or outlying images, or those whose labels would reach furthest.

Each choice is an order, so that more images continue a smaller sample.

References:
    T. Gonzalez, "Clustering to Minimize the Maximum Intercluster Distance", 1985 (farthest first).
    O. Yehuda, A. Dekel, G. Hacohen, D. Weinshall, "Active Learning Through a Covering Lens", NeurIPS 2022 (coverage).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from udml_core.base.arrays import Array, Booleans, Floats, Integers
from udml_core.base.errors import UserError
from udml_core.data.dataset import Dataset
from udml_core.data.given.exclusions import excluded_images
from udml_core.exploration.browsing import neighbor_similarities, outlier_scores
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.refinement.linear import unit_rows

Kind = Literal["diverse", "typical", "outlying", "next"]
KINDS: tuple[Kind, ...] = get_args(Kind)
NEIGHBORS = 10
"""Nearest images that an image covers: as many as a map stores, so that pages and commands draw the same sample."""
FEWEST = 2
"""Images that a sample needs at least."""
MOST = 1000
"""Most images of a sample."""
POOL = 4_000
"""Images among which diverse images are sought: of more, a random part."""
DIMENSIONS = 128
"""Dimensions to which features are projected at random where distances are compared one image at a time."""


@dataclass(frozen=True, eq=False)
class Neighborhoods:
    """Features of images and their nearest images.

    Attributes:
        rows: Features (m, d).
        neighbors: Rows (m, k) of each image's nearest images, nearest first.
        similarities: Their cosine similarities (m, k).
    """

    rows: Array
    neighbors: Integers
    similarities: Floats


def neighborhoods_of(dataset: Dataset, features: Array) -> tuple[Integers, Neighborhoods]:
    """Return the images (m,) of a data set that are not excluded, and their neighborhoods among each other.

    Args:
        dataset: The data set.
        features: Features (n, d) of all images.

    Raises:
        UserError: Nearly all images are excluded.
    """
    images = np.setdiff1d(np.arange(len(dataset)), excluded_images(dataset))
    if len(images) < FEWEST:
        raise UserError(f"A sample is chosen among {FEWEST} images or more; {len(images)} of {dataset.title} are not "
                        "excluded. Include images again on the page Data.")
    rows = unit_rows(features[images])
    neighbors = nearest(rows, min(NEIGHBORS, len(rows) - 1))[1]
    return images, Neighborhoods(rows, neighbors, neighbor_similarities(rows, neighbors))


def sample_rows(kind: Kind, among: Neighborhoods, allowed: Booleans, count: int,
                labeled: Iterable[int] = ()) -> Integers:
    """Return a sample of rows, in the order of the choice.

    Args:
        kind: `diverse`: each image is as far as possible from the images before it. `typical`: images in dense regions,
            none a neighbor of another. `outlying`: the largest local outlier factor first. `next`: each image covers
            most images in the neighbor graph that no label and no image before it covers.
        among: The images.
        allowed: Mask (m,) of the rows to choose from.
        count: Largest number of rows.
        labeled: Rows with labels, which `next` counts as covered and does not choose.
    """
    images = np.flatnonzero(allowed)
    if not len(images) or count < 1:
        return np.zeros(0, np.int64)
    match kind:
        case "diverse":
            return farthest_first(among.rows, images, count)
        case "typical":
            return _apart(among, images, count)
        case "outlying":
            scores = outlier_scores(among.neighbors, among.similarities)[images]
            return images[np.argsort(-scores, kind="stable")][:count]
    return widest_coverage(among.neighbors, allowed, count, labeled)


def farthest_first(rows: Array, images: Integers, count: int) -> Integers:
    """Return images of which each is the farthest from those before; the first is the nearest to the mean.

    Args:
        rows: Features (m, d).
        images: Rows (q,) to choose from; of more than `POOL`, a random part is used.
        count: Largest number of images.
    """
    random = np.random.default_rng(0)
    if len(images) > POOL:
        images = np.sort(random.choice(images, POOL, replace=False))
    points = np.asarray(rows[images], np.float32)
    if points.shape[1] > DIMENSIONS:
        points = points @ random.standard_normal((points.shape[1], DIMENSIONS), dtype=np.float32)
    points = unit_rows(points)
    chosen = [int((points @ points.mean(axis=0)).argmax())]
    nearest = points @ points[chosen[0]]  # cosine similarity to the most similar chosen image
    while len(chosen) < min(count, len(images)):
        nearest[chosen[-1]] = np.inf
        chosen.append(int(nearest.argmin()))
        np.maximum(nearest, points @ points[chosen[-1]], out=nearest)
    return images[chosen]


def _apart(among: Neighborhoods, images: Integers, count: int) -> Integers:
    """Return images by falling mean similarity to their neighbors, leaving out neighbors of chosen images."""
    density = among.similarities.mean(axis=1)
    blocked, chosen = np.zeros(len(density), bool), list[int]()
    for row in images[np.argsort(-density[images], kind="stable")]:
        if len(chosen) == count:
            break
        if not blocked[row]:
            chosen.append(int(row))
            blocked[among.neighbors[row]] = True
            blocked[row] = True
    return np.array(chosen, np.int64)


def widest_coverage(neighbors: Integers, allowed: Booleans, count: int, labeled: Iterable[int] = ()) -> Integers:
    """Return images of which each has most uncovered images around it, by lazy greedy maximization.

    An image covers itself, its neighbors, and the images whose neighbor it is.

    Args:
        neighbors: Rows (m, k) of each image's neighbors.
        allowed: Mask (m,) of the images to choose from and to cover.
        count: Largest number of images.
        labeled: Images that are covered with their surroundings, and not chosen.
    """
    starts, around = _both_ways(neighbors)
    uncovered = allowed.copy()
    known = np.fromiter(labeled, np.int64)
    for row in known:
        uncovered[around[starts[row] : starts[row + 1]]] = False
    uncovered[known] = False
    free = allowed.copy()
    free[known] = False
    images = np.flatnonzero(free)
    gains = np.add.reduceat(np.append(uncovered[around], False).astype(np.int32), starts[:-1])
    gains = np.where(np.diff(starts) > 0, gains, 0) + uncovered
    queue = [(-int(gains[row]), int(row)) for row in images]
    heapq.heapify(queue)
    chosen: list[int] = []
    while queue and len(chosen) < count:
        promised, row = heapq.heappop(queue)
        near = around[starts[row] : starts[row + 1]]
        gain = int(uncovered[near].sum()) + int(uncovered[row])
        if gain < -promised:  # images chosen meanwhile cover a part; the image waits for its turn again
            heapq.heappush(queue, (-gain, row))
            continue
        chosen.append(row)
        uncovered[near] = False
        uncovered[row] = False
    return np.array(chosen, np.int64)


def coverage_of(neighbors: Integers, allowed: Booleans, images: Integers, labeled: Iterable[int] = ()) -> Floats:
    """Return the share of the allowed images that labels and the first 1, 2, … of some images (c,) cover.

    Args:
        neighbors: Rows (m, k) of each image's neighbors.
        allowed: Mask (m,) of the images to cover.
        images: Chosen images (c,), in order.
        labeled: Images that are covered with their surroundings.
    """
    starts, around = _both_ways(neighbors)
    open_images = allowed.copy()
    shares = []
    for position, row in enumerate([*(known := list(labeled)), *images.tolist()]):
        open_images[row] = False
        open_images[around[starts[row] : starts[row + 1]]] = False
        if position >= len(known):
            shares.append(1 - open_images.sum() / max(1, allowed.sum()))
    return np.array(shares)


def _both_ways(neighbors: Integers) -> tuple[Integers, Integers]:
    """Return the neighbors of each row in both directions: the rows' starts (m + 1,) in a list of neighbors."""
    from udml_core.exploration.label_spread import neighbor_edges  # here: SciPy slows the start of the command line

    forward = neighbor_edges(neighbors)
    both = (forward + forward.T).tocsr()
    return both.indptr, both.indices
