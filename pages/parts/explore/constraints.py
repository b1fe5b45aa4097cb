"""The triplets whose anchor is the current image, and the pairs that contain it."""

from __future__ import annotations

import numpy as np
import streamlit as st

from udml_core.base.declaration import describe_field
from udml_core.exploration import triplets as views
from udml_core.exploration.gallery_content import Mark
from udml_core.methods.rpml import RPML
from udml_core.numerics.explanations import Pairs, Triplets
from udml_core.runs import Run

from ..draw.drawing import page_colors, place_drawing
from ..draw.gallery import tile_of
from ..draw.palette import BEFORE, HIT, MISS
from ..draw.slider import field_slider
from ..maps.scatter import Ring
from ..pairs.stored import StoredPairs
from ..shell.address import join_indices, number_from_address, write_address
from ..shell.run_status import hyperparameters
from ..triplets.detail import verdict
from ..triplets.stored import ROLES, STAGES, StoredTriplets
from ..triplets.triangle import describe_triangle, triangle
from .workbench import DeepLink, Workbench, explain, in_address, link, say_stand_in

MOST, HEIGHT = 6, 310
"""Most listed triplets of an anchor, and the height of the drawing in pixels: the panel shows all of it."""
MOST_PAIRS = 20


def pick_alpha(run: Run, key: str) -> float:
    """Show the slider of α, at first the run's α; the address holds its value."""
    method = run.spec().build_method()
    has_field = "alpha" in type(method).model_fields
    field = describe_field(type(method) if has_field else RPML, "alpha")
    default = float(getattr(method, "alpha", field.default))
    return field_slider(field, key, default, "upper bound of half the angle at the negative", play=True,
                        marks={default: "this run" if has_field else "RPML's default"})


def triplet_marks(bench: Workbench, alpha: float) -> list[Ring]:
    """Return rings for the triplets of the current image, with colored lines to the anchor where they violate α."""
    stored, anchor, own = _own_triplets(bench)
    violating = stored.shape.angle[own] > alpha
    marks = []
    for role, color in ((1, HIT), (2, MISS)):
        images = stored.images[role, own]
        marks += [Ring(int(image), "", (anchor,), color, 7) for image in np.unique(images[violating])]
        marks += [Ring(int(image), "", (), BEFORE, 4) for image in np.setdiff1d(images, images[violating])]
    return [*marks, Ring(anchor, "anchor")]


def _own_triplets(bench: Workbench) -> tuple[StoredTriplets, int, list[int]]:
    """Return the stored triplets, the current image or the nearest anchor, and its triplets, largest loss first."""
    record = bench.record(Triplets)
    assert record is not None
    stored = StoredTriplets(bench.run, record)
    anchor = bench.nearest_of(np.unique(stored.images[0]))
    own = np.flatnonzero(stored.images[0] == anchor)
    return stored, anchor, own[np.argsort(-np.asarray(record.loss)[own], kind="stable")].tolist()


def show_triplets(bench: Workbench) -> DeepLink:
    """Show one triplet of the current image as a triangle with its images."""
    epoch = bench.epoch_with(Triplets)
    stored, shown, own = _own_triplets(bench)
    say_stand_in(bench, shown, "the anchor of a stored triplet")
    alpha = bench.alpha or float(hyperparameters(bench.run).get("alpha", describe_field(RPML, "alpha").default))
    violating = stored.shape.angle > alpha
    explain(f"**{violating[own].sum()} of this anchor's {len(own)} triplets violate α = {alpha:g}°**, and "
            f"{violating.sum():,} of all {len(violating):,} of epoch {epoch}.",
            "Training pulls the positive near and pushes the negative away until half the angle at the negative is at "
            "most α. The map joins the triplets of this anchor that violate α with lines: blue to the positive, orange "
            "to the negative. Gray rings belong to triplets that satisfy α. The half angle is "
            r"$\arctan\frac{\|a - p\|}{2\|n - m\|}$ with $m = \frac{a + p}{2}$; above $\alpha$, "
            r"$z = \|a - p\|^2 - 4\tan^2\alpha\,\|n - m\|^2$ is above 0 (RPML eq. 8). Distances are of the learned "
            "embedding.")
    triplet = _pick_triplet(stored, own, alpha)
    images = stored.images[:, triplet].tolist()
    stages = stored.stages(triplet)
    stage = st.segmented_control("Triangle", stages, default=stages[-1], required=True, key="explore-triangle",
                                 format_func=STAGES.__getitem__, label_visibility="collapsed") or stages[-1]
    shape, position = stored.shape_at(stage, triplet)
    angle = float(shape.angle[position])
    place_drawing(triangle(views.corners(shape, position), alpha, angle, page_colors(),
                           [bench.dataset.images[index] for index in images], HEIGHT),
                  describe_triangle(f"Triplet of epoch {epoch}", alpha, angle))
    agreement = "" if stored.correct is None else " " + verdict(*(bool(part[triplet]) for part in stored.correct))
    where = f"In the projection of epoch {epoch}, which the loss compares." if stage == "loss" else (
        f"A triplet of epoch {epoch}, in the embedding {STAGES[stage].lower()}.")
    st.markdown(f"{where}{agreement}")
    bench.tiles([tile_of(stored.dataset, index, role, role) for index, role in zip(images, ROLES, strict=True)],
                "Anchor, positive and negative", "triplets")
    return link("triplets", bench, picked=shown, epoch=epoch, triplet=triplet, **in_address("alpha"))


