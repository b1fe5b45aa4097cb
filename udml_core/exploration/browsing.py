"""Browse a data set: find, order and filter its images, find near-duplicates and outliers by frozen features."""

from __future__ import annotations

import re
from typing import Literal, get_args

import numpy as np

from udml_core.base.arrays import Array, Floats, Integers
from udml_core.data.dataset import Dataset
from udml_core.exploration.density import outlier_score
from udml_core.numerics.refinement.linear import unit_rows

Order = Literal["index", "class", "name", "outlier", "duplicate"]
ORDERS: tuple[Order, ...] = get_args(Order)
BLOCK = 4096
"""Images whose similarities are computed at once."""


def neighbor_similarities(embeddings: Array, neighbors: Integers) -> Floats:
    """Return the cosine similarity of each image to its neighbors.

    Args:
        embeddings: Rows (n, d), of any length.
        neighbors: Rows (n, k), 0 … n−1, of each image's neighbors.

    Returns:
        Similarities (n, k) float32, −1 … 1.
    """
    similarities = np.empty(neighbors.shape, np.float32)
    for start in range(0, len(neighbors), BLOCK):
        rows = unit_rows(embeddings[start : start + BLOCK])
        for column in range(neighbors.shape[1]):
            others = unit_rows(embeddings[neighbors[start : start + BLOCK, column]])
            similarities[start : start + BLOCK, column] = np.einsum("nd,nd->n", rows, others)
    return similarities.clip(-1.0, 1.0)


def most_similar(rows: Array, images: Integers, query: int, count: int) -> Integers:
    """Return the images (k,) most similar to a query by cosine, most similar first, without the query.

    Args:
        rows: Features (n, d), of any length.
        images: The images (m,) among which to search.
        query: The query.
        count: Number of images to find.
    """
    wanted, others = unit_rows(rows[query : query + 1])[0], images[images != query]
    blocks = (others[start : start + BLOCK] for start in range(0, len(others), BLOCK))
    similarities = np.concatenate([np.empty(0, np.float32), *(unit_rows(rows[block]) @ wanted for block in blocks)])
    return others[np.argsort(-similarities, kind="stable")[:count]]


def outlier_scores(neighbors: Integers, similarities: Floats) -> Array:
    """Return each image's local outlier factor (n,), by the distances of unit rows; see `density.outlier_score`.

    Args:
        neighbors: Rows (n, k) of each image's neighbors, nearest first.
        similarities: Their cosine similarities (n, k).
    """
    return outlier_score(np.sqrt(np.maximum(0.0, 2.0 - 2.0 * similarities)), neighbors)


def near_duplicates(neighbors: Integers, similarities: Floats, least: float) -> tuple[Integers, Floats]:
    """Return the pairs of images that are at least as similar as a cosine, most similar first.

    Args:
        neighbors: Rows (n, k) of each image's neighbors.
        similarities: Their similarities (n, k).
        least: The least cosine similarity.

    Returns:
        Pairs i < j (p, 2) int64, each once, and their similarities (p,).
    """
    rows, columns = np.nonzero(similarities >= least)
    ends = np.stack([rows, neighbors[rows, columns].astype(np.int64)], axis=1)
    pairs, first = np.unique(np.sort(ends, axis=1), axis=0, return_index=True)
    values = similarities[rows[first], columns[first]]
    falling = np.argsort(-values, kind="stable")
    return pairs[falling], values[falling]


def find_images(dataset: Dataset, label: int | None = None, text: str = "") -> Integers:
    """Return the images of a class whose name contains a text, in upper or lower case.

    Args:
        dataset: The data set.
        label: The class; None for all.
        text: The text; all names contain an empty text.
    """
    members = dataset.members(label)
    wanted = text.strip().casefold()
    if not wanted:
        return members
    return np.array([index for index in members if wanted in dataset.names[index].casefold()], dtype=np.int64)


def find_image(dataset: Dataset, text: str) -> int | None:
    """Return the first image with a number, file name or class.

    The number counts first, then a whole name or class, then a part of one. Case does not matter.

    Args:
        dataset: The data set.
        text: Number, file name, class, or a part of these names.

    Returns:
        Data set index; None if nothing matches.
    """
    wanted = text.strip().casefold()
    if wanted.isdecimal() and int(wanted) < len(dataset):
        return int(wanted)
    if not wanted:
        return None
    names = [name.casefold() for name in dataset.names]
    classes = [] if dataset.labels is None else [name.casefold() for name in dataset.class_names]
    for position, name in enumerate(names):
        if wanted in (name, name.rsplit("/", 1)[-1]):
            return position
    label = next((at for at, name in enumerate(classes) if name == wanted), None)
    if label is None:
        within = next((at for at, name in enumerate(names) if wanted in name), None)
        if within is not None:
            return within
        label = next((at for at, name in enumerate(classes) if wanted in name), None)
    if label is None or dataset.labels is None:
        return None
    rows = np.flatnonzero(dataset.labels == label)
    return int(rows[0]) if len(rows) else None


def order_images(dataset: Dataset, indices: Integers, order: Order, values: Array | None = None) -> Integers:
    """Return images in an order; equal images keep the order of the data set.

    Args:
        dataset: The data set.
        indices: The images (m,), ascending.
        order: By index, class, file name (numbers in it by value), outlier score (largest first), or similarity of the
            nearest neighbor (largest first).
        values: The outlier score or the similarity of the nearest neighbor of all images (n,), for the last two orders.
    """
    match order:
        case "class" if dataset.labels is not None:
            return indices[np.argsort(dataset.labels[indices], kind="stable")]
        case "name":
            keys = [_by_number(dataset.names[index]) for index in indices]
            return indices[np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)]
        case "outlier" | "duplicate" if values is not None:
            return indices[np.argsort(-values[indices], kind="stable")]
    return indices


def _by_number(name: str) -> list[tuple[int, str]]:
    """Return a sorting key that puts image 2 before image 10."""
    parts = re.split(r"(\d+)", name.rsplit("/", 1)[-1].casefold())
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in [*parts, name]]
