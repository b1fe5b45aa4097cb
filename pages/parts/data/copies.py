"""Copies and poor images that an audit found and that are not excluded: they take part in races and judgments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st

from udml_core.base.errors import counted
from udml_core.data.dataset import Dataset
from udml_core.data.encoders import EncoderSpec
from udml_core.data.given.duplicate_decisions import Decisions, decisions_of
from udml_core.data.given.exclusions import excluded_images
from udml_core.exploration.audit import AuditSettings, find_problems
from udml_core.exploration.duplicates import all_but_first
from udml_core.runs import Run, runs_folder
from udml_core.work.jobs.auditing import find_auditing
from udml_core.work.jobs.browse import DataAnalysis

from ..shell.awaited import show_progress
from ..shell.run_hash import RUN_HASH
from ..shell.views import view_link
from .audited import VIEW, count_poor, load_audit, load_facts
from .computed import chosen_encoder
from .growing import FINDING

NOTHING = "an image with a copy finds that copy first in every search, so it cannot show which search is better"


def show_audit_first(dataset: Dataset) -> bool:
    """Show how far the audit that looks for copies is, if it is in progress; return whether it is."""
    encoder = chosen_encoder(dataset)
    state = find_auditing(dataset, encoder, runs_folder())
    if state.finished is not None or state.task is None:
        return False
    with st.container(border=True, key="advice-audit"):
        st.markdown(f"**First, the audit looks for copies**: {NOTHING}.")
        show_progress(state.task, audit_key(dataset, encoder), "The audit",
                      "Then you decide about the copies, and begin.")
    return True


def audit_key(dataset: Dataset, encoder: EncoderSpec) -> str:
    """Return the name in the session of an audit in progress."""
    return f"data-audit-{dataset.fingerprint[:12]}-{encoder.key}"


def offer_deciding(dataset: Dataset) -> None:
    """Say how many copies take part in a race, with a button that leads to them; nothing without copies."""
    copies = copies_of(dataset, find_auditing(dataset, chosen_encoder(dataset), runs_folder()))
    if not copies.count:
        return
    takes = "takes" if copies.count == 1 else "take"
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="advice-copies"):
        st.markdown(f":material/content_copy: The audit found {counted_copies(copies.count)} that {takes} part"
                    f"{copies.parts}: {NOTHING}.", width="stretch")
        st.button("Decide on the copies first", icon=":material/fact_check:", key="advice-decide",
                  on_click=st.session_state.update, args=({VIEW: "audit", FINDING: copies.finding},),
                  help="Opens the audit, where one click excludes all but the best image of each group of copies.")


def offer_excluding(dataset: Dataset) -> None:
    """Say how many images with findings of quality take part, with a link to them; nothing without any."""
    if words := poor_words(dataset):
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="poor-images"):
            st.caption(f":material/broken_image: {words}", width="content")
            view_link("data", label="Look at them", icon=":material/fact_check:", width="content", query_params={
                "dataset": dataset.name, "view": "audit", "finding": "quality"},
                help="The audit, where you can exclude images from races, judgments and searches.")


def poor_words(dataset: Dataset) -> str:
    """Return how many images with findings of quality take part, in a sentence; empty without any."""
    count = count_poor(dataset, excluded_images(dataset), load_facts(dataset))
    takes = "takes" if count == 1 else "take"
    return (f"{counted(count, 'image')} that the audit lists under Quality (blurry, plain or oddly shaped, for "
            f"example) {takes} part.") if count else ""


@dataclass(frozen=True)
class Copies:
    """How many images the audit found beside the best of their copies, not excluded.

    Attributes:
        exact: Images of equal content.
        count: All of them, near-duplicates included.
    """

    exact: int = 0
    count: int = 0

    @property
    def finding(self) -> str:
        """The finding to decide on first."""
        return "exact" if self.exact else "near"

    @property
    def parts(self) -> str:
        """How many are of which finding, after the number of all; empty if all are of one finding."""
        rest = self.count - self.exact
        return f", {self.exact:,} of equal content and {counted(rest, 'near-duplicate')}" if rest and self.exact else ""


def counted_copies(count: int) -> str:
    """Return a number of copies in words."""
    return f"{count:,} {'copy' if count == 1 else 'copies'}"


def copies_of(dataset: Dataset, state: DataAnalysis) -> Copies:
    """Return how many copies of images the audit found that are not excluded; none without an audit."""
    if state.run is None or state.finished is None:
        return Copies()
    ticket, decisions = state.finished.stored_status().ticket, decisions_of(dataset)
    return _count_copies(dataset, state.run, state.finished.id, ticket, dataset.fingerprint,
                         excluded_images(dataset).tobytes(), decisions.same.tobytes(),
                         decisions.different.tobytes(), decisions)


@st.cache_data(max_entries=16, show_spinner=False, hash_funcs=RUN_HASH)
def _count_copies(_dataset: Dataset, run: Run, analysis_id: str, ticket: float, fingerprint: str,  # noqa: ARG001
                  excluded: bytes, same: bytes, different: bytes, _decisions: Decisions) -> Copies:  # noqa: ARG001
    audit, listed = load_audit(run, analysis_id, ticket), np.frombuffer(excluded, np.int64)
    found = find_problems(audit, _dataset, listed, AuditSettings(), None, _decisions)
    return Copies(len(all_but_first(found.exact)), len(all_but_first(found.duplicates)))