def _pick_triplet(stored: StoredTriplets, own: list[int], alpha: float) -> int:
    """Choose one of an anchor's triplets; the address parameter `triplet` holds it.

    Args:
        stored: The stored triplets.
        own: Positions of the anchor's triplets, largest loss first.
        alpha: The upper bound of the angle in degrees; the angles above it are marked.
    """
    angles = stored.shape.angle
    wanted = int(number_from_address("triplet", own[0], 0, 10**9))
    triplet = wanted if wanted in own else own[0]
    listed = list(dict.fromkeys([*own[:MOST], triplet]))
    if len(listed) > 1:
        st.session_state["explore-triplet-of"] = triplet
        triplet = st.segmented_control(
            f"{len(own)} triplets of this anchor, largest loss first", listed, required=True, key="explore-triplet-of",
            label_visibility="collapsed",
            format_func=lambda other: f"{angles[other]:.0f}°{' ✕' if angles[other] > alpha else ''}",
            on_change=lambda: write_address("triplet", str(st.session_state["explore-triplet-of"]))) or triplet
    return triplet


def show_pairs(bench: Workbench) -> DeepLink:
    """Show the other images of the current image's pairs with their distances."""
    record, epoch = bench.record(Pairs), bench.epoch_with(Pairs)
    assert record is not None
    explain("Similar pairs should end up nearer than b, dissimilar pairs farther, both by a margin m.",
            "A pair violates the margin if $m - y(b - d^2)$ is above 0, where $y$ is 1 for a similar and −1 for a "
            "dissimilar pair, and $d^2$ the squared distance.")
    stored = StoredPairs(bench.run, bench.dataset, record)
    shown = bench.nearest_of(np.unique(stored.pairs))
    say_stand_in(bench, shown, "in a stored pair")
    rows = np.flatnonzero((stored.pairs == shown).any(axis=1))
    rows = rows[np.argsort(-np.asarray(record.argument)[rows], kind="stable")]
    others = np.where(stored.pairs[rows, 0] == shown, stored.pairs[rows, 1], stored.pairs[rows, 0])
    kinds: tuple[tuple[str, bool, Mark], ...] = (("Similar", True, "same"), ("Dissimilar", False, "different"))
    for word, same, mark in kinds:
        of_kind = np.asarray(record.same)[rows] == same
        st.markdown(f"**{word} pairs: {of_kind.sum():,}**"
                    + (f" · {(np.asarray(record.argument)[rows][of_kind] > 0).sum():,} violate the margin"
                       if of_kind.any() else ""))
        if of_kind.any():
            tiles = [tile_of(bench.dataset, int(other), mark, f"{record.before[row]:.3f} → {record.after[row]:.3f}")
                     for row, other in zip(rows[of_kind][:MOST_PAIRS], others[of_kind][:MOST_PAIRS], strict=True)]
            bench.tiles(tiles, f"{word} to the image", f"pairs-{word.lower()}", 96)
    st.caption("The numbers are d² before training and after the epoch. Pairs that violate the margin most come first.")
    return link("pairs", bench, epoch=epoch, pair=join_indices(stored.pairs[rows[0]].tolist()))
