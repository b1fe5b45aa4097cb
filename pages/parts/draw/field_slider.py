"""Live sliders generated from declared fields."""

from __future__ import annotations

from collections.abc import Mapping

from udml_core.base.declaration import Described

from ..shell.address import number_from_address, write_address
from .slider import live_slider


def field_slider(field: Described, key: str, default: float | None = None, note: str = "", play: bool = False,
                 marks: Mapping[float, str] | None = None, parameter: str = "") -> float:
    """Show a live slider for a field; the address holds its value.

    Range, step, symbol, unit and scale are the field's.

    Args:
        field: The field.
        key: The widget's key.
        default: The value at first, such as a run's; the field's default if None.
        note: Words after the label that say what the value does.
        play: Whether to offer a button that steps through the values.
        marks: Words below the track, by value.
        parameter: Name in the address; the field's name if empty.

    Returns:
        The value.
    """
    low, high, step = field.slider
    start = float(field.default if default is None else default)
    low, high = min(low, start), max(high, start)
    parameter = parameter or field.name
    symbol = f" · {field.shown.symbol}" if field.shown.symbol else ""  # the unit stands behind the number
    label = f"{field.words}{symbol}: {note}" if note else f"{field.words}{symbol}"
    value = live_slider(label, low, high, number_from_address(parameter, start, low, high), step, key,
                        unit=field.shown.unit, play=play, marks=marks, logarithmic=field.shown.logarithmic)
    write_address(parameter, f"{value:g}", f"{start:g}")
    return value
