"""A slider that reports its value while it moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

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
    given, before, revision = st.session_state.get(memory, (None, value, 0))
    current = before
    answer: dict[str, Any] | None = getattr(st.session_state.get(key), "value", None)
    if answer and answer["revision"] > revision:
        current, revision = float(answer["value"]), int(answer["revision"])
    if value not in (given, before, current):  # the page asks for another position than the reported one
        current, revision = value, revision + 1
    current = min(max(current, low), high)
    st.session_state[memory] = (value, current, revision)
    header = {"label": label, "low": low, "high": high, "step": step, "value": current, "unit": unit, "play": play,
              "logarithmic": logarithmic, "marks": [{"at": at, "word": word} for at, word in (marks or {}).items()],
              "words": None if words is None else list(words), "revision": revision}
    component("slider", HTML)(data=header, key=key, on_value_change=lambda: None)
    return current
