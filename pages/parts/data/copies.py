"""Copies in a data set that an audit found and that are not excluded: in a race, they count as images of their own."""

from __future__ import annotations

import numpy as np
import streamlit as st

from udml_core.data.dataset import Dataset
from udml_core.data.given.duplicate_decisions import Decisions, decisions_of
from udml_core.data.given.exclusions import excluded_images
from udml_core.exploration.audit import AuditSettings, find_problems
from udml_core.exploration.duplicates import all_but_first
from udml_core.runs import Run, runs_folder
from udml_core.work.jobs.auditing import find_auditing
from udml_core.work.jobs.browse import DataAnalysis

from ..shell.run_hash import RUN_HASH
from .auditing import VIEW, load_audit
from .computed import chosen_encoder

NOTHING = "an image with a copy finds that copy first in every search, so it cannot show which search is better"


def offer_deciding(dataset: Dataset) -> None:
    """Say how many copies take part in a race, with a button that leads to them, or that an audit still looks for them.

    Nothing is said without copies.
    """
    state = find_auditing(dataset, chosen_encoder(dataset), runs_folder())
    if state.finished is None and state.task is not None:
        st.markdown(f":material/hourglass_top: The audit of these images still looks for copies: {NOTHING}. Begin "
                    "after it, and leave copies out.")
        return
    count = copies_of(dataset, state)
    if not count:
        return
    copies = f"{count:,} {'copy' if count == 1 else 'copies'}"
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="advice-copies"):
        st.markdown(f":material/content_copy: The audit found {copies} that {'takes' if count == 1 else 'take'} part: "
                    f"{NOTHING}.", width="stretch")
        st.button(f"Decide on {copies} first", icon=":material/fact_check:", key="advice-decide",
                  on_click=st.session_state.update, args=({VIEW: "audit"},),
                  help="Opens the audit, where one click excludes all but the best image of each group of copies.")


def copies_of(dataset: Dataset, state: DataAnalysis) -> int:
    """Return how many images the audit found beside the best of their copies, not excluded; 0 without an audit."""
    if state.run is None or state.finished is None:
        return 0
    ticket, decisions = state.finished.stored_status().ticket, decisions_of(dataset)
    return _count_copies(dataset, state.run, state.finished.id, ticket, dataset.fingerprint,
                         excluded_images(dataset).tobytes(), decisions.same.tobytes(),
                         decisions.different.tobytes(), decisions)


@st.cache_data(max_entries=16, show_spinner=False, hash_funcs=RUN_HASH)
def _count_copies(_dataset: Dataset, run: Run, analysis_id: str, ticket: float, fingerprint: str,  # noqa: ARG001
                  excluded: bytes, same: bytes, different: bytes, _decisions: Decisions) -> int:  # noqa: ARG001
    audit, listed = load_audit(run, analysis_id, ticket), np.frombuffer(excluded, np.int64)
    return len(all_but_first(find_problems(audit, _dataset, listed, AuditSettings(), None, _decisions).duplicates))
