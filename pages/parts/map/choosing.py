"""Choosing one of a run's maps, and computing a new map."""

from __future__ import annotations

import streamlit as st

from pages.parts.base.address import choice_from_address, write_address
from pages.parts.base.analyses import (
    KIND_WORDS,
    SCOPE_WORDS,
    request_analysis,
    show_analysis_progress,
    title_of_analysis,
)
from pages.parts.base.user_errors import show_user_errors
from pages.parts.kit.form import field_widget
from udml_core.analyses import MAPS, REFINED, RELEVANT_FIELDS, AnalysisSpec, Kind, Scope, list_analyses, plan_analysis
from udml_core.declaration import describe_field
from udml_core.refined_retrieval import finished_refinements
from udml_core.runs import Run


def pick_map(run: Run, parameter: str = "map", label: str = "Map") -> str | None:
    """Choose one of the run's finished maps; the address holds its id.

    Args:
        run: The run.
        parameter: Name in the address.
        label: The label.

    Returns:
        The id of the map; None, with instructions on the page, if there is no map yet.
    """
    specs = {analysis.id: analysis.spec() for kind in MAPS for analysis in list_analyses(run, kind)
             if analysis.is_done()}
    if not specs:
        st.info("This run has no map yet. Compute one: PCA takes seconds; t-SNE and UMAP take a minute or two for a "
                "few thousand images.", icon=":material/lightbulb:")
        return None
    default = max(specs, key=lambda map_id: MAPS.index(specs[map_id].kind))
    wanted = choice_from_address(parameter, list(specs), default)
    chosen = st.selectbox(label, list(specs), list(specs).index(wanted), key=f"choose-{parameter}",
                          format_func=lambda map_id: title_of_analysis(specs[map_id]))
    write_address(parameter, chosen, default if parameter == "map" else "")
    return chosen


def new_map_menu(run: Run) -> None:
    """Show the menu that computes a new map, and the progress of computations."""
    with st.popover("New map", icon=":material/add:"):
        kind: Kind = st.segmented_control("Projection", MAPS, default="tsne", format_func=KIND_WORDS.__getitem__,
                                          key="new-kind") or "tsne"
        frames = _pick_embeddings(run)
        scope: Scope = st.selectbox("Images", _scopes(frames), key="new-scope", format_func=SCOPE_WORDS.__getitem__,
                                    help="The embedding of every epoch is kept for a fixed sample of the test half, "
                                         "and a refinement covers the test half.")
        values = pick_options(kind)
        with show_user_errors():
            spec = plan_analysis(kind=kind, scope=scope, frames=frames, **values)
            request_analysis(run, spec, "Compute map", "new-compute", primary=True,
                             help_text="The map is computed in the background and kept with the run.")
    show_analysis_progress(run)


def _scopes(frames: tuple[str, ...]) -> list[Scope]:
    """Return the images whose embeddings are stored in all frames."""
    if frames[-1].startswith(REFINED):
        return ["test"]
    return ["sample"] if frames[0].isdecimal() else ["all", "test", "train", "sample"]


def _pick_embeddings(run: Run) -> tuple[str, ...]:
    """Choose the embeddings to lay out."""
    epochs = [str(number) for number in run.epoch_numbers()]
    choices: dict[str, tuple[str, ...]] = {"before and after training": ("initial", "final"),
                                           "after training": ("final",), "frozen features": ("frozen",)}
    if len(epochs) > 1:
        choices["every epoch"] = tuple(epochs)
    choices |= {f"after training and refined by {analysis.spec().recipe}": ("final", analysis.id)
                for analysis in finished_refinements(run)}
    return choices[st.selectbox("Embeddings", list(choices), key="new-frames",
                                help="Several embeddings are laid out one after the other in the same orientation.")]


def pick_options(kind: Kind) -> dict[str, float]:
    """Choose the numeric options that change this kind of map."""
    fields = [describe_field(AnalysisSpec, name) for name in RELEVANT_FIELDS[kind]]
    return {field.name: field_widget(field, f"new-{field.name}") for field in fields if field.kind in (int, float)}
