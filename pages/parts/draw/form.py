"""Widgets generated from declared fields."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from udml_core.base.declaration import Described, describe
from udml_core.methods import Method
from udml_core.runs import RunRequest
from udml_core.work.jobs import read_options, write_option

from ..shell.address import drop_infinite, write_address

FIELDS_IN_ROW = 3
MOST_SLIDER_STEPS = 4096


def method_form(method: type[Method], key: str, first: Mapping[str, Any] | None = None,
                values: Mapping[str, Any] | None = None, shown: Sequence[str] | None = None,
                in_row: int = FIELDS_IN_ROW, effect: Callable[[str, str], str] | None = None) -> dict[str, Any]:
    """Show a widget for every hyper-parameter.

    The fields that matter most are shown; the others are in an expander.

    Args:
        method: The method.
        key: Prefix of the widgets' keys.
        first: Values that replace the defaults, such as a preset's.
        values: Values that the widgets begin with in place of these.
        shown: Names of the fields outside the expander; all that matter most if None.
        in_row: Number of widgets in a row.
        effect: Returns what a field outside the expander does, by the names of method and field; shown below it.

    Returns:
        The values that differ from `first` and the defaults.
    """
    fields = {field.name: field for field in describe(method)}
    defaults = {name: (first or {}).get(name, field.default) for name, field in fields.items()}
    begin = defaults | dict(values or {})
    if not fields:
        st.caption("This method has no hyper-parameters.")
    main, others = method.form_fields()
    shown = main if shown is None else shown
    others = [name for name in (*main, *others) if name not in shown]
    effects = {name: effect(method.card.name, name) for name in shown} if effect else {}
    chosen = _fields_in_rows([fields[name] for name in shown], key, begin, in_row, effects)
    if others:
        changed = sum(begin[name] != defaults[name] for name in others)
        with st.expander(f"More settings: {len(others)}" + (f", {changed} changed" if changed else ""),
                         icon=":material/tune:"):
            chosen |= _fields_in_rows([fields[name] for name in others], key, begin, in_row)
    return {name: chosen[name] for name in fields if chosen[name] != defaults[name]}


def first_fields(method: type[Method], most: int, always: Collection[str] = ()) -> list[str]:
    """Return the names of the fields that a short form shows, in its order.

    Args:
        method: The method.
        most: Largest number of other fields than `always`; a single field more is shown too, without an expander.
        always: Names of fields that are shown in any case, after the first field.
    """
    main, others = method.form_fields()
    known = [name for name in always if name in (*main, *others)]
    first = [name for name in main if name not in known][:most]
    shown = [*first[:1], *known, *first[1:]]
    left = [name for name in (*main, *others) if name not in shown]
    return [*shown, *left] if len(left) == 1 else shown


def _fields_in_rows(fields: list[Described], key: str, begin: Mapping[str, Any], in_row: int,
                    effects: Mapping[str, str] | None = None) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for start in range(0, len(fields), in_row):
        row = fields[start : start + in_row]
        for place, field in zip(_places(in_row, "medium"), row, strict=False):
            effect = (effects or {}).get(field.name)
            with place, st.container(gap="xxsmall", key=f"effect-{key}-{field.name}") if effect else nullcontext():
                values[field.name] = field_widget(field, f"{key}-{field.name}", begin=begin)
                if effect:
                    st.caption(effect)
    return values


def _places(count: int, gap: Literal["medium", "large"]) -> list[DeltaGenerator]:
    """Return places beside each other; a single one is the current place, as wide as it is."""
    return [st.container()] if count == 1 else list(st.columns(count, gap=gap))


def option_form(options: type[RunRequest], names: Iterable[str], choices: Mapping[str, tuple[Any, ...]] | None = None,
                first: Mapping[str, Any] | None = None, in_row: int = 2) -> dict[str, Any]:
    """Show a widget for each named option.

    The address holds the values that differ from `first` and the defaults, under the names of the options.

    Args:
        options: The declaration.
        names: The options to show, in this order.
        choices: Options whose choices are restricted here.
        first: Values that replace the defaults.
        in_row: Number of widgets in a row.
    """
    by_name = {field.name: field for field in describe(options)}
    stated = read_options(st.query_params.to_dict(), options)
    values: dict[str, Any] = {}
    columns: list[Any] = []
    for name in names:
        columns = columns or _places(in_row, "large")
        default = (first or {}).get(name, by_name[name].default)
        with columns.pop(0):
            values[name] = field_widget(by_name[name], option_key(name, first or {}), choices=(choices or {}).get(name),
                                        begin={name: stated.get(name, default)})
        write_address(name, write_option(values[name]), write_option(default))
    return values


def option_key(name: str, first: Mapping[str, Any]) -> str:
    """Return the key of an option's widget; another default makes another widget."""
    return f"first-{name}-{first[name]}" if name in first else name


def field_widget(field: Described, key: str, bind: bool = False, choices: tuple[Any, ...] | None = None,
                 begin: Mapping[str, Any] | None = None) -> Any:
    """Show the widget that fits a field.

    Args:
        field: The field.
        key: The widget's key.
        bind: Whether the address holds the value, under the key.
        choices: Choices to offer in place of the field's.
        begin: Values that the widgets begin with in place of the defaults, by the names of the fields.
    """
    binding: dict[str, Any] = {"key": key, "bind": "query-params" if bind and not drop_infinite(key) else None}
    value = (begin or {}).get(field.name, field.default)
    choices = choices or field.choices
    text = field.text if choices or field.kind is str else f"{field.text} Allowed: {field.allowed}."
    if choices:
        position = None if value is None else choices.index(value) if value in choices else 0
        return st.selectbox(field.label, choices, position, help=text, placeholder=field.shown.placeholder or None,
                            **binding)
    if field.kind is bool:
        return st.toggle(field.label, value, help=text, **binding)
    if field.kind is str:
        suggestions = list(field.shown.suggestions()) if field.shown.suggestions else []
        suggestions += [value] if value and value not in suggestions else []
        chosen = st.selectbox(field.label, suggestions, suggestions.index(value) if value else None, help=text,
                              accept_new_options=True, placeholder=field.shown.placeholder or None, **binding)
        return (chosen or "").strip() or field.default
    if field.default is None:
        high = field.shown.high if field.high is None else field.high
        return st.number_input(field.label, _as_int(field.low), _as_int(high), value, _as_int(field.shown.step),
                               help=text, placeholder=field.shown.placeholder or None, **binding)
    low, high, step = field.slider
    if field.shown.logarithmic:
        return st.select_slider(field.label, decades(low, high, value), value, help=text,
                                format_func=lambda value: f"{value:g}", **binding)
    low, high = min(low, value), max(high, value)  # a link may hold any allowed value
    if field.kind is int and (high - low) / step > MOST_SLIDER_STEPS:
        return st.number_input(field.label, int(low), int(high), value, int(step), help=text, **binding)
    if field.kind is int:
        return st.slider(field.label, int(low), int(high), value, int(step), help=text, **binding)
    return st.slider(field.label, float(low), float(high), float(value), float(step), "%g", help=text,
                     **binding)


def decades(low: float, high: float, default: float) -> list[float]:
    """Return 1, 2 and 5 times the powers of ten between two ends, and the default."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = {float(f"{factor}e{exponent}") for exponent in exponents for factor in (1, 2, 5)}
    return sorted({value for value in values if low <= value <= high} | {default})


def _as_int(value: float | None) -> int | None:
    return None if value is None else int(value)
