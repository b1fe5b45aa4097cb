"""Read a sweep from YAML without trusting it: plain values, limits, and a message for everything odd."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import ValidationError

from udml_core.base.declaration import is_number
from udml_core.base.errors import UserError, quoted
from udml_core.base.files import read_regular
from udml_core.methods import find_method
from udml_core.runs import RunRequest
from udml_core.runs.request import HIGHEST_SEED
from udml_core.work.sweeps.criteria import CRITERIA
from udml_core.work.sweeps.plan import LONGEST_NAME, MOST_RUNS, Choices, Range, Search, SweepSpec, check_size

MOST_BYTES = 100_000
"""Largest length of a file that is read."""
KEYS = ("name", "data", "methods", "fields", "options", "seeds", "search", "draws", "draw_seed", "criterion", "budget",
        "invalid")
OPTIONS = tuple(name for name in RunRequest.model_fields if name not in ("dataset", "method", "fields", "seed"))
"""Options of a run that a sweep may set; data sets, methods, fields and seeds have keys of their own."""
RANGE_KEYS = ("low", "high", "logarithmic")
SCALARS = (bool, int, float, str, type(None))
YAML_FAILURES = (yaml.YAMLError, ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError,
                 RecursionError)
"""What PyYAML raises for damaged and hostile files; an odd tag fails in the conversion of its value."""


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader without aliases, which can grow without limit, and without repeated keys."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases such as *name are not allowed. Repeat the value")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if isinstance(key.value, str) and key.value in seen:
                raise yaml.YAMLError(f"the key {quoted(key.value)} occurs twice. Remove one")
            seen.add(str(key.value))
        values: dict[Any, Any] = super().construct_mapping(node, deep)
        return values


# PyYAML reads YAML 1.1, in which 1e-5 is a text.
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$"),
                              list("-+0123456789"))


def read_sweep(path: Path) -> SweepSpec:
    """Read a sweep from a YAML file; without a name of its own, it has the file's.

    Raises:
        UserError: The file cannot be read, or a value is not allowed; the message names it.
    """
    try:
        text = read_regular(path, MOST_BYTES).decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise UserError(f"{path} should describe a sweep in at most {MOST_BYTES:,} bytes of YAML, but could not be "
                        f"read: {error}. Check its name and its encoding, UTF-8.") from error
    return parse_sweep(text, path.stem)


def parse_sweep(text: str, name: str) -> SweepSpec:
    """Read a sweep from YAML.

    Args:
        text: The YAML text.
        name: Its name, if the text has none.

    Raises:
        UserError: The text is no YAML, or a value is not allowed; the message names it.
    """
    try:
        content = yaml.load(text, _Loader)
    except YAML_FAILURES as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else " ".join(str(error).split())
        raise UserError(f"The sweep is not valid YAML: {reason}.") from None
    return make_sweep(content, name)


def make_sweep(content: Any, name: str) -> SweepSpec:
    """Check the content of a sweep's file, and complete it.

    Args:
        content: The values by key.
        name: Its name, if the content has none.

    Raises:
        UserError: A value is not allowed; the message names the key, the value and what is allowed.
    """
    values = _mapping("A sweep", content, KEYS)
    search = _choice("search", values.get("search", "grid"), get_args(Search))
    methods = _methods(values.get("methods"), _mapping("'fields'", values.get("fields") or {}))
    options = {key: _choices(key, value) for key, value in
               _mapping("'options'", values.get("options") or {}, OPTIONS).items()}
    budget = values.get("budget")
    if budget is not None and not (is_number(budget) and 0 < budget < float("inf")):
        raise UserError(f"'budget' must be a number of minutes above 0, got {quoted(budget)}.")
    draws = values.get("draws")
    if draws is not None and search == "grid":
        raise UserError(f"'draws' is the number of combinations of a random search, got {quoted(draws)} with a grid. "
                        "Remove it, or add search: random.")
    title = str(values.get("name") or name)[:LONGEST_NAME].strip()
    try:
        spec = SweepSpec(
            name=title, data=_names("data", values.get("data")), methods=methods, options=options,
            seeds=_seeds(values.get("seeds", 1)), search=search, budget=budget,
            draws=None if draws is None else _whole("draws", draws, 1, MOST_RUNS),
            draw_seed=_whole("draw_seed", values.get("draw_seed", 0), 0, HIGHEST_SEED),
            criterion=_choice("criterion", values.get("criterion"), (None, *CRITERIA)),
            invalid=_choice("invalid", values.get("invalid", "refuse"), ("refuse", "skip")))
    except ValidationError as error:
        raise UserError(f"The sweep is not complete: {error.errors()[0]['loc'][0]} "
                        f"{error.errors()[0]['msg'].lower()}.") from None
    if search == "grid" and (ranged := [key for choices in (*methods.values(), options) for key, value
                                        in choices.items() if isinstance(value, Range)]):
        raise UserError(f"A grid needs a list of values, and {quoted(ranged[0])} has a range. List its values, or add "
                        "search: random and the number of draws.")
    check_size(spec)
    return spec


def _methods(value: Any, common: dict[str, Any]) -> dict[str, dict[str, Choices]]:
    """Return the choices of each method's fields; common fields come first."""
    written = value if isinstance(value, dict) else dict.fromkeys(_names("methods", value))
    methods: dict[str, dict[str, Choices]] = {}
    for name, fields in written.items():
        method = find_method(name if isinstance(name, str) else str(name))
        known = tuple(method.model_fields)
        own = common | _mapping(f"The method {quoted(name)}", fields or {}, known)
        _mapping("'fields'", common, known, f" of {method.card.name}")
        methods[method.card.name] = {key: _choices(key, choices) for key, choices in own.items()}
    return methods


