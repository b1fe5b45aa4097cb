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
    """Return a data URL of an image as JPEG."""
    buffer = io.BytesIO()
    make_thumbnail(image.convert("RGB"), MOST, square=False).save(buffer, "JPEG", quality=90)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def picture(image: Image.Image, width: int | Literal["stretch"], alt: str, caption: str | None = None) -> None:
    """Show an image; `alt` describes it in words."""
    st.image(inline(image), caption, width, alt=alt)
