"""Records that runs keep of their epochs, and the choice of an epoch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import streamlit as st

from udml_core.numerics.explanations import Explanation
from udml_core.runs import Run

from .run_hash import RUN_HASH

ALL_EPOCHS = 1_000_000
Record = TypeVar("Record", bound=Explanation)


def load_record(run: Run, epoch: int, kind: type[Record]) -> Record | None:
    """Return an epoch's record of a kind, or None if the epoch has no such record."""
    return next((record for record in run.explanations(epoch) if isinstance(record, kind)), None)


def has_record(run: Run, kind: type[Explanation]) -> bool:
    """Return whether one of the first two epochs has a record of a kind."""
    return bool(_epochs_with(run, kind.__name__, 2))


def epochs_with(run: Run, kind: type[Explanation]) -> list[int]:
    """Return the epochs of a finished run that have a record of a kind."""
    return _epochs_with(run, kind.__name__, ALL_EPOCHS)


@st.cache_data(max_entries=512, show_spinner=False, hash_funcs=RUN_HASH)
def _epochs_with(run: Run, kind: str, most: int) -> list[int]:
    """Return which of a finished run's first `most` epochs have a kind of record."""
    return [number for number in run.epoch_numbers()[:most]
            if any(type(record).__name__ == kind for record in run.explanations(number))]


def pick_epoch(run: Run, kind: type[Explanation], on_change: Callable[[], None] | None = None) -> int:
    """Choose an epoch that has a record of a kind, at first the last epoch.

    The address parameter `epoch` holds it.
    """
    epochs = epochs_with(run, kind)
    return st.selectbox("Epoch", epochs, len(epochs) - 1, key="epoch", on_change=on_change, bind="query-params")


def epoch_at(run: Run, position: float) -> int:
    """Return the run's latest epoch at a cursor position, or its first epoch."""
    numbers = run.epoch_numbers()
    return max([number for number in numbers if number <= position], default=numbers[0])
