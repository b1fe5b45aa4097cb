"""The search that the user chose for these images, offered while Search shows another."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from udml_core.runs import Run, list_runs, runs_folder
from udml_core.runs.analyses import REFINED
from udml_core.runs.search import FINAL, FROZEN
from udml_core.runs.used import use_search, used_search

from ..data.using import search_link, used_words
from ..shell.run_status import escaped
from ..shell.views import view_link
from .embeddings import Column


def show_used(run: Run, columns: Sequence[Column]) -> None:
    """Show in a line which search the user chose, with a link to it and a button that keeps what is shown instead.

    Nothing is shown before a choice, or while the chosen search is among the shown ones.

    Args:
        run: The run that the page shows.
        columns: The shown embeddings.
    """
    used = used_search(other for other in list_runs(runs_folder()) if other.spec().dataset == run.spec().dataset)
    if used is None or any(_is_of(column, *used) for column in columns):
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="retrieval-used"):
        st.markdown(f":material/push_pin: You chose **{escaped(used_words(*used))}** for these images.",
                    width="content")
        view_link("retrieval", label="Search with it", icon=":material/image_search:", width="content",
                  query_params=search_link(*used))
        last = columns[-1] if columns else None
        if last is not None and last.frame.name.startswith((FINAL, REFINED)) and st.button(
                "Choose what is shown", key="retrieval-use-instead", type="tertiary", icon=":material/push_pin:",
                help=f"{escaped(last.title)}: Search begins with it, and Home links to it."):
            use_search(last.retrieval.run, last.frame.name)
            st.rerun()


def _is_of(column: Column, run: Run, frame: str) -> bool:
    """Return whether an embedding is the chosen one; the plain search is in every run of the same features."""
    is_plain = run.spec().method == FROZEN and frame == FINAL and column.frame.name == FROZEN
    return is_plain or (column.retrieval.run.id, column.frame.name) == (run.id, frame)
