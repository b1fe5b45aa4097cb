"""The web server of the app: security headers on every answer, and a line at the start if other people can reach it.

`make app` runs it; `streamlit run app.py` shows the same pages without the headers.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import streamlit as st
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from udml_core.paths import expose, readable_roots

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


class SecurityHeaders:
    """Add `HEADERS` to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await self._app(scope, receive, send_with_headers)


@asynccontextmanager
async def announce(_app: Any) -> AsyncIterator[None]:
    """Print at the start what an exposed server reads."""
    if expose(st.get_option("server.address")):
        roots = "".join(f"\n  {words}: {root}" for words, root in readable_roots().items())
        print(f"Other people can reach this server. Paths named in the browser may lead only to:{roots}\n"
              "It has no login of its own: see \"Share a server\" in README.md.", file=sys.stderr, flush=True)
    yield


app = st.App("app.py", lifespan=announce, middleware=[Middleware(SecurityHeaders)])
