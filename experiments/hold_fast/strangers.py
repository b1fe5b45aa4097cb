"""Requests of pages of other sites, damaged requests and interrupted uploads to a real server."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from experiments.hold_fast.attempt import Hostility, count_event, note_figure
from experiments.hold_fast.junk import TEXTS
from experiments.hold_fast.visitors import MOST_GROWTH, server

REQUESTS = 15
PATHS = ("/", "/_stcore/health", "/_stcore/metrics", "/_stcore/host-config", "/_stcore/upload_file/a/b", "/media/x.png",
         "/served/none", "/explore?run=x", "/api/search", "/_stcore/stream", "/../etc/passwd",
         "/%2e%2e/%2e%2e/etc/passwd")
METHODS = ("GET", "GET", "POST", "PUT", "OPTIONS", "DELETE", "HEAD", "NONSENSE")
STRANGERS = ("http://evil.example", "https://evil.example:8501", "null", "file://{own}", "http://evil.example@{own}",
             "http://{own}.evil.example", "chrome-extension://abc", "http://{name}:1", "ftp://{own}")
"""Origins of other pages; `own` stands for the server's name and port, `name` for its name."""
UNKNOWN = ("evil.example", "{own}.evil.example", "evil.example@{own}", "[broken", "localhost.evil.example:80")
PATIENCE = 60.0
SLOWEST = 5.0
"""Seconds after which a refusal counts as hanging on a busy machine."""
GUARDS = (b"content-security-policy", b"x-content-type-options")
sizes: list[float] = []


def ask(random: np.random.Generator, _scratch: Path) -> str | None:
    """Send requests: strangers are refused at once, each answer has its headers, and none is a fault."""
    asked_server = server()
    own = urlsplit(asked_server.url).netloc
    for _ in range(REQUESTS):
        count_event()
        path, method = str(random.choice(PATHS)), str(random.choice(METHODS))
        headers, is_strange = _headers(random, own, method)
        began = time.monotonic()
        answer = _send(random, own, f"{method} {path} HTTP/1.1", headers)
        seconds, status = time.monotonic() - began, answer[9:12]
        asked = f"{method} {path} {headers}"
        if is_strange and answer and status != b"403" and not (method == METHODS[-1] and status == b"400"):
            return f"{asked}: a stranger got {answer[:80]!r}"
        if is_strange and seconds > SLOWEST:
            return f"{asked}: the refusal took {seconds:.1f} s"
        if status.startswith(b"5"):
            return f"{asked}: {answer[:300]!r}"
        head = answer.partition(b"\r\n\r\n")[0].lower()
        if status in (b"200", b"404") and not all(guard in head for guard in GUARDS):
            return f"{asked}: {head!r} has no security headers"
        if is_strange:
            note_figure("refusal ms", 1000 * seconds)
    sizes.append(asked_server.megabytes())
    return f"the server grew from {sizes[0]:.0f} to {sizes[-1]:.0f} MB" if sizes[-1] - sizes[0] > MOST_GROWTH else None


def _headers(random: np.random.Generator, own: str, method: str) -> tuple[dict[str, str], bool]:
    """Return headers of a request, and whether they come from a stranger."""
    headers = {"Host": own, "Connection": "close"}
    kind = random.random()
    names = {"own": own, "name": own.partition(":")[0]}
    if kind < 0.35:
        headers["Origin"] = str(random.choice(STRANGERS)).format(**names)
    elif kind < 0.6:
        headers["Host"] = str(random.choice(UNKNOWN)).format(**names)
    elif kind < 0.7:
        headers |= {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    else:
        junk = "".join(sign for sign in str(random.choice(TEXTS)) if " " <= sign <= "~")[:500]
        headers |= {"Origin": f"http://{own}", "Cookie": junk, "X-Junk": junk}
    if method == "GET" and random.random() < 0.4:  # the server's own parser refuses other methods
        headers |= {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
                    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Protocol": "streamlit"}
    return headers, kind < 0.7


def _send(random: np.random.Generator, own: str, line: str, headers: dict[str, str]) -> bytes:
    """Send a request, sometimes with a body that ends too early; return the beginning of the answer."""
    body = b""
    if random.random() < 0.3:
        body = random.bytes(int(random.integers(1, 10**6)))
        headers = headers | {"Content-Length": str(len(body) + int(random.choice([0, 10**9])))}
    name, _, port = own.partition(":")
    with socket.create_connection((name, int(port)), timeout=PATIENCE) as connection:
        request = f"{line}\r\n" + "".join(f"{key}: {value}\r\n" for key, value in headers.items()) + "\r\n"
        try:
            connection.sendall(request.encode() + body)
            connection.shutdown(socket.SHUT_WR)
            return connection.recv(20_000)
        except OSError:  # a refusal may come before all of the body was sent
            return b""


PART = Hostility("strangers", ask, limit=600, on_request=True, goal=600)
