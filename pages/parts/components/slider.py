"""A slider that answers while it moves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from pages.parts.components.transport import component

HTML = """<div class="slider"><label></label>
<div class="row"><button type="button" aria-label="Play">▶</button>
<div class="track"><input type="range"><div class="marks"></div></div>
<input type="number"><span class="unit"></span></div></div>
"""


def live_slider(label: str, low: float, high: float, value: float, step: float, key: str, unit: str = "",
                play: bool = False, marks: Mapping[float, str] | None = None) -> float:
    """The value of a slider, asked at every movement and not only at release; draw it within an `st.fragment`.

    Args:
        value: where it stands at first; afterwards the browser's movements count, until another `value` is given.
        play: offer a button that steps through by itself.
        marks: words below the track, by value.
    """
    memory = f"{key}-given"
    given, before, revision = st.session_state.get(memory, (None, value, 0))
    current = before
    answer: dict[str, Any] | None = getattr(st.session_state.get(key), "value", None)
    if answer and answer["revision"] > revision:
        current, revision = float(answer["value"]), int(answer["revision"])
    if value not in (given, before, current):  # the page wants another place, not the one that it was just told
        current, revision = value, revision + 1
    current = min(max(current, low), high)
    st.session_state[memory] = (value, current, revision)
    header = {"label": label, "low": low, "high": high, "step": step, "value": current, "unit": unit, "play": play,
              "marks": [{"at": at, "word": word} for at, word in (marks or {}).items()], "revision": revision}
    component("slider", HTML)(data=header, key=key, on_value_change=lambda: None)
    return current
