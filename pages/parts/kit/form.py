"""The form that a method's fields make of themselves."""

from __future__ import annotations

import math
from typing import Any

import streamlit as st

from udml_core.methods import Described, Method, describe


def method_form(method: type[Method], key: str) -> dict[str, Any]:
    """Widgets for every field, two in a row; the values that differ from the defaults."""
    values: dict[str, Any] = {}
    fields = describe(method)
    if not fields:
        st.caption("This method has nothing to set.")
    for start in range(0, len(fields), 2):
        for column, field in zip(st.columns(2, gap="medium"), fields[start : start + 2], strict=False):
            with column:
                values[field.name] = _widget(field, f"{key}-{field.name}")
    return {field.name: values[field.name] for field in fields if values[field.name] != field.default}


def label_of(field: Described) -> str:
    """What a field is called: its name in words, its symbol and unit."""
    words = field.name.removeprefix("n_").replace("_", " ").capitalize()
    symbol = f" · {field.shown.symbol}" if field.shown.symbol else ""
    unit = f" in {field.shown.unit}" if field.shown.unit else ""
    return f"{words}{symbol}{unit}"


def _widget(field: Described, key: str) -> Any:
    label, text = label_of(field), f"{field.text} Allowed: {field.allowed}."
    if field.choices:
        return st.selectbox(label, field.choices, field.choices.index(field.default), help=text, key=key)
    if field.kind is bool:
        return st.toggle(label, field.default, help=text, key=key)
    low, high, step = slider_range(field)
    if field.shown.logarithmic:
        return st.select_slider(label, _decades(low, high, field.default), field.default, help=text, key=key,
                                format_func=lambda value: f"{value:g}")
    if field.kind is int:
        return st.slider(label, int(low), int(high), field.default, int(step), help=text, key=key)
    return st.slider(label, float(low), float(high), float(field.default), float(step), help=text, key=key)


def slider_range(field: Described) -> tuple[float, float, float]:
    """A slider's ends and step: the shown ones, else the bounds, moved inwards where they are excluded."""
    shown = field.shown
    step = shown.step or (1 if field.kind is int else 0.01)
    low = shown.low if shown.low is not None else (field.low or 0.0) + (step if field.low_open else 0.0)
    bound = field.high if field.high is not None else 10.0 * field.default
    high = shown.high if shown.high is not None else bound - (step if field.high_open else 0.0)
    return low, high, step


def _decades(low: float, high: float, default: float) -> list[float]:
    """1, 2 and 5 times the powers of ten between two ends, and the default."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = {float(f"{factor}e{exponent}") for exponent in exponents for factor in (1, 2, 5)}
    return sorted({value for value in steps if low <= value <= high} | {default})
