"""The search that the user chose for these images: named while Search shows it, offered while it shows another."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import streamlit as st

from udml_core.base.errors import UserError
from udml_core.runs import Run, find_run, list_runs, runs_folder
from udml_core.runs.analyses import REFINED
from udml_core.runs.search import FINAL, FROZEN, Retrieval
from udml_core.runs.search.judged_runs import is_frozen
from udml_core.runs.used import use_search, used_search

from ..data.answer import show_own
from ..data.using import REPLACED, open_used, search_link
from ..refine.cards import PARAMETER
from ..runs.newer import offer_newer
from ..shell.address import write_address
from ..shell.race_judgments import search_kind, search_name
from ..shell.run_status import escaped
from ..shell.views import open_view
from .embeddings import Column, show_alone, show_embedding
from .query import kept_query


def show_used(retrieval: Retrieval, columns: Sequence[Column]) -> tuple[Run, str] | None:
    """Show in a line which search the user chose, with a button that searches with it and one that keeps what is shown.

    Nothing is shown before a choice. While the chosen search is among the shown ones, the line offers the plain search
    beside it and a newer training. The query stays.

    Args:
        retrieval: The search of the run that the page shows.
        columns: The shown embeddings.

    Returns:
        The run of the chosen search and its embedding; None before a choice.
    """
    runs = [other for other in list_runs(runs_folder()) if other.spec().dataset == retrieval.spec.dataset]
    used = used_search(runs)
    if used is None:
        return None
    if any(is_used(column, *used) for column in columns):
        _show_in_use(retrieval, *used, is_alone=len(columns) == 1)
        offer_newer(retrieval.spec.dataset, "retrieval-newer")
        return used
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="retrieval-used"):
        st.markdown(f":material/push_pin: You chose **{escaped(search_kind(*used))}** for these images.",
                    width="content")
        if used[0].id == retrieval.run.id:
            st.button("Search with it", key="retrieval-used-again", type="tertiary", icon=":material/image_search:",
                      on_click=_search_with, args=(retrieval, used[1]))
        elif st.button("Search with it", key="retrieval-used-run", type="tertiary", icon=":material/image_search:"):
            # A link to the page that is shown would leave the former run in the browser's address.
            open_view("retrieval", query_params=search_link(*used) | kept_query())
        last = columns[-1] if columns else None
        if last is not None and last.frame.name.startswith((FINAL, REFINED)) and st.button(
                "Choose what is shown", key="retrieval-use-instead", type="tertiary", icon=":material/push_pin:",
                help=f"{escaped(last.title)}: Search begins with it, and Home links to it."):
            use_search(last.retrieval.run, last.frame.name)
            st.rerun()
    return used


def _search_with(retrieval: Retrieval, name: str) -> None:
    """Show the chosen search alone, without the steps that are switched on."""
    write_address(PARAMETER, "")
    show_alone(retrieval, name)


def _show_in_use(retrieval: Retrieval, run: Run, frame: str, is_alone: bool) -> None:
    """Say which search is in use, and offer the plain search beside it unless another is shown."""
    earlier = _replaced_by(run, frame)

    def show_actions() -> None:
        if earlier and st.button("Undo this choice", key="retrieval-use-again", type="tertiary", icon=":material/undo:",
                                 help="Searches with the earlier choice again."):
            open_used(*earlier)
        if is_alone and not is_frozen(run, frame):
            st.button("Show the plain search beside it", key="retrieval-beside", type="tertiary",
                      icon=":material/compare:", on_click=show_embedding,
                      args=(retrieval, FINAL if retrieval.spec.method == FROZEN else FROZEN),
                      help="Both answer the same query.")

    show_own(run, frame, "retrieval-in-use",
             f"It takes the place of {escaped(search_name(*earlier))}." if earlier else "", show_actions)


def _replaced_by(run: Run, frame: str) -> tuple[Run, str] | None:
    """Return the search that the last choice of this session replaced, if it chose this one; None without one."""
    replaced = st.session_state.get(REPLACED)
    if replaced is None or replaced[2:] != (run.id, frame):
        return None
    with suppress(UserError):  # its run was removed
        return find_run(replaced[0], runs_folder()), replaced[1]
    return None


def is_used(column: Column, run: Run, frame: str) -> bool:
    """Return whether an embedding is the chosen one; the plain search is in every run of the same features."""
    is_plain = run.spec().method == FROZEN and frame == FINAL and column.frame.name == FROZEN
    return is_plain or (column.retrieval.run.id, column.frame.name) == (run.id, frame)
