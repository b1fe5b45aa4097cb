"""Drawings to scale as SVG, in the page's colors, with a download button."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

Colors = tuple[str, str, str, str]
LIGHT: Colors = ("#0b1220", "#0072b2", "#d55e00", "#00805d")
"""Ink and three colors on a light page."""
DARK: Colors = ("#e8edf2", "#56b4e9", "#ff9248", "#2fd0a0")
"""Ink and three colors on a dark page."""


def svg(width: int, height: int, ink: str, parts: list[str]) -> str:
    """Return a complete SVG file from its elements.

    Args:
        width: Width in pixels.
        height: Height in pixels.
        ink: Color of text.
        parts: The elements.
    """
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" fill="{ink}" font-family="sans-serif">{"".join(parts)}</svg>')


def show_drawing(make: Callable[[Colors], str], title: str, alt: str, key: str) -> None:
    """Show an SVG in the page's colors with a download button.

    Args:
        make: Draws the SVG in some colors.
        title: The title.
        alt: What the drawing shows, for screen readers.
        key: The button's key and the name of the file.
    """
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f"**{title}**", width="content")
        st.download_button("SVG", make(LIGHT), f"{key}.svg", "image/svg+xml", icon=":material/download:", key=key,
                           on_click="ignore", type="tertiary", help=f"Save the drawing '{title}' as an SVG file.")
    with st.container(key=f"{key}-drawing"):
        st.image(make(page_colors()), alt=alt)


def page_colors() -> Colors:
    """Return the colors of drawings on the page's theme."""
    return DARK if st.context.theme.type == "dark" else LIGHT
