"""An upload that stops half-way leaves neither memory nor files at a real server."""

from __future__ import annotations

import http.client
import os
import socket
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect

from experiments.real_server import serving

PART = 2**20
HALF = 200
"""Megabytes that arrive before the client disappears, of 1 GB that it has announced."""
PATIENCE = 60.0
MOST_GROWTH = 50e6


def session_of(connection: object) -> str:
    """Open the first page and return the session's id, which addresses of uploads contain."""
    request, message = BackMsg(), ForwardMsg()
    request.rerun_script.page_name = "data"
    connection.send(request.SerializeToString())  # type: ignore[attr-defined]
    session = ""
    while message.WhichOneof("type") != "script_finished":
        message.ParseFromString(connection.recv(timeout=PATIENCE))  # type: ignore[attr-defined]
        if message.WhichOneof("type") == "new_session":
            session = message.new_session.initialize.session_id
    return session


def open_files(server: psutil.Process) -> set[str]:
    """Return the regular files that a server holds open, also files without a name, which only temporary files lack."""
    links = set()
    for number in Path(f"/proc/{server.pid}/fd").iterdir():
        try:
            links.add(os.readlink(number))
        except OSError:  # closed meanwhile
            continue
    return {link for link in links if link.endswith("(deleted)") or link.startswith("/tmp/")}


def send_half(url: str, address: str, cookie: str) -> None:
    """Announce 1 GB, send a part of it, and close the connection as a lost network does."""
    head = b'--x\r\nContent-Disposition: form-data; name="f"; filename="photos.zip"\r\n\r\n'
    parts = urlsplit(url)
    lines = [f"PUT {address} HTTP/1.1", f"Host: {parts.netloc}", "Content-Type: multipart/form-data; boundary=x",
             f"Content-Length: {2**30}"]
    if cookie:
        lines += [f"Cookie: _streamlit_xsrf={cookie}", f"X-Xsrftoken: {cookie}"]
    words = "\r\n".join([*lines, "", ""])
    with socket.create_connection((str(parts.hostname), int(parts.port or 0)), timeout=PATIENCE) as stream:
        stream.sendall(words.encode() + head)
        for _ in range(HALF):
            stream.sendall(os.urandom(PART))
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")  # a reset


def token(url: str) -> str:
    """Return the token against forged requests; empty if the server needs none."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=PATIENCE)
    connection.request("GET", "/_stcore/host-config")
    cookies = connection.getresponse().getheader("set-cookie") or ""
    connection.close()
    name, _, rest = cookies.partition("=")
    return rest.partition(";")[0] if name == "_streamlit_xsrf" else ""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_an_upload_that_stops_half_way_leaves_nothing(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = os.environ | {"UDML_CACHE": str(tmp_path / "cache"), "UDML_RUNS": str(tmp_path / "runs"),
                                "TMPDIR": str(temporary), "UDML_EXAMPLES": "0"}
    with serving("serve.py", environment) as (url, process):
        server = psutil.Process(process.pid)
        with connect(f"{url.replace('http', 'ws')}/_stcore/stream", subprotocols=["streamlit"],  # type: ignore[list-item]
                     max_size=None, origin=url) as session:  # type: ignore[arg-type]
            address = f"/_stcore/upload_file/{session_of(session)}/1"
            cookie, files, memory = token(url), open_files(server), []
            for _ in range(4):
                send_half(url, address, cookie)
                deadline = time.monotonic() + PATIENCE
                while (left := open_files(server) - files) and time.monotonic() < deadline:
                    time.sleep(0.2)
                assert not left
                assert not list(temporary.iterdir())
                memory.append(server.memory_info().rss)
            print(f"memory after each interrupted upload: {[round(value / 1e6) for value in memory]} MB")
            assert memory[-1] - memory[0] < MOST_GROWTH, memory  # the first still meets imports in the background
