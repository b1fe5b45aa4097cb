"""What a user looks for in the images of a data set, noted in the folder of their features."""

from __future__ import annotations

import time
from pathlib import Path

from udml_core.exploration.race_measured import Serves
from udml_core.runs.finding import list_runs
from udml_core.runs.folder import Run
from udml_core.runs.used import Choice, note_choice, noted_choice

AIM_FILE = "aim.json"


class Aim(Choice):
    """What a user looks for.

    Attributes:
        serves: One match, or the whole group.
    """

    serves: Serves


def keep_aim(run: Run, serves: Serves) -> None:
    """Note what a user looks for in the images of a run; a folder that is read-only keeps nothing."""
    note_choice(run, AIM_FILE, Aim(serves=serves, at=time.time()))


def kept_aim(root: Path, dataset: str) -> Serves | None:
    """Return what a user looked for last in the images of a data set; None if that was never said.

    Args:
        root: The folder of runs.
        dataset: Name of the data set.
    """
    found = [aim for run in list_runs(root) if run.spec().dataset == dataset
             and (aim := noted_choice(run, AIM_FILE, Aim)) is not None]
    return max(found, key=lambda aim: aim.at).serves if found else None
