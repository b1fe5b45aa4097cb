"""Security headers of answers that the app's code does not send: websocket handshakes and failures."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import serve
from experiments.real_server import ROOT, wait_until_healthy

FAILING = """
import sys, uvicorn, serve
from starlette.routing import Route, WebSocketRoute
async def fail(_request):
    raise RuntimeError("planted")
serve.app._user_routes += [Route("/planted", fail), WebSocketRoute("/planted-socket", fail)]
uvicorn.run(serve.app, port=int(sys.argv[1]), log_level="critical")
"""
"""The app's server with two addresses that fail."""
UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
           "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of the server."""
    home = tmp_path_factory.mktemp("failing")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number = int(probe.getsockname()[1])
    script = Path(home / "failing.py")
    script.write_text(FAILING, encoding="utf-8")
    environment = os.environ | {"UDML_CACHE": str(home / "cache"), "UDML_RUNS": str(home / "runs"),
                                "PYTHONPATH": str(ROOT)}
    server = subprocess.Popen([sys.executable, str(script), str(number)], cwd=ROOT, env=environment,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until_healthy(f"http://127.0.0.1:{number}", server)
        yield number
    finally:
        server.terminate()
        server.wait(60)


@pytest.mark.parametrize(("path", "headers", "status"), [
    ("/planted", {"Connection": "close"}, 500),
    ("/planted-socket", UPGRADE, 500),
    ("/_stcore/stream", UPGRADE, 101),
    ("/_stcore/stream", UPGRADE | {"Origin": "http://evil.example"}, 403),
    ("/_stcore/nothing", UPGRADE, 403)])
def test_failures_and_handshakes_have_the_headers(path: str, headers: dict[str, str], status: int, port: int) -> None:
    fields = {"Host": f"127.0.0.1:{port}"} | headers
    request = f"GET {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items()) + "\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(request.encode())
        answer = b""
        while b"\r\n\r\n" not in answer and (received := connection.recv(20_000)):
            answer += received
    assert answer.startswith(f"HTTP/1.1 {status} ".encode()), answer[:200]
    sent = answer.decode("latin1").lower()
    assert [name for name, value in serve.HEADERS.items() if f"{name}: {value}".lower() not in sent] == []
    assert "planted" not in sent
