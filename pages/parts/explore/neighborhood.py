"""The linear neighborhood of the current image."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from udml_core.base.arrays import Array
from udml_core.base.declaration import describe_field
from udml_core.exploration import neighborhoods as views
from udml_core.methods.plm import PLM
from udml_core.runs import Run
from udml_core.runs.search import Which, epoch_of, frame_words, trained_name

from ..draw.slider import field_slider
from ..neighborhoods.center import surroundings_of
from ..neighborhoods.geometry import NOTES
from ..shell.run_status import hyperparameters
from .workbench import DeepLink, Workbench, explain, in_address, link

FIELDS = ("candidates", "flat", "threshold", "n_alpha", "n_beta", "admission", "through")


def run_geometry(run: Run) -> views.Geometry:
    """Return the geometry of a run's hyper-parameters, else PLM's defaults."""
    own = hyperparameters(run)
    return views.Geometry(**{name: own.get(name, describe_field(PLM, name).default) for name in FIELDS})


def pick_geometry(run: Run) -> views.Geometry:
    """Show the sliders of k and T; return the run's geometry with their values."""
    geometry = run_geometry(run)
    values = {}
    for column, name in zip(st.columns(2), ("candidates", "threshold"), strict=True):
        with column:
            values[name] = field_slider(describe_field(PLM, name), f"explore-{name}", getattr(geometry, name),
                                        NOTES[name])
    return replace(geometry, candidates=int(values["candidates"]), threshold=values["threshold"])


def members_of(bench: Workbench) -> Array:
    """Return the data set indices of the members of the current image's linear neighborhood."""
    geometry, around = _around(bench)
    hoods = around.neighborhoods(geometry)
    return hoods.neighbors[0][hoods.members[0]]


def _around(bench: Workbench) -> tuple[views.Geometry, views.Surroundings]:
    """Return the geometry, and the current image with its nearest images, each with its candidates."""
    geometry = bench.geometry or run_geometry(bench.run)
    nearest = views.nearest_rows(bench.run.embeddings(_which(bench)), bench.focus, geometry.candidates)
    around = surroundings_of(bench.run, _which(bench), (bench.focus, *nearest.tolist()))
    return geometry.within(around.candidates.shape[1], around.points.shape[1]), around


def _which(bench: Workbench) -> Which:
    return "initial" if trained_name(bench.run, bench.frame) == "initial" else "final"


def show_neighborhood(bench: Workbench) -> DeepLink:
    """Show the members of the linear neighborhood and the rejected candidates, with the quality that T tests."""
    which = _which(bench)
    geometry, around = _around(bench)
    hoods = around.neighborhoods(geometry)
    candidates, admitted = hoods.neighbors[0].tolist(), hoods.members[0].tolist()
    badges = dict(zip(candidates, views.tested_words(hoods.worst[0], geometry.untested), strict=True))
    explain("A linear neighborhood holds the neighbors near one line or plane through the image.",
            f"A candidate is admitted if every member keeps at least {geometry.threshold:g} of its squared distance in "
            f"a flat of {geometry.flat} dimensions: a line, plane or larger subspace through the image. "
            f"The {geometry.untested} nearest images always fit into it and need no test (PLM section 3.2).")
    for word, wanted in (("Members", True), ("Rejected", False)):
        images = [index for index, is_member in zip(candidates, admitted, strict=True) if is_member == wanted]
        if images:
            st.markdown(f"**{word}: {len(images)}** of {len(candidates)} candidates, {frame_words(which)} · badge "
                        f"{'≥' if wanted else '<'} T = {geometry.threshold:g}")
            bench.tiles([bench.tile(index, badges[index]) for index in images],
                        f"{word} of the linear neighborhood", f"neighborhood-{word.lower()}")
    if epoch_of(trained_name(bench.run, bench.frame)) is not None:
        st.caption("Linear neighborhoods are shown before and after training, not at single epochs.")
    used = "" if bench.run.spec().method == PLM.card.name else " Only the method PLM trains with it; this run did not."
    st.caption("Badge: the reconstruction quality that T tests, the smallest share of a member's squared distance that "
               f"the line or plane keeps when this image joins; the nearest images always fit.{used}")
    return link("neighborhoods", bench, picked=bench.focus, **({"embedding": which} if which == "initial" else {}),
                **in_address("candidates", "threshold"))
