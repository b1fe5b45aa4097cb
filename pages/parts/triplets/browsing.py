"""Browsing stored triplets: a gallery of anchors, and the triplets of one anchor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array
from udml_core.exploration import triplets as views
from udml_core.exploration.focus import stand_in

from ..draw.gallery import gallery, tile_of
from ..shell.address import number_from_address, write_address
from ..shell.interesting import default_image
from ..shell.run_status import escaped
from .stored import StoredTriplets

MOST_ANCHORS = 150
AGREES = {None: "", True: " ✓", False: " ✕"}
"""What the badge of an anchor says of its triplet and the classes; its frame has the color of all anchors."""
ORDERS: tuple[views.Order, ...] = get_args(views.Order)


@dataclass(frozen=True)
class Choice:
    """The current triplet.

    Attributes:
        triplet: Its position among the stored triplets.
        ordered: Positions of all listed triplets, in the order of the list.
    """

    triplet: int
    ordered: Array


def browse_triplets(stored: StoredTriplets, violating: Array, alpha: float) -> Choice | None:
    """Show the anchors, each with its first triplet, and choose one triplet.

    Args:
        stored: The stored triplets.
        violating: Whether each violates the angle, (t,) bool.
        alpha: The upper bound of the angle in degrees.

    Returns:
        The current triplet; None, with advice on the page, if no triplet is listed.
    """
    with st.container(horizontal=True, vertical_alignment="bottom"):
        by: views.Order = st.segmented_control("Order, largest first", ORDERS, default="loss", key="by",
                                               required=True, bind="query-params") or "loss"
        # Links say only=1, which a toggle bound to the address does not accept.
        only = st.toggle("Show violating triplets only", st.query_params.get("only") == "1", key="triplets-only")
    write_address("only", "1" if only else "")
    ordered = views.sorted_positions(stored.record, by)
    ordered = ordered[violating[ordered]] if only else ordered
    if not len(ordered):
        st.info(f"No stored triplet violates α = {alpha:g}°. Lower α, or show all triplets.",
                icon=":material/lightbulb:")
        return None
    first = views.first_of_each_anchor(stored.record, ordered)[:MOST_ANCHORS]
    triplet = _current_triplet(stored, ordered)
    tiles = [tile_of(stored.dataset, stored.images[0, position], "anchor",
                     f"{_badge(stored, by, position)}{AGREES[stored.agrees(position)]}") for position in first]
    st.caption(f"The first {len(first)} anchors; the badge is the {by} of the first triplet"
               + (". " if stored.correct is None else ", ✓ if it agrees with the classes, ✕ if not. ")
               + "Click an anchor to show its triplet.")
    clicked = gallery(stored.dataset, tiles, "Anchors of the first triplets", "triplets-list", 60,
                      chosen=int(stored.images[0, triplet]), height=200)
    open_first_of(stored, first, clicked)
    _pick_of_same_anchor(stored, ordered, triplet)
    return Choice(triplet, ordered)


def _current_triplet(stored: StoredTriplets, ordered: Array) -> int:
    """Return the triplet in the address, else the current image's first listed triplet.

    Without a current image it is the first triplet of the image that pages show first, else the first of all. A chosen
    image that is no anchor is represented by the nearest anchor; the page says so.
    """
    triplet = int(number_from_address("triplet", -1, 0, len(stored.record.anchor) - 1))
    if triplet >= 0:
        return triplet
    image = int(number_from_address("picked", -1, 0, len(stored.dataset) - 1))
    anchors = stored.images[0, ordered]
    if image < 0:
        own = ordered[anchors == default_image(stored.run)]
        return int(own[0] if len(own) else ordered[0])
    anchor = stand_in(stored.run.embeddings("final"), image, np.unique(anchors))
    if anchor != image:
        st.caption(f"The current image, {escaped(stored.dataset.caption(image))}, is not the anchor of a listed "
                   f"triplet. The triplet of the nearest anchor is shown: "
                   f"**{escaped(stored.dataset.caption(anchor))}**.")
    return int(ordered[anchors == anchor][0])


def open_first_of(stored: StoredTriplets, ordered: Array, anchor: int | None) -> None:
    """Make an anchor the current image and its first listed triplet the current triplet, if it has one.

    Args:
        stored: The stored triplets.
        ordered: Positions of the listed triplets.
        anchor: Data set index of the anchor; None does nothing.
    """
    matching = ordered[stored.images[0, ordered] == anchor]
    if len(matching):
        write_address("picked", str(anchor))
        write_address("triplet", str(matching[0]))
        st.rerun(scope="fragment")


def _badge(stored: StoredTriplets, by: views.Order, triplet: int) -> str:
    if by == "angle":
        return f"{stored.shape.angle[triplet]:.0f}°"
    return f"{(stored.record.loss if by == 'loss' else stored.record.weight)[triplet]:.2f}"


def _pick_of_same_anchor(stored: StoredTriplets, ordered: Array, triplet: int) -> None:
    """Choose another triplet of the same anchor, if there are several."""
    same_anchor = ordered[stored.record.anchor[ordered] == stored.record.anchor[triplet]].tolist()
    if triplet in same_anchor and len(same_anchor) > 1:
        st.session_state["triplets-same"] = triplet
        st.segmented_control("Triplets of this anchor", same_anchor, required=True, key="triplets-same",
                             format_func=lambda other: (f"{same_anchor.index(other) + 1} · "
                                                        f"{stored.shape.angle[other]:.0f}°"),
                             on_change=lambda: write_address("triplet", str(st.session_state["triplets-same"])))
