"""One triplet: triangles before, during and after training, images and numbers."""

from __future__ import annotations

import numpy as np
import streamlit as st

from udml_core.exploration import triplets as views

from ..draw.gallery import gallery, tile_of
from ..draw.palette import color_legend
from ..shell.run_picker import open_search
from .stored import ROLES, STAGES, StoredTriplets
from .triangle import draw_triangle, shared_half


def show_triplet(stored: StoredTriplets, triplet: int, alpha: float) -> None:
    """Show a triplet's images and numbers.

    Args:
        stored: The stored triplets.
        triplet: Position of the triplet.
        alpha: The upper bound of the angle in degrees.
    """
    ids = stored.images[:, triplet].tolist()
    names = [stored.dataset.caption(index).split(" · ")[0] for index in ids]
    clicked = gallery(stored.dataset, [tile_of(stored.dataset, index, role, f"{role}: {name}")
                                       for index, role, name in zip(ids, ROLES, names, strict=True)],
                      "Anchor, positive and negative", "triplets-detail", 150)
    if clicked is not None:
        open_search(stored.dataset, clicked)
    st.caption("Click an image to search with it.")
    if stored.correct is not None:
        st.markdown(verdict(*(bool(part[triplet]) for part in stored.correct)))
    _show_numbers(stored, triplet, alpha)


def verdict(positive: bool, negative: bool) -> str:
    """Say whether a triplet agrees with the classes.

    Args:
        positive: Whether the positive has the anchor's class.
        negative: Whether the negative has another class than the anchor.
    """
    if positive and negative:
        return "This triplet **agrees** with the classes."
    faults = [text for text, correct in (("the positive has another class than the anchor", positive),
                                         ("the negative has the anchor's class", negative)) if not correct]
    return f"This triplet **contradicts** the classes: {' and '.join(faults)}."


def _show_numbers(stored: StoredTriplets, triplet: int, alpha: float) -> None:
    """Show the quantities that the loss computes from a triplet."""
    record = stored.record
    metrics = [
        ("d²(a, p)", record.near, "Squared distance of anchor and positive in the space of the loss."),
        ("d²(n, m)", record.far, "Squared distance of negative and midpoint in the space of the loss."),
        ("z at α", stored.shape.argument(alpha),
         r"$d^2(a, p) - 4\tan^2\alpha\, d^2(n, m)$ (RPML eq. 8); the triplet violates α if z is above 0."),
        ("Loss", record.loss,
         r"$\mathrm{softplus}(w \cdot \mathrm{softplus}(z))$ in RPML (eq. 12), $\mathrm{softplus}(z)$ in SSDML "
         "(eq. 3), at the α of training."),
        ("Weight w", record.weight, "Factor in RPML's loss, between 0 and 1 (eq. 10 or 25); 1 in SSDML."),
    ]
    if np.isfinite(record.similar[triplet]):
        metrics += [
            ("w⁺", record.similar, "σ(aᵀRRᵀp), the similarity of anchor and positive (eq. 26)."),
            ("w⁻", record.dissimilar,
             "1 − σ(mᵀRRᵀn), the dissimilarity of midpoint and negative (eq. 27); w is the mean of w⁺ and w⁻."),
        ]
    with st.container(horizontal=True):
        for name, values, description in metrics:
            st.metric(name, f"{values[triplet]:.4f}", help=description, width="content")


def show_triangles(stored: StoredTriplets, triplet: int, alpha: float) -> None:
    """Draw a triplet's triangle before, during and after training.

    Args:
        stored: The stored triplets.
        triplet: Position of the triplet.
        alpha: The upper bound of the angle in degrees.
    """
    images = [stored.dataset.images[index] for index in stored.images[:, triplet].tolist()]
    stages = stored.stages(triplet)
    shapes = [stored.shape_at(stage, triplet) for stage in stages]
    drawings = [views.corners(*of) for of in shapes]
    half = shared_half(drawings, alpha)
    for column, stage, corners, (shape, position) in zip(st.columns(len(stages)), stages, drawings, shapes,
                                                         strict=True):
        title = STAGES[stage]
        with column:
            draw_triangle(corners, alpha, float(shape.angle[position]), title,
                          f"triplet-{title.split()[0].lower()}", images, half)
    with st.container(horizontal=True, vertical_alignment="center"):
        color_legend("anchor", "positive", "negative")
        st.caption(
            "The arc is the half angle that the loss bounds, in the dashed symmetric triangle; dots mark the bound.",
            width="content",
            help="The dashed triangle is symmetrized: its apex is as far from the midpoint m of anchor and positive as "
                 "the negative n is. The arc is half its angle, between its median and a side, "
                 "arctan(d(a, p) / 2d(n, m)), which must be at most α. Gray dots: the position of the negative at "
                 "which it is exactly α. Before and after training: the embedding that retrieval uses. During "
                 "training: the projection of this epoch, which the loss compares. Anchor and positive are drawn "
                 "equally far apart where it fits, so compare the angles.")
