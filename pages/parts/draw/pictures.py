"""Pictures inside the page: images, and small multiples of points.

If the page runs again, Streamlit may remove a served image before the browser has asked for it. An inline image cannot
be lost.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Literal

import numpy as np
import streamlit as st
from PIL import Image, ImageDraw

from udml_core.base.arrays import Array
from udml_core.data.thumbnails import in_whole_pixels, make_thumbnail

from ..shell.run_status import escaped
from .palette import CLASS_COLORS

MOST = 680
"""Pixels of the longer side: twice the largest display size."""
SINGLETON = "#8b9098"
SCALE = 3
"""Factor by which points are drawn larger before the picture is reduced, for smooth edges."""
MARGIN = 8


def inline(image: Image.Image) -> str:
    """Return a data URL of an image: JPEG, or PNG if parts are transparent.

    JPEG has no transparency and would show it in black; through a PNG the page shows, in the light and the dark theme.
    """
    kind, mode = ("png", "RGBA") if image.has_transparency_data else ("jpeg", "RGB")
    buffer = io.BytesIO()
    make_thumbnail(image.convert(mode), MOST, square=False).save(buffer, kind, quality=90)
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}"


def sharp(image: Image.Image) -> Image.Image:
    """Return a small image with whole multiples of its pixels, so that they stay sharp."""
    return in_whole_pixels(image, MOST)


def picture(image: Image.Image, width: int | Literal["stretch"], alt: str, caption: str | None = None) -> None:
    """Show an image; `alt` describes it in words."""
    st.image(inline(image), None if caption is None else escaped(caption), width, alt=alt)


def points_picture(positions: Array, codes: Array, side: int = 260, dot: float = 2.0,
                   parents: Array | None = None) -> Image.Image:
    """Draw points colored by cluster, singletons in gray.

    Args:
        positions: Coordinates, (n, 2).
        codes: The cluster of each point, (n,).
        side: Half the width and height in pixels.
        dot: Radius of a point.
        parents: The next point on each ascent path, (n,), joined by a line.
    """
    low, high = positions.min(axis=0), positions.max(axis=0)
    unit = (positions - low) / np.maximum(high - low, 1e-9)
    room = side - 2 * MARGIN
    centers = SCALE * (MARGIN + unit * [1, -1] * room + [0, room])
    image = Image.new("RGBA", (SCALE * side, SCALE * side), (0, 0, 0, 0))
    pen = ImageDraw.Draw(image)
    sizes = np.bincount(codes)
    palette = CLASS_COLORS["light"]
    if parents is not None:
        for child, parent in enumerate(parents):
            pen.line([tuple(centers[child]), tuple(centers[parent])], fill=SINGLETON, width=SCALE)
    for (x, y), code in zip(centers, codes, strict=True):
        color = palette[code % len(palette)] if sizes[code] > 1 else SINGLETON
        pen.ellipse([x - SCALE * dot, y - SCALE * dot, x + SCALE * dot, y + SCALE * dot], fill=color)
    return image.resize((2 * side, 2 * side), Image.Resampling.LANCZOS)


def multiples(images: Sequence[Image.Image], captions: Sequence[str], alts: Sequence[str], note: str = "") -> None:
    """Show small multiples: pictures side by side with captions.

    Args:
        images: The pictures.
        captions: Markdown below each picture.
        alts: What each picture shows, for screen readers.
        note: Text in a further column, which keeps a few pictures small.
    """
    columns = st.columns(len(images) + bool(note))
    if note:
        columns.pop().caption(note)
    for column, image, caption, alt in zip(columns, images, captions, alts, strict=True):
        with column:
            st.image(inline(image), width="stretch", alt=alt)
            st.markdown(caption)
