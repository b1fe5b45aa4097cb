"""Widgets generated from declared fields."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import streamlit as st

from udml_core.declaration import Described, Options, describe

MOST_SLIDER_STEPS = 4096


def method_form(method: type[Options], key: str, first: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Show a widget for every hyper-parameter, two in a row.

    Args:
        method: The declaration.
        key: Prefix of the widgets' keys.
        first: Values to show first in place of the defaults.

    Returns:
        The values that differ from the first shown.
    """
    fields = [replace(field, default=(first or {}).get(field.name, field.default)) for field in describe(method)]
    if not fields:
        st.caption("This method has no hyper-parameters.")
    values: dict[str, Any] = {}
    for start in range(0, len(fields), 2):
        for column, field in zip(st.columns(2, gap="medium"), fields[start : start + 2], strict=False):
            with column:
                values[field.name] = field_widget(field, f"{key}-{field.name}")
    return {field.name: values[field.name] for field in fields if values[field.name] != field.default}


def option_form(options: type[Options], names: Iterable[str], choices: Mapping[str, tuple[Any, ...]] | None = None,
                first: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Show a widget for each named option, two in a row.

    The address holds the values under the names of the options, except values that `first` replaces.

    Args:
        options: The declaration.
        names: The options to show, in this order.
        choices: Options whose choices are restricted here.
        first: Values to show first in place of the defaults.
    """
    by_name = {field.name: field for field in describe(options)}
    values: dict[str, Any] = {}
    columns: list[Any] = []
    for name in names:
        columns = columns or list(st.columns(2, gap="large"))
        with columns.pop(0):
            if name in (first or {}):
                field = replace(by_name[name], default=(first or {})[name])
                values[name] = field_widget(field, f"paper-{name}-{field.default}")
            else:
                values[name] = field_widget(by_name[name], name, bind=True, choices=(choices or {}).get(name))
    return values


def field_widget(field: Described, key: str, bind: bool = False, choices: tuple[Any, ...] | None = None) -> Any:
    """Show the widget that fits a field.

    Args:
        field: The field.
        key: The widget's key.
        bind: Whether the address holds the value, under the key.
        choices: Choices to offer in place of the field's.
    """
    binding: dict[str, Any] = {"key": key, "bind": "query-params" if bind else None}
    choices = choices or field.choices
    text = field.text if choices or field.kind is str else f"{field.text} Allowed: {field.allowed}."
    if choices:
        default = None if field.default is None else choices.index(field.default) if field.default in choices else 0
        return st.selectbox(field.label, choices, default, help=text, placeholder=field.shown.placeholder or None,
                            **binding)
    if field.kind is bool:
        return st.toggle(field.label, field.default, help=text, **binding)
    if field.kind is str:
        suggestions = list(field.shown.suggestions()) if field.shown.suggestions else []
        chosen = st.selectbox(field.label, suggestions, suggestions.index(field.default), help=text,
                              accept_new_options=True, **binding)
        return (chosen or "").strip() or field.default
    if field.default is None:
        high = field.shown.high if field.high is None else field.high
        return st.number_input(field.label, _as_int(field.low), _as_int(high), None, _as_int(field.shown.step),
                               help=text, placeholder=field.shown.placeholder or None, **binding)
    low, high, step = field.slider
    if field.kind is int and (high - low) / step > MOST_SLIDER_STEPS:
        return st.number_input(field.label, int(low), int(high), field.default, int(step), help=text, **binding)
    if field.shown.logarithmic:
        return st.select_slider(field.label, decades(low, high, field.default), field.default, help=text,
                                format_func=lambda value: f"{value:g}", **binding)
    if field.kind is int:
        return st.slider(field.label, int(low), int(high), field.default, int(step), help=text, **binding)
    return st.slider(field.label, float(low), float(high), float(field.default), float(step), help=text, **binding)


def decades(low: float, high: float, default: float) -> list[float]:
    """Return 1, 2 and 5 times the powers of ten between two ends, and the default."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = {float(f"{factor}e{exponent}") for exponent in exponents for factor in (1, 2, 5)}
    return sorted({value for value in values if low <= value <= high} | {default})


def _as_int(value: float | None) -> int | None:
    return None if value is None else int(value)
