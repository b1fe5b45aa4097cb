"""The neighbor graph that the view Clusters shows: of an embedding, or of a refinement of the training half."""

from __future__ import annotations

import streamlit as st

from udml_core.numerics.refinement import Recipe
from udml_core.runs import Run
from udml_core.runs.analyses import (
    DEFAULT_RECIPE,
    REFINED,
    AnalysisSpec,
    analysis_at,
    find_analysis,
    finished_analyses,
    plan_analysis,
)
from udml_core.runs.analyses.kinds.graph import NeighborGraph
from udml_core.runs.analyses.kinds.refine import Refinement
from udml_core.runs.search import finished_refinements, frame_words

from ..shell.address import choice_from_address, write_address
from ..shell.analyses import request_analysis


def has_graph(run: Run) -> bool:
    """Return whether a run has a finished neighbor graph."""
    return bool(finished_analyses(run, NeighborGraph))


def choose_graph(run: Run) -> str | None:
    """Choose one of the run's finished graphs; the address parameter `graph` holds its id.

    Returns:
        The id of the graph; None if there is no graph yet.
    """
    specs = {analysis.id: analysis.spec() for analysis in finished_analyses(run, NeighborGraph)}
    if not specs:
        return None
    default = next(iter(specs))
    chosen = choice_from_address("graph", specs, default)
    if len(specs) > 1:
        chosen = st.selectbox("Neighbor graph of", list(specs), list(specs).index(chosen), key=f"graph-{run.id}",
                              format_func=lambda graph_id: _graph_words(run, specs[graph_id]))
    _offer_refined_graphs(run, specs[chosen].n_neighbors)
    write_address("graph", chosen, default)
    return chosen


def graph_embedding(run: Run, graph_id: str) -> str:
    """Return the name of the embedding whose neighbors a graph joins."""
    return frame_words(find_analysis(run, graph_id).spec().frames[0], run)


def _graph_words(run: Run, spec: AnalysisSpec) -> str:
    """Return a graph's embedding and its number of neighbors."""
    frame = spec.frames[0]
    words = frame_words(frame)
    if frame.startswith(REFINED):
        words = f"embedding refined by {find_analysis(run, frame).spec().recipe}"
    return f"{words} · {spec.n_neighbors} neighbors"


def _offer_refined_graphs(run: Run, neighbors: int) -> None:
    """Show a button for the refinement of the training half, and for the graph of each refinement."""
    st.caption("A refined embedding brings images with common neighbors closer together. Refine the training half, "
               "then build its graph, and compare the clusters.")
    standard = plan_analysis(Refinement, scope="train", recipe=str(Recipe.parse(DEFAULT_RECIPE).without("views")))
    refinements = finished_refinements(run, "train")
    if not analysis_at(run, standard).folder.exists():
        request_analysis(run, standard, "Refine training half", "clusters-refine", f"Recipe: {standard.recipe}")
    for refinement in refinements:
        spec = plan_analysis(NeighborGraph, scope="train", frames=(refinement.id,), n_neighbors=neighbors)
        if not analysis_at(run, spec).folder.exists():
            request_analysis(run, spec, f"Build graph of {refinement.spec().recipe}", f"clusters-{refinement.id}",
                             primary=True)
