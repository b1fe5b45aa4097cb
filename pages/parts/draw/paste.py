"""A box that accepts images from the clipboard, by drag and drop, or as files."""

from __future__ import annotations

import base64

from .transport import component

HTML = """<div class="box" tabindex="0" role="group" aria-label="Add your own images">
<button type="button">Choose images</button><span>or drop them here, or paste an image with Ctrl+V</span>
<input type="file" accept="image/*" multiple tabindex="-1" aria-label="Your own images">
<span role="status" aria-live="polite"></span></div>
"""


def pasted(key: str, most: int) -> list[tuple[str, bytes]]:
    """Show the box.

    Args:
        key: The widget's key.
        most: Largest number of images accepted at a time.

    Returns:
        Names and contents of the image files that were added just now; the next run of the page returns none.
    """
    result = component("paste", HTML)(data={"most": most}, key=key, on_brought_change=lambda: None)
    return [(file["name"], base64.b64decode(file["data"])) for file in result.brought or ()]
