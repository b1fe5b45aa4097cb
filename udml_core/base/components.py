"""Browser components: their scripts, and the messages to them.

The app shows them on its pages, exported files without a server, and notebooks as widgets.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from udml_core.base.arrays import Array
from udml_core.base.paths import ASSETS

Part = dict[str, Any] | None
"""The type of an array, and where the browser finds it: {type, url}, or {type, at, length} within the message."""
Address = Callable[[bytes, str, str], str]
"""A function of a file's content, media type and name, which keeps the file and returns where the browser finds it."""
MOST_INSIDE = 2**20
"""Bytes of an array above which it is fetched once even if it changes often: a message travels at every change."""
PARTS = {"scatter": ("palette", "points", "ink", "fingers", "tiles", "names", "overlay", "legend", "room"),
         "instrument": ("palette", "points", "ink", "fingers")}
"""Scripts that a component's script depends on; they are joined into one module, as there is no build step."""
GALLERY_HTML = '<div class="grid" role="group"></div>\n'
MAP_HTML = """<div class="scatter" role="group"><div class="layout">
<div class="stage"><canvas class="points" role="img"></canvas>
<canvas class="overlay" tabindex="0" role="application" aria-roledescription="map"
  aria-label="Map. Arrow keys move, plus and minus zoom, 0 shows all points, Enter opens the image in the middle, Q
  searches with it.">
</canvas>
<div class="tools" role="toolbar" aria-label="Map tools"></div>
<div class="tip" hidden><canvas width="112" height="112"></canvas><div></div></div></div>
<div class="side"><div class="summary" role="status" aria-live="polite"></div>
<div class="legend" role="group" aria-label="Legend"></div></div>
</div></div>
"""


class Message:
    """The bytes sent to one component (see assets/common.js).

    A message consists of a header and the arrays that travel inside.

    Args:
        address: Keeps a large or lasting part, which the browser fetches once; None if all parts travel inside.
    """

    def __init__(self, address: Address | None = None) -> None:
        self._address = address
        self._parts: list[bytes] = []
        self._length = 0

    def inside(self, array: Array | None) -> Part:
        """Add an array that changes often to this message."""
        if array is None:
            return None
        content = np.ascontiguousarray(array).tobytes()
        part = {"type": array.dtype.name, "at": self._length, "length": len(content)}
        self._parts.append(content)
        self._length += len(content)
        return part

    def once(self, array: Array | None) -> Part:
        """Refer to an array that rarely changes, which the browser fetches only once."""
        if array is None:
            return None
        if self._address is None:
            return self.inside(array)
        content = np.ascontiguousarray(array).tobytes()
        return {"type": array.dtype.name, "url": self.url(content, "application/octet-stream")}

    def part(self, array: Array) -> Part:
        """Add an array that changes often to this message, or refer to it if it is large."""
        return self.once(array) if array.nbytes > MOST_INSIDE else self.inside(array)

    def url(self, content: bytes, kind: str, name: str = "") -> str:
        """Return the address at which the browser can fetch a file.

        Args:
            content: The file's content.
            kind: Its media type.
            name: A name that changes with the content; computed from the content if empty, which takes time.
        """
        if self._address is None:
            return f"data:{kind};base64,{base64.b64encode(content).decode()}"
        return self._address(content, kind, name or digest(content))

    def pack(self, header: dict[str, Any]) -> bytes:
        """Return the length of the header in 4 bytes, the header as JSON, and the parts."""
        head = json.dumps(header).encode()
        head += b" " * (-len(head) % 8)
        return b"".join([len(head).to_bytes(4, "little"), head, *self._parts])


def digest(content: bytes) -> str:
    """Return a name that changes with a file's content."""
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()


def script_and_style(name: str) -> tuple[str, str]:
    """Return a component's JavaScript, with the scripts that it needs, and its CSS."""
    scripts = (f"{part}.js" for part in ("common", *PARTS.get(name, ()), name))
    return ("".join((ASSETS / script).read_text(encoding="utf-8") for script in scripts),
            (ASSETS / f"{name}.css").read_text(encoding="utf-8"))


def plain_script(script: str) -> str:
    """Return a component's script without its export, so that other code in the same module can call it."""
    return script.replace("export default function", "function")


def unpack_mask(mask: str, count: int) -> Array:
    """Return the positions set in a bitmask that a component sent in base64."""
    if not mask:
        return np.zeros(0, dtype=np.int64)
    bits = np.unpackbits(np.frombuffer(base64.b64decode(mask), dtype=np.uint8), count=count, bitorder="little")
    return np.flatnonzero(bits)


def pack_mask(positions: Array, count: int) -> Array | None:
    """Return positions among `count` entries as a bitmask; None without positions."""
    if not len(positions):
        return None
    flags = np.zeros(count, dtype=np.uint8)
    flags[positions] = 1
    return np.packbits(flags, bitorder="little")
