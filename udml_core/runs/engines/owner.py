"""The owner of a run: the file that keeps the queue of this machine away from it."""

from __future__ import annotations

import getpass
import time
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from udml_core.base.files import read_record, replace_text
from udml_core.runs.engines.engine_request import EngineRequest

FILE = "engine.json"


class Owner(BaseModel):
    """The engine that a run was handed to.

    Attributes:
        request: The engine and its options.
        job: The engine's number of the job; empty until the engine has accepted it.
        user: The user whose job it is.
        host: The machine of a local job; empty for a cluster, which knows its jobs on all machines.
        submitted: Time of the last submission in seconds since 1970.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    request: EngineRequest
    job: str = ""
    user: str = Field(default_factory=getpass.getuser)
    host: str = ""
    submitted: float = Field(default_factory=time.time)

    def write(self, folder: Path) -> None:
        """Store the owner in a run's folder."""
        replace_text(folder / FILE, self.model_dump_json())


def read_owner(folder: Path) -> Owner | None:
    """Return the engine that a run was handed to; None if the queue of this machine starts it."""
    try:
        return read_record(Owner, folder / FILE)
    except (OSError, ValidationError):
        return None
