"""The order of a page: sections of which only the open one is drawn, and places for content that is drawn later."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ..shell.address import choice_from_address, write_address
from ..shell.user_errors import show_user_errors

PARAMETER = "section"


@dataclass(frozen=True)
class Section:
    """A part of a page that is drawn only while it is open.

    Attributes:
        name: Short name in the address.
        title: Title of the tab.
        draw: Draws the section and returns the index of the image that was clicked just now.
    """

    name: str
    title: str
    draw: Callable[[], int | None]


def show_sections(sections: Sequence[Section], key: str, first: str = "") -> int | None:
    """Show sections as tabs and draw the open section; the address parameter `section` names it.

    Args:
        sections: The sections.
        key: The widget's key.
        first: Name of the section that is open at first; the first section if empty or unknown.

    Returns:
        The index of the image that was clicked just now in the open section.
    """
    titles = {section.name: section.title for section in sections}
    default = first if first in titles else next(iter(titles))
    following = st.session_state.pop(f"{key}-next", None)
    if following in titles.values():
        st.session_state[key] = following
    elif st.session_state.get(key) not in titles.values():
        st.session_state[key] = titles[choice_from_address(PARAMETER, titles, default)]
    tabs = st.tabs(list(titles.values()), key=key, on_change="rerun")
    for section, tab in zip(sections, tabs, strict=True):
        if tab.open:
            write_address(PARAMETER, section.name, next(iter(titles)))
            with tab, show_user_errors():
                return section.draw()
    return None


def open_now(key: str, titles: Mapping[str, str]) -> str:
    """Return the name of the section that `show_sections` will draw, for what stands above the tabs.

    Args:
        key: The key of `show_sections`.
        titles: The title of each section by its name.
    """
    following = st.session_state.get(f"{key}-next") or st.session_state.get(key)
    names = list(titles)
    return next((name for name, title in titles.items() if title == following),
                choice_from_address(PARAMETER, names, names[0]))


def open_section(key: str, title: str) -> None:
    """Open a section when its tabs are drawn next; a widget's own state cannot change after it is drawn."""
    st.session_state[f"{key}-next"] = title


def slot(key: str) -> DeltaGenerator:
    """Return a place to draw into later, whose height app.css keeps under its key.

    The browser shows no empty container, but an empty column.
    """
    with st.container(key=key):
        return st.columns(1)[0]
