"""Messages to the browser components.

Large parts are fetched once; changing parts travel inside the message.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array
from udml_core.base.paths import ASSETS

from .served import SERVED

Part = dict[str, Any] | None
"""The type of an array, and where the browser finds it: {type, url}, or {type, at, length} within the message."""
MOST_INSIDE = 2**20
"""Bytes of an array above which it is fetched once even if it changes often: a message travels at every rerun."""


class Message:
    """The bytes sent to one component (see assets/common.js).

    A message consists of a header and the arrays that travel inside.

    Args:
        self_contained: Whether all parts travel inside, for a file that must work without a server.
    """

    def __init__(self, self_contained: bool = False) -> None:
        self._self_contained = self_contained or not SERVED.is_open
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
        if self._self_contained:
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
        if self._self_contained:
            return f"data:{kind};base64,{base64.b64encode(content).decode()}"
        return SERVED.address(content, kind, name or _digest(content))

    def pack(self, header: dict[str, Any]) -> bytes:
        """Return the length of the header in 4 bytes, the header as JSON, and the parts."""
        head = json.dumps(header).encode()
        head += b" " * (-len(head) % 8)
        return b"".join([len(head).to_bytes(4, "little"), head, *self._parts])


LOADER = 'const { default: draw } = await import(new URL("%s", location.href));\nexport default draw;\n'
"""A module that fetches a component's script once. Streamlit sends a component's module with every change of its data:
of the 183 kB that a slider's step sent, 152 kB were scripts."""
PARTS = {"scatter": ("palette", "points", "ink", "tiles", "names", "overlay", "legend"),
         "instrument": ("palette", "points", "ink")}
"""Scripts that a component's script depends on; they are joined into one module, as there is no build step."""


def _digest(content: bytes) -> str:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()


def script_and_style(name: str) -> tuple[str, str]:
    """Return a component's JavaScript, with the scripts that it needs, and its CSS."""
    scripts = (f"{part}.js" for part in ("common", *PARTS.get(name, ()), name))
    return ("".join((ASSETS / script).read_text(encoding="utf-8") for script in scripts),
            (ASSETS / f"{name}.css").read_text(encoding="utf-8"))


@st.cache_resource(show_spinner=False)
def component(name: str, html: str) -> Any:
    """Register the component of assets/NAME.js and assets/NAME.css."""
    script, style = script_and_style(name)
    if SERVED.is_open:
        script = LOADER % SERVED.address(script.encode(), "text/javascript", f"{name}-{_digest(script.encode())}", True)
    return st.components.v2.component(f"udml_{name}", html=html, css=style, js=script)


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
