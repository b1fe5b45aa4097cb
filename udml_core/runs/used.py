"""The search of a data set that a user chose to use, noted in the folder of its run."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TypeVar

from pydantic import BaseModel, ConfigDict

from udml_core.base.errors import UserError
from udml_core.base.files import read_record, replace_text
from udml_core.runs.analyses import find_analysis
from udml_core.runs.folder import Run
from udml_core.runs.search import FINAL

USED_FILE = "used.json"


class Choice(BaseModel):
    """A choice that a user made for the images of a run.

    Attributes:
        at: When it was made, in seconds since 1970.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    at: float


Chosen = TypeVar("Chosen", bound=Choice)


class Used(Choice):
    """The choice of a search.

    Attributes:
        frame: The embedding: `final`, or the id of a refinement.
    """

    frame: str


def use_search(run: Run, frame: str) -> None:
    """Note that a user searches the images of a run with one of its embeddings; a folder that is read-only keeps none.
    """
    note_choice(run, USED_FILE, Used(frame=frame, at=time.time()))


def used_search(runs: Iterable[Run]) -> tuple[Run, str] | None:
    """Return the run and the embedding that a user chose last among some runs; None if none is there."""
    found = [(used, run) for run in runs if (used := _used(run)) is not None]
    if not found:
        return None
    used, run = max(found, key=lambda each: each[0].at)
    return run, used.frame


def used_on(dataset: str | None, runs: Iterable[Run]) -> tuple[Run, str] | None:
    """Return the run and the embedding that a user chose last for the images of a data set; see `used_search`."""
    return used_search(run for run in runs if run.spec().dataset == dataset)


def searches_in_use(runs: Sequence[Run]) -> list[tuple[Run, str]]:
    """List the run and the embedding that a user chose last for the images of each data set of some runs."""
    names = dict.fromkeys(run.spec().dataset for run in runs)
    return [used for name in names if (used := used_on(name, runs)) is not None]


def chosen_at(run: Run) -> float:
    """Return when a user chose a search of a run, in seconds since 1970; 0 without a choice."""
    used = _used(run)
    return 0.0 if used is None else used.at


def _used(run: Run) -> Used | None:
    """Return the choice that is noted with a run; None without one, or if its refinement is gone."""
    used = noted_choice(run, USED_FILE, Used)
    with suppress(OSError, ValueError, UserError):  # no refinement has this id
        return used if used is None or used.frame == FINAL or find_analysis(run, used.frame).is_done() else None
    return None


def note_choice(run: Run, name: str, choice: Choice) -> None:
    """Note a choice of the user in a file of a run's folder; one that is read-only keeps none."""
    with suppress(OSError):
        replace_text(run.folder / name, choice.model_dump_json())


def noted_choice(run: Run, name: str, kind: type[Chosen]) -> Chosen | None:
    """Return the choice that is noted in a file of a run's folder; None without a file, or if it is damaged."""
    with suppress(OSError, ValueError):
        return read_record(kind, run.folder / name)
    return None