def _choices(name: str, value: Any) -> Choices:
    """Return the values to try: one, several, or a range."""
    if isinstance(value, dict):
        ends = _mapping(f"The range of {quoted(name)}", value, RANGE_KEYS)
        if not (is_number(ends.get("low")) and is_number(ends.get("high"))
                and isinstance(ends.get("logarithmic", False), bool)):
            raise UserError(f"The range of {quoted(name)} needs low and high as numbers, and logarithmic as true or "
                            f"false, got {quoted(value)}.")
        try:
            return Range(**ends)
        except (ValidationError, OverflowError) as error:
            reason = error.errors()[0]["msg"].removeprefix("Value error, ") if isinstance(
                error, ValidationError) else str(error)
            raise UserError(f"The range of {quoted(name)} is not possible: {reason}.") from None
    values = value if isinstance(value, list) else [value]
    if not values or not all(isinstance(choice, SCALARS) for choice in values):
        raise UserError(f"{quoted(name)} needs a value, a list of values, or a range of low and high, got "
                        f"{quoted(value)}.")
    return tuple({repr(choice): choice for choice in values}.values())


def _seeds(value: Any) -> tuple[int, ...]:
    """Return a list of seeds, or the seeds 0, 1, … of a number of seeds."""
    if isinstance(value, list) and value:
        return tuple(dict.fromkeys(_whole("seeds", seed, 0, HIGHEST_SEED) for seed in value))
    return tuple(range(_whole("seeds", value, 1, MOST_RUNS)))


def _names(key: str, value: Any) -> tuple[str, ...]:
    names = value if isinstance(value, list) else [value]
    if not names or not all(isinstance(name, str) and name for name in names):
        raise UserError(f"{quoted(key)} needs a name or a list of names, got {quoted(value)}. Put a name that YAML "
                        "reads as a number or as true or false in quotes.")
    return tuple(dict.fromkeys(names))


def _mapping(what: str, value: Any, known: tuple[str, ...] | None = None, of: str = "") -> dict[str, Any]:
    """Check that a value is a mapping of known names."""
    if not isinstance(value, dict):
        raise UserError(f"{what} must be a mapping of names to values, got {quoted(value)}.")
    for name in value:
        if known is not None and name not in known:
            raise UserError(f"{what} has no entry {quoted(name)}{of}; its entries are: {', '.join(known) or 'none'}.")
    return value


def _choice(key: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    if value not in allowed:
        raise UserError(f"'{key}' must be one of {', '.join(repr(one) for one in allowed if one)}, got "
                        f"{quoted(value)}.")
    return value


def _whole(key: str, value: Any, low: int, high: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise UserError(f"'{key}' must be a whole number between {low} and {high:,}, got {quoted(value)}.")
    return value
