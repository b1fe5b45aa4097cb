"""Settings in words: a hyper-parameter's or an option's symbol or name as forms show it, with its value and unit."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Any

from udml_core.base.declaration import Described, describe
from udml_core.methods import METHODS
from udml_core.runs import RunRequest
from udml_core.runs.spec import ExclusionList
from udml_core.work.jobs.presets import show

ALL_IMAGES = ExclusionList().words
KEPT = {"last": "last epoch kept", "judges": "epoch kept by judges", "validation": "epoch kept by held-out images",
        "recall": "epoch kept by held-out images (R@1)", "classes": "epoch kept by held-out classes"}
"""Which epoch a run keeps, in words."""


@lru_cache(maxsize=1024)
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
    shown = value_text(value)
    if name == "excluded":  # the digest of its list tells people nothing
        return "all images" if shown == ALL_IMAGES else f"without {shown.partition(',')[0]}"
    if name == "select" and value in KEPT:
        return KEPT[value]
    if field is None:
        return f"{name.replace('_', ' ')} {shown}"
    symbol, unit = field.shown.symbol, field.shown.unit
    name = _in_sentence(field.words) if symbol.isascii() else symbol  # l 4 would say less than dimension 4
    return f"{name} {shown}{unit if unit == '°' else f' {unit}'.rstrip()}"


def value_text(value: Any) -> str:
    """Return the value of a setting as text: on, off, a number or a name."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else show(value)


def setting_title(name: str, method: str) -> str:
    """Return the name of a setting as forms show it, such as Labels per class."""
    field = field_of(name, method)
    return name.replace("_", " ").capitalize() if field is None else field.label


def short_title(name: str, method: str) -> str:
    """Return a setting's symbol if it is no Latin letter, such as α, else its name."""
    field = field_of(name, method)
    symbol = field.shown.symbol if field is not None else ""
    return symbol if not symbol.isascii() else setting_title(name, method).split(" · ")[0]


def with_titles(message: str) -> str:
    """Return a message with the titles of settings, as forms show them, in place of names such as `n_neighbors`."""
    titles = _titles()

    def title(match: re.Match[str]) -> str:
        words = titles[match["name"]]
        begins = not match.start() or message[match.start() - 1] == "'" or message[:match.start()].endswith(". ")
        return (words if begins else _in_sentence(words)) + (" " if match["equals"] else "")

    names = "|".join(titles)
    return re.sub(rf"(?<![\w/.-])(?:[A-Z]\w*\.)?(?P<name>{names})(?:(?P<equals>=)|(?![\w/-]|\.\w))", title, message)


@cache
def _titles() -> dict[str, str]:
    """Return the titles of all settings whose name is no word, by name.

    A name that has other titles in other methods keeps its own words.
    """
    titles: dict[str, set[str]] = {}
    for field in [*describe(RunRequest), *(field for method in METHODS for field in describe(method))]:
        if "_" in field.name:
            titles.setdefault(field.name, set()).add(field.words)
    return {name: min(words) if len(words) == 1 else name.removeprefix("n_").replace("_", " ").capitalize()
            for name, words in titles.items()}


def _in_sentence(words: str) -> str:
    """Return a name without its capital letter, unless it begins with an abbreviation."""
    return words if words[:2].isupper() else words[:1].lower() + words[1:]
