"""Triplets: the triplets that training used, with their images and angles."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from pages.parts.draw.downloads import Download, share, table_file
from pages.parts.draw.figures import histogram
from pages.parts.draw.palette import percent
from pages.parts.draw.run_header import header_place, run_header
from pages.parts.draw.sections import Section, show_sections, slot
from pages.parts.draw.tables import table_behind
from pages.parts.explore.constraints import pick_alpha
from pages.parts.maps.coloring import colorings
from pages.parts.maps.frame import UNITS, covering_map, link_to_map, show_distortion
from pages.parts.maps.scatter import Ring, draw_map
from pages.parts.shell.address import write_address
from pages.parts.shell.epochs import has_record, load_record, pick_epoch
from pages.parts.shell.run_picker import pick_run
from pages.parts.shell.run_status import escaped
from pages.parts.shell.user_errors import fragment, show_user_errors
from pages.parts.triplets.browsing import Choice, browse_triplets, open_first_of
from pages.parts.triplets.detail import show_triangles, show_triplet
from pages.parts.triplets.regime import show_regime
from pages.parts.triplets.stored import ROLES, StoredTriplets
from udml_core.base.arrays import Array
from udml_core.exploration import triplets as views
from udml_core.numerics.explanations import Triplets
from udml_core.runs import Run
from udml_core.runs.search import epoch_words


@fragment
def explore(run: Run) -> None:
    """Show α, the triangles of the current triplet, the anchors, and the open section."""
    header = header_place()
    left, right = st.columns([4, 1], vertical_alignment="bottom")
    with left:
        alpha = pick_alpha(run, "triplets-alpha")
    with right:
        epoch = pick_epoch(run, Triplets, lambda: write_address("triplet", ""))
    run_header(run, epoch_words(run, epoch), header)
    record = load_record(run, epoch, Triplets)
    assert record is not None
    stored = StoredTriplets(run, record)
    violating = stored.shape.angle > alpha
    st.markdown(f"**Violating α = {alpha:g}°: {violating.sum():,} of {len(violating):,} stored triplets** of epoch "
                f"{epoch}.")
    triangles = slot("triplets-triangles")
    choice = browse_triplets(stored, violating, alpha)
    if choice is not None:
        with triangles:
            show_triangles(stored, choice.triplet, alpha)
    sections = [Section("all", "All triplets", lambda: show_all(stored, violating, alpha, epoch))]
    if choice is not None:
        sections = [Section("numbers", "Numbers of this triplet", lambda: show_triplet(stored, choice.triplet, alpha)),
                    *sections, Section("map", "Map", lambda: draw_on_map(stored, choice))]
    show_sections(sections, "triplets-section")


def show_all(stored: StoredTriplets, violating: Array, alpha: float, epoch: int) -> None:
    """Show the agreement of all triplets with the classes, their angles, and the effect of the bound."""
    show_agreement(stored, violating)
    show_regime(stored, epoch)
    edges, counts = views.angle_histogram(stored.shape)
    histogram(edges.tolist(), counts.tolist(), "Angles of the stored triplets, in degrees", "triplets-angles", alpha)
    table_behind("The angles as a table", pd.DataFrame({"From, °": edges[:-1], "To, °": edges[1:],
                                                        "Triplets": counts}))
    columns = {"positive": stored.images[1], "negative": stored.images[2], "angle": stored.shape.angle,
               "weight": stored.record.weight, "loss": stored.record.loss}
    share([Download("Triplets as a CSV file", "triplets.csv", "text/csv",
                    lambda: table_file(stored.dataset, stored.images[0], columns))], "triplets")


def show_agreement(stored: StoredTriplets, violating: Array) -> None:
    """Show how many triplets agree with the classes; nothing without classes."""
    if stored.correct is None:
        return
    positive, negative = stored.correct
    both = positive & negative
    among = f" and {percent(100 * both[violating].mean())} of the violating triplets" if violating.any() else ""
    st.markdown(f"{percent(100 * both.mean())} of all triplets{among} agree with the classes "
                f"({percent(100 * positive.mean())} of the positives, {percent(100 * negative.mean())} of the "
                "negatives).")


def draw_on_map(stored: StoredTriplets, choice: Choice) -> None:
    """Draw the current triplet's two edges on a map.

    A click on another anchor makes its first triplet the current triplet.
    """
    shown = covering_map(stored.run, np.unique(stored.images))
    if shown is None:
        link_to_map(stored.run, "Compute a map to see the triplet on it")
        return
    st.markdown("**Map after training**, with lines from the anchor to its positive and its negative. Click another "
                "anchor to show its triplet.")
    images = stored.images[:, choice.triplet].tolist()
    marks = [Ring(image, role, () if role == "anchor" else images[:1])
             for image, role in zip(images, ROLES, strict=True)]
    clicked = draw_map(stored.dataset, shown.layout, colorings(shown)["weight"](),
                       "Map with the two edges of the current triplet", "triplets-map", marks=marks, height=440)
    show_distortion(shown)
    st.caption(UNITS)
    open_first_of(stored, choice.ordered, clicked)
    if clicked is not None:
        st.toast(f"No stored triplet has {escaped(stored.dataset.caption(clicked))} as its anchor.")


def draw() -> None:
    """Draw the view."""
    with show_user_errors():
        run = pick_run(fits=lambda run: has_record(run, Triplets),
                       missing="No finished run has triplets; a method that trains with triplets stores them.")
        if run is not None:
            explore(run)
