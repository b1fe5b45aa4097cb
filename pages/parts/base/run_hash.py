"""How cached functions of pages tell runs apart."""

from __future__ import annotations

from collections.abc import Callable

from udml_core.runs import Run


def run_identity(run: Run) -> str:
    """Return what tells one run from another."""
    return str(run.folder)


RUN_HASH: dict[str | type, Callable[[Run], str]] = {Run: run_identity}
