"""Files that the browser fetches by address, shared by all pages of the server.

serve.py mounts them. Streamlit's own files of a page go when its script runs again, while a browser may still fetch
them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
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
    MOST_LATER = 4096
    """Files that are not made yet; those asked for the longest time ago go."""

    def __init__(self) -> None:
        self.is_open = False
        self._base = ""
        self._files: OrderedDict[str, tuple[bytes, str]] = OrderedDict()
        self._kept: dict[str, tuple[bytes, str]] = {}
        self._later: OrderedDict[str, tuple[Callable[[], bytes], str]] = OrderedDict()
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

    def address_later(self, make: Callable[[], bytes], kind: str, name: str) -> str:
        """Return the address of a file that is made when a browser fetches it, so that no page waits for it.

        Args:
            make: Makes the file's content, in another thread.
            kind: Its media type.
            name: A name that changes with the content, of letters, digits and hyphens.
        """
        with self._lock:
            self._later[name] = make, kind
            self._later.move_to_end(name)
            while len(self._later) > self.MOST_LATER:
                self._later.popitem(last=False)
        return self._base + name

    def _made(self, name: str) -> tuple[bytes, str] | None:
        """Make and keep a file; None if none of this name can be made."""
        make, kind = self._later.get(name, (None, ""))
        if make is None:
            return None
        content = make()
        self.address(content, kind, name)
        return content, kind

    async def _answer(self, request: Request) -> Response:
        name = request.path_params["name"]
        found = self._files.get(name) or self._kept.get(name) or await run_in_threadpool(self._made, name)
        content, kind = found or (None, None)
        if content is None:
            return Response("This file is not kept any more. Load the page again.", 404, media_type="text/plain")
        return Response(content, media_type=kind, headers=FOREVER)


SERVED = ServedFiles()
