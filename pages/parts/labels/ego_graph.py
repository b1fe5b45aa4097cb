"""A drawing of the graph around an image.

It shows the image's neighbors, their neighbors, and the affinities of the edges.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

from PIL import Image, ImageOps

from udml_core.base.arrays import Array
from udml_core.exploration.affinity import EgoGraph

from ..draw.drawing import LIGHT, Colors, show_drawing, svg
from ..draw.figures import GRAY
from ..draw.pictures import inline

SIZE, INNER_RADIUS, OUTER_RADIUS, SIDE, CENTER_SIDE, MOST_WIDTH = 400, 112, 178, 40, 56, 7.0
LONGEST_NAME = 14


def ego_drawing(ego: EgoGraph, values: Array, images: Sequence[Image.Image], names: Sequence[str], labeled: Array,
                colors: Colors = LIGHT) -> str:
    """Return the SVG of an image, its neighbors and their neighbors.

    Args:
        ego: The nodes and edges.
        values: Affinities of the edges, (e,): solid above 0, dashed below 0; the width shows the magnitude.
        images: The image and its neighbors, (1 + k).
        names: Classes of the image and its neighbors, empty without a label, (1 + k).
        labeled: Whether each node of the part has a label, (m,). A labeled outer node is drawn as a square.
        colors: Ink, and the colors of positive edges, negative edges and labels.
    """
    ink, _, _, label_color = colors
    positions = _positions(ego)
    parts = _edges(ego, values, positions, colors)
    for node in ego.outer.tolist():
        x, y = positions[node]
        parts.append(f'<rect x="{x - 5:.1f}" y="{y - 5:.1f}" width="10" height="10" fill="{label_color}"/>'
                     if labeled[node] else f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{GRAY}"/>')
    for node, image, name in zip([0, *ego.inner.tolist()], images, names, strict=True):
        parts += _thumbnail(image, positions[node], CENTER_SIDE if node == 0 else SIDE, name,
                            label_color if name else ink)
    return svg(SIZE, SIZE, ink, parts)


def show_ego(ego: EgoGraph, values: Array, images: Sequence[Image.Image], names: Sequence[str], labeled: Array,
             title: str, key: str) -> None:
    """Show the drawing of `ego_drawing`, under a title, with a download button."""
    inner = values[(ego.edges == 0).any(axis=1)]
    show_drawing(lambda colors: ego_drawing(ego, values, images, names, labeled, colors), title,
                 f"{title}: of the image's {len(inner)} edges {(inner > 0).sum()} are positive, {(inner < 0).sum()} "
                 f"are negative and {(inner == 0).sum()} are 0.", key)


def _edges(ego: EgoGraph, values: Array, positions: dict[int, tuple[float, float]], colors: Colors) -> list[str]:
    _, positive, negative, _ = colors
    most = max(float(abs(values).max(initial=0)), 1e-12)
    parts = []
    for (start, end), value in zip(ego.edges.tolist(), values.tolist(), strict=True):
        is_inner = end in ego.inner or end == 0
        width = 0.6 + (MOST_WIDTH if is_inner else MOST_WIDTH / 2) * abs(value) / most
        color, dash = (GRAY, "") if value == 0 else (positive, "") if value > 0 else (
            negative, ' stroke-dasharray="5 4"')
        (x0, y0), (x1, y1) = positions[start], positions[end]
        parts.append(f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" stroke="{color}" '
                     f'stroke-width="{width:.2f}" stroke-opacity="{0.9 if is_inner else 0.45}"{dash}/>')
    return parts


def _positions(ego: EgoGraph) -> dict[int, tuple[float, float]]:
    """Return where each node is drawn.

    The image is in the center, its neighbors are around it, and their neighbors are near their parents.
    """
    count = len(ego.inner)
    positions = {0: (SIZE / 2, SIZE / 2)}
    for number, node in enumerate(ego.inner.tolist()):
        positions[node] = _on_circle(number / count, INNER_RADIUS)
    for number in range(count):
        children = ego.outer[ego.parents == number].tolist()
        for order, node in enumerate(children, 1):
            positions[node] = _on_circle((number - 0.5 + order / (len(children) + 1)) / count, OUTER_RADIUS)
    return positions


def _on_circle(turn: float, radius: float) -> tuple[float, float]:
    angle = 2 * math.pi * turn - math.pi / 2
    return SIZE / 2 + radius * math.cos(angle), SIZE / 2 + radius * math.sin(angle)


def _thumbnail(image: Image.Image, position: tuple[float, float], side: int, name: str, color: str) -> list[str]:
    padded = ImageOps.pad(image, (2 * side, 2 * side), color="white")
    x, y = position[0] - side / 2, position[1] - side / 2
    parts = [f'<image href="{inline(padded)}" x="{x:.1f}" y="{y:.1f}" width="{side}" height="{side}"/>',
             f'<rect x="{x:.1f}" y="{y:.1f}" width="{side}" height="{side}" fill="none" stroke="{color}" '
             f'stroke-width="{4 if name else 1}"/>']
    if name:
        parts.append(f'<text x="{position[0]:.1f}" y="{y + side + 13:.1f}" text-anchor="middle" font-size="12">'
                     f"{html.escape(name[:LONGEST_NAME])}</text>")
    return parts
