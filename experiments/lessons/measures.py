"""Lesson 9: what recall, MAP@R and NMI measure."""

from __future__ import annotations

from typing import Any

import numpy as np

from udml_core.base.arrays import Array
from udml_core.data import catalog
from udml_core.exploration.lessons import digits_vectors
from udml_core.numerics.evaluation import kmeans_clusters, rankings

ROWS = (426, 699, 1149, 1305, 1571, 709, 1219, 1750, 1631, 572, 1117)
"""The query, an 8, and ten images to search: four 8s, three 3s and three 1s, drawn so that rank 1 is a miss."""
CLUSTERS = 3


def first_ranking() -> Array:
    """Return the ten images by their distance to the query, numbered from 0."""
    order: Array = next(rankings(digits_vectors()[list(ROWS)], len(ROWS) - 1))[1][0] - 1
    return order


def first_clusters() -> Array:
    """Return the k-means clusters of the query and the ten images."""
    return kmeans_clusters(digits_vectors()[list(ROWS)], CLUSTERS)


def measures() -> dict[str, Any]:
    """Return the pixels of the query and the ten images, and their classes."""
    dataset = catalog.load("digits")
    images = [np.asarray(dataset.images[index].convert("L")).ravel() for index in ROWS]
    return {"pixels": np.round(np.stack(images) / 255 * 16).astype(np.uint8),
            "classes": dataset.labels[list(ROWS)].astype(np.uint8)}


FILES = {"measures": measures}
