"""Sliders that report their value while they move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from udml_core.base.declaration import Described
from udml_core.results.embedding_words import words_of
from udml_core.runs import Run
from udml_core.runs.search import epoch_words

from ..shell.address import number_from_address, write_address
from .transport import component

HTML = """<div class="slider"><label></label>
<div class="row"><button type="button" aria-label="Play">▶</button>
<div class="track"><input type="range"><div class="marks"></div></div>
<input type="number"><span class="unit"></span><output></output></div></div>
"""


def live_slider(label: str, low: float, high: float, value: float, step: float, key: str, unit: str = "",
                play: bool = False, marks: Mapping[float, str] | None = None, logarithmic: bool = False,
                words: Sequence[str] | None = None) -> float:
    """Show a slider that reports every movement, not only the release.

    Use it within an `st.fragment`, so that a movement does not rerun the whole page.

    Args:
        label: The label.
        low: The lower end.
        high: The upper end.
        value: The position at first. Later the browser's movements count, until another `value` is passed.
        step: The step; ignored on a logarithmic scale.
        key: The widget's key.
        unit: The unit shown behind the number.
        play: Whether to offer a button that steps through the values.
        marks: Words below the track, by value.
        logarithmic: Whether equal movements multiply the value by equal factors; `low` must be above 0.
        words: The name of each step, shown in place of the number; the slider then takes one line.
    """
    memory = f"{key}-given"
    current, revision = position_after(st.session_state.get(memory), value,
                                       getattr(st.session_state.get(key), "value", None))
    current = min(max(current, low), high)
    st.session_state[memory] = (value, current, revision)
    header = {"label": label, "low": low, "high": high, "step": step, "value": current, "unit": unit, "play": play,
              "logarithmic": logarithmic, "marks": [{"at": at, "word": word} for at, word in (marks or {}).items()],
              "words": None if words is None else list(words), "revision": revision}
    component("slider", HTML)(data=header, key=key, on_value_change=lambda: None)
    return current


def position_after(memory: tuple[float, float, int] | None, value: float, answer: Mapping[str, Any] | None
                   ) -> tuple[float, int]:
    """Return a slider's position and its revision.

    Args:
        memory: The value that was passed last, and position and revision then; None at first.
        value: The value that is passed now.
        answer: The browser's last report.
    """
    given, position, revision = memory or (value, value, 0)
    # A new movement wins: a slow browser still sends the address, and so the value, of an earlier position with it.
    if answer and answer["revision"] > revision:
        return float(answer["value"]), int(answer["revision"])
    return (position, revision) if value in (given, position) else (value, revision + 1)


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


def pick_epoch_cursor(runs: Sequence[Run], key: str) -> float:
    """Choose a position in the training of several runs, at first the end.

    The address parameter `moment` holds it.

    Returns:
        The position in epochs; 0 is before training.
    """
    last = max(run.epoch_numbers()[-1] for run in runs)
    position = number_from_address("moment", last, 0, last)
    if last:
        ends = {epoch_words(run, last) for run in runs}
        end = ends.pop() if len(ends) == 1 else words_of(str(last)).sentence
        position = live_slider("Epoch", 0, last, position, 1, f"{key}-{last}", play=True,
                               marks={0.0: epoch_words(runs[0], 0), float(last): end})
        write_address("moment", f"{position:g}", f"{last:g}")
    return position
