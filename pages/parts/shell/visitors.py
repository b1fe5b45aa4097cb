"""Which requests the server answers: from its own pages and from programs, under a name that it knows.

A page of another site can make its reader's browser send requests here. It cannot choose the headers Origin and Host,
which say where a request comes from and under which name the browser looked for this server.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Set
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

import streamlit as st
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from udml_core.base.paths import is_exposed

from .programs import refused, start_of

HOSTS = "UDML_HOSTS"
METRICS = "/_stcore/metrics"
"""How Streamlit describes its sessions to monitoring programs."""


def further_hosts() -> frozenset[str]:
    """Return the names in UDML_HOSTS, divided by spaces or commas.

    Each is the name of a proxy, with its port unless it is a usual one, or a pattern such as `*.example.org`.
    """
    return frozenset(os.environ.get(HOSTS, "").lower().replace(",", " ").split())


def own_hosts() -> frozenset[str]:
    """Return the names of this computer under which the server may be asked for."""
    names = ("localhost", st.get_option("server.address"), st.get_option("browser.serverAddress"), socket.gethostname())
    return frozenset(name.lower() for name in names if name)


def refusal(headers: Headers, own: Set[str], further: Set[str]) -> str:
    """Say why a request is refused; empty if it is answered.

    Args:
        headers: The headers of the request. Programs send no Origin, and need none.
        own: The result of `own_hosts`; any address in numbers is allowed as well, because a name of another site can be
            made to lead to this computer (DNS rebinding), but not a number.
        further: The result of `further_hosts`. Their pages are answered even if the proxy asks under another name, but
            not pages of the same name at another port.
    """
    hosts = [_host(f"//{host}") for host in headers.getlist("host")]
    names = {pattern.partition(":")[0] for pattern in further}
    for name, _ in hosts:
        if not (_is_number(name) or _is_one_of(name, own) or _is_one_of(name, names)):
            return (f"This server does not know the name {name[:200]!r}. Allow the name where the server is started: "
                    f"set {HOSTS} to it.")
    for origin in headers.getlist("origin"):
        source = _host(origin) if origin.lower().startswith(("http://", "https://")) else ("", None)
        if source not in hosts and not _is_one_of(_with_port(*source), further):
            return f"This request comes from a page of another server, {origin[:200]!r}, and is not answered."
    if headers.get("sec-fetch-site") in ("cross-site", "same-site") and headers.get("sec-fetch-mode") != "navigate":
        return "This request comes from a page of another server and is not answered."
    return ""


class KnownVisitors:
    """Refuse requests from other sites and for unknown names before Streamlit sees them.

    Streamlit would ask an outside service for this computer's address to judge such a request, and answer no other one
    meanwhile. For the same reason Host becomes what Origin names where a proxy asks under another name.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._own, self._further = own_hosts(), further_hosts()
        self._programs = start_of(st.get_option("server.baseUrlPath") or "")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        reason = refusal(Headers(scope=scope), self._own, self._further)
        if not reason and (is_exposed() or self._further) and scope["path"].rstrip("/").endswith(METRICS):
            reason = "The measures of a shared server are not shown."
        if reason and scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": reason[:100]})  # refused with status 403
        elif reason:
            is_program = f"{scope['path']}/".startswith(f"{self._programs}/")
            answer = refused(403, reason) if is_program else PlainTextResponse(reason, 403)
            await answer(scope, receive, send)
        else:
            origins = [urlsplit(value).netloc for name, value in scope["headers"] if name == b"origin"]
            headers = [(name, origins[0] if origins and name == b"host" else value) for name, value in scope["headers"]]
            await self._app({**scope, "headers": headers}, receive, send)


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_one_of(name: str, patterns: Set[str]) -> bool:
    return any(fnmatchcase(name.rstrip("."), pattern) for pattern in patterns)


def _with_port(name: str, port: int | None) -> str:
    return name.rstrip(".") if port is None else f"{name.rstrip('.')}:{port}"


def _host(address: str) -> tuple[str, int | None]:
    """Return an address's name in lower case and its port, None for a usual one; no name if it cannot be read."""
    try:
        parts = urlsplit(address)
        if "@" in parts.netloc:
            return "", None
        return parts.hostname or "", None if parts.port in (80, 443) else parts.port
    except ValueError:
        return "", None
