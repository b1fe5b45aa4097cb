"""Measures among the few images that a user labeled, with intervals that say how little a few images tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import binomtest

from udml_core.base.arrays import Array, Booleans, Integers
from udml_core.exploration.comparison import mean_interval
from udml_core.exploration.label_spread import label_codes
from udml_core.numerics.evaluation import average_precisions, nearest_is_hit
from udml_core.numerics.measures import measure_of
from udml_core.numerics.neighbors import nearest


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


class Labeled(NamedTuple):
    """Labeled images that are searched among themselves.

    Attributes:
        images: Ascending indices (m,) of the images.
        codes: Class (m,) of each, a position in `names`.
        names: Names of the classes.
        queries: Whether each image (m,) is a query: another image has its class.
    """

    images: Integers
    codes: Integers
    names: tuple[str, ...]
    queries: Booleans


def labeled_images(labels: Mapping[int, str], names: Sequence[str] = ()) -> Labeled | None:
    """Return labeled images to be searched; None for fewer than two classes or two queries, which say nothing.

    Args:
        labels: The class by index of an image.
        names: Names of the classes in an order of the caller's; sorted by name if empty.
    """
    names = tuple(names) or tuple(sorted(set(labels.values())))
    images = np.array(sorted(labels), np.int64)
    codes = label_codes(labels, names, images)
    sizes = np.bincount(codes, minlength=1)
    queries = sizes[codes] > 1
    return None if (sizes > 0).sum() < 2 or queries.sum() < 2 else Labeled(images, codes, names, queries)


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
    found = labeled_images({image: label for image, label in labels.items() if image < len(embeddings)})
    if found is None:
        return None
    rows = np.asarray(embeddings[found.images], np.float32)
    hits = nearest_is_hit(rows, found.codes)[found.queries]
    precisions = average_precisions(rows, found.codes)[found.queries]
    share = binomtest(int(hits.sum()), len(hits)).proportion_ci(method="wilson")
    bounds = mean_interval(precisions) or (float("nan"), float("nan"))
    return AssignedMeasures(len(found.images), len(found.names), len(hits), {
        "recall@1": Measured(*(100.0 * float(value) for value in (hits.mean(), share.low, share.high))),
        "map@r": Measured(*(100.0 * float(value) for value in (precisions.mean(), *bounds)))})


def assigned_words(found: AssignedMeasures, has_trained: bool) -> str:
    """State the measures among labeled images with their intervals, in Markdown.

    Args:
        found: The measures.
        has_trained: Whether the run trained on assigned labels, which then say little.
    """
    figures = ", ".join(f"**{measure_of(key).plain_title} {measure_of(key).text(of.value)}** (95 % interval "
                        f"{of.low:.1f} to {of.high:.1f})" for key, of in found.measures.items())
    caution = " The run trained on assigned labels, which makes these figures too high." if has_trained else ""
    return (f"Among the {found.images:,} images that you labeled, in {found.classes:,} classes: {figures}, over "
            f"{found.queries:,} queries. Other images do worse where you named groups of similar images at once."
            f"{caution}")


def doubtful_labels(embeddings: Array, names: Sequence[str]) -> Array:
    """Find labeled images whose nearest labeled image has another class.

    Args:
        embeddings: Embedding (m, l) of the labeled images.
        names: The class of each.

    Returns:
        Rows (d, 2) of each such pair, once, the most similar pair first.
    """
    codes = np.unique(names, return_inverse=True)[1]
    if len(codes) < 2:
        return np.zeros((0, 2), np.int64)
    distances, nearest_rows = nearest(embeddings, 1)
    rows = np.flatnonzero(codes != codes[nearest_rows[:, 0]])
    order = rows[np.argsort(distances[rows, 0], kind="stable")]
    pairs = np.sort(np.stack([order, nearest_rows[order, 0]], axis=1), axis=1)
    return pairs[np.sort(np.unique(pairs, axis=0, return_index=True)[1])]
