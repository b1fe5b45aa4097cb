"""The web server of the app: who is answered, security headers, imports before the first visit, and a line if other
people can reach it.

`udml app` and `make app` run it; `streamlit run app.py` shows the same pages without the headers, and sends each
picture again.
"""

from __future__ import annotations

if __name__ == "__main__":  # Streamlit imports this file by the name serve, and with it what takes seconds.
    import contextlib
    import sys

    import click
    from streamlit.web import cli

    with contextlib.suppress(click.Abort):  # Ctrl+C
        cli.main(["run", __file__, *sys.argv[1:]], standalone_mode=False)
    print("\nUDML Explorer has ended. Runs in progress continue.", file=sys.stderr)
    sys.exit()

import re
import shlex
import sys
import threading
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import config
from streamlit.web.server.server_util import get_url

from udml_core import __version__
from udml_core.base import bounded
from udml_core.base.errors import UserError, counted
from udml_core.base.paths import ASSETS, expose, prefer_package, readable_roots
from udml_core.base.started import browsed_dataset, opens_browser, program_words, start_address

prefer_package("pages", Path(__file__).parent)  # the environment may hold another package of this name

from pages.parts.draw.served import SERVED
from pages.parts.shell.programs import PROGRAMS
from pages.parts.shell.visitors import KnownVisitors
from pages.parts.shell.warming import warm_imports

USUAL_PORT = 8501
"""Streamlit's port; it takes the next free one unless a port is set."""
INDEX = Path(st.__file__).parent / "static" / "index.html"
IMPORTED = re.compile(r'(?:from|import)"\./([^"]+\.js)"')
"""A script that another one imports."""
ADDRESS = '<script>window.__streamlit = {BACKEND_BASE_URL: new URL(".", document.baseURI).href};</script>'
"""Names the server in Streamlit's page: below the address of a page such as /explore, Streamlit would look for it at
/explore first, with two requests that fail at each visit. The server is where the page's scripts come from."""
READERS = ("udml_core.data.catalog", "udml_core.data.given.uploads", "pandas", "pyarrow.parquet", *(
    f"PIL.{name}ImagePlugin" for name in ("Jpeg", "Png", "Gif", "Tiff", "Bmp", "Ppm")))
"""What reads files of users, for `bounded.start`; Pillow would import its formats in each call."""
HEADERS = {
    # Streamlit's own pages need inline styles, compiled scripts and blobs. Nothing comes from another host.
    "Content-Security-Policy": "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; "
                               "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
                               "connect-src 'self' data: blob:; worker-src 'self' blob:; object-src 'none'; "
                               "base-uri 'self'; form-action 'self'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cross-Origin-Opener-Policy": "same-origin",
}


STARTS = ("http.response.start", "websocket.accept", "websocket.http.response.start")
"""Messages that hold the headers of an answer."""
ANSWER = "websocket.http.response"
"""What servers call the ability to refuse a websocket with an answer of its own."""
FAILED = PlainTextResponse("Internal Server Error", 500, HEADERS)
FREQUENT = ("Html", "Selectbox", "BidiComponent", "Button", "ButtonGroup", "Metric", "ImageList", "Checkbox",
            "TextInput", "PageLink", "FileUploader")
"""Streamlit's scripts of elements that most pages show."""


def preloads(static: Path) -> str:
    """Return links that fetch the scripts of frequent elements with the page.

    Otherwise each element shows a gray bar of another height until its script has arrived, and moves what is below it.

    Args:
        static: Streamlit's folder with index.html and the folder static.
    """
    scripts = static / "static" / "js"
    waiting = [path.name for name in FREQUENT for path in scripts.glob(f"{name}.*.js")]
    found: dict[str, None] = {}
    while waiting:
        name = waiting.pop()
        if name not in found and (scripts / name).is_file():
            found[name] = None
            waiting += IMPORTED.findall((scripts / name).read_text(encoding="utf-8"))
    page = (static / "index.html").read_text(encoding="utf-8")
    return "".join(f'<link rel="modulepreload" crossorigin href="./static/js/{name}">\n' for name in found
                   if name not in page)


def flat_address(path: str, base: str) -> str:
    """Return the relative address that an address below a page leads to; empty for the address of a page.

    There Streamlit's page would find none of its scripts and stay white; the flat address shows that there is no page.

    Args:
        path: The path of a visit.
        base: The path below which the server answers.
    """
    parts = [part for part in path.removeprefix(f"/{base.strip('/')}").split("/") if part]
    return "../" * (len(parts) - 1) + quote("-".join(parts), safe="") if len(parts) > 1 else ""


