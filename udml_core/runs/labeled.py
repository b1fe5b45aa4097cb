"""What the labels that a user assigned say of a finished run."""

from __future__ import annotations

from contextlib import suppress

from udml_core.base.errors import UserError
from udml_core.data.given.labels import assigned_now
from udml_core.exploration.assigned import AssignedMeasures, assigned_measures
from udml_core.runs.folder import Run


def measures_of_labeled(run: Run) -> AssignedMeasures | None:
    """Measure a run after training among the images that the user labeled.

    Returns:
        The measures; None for fewer than two classes or two queries, or if the images or the embedding are missing.
    """
    with suppress(UserError):
        if labels := assigned_now(run.dataset()):
            return assigned_measures(run.embeddings("final"), labels)
    return None
