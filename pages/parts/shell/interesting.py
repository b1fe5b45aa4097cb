"""The images to look at first, in one order for all pages.

Their neighbors changed most through training, and the run's records contain them: the image that every page shows first
then has a cluster, a triplet, a label or a pair wherever the run has records of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.exploration.interesting import (
    classes_in_turn,
    gains_and_losses_in_turn,
    most_changed,
    recorded_rows,
)
from udml_core.numerics.explanations import Affinities, Clusters, Explanation, Pairs, Triplets, Uncertainty
from udml_core.runs import Run
from udml_core.runs.search import Retrieval

from .address import number_from_address
from .cached import load_retrieval, load_split
from .epoch_images import epoch_images
from .epochs import epochs_with, load_record
from .focus import suggest_image
from .run_hash import RUN_HASH

MOST, MOST_TEST = 40, 20
"""Images in all, and of them images of the test half if the first ones belong to the training half."""
HITS = 10
LEVEL = 0.05
"""Weight of the number of hits beside its change, where the typical image is chosen."""
ANY_CLASS = -1
RECORDS: tuple[type[Explanation], ...] = (Clusters, Triplets, Affinities, Pairs, Uncertainty)
"""Records of training images that a page shows at one image."""
Strip = list[tuple[int, str]]
"""Images and their badges."""


def default_image(run: Run) -> int:
    """Return the image that pages show until the user chooses one, and remember it for the next pages."""
    index = next((image for image, _ in interesting_queries(run)), int(load_split(run).test[0]))
    suggest_image(index)
    return index


def image_in_address(dataset: Dataset, parameter: str = "picked") -> int:
    """Return the index of the image that an address parameter names, −1 without one."""
    return int(number_from_address(parameter, -1, 0, len(dataset) - 1))


def current_image(run: Run, dataset: Dataset, parameter: str = "picked") -> int:
    """Return the image that an address parameter names, else the image that pages show first."""
    index = image_in_address(dataset, parameter)
    return index if index >= 0 else default_image(run)


@st.cache_data(max_entries=32, show_spinner=False, hash_funcs=RUN_HASH)
def interesting_queries(run: Run, label: int = ANY_CLASS) -> Strip:
    """Return images whose neighbors changed most through training, with hits without and after it as badges.

    Images that all records of the run contain come first, if there are any, then images of the fixed sample of the test
    half; every epoch has both. Every class contributes. Gains and losses of hits take turns, the largest first and the
    more frequent kind before the other, so that the first pictures flatter no training. Before both parts comes an
    image that is typical of those whose hits change as the average does; see `typical_row`.

    Args:
        run: The run.
        label: The class of the images, which need not be in every epoch then.
    """
    recorded, retrieval = recorded_images(run), load_retrieval(run)
    if label != ANY_CLASS:
        members = retrieval.dataset.members(label)
        of_class = [np.intersect1d(half, members) for half in (recorded, retrieval.split.test)]
        if max(map(len, of_class)) > 1:
            return [query for images in of_class for query in _ordered(retrieval, images, MOST // 2, label)]
    first = _typical_first(run, _ordered(retrieval, recorded, MOST - MOST_TEST, ANY_CLASS))
    known = {image for image, _ in first}
    sample = _typical_first(run, _ordered(retrieval, run.sample_indices(), MOST_TEST if first else MOST, ANY_CLASS))
    return first + [(image, badge) for image, badge in sample if image not in known]


def _typical_first(run: Run, strip: Strip) -> Strip:
    """Move the image to the front that is typical of the images whose hits change as the average test image's do."""
    evaluation = run.evaluation() or {}
    before, after = (evaluation.get(name, {}).get(f"mprec@{HITS}") for name in (load_retrieval(run).before, "final"))
    if before is None or after is None or not strip or not all(badge for _, badge in strip):
        return strip
    hits = [[int(count) for count in badge.split(" → ")] for _, badge in strip]
    first = typical_row(hits, before / HITS, after / HITS)
    others = [row for row in range(len(strip)) if row != first]
    in_turn = gains_and_losses_in_turn([hits[row][1] - hits[row][0] for row in others])
    return [strip[first], *(strip[others[row]] for row in in_turn)]


def typical_row(hits: Sequence[Sequence[int]], before: float, after: float) -> int:
    """Return the row whose hits change as on average, if possible by at least one.

    An image whose results do not change shows nothing. Among the images that gain, or lose, as training does on
    average, the hits are most nearly the average's, and the change is no better than the average or one hit.

    Args:
        hits: Hits without and with training, a pair for each row.
        before: Mean number of hits without training.
        after: Mean number of hits with training.
    """
    average = after - before
    best = max(average, 1.0) if average > 0 else average

    def distance(row: int) -> tuple[bool, bool, float]:
        had, has = hits[row]
        change = has - had
        return change * average <= 0, change > best, abs(change - average) + LEVEL * abs(had - before)

    return min(range(len(hits)), key=distance)


def recorded_images(run: Run) -> Array:
    """Return the images (m,) that the newest records of every kind contain, if possible those in every epoch.

    Without records, and if no image is in all of them, there are none.
    """
    train, recorded = load_split(run).train, []
    for kind in RECORDS:
        epochs = epochs_with(run, kind)
        record = load_record(run, epochs[-1], kind) if epochs else None
        rows = None if record is None else recorded_rows(record)
        if rows is not None:
            recorded.append(train[rows])
    if not recorded:
        return np.zeros(0, dtype=np.int64)
    images: Array = reduce(np.intersect1d, recorded)
    in_every_epoch = np.intersect1d(images, epoch_images(run).indices)
    return in_every_epoch if len(in_every_epoch) > 1 else images


def _ordered(retrieval: Retrieval, images: Array, most: int, label: int) -> Strip:
    """Order images by the change of their neighbors among them.

    Args:
        retrieval: The search of the run.
        images: Data set indices (m,).
        most: Number of images to return.
        label: The class of the images, or `ANY_CLASS`.
    """
    run, labels = retrieval.run, retrieval.dataset.labels
    known = None if labels is None else labels[images]
    rows = most_changed(retrieval.frame(retrieval.before).rows[images], run.embeddings("final")[images],
                        known if label == ANY_CLASS else None)
    if known is not None:
        rows = rows[classes_in_turn(known[rows])]
    chosen = images[rows[:most]].tolist()
    if known is None or not retrieval.is_changed:
        return [(image, "") for image in chosen]
    hits = {image: _hits(retrieval, image) for image in chosen}
    gains = [hits[image][1] - hits[image][0] for image in chosen]
    return [(chosen[row], "{} → {}".format(*hits[chosen[row]])) for row in gains_and_losses_in_turn(gains)]


def _hits(retrieval: Retrieval, image: int) -> tuple[int, int]:
    """Return the number of hits among the first ten images without and after training."""
    before, after = (sum(bool(hit.correct) for hit in retrieval.search_item(image, HITS, which))
                     for which in (retrieval.before, "final"))
    return before, after
