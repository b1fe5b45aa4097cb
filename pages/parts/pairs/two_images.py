"""Two images side by side."""

from __future__ import annotations

import streamlit as st
from PIL import Image, ImageOps

from udml_core.data.dataset import Dataset

from ..draw.pictures import picture

SIDE = 340


def two_images(dataset: Dataset, pair: tuple[int, int], with_classes: bool) -> None:
    """Show the two images of a pair as large as the page allows.

    Args:
        dataset: The data set.
        pair: Indices of the images.
        with_classes: Whether to name the classes, or only the indices.
    """
    with st.container(horizontal=True, gap="small", width=2 * SIDE, key="two-images"):
        for word, index in zip(("First", "Second"), pair, strict=True):
            name = dataset.caption(index) if with_classes else f"image {index}"
            image = ImageOps.pad(dataset.images[index], (SIDE, SIDE), Image.Resampling.LANCZOS, color="white")
            with st.container(width="stretch"):
                picture(image, "stretch", f"{word} image of the pair: {name}", name)
