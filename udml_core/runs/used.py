"""The search of a data set that a user chose to use, noted in the folder of its run."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from udml_core.base.errors import UserError
from udml_core.base.files import read_record, replace_text
from udml_core.runs.analyses import find_analysis
from udml_core.runs.folder import Run
from udml_core.runs.search import FINAL

USED_FILE = "used.json"


class Used(BaseModel):
    """The choice of a search.

    Attributes:
        frame: The embedding: `final`, or the id of a refinement.
        at: When it was chosen, in seconds since 1970.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    frame: str
    at: float


def use_search(run: Run, frame: str) -> None:
    """Note that a user searches the images of a run with one of its embeddings; a folder that is read-only keeps none.
    """
    with suppress(OSError):
        replace_text(_path(run), Used(frame=frame, at=time.time()).model_dump_json())


def used_search(runs: Iterable[Run]) -> tuple[Run, str] | None:
    """Return the run and the embedding that a user chose last among some runs; None if none is there."""
    found = [(used, run) for run in runs if (used := _used(run)) is not None]
    if not found:
        return None
    used, run = max(found, key=lambda each: each[0].at)
    return run, used.frame


def chosen_at(run: Run) -> float:
    """Return when a user chose a search of a run, in seconds since 1970; 0 without a choice."""
    used = _used(run)
    return 0.0 if used is None else used.at


def _used(run: Run) -> Used | None:
    """Return the choice that is noted with a run; None without one, or if its refinement is gone."""
    with suppress(OSError, ValueError, UserError):  # there is no file, it is damaged, or no refinement has this id
        used = read_record(Used, _path(run))
        return used if used.frame == FINAL or find_analysis(run, used.frame).is_done() else None
    return None


def _path(run: Run) -> Path:
    return run.folder / USED_FILE
