"""A box that takes images from the clipboard, by drag and drop, or as files."""

from __future__ import annotations

import base64

from pages.parts.components.transport import component

HTML = """<div class="box" tabindex="0" role="group" aria-label="Bring images of your own">
<button type="button">Choose images</button><span>or drop them here, or paste one with Ctrl+V</span>
<input type="file" accept="image/*" multiple tabindex="-1" aria-label="Images of your own">
<span role="status" aria-live="polite"></span></div>
"""


def pasted(key: str, most: int) -> list[tuple[str, bytes]]:
    """Names and contents of the image files that were just brought, at most so many; a run later there are none."""
    result = component("paste", HTML)(data={"most": most}, key=key, on_brought_change=lambda: None)
    return [(one["name"], base64.b64decode(one["data"])) for one in result.brought or ()]
