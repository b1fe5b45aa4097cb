"""A slider for the size of images, which acts in the browser alone."""

from __future__ import annotations

from .transport import component

HTML = """<label class="size">Image size
<input type="range"></label>
"""
SMALLEST, LARGEST = 56, 224
"""Least and largest width of an image in pixels."""


def image_size(key: str, value: int) -> None:
    """Show the slider; it sets the width of all resizable galleries of the page.

    Args:
        key: The widget's key.
        value: Width in pixels until the user chooses another.
    """
    component("size", HTML)(data={"low": SMALLEST, "high": LARGEST, "value": value}, key=key, width="content")
