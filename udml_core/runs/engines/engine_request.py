"""What a user asks an engine for."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from udml_core.base.declaration import Options
from udml_core.base.errors import UserError

EngineName = Literal["slurm", "submitit-local"]
MOST_MINUTES = 60 * 24 * 30
Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.,:&|*\[\]+-]{1,200}$")]
"""A value of `sbatch` without spaces and line breaks, so that it cannot add lines to the script."""


class EngineRequest(Options):
    """An engine and what a run needs there; submitit passes it on."""

    engine: EngineName
    """The engine."""

    minutes: Annotated[int, Field(ge=1, le=MOST_MINUTES)] = 240
    """Time limit. The run is saved, requeued and continued when it ends, so that it may be shorter than the run."""

    cpus: Annotated[int, Field(ge=1, le=1024)] = 1
    """CPU cores."""

    memory: Annotated[int | None, Field(ge=1, le=16_000)] = None
    """Memory in GB. Default: chosen by the cluster."""

    gpus: Annotated[int, Field(ge=0, le=64)] = 0
    """GPUs of one machine."""

    partition: Word | None = None
    """Partition of the cluster. Default: the cluster's."""

    account: Word | None = None
    """Account that is charged."""

    qos: Word | None = None
    """Quality of service."""

    constraint: Word | None = None
    """Features that the machine must have."""

    def check(self) -> None:
        """Check that the options belong to the engine.

        Raises:
            UserError: The option belongs to Slurm, and the engine is another one.
        """
        cluster = [name for name in ("cpus", "memory", "gpus", "partition", "account", "qos", "constraint")
                   if getattr(self, name) != type(self).model_fields[name].get_default()]
        if self.engine != "slurm" and cluster:
            raise UserError(f"The engine option '{cluster[0]}' belongs to the engine 'slurm', got the engine "
                            f"'{self.engine}'. Remove it, or use --engine slurm.")


def gpus_of(request: EngineRequest | None) -> int | None:
    """Return the number of GPUs that a cluster grants; None if the run works on this machine."""
    return request.gpus if request is not None and request.engine == "slurm" else None
