"""The graph around an image, drawn: its neighbors, theirs, and what labels make of the edges."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

from PIL import Image, ImageOps

from pages.parts.kit.drawing import LIGHT, Colors, show_drawing, svg
from pages.parts.kit.figures import GRAY
from pages.parts.kit.pictures import inline
from udml_core.arrays import Array
from udml_core.exploration.affinity import Ego

SIZE, RING, FAR, SIDE, OWN, WIDEST = 400, 112, 178, 40, 56, 7.0


def ego_drawing(found: Ego, values: Array, images: Sequence[Image.Image], words: Sequence[str], labeled: Array,
                colors: Colors = LIGHT) -> str:
    """The SVG of the two steps around an image.

    Args:
        values: (e,) affinities of the edges: above 0 solid, below 0 dashed, as wide as they are large.
        images: of the image and its neighbors. words: their classes, empty without a label.
        labeled: (m,) bool of all places of the part; a place further out is a square where it has a label.
    """
    ink, blue, orange, green = colors
    places = _places(found)
    most = max(float(abs(values).max(initial=0)), 1e-12)
    parts = []
    for (one, other), value in zip(found.edges.tolist(), values.tolist(), strict=True):
        near = other in found.inner or other == 0
        width = 0.6 + (WIDEST if near else WIDEST / 2) * abs(value) / most
        color, dash = (GRAY, "") if value == 0 else (blue, "") if value > 0 else (orange, ' stroke-dasharray="5 4"')
        (x0, y0), (x1, y1) = places[one], places[other]
        parts.append(f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" stroke="{color}" '
                     f'stroke-width="{width:.2f}" stroke-opacity="{0.9 if near else 0.45}"{dash}/>')
    for place in found.outer.tolist():
        x, y = places[place]
        parts.append(f'<rect x="{x - 5:.1f}" y="{y - 5:.1f}" width="10" height="10" fill="{green}"/>' if labeled[place]
                     else f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{GRAY}"/>')
    for place, image, word in zip([0, *found.inner.tolist()], images, words, strict=True):
        parts += _picture(image, places[place], OWN if place == 0 else SIDE, word, green if word else ink)
    return svg(SIZE, SIZE, ink, parts)


def show_ego(found: Ego, values: Array, images: Sequence[Image.Image], words: Sequence[str], labeled: Array,
             title: str, key: str) -> None:
    """Show the drawing, with a way to keep it."""
    inner = values[(found.edges == 0).any(axis=1)]
    show_drawing(lambda colors: ego_drawing(found, values, images, words, labeled, colors), title,
                 f"{title}: of the image's {len(inner)} edges {(inner > 0).sum()} are positive and {(inner < 0).sum()} "
                 f"negative, {(inner == 0).sum()} are 0.", key)


def _places(found: Ego) -> dict[int, tuple[float, float]]:
    """Where each is drawn: the image in the middle, its neighbors around it, theirs outside, beside who leads there."""
    middle, count = SIZE / 2, len(found.inner)
    places = {0: (middle, middle)}
    for number, place in enumerate(found.inner.tolist()):
        places[place] = _around(number / count, RING)
    for number in range(count):
        mine = found.outer[found.parents == number].tolist()
        for order, place in enumerate(mine, 1):
            places[place] = _around((number - 0.5 + order / (len(mine) + 1)) / count, FAR)
    return places


def _around(turn: float, radius: float) -> tuple[float, float]:
    angle = 2 * math.pi * turn - math.pi / 2
    return SIZE / 2 + radius * math.cos(angle), SIZE / 2 + radius * math.sin(angle)


def _picture(image: Image.Image, place: tuple[float, float], side: int, word: str, color: str) -> list[str]:
    padded = ImageOps.pad(image, (2 * side, 2 * side), color="white")
    x, y = place[0] - side / 2, place[1] - side / 2
    drawn = [f'<image href="{inline(padded)}" x="{x:.1f}" y="{y:.1f}" width="{side}" height="{side}"/>',
             f'<rect x="{x:.1f}" y="{y:.1f}" width="{side}" height="{side}" fill="none" stroke="{color}" '
             f'stroke-width="{4 if word else 1}"/>']
    if word:
        drawn.append(f'<text x="{place[0]:.1f}" y="{y + side + 13:.1f}" text-anchor="middle" font-size="12">'
                     f"{html.escape(word[:14])}</text>")
    return drawn
