"""The key by which cached functions of pages identify runs."""

from __future__ import annotations

from collections.abc import Callable

from udml_core.runs import Run

RUN_HASH: dict[str | type, Callable[[Run], str]] = {Run: lambda run: str(run.folder)}
