"""The source of a run's pairs: drawn from labels, labeled in the app, or a file."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from udml_core.data.dataset import Dataset
from udml_core.data.given.pair_sets import PairLog, PairSet, parse_pairs
from udml_core.data.given.uploads import parse_upload

from ..shell.address import choose_segment
from ..shell.views import view_link

LABELS, GIVEN, FILE = "labels", "given", "file"
WORDS = {LABELS: "Drawn from labels", GIVEN: "Labeled in the app", FILE: "From a CSV file"}


@dataclass(frozen=True)
class PairChoice:
    """The source of the pairs.

    Attributes:
        given: The pairs from the app or a file; None if pairs are drawn from the labels.
    """

    given: PairSet | None = None


def pick_pairs(dataset: Dataset) -> PairChoice | None:
    """Choose the source of the pairs; the address holds the choice.

    Returns:
        The choice; None, with instructions, if the source has no pairs yet.
    """
    sources = list(WORDS) if dataset.labels is not None else [GIVEN, FILE]
    source = choose_segment("Pairs", "pairs", sources, sources[0], key=f"pairs-source-{len(sources)}",
                            format_func=WORDS.__getitem__)
    if source == LABELS:
        return PairChoice()
    pairs = _labeled_pairs(dataset) if source == GIVEN else _uploaded_pairs(dataset)
    if pairs is None:
        return None
    same = int(pairs.same.sum())
    st.caption(f"{len(pairs):,} pairs: {same:,} similar, {len(pairs) - same:,} dissimilar.")
    return PairChoice(given=pairs)


def _labeled_pairs(dataset: Dataset) -> PairSet | None:
    pairs = PairLog(dataset).read()
    if not len(pairs):
        st.info("There are no labeled pairs of these images yet. Mark some on the page Label.",
                icon=":material/lightbulb:")
        view_link("pair_labels", label="Mark pairs", icon=":material/link:")
        return None
    return pairs


def _uploaded_pairs(dataset: Dataset) -> PairSet | None:
    st.caption("A CSV file with the columns `first` and `second` (file names or indices of images) and `same` (same or "
               "different).")
    file = st.file_uploader("Pairs", type="csv", key="pairs-file", label_visibility="collapsed")
    return None if file is None else parse_upload(parse_pairs, file.getvalue(), file.name, dataset)
