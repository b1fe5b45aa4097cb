"""Settings in words: a hyper-parameter's or an option's symbol or name as forms show it, with its value and unit."""

from __future__ import annotations

from functools import cache
from typing import Any

from udml_core.declaration import Described, describe
from udml_core.jobs.presets import show
from udml_core.methods import METHODS
from udml_core.runs import RunRequest


@cache
def field_of(name: str, method: str) -> Described | None:
    """Return a method's hyper-parameter or a run's option; None if this version does not know it."""
    declared = next((known for known in METHODS if known.card.name == method), None)
    fields = [*(describe(declared) if declared is not None else ()), *describe(RunRequest)]
    return next((field for field in fields if field.name == name), None)


def setting_words(name: str, value: Any, method: str) -> str:
    """Return a setting in words, such as α 15° or labels per class 10.

    Args:
        name: The field's name.
        value: The field's value.
        method: The name of the run's method.
    """
    field = field_of(name, method)
    shown = {True: "on", False: "off"}[value] if isinstance(value, bool) else show(value)
    if field is None:
        return f"{name.replace('_', ' ')} {shown}"
    symbol, unit = field.shown.symbol, field.shown.unit
    name = _in_sentence(field.words) if symbol.isascii() else symbol  # l 4 would say less than dimension 4
    return f"{name} {shown}{unit if unit == '°' else f' {unit}'.rstrip()}"


def setting_title(name: str, method: str) -> str:
    """Return the name of a setting as forms show it, such as Labels per class."""
    field = field_of(name, method)
    return name.replace("_", " ").capitalize() if field is None else field.label


def _in_sentence(words: str) -> str:
    """Return a name without its capital letter, unless it begins with an abbreviation."""
    return words if words[:2].isupper() else words[:1].lower() + words[1:]
