"""Single images inside the page.

If the page runs again, Streamlit may remove a served image before the browser has asked for it. An inline image cannot
be lost.
"""

from __future__ import annotations

import base64
import io
from typing import Literal

import streamlit as st
from PIL import Image

from udml_core.data.thumbnails import make_thumbnail

MOST = 680
"""Pixels of the longer side: twice the largest display size."""


def inline(image: Image.Image) -> str:
    """Return a data URL of an image: JPEG, or PNG if parts are transparent.

    JPEG has no transparency and would show it in black; through a PNG the page shows, in the light and the dark theme.
    """
    kind, mode = ("png", "RGBA") if image.has_transparency_data else ("jpeg", "RGB")
    buffer = io.BytesIO()
    make_thumbnail(image.convert(mode), MOST, square=False).save(buffer, kind, quality=90)
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}"


def picture(image: Image.Image, width: int | Literal["stretch"], alt: str, caption: str | None = None) -> None:
    """Show an image; `alt` describes it in words."""
    st.image(inline(image), caption, width, alt=alt)
