"""The options that choose an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from udml_core.base.errors import UserError
from udml_core.cli.options import parse_settings

if TYPE_CHECKING:
    from udml_core.runs.engines import EngineRequest

Engine = Annotated[Literal["local", "slurm", "submitit-local"], typer.Option("--engine", help=(
    "Who starts the worker: the queue of this machine (local), a Slurm cluster, or submitit on this machine. See "
    "docs/engines.md."))]
EngineOptions = Annotated[list[str] | None, typer.Option("--engine-option", metavar="NAME=VALUE", help=(
    "What the run needs there: minutes, cpus, memory (GB), gpus, partition, account, qos or constraint."))]


def requested_engine(engine: str | None, options: list[str] | None) -> EngineRequest | None:
    """Return the request to an engine; None for the queue of this machine.

    Raises:
        UserError: The engine is not installed, or an option does not belong to it.
    """
    from udml_core.runs.engines import EngineRequest, check_engine

    if engine in (None, "local"):
        if options:
            raise UserError("--engine-option belongs to the engines 'slurm' and 'submitit-local'. Add --engine, or "
                            "remove it.")
        return None
    request = EngineRequest.make({"engine": engine} | parse_settings(options or [], "--engine-option"))
    check_engine(request)
    return request


def destination_of(request: EngineRequest | None) -> str:
    """Return where new runs wait, with the options that the user set."""
    if request is None:
        return "the queue of this machine"
    options = request.model_dump(exclude={"engine"}, exclude_defaults=True)
    place = "Slurm" if request.engine == "slurm" else "submitit on this machine"
    return place + (f" ({', '.join(f'{name}={value}' for name, value in options.items())})" if options else "")
