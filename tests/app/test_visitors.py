"""Requests of other sites, and for names that the server does not know."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send
from streamlit import config, net_util
from streamlit.web import bootstrap
from streamlit.web.server.starlette.starlette_websocket import _is_origin_allowed

from pages.parts.shell.visitors import HOSTS, METRICS, KnownVisitors, further_hosts, own_hosts, refusal
from tests.app.conftest import App

OWN = frozenset({"localhost", "127.0.0.1", "box"})
ORIGINS = ["http://evil.example", "http://evil.example:8501", "https://127.0.0.1.evil.example", "null", "",
           "http://localhost:3000", "http://[broken", "file://", "http://127.0.0.1:8501@evil.example"]
"""Origins whose pages a server at port 8501 must not answer."""


@pytest.mark.parametrize(("headers", "is_answered"), [
    ({}, True), ({"host": "127.0.0.1:8501"}, True), ({"host": "LOCALHOST:8501"}, True), ({"host": "localhost."}, True),
    ({"host": "[::1]:8501"}, True), ({"host": "192.168.1.20:8501"}, True), ({"host": "box:8501"}, True),
    ({"host": "evil.example@localhost"}, False), ({"host": "localhost@evil.example"}, False),
    ({"host": "127.0.0.1:8501", "origin": "file://127.0.0.1:8501"}, False),
    ({"host": "evil.example:8501"}, False), ({"host": "127.0.0.1.evil.example"}, False), ({"host": "[broken"}, False),
    ({"host": "localhost:8501", "origin": "http://localhost:8501"}, True),
    ({"host": "localhost", "origin": "https://localhost"}, True),
    ({"host": "evil.example", "origin": "http://evil.example"}, False),
    *(({"host": "localhost:8501", "origin": origin}, False) for origin in ORIGINS),
    ({"host": "localhost:8501", "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}, False),
    ({"host": "localhost:8501", "sec-fetch-site": "same-site", "sec-fetch-mode": "cors"}, False),
    ({"host": "localhost:8501", "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, True),  # a link
    ({"host": "localhost:8501", "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}, True),
    ({"host": "localhost:8501", "sec-fetch-site": "none"}, True)])
def test_pages_of_the_server_and_programs_are_answered_and_no_others(headers: Mapping[str, str],
                                                                   is_answered: bool) -> None:
    assert (refusal(Headers(headers), OWN, frozenset()) == "") is is_answered


def test_a_proxys_name_is_answered_where_it_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Headers({"host": "photos.example.org", "origin": "https://photos.example.org"})
    renamed = Headers({"host": "127.0.0.1:8501", "origin": "https://photos.example.org"})
    assert HOSTS in refusal(asked, OWN, further_hosts())
    assert refusal(renamed, OWN, further_hosts())
    for names in ("photos.example.org", "other.org, PHOTOS.example.org", "*.example.org"):
        monkeypatch.setenv(HOSTS, names)
        assert refusal(asked, OWN, further_hosts()) == ""
        assert refusal(renamed, OWN, further_hosts()) == ""
        assert refusal(Headers({"host": "localhost", "origin": "http://evil.org"}), OWN, further_hosts())
        other = {"origin": "https://photos.example.org:9999"}  # another service of the proxy
        for host in ("photos.example.org", "127.0.0.1:8501"):
            assert refusal(Headers(other | {"host": host}), OWN, further_hosts())
    monkeypatch.setenv(HOSTS, "photos.example.org:9999")
    for host in ("photos.example.org:9999", "127.0.0.1:8501"):
        assert refusal(Headers(other | {"host": host}), OWN, further_hosts()) == ""
    assert refusal(renamed, OWN, further_hosts())


def test_own_names_are_this_computers() -> None:
    assert {"localhost", socket.gethostname().lower()} <= own_hosts()


def ask(kind: str, path: str = "/", **headers: str) -> tuple[Headers | None, list[dict[str, Any]]]:
    """Return the headers with which a request reaches Streamlit, None if it does not, and the answer's messages."""
    reached: list[Headers] = []
    messages: list[dict[str, Any]] = []

    async def streamlit(scope: Scope, _receive: Receive, _send: Send) -> None:
        reached.append(Headers(scope=scope))

    async def send(message: Any) -> None:
        messages.append(message)

    scope = {"type": kind, "method": "GET", "path": path,
             "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]}
    with ThreadPoolExecutor(1) as pool:  # a browser of other tests has an event loop in this thread
        pool.submit(asyncio.run, KnownVisitors(streamlit)(scope, None, send)).result()  # type: ignore[arg-type]
    return (reached[0] if reached else None), messages


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_streamlit_sees_no_request_of_another_site(kind: str) -> None:
    for origin in ORIGINS:
        reached, messages = ask(kind, host="localhost:8501", origin=origin)
        assert reached is None
        assert messages[0].get("status", messages[0].get("code")) in (403, 1008)
    assert ask(kind, host="localhost:8501")[0] is not None


@pytest.mark.parametrize("host", ["photos.example.org", "127.0.0.1:8501"])
def test_streamlit_asks_no_other_server_about_a_proxys_name(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the address that Host becomes, Streamlit looks for the outer address of this computer."""
    monkeypatch.setenv(HOSTS, "photos.example.org")
    monkeypatch.setattr(net_util, "_make_blocking_http_get", lambda *_, **__: pytest.fail("a request left"))
    reached, _ = ask("websocket", host=host, origin="https://photos.example.org")
    assert reached is not None
    assert _is_origin_allowed(reached["origin"], reached["host"])


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_the_start_asks_no_other_server(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Streamlit prints the computer's outer address unless a name is set; this reads .streamlit/config.toml."""
    monkeypatch.setattr(net_util, "_make_blocking_http_get", lambda *_, **__: pytest.fail("a request left"))
    before = config.get_option("server.address")
    config.set_option("server.address", address)
    try:
        bootstrap._print_url(False)
    finally:
        config.set_option("server.address", before)


def test_measures_are_shown_to_the_own_computer_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask("http", METRICS, host="localhost")[0] is not None
    for name, value in (("UDML_EXPOSED", "1"), (HOSTS, "photos.example.org")):  # shared, or behind a proxy
        with monkeypatch.context() as patched:
            patched.setenv(name, value)
            for path in (METRICS, f"/app{METRICS}/"):
                assert ask("http", path, host="localhost")[1][0]["status"] == 403


@pytest.mark.parametrize(("path", "upgrade"), [("/_stcore/stream", "websocket"), ("/_stcore/health", ""), ("/", ""),
                                               ("/_stcore/upload_file/a/b", ""), ("/media/x.png", "")])
@pytest.mark.parametrize("headers", [{"Origin": "http://evil.example"}, {"Host": "evil.example"},
                                     {"Host": "evil.example", "Origin": "http://evil.example"}])
def test_a_stranger_is_refused_at_once(app: App, path: str, upgrade: str, headers: dict[str, str]) -> None:
    """Before, the server asked an outside service and answered nothing for up to 20 seconds."""
    address = urlsplit(app.url)
    fields = {"Host": address.netloc, "Connection": "close"} | headers
    if upgrade:
        fields |= {"Connection": "Upgrade", "Upgrade": upgrade, "Sec-WebSocket-Version": "13",
                   "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
    request = f"GET {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items()) + "\r\n"
    began = time.monotonic()
    with socket.create_connection((address.hostname or "", address.port or 0), timeout=60) as connection:
        connection.sendall(request.encode())
        answer = connection.recv(20_000)
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert time.monotonic() - began < 5  # milliseconds on an idle machine
    if not upgrade:
        assert b"content-security-policy" in answer.lower()
