"""Known copies: the near-duplicates of a finished audit, images of equal content, and what the user decided."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np

from udml_core.base.arrays import Integers
from udml_core.base.memory import Memory
from udml_core.data.dataset import Dataset
from udml_core.data.given.duplicate_decisions import KIND, decisions_of
from udml_core.data.given.log import log_version
from udml_core.data.image_hashes import stored_hashes
from udml_core.exploration.audit import AuditSettings
from udml_core.exploration.duplicates import Groups, groups_of
from udml_core.runs.analyses import Analysis, analysis_at, plan_analysis
from udml_core.runs.analyses.kinds.audit import DataAudit
from udml_core.runs.finding import list_runs
from udml_core.runs.search.names import FROZEN

_MEMORY = Memory(4)
"""First copies by what they depend on."""


def known_copies(dataset: Dataset, root: Path) -> Integers:
    """Return the first known copy (n,) of each image; the image itself if it has no copies.

    The audit of any encoder tells them, whatever is excluded. Without an audit only equal contents and the user's
    decisions do.

    Args:
        dataset: The data set.
        root: The folder of runs.
    """
    audit = next((audit for run in list_runs(root) if (spec := run.spec()).method == FROZEN
                  and spec.fingerprint == dataset.fingerprint
                  and (audit := analysis_at(run, plan_analysis(DataAudit))).is_done()), None)
    if audit is None:  # hashes may be stored at any moment
        return _first_copies(dataset, None)
    key = dataset.fingerprint, audit, audit.stored_status().ticket, log_version(dataset, KIND)
    return _MEMORY.get(key, lambda: _first_copies(dataset, audit))


def _first_copies(dataset: Dataset, audit: Analysis | None) -> Integers:
    first = np.arange(len(dataset))
    for group in _groups(dataset, audit):
        first[group] = group[0]
    return first


def copy_pairs(copies: Integers) -> Integers:
    """Return all pairs i < j (p, 2) of known copies.

    Args:
        copies: Index (n,) of the first known copy of each image.
    """
    groups = groups_of(np.stack([copies, np.arange(len(copies))], axis=1), len(copies))
    pairs = [(left, right) for group in groups for left, right in combinations(group.tolist(), 2)]
    return np.array(pairs, np.int64).reshape(-1, 2)


def _groups(dataset: Dataset, audit: Analysis | None) -> Groups:
    """Return the groups of known copies."""
    decisions = decisions_of(dataset)
    if audit is not None:
        return audit.result_of(DataAudit).duplicate_groups(np.ones(len(dataset), bool), AuditSettings(), decisions)
    pairs, hashes = decisions.same, stored_hashes(dataset)
    if hashes is not None:
        pairs = np.concatenate([np.stack([hashes.content, np.arange(len(dataset))], axis=1), pairs])
    return tuple(group for group in groups_of(pairs, len(dataset)) if len(group) > 1)
