"""Drawings to scale, in the page's colours, that can be kept."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

Colors = tuple[str, str, str, str]
LIGHT: Colors = ("#0b1220", "#0072b2", "#d55e00", "#00805d")
"""Ink, and three colours that mean what the drawing says, on a light page."""
DARK: Colors = ("#e8edf2", "#56b4e9", "#ff9248", "#2fd0a0")
"""The same on a dark page."""


def svg(width: int, height: int, ink: str, parts: list[str]) -> str:
    """A whole SVG file."""
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" fill="{ink}" font-family="sans-serif">{"".join(parts)}</svg>')


def show_drawing(make: Callable[[Colors], str], title: str, alt: str, key: str) -> None:
    """Show an SVG in the page's colours, with a way to keep it."""
    st.markdown(f"**{title}**")
    st.image(make(DARK if st.context.theme.type == "dark" else LIGHT), alt=alt)
    st.download_button("Save as SVG", make(LIGHT), f"{key}.svg", "image/svg+xml", icon=":material/download:", key=key,
                       on_click="ignore")
