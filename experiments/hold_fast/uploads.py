"""Uploads of 1 GB that stop half-way, as when a network is lost: nothing stays behind in the server."""

from __future__ import annotations

import http.client
import os
import socket
import time
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import ClientConnection, connect

from experiments.hold_fast.attempt import Hostility, count_event, note_figure
from experiments.hold_fast.visitors import MOST_GROWTH, server

ANNOUNCED = 2**30
MOST = 300
"""Megabytes that arrive at most before the client disappears."""
STOPS = 4
PIECE = 2**20
PATIENCE = 60.0
HEAD = b'--x\r\nContent-Disposition: form-data; name="f"; filename="photos.zip"\r\n\r\n'
RESET = b"\x01\x00\x00\x00\x00\x00\x00\x00"
"""Lets the closing of a socket send a reset, as a lost network does."""


@cache
def first_size() -> float:
    """Return the megabytes of the server before the first attempt."""
    return server().megabytes()


def stop_uploads(random: np.random.Generator, _scratch: Path) -> str | None:
    """Announce 1 GB, send a part of it and disappear, several times."""
    asked, before = server(), first_size()
    with connect(f"{asked.url.replace('http', 'ws')}/_stcore/stream", subprotocols=["streamlit"],  # type: ignore[list-item]
                 max_size=None, origin=asked.url) as session:  # type: ignore[arg-type]
        address = f"/_stcore/upload_file/{session_of(session)}/1"
        cookie, files = token(asked.url), asked.open_files()
        for _ in range(STOPS):
            count_event()
            send_part(asked.url, address, cookie, int(random.integers(MOST)), bool(random.integers(2)))
            deadline = time.monotonic() + PATIENCE
            while (left := asked.open_files() - files) and time.monotonic() < deadline:
                time.sleep(0.1)
            if left:
                return f"files stay open: {left}"
    grown = asked.megabytes() - before
    note_figure("server MB more", grown)
    return f"the server grew by {grown:.0f} MB" if grown > MOST_GROWTH else None


def session_of(connection: ClientConnection) -> str:
    """Open a page and return the session's id, which addresses of uploads contain."""
    request, message = BackMsg(), ForwardMsg()
    request.rerun_script.page_name = "data"
    connection.send(request.SerializeToString())
    session = ""
    while message.WhichOneof("type") != "script_finished":
        message.ParseFromString(connection.recv(timeout=PATIENCE))  # type: ignore[arg-type]
        if message.WhichOneof("type") == "new_session":
            session = message.new_session.initialize.session_id
    return session


def token(url: str) -> str:
    """Return the token against forged requests; empty if the server needs none."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=PATIENCE)
    connection.request("GET", "/_stcore/host-config")
    cookies = connection.getresponse().getheader("set-cookie") or ""
    connection.close()
    name, _, rest = cookies.partition("=")
    return rest.partition(";")[0] if name == "_streamlit_xsrf" else ""


def send_part(url: str, address: str, cookie: str, megabytes: int, resets: bool) -> None:
    """Send a part of an upload, and close the connection.

    Args:
        url: The server's address.
        address: The upload's path.
        cookie: The token against forged requests.
        megabytes: How much arrives.
        resets: Whether the connection breaks, as when a network is lost, or ends in order.
    """
    parts = urlsplit(url)
    lines = [f"PUT {address} HTTP/1.1", f"Host: {parts.netloc}", "Content-Type: multipart/form-data; boundary=x",
             f"Content-Length: {ANNOUNCED}"]
    if cookie:
        lines += [f"Cookie: _streamlit_xsrf={cookie}", f"X-Xsrftoken: {cookie}"]
    with socket.create_connection((str(parts.hostname), int(parts.port or 0)), timeout=PATIENCE) as stream:
        stream.sendall("\r\n".join([*lines, "", ""]).encode() + HEAD)
        for _ in range(megabytes):
            stream.sendall(os.urandom(PIECE))
        if resets:
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)


PART = Hostility("uploads", stop_uploads, limit=400, seconds=10, goal=40, on_request=True)
