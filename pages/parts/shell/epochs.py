"""Records that runs keep of their epochs, and the choice of an epoch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import streamlit as st

from udml_core.numerics.explanations import Explanation
from udml_core.runs import Run

from ..draw.slider import live_slider
from .address import number_from_address, write_address
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


def epoch_words(run: Run, epoch: int) -> str:
    """Return the name of an epoch's embedding, as on every page: before training, epoch 3, or after training."""
    return "before training" if not epoch else "after training" if epoch == run.kept_epoch() else f"epoch {epoch}"


def pick_epoch(run: Run, kind: type[Explanation], on_change: Callable[[], None] | None = None) -> int:
    """Choose an epoch that has a record of a kind, at first the last epoch.

    The address parameter `epoch` holds it.
    """
    epochs = epochs_with(run, kind)
    return st.selectbox("Epoch", epochs, len(epochs) - 1, key="epoch", on_change=on_change, bind="query-params")


def pick_epoch_cursor(runs: Sequence[Run], key: str) -> float:
    """Choose a position in the training of several runs, at first the end.

    The address parameter `moment` holds it.

    Returns:
        The position in epochs; 0 is before training.
    """
    last = max(run.epoch_numbers()[-1] for run in runs)
    position = number_from_address("moment", last, 0, last)
    if last:
        ends = {epoch_words(run, last) for run in runs}
        end = ends.pop() if len(ends) == 1 else f"epoch {last}"
        position = live_slider("Epoch", 0, last, position, 1, f"{key}-{last}", play=True,
                               marks={0.0: "before training", float(last): end})
        write_address("moment", f"{position:g}", f"{last:g}")
    return position


def epoch_at(run: Run, position: float) -> int:
    """Return the run's latest epoch at a cursor position, or its first epoch."""
    numbers = run.epoch_numbers()
    return max([number for number in numbers if number <= position], default=numbers[0])
