"""What runs' epochs kept: which epochs did of a kind, one of them chosen, and its record; a cursor through training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import streamlit as st

from pages.parts.base.address import number_from_address, write_address
from pages.parts.components.slider import live_slider
from udml_core.explanations import Explanation
from udml_core.runs import Run

EVERY = 1_000_000
Record = TypeVar("Record", bound=Explanation)


def load_record(run: Run, epoch: int, kind: type[Record]) -> Record | None:
    """What was kept of an epoch."""
    return next((one for one in run.explanations(epoch) if isinstance(one, kind)), None)


def has_record(run: Run, kind: type[Explanation]) -> bool:
    """Whether one of the first epochs kept such a record."""
    return bool(_epochs_of(str(run.folder), kind.__name__, 2))


def epochs_with(run: Run, kind: type[Explanation]) -> list[int]:
    """The epochs of a finished run that kept such a record."""
    return _epochs_of(str(run.folder), kind.__name__, EVERY)


@st.cache_data(max_entries=512, show_spinner=False)
def _epochs_of(folder: str, kind: str, most: int) -> list[int]:
    """Those of a finished run's first epochs that kept such a record."""
    run = Run(Path(folder))
    return [number for number in run.epoch_numbers()[:most]
            if any(type(one).__name__ == kind for one in run.explanations(number))]


def pick_epoch(run: Run, kind: type[Explanation], key: str, on_change: Callable[[], None] | None = None) -> int:
    """One of the epochs that kept such a record, the last one at first; kept in the address."""
    epochs = epochs_with(run, kind)
    wanted = int(number_from_address("epoch", epochs[-1]))
    epoch = st.selectbox("Epoch", epochs, epochs.index(wanted) if wanted in epochs else len(epochs) - 1, key=key,
                         on_change=on_change)
    write_address("epoch", str(epoch), str(epochs[-1]))
    return epoch


def pick_epoch_cursor(runs: Sequence[Run], key: str) -> float:
    """Where a cursor through the training of runs stands, the end at first; kept in the address."""
    last = max(run.epoch_numbers()[-1] for run in runs)
    moment = number_from_address("moment", last, 0, last)
    if last:
        moment = live_slider("Epoch", 0, last, moment, 1, f"{key}-{last}", play=True,
                             marks={0.0: "before training", float(last): f"epoch {last}"})
        write_address("moment", f"{moment:g}", f"{last:g}")
    return moment


def epoch_at(run: Run, moment: float) -> int:
    """The epoch that was the last one at a moment, or the run's first."""
    numbers = run.epoch_numbers()
    return max([one for one in numbers if one <= moment], default=numbers[0])
