"""Single images, inside the page itself: one that Streamlit serves is gone when the page runs again before the browser
has asked for it."""

from __future__ import annotations

import base64
import io
from typing import Literal

import streamlit as st
from PIL import Image

from udml_core.data.thumbnails import make_thumbnail

MOST = 680
"""Pixels of the longer side, twice what any is shown at."""


def inline(image: Image.Image) -> str:
    """An address that holds the image."""
    buffer = io.BytesIO()
    make_thumbnail(image.convert("RGB"), MOST, square=False).save(buffer, "JPEG", quality=90)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def picture(image: Image.Image, width: int | Literal["stretch"], alt: str, caption: str | None = None) -> None:
    """Show an image; alt says in words what is to be seen."""
    st.image(inline(image), caption, width, alt=alt)
