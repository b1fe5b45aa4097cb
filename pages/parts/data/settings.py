"""The settings of the audit, and where its thresholds come from."""

from __future__ import annotations

import math
from typing import Any

import streamlit as st

from udml_core.base.declaration import describe
from udml_core.exploration.audit import Audit, AuditSettings
from udml_core.runs import Run

from ..draw.form import field_widget
from ..shell.cached import known_threshold, load_retrieval


def choose_settings(audit: Audit, finding: str) -> AuditSettings:
    """Show a widget for each setting; the address holds the values.

    Args:
        audit: The comparison of all images.
        finding: The finding that is shown; the slider that decides it lies open.
    """
    closed, values = st.popover("Settings", icon=":material/tune:"), dict[str, Any]()
    aligns = st.session_state.get("compare", "aligned") == "aligned" and len(audit.checked) > 0
    decides = {"near": "least_agreement" if aligns else "least_cosine", "border": "least_agreement",
               "outliers": "fence"}
    for field in describe(AuditSettings):
        with st.container(width=300) if field.name == decides.get(finding) else closed:
            values[field.name] = (_agreement_slider(audit, field.text) if field.name == "least_agreement"
                                  else field_widget(field, field.name, bind=True))
    return AuditSettings(**values)


def _agreement_slider(audit: Audit, text: str) -> float | None:
    """Show the slider of the least agreement, which begins at the value that the data propose."""
    if not len(audit.checked):
        return None
    proposed = round(audit.least_agreement(AuditSettings()), 2)
    value = st.slider("Least agreement", 0.3, 1.0, proposed, 0.01, key="least_agreement", bind="query-params",
                      help=text)
    return None if value == proposed else value


def say_threshold(audit: Audit, settings: AuditSettings) -> None:
    """Say from which agreement two images are near-duplicates, and where it comes from."""
    if settings.compare == "aligned" and len(audit.checked):
        origin = ("You chose this limit." if settings.least_agreement else
                  "The app found this limit between copies and different photographs.")
        st.caption(f":material/straighten: The app compared the details of {len(audit.checked):,} similar pairs. An "
                   "agreement of 1 is the same picture. Pairs that agree by "
                   f"{audit.least_agreement(settings):.2f} or more count as near-duplicates. {origin}")


def propose_threshold(run: Run, settings: AuditSettings) -> None:
    """Propose the similarity above which judged pairs of these features are the same, as the bound of near-duplicates.

    Args:
        run: The run of the frozen features.
        settings: The current settings.
    """
    retrieval = load_retrieval(run)
    threshold = known_threshold(retrieval, "final") if retrieval.spec.method == "frozen" else None
    if threshold is None or threshold.similarity is None:
        return
    proposed = {"compare": "features", "least_cosine": min(1.0, math.ceil(100 * threshold.similarity) / 100)}
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(f":material/straighten: From your judged pairs: {threshold.sentence}", width="content")
        if any(getattr(settings, name) != value for name, value in proposed.items()):
            st.button(f"Use {proposed['least_cosine']:.2f} by features alone", icon=":material/content_copy:",
                      key="audit-same", on_click=st.session_state.update, args=(proposed,),
                      help="Shows all pairs above this similarity, whatever their hashes. Use it if you judged only "
                           "copies to be the same.")
