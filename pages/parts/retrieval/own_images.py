"""Own images: images from outside the data set, from the clipboard or from files."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from typing import Literal

import streamlit as st
from PIL import Image

from udml_core.base.arrays import Array
from udml_core.data.dataset import UserImage
from udml_core.runs import Run
from udml_core.runs.search import Retrieval

from ..draw.transport import component
from ..shell.run_hash import RUN_HASH
from ..shell.user_errors import show_user_errors

Side = Literal["add", "subtract"]
BOX = """<div class="box" tabindex="0" role="group" aria-label="Add your own images">
<button type="button">Choose images</button><span>or drop, or paste (Ctrl+V)</span>
<input type="file" accept="image/*" multiple tabindex="-1" aria-label="Your own images">
<span role="status" aria-live="polite"></span></div>
"""
LARGEST = 1024
"""Pixels of the longer side; larger images are reduced."""


@dataclass(frozen=True)
class OwnImage:
    """An image from outside the data set.

    Attributes:
        digest: Digest of the file.
        source: The file, which each embedding reads at the size that it needs.
        image: The image as it is shown.
        side: The side of the query that the image is on.
    """

    digest: str
    source: UserImage
    image: Image.Image
    side: Side

    @property
    def name(self) -> str:
        """Name of the file."""
        return self.source.name


def receive_images(key: str, most: int, side: Side = "add") -> list[OwnImage]:
    """Show a box for own images, with an error for each unreadable file.

    Returns:
        The images received just now.
    """
    received = []
    for name, content in pasted(key, most):
        with show_user_errors():
            received.append(own_image(UserImage(content, name), side))
    return received


def own_image(source: UserImage, side: Side) -> OwnImage:
    """Return an own image by the content of its file.

    Raises:
        UserError: The content is not an image.
    """
    assert isinstance(source.source, bytes), "a browser sends contents"
    image = source.reduced(LARGEST // 4)  # a JPEG keeps at least twice as many pixels
    image.thumbnail((LARGEST, LARGEST))
    return OwnImage(hashlib.sha1(source.source, usedforsecurity=False).hexdigest(), source, image, side)


def embed_image(retrieval: Retrieval, image: OwnImage, which: str) -> Array:
    """Return the embedding (l,) of an own image, computed once."""
    return _embed(retrieval.run, image.digest, which, retrieval, image)


@st.cache_data(max_entries=200, show_spinner="Embedding …", hash_funcs=RUN_HASH)
def _embed(run: Run, digest: str, which: str, _retrieval: Retrieval, _image: OwnImage) -> Array:  # noqa: ARG001
    return _retrieval.embed(_image.source, which)


def pasted(key: str, most: int) -> list[tuple[str, bytes]]:
    """Show a box that accepts images from the clipboard, by drag and drop, or as files.

    Args:
        key: The widget's key.
        most: Largest number of images accepted at a time.

    Returns:
        Names and contents of the image files that were added just now; the next run of the page returns none.
    """
    result = component("paste", BOX)(data={"most": most}, key=key, on_brought_change=lambda: None)
    return [(file["name"], base64.b64decode(file["data"])) for file in result.brought or ()]
