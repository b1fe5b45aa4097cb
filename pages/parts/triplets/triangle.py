"""A triplet drawn to scale, with its photographs at the corners."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PIL import Image, ImageOps

from udml_core.base.arrays import Array
from udml_core.data.thumbnails import enlarge_tiny

from ..draw.drawing import LIGHT, Colors, show_drawing, svg
from ..draw.figures import GRAY
from ..draw.palette import QUERY
from ..draw.pictures import inline

WIDTH, HEIGHT, ARC, SIDE = 340, 430, 34, 64
"""Pixels of the drawing, radius of the arc, and side of a photograph."""
TOP, BELOW, EDGE = SIDE + 62, SIDE + 26, SIDE / 2 + 4
"""Highest point of the triangle, below the line with the angle and the negative with its word; room below its base
line, and its least distance from the left and right edges."""
LEAST_HALF = 24
"""Pixels of half the base line from which all drawings of a triplet share its length."""


def triangle(corners: Array, alpha: float, angle: float, colors: Colors = LIGHT,
             images: Sequence[Image.Image] = (), height: int = HEIGHT, half: float | None = None) -> str:
    """Draw a triplet as SVG, to scale.

    The drawing shows the true triangle, the symmetrized triangle with its angle as an arc between median and side, and
    the position of the negative at which the angle is exactly α.

    Args:
        corners: Anchor, positive, negative and symmetrized negative around the midpoint of the first two, (4, 2).
        alpha: The upper bound of the angle in degrees.
        angle: The angle in degrees.
        colors: Ink, positive, negative; the fourth color is not used.
        images: Photographs of anchor, positive and negative; none draws the words only.
        height: Pixels of the drawing.
        half: Pixels of half the base line at most; as many as fit if None.
    """
    needed = _apex_at(corners, alpha)
    base, scale = height - BELOW, largest_scale(corners, alpha, height)
    if half is not None and corners[1, 0] > 0:
        scale = min(scale, half / float(corners[1, 0]))

    def pixels(x: float, y: float) -> str:
        return f"{WIDTH / 2 + scale * x:.1f},{base - scale * y:.1f}"

    a, p, n, mirrored = (pixels(float(x), float(y)) for x, y in corners)
    ink, blue, orange, _ = colors
    apex_x, apex_y, radians = WIDTH / 2, base - scale * float(corners[3, 1]), math.radians(angle)
    parts = [
        f'<polygon points="{a} {p} {n}" fill="{ink}" fill-opacity=".06"/>',
        _edge(a, p, blue, 4), _edge(a, n, orange, 3, "8 5"),
        f'<polyline points="{p} {n}" stroke="{ink}" stroke-opacity=".4"/>',
        f'<polyline points="{a} {mirrored} {p}" fill="none" stroke="{ink}" stroke-width="1.5" '
        'stroke-dasharray="5 4"/>',
        _edge(pixels(0, 0), mirrored, ink, 1, "2 3"),
        f'<polyline points="{a} {pixels(0, needed)} {p}" fill="none" stroke="{GRAY}" stroke-width="2.5" '
        'stroke-dasharray="1 5" stroke-linecap="round"/>',
        f'<path d="M {apex_x:.1f} {apex_y + ARC:.1f} A {ARC} {ARC} 0 0 0 {apex_x + ARC * math.sin(radians):.1f} '
        f'{apex_y + ARC * math.cos(radians):.1f}" fill="none" stroke="{ink}" stroke-width="3"/>',
    ]
    points = [(float(x), float(y)) for x, y in (point.split(",") for point in (a, p, n))]
    parts += _corners(points, (QUERY, blue, orange), images)
    relation = "&gt;" if angle > alpha else "≤"
    color = orange if angle > alpha else blue
    parts.append(f'<text x="{WIDTH / 2:g}" y="18" text-anchor="middle" font-size="15" font-weight="600" '
                 f'fill="{color}">half angle {angle:.1f}° {relation} α {alpha:g}°</text>')
    return svg(WIDTH, height, ink, parts)


def _apex_at(corners: Array, alpha: float) -> float:
    """Return how far from the base line the angle is exactly α."""
    return float(corners[1, 0]) / math.tan(math.radians(alpha))


def largest_scale(corners: Array, alpha: float, height: int = HEIGHT) -> float:
    """Return the pixels of a unit of distance at which a triplet fills its drawing."""
    reach = max(float(abs(corners[:, 0]).max()), 1e-9)
    top = max(float(corners[:, 1].max()), _apex_at(corners, alpha), 1e-9)
    return min((WIDTH / 2 - EDGE) / reach, (height - BELOW - TOP) / top)


def shared_half(drawings: Sequence[Array], alpha: float) -> float:
    """Return half the base line's pixels that all drawings of a triplet share; the least drawing decides, in bounds.

    Args:
        drawings: The corners (4, 2) of each, as for `triangle`.
        alpha: The upper bound of the angle in degrees.
    """
    return max(LEAST_HALF, min(largest_scale(corners, alpha) * float(corners[1, 0]) for corners in drawings))


def _edge(start: str, end: str, color: str, width: float, dashes: str = "") -> str:
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<polyline points="{start} {end}" stroke="{color}" stroke-width="{width}"{dashed}/>'


def _corners(points: Sequence[tuple[float, float]], colors: Sequence[str],
             images: Sequence[Image.Image]) -> list[str]:
    """Draw the corners with their words and photographs: anchor and positive below, the negative above."""
    (ax, ay), (px, _), (nx, ny) = points
    left, right = min(ax, WIDTH / 2 - SIDE / 2 - 4), max(px, WIDTH / 2 + SIDE / 2 + 4)
    aside = SIDE / 2 + 6 if nx >= WIDTH / 2 else -SIDE / 2 - 6  # beside the apex of the symmetrized triangle
    over = min(max(nx + aside, SIDE / 2 + 2), WIDTH - SIDE / 2 - 2)
    places = ((left, ay + 8, ay + SIDE + 22), (right, ay + 8, ay + SIDE + 22), (over, ny - SIDE - 8, ny - SIDE - 19))
    parts = []
    for number, ((x, y), (center, upper, word), role, color) in enumerate(
            zip(points, places, ("anchor", "positive", "negative"), colors, strict=True)):
        dashes = ' stroke-dasharray="6 4"' if role == "negative" else ""
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{color}"/>')
        if images:
            padded = ImageOps.pad(enlarge_tiny(images[number]), (2 * SIDE, 2 * SIDE), Image.Resampling.LANCZOS,
                                  color="white")
            parts += [f'<image href="{inline(padded)}" x="{center - SIDE / 2:.1f}" y="{upper:.1f}" width="{SIDE}" '
                      f'height="{SIDE}"/>',
                      f'<rect x="{center - SIDE / 2:.1f}" y="{upper:.1f}" width="{SIDE}" height="{SIDE}" fill="none" '
                      f'stroke="{color}" stroke-width="3"{dashes}/>']
        parts.append(f'<text x="{center:.1f}" y="{word:.1f}" text-anchor="middle" font-size="13">{role}</text>')
    return parts


def describe_triangle(title: str, alpha: float, angle: float) -> str:
    """Say in words what a triplet's drawing shows, for screen readers."""
    verdict = "violates" if angle > alpha else "satisfies"
    return f"{title}: the half angle is {angle:.1f}°, which {verdict} α = {alpha:g}°."


def draw_triangle(corners: Array, alpha: float, angle: float, title: str, key: str,
                  images: Sequence[Image.Image] = (), half: float | None = None) -> None:
    """Show a triplet's drawing with a download button.

    Args:
        corners: As for `triangle`.
        alpha: The upper bound of the angle in degrees.
        angle: The angle in degrees.
        title: The title.
        key: The button's key and the name of the file.
        images: As for `triangle`.
        half: As for `triangle`.
    """
    show_drawing(lambda colors: triangle(corners, alpha, angle, colors, images, half=half), title,
                 describe_triangle(title, alpha, angle), key)
