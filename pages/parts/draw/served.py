"""Files that the browser fetches by address, shared by all pages of the server.

serve.py mounts them. Streamlit's own files of a page go when its script runs again, while a browser may still fetch
them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

FOREVER = {"Cache-Control": "private, max-age=31536000, immutable"}
"""A name changes with its content, so the browser never asks again."""


class ServedFiles:
    """Files by name. When they exceed `MOST` bytes, those unused for the longest time go.

    Attributes:
        is_open: Whether a server answers for them, which sets it when it starts; until then files travel in messages.
    """

    MOST = 512 * 1024 ** 2

    def __init__(self) -> None:
        self.is_open = False
        self._base = ""
        self._files: OrderedDict[str, tuple[bytes, str]] = OrderedDict()
        self._kept: dict[str, tuple[bytes, str]] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def route(self, base: str) -> Route:
        """Return the route that answers for the files, below the path at which the app is reached."""
        self._base = f"/{base.strip('/')}".rstrip("/") + "/served/"
        return Route(self._base + "{name}", self._answer)

    def address(self, content: bytes, kind: str, name: str, is_kept: bool = False) -> str:
        """Keep a file, and return its address.

        Args:
            content: The file's content.
            kind: Its media type.
            name: A name that changes with the content, of letters, digits and hyphens.
            is_kept: Whether the file stays as long as the server, and does not count.
        """
        if is_kept:
            self._kept[name] = content, kind
            return self._base + name
        with self._lock:
            if name not in self._files:
                self._files[name] = content, kind
                self._bytes += len(content)
            self._files.move_to_end(name)
            while self._bytes > self.MOST and len(self._files) > 1:
                _, (oldest, _) = self._files.popitem(last=False)
                self._bytes -= len(oldest)
        return self._base + name

    async def _answer(self, request: Request) -> Response:
        name = request.path_params["name"]
        content, kind = self._files.get(name) or self._kept.get(name) or (None, None)
        if content is None:
            return Response("This file is not kept any more. Load the page again.", 404, media_type="text/plain")
        return Response(content, media_type=kind, headers=FOREVER)


SERVED = ServedFiles()
