"""A triplet drawn to scale."""

from __future__ import annotations

import math

import streamlit as st

from pages.parts.browser import Array

WIDTH, HEIGHT, EDGE, ARC = 340, 300, 46, 34
LIGHT, DARK = ("#0b1220", "#0072b2", "#d55e00", "#00805d"), ("#e8edf2", "#56b4e9", "#ff9248", "#2fd0a0")
"""Ink, the true triangle, the symmetrized one, and α, on a light page and on a dark one."""


def triangle(corners: Array, alpha: float, angle: float, colors: tuple[str, str, str, str] = LIGHT) -> str:
    """The SVG of a triplet: its true triangle, the symmetrized one with the angle that counts as an arc between its
    median and a side, and where the negative would have to be for exactly α.

    Args:
        corners: (4, 2) anchor, positive, negative and symmetrized negative around the midpoint of the first two.
    """
    half = float(corners[1, 0])
    needed = half / math.tan(math.radians(alpha))
    reach = max(float(abs(corners[:, 0]).max()), 1e-9)
    top = max(float(corners[:, 1].max()), needed if half else 0.0, 1e-9)
    scale = min((WIDTH / 2 - EDGE) / reach, (HEIGHT - 2 * EDGE) / top)

    def at(x: float, y: float) -> str:
        return f"{WIDTH / 2 + scale * x:.1f},{HEIGHT - EDGE - scale * y:.1f}"

    a, p, n, mirrored = (at(float(x), float(y)) for x, y in corners)
    ink, blue, orange, green = colors
    top_x, top_y, turned = WIDTH / 2, HEIGHT - EDGE - scale * float(corners[3, 1]), math.radians(angle)
    parts = [
        f'<polygon points="{a} {p} {n}" fill="{blue}" fill-opacity=".12" stroke="{blue}" stroke-width="2"/>',
        f'<polyline points="{a} {mirrored} {p}" fill="none" stroke="{orange}" stroke-width="2" '
        'stroke-dasharray="6 4"/>',
        f'<polyline points="{at(0, 0)} {mirrored}" stroke="{orange}" stroke-width="1" stroke-dasharray="2 3"/>',
        f'<polyline points="{a} {at(0, needed)} {p}" fill="none" stroke="{green}" stroke-width="2" '
        'stroke-dasharray="1 5" stroke-linecap="round"/>',
        f'<path d="M {top_x:.1f} {top_y + ARC:.1f} A {ARC} {ARC} 0 0 0 {top_x + ARC * math.sin(turned):.1f} '
        f'{top_y + ARC * math.cos(turned):.1f}" fill="none" stroke="{orange}" stroke-width="3"/>',
    ]
    for point, mark, word, below in ((a, "●", "anchor", True), (p, "●", "positive", True), (n, "▲", "negative", False)):
        x, y = point.split(",")
        parts.append(f'<text x="{x}" y="{float(y) + 5:.1f}" text-anchor="middle" font-size="14">{mark}</text>')
        parts.append(f'<text x="{x}" y="{float(y) + (24 if below else -12):.1f}" text-anchor="middle" font-size="13">'
                     f"{word}</text>")
    verdict = "&gt;" if angle > alpha else "≤"
    parts.append(f'<text x="8" y="18" font-size="13">angle {angle:.1f}° {verdict} α {alpha:g}°</text>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
            f'fill="{ink}" font-family="sans-serif">{"".join(parts)}</svg>')


def draw_triangle(corners: Array, alpha: float, angle: float, title: str, key: str) -> None:
    """Show a triplet's drawing, with a way to keep it."""
    picture = triangle(corners, alpha, angle, DARK if st.context.theme.type == "dark" else LIGHT)
    verdict = "violates" if angle > alpha else "satisfies"
    st.markdown(f"**{title}**")
    st.image(picture, alt=f"{title}: the angle is {angle:.1f}°, which {verdict} α = {alpha:g}°.")
    st.download_button("Save as SVG", triangle(corners, alpha, angle), f"{key}.svg", "image/svg+xml",
                       icon=":material/download:", key=key, on_click="ignore")
