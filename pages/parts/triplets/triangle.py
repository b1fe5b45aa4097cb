"""A triplet drawn to scale."""

from __future__ import annotations

import math

from pages.parts.kit.drawing import LIGHT, Colors, show_drawing, svg
from udml_core.arrays import Array

WIDTH, HEIGHT, EDGE, ARC = 340, 300, 46, 34


def triangle(corners: Array, alpha: float, angle: float, colors: Colors = LIGHT) -> str:
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
    return svg(WIDTH, HEIGHT, ink, parts)


def draw_triangle(corners: Array, alpha: float, angle: float, title: str, key: str) -> None:
    """Show a triplet's drawing, with a way to keep it."""
    verdict = "violates" if angle > alpha else "satisfies"
    show_drawing(lambda colors: triangle(corners, alpha, angle, colors), title,
                 f"{title}: the angle is {angle:.1f}°, which {verdict} α = {alpha:g}°.", key)
