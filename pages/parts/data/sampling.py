"""A sample of the images that a gallery shows: how many, chosen how, and as a list."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from udml_core.base.arrays import Integers
from udml_core.base.errors import counted
from udml_core.data.dataset import Dataset
from udml_core.data.given.exclusions import excluded_images, list_of
from udml_core.data.given.labels import assigned_now
from udml_core.exploration.sample import KINDS, MOST, coverage_of, sample_rows

from ..shell.address import choice_from_address, number_from_address, write_address
from .computed import NearestByFeatures

ALL = "all"
WORDS = {ALL: "All", "diverse": "Diverse", "typical": "Typical", "outlying": "Outlying", "next": "To label next"}
TEXTS = {"diverse": "each as far as possible from the images before it",
         "typical": "in dense regions, apart from each other",
         "outlying": "far from their neighbors, compared with these",
         "next": "whose labels would reach most images without a label"}
USUAL = 100
SIZES = (100, 300, MOST)
"""Sizes of the samples that are computed, so that another number of images shows at once."""


def choose_sample(dataset: Dataset, nearest: NearestByFeatures | None, ordered: Integers) -> tuple[Integers, str]:
    """Choose which of the filtered images the gallery shows.

    Args:
        dataset: The data set.
        nearest: The neighborhoods of the images; None before the features are computed.
        ordered: The filtered images, in the order of the gallery.

    Returns:
        The images of the sample in the order of the choice, or all of them, and words about them.
    """
    if nearest is None and dataset.is_large:  # has no stored neighbors
        return ordered, ""
    kinds = [ALL, *KINDS]
    kind = st.selectbox("Sample", kinds, kinds.index(choice_from_address("sample", kinds, ALL)), width=210,
                        format_func=lambda name: f"Sample: {WORDS[name].lower()}", key="data-sample",
                        label_visibility="collapsed")
    write_address("sample", kind, ALL)
    if kind == ALL or not len(ordered):
        return ordered, ""
    if nearest is None:
        st.caption(f":material/hourglass_top: The sample follows once the images are compared; until then all "
                   f"{len(ordered):,} are shown.")
        return ordered, ""
    count = int(st.number_input("Images in the sample", 1, MOST, int(number_from_address("count", USUAL, 1, MOST)),
                                key="data-count", width=140, label_visibility="collapsed"))
    write_address("count", str(count), str(USUAL))
    allowed = np.setdiff1d(ordered, excluded_images(dataset))
    most = next(size for size in SIZES if size >= count)
    order, shares = _order(dataset.fingerprint, kind, most, nearest.images.tobytes(), allowed.tobytes(),
                           tuple(sorted(assigned_now(dataset))), nearest)
    chosen = order[:count]
    st.download_button("Download sample", lambda: list_of(dataset.names[index] for index in chosen), f"{kind}.csv",
                       "text/csv", key="data-sample-list", icon=":material/download:", on_click="ignore", shortcut="D",
                       help="CSV file with the names of these images in this order.")
    covered = f" They cover {100 * shares[len(chosen) - 1]:.0f} % of the filtered images." if shares else ""
    return chosen, f"{WORDS[kind]}: {counted(len(chosen), 'image')} {TEXTS[kind]}.{covered}"


@st.cache_data(max_entries=16, show_spinner="Choosing images …")
def _order(fingerprint: str, kind: Any, most: int, images: bytes, ordered: bytes,  # noqa: ARG001
           labeled: tuple[int, ...], _nearest: NearestByFeatures) -> tuple[Integers, list[float]]:
    """Return a sample in order, and for images to label next the share that each beginning covers."""
    allowed = np.isin(_nearest.images, np.frombuffer(ordered, np.int64))
    known = np.flatnonzero(np.isin(_nearest.images, labeled))
    rows = sample_rows(kind, _nearest.among, allowed, most, known.tolist())
    shares = coverage_of(_nearest.among.neighbors, allowed, rows, known.tolist()).tolist() if kind == "next" else []
    return _nearest.images[rows], shares
