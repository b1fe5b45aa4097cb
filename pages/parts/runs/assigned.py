"""What the labels that a user assigned say of a run, at once."""

from __future__ import annotations

import streamlit as st

from udml_core.base.errors import UserError
from udml_core.data.given.labels import assigned_now
from udml_core.exploration.assigned import AssignedMeasures, assigned_measures
from udml_core.numerics.measures import measure_of
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


def assigned_words(found: AssignedMeasures, has_trained: bool) -> str:
    """State the measures among labeled images with their intervals.

    Args:
        found: The measures.
        has_trained: Whether the run trained on assigned labels, which then say little.
    """
    figures = ", ".join(f"**{measure_of(key).plain_title} {measure_of(key).text(of.value)}** (95 % interval "
                        f"{of.low:.1f} to {of.high:.1f})" for key, of in found.measures.items())
    caution = " The run trained on assigned labels, which makes these figures too high." if has_trained else ""
    return (f"Among the {found.images:,} images that you labeled, in {found.classes:,} classes: {figures}, over "
            f"{found.queries:,} queries. Other images do worse where you named groups of similar images at once."
            f"{caution}")