class SecurityHeaders:
    """Add `HEADERS` to every answer, also to accepted and refused connections of a websocket."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = False

        async def send_with_headers(message: Message) -> None:
            nonlocal began
            if message["type"] == "websocket.close" and not began and ANSWER in scope.get("extensions", {}):
                # The server's own answer to a refused handshake has no headers and no reason.
                await PlainTextResponse(message.get("reason") or "Refused.", 403)(scope, receive, send_with_headers)
                return
            if message["type"] in STARTS:
                began = True
                message.setdefault("headers", [])
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        try:
            await self._app(scope, receive, send_with_headers)
        except Exception:
            if scope["type"] == "websocket" and not began and ANSWER in scope.get("extensions", {}):
                await FAILED(scope, receive, send_with_headers)
            raise


async def answer_failure(_request: Request, _error: Exception) -> Response:
    """Return the answer to a request that failed; Starlette sends it past `SecurityHeaders`."""
    return FAILED


class EarlyStyle:
    """Put the app's style, links to scripts and the server's address into Streamlit's page.

    So nothing moves when style and scripts arrive, and no request fails."""

    FRESH = (b"accept-encoding", b"if-none-match", b"if-modified-since", b"range", b"if-range")
    """Headers of a request that would be answered with a compressed page, a part of it, or none."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._page = INDEX.read_bytes()
        style = (ASSETS / "app.css").read_text(encoding="utf-8")
        head = f"<style>\n{style}</style>\n{ADDRESS}\n{preloads(INDEX.parent)}</head>"
        self._styled = self._page.replace(b"</head>", head.encode(), 1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_visit = scope["type"] == "http" and scope["method"] == "GET"
        if not is_visit or "text/html" not in Headers(scope=scope).get("accept", ""):
            await self._app(scope, receive, send)
            return
        start: Message = {}
        body = b""

        async def send_styled(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start" and self._is_page(message):
                start = message
            elif not start:
                await send(message)
            else:
                body += message.get("body", b"")
                if not message.get("more_body"):
                    content = self._styled if body == self._page else body
                    headers = MutableHeaders(scope=start)
                    way_up = flat_address(scope["path"], st.get_option("server.baseUrlPath") or "")
                    if body == self._page and way_up:
                        start["status"], content, headers["location"] = 307, b"", way_up
                    headers["content-length"] = str(len(content))
                    del headers["etag"], headers["last-modified"]
                    await send(start)
                    await send({"type": "http.response.body", "body": content})

        headers = [(name, value) for name, value in scope["headers"] if name not in self.FRESH]
        await self._app({**scope, "headers": headers}, receive, send_styled)

    def _is_page(self, message: Message) -> bool:
        """Return whether an answer may be Streamlit's page: a download must not be held back."""
        return Headers(raw=message["headers"]).get("content-length") == str(len(self._page))


def _start_url() -> str:
    """Return the address of the first page."""
    return get_url(st.get_option("browser.serverAddress")) + "/" + start_address()


def _print_folder() -> None:
    """Print the data set that the app was started with, and how many images it has."""
    from udml_core.data import catalog
    from udml_core.data.sources.embeddings import EmbeddingTable
    from udml_core.data.sources.image_folder import Folder

    with suppress(UserError):  # the page says what is wrong
        source = catalog.find(browsed_dataset())
        noun = "row" if isinstance(source, EmbeddingTable) else "image"
        count = source.count_words() if isinstance(source, Folder) else (
            "" if source.images is None else counted(source.images, noun))
        print(f"{source.name}{', ' * bool(count)}{count}\nTo check the images here: "
              f"{shlex.join([*program_words(), 'audit', source.name])}", file=sys.stderr, flush=True)


@asynccontextmanager
async def start(_app: Any) -> AsyncIterator[None]:
    """Print what an exposed server reads, and import what the pages need in the background."""
    SERVED.is_open = True
    if expose(st.get_option("server.address")):
        roots = "".join(f"\n  {words}: {root}" for words, root in readable_roots().items())
        print(f"Other people can reach this server. Paths named in the browser may lead only to:{roots}\n"
              "It has no login of its own: see docs/sharing.md.", file=sys.stderr, flush=True)
    port = config.get_option("server.port")
    if port != USUAL_PORT and not config.is_manually_set("server.port"):
        print(f"Port {USUAL_PORT} is taken, so the app uses port {port}.", file=sys.stderr, flush=True)
    print(f"UDML Explorer {__version__}: {_start_url()}\nCtrl+C ends it.", file=sys.stderr, flush=True)
    if browsed_dataset():
        threading.Thread(target=_print_folder, daemon=True).start()
    if opens_browser():  # The server listens already. Some browsers return only when they are closed.
        url = _start_url()
        threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
    bounded.start(READERS)
    warm_imports()
    yield
    SERVED.is_open = False
    bounded.stop()


BASE = st.get_option("server.baseUrlPath") or ""
app = st.App("app.py", lifespan=start, routes=[SERVED.route(BASE), *PROGRAMS.routes(BASE)],
             middleware=[Middleware(SecurityHeaders), Middleware(KnownVisitors), Middleware(EarlyStyle)],
             exception_handlers={Exception: answer_failure})
