"""The app's real server, and the browser that opens it."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FLAGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-gpu-compositing",
         "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
         "--disable-sync"]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
STARTING = 240.0
"""Seconds that a server has to start."""


def find_browser() -> str | None:
    """Return the path of Chromium; None if it is not installed."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


@contextmanager
def serving(script: str, environment: dict[str, str]) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Serve a script; yield the server's address and process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-m", "streamlit", "run", script, "--server.port", str(port)], cwd=ROOT,
                              env=environment | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL,
                              stderr=subprocess.STDOUT)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until_healthy(url, server)
        yield url, server
    finally:
        server.terminate()
        server.wait(60)


def wait_until_healthy(url: str, server: subprocess.Popen[bytes]) -> None:
    """Wait until a server answers.

    Raises:
        AssertionError: It ended, or did not answer in time.
    """
    deadline = time.monotonic() + STARTING
    while time.monotonic() < deadline:
        assert server.poll() is None, "the server ended while starting"
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=2):
                return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"the server did not answer within {STARTING:g} seconds")
