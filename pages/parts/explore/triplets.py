"""The triplets whose anchor is the current image."""

from __future__ import annotations

import numpy as np
import streamlit as st

from udml_core.base.declaration import describe_field
from udml_core.exploration import triplets as views
from udml_core.methods.rpml import RPML
from udml_core.numerics.explanations import Triplets

from ..draw.drawing import page_colors
from ..draw.gallery import tile_of
from ..shell.address import number_from_address, write_address
from ..shell.run_status import hyperparameters
from ..triplets.detail import verdict
from ..triplets.stored import ROLES, StoredTriplets
from ..triplets.triangle import describe_triangle, triangle
from .workbench import DeepLink, Workbench, explain, link, say_stand_in

MOST, HEIGHT = 6, 310
"""Most listed triplets of an anchor, and the height of the drawing in pixels: the panel shows all of it."""
STAGES = {"initial": "Before training", "loss": "During training", "final": "After training"}


def show_triplets(bench: Workbench) -> DeepLink:
    """Show one triplet of the current image as a triangle with its images."""
    record, epoch = bench.record(Triplets), bench.epoch_with(Triplets)
    assert record is not None
    stored = StoredTriplets(bench.run, record)
    explain("Training pulls the positive near and pushes the negative away.",
            "The angle is arctan(‖a − p‖ / (2‖n − m‖)) with m = (a + p)/2. A triplet violates α if "
            "z = ‖a − p‖² − 4tan²α · ‖n − m‖² is above 0 (RPML eq. 8). Distances are of the learned embedding.")
    shown = bench.nearest_of(np.unique(stored.images[0]))
    say_stand_in(bench, shown, "the anchor of a stored triplet")
    own = np.flatnonzero(stored.images[0] == shown)
    own = own[np.argsort(-np.asarray(record.loss)[own], kind="stable")].tolist()
    triplet = _pick_triplet(stored, own)
    alpha = float(hyperparameters(bench.run).get("alpha", describe_field(RPML, "alpha").default))
    images = stored.images[:, triplet].tolist()
    stage = st.segmented_control("Triangle", list(STAGES), default="loss", required=True, key="explore-triangle",
                                 format_func=STAGES.__getitem__, label_visibility="collapsed") or "loss"
    shape, position = (stored.shape, triplet) if stage == "loss" else (
        views.shape_in(bench.run.embeddings("initial" if stage == "initial" else "final"), *map(np.array, (
            [images[0]], [images[1]], [images[2]]))), 0)
    angle = float(shape.angle[position])
    st.image(triangle(views.corners(shape, position), alpha, angle, page_colors(),
                      [bench.dataset.images[index] for index in images], HEIGHT),
             alt=describe_triangle(f"Triplet of epoch {epoch}", alpha, angle))
    agreement = "" if stored.correct is None else " " + verdict(*(bool(part[triplet]) for part in stored.correct))
    where = f"In the projection of epoch {epoch}, which the loss compares." if stage == "loss" else (
        f"A triplet of epoch {epoch}, in the embedding {STAGES[stage].lower()}.")
    st.markdown(f"{where}{agreement}")
    bench.tiles([tile_of(stored.dataset, index, role, role) for index, role in zip(images, ROLES, strict=True)],
                "Anchor, positive and negative", "triplets")
    return link("triplets", bench, epoch=epoch, triplet=triplet)


def _pick_triplet(stored: StoredTriplets, own: list[int]) -> int:
    """Choose one of an anchor's triplets; the address parameter `triplet` holds it.

    Args:
        stored: The stored triplets.
        own: Positions of the anchor's triplets, largest loss first.
    """
    wanted = int(number_from_address("triplet", own[0], 0, 10**9))
    triplet = wanted if wanted in own else own[0]
    listed = list(dict.fromkeys([*own[:MOST], triplet]))
    if len(listed) > 1:
        st.session_state["explore-triplet-of"] = triplet
        triplet = st.segmented_control(
            f"{len(own)} triplets of this anchor, largest loss first", listed, required=True, key="explore-triplet-of",
            label_visibility="collapsed",
            format_func=lambda other: f"{own.index(other) + 1} · {stored.shape.angle[other]:.0f}°",
            on_change=lambda: write_address("triplet", str(st.session_state["explore-triplet-of"]))) or triplet
    return triplet
