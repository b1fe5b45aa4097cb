"""The page's state in the address, so that a link or a reload shows the same.

Streamlit keeps a widget's value in the address with `bind="query-params"`, under the widget's key. Pages bind every
widget whose options are shown as they are stored. The following widgets cannot be bound, so that their values are read
and written here:

- Widgets with a `format_func`: Streamlit would store the shown text, which changes with the wording, where links hold
  short names.
- Toggles: Streamlit accepts only true and false, while older links say 1 or yes.
- Options of a run on the page Lab: their defaults change with the settings that the form begins with.
- Lists of images, classes or clusters: links hold indices joined by dots.
- Live sliders, galleries and maps: they are components, not Streamlit widgets.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import streamlit as st
from streamlit.errors import StreamlitAPIException

LONGEST_NUMBER = 10
VISIT = "visit-"
"""How the session keys begin that are forgotten when another view is opened."""
BETWEEN = "~"
"""Stands between the names of embeddings in a parameter that lists them."""
SETTLES = 5.0
"""Seconds after which the browser surely shows a click in its address."""
WHOLE_RUNS = "address-whole-runs"
"""Session key of the number of times that a whole page was drawn."""
FOUND = "address-found"
"""Session key of the address with which the page was drawn last, before it wrote anything into it."""
CLICKS = "address-clicks"
"""Session key of the page's clicks: parameter -> (value, value that is left out, time)."""
IMAGE = "app-image"
"""Session key of the image that the user made the current image on any page."""
OF_IMAGE: Mapping[str, str] = {"retrieval": "add", "refine": "query", "compare": "query"} | dict.fromkeys(
    ("explore", "clusters", "neighborhoods", "triplets", "instances", "affinity"), "picked")
"""The parameter of the current image, by page."""
Choice = TypeVar("Choice", bound=str)


def choice_from_address(parameter: str, choices: Iterable[Choice], default: Choice) -> Choice:
    """Return the choice that the address names, or the default."""
    wanted = st.query_params.get(parameter)
    return next((choice for choice in choices if choice == wanted), default)


def choose_segment(label: str, parameter: str, choices: Iterable[Choice], default: Choice, key: str, *,
                   keeps_default: bool = False, then: Callable[[Choice], object] | None = None,
                   **options: Any) -> Choice:
    """Choose with a segmented control; the address holds the choice.

    Each of several quick clicks counts, and the control follows Back and Forward.

    Args:
        label: Label of the widget.
        parameter: The parameter in the address.
        choices: The choices; a mapping gives their titles.
        default: The choice without a parameter.
        key: Key of the widget. Without one, a changed address would make another widget, which loses the next click.
        keeps_default: Whether the address holds the default too, because a link without it means something else.
        then: Called with a choice that the user clicks.
        options: Further options of the widget.
    """
    names, left_out = list(choices), "" if keeps_default else default
    if key not in st.session_state or has_moved(parameter) or st.session_state[key] not in names:
        st.session_state[key] = choice_from_address(parameter, names, default)
    chosen = st.segmented_control(label, names, required=True, key=key, on_change=_write_click,
                                  args=(key, parameter, left_out, then), **_titles(choices) | options) or default
    write_address(parameter, chosen, left_out)
    note_address(parameter)
    return chosen


def _write_click(key: str, parameter: str, left_out: str, then: Callable[[Any], object] | None) -> None:
    """Write a click into the address before the page is drawn, so that a click that follows finds it there."""
    st.session_state.setdefault(CLICKS, {})[parameter] = (st.session_state[key], left_out, time.monotonic())
    keep_clicks()
    if then is not None:
        then(st.session_state[key])


def keep_clicks() -> None:
    """Write the last clicks into the address again.

    A click carries the address as the browser showed it, which may be older than the click before. Buttons that use
    what was just chosen call this when they are clicked.
    """
    now = time.monotonic()
    for parameter, (value, left_out, clicked) in st.session_state.get(CLICKS, {}).items():
        if now - clicked < SETTLES:
            write_address(parameter, value, left_out)
            note_address(parameter)


def choose_in_box(label: str, parameter: str, choices: Iterable[Choice], default: Choice, **options: Any) -> Choice:
    """Choose with a select box; the address holds the choice, without the default."""
    names = list(choices)
    chosen: Choice = st.selectbox(label, names, names.index(choice_from_address(parameter, names, default)),
                                  **_titles(choices) | options)
    write_address(parameter, chosen, default)
    return chosen


