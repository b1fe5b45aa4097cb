"""The methods by name, read from the files of this folder: a run loads the file of its own method only.

A method is a class whose `card: ClassVar[Card] = Card(` begins with its `name`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from udml_core.base.errors import UserError, quoted

if TYPE_CHECKING:  # the base of all methods loads torch
    from udml_core.methods.base import Method

    METHODS: tuple[type[Method], ...]
    """All methods in the order of their cards; the first use loads all files."""

_METHOD = re.compile(r'class (\w+)\(.*?^    card: ClassVar\[Card\] = Card\(\s*name="([^"]+)"', re.DOTALL | re.MULTILINE)
_CARD = re.compile(r"^    card\b[^=\n]*= Card\(", re.MULTILINE)


@cache
def declared() -> dict[str, tuple[str, str]]:
    """Return the module and the class of each method by the method's name."""
    return declared_in(Path(__file__).parent)


def declared_in(folder: Path) -> dict[str, tuple[str, str]]:
    """Return the module and the class of each method of a folder's files by the method's name.

    Raises:
        TypeError: A card does not begin with its name, or two methods have one name.
    """
    methods: dict[str, tuple[str, str]] = {}
    for path in sorted(folder.glob("*.py")):
        for block in re.split(r"^(?=class )", path.read_text(encoding="utf-8"), flags=re.MULTILINE):
            match = _METHOD.match(block)
            if match is None and _CARD.search(block):
                raise TypeError(f'A card in {path.name} must begin so: card: ClassVar[Card] = Card(name="…"')
            if match and match[2] in methods:
                raise TypeError(f"The name '{match[2]}' of a method in {path.name} is taken by {methods[match[2]][0]}.")
            if match:
                methods[match[2]] = (f"{__package__}.{path.stem}", match[1])
    return methods


def find_method(name: str) -> type[Method]:
    """Return the method of a name.

    Raises:
        UserError: No method has this name; the message lists the names.
    """
    if name not in declared():
        raise UserError(f"The method must be one of {', '.join(method.card.name for method in _all())}, "
                        f"got {quoted(name)}.")
    return _load(*declared()[name])


def find_class(name: str) -> type[Method]:
    """Return the method of a class name.

    Raises:
        AttributeError: No method's class has this name.
    """
    for module, class_name in declared().values():
        if class_name == name:
            return _load(module, class_name)
    raise AttributeError(f"no class of a method is named {name}")


def names_of(predicate: Callable[[Method], bool]) -> str:
    """List the names of the methods with a property, such as ``NML, ML or KML``."""
    *names, last = (method.__name__ for method in _all() if predicate(method.make({})))
    return f"{', '.join(names)} or {last}" if names else last


def _load(module: str, class_name: str) -> type[Method]:
    method: type[Method] = getattr(import_module(module), class_name)
    return method


def _all() -> tuple[type[Method], ...]:
    return tuple(sorted((_load(*place) for place in declared().values()), key=lambda method: method.card.order))


def __getattr__(name: str) -> tuple[type[Method], ...]:
    if name == "METHODS":
        return _all()
    raise AttributeError(f"module {__name__} has no attribute {name}")
