"""The label that spreads to the current image, and the labeled images from which it comes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array
from udml_core.base.declaration import describe_field
from udml_core.data.given.labels import assigned_now
from udml_core.exploration.focus import LabelSources, label_sources
from udml_core.exploration.gallery_content import Mark
from udml_core.methods.ssdml import SSDML
from udml_core.numerics.explanations import Affinities
from udml_core.runs import Run

from ..draw.gallery import tile_of
from ..draw.palette import color_legend, percent
from ..draw.slider import field_slider
from ..labels.graph_view import SOURCES, GraphView, load_view
from ..shell.address import choice_from_address
from ..shell.cached import dataset_of
from ..shell.label_graph import training_labels
from ..shell.run_hash import RUN_HASH
from ..shell.run_status import escaped, hyperparameters
from .workbench import DeepLink, Workbench, explain, in_address, link, say_stand_in

MOST = 10


def label_graphs(bench: Workbench) -> list[str]:
    """List the graphs with labels, as on the view Affinity, the graph of training first."""
    available = {"training": bench.epoch_with(Affinities) is not None,
                 "told": training_labels(bench.run, bench.dataset) is not None,
                 "given": bool(assigned_now(bench.dataset))}
    return [source for source, is_available in available.items() if is_available]


def run_gamma(run: Run) -> float:
    """Return γ of a run that spreads labels, else SSDML's default."""
    return float(hyperparameters(run).get("gamma", describe_field(SSDML, "gamma").default))


def pick_gamma(run: Run) -> float:
    """Show the slider of γ, and return its value."""
    return field_slider(describe_field(SSDML, "gamma"), "explore-gamma", run_gamma(run), "how far a label reaches")


def show_labels(bench: Workbench) -> DeepLink:
    """Show the class that spreads to the current image, its sources and its affinities."""
    explain("Few labels spread to all images by random walks.",
            r"A walk in the neighbor graph moves to a neighbor with probability $\gamma$ and stops with probability "
            r"$1 - \gamma$. An image gets the class at which most of its walks stop: "
            r"$F = (1 - \gamma)(I - \gamma P)^{-1} Y$, where $P$ are the transition probabilities and $Y$ the labels. "
            "The map colors an image only if its name is certain enough; other images stay gray.")
    sources = label_graphs(bench)
    source = choice_from_address("source", sources, sources[0])
    epoch = bench.epoch_with(Affinities) or 0
    # Assigned labels change, so that only the other graphs are kept.
    view = load_view(bench.run, bench.dataset, source, epoch) if source == "given" else _view(bench.run, source, epoch)
    shown = bench.nearest_of(view.graph.images)
    view = replace(view, row=view.graph.row_of(shown) or 0)
    say_stand_in(bench, shown, "in this graph of the training half")
    gamma = run_gamma(bench.run) if bench.gamma is None else bench.gamma
    ends = label_sources(view.graph.neighbors, view.graph.codes, view.row, gamma)
    _show_ends(view, ends)
    if len(ends.rows):
        tiles = [tile_of(bench.dataset, int(view.graph.images[row]), view.mark(int(row)),
                         percent(100 * share))
                 for row, share in zip(ends.rows[:MOST].tolist(), ends.shares[:MOST].tolist(), strict=True)]
        bench.tiles(tiles, "Labeled images at which walks from this image end", "label-sources")
        st.caption(f"{SOURCES[source]}, γ = {gamma:g}. Badge: the share of random walks from the image that end at "
                   "this label.")
    _show_affinities(bench, view)
    return link("affinity", bench, picked=shown, source=source, **in_address("gamma"))


@st.cache_resource(max_entries=8, show_spinner=False, hash_funcs=RUN_HASH)
def _view(run: Run, source: str, epoch: int) -> GraphView:
    return load_view(run, dataset_of(run), source, epoch)


def _show_ends(view: GraphView, ends: LabelSources) -> None:
    """Say which label the image has, or which class spreads to it."""
    own = view.label_name(view.row)
    if own:
        st.markdown(f"This image has the label **{escaped(own)}**.")
    elif ends.best < 0:
        st.markdown("No label reaches this image.")
    else:
        st.markdown(f"The class **{escaped(view.names[ends.best])}** spreads to this image: "
                    f"**{percent(100 * ends.certainty)}** of the walks that stop at a label stop at its labels. "
                    "They do not say whether the image shows a class without a label.")


def _show_affinities(bench: Workbench, view: GraphView) -> None:
    """Show the neighbors by affinity in training: the first half are positives, the others negatives.

    The marks show the role in the loss; the count says how many classes agree with it.
    """
    if view.trained is None:
        return
    values, neighbors = view.trained[view.row], view.graph.neighbors[view.row]
    order = np.argsort(-values, kind="stable")
    half = len(order) // 2
    roles: tuple[tuple[str, Mark, Array], ...] = (("Positives", "positive", order[:half]),
                                                  ("Negatives", "negative", order[half:2 * half]))
    for word, role, part in roles:
        st.markdown(f"**{word}** in training{view.agreement_words(role, neighbors[part])}")
        bench.tiles([tile_of(bench.dataset, int(view.graph.images[neighbors[at]]), role, f"{values[at]:.4f}")
                     for at in part[:MOST].tolist()],
                    f"{word} by affinity", f"affinity-{word.lower()}")
    color_legend("positive", "negative")
    st.caption("Badge: the affinity W, large for similar images. The neighbors with the larger W are positives, which "
               "training pulls near; the other half are negatives, which it pushes away.")
