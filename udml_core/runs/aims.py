"""What a user looks for in the images of a data set, noted in the folder of their features."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from udml_core.base.errors import UserError
from udml_core.base.files import read_record, replace_text
from udml_core.exploration.race_measured import Serves
from udml_core.runs.finding import list_runs
from udml_core.runs.folder import Run

AIM_FILE = "aim.json"


class Aim(BaseModel):
    """What a user looks for.

    Attributes:
        serves: One match, or the whole group.
        at: When it was said, in seconds since 1970.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    serves: Serves
    at: float


def keep_aim(run: Run, serves: Serves) -> None:
    """Note what a user looks for in the images of a run; a folder that is read-only keeps nothing."""
    with suppress(OSError):
        replace_text(run.folder / AIM_FILE, Aim(serves=serves, at=time.time()).model_dump_json())


def kept_aim(root: Path, dataset: str) -> Serves | None:
    """Return what a user looked for last in the images of a data set; None if that was never said.

    Args:
        root: The folder of runs.
        dataset: Name of the data set.
    """
    found = [aim for run in list_runs(root) if run.spec().dataset == dataset and (aim := _aim(run)) is not None]
    return max(found, key=lambda aim: aim.at).serves if found else None


def _aim(run: Run) -> Aim | None:
    with suppress(OSError, ValueError, UserError):  # there is no file, or it is damaged
        return read_record(Aim, run.folder / AIM_FILE)
    return None
