"""Choosing one of a run's maps, and computing a new map."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from udml_core.base.declaration import describe
from udml_core.runs import Run
from udml_core.runs.analyses import (
    KINDS,
    MAPS,
    REFINED,
    AnalysisSpec,
    Scope,
    analysis_at,
    list_analyses,
    plan_analysis,
)
from udml_core.runs.analyses.kinds.tsne import TSNE
from udml_core.runs.search.refined import finished_refinements
from udml_core.work import jobs

from ..draw.form import field_widget
from ..shell.address import choice_from_address, write_address
from ..shell.analyses import SCOPE_WORDS, short_title
from ..shell.focus import carried_frame
from ..shell.user_errors import show_user_errors

REQUESTED, SEEN, DEFAULT, MENU = "map-requested", "maps-seen", "map-default", "new-map"
"""Keys of the session: the map that a user started, the maps of each run that were offered or shown, the default map,
and whether the menu is open."""


def finished_maps(run: Run) -> dict[str, AnalysisSpec]:
    """Return the specs of a run's finished maps by id, newest first within PCA, t-SNE and UMAP."""
    return {analysis.id: analysis.spec() for kind in MAPS for analysis in list_analyses(run, kind)
            if analysis.is_done()}


def default_map(specs: dict[str, AnalysisSpec]) -> str:
    """Return the id of the map to show first: UMAP, then t-SNE, then PCA, the newest of each."""
    return max(specs, key=lambda map_id: MAPS.index(specs[map_id].kind))


def carry_frame(run: Run) -> None:
    """Show the embedding of the page before on the first map that has it, the default map before others."""
    specs = finished_maps(run)
    if not specs:
        return
    default = default_map(specs)
    frames_of = {default: specs[default].frames} | {map_id: spec.frames for map_id, spec in specs.items()}
    if carried := carried_frame(run, frames_of):
        map_id, position = carried
        write_address("map", map_id, default)
        write_address("frame", str(position), str(len(frames_of[map_id]) - 1))


def pick_map(run: Run, parameter: str = "map", label: str = "Map", width: int | Literal["stretch"] = "stretch",
             ) -> str | None:
    """Choose one of the run's finished maps; the address holds its id.

    A map that the user started, or a better default, is shown as soon as it is finished.

    Args:
        run: The run.
        parameter: Name in the address.
        label: The label, for screen readers.
        width: Width in pixels.

    Returns:
        The id of the map; None, with instructions on the page, if there is no map yet.
    """
    specs = finished_maps(run)
    if not specs:
        st.info("This run has no map yet. Compute one with New map: PCA takes seconds; t-SNE and UMAP take a minute or "
                "two for a few thousand images.", icon=":material/lightbulb:")
        return None
    default = default_map(specs)
    if parameter == "map":
        _show_finished(run, specs, default)
    wanted = choice_from_address(parameter, list(specs), default)
    chosen = st.selectbox(label, list(specs), list(specs).index(wanted), key=f"choose-{parameter}", width=width,
                          label_visibility="collapsed", format_func=lambda map_id: short_title(specs[map_id]))
    write_address(parameter, chosen, default if parameter == "map" else "")
    return chosen


def _show_finished(run: Run, specs: dict[str, AnalysisSpec], default: str) -> None:
    """Change the chosen map to one that a user started or to a better default, if it has just finished."""
    shown = st.session_state.get("choose-map")
    followed = st.session_state.get(DEFAULT)
    if followed == (run.id, shown) and shown != default:
        st.session_state["choose-map"] = default
    st.session_state[DEFAULT] = (run.id, default)
    requested = st.session_state.get(REQUESTED)
    if requested and requested[0] == run.id and requested[1] in specs:
        st.session_state["choose-map"] = requested[1]
        del st.session_state[REQUESTED]


def announce_maps(run: Run, shown: str) -> None:
    """Offer maps that finished since the run was opened and that are not shown."""
    specs = finished_maps(run)
    seen: set[str] = st.session_state.setdefault(f"{SEEN}-{run.id}", set(specs))
    seen.add(shown)
    for map_id in [map_id for map_id in specs if map_id not in seen]:
        def show(map_id: str = map_id) -> None:
            st.session_state["choose-map"] = map_id

        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.caption(f"{short_title(specs[map_id])} is ready.")
            st.button("Show it", icon=":material/visibility:", key=f"show-{map_id}", type="tertiary", on_click=show)
            st.button("Dismiss", key=f"dismiss-{map_id}", type="tertiary", on_click=seen.add, args=(map_id,))


def new_map_menu(run: Run) -> None:
    """Show the menu that computes a new map; it closes when the computation starts."""
    with st.popover("New map", icon=":material/add:", key=MENU, on_change="rerun"):
        kind = st.segmented_control("Projection", MAPS, default=TSNE.name, key="new-kind",
                                    format_func=lambda name: KINDS[name].title) or TSNE.name
        frames = _pick_embeddings(run)
        scope: Scope = st.selectbox("Images", _scopes(frames), key="new-scope", format_func=SCOPE_WORDS.__getitem__,
                                    help="The embedding of every epoch is kept for a fixed sample of the test half, "
                                         "and a refinement covers the test half.")
        values = pick_options(kind)
        with show_user_errors():
            spec = plan_analysis(kind=kind, scope=scope, frames=frames, **values)
            if st.button("Compute map", icon=":material/play_arrow:", key="new-compute", type="primary",
                         on_click=_close_menu,
                         help="The map is computed in the background, shown when it is ready, and kept with the run."):
                jobs.analyse(run, spec)
                st.session_state[REQUESTED] = (run.id, analysis_at(run, spec).id)
                st.rerun()


def _close_menu() -> None:
    st.session_state[MENU] = False


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


def pick_options(kind: str) -> dict[str, float]:
    """Choose the numeric options of this kind of map."""
    return {field.name: field_widget(field, f"new-{field.name}") for field in describe(KINDS[kind])
            if field.kind in (int, float)}
