"""The button that searches with the embedding that blind judgments prefer."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from udml_core.runs import Run, frozen_runs
from udml_core.runs.analyses import REFINED
from udml_core.runs.search import FINAL
from udml_core.runs.search.differing import Side
from udml_core.runs.search.judged_runs import is_frozen, stance_of
from udml_core.runs.search.judging import Judging

from ..data.using import KEEP, SEARCH, chosen_search, open_used


def offer_winner(judging: Judging, sides: Sequence[Side]) -> bool:
    """Show the button that searches with the better of two embeddings, else with the plain one where both are as good.

    Args:
        judging: The session.
        sides: Embeddings A and B.

    Returns:
        Whether it is there: judgments decide, and the embedding is of a kind that can be chosen.
    """
    stance = stance_of(judging)
    if stance == "open":
        return False
    plain = next((side for side in sides if is_frozen(side.retrieval.run, side.frame)), None)
    winner = plain if stance == "level" else sides[stance == "better"]
    search = None if winner is None else _search_of(winner)
    if search is None:
        return False
    label = "Use the plain search" if winner is plain else (
        KEEP if search == chosen_search(judging.comparison.dataset.name) else "Search with it")
    if st.button(label, icon=SEARCH, key="judge-use", type="primary",
                 help="Search begins with it from now on, and Home links to it."):
        open_used(*search)
    return True


def _search_of(side: Side) -> tuple[Run, str] | None:
    """Return the run and the embedding by which a side can be chosen; None for what no search begins with."""
    run = side.retrieval.run
    if is_frozen(run, side.frame):
        plain = next(frozen_runs(run.root, run.spec().fingerprint), None)
        return None if plain is None else (plain, FINAL)
    return (run, side.frame) if side.frame == FINAL or side.frame.startswith(REFINED) else None
