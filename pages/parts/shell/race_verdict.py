"""What a race for the best search said of a run or a refinement, on every page that shows it."""

from __future__ import annotations

import streamlit as st

from udml_core.runs import Run
from udml_core.runs.analyses import REFINED, find_analysis
from udml_core.work.jobs.advising import race_words_of

from .run_hash import RUN_HASH
from .run_status import escaped


def race_verdict(run: Run, recipe: str | None = None) -> str:
    """Return a race's sentence on a run's search in Markdown; empty if no race judged it.

    Args:
        run: The run.
        recipe: The refinement of its embedding, empty for the embedding itself; None for the best of its searches.
    """
    return escaped(_words(run, recipe))


def show_frame_verdict(run: Run, frame: str) -> None:
    """Show a race's sentence on an embedding of a run, if it is the kept embedding or a refinement that was judged."""
    if frame != "final" and not frame.startswith(REFINED):
        return
    recipe = find_analysis(run, frame).spec().recipe if frame.startswith(REFINED) else ""
    if words := race_verdict(run, recipe):
        st.caption(f":material/balance: {words}")


@st.cache_data(ttl="10s", max_entries=64, show_spinner=False, hash_funcs=RUN_HASH)
def _words(run: Run, recipe: str | None) -> str:
    return race_words_of(run, recipe)