def _titles(choices: Iterable[Choice]) -> dict[str, Any]:
    return {"format_func": choices.__getitem__} if isinstance(choices, Mapping) else {}


def number_from_address(parameter: str, default: float, low: float = -math.inf, high: float = math.inf) -> float:
    """Return the number in the address.

    Returns:
        The number; the default if it is missing, not a number or out of range.
    """
    try:
        value = float(st.query_params.get(parameter, default))
    except ValueError:
        return default
    return value if math.isfinite(value) and low <= value <= high else default


def drop_infinite(parameter: str) -> bool:
    """Remove a number from the address that is not finite, and return whether there was one.

    Streamlit's field for whole numbers fails on it, so bind the field only in the next run.
    """
    try:
        is_infinite = not math.isfinite(float(st.query_params.get(parameter, "0")))
    except ValueError:
        return False
    if is_infinite:
        st.query_params.pop(parameter)
    return is_infinite


def indices_from_address(parameter: str, count: int) -> list[int]:
    """Return the indices below `count` that the address lists, such as 3.17.44.

    Everything else in the parameter is ignored.
    """
    parts = st.query_params.get(parameter, "").split(".")
    numbers = (int(part) for part in parts if part.isdecimal() and len(part) < LONGEST_NUMBER)
    return list(dict.fromkeys(number for number in numbers if number < count))


def join_indices(indices: Iterable[int]) -> str:
    """Write indices as `indices_from_address` reads them."""
    return ".".join(map(str, indices))


def write_address(parameter: str, value: str, default: str = "") -> None:
    """Keep a value in the address; a default is left out, which keeps links short.

    The session remembers the current image, so that the next page can show it too (see `focus`).
    """
    if value and parameter == OF_IMAGE.get(st.session_state.get("page", "")):
        st.session_state[IMAGE] = value.rsplit(".", 1)[-1]
    if value == default:
        st.query_params.pop(parameter, None)
    elif st.query_params.get(parameter) != value:
        st.query_params[parameter] = value


def drop_foreign_parameters(page: str) -> None:
    """Write the address again when the page changes, and forget what belonged to the visit.

    Each whole run of a page calls this first, and the session counts them; see `whole_runs`.

    The previous page may still have been writing its parameters when the user left it; the browser then shows them as
    this page's. A link to the page in view leaves the address in the browser as it was, which a changed address that is
    written again mends; the browser ignores one that it shows already.

    Args:
        page: The name of the current page.
    """
    st.session_state[WHOLE_RUNS] = whole_runs() + 1
    address = {name: st.query_params.get_all(name) for name in st.query_params}
    has_left = st.session_state.get("page") != page
    if has_left:
        st.session_state["page"] = page
        st.session_state.pop(CLICKS, None)
        for key in [key for key in st.session_state if str(key).startswith(VISIT)]:
            del st.session_state[key]
    if has_left or st.session_state.get(FOUND, address) != address:
        with suppress(StreamlitAPIException):  # A parameter that is bound to a widget belongs to this page.
            st.query_params.from_dict(address)
    st.session_state[FOUND] = address


def whole_runs() -> int:
    """Return how many times a whole page was drawn in this session.

    Back and Forward draw a whole page. What happens within a part of it may carry an address that is older than the
    page, so that a changed address then means nothing.
    """
    return int(st.session_state.get(WHOLE_RUNS, 0))


def note_address(parameter: str) -> None:
    """Remember a parameter as the current page leaves it, for `has_moved`."""
    st.session_state[_note_key(parameter)] = st.query_params.get(parameter)


def has_moved(parameter: str) -> bool:
    """Return whether a parameter differs from the current page's last note: the browser went Back or Forward.

    It is also True before the first note. Then the address decides, not what the session remembers.
    """
    key = _note_key(parameter)
    return key not in st.session_state or st.session_state[key] != st.query_params.get(parameter)


def address_decides(parameter: str, key: str) -> bool:
    """Return whether a widget shows what the address says: at first, and after Back or Forward, not after a click.

    Args:
        parameter: The widget's parameter, of which the page takes a note when it has drawn the widget.
        key: The widget's key; `note_click` must follow its changes.
    """
    return not st.session_state.pop(_click_key(key), False) and (key not in st.session_state or has_moved(parameter))


def note_click(key: str) -> None:
    """Remember that the user has just changed a widget, which the address does not show yet."""
    st.session_state[_click_key(key)] = True


def _click_key(key: str) -> str:
    return f"{key}-clicked"


def _note_key(parameter: str) -> str:
    return f"address-{st.session_state.get('page')}-{parameter}"
