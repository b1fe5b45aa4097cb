"""Where a run that learns from pairs has them from: the labels, a person, or a file."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from pages.parts.base.address import choice_from_address, write_address
from udml_core.data.dataset import Dataset
from udml_core.data.given.pairs import PairLog, PairSet, parse_pairs

LABELS, GIVEN, FILE = "labels", "given", "file"
WORDS = {LABELS: "from labels", GIVEN: "given in the app", FILE: "from a CSV file"}


@dataclass(frozen=True)
class PairChoice:
    """given: None if pairs are drawn from the labels."""

    given: PairSet | None = None


def pick_pairs(dataset: Dataset) -> PairChoice | None:
    """Where the pairs are from, kept in the address; None, with what to do, where there are none yet."""
    sources = list(WORDS) if dataset.labels is not None else [GIVEN, FILE]
    source = st.segmented_control("Pairs", sources, default=choice_from_address("pairs", sources, sources[0]), required=True,
                                  key=f"pairs-source-{len(sources)}", format_func=WORDS.__getitem__) or sources[0]
    write_address("pairs", source, sources[0])
    if source == LABELS:
        return PairChoice()
    found = _given(dataset) if source == GIVEN else _from_file(dataset)
    if found is None:
        return None
    same = int(found.same.sum())
    st.caption(f"{len(found):,} pairs: {same:,} the same, {len(found) - same:,} different.")
    return PairChoice(given=found)


def _given(dataset: Dataset) -> PairSet | None:
    found = PairLog(dataset).read()
    if not len(found):
        st.info("No pairs of these images were given yet. Open any finished run on the page Pairs and give some.",
                icon=":material/lightbulb:")
        st.page_link("pages/pairs.py", label="Give pairs", icon=":material/link:", query_params={"show": "give"})
        return None
    return found


def _from_file(dataset: Dataset) -> PairSet | None:
    st.caption("A CSV file with the columns `first` and `second`, images by name or number, and `same`: same or "
               "different.")
    file = st.file_uploader("Pairs", type="csv", key="pairs-file", label_visibility="collapsed")
    return None if file is None else parse_pairs(file.getvalue(), file.name, dataset)
