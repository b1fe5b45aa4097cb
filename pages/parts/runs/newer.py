"""A training that is newer than the search in use: what judges say of both, and the ways to choose, on every page."""

from __future__ import annotations

import streamlit as st

from udml_core.base.errors import capitalized
from udml_core.exploration.race_figures import said_words
from udml_core.runs import Run, list_runs, runs_folder
from udml_core.runs.opinions import NO_GAIN, adds_nothing
from udml_core.work.jobs.verdicts import Stand, newer_training

from ..shell.race_verdict import said_of
from ..shell.run_status import escaped, method_title
from .coming import is_judged_later
from .rivals import offer_choice, stand_beside


def offer_newer(dataset: str, key: str, can_keep: bool = True) -> None:
    """Offer the newest training that ended after the user chose a search for a data set; nothing without one.

    Args:
        dataset: Name of the data set.
        key: Prefix of the keys.
        can_keep: Whether the button stands here that keeps the search in use; else the page has it already.
    """
    newer = newer_training([run for run in list_runs(runs_folder()) if run.spec().dataset == dataset])
    if newer is None:
        return
    title = escaped(method_title(newer))
    stand = None if (is_pending := is_judged_later(newer)) else stand_beside(newer)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=key):
        if stand is not None:
            _show_in_short(newer, stand, title)
        else:
            said = None if is_pending else said_of(newer)
            judged = "The judges are at work" if is_pending else "No judge has compared it yet" if said is None else (
                f"Against the plain search, judges see {said_words(*said.verdicts)}")
            st.markdown(f":material/new_releases: Your training **{title}** is newer than your search. {judged}.",
                        width="content")
        offer_choice(newer, key, can_keep)


def _show_in_short(newer: Run, stand: Stand, title: str) -> None:
    """Show in a line what to do, and behind its "?" why; `title` is the training in Markdown."""
    idle = f" ({NO_GAIN[:1].lower()}{NO_GAIN[1:].partition(':')[0]})" if adds_nothing(newer) else ""
    st.markdown(f":material/new_releases: Your newer training {title}: **{escaped(stand.head[:1].lower())}"
                f"{escaped(stand.head[1:])}**{idle}.", width="content", help=f"{escaped(capitalized(stand.why))}.")
