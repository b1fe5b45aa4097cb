"""The search that the user chose for these images: named while Search shows it, offered while it shows another."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import streamlit as st

from udml_core.base.errors import UserError
from udml_core.exploration.race_figures import said_words
from udml_core.runs import Run, find_run, list_runs, runs_folder
from udml_core.runs.analyses import REFINED
from udml_core.runs.search import FINAL, FROZEN
from udml_core.runs.search.judged_runs import is_frozen
from udml_core.runs.used import chosen_at, use_search, used_search
from udml_core.work.jobs.advising import is_trial

from ..data.using import REPLACED, open_used, search_link
from ..runs.rivals import best_beside, offer_choice
from ..shell.race_judgments import search_name
from ..shell.race_verdict import said_of
from ..shell.run_status import escaped, method_title
from ..shell.views import view_link
from .embeddings import Column


def show_used(run: Run, columns: Sequence[Column]) -> None:
    """Show in a line which search the user chose, with a link to it and a button that keeps what is shown instead.

    Nothing is shown before a choice. While the chosen search is among the shown ones, the line links the plain search
    beside it, and a newer training is offered.

    Args:
        run: The run that the page shows.
        columns: The shown embeddings.
    """
    runs = [other for other in list_runs(runs_folder()) if other.spec().dataset == run.spec().dataset]
    used = used_search(runs)
    if used is None:
        return
    if any(_is_of(column, *used) for column in columns):
        _show_in_use(*used, is_alone=len(columns) == 1)
        _offer_newer(runs, used[0])
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="retrieval-used"):
        st.markdown(f":material/push_pin: You chose **{escaped(search_name(*used))}** for these images.",
                    width="content")
        view_link("retrieval", label="Search with it", icon=":material/image_search:", width="content",
                  query_params=search_link(*used))
        last = columns[-1] if columns else None
        if last is not None and last.frame.name.startswith((FINAL, REFINED)) and st.button(
                "Choose what is shown", key="retrieval-use-instead", type="tertiary", icon=":material/push_pin:",
                help=f"{escaped(last.title)}: Search begins with it, and Home links to it."):
            use_search(last.retrieval.run, last.frame.name)
            st.rerun()


def _show_in_use(run: Run, frame: str, is_alone: bool) -> None:
    """Say which search is in use, and link the plain search beside it unless another is shown."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="retrieval-in-use"):
        earlier = _replaced_by(run, frame)
        instead = f" now, in place of **{escaped(search_name(*earlier))}**" if earlier else ""
        st.markdown(f":material/push_pin: You search with **{escaped(search_name(run, frame))}**{instead}.",
                    width="content")
        if earlier and st.button("Undo this choice", key="retrieval-use-again", type="tertiary", icon=":material/undo:",
                                 help="Searches with the earlier choice again."):
            open_used(*earlier)
        if is_alone and not is_frozen(run, frame):
            view_link("retrieval", label="Show the plain search beside it", icon=":material/compare:", width="content",
                      query_params=search_link(run, frame, has_plain=True))


def _replaced_by(run: Run, frame: str) -> tuple[Run, str] | None:
    """Return the search that the last choice of this session replaced, if it chose this one; None without one."""
    replaced = st.session_state.get(REPLACED)
    if replaced is None or replaced[2:] != (run.id, frame):
        return None
    with suppress(UserError):  # its run was removed
        return find_run(replaced[0], runs_folder()), replaced[1]
    return None


def _offer_newer(runs: Sequence[Run], used: Run) -> None:
    """Offer the newest training that ended after the user chose a search, with what judges say of it.

    Args:
        runs: The runs of these images, the newest first.
        used: The run of the chosen search.
    """
    since = chosen_at(used)
    newer = next((run for run in runs if run.spec().method != FROZEN and not is_trial(run) and run.id != used.id
                  and run.stored_status().state == "done" and (run.stored_status().finished or 0.0) > since), None)
    if newer is None:
        return
    said, best = said_of(newer), best_beside(newer)
    judged = f"{best[:1].lower()}{best[1:]}" if best else "no judge has compared it yet" if said is None else (
        f"against the plain search, the judges see {said_words(*said.verdicts)}")
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="retrieval-newer"):
        st.markdown(f":material/new_releases: Your training **{escaped(method_title(newer))}** is newer than your "
                    f"search: {judged}.", width="content")
        offer_choice(newer, "retrieval-newer")


def _is_of(column: Column, run: Run, frame: str) -> bool:
    """Return whether an embedding is the chosen one; the plain search is in every run of the same features."""
    is_plain = run.spec().method == FROZEN and frame == FINAL and column.frame.name == FROZEN
    return is_plain or (column.retrieval.run.id, column.frame.name) == (run.id, frame)
