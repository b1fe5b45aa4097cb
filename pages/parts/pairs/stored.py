"""The pairs that a run stored in an epoch: violations, list and details."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.exploration import pairs as views
from udml_core.numerics.explanations import Pairs
from udml_core.runs import Run

from ..draw.gallery import pair_gallery
from ..draw.palette import change_style, percent, points
from ..draw.two_images import two_images
from ..shell.address import choose_segment, join_indices, write_address
from ..shell.cached import load_split
from ..shell.views import view_link
from .hinge import Hinge
from .session import answer_word

MOST_TILES = 60
ORDERS = {"hardest": "Hardest", "contradictory": "Contradictory"}
KINDS = {"both": "Both", "same": "Similar", "different": "Dissimilar"}


@dataclass(frozen=True)
class StoredPairs:
    """The pairs that a run stored in an epoch.

    Attributes:
        run: The run.
        dataset: The run's data set.
        record: The pairs with their distances.
    """

    run: Run
    dataset: Dataset
    record: Pairs

    @cached_property
    def pairs(self) -> Array:
        """Indices of the images, (p, 2)."""
        return load_split(self.run).train[self.record.pairs]

    @cached_property
    def contradictory(self) -> Array:
        """Rows of the pairs that contradict the classes or other pairs, (c,)."""
        rows = views.contradicting_pairs(self.pairs, self.record.same)
        if self.dataset.labels is None:
            return rows
        against = views.class_contradictions(self.pairs, self.record.same, self.dataset.labels)
        return np.union1d(rows, np.flatnonzero(against))


def violations(stored: StoredPairs, hinge: Hinge, arguments: Array, epoch: int) -> None:
    """Show how many pairs violate the margin, compared with before training.

    Args:
        stored: The pairs.
        hinge: The values of b and m.
        arguments: m − y(b − d²) of the pairs after training, (p,).
        epoch: The epoch that stored the pairs.
    """
    record, same = stored.record, stored.record.same
    before = hinge.arguments(record.before, same)
    st.markdown(f"**{(arguments > 0).sum():,} of {len(same):,} stored pairs violate the margin at {hinge.words}** "
                f"after epoch {epoch}, {(before > 0).sum():,} before training.")
    with st.container(horizontal=True, key="pairs-violations"):
        for word, kind, edge in (("Similar", same, "above b − m"), ("Dissimilar", ~same, "below b + m")):
            if kind.any():
                now, earlier = 100 * (arguments[kind] > 0).mean(), 100 * (before[kind] > 0).mean()
                st.metric(f"{word} pairs that violate it", percent(now),
                          f"{points(now - earlier)} from before training", help=f"{word} pairs with d² {edge}.",
                          width="content", **change_style(now - earlier, lower_is_better=True))
        earlier, now = float(before.clip(0).mean()), float(arguments.clip(0).mean())
        st.metric("Mean loss", f"{now:.3g}", f"{now - earlier:+.2g} from before training".replace("-", "−"),
                  width="content", **change_style(now - earlier, 9, lower_is_better=True),
                  help="max(0, m − y(b − d²)) with y = 1 for similar and y = −1 for dissimilar pairs.")


def pick_rows(stored: StoredPairs, arguments: Array) -> Array:
    """Choose which pairs to list; the address holds the choices.

    Returns:
        Rows of the pairs, the largest loss first.
    """
    with st.container(horizontal=True, vertical_alignment="bottom"):
        by = choose_segment("List", "by", ORDERS, "hardest", key="pairs-by")
        kind = choose_segment("Kind", "kind", KINDS, "both", key="pairs-kind")
    rows = np.argsort(-arguments, kind="stable")
    if by == "contradictory":
        rows = rows[np.isin(rows, stored.contradictory)]
    return rows if kind == "both" else rows[stored.record.same[rows] == (kind == "same")]


def pair_list(stored: StoredPairs, rows: Array, current: int | None) -> None:
    """Show pairs as tiles; a click makes a pair the current pair."""
    if not len(rows):
        of_kind = " of this kind" if st.query_params.get("kind") else ""
        problem = " contradicts the classes or other pairs" if st.query_params.get("by") else " is stored"
        st.info(f"No pair{of_kind}{problem}.", icon=":material/check:")
        return
    shown = rows[:MOST_TILES]
    st.caption(f"The first {len(shown)} of {len(rows):,} pairs, the largest loss first: = similar, ≠ dissimilar, with "
               "d² before and after training. Click a pair to make it the current pair.")
    at = np.flatnonzero(shown == current)
    record = stored.record
    clicked = pair_gallery(stored.dataset, stored.pairs[shown], record.same[shown],
                           [f"{record.before[row]:.3f} → {record.after[row]:.3f}" for row in shown], "Stored pairs",
                           "pairs-list", 160, int(at[0]) if len(at) else None, 300)
    if clicked is not None:
        write_address("pair", join_indices(stored.pairs[shown[clicked]].tolist()))
        st.rerun(scope="fragment")


def pair_detail(stored: StoredPairs, row: int, hinge: Hinge, argument: float) -> None:
    """Show the current pair with its images, distances and links.

    Args:
        stored: The pairs.
        row: Row of the current pair.
        hinge: The values of b and m.
        argument: m − y(b − d²) of the pair after training.
    """
    first, second = stored.pairs[row].tolist()
    record = stored.record
    st.subheader("Current pair")
    two_images(stored.dataset, (first, second), with_names=True)
    st.markdown(f"Labeled **{answer_word(bool(record.same[row]))}**: d² went from **{record.before[row]:.3f}** to "
                f"**{record.after[row]:.3f}**. At {hinge.words} the pair " +
                (f"violates the margin; its loss is **{argument:.3f}**." if argument > 0 else
                 f"keeps the margin with {-argument:.3f} to spare."))
    if row in stored.contradictory:
        st.warning("This pair contradicts the classes or other pairs.", icon=":material/call_split:")
    with st.container(horizontal=True):
        view_link("neighborhoods", label="See why these images are similar", icon=":material/hub:",
                     query_params={"run": stored.run.id, "picked": str(first), "second": str(second)})
        for word, index in (("first", first), ("second", second)):
            view_link("retrieval", label=f"Search with the {word} image", icon=":material/image_search:",
                         query_params={"run": stored.run.id, "add": str(index)})
