"""The kinds of analyses, one file each: whatever lies in this folder is a kind, no list names them."""

from __future__ import annotations

from importlib import import_module
from inspect import isabstract
from pkgutil import iter_modules

from udml_core.runs.analyses.kind import AnalysisKind
from udml_core.runs.analyses.map_kind import Map


def _found() -> dict[str, type[AnalysisKind]]:
    """Return the classes in this folder's files by name, in the order of their lists."""
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    kinds = [kind for module in modules for kind in vars(module).values()
             if isinstance(kind, type) and issubclass(kind, AnalysisKind) and kind.__module__ == module.__name__
             and not isabstract(kind)]
    by_name = {kind.name: kind for kind in sorted(kinds, key=lambda kind: (kind.order, kind.name))}
    if len(by_name) < len(kinds):
        raise TypeError(f"two kinds of analyses have one name among {sorted(kind.name for kind in kinds)}")
    return by_name


KINDS = _found()
MAPS = tuple(sorted((kind for kind in KINDS.values() if issubclass(kind, Map)), key=lambda kind: -kind.preference))
"""The kinds of maps; pages prefer the first."""
