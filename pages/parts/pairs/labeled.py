"""The labeled pairs, and the contradictions among them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array
from udml_core.base.errors import counted
from udml_core.data.dataset import Dataset
from udml_core.data.given.pair_sets import PairSet
from udml_core.exploration import pairs as views

from ..draw.gallery import pair_gallery
from ..shell.address import choose_segment
from .session import ask_about

MOST_PAIRS, MOST_CHAINS, ROW = 60, 6, 12
LISTS = {"all": "All", "classes": "Contradict the classes", "others": "Contradict each other"}


def show_labeled_pairs(dataset: Dataset, labeled: PairSet) -> None:
    """Show the labeled pairs, newest first, or the contradictory pairs.

    A click asks about a pair again.
    """
    st.subheader(counted(len(labeled), "labeled pair"))
    contradicting = views.contradicting_pairs(labeled.pairs, labeled.same)
    against_classes = np.zeros(0, dtype=np.int64)
    if dataset.labels is not None:
        against_classes = np.flatnonzero(views.class_contradictions(labeled.pairs, labeled.same, dataset.labels))
    counts = {"all": len(labeled), "classes": len(against_classes), "others": len(contradicting)}
    titles = {name: f"{title}: {counts[name]:,}" for name, title in LISTS.items()
              if name != "classes" or dataset.labels is not None}
    shown = choose_segment("Show", "given", titles, "all", key="giving-list")
    if shown == "others":
        for position in contradicting[:MOST_CHAINS].tolist():
            _chain(dataset, labeled, position)
    else:
        positions = (np.arange(len(labeled)) if shown == "all" else against_classes)[::-1][:MOST_PAIRS]
        newest = f"The newest {len(positions)} pairs. " if len(positions) < counts[shown] else ""
        st.caption(f"{newest}Click a pair to label it again.")
        _clickable_pairs(dataset, labeled, positions, "giving-given")
    if not counts[shown]:
        st.info("There are no such pairs.", icon=":material/check:")


def _chain(dataset: Dataset, labeled: PairSet, position: int) -> None:
    """Show a dissimilar pair and the chain of similar pairs that contradicts it."""
    chain = views.chain(labeled.pairs, labeled.same, position)
    links = [views.position_of_pair(labeled.pairs, link) for link in pairwise(chain)]
    st.markdown(f"**At least one of these {len(links) + 1} labels is wrong**: images {' = '.join(map(str, chain))}, "
                f"but {chain[0]} ≠ {chain[-1]}. Click a pair to label it again.")
    _clickable_pairs(dataset, labeled, np.array([*links, position]), f"giving-chain-{position}")


def _clickable_pairs(dataset: Dataset, labeled: PairSet, positions: Array, key: str) -> None:
    """Show labeled pairs as tiles; a click asks about the pair again."""
    if not len(positions):
        return
    pairs = labeled.pairs[positions]
    clicked = pair_gallery(dataset, pairs, labeled.same[positions],
                           [f"{first} and {second}" for first, second in pairs.tolist()], "Labeled pairs", key, 130,
                           height=260 if len(positions) > ROW else None)
    if clicked is not None:
        first, second = pairs[clicked].tolist()
        ask_about(dataset, (first, second))
        st.rerun(scope="fragment")
