"""Measures among the few images that a user labeled, with intervals that say how little a few images tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.stats import binomtest

from udml_core.base.arrays import Array
from udml_core.exploration.comparison import mean_interval
from udml_core.numerics.evaluation import average_precisions, nearest_is_hit


class Measured(NamedTuple):
    """A measure in percent, with its 95 % interval over queries.

    Attributes:
        value: The mean over the queries.
        low: The lower end.
        high: The upper end.
    """

    value: float
    low: float
    high: float


class AssignedMeasures(NamedTuple):
    """What a few labels say of an embedding.

    Attributes:
        images: Number of labeled images, which are the gallery.
        classes: Number of their classes.
        queries: Number of labeled images with another image of their class.
        measures: The measures by key.
    """

    images: int
    classes: int
    queries: int
    measures: Mapping[str, Measured]


def assigned_measures(embeddings: Array, labels: Mapping[int, str]) -> AssignedMeasures | None:
    """Measure an embedding among labeled images.

    Each image with another image of its class is a query, and the other labeled images are its gallery.

    Args:
        embeddings: Embedding (n, l) of all images.
        labels: The class by index of an image.

    Returns:
        R@1, with the Wilson interval of a share, and MAP@R, with that of the bootstrap over queries; None for fewer
        than two classes or two queries.
    """
    images = np.array(sorted(image for image in labels if image < len(embeddings)), np.int64)
    _, codes, sizes = np.unique([labels[image] for image in images], return_inverse=True, return_counts=True)
    if len(sizes) < 2 or (queries := sizes[codes] > 1).sum() < 2:
        return None
    rows = np.asarray(embeddings[images], np.float32)
    hits = nearest_is_hit(rows, codes)[queries]
    precisions = average_precisions(rows, codes)[queries]
    share = binomtest(int(hits.sum()), len(hits)).proportion_ci(method="wilson")
    bounds = mean_interval(precisions) or (float("nan"), float("nan"))
    return AssignedMeasures(len(images), len(sizes), len(hits), {
        "recall@1": Measured(*(100.0 * float(value) for value in (hits.mean(), share.low, share.high))),
        "map@r": Measured(*(100.0 * float(value) for value in (precisions.mean(), *bounds)))})
