"""A training beside the search in use, else beside the advised search: which is better, and the ways to choose."""

from __future__ import annotations

import streamlit as st

from udml_core.base.errors import UserError
from udml_core.runs import Run
from udml_core.runs.search import FINAL
from udml_core.runs.search.differing import side_name
from udml_core.work.jobs.verdicts import IN_USE, best_words, rival_of

from ..data.using import SEARCH, judge_link, open_used
from ..shell.cached import dataset_of
from ..shell.race_verdict import judgments_version
from ..shell.run_hash import RUN_HASH
from ..shell.views import view_link


def best_beside(run: Run) -> str:
    """Return which of a run and the search in use, else the advised search, judges prefer; empty if none compares."""
    return _best(run, judgments_version(run))


@st.cache_data(ttl="10s", max_entries=64, show_spinner="Comparing with your search …", hash_funcs=RUN_HASH)
def _best(run: Run, version: tuple[int, ...]) -> str:  # noqa: ARG001 (of the judgments, which decide what is best)
    try:
        return best_words(run, dataset_of(run))
    except UserError:  # an embedding was removed or is damaged, which other pages say
        return ""


def offer_choice(run: Run, key: str) -> None:
    """Show the button that uses a run's search from now on, and the link that compares it with the search in use.

    Args:
        run: A finished run.
        key: Prefix of the keys.
    """
    if st.button("Use this", key=f"{key}-use", icon=SEARCH,
                 help="Search begins with this training from now on, and Home links to it."):
        open_used(run, FINAL)
    try:
        rival = rival_of(run, dataset_of(run))
    except UserError:  # the images are missing, which the page says
        return
    if rival is not None:
        link = judge_link(side_name(rival.run.id, rival.frame), run.id, None, rival.serves)
        label = "Compare with my search" if rival.name == IN_USE else f"Compare with {rival.name}"
        view_link("compare", label=label, icon=":material/thumbs_up_down:", width="content", query_params=link,
                  help="Blind: you see where the two searches differ, without their names.")
