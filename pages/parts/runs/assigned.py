"""What the labels that a user assigned say of a run, at once."""

from __future__ import annotations

import streamlit as st

from udml_core.base.errors import UserError
from udml_core.data.given.labels import assigned_now
from udml_core.exploration.assigned import AssignedMeasures, assigned_measures, assigned_words
from udml_core.runs import Run

from ..shell.cached import dataset_of
from ..shell.run_hash import RUN_HASH


def show_assigned(run: Run) -> None:
    """Show R@1 and MAP@R of a finished run among the images that the user labeled, if at least two classes have any."""
    try:
        dataset = dataset_of(run)
        labels = assigned_now(dataset)
        found = _measured(run, tuple(sorted(labels.items())), run.stored_status().ticket) if labels else None
    except UserError:  # the data set or the embedding is missing
        return
    if found is not None:
        st.markdown(f":material/sell: {assigned_words(found, run.spec().labels == 'given')}")


@st.cache_data(max_entries=128, show_spinner=False, hash_funcs=RUN_HASH)
def _measured(run: Run, labels: tuple[tuple[int, str], ...], ticket: float) -> AssignedMeasures | None:  # noqa: ARG001
    return assigned_measures(run.embeddings("final"), dict(labels))
