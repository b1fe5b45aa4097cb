"""The images to look at first: the queries whose hits changed most through training, in one order for all pages."""

from __future__ import annotations

import numpy as np
import streamlit as st

from pages.parts.base.cached import load_retrieval
from pages.parts.base.run_hash import RUN_HASH
from udml_core.exploration.interesting import most_changed
from udml_core.exploration.variety import classes_in_turn
from udml_core.retrieval import Retrieval
from udml_core.runs import Run

MOST = 40
HITS = 10
ANY_CLASS = -1
Strip = list[tuple[int, str]]
"""Images and their badges."""


@st.cache_data(max_entries=32, show_spinner=False, hash_funcs=RUN_HASH)
def interesting_queries(run: Run, label: int = ANY_CLASS) -> Strip:
    """Return test images whose neighbors changed most through training, with hits before and after as badges.

    They belong to the fixed sample, which every epoch has as well. Every class contributes, and the images with the
    largest change of hits come first.

    Args:
        run: The run.
        label: The class of the images, which are then all test images of this class.
    """
    retrieval = load_retrieval(run)
    labels, sample = retrieval.dataset.labels, run.sample_indices()
    if label != ANY_CLASS:
        members = np.intersect1d(retrieval.split.test, retrieval.dataset.members(label))
        sample = members if len(members) > 1 else sample
    known = None if labels is None else labels[sample]
    rows = most_changed(run.embeddings("initial")[sample], run.embeddings("final")[sample],
                        known if label == ANY_CLASS else None)
    if known is not None:
        rows = rows[classes_in_turn(known[rows])]
    images = sample[rows[:MOST]].tolist()
    if known is None or not retrieval.is_changed:
        return [(image, "") for image in images]
    hits = {image: _hits(retrieval, image) for image in images}
    images.sort(key=lambda image: (-abs(hits[image][1] - hits[image][0]), -hits[image][1]))
    return [(image, f"{hits[image][0]} → {hits[image][1]}") for image in images]


def _hits(retrieval: Retrieval, image: int) -> tuple[int, int]:
    """Return the number of hits among the first ten images before and after training."""
    before, after = (sum(bool(hit.correct) for hit in retrieval.search_item(image, HITS, which))
                     for which in ("initial", "final"))
    return before, after
