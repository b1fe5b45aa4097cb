"""The key by which cached functions of pages identify runs."""

from __future__ import annotations

from collections.abc import Callable

from udml_core.runs import Run


def run_identity(run: Run) -> str:
    """Return a key that identifies a run."""
    return str(run.folder)


RUN_HASH: dict[str | type, Callable[[Run], str]] = {Run: run_identity}
