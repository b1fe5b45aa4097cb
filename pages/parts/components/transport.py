"""How our components get what they draw: large parts are fetched once, what changes travels inside the message."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import streamlit as st
from streamlit import runtime

from udml_core.arrays import Array
from udml_core.paths import ASSETS

Part = dict[str, Any] | None
"""Where the browser finds an array: {url}, or {at, length} within the message."""


class Message:
    """The bytes that one component is sent: a header, and the arrays that travel inside (see assets/common.js).

    alone: everything travels inside, for a file that must work without a server.
    """

    def __init__(self, alone: bool = False) -> None:
        self._alone = alone or not runtime.exists()
        self._parts: list[bytes] = []
        self._length = 0

    def inside(self, array: Array | None) -> Part:
        """An array that changes often, as a part of this message."""
        if array is None:
            return None
        content = np.ascontiguousarray(array).tobytes()
        place = {"at": self._length, "length": len(content)}
        self._parts.append(content)
        self._length += len(content)
        return place

    def once(self, array: Array | None) -> Part:
        """An array that stays, fetched by the browser once however often the message is sent."""
        if array is None:
            return None
        if self._alone:
            return self.inside(array)
        return {"url": self.url(np.ascontiguousarray(array).tobytes(), "application/octet-stream")}

    def url(self, content: bytes, kind: str, name: str = "") -> str:
        """Where the browser can fetch a file's content; a name that stands for it saves looking at it again."""
        if self._alone:
            return f"data:{kind};base64,{base64.b64encode(content).decode()}"
        base = str(st.get_option("server.baseUrlPath")).strip("/")
        url = _served().url(content, kind, name or hashlib.sha1(content, usedforsecurity=False).hexdigest())
        return f"/{base}{url}" if base else url

    def packed(self, header: dict[str, Any]) -> bytes:
        """4 bytes length of the header, the header as JSON, the parts."""
        head = json.dumps(header).encode()
        head += b" " * (-len(head) % 8)
        return b"".join([len(head).to_bytes(4, "little"), head, *self._parts])


THREAD = "udml-served"


class _Served:
    """Content by its address, kept for all pages of this server up to a number of bytes, the longest unused first out.

    Streamlit drops a page's files as soon as its script runs anew, and a browser that fetches a moment later gets a
    404 that nothing mends. What is added by a thread that belongs to no session stays until we put an empty file in
    its place.
    """

    MOST = 512 * 1024 ** 2

    def __init__(self) -> None:
        self._files: OrderedDict[str, tuple[str, int]] = OrderedDict()
        self._bytes = 0
        self._alone = threading.Lock()
        self._sessionless = ThreadPoolExecutor(1, THREAD)
        # Streamlit warns of a thread without a session; here that is the point.
        logging.getLogger("streamlit.runtime.scriptrunner_utils.script_run_context").addFilter(
            lambda record: THREAD not in (record.threadName or ""))

    def url(self, content: bytes, kind: str, name: str) -> str:
        with self._alone:
            if name not in self._files:
                self._files[name] = self._add(content, kind, name), len(content)
                self._bytes += len(content)
            self._files.move_to_end(name)
            while self._bytes > self.MOST and len(self._files) > 1:
                oldest, (_, length) = self._files.popitem(last=False)
                self._add(b"", kind, oldest)
                self._bytes -= length
            return self._files[name][0]

    def _add(self, content: bytes, kind: str, name: str) -> str:
        files = runtime.get_instance().media_file_mgr
        return str(self._sessionless.submit(files.add, content, kind, name, file_name=name).result())


@st.cache_resource(show_spinner=False)
def _served() -> _Served:
    return _Served()


PARTS = {"scatter": ("points", "overlay", "legend")}
"""Scripts that a component's own script builds on: without a build step, one text is one module."""


def script_and_style(name: str) -> tuple[str, str]:
    """The text of a component's module, with what all share and its parts before it, and its CSS."""
    scripts = (f"{part}.js" for part in ("common", *PARTS.get(name, ()), name))
    return ("".join((ASSETS / script).read_text(encoding="utf-8") for script in scripts),
            (ASSETS / f"{name}.css").read_text(encoding="utf-8"))


@st.cache_resource(show_spinner=False)
def component(name: str, html: str) -> Any:
    """A component of assets/NAME.js and NAME.css."""
    script, style = script_and_style(name)
    return st.components.v2.component(f"udml_{name}", html=html, css=style, js=script)


def unpacked(mask: str, count: int) -> Array:
    """Positions that are set in a bitmask that a component sent."""
    if not mask:
        return np.zeros(0, dtype=np.int64)
    bits = np.unpackbits(np.frombuffer(base64.b64decode(mask), dtype=np.uint8), count=count, bitorder="little")
    return np.flatnonzero(bits)


def packed_mask(positions: Array, count: int) -> Array | None:
    """The bitmask (bytes) of positions, None of none."""
    if not len(positions):
        return None
    flags = np.zeros(count, dtype=np.uint8)
    flags[positions] = 1
    return np.packbits(flags, bitorder="little")
