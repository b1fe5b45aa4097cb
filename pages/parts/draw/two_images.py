"""Two images side by side, and the buttons and keys that answer whether they are the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st
from PIL import Image, ImageOps

from udml_core.data.dataset import Dataset
from udml_core.data.sources.versions import image_to_draw
from udml_core.data.thumbnails import enlarge_tiny

from .pictures import picture

SIDE = 340
LEAST_LETTERS = 3
"""A word of a class's name with fewer letters may be in a file name by chance."""


@dataclass(frozen=True)
class Answering:
    """What the buttons below two images do.

    Attributes:
        pair: Indices of the images.
        answer: Stores whether the images are the same.
        skip: Skips the pair.
        skip_key: The key that skips.
    """

    pair: tuple[int, int]
    answer: Callable[[bool], None]
    skip: Callable[[], None]
    skip_key: str


def two_images(dataset: Dataset, pair: tuple[int, int], with_names: bool) -> None:
    """Show the two images of a pair as large as the page allows.

    Args:
        dataset: The data set.
        pair: Indices of the images.
        with_names: Whether to name files and classes, which would influence an answer.
    """
    with st.container(horizontal=True, gap="small", width=2 * SIDE, key="two-images"):
        for word, index in zip(("First", "Second"), pair, strict=True):
            name = f": {dataset.caption(index)}" if with_names else ""
            shown = enlarge_tiny(image_to_draw(dataset.images, index))
            image = ImageOps.pad(shown, (SIDE, SIDE), Image.Resampling.LANCZOS, color="white")
            with st.container(width="stretch"):
                picture(image, "stretch", f"{word} image of the pair{name}", name.removeprefix(": "))


def unclassed_name(dataset: Dataset, index: int) -> str:
    """Return the file name of an image; its number if the file name tells its class."""
    if dataset.labels is None:
        return dataset.names[index]
    file = dataset.names[index].replace("\\", "/").rpartition("/")[2]
    of_class = dataset.class_names[int(dataset.labels[index])].lower()
    words = [word for word in re.findall(r"[^\W\d_]+", of_class) if len(word) >= LEAST_LETTERS]
    parts = re.split(r"[\W_]+", file.lower())
    tells = any(word in file.lower() for word in words) or of_class in parts
    return f"image {index}" if tells else file


def answer_buttons(prefix: str, answering: Answering | None, undo: Callable[[], None], can_undo: bool) -> None:
    """Show the buttons that answer, skip and undo, each with its key.

    Args:
        prefix: Prefix of the buttons' keys.
        answering: What they do; None without a pair, when only the last answer can be undone.
        undo: Reverts the last answer.
        can_undo: Whether there is an answer to revert.
    """
    with st.container(horizontal=True):
        if answering is not None:
            # A key of its own for each pair: a late press must not answer a pair that is not shown yet.
            shown = "-".join(map(str, answering.pair))
            for label, icon, key, same in (("Same", "check", "S", True), ("Different", "close", "D", False)):
                st.button(label, icon=f":material/{icon}:", key=f"{prefix}-{key}-{shown}", shortcut=key, type="primary",
                          on_click=answering.answer, args=(same,))
            st.button("Skip", icon=":material/skip_next:", key=f"{prefix}-{answering.skip_key}-{shown}",
                      shortcut=answering.skip_key, on_click=answering.skip)
        st.button("Undo", icon=":material/undo:", key=f"{prefix}-U", shortcut="U", on_click=undo,
                  disabled=not can_undo)
