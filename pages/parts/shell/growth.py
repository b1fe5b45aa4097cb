"""What has changed in the folder of a data set since the user looked last, and the way to the changes."""

from __future__ import annotations

import streamlit as st

from udml_core.data.dataset import Dataset
from udml_core.data.given.growth import Changes, changes_of, seen_version
from udml_core.runs import Run

from .cached import load_dataset
from .views import view_link


def load_changes(dataset: Dataset) -> Changes | None:
    """Return what has changed since the user looked last; None if nothing has."""
    return _changes(dataset.fingerprint, seen_version(dataset), dataset)


@st.cache_resource(max_entries=8, show_spinner=False)
def _changes(fingerprint: str, seen: tuple[int, ...], _dataset: Dataset) -> Changes | None:  # noqa: ARG001
    return changes_of(_dataset)


def link_to_changes(run: Run) -> None:
    """Say what is new in the folder of a run, with a link to it; nothing if nothing is."""
    dataset = load_dataset(run.spec().dataset)
    changes = load_changes(dataset)
    if changes is not None:
        view_link("data", label=f"{changes.words}: look at them", icon=":material/new_releases:", width="content",
                  query_params={"dataset": dataset.name, "view": "audit", "finding": "new"},
                  help="Opens the new and changed images of this run's folder on the page Data.")
