"""Drawings to scale as SVG, in the page's colors, with a download button."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from html import escape
from xml.etree import ElementTree

import streamlit as st

Colors = tuple[str, str, str, str]
LIGHT: Colors = ("#0b1220", "#0072b2", "#d55e00", "#00805d")
"""Ink and three colors on a light page."""
DARK: Colors = ("#e8edf2", "#56b4e9", "#ff9248", "#2fd0a0")
"""Ink and three colors on a dark page."""
NAMESPACE, TEXT = "{http://www.w3.org/2000/svg}", re.compile("<text .*?</text>", re.DOTALL)
SHIFTS = {"start": "0", "middle": "-50%", "end": "-100%"}
"""How far a word is moved to the left of its place, by its anchor."""


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
    """Show an SVG in the page's colors and font, in the middle of its column, with a download button.

    Args:
        make: Draws the SVG in some colors.
        title: The title.
        alt: What the drawing shows, for screen readers.
        key: The button's key and the name of the file.
    """
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="center"):
        st.markdown(f"**{title}**", width="content")
        st.download_button("SVG", make(LIGHT), f"{key}.svg", "image/svg+xml", icon=":material/download:", key=key,
                           on_click="ignore", type="tertiary", help=f"Save the drawing '{title}' as an SVG file.")
    with st.container(key=f"{key}-drawing"):
        place_drawing(make(page_colors()), alt)


def place_drawing(drawing: str, alt: str) -> None:
    """Show an SVG in the middle of its column, with its words in the page's font above the picture.

    An SVG in an image element cannot use the page's font, and Streamlit lets no SVG into the page itself.

    Args:
        drawing: The SVG, as `svg` returns it.
        alt: What it shows, for screen readers.
    """
    root = ElementTree.fromstring(drawing)
    width, height = (float(root.attrib[side]) for side in ("width", "height"))
    words = "".join(_word(text, width, height) for text in root.iter(f"{NAMESPACE}text"))
    picture = base64.b64encode(TEXT.sub("", drawing).encode()).decode()
    st.html(f'<div class="sketch" style="width:{width:g}px"><img src="data:image/svg+xml;base64,{picture}" '
            f'alt="{escape(alt)}" width="{width:g}" height="{height:g}"><div aria-hidden="true">{words}</div></div>')


def _word(text: ElementTree.Element, width: float, height: float) -> str:
    """Return a word of a drawing as HTML at its place."""
    of = text.attrib
    left, top = 100 * float(of["x"]) / width, 100 * float(of["y"]) / height
    color = f";color:{of['fill']}" if "fill" in of else ""
    return (f'<span style="left:{left:.2f}%;top:{top:.2f}%;font-size:{of["font-size"]}px;'
            f'font-weight:{of.get("font-weight", "400")};transform:translate({SHIFTS[of.get("text-anchor", "start")]},'
            f'-0.855em){color}">{escape("".join(text.itertext()))}</span>')


def page_colors() -> Colors:
    """Return the colors of drawings on the page's theme."""
    return DARK if st.context.theme.type == "dark" else LIGHT
