"""A triplet drawn to scale."""

from __future__ import annotations

import math

from pages.parts.kit.drawing import LIGHT, Colors, show_drawing, svg
from udml_core.arrays import Array

WIDTH, HEIGHT, EDGE, ARC = 340, 300, 46, 34


def triangle(corners: Array, alpha: float, angle: float, colors: Colors = LIGHT) -> str:
    """Draw a triplet as SVG, to scale.

    The drawing shows the true triangle, the symmetrized triangle with its angle as an arc between median and side, and
    the position of the negative at which the angle is exactly α.

    Args:
        corners: Anchor, positive, negative and symmetrized negative around the midpoint of the first two, (4, 2).
        alpha: The upper bound of the angle in degrees.
        angle: The angle in degrees.
        colors: Ink, true triangle, symmetrized triangle, bound.
    """
    half = float(corners[1, 0])
    needed = half / math.tan(math.radians(alpha))
    reach = max(float(abs(corners[:, 0]).max()), 1e-9)
    top = max(float(corners[:, 1].max()), needed if half else 0.0, 1e-9)
    scale = min((WIDTH / 2 - EDGE) / reach, (HEIGHT - 2 * EDGE) / top)

    def pixels(x: float, y: float) -> str:
        return f"{WIDTH / 2 + scale * x:.1f},{HEIGHT - EDGE - scale * y:.1f}"

    a, p, n, mirrored = (pixels(float(x), float(y)) for x, y in corners)
    ink, blue, orange, green = colors
    apex_x, apex_y, radians = WIDTH / 2, HEIGHT - EDGE - scale * float(corners[3, 1]), math.radians(angle)
    parts = [
        f'<polygon points="{a} {p} {n}" fill="{blue}" fill-opacity=".12" stroke="{blue}" stroke-width="2"/>',
        f'<polyline points="{a} {mirrored} {p}" fill="none" stroke="{orange}" stroke-width="2" '
        'stroke-dasharray="6 4"/>',
        f'<polyline points="{pixels(0, 0)} {mirrored}" stroke="{orange}" stroke-width="1" stroke-dasharray="2 3"/>',
        f'<polyline points="{a} {pixels(0, needed)} {p}" fill="none" stroke="{green}" stroke-width="2" '
        'stroke-dasharray="1 5" stroke-linecap="round"/>',
        f'<path d="M {apex_x:.1f} {apex_y + ARC:.1f} A {ARC} {ARC} 0 0 0 {apex_x + ARC * math.sin(radians):.1f} '
        f'{apex_y + ARC * math.cos(radians):.1f}" fill="none" stroke="{orange}" stroke-width="3"/>',
    ]
    for point, mark, role, below in ((a, "●", "anchor", True), (p, "●", "positive", True), (n, "▲", "negative", False)):
        x, y = point.split(",")
        parts.append(f'<text x="{x}" y="{float(y) + 5:.1f}" text-anchor="middle" font-size="14">{mark}</text>')
        parts.append(f'<text x="{x}" y="{float(y) + (24 if below else -12):.1f}" text-anchor="middle" font-size="13">'
                     f"{role}</text>")
    relation = "&gt;" if angle > alpha else "≤"
    parts.append(f'<text x="8" y="18" font-size="13">angle {angle:.1f}° {relation} α {alpha:g}°</text>')
    return svg(WIDTH, HEIGHT, ink, parts)


def draw_triangle(corners: Array, alpha: float, angle: float, title: str, key: str) -> None:
    """Show a triplet's drawing with a download button.

    Args:
        corners: As for `triangle`.
        alpha: The upper bound of the angle in degrees.
        angle: The angle in degrees.
        title: The title.
        key: The button's key and the name of the file.
    """
    verdict = "violates" if angle > alpha else "satisfies"
    show_drawing(lambda colors: triangle(corners, alpha, angle, colors), title,
                 f"{title}: the angle is {angle:.1f}°, which {verdict} α = {alpha:g}°.", key)
