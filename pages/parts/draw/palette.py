"""Colors that mean the same on every page, their legend, and the format of measures.

The colors of meanings are from Okabe & Ito (2008). Marks never rely on color alone: misses and negatives are dashed
as well.
"""

from __future__ import annotations

import json
from typing import Any

import streamlit as st

from udml_core.base.paths import ASSETS

CLASS_COLORS: dict[str, list[str]] = json.loads(
    (ASSETS / "palette.js").read_text(encoding="utf-8").partition("CLASS_COLORS = ")[2].removesuffix(";\n"))
"""Colors of classes, clusters and lines in the light and in the dark theme."""

BEFORE = "#8b9098"
"""Before training, and every line to beat: frozen features, PCA."""
AFTER = "#009e73"
LEVEL = "#5b6673"
"""A run that chance may place above or below a line to beat."""
REFINED = "#cc79a7"
QUERY = "#e69f00"
"""The query, the anchor, the current image."""
HIT = "#0072b2"
"""A hit or a positive."""
MISS = "#d55e00"
"""A miss or a negative."""
MEANINGS = {"query": (QUERY, "solid", "★"), "current image": (QUERY, "solid", "★"), "anchor": (QUERY, "solid", "★"),
            "hit": (HIT, "solid", "✓"), "same class": (HIT, "solid", "✓"),
            "positive": (HIT, "solid", "+"), "similar": (HIT, "solid", "="), "miss": (MISS, "dashed", "✕"),
            "other class": (MISS, "dashed", "✕"), "negative": (MISS, "dashed", "−"),
            "dissimilar": (MISS, "dashed", "≠"), "beyond": (BEFORE, "dotted", ""),
            "only": ("currentColor", "dotted", "◆")}
"""Color, line and sign of each meaning, as assets/gallery.js and gallery.css draw them."""
CLASSES = ("same class", "other class")
"""Meanings of the colors of images that are compared with one image."""
HITS = ("hit", "miss")
"""Meanings of the colors of the results of a search."""
EXPLAINED = {"hit": "hit: same class", "miss": "miss: other class", "beyond": "dimmed: beyond the threshold",
             "only": "found by this search only, among the first ten"}
"""What a legend writes for a meaning that needs a word of explanation."""


def color_legend(*meanings: str) -> None:
    """Show what the colors of a picture mean, in one line.

    Args:
        meanings: Keys of `MEANINGS`.
    """
    swatches = (f'<span style="white-space:nowrap"><span style="display:inline-block;width:1.1em;height:1.1em;'
                f'border:2px {line} {color};margin-right:0.35em"></span>{sign} {EXPLAINED.get(name, name)}</span>'
                for name in meanings for color, line, sign in [MEANINGS[name]])
    st.html(f'<div style="display:flex;flex-wrap:wrap;gap:0.2em 1em;font-size:0.8rem">{"".join(swatches)}</div>')


def percent(value: float | None) -> str:
    """Format a measure given in percent, such as 85.5 %; a dash if there is none."""
    return "–" if value is None else f"{value:.1f} %"


def points(value: float | None) -> str:
    """Format a difference of measures in percentage points, such as −14.2 points; a dash if there is none."""
    if value is None:
        return percent(None)
    return f"{signed(value)} points"


def signed(value: float, digits: int = 1) -> str:
    """Format a difference with its sign, such as −14.2."""
    value = round(value, digits)
    return f"{'+' if value > 0 else '−' if value < 0 else ''}{abs(value):.{digits}f}"


def change_mark(value: float | None) -> str:
    """Format a difference with a sign that needs no color, such as ▼ 14.2; a dash if there is none."""
    if value is None or value != value:
        return "–"
    value = round(value, 1)
    return f"{'▲' if value > 0 else '▼' if value < 0 else '='} {abs(value):.1f}"


def change_style(change: float, digits: int = 1, lower_is_better: bool = False) -> dict[str, Any]:
    """Return the color and arrow of a change in `st.metric`, which knows no minus sign but the hyphen."""
    change = round(change, digits)
    if not change:
        return {"delta_color": "off", "delta_arrow": "off"}
    return {"delta_color": "green" if (change > 0) != lower_is_better else "red",
            "delta_arrow": "up" if change > 0 else "down"}
