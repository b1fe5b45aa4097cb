"""What an audit has stored about a data set: its findings, their numbers, and the facts about the images."""

from __future__ import annotations

import numpy as np
import streamlit as st

from udml_core.base.arrays import Integers
from udml_core.data.dataset import Dataset
from udml_core.data.given.duplicate_decisions import Decisions, decisions_of
from udml_core.data.given.exclusions import excluded_images
from udml_core.data.image_facts import ImageFacts, stored_facts
from udml_core.exploration.audit import Audit, AuditSettings, Findings, find_problems
from udml_core.exploration.quality import all_poor, poor_by_check
from udml_core.runs import Run
from udml_core.runs.analyses import Analysis, find_analysis
from udml_core.runs.analyses.kinds.audit import DataAudit

from ..shell.growth import load_changes
from ..shell.run_hash import RUN_HASH
from .growing import FINDING
from .rankings import kept_mask

VIEW = "data-view"
"""Session key of the view of the page Data."""
FINDINGS = {"exact": "Exact copies", "near": "Near-duplicates", "border": "To decide",
            "leakage": "In both halves", "quality": "Quality", "outliers": "Outliers", "classes": "Small classes",
            "broken": "Broken", "excluded": "Excluded", "new": "New"}
NOT_COUNTED = ("broken", "excluded", "new")
"""Findings that ask for no decision: they are not counted."""


def kinds_of(dataset: Dataset, audit: Audit) -> list[str]:
    """Return the findings that the data set can have."""
    without = ([] if dataset.labels is not None else ["classes", "leakage"]) + (
        [] if audit.has_features else ["near", "border", "leakage", "outliers"])
    if load_changes(dataset) is None and st.session_state.get(FINDING) != "new":
        without.append("new")
    return [kind for kind in FINDINGS if kind not in without]


def counts_of(dataset: Dataset, findings: Findings, excluded: Integers, facts: ImageFacts | None
              ) -> dict[str, int]:
    """Return the number of each finding."""
    changes = load_changes(dataset)
    poor = count_poor(dataset, excluded, facts)
    return {"exact": len(findings.exact), "near": len(findings.near), "border": len(findings.border),
            "leakage": sum(map(len, findings.leaks.values())), "quality": poor,
            "outliers": len(findings.outliers), "classes": len(findings.small_classes), "broken": len(dataset.skipped),
            "excluded": len(excluded), "new": 0 if changes is None else len(np.setdiff1d(changes.to_look_at, excluded))}


def count_poor(dataset: Dataset, excluded: Integers, facts: ImageFacts | None) -> int:
    """Return the number of images that are not excluded and that a check of quality finds; 0 without facts."""
    return 0 if facts is None else _count_poor(dataset.fingerprint, len(dataset), excluded.tobytes(), facts)


@st.cache_data(max_entries=16, show_spinner=False)
def _count_poor(fingerprint: str, count: int, excluded: bytes, _facts: ImageFacts) -> int:  # noqa: ARG001
    """Return the number of images that a check of quality finds at its own limit."""
    return len(all_poor(poor_by_check(_facts, kept_mask(count, np.frombuffer(excluded, np.int64)))))


def count_findings(dataset: Dataset, run: Run, audit: Analysis) -> int:
    """Return the number of findings of a finished audit about which something can be decided."""
    return sum(_decidable(dataset, run, audit).values())


def first_finding(dataset: Dataset, run: Run, audit: Analysis) -> str:
    """Return the first finding of a finished audit about which something can be decided; exact copies without any."""
    return next((kind for kind, count in _decidable(dataset, run, audit).items() if count), "exact")


def _decidable(dataset: Dataset, run: Run, audit: Analysis) -> dict[str, int]:
    """Return the number of each finding about which something can be decided, at the default settings."""
    ticket = audit.stored_status().ticket
    decisions = decisions_of(dataset)
    return _count_decidable(dataset, run, audit.id, ticket, dataset.fingerprint, excluded_images(dataset).tobytes(),
                            decisions.same.tobytes(), decisions.different.tobytes(), decisions)


@st.cache_data(max_entries=16, show_spinner=False, hash_funcs=RUN_HASH)
def _count_decidable(_dataset: Dataset, run: Run, analysis_id: str, ticket: float, fingerprint: str,  # noqa: ARG001
                     excluded: bytes, same: bytes, different: bytes,  # noqa: ARG001
                     _decisions: Decisions) -> dict[str, int]:
    listed, facts = np.frombuffer(excluded, np.int64), load_facts(_dataset)
    audit = load_audit(run, analysis_id, ticket)
    findings = find_problems(audit, _dataset, listed, AuditSettings(), facts, _decisions)
    counts = counts_of(_dataset, findings, listed, facts)
    return {kind: counts[kind] for kind in kinds_of(_dataset, audit) if kind not in NOT_COUNTED}


def load_facts(dataset: Dataset) -> ImageFacts | None:
    """Return the facts about a data set's images that the audit has stored; None before."""
    return _facts(dataset.fingerprint, dataset)


@st.cache_resource(max_entries=4, show_spinner=False, ttl="60s", validate=lambda facts: facts is not None)
def _facts(fingerprint: str, _dataset: Dataset) -> ImageFacts | None:  # noqa: ARG001
    return stored_facts(_dataset)


@st.cache_resource(max_entries=4, show_spinner="Reading the audit …", hash_funcs=RUN_HASH)
def load_audit(run: Run, analysis_id: str, ticket: float) -> Audit:  # noqa: ARG001 (a new audit is read again)
    return find_analysis(run, analysis_id).result_of(DataAudit)
