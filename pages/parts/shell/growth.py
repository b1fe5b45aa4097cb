"""What has changed in the folder of a data set since the user looked last, and the way to the changes."""

from __future__ import annotations

import streamlit as st

from udml_core.data.dataset import Dataset
from udml_core.data.given import exclusions, labels
from udml_core.data.given.growth import KIND, Changes, changes_of, was_looked_at
from udml_core.data.given.log import log_version
from udml_core.runs import Run

from .cached import load_dataset
from .views import view_link


def load_changes(dataset: Dataset) -> Changes | None:
    """Return what has changed since the user looked last; None if nothing has."""
    return _changes(dataset.fingerprint, _said(dataset), dataset)


def changes_to_say(dataset: Dataset) -> Changes | None:
    """Return what has changed since the user looked last, until the list of it was opened; None without."""
    changes = load_changes(dataset)
    return None if changes is None or _is_looked_at(dataset.fingerprint, _said(dataset), dataset) else changes


def _said(dataset: Dataset) -> tuple[tuple[int, ...], ...]:
    """Return numbers that change with what the user said about the images."""
    return tuple(log_version(dataset, kind) for kind in (KIND, exclusions.KIND, labels.KIND))


@st.cache_resource(max_entries=8, show_spinner=False)
def _changes(fingerprint: str, said: tuple[tuple[int, ...], ...], _dataset: Dataset) -> Changes | None:  # noqa: ARG001
    return changes_of(_dataset)


@st.cache_data(max_entries=8, show_spinner=False)
def _is_looked_at(fingerprint: str, said: tuple[tuple[int, ...], ...], _dataset: Dataset) -> bool:  # noqa: ARG001
    return was_looked_at(_dataset)


def link_to_changes(run: Run) -> None:
    """Say what is new in the folder of a run, with a link to it; nothing if nothing is."""
    dataset = load_dataset(run.spec().dataset)
    changes = changes_to_say(dataset)
    if changes is not None:
        view_link("data", label=f"{changes.words}: show them", icon=":material/new_releases:", width="content",
                  query_params={"dataset": dataset.name, "view": "audit", "finding": "new"},
                  help="Opens the new and changed images of this run's folder on the page Data.")
