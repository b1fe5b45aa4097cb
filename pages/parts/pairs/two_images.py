"""Two images side by side, large."""

from __future__ import annotations

import streamlit as st
from PIL import Image, ImageOps

from pages.parts.kit.pictures import picture
from udml_core.data.dataset import Dataset

SIDE = 340


def two_images(dataset: Dataset, pair: tuple[int, int], named: bool) -> None:
    """Both images as large as there is room; with their classes, or only with their numbers."""
    with st.container(horizontal=True, gap="small", width=2 * SIDE):
        for word, index in zip(("First", "Second"), pair, strict=True):
            name = dataset.caption(index) if named else f"image {index}"
            image = ImageOps.pad(dataset.images[index], (SIDE, SIDE), Image.Resampling.LANCZOS, color="white")
            with st.container(width="stretch"):
                picture(image, "stretch", f"{word} of the pair: {name}", name)
