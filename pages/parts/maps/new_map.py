"""Computing a new map of a run."""

from __future__ import annotations

import streamlit as st

from udml_core.base.declaration import describe
from udml_core.runs import Run
from udml_core.runs.analyses import (
    KINDS,
    MAPS,
    REFINED,
    Scope,
    analysis_at,
    plan_analysis,
)
from udml_core.runs.analyses.kinds.tsne import TSNE
from udml_core.runs.search import FROZEN, SCOPE_WORDS, TRAINED, finished_refinements
from udml_core.work import jobs

from ..draw.form import field_widget
from ..shell.analyses import frames_words
from ..shell.user_errors import show_user_errors
from .choosing import REQUESTED

MENU = "new-map"
"""Key of the session: whether the menu is open."""


def new_map_menu(run: Run) -> None:
    """Show the menu that computes a new map; it closes when the computation starts."""
    with st.popover("New map", icon=":material/add:", key=MENU, on_change="rerun"):
        kind = st.segmented_control("Projection", [kind.name for kind in reversed(MAPS)], default=TSNE.name,
                                    key="new-kind", format_func=lambda name: KINDS[name].title) or TSNE.name
        frames = _pick_embeddings(run)
        scope: Scope = st.selectbox("Images", _scopes(frames), key="new-scope", format_func=SCOPE_WORDS.__getitem__,
                                    help="The embedding of every epoch is kept for a fixed sample of the test half, "
                                         "and a refinement covers the test half.")
        values = pick_options(kind)
        with show_user_errors():
            spec = plan_analysis(kind=kind, scope=scope, frames=frames, **values)
            if st.button("Compute map", icon=":material/play_arrow:", key="new-compute", type="primary",
                         on_click=st.session_state.update, args=({MENU: False},),
                         help="The map is computed in the background, shown when it is ready, and kept with the run."):
                jobs.analyse(run, spec)
                st.session_state[REQUESTED] = (run.id, analysis_at(run, spec).id)
                st.rerun()


def _scopes(frames: tuple[str, ...]) -> list[Scope]:
    """Return the images whose embeddings are stored in all frames."""
    if frames[-1].startswith(REFINED):
        return ["test"]
    return ["sample"] if frames[0].isdecimal() else ["all", "test", "train", "sample"]


def _pick_embeddings(run: Run) -> tuple[str, ...]:
    """Choose the embeddings to lay out."""
    epochs = tuple(map(str, run.epoch_numbers()))
    stored: list[tuple[str, ...]] = [TRAINED, ("final",), (FROZEN,), *([epochs] if len(epochs) > 1 else [])]
    choices = {frames_words(frames): frames for frames in stored}
    choices |= {f"after training and refined by {analysis.spec().recipe}": ("final", analysis.id)
                for analysis in finished_refinements(run)}
    return choices[st.selectbox("Embeddings", list(choices), key="new-frames",
                                help="Several embeddings are laid out one after the other in the same orientation.")]


def pick_options(kind: str) -> dict[str, float]:
    """Choose the numeric options of this kind of map."""
    return {field.name: field_widget(field, f"new-{field.name}") for field in describe(KINDS[kind])
            if field.kind in (int, float)}
