"""A real server and a real browser, on folders of their own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlparse

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Response, expect, sync_playwright

from udml_core.runs import Run, list_runs

ROOT = Path(__file__).resolve().parents[2]
FLAGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-gpu-compositing",
         "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
         "--disable-sync"]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


expect.set_options(timeout=120_000)  # a slow machine is no fault


@dataclass(frozen=True)
class App:
    """A running app."""

    url: str
    runs: Path
    environment: dict[str, str]

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """The command line on the app's own folders."""
        return subprocess.run([sys.executable, "-m", "udml_core", *words], cwd=ROOT, env=self.environment,
                              capture_output=True, text=True, timeout=240, check=False)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that a module's tests share."""
    return tmp_path_factory.mktemp("places")


@pytest.fixture
def own_places(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The app's runs are those of the module."""
    monkeypatch.setenv("UDML_RUNS", str(places / "runs"))


@pytest.fixture(scope="session")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    home = tmp_path_factory.mktemp("app")
    environment = os.environ | {"UDML_CACHE": str(home / "cache"), "UDML_RUNS": str(home / "runs"),
                                "PYTHONPATH": str(ROOT)}
    environment.pop("UDML_DATA", None)
    with serving("app.py", environment) as (url, _):
        yield App(url, home / "runs", environment)


@pytest.fixture(scope="session")
def finished(app: App) -> Run:
    """A small finished run on the digits, made by the command line on the app's own folders."""
    done = app.command("train", "--dataset", "digits", "--backbone", "pixels", "--method", "rpml", "--set",
                       "dimension=16", "--set", "epochs=3", "--split", "seen", "--json")
    assert done.returncode == 0, done.stderr
    return list_runs(app.runs)[0]


@contextmanager
def serving(script: str, environment: dict[str, str]) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The address of a server that runs a script, and its process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-m", "streamlit", "run", script, "--server.port", str(port)], cwd=ROOT,
                              env=environment | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL,
                              stderr=subprocess.STDOUT)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_until_healthy(url, server)
        yield url, server
    finally:
        server.terminate()
        server.wait(60)


def _wait_until_healthy(url: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        assert server.poll() is None, "the server ended at its start"
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=2):
                return
        except OSError:
            time.sleep(0.2)
    raise AssertionError("the server did not answer within four minutes")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = chromium()
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield opened
        opened.close()


def chromium() -> str:
    """Where Chromium is; the test is skipped, with what to do, where it is nowhere."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"the browser tests need Chromium, and none of {', '.join(BROWSERS)} is on the PATH; "
                    "on Debian and Ubuntu: `sudo apt install chromium`")
    return path


@pytest.fixture
def page(app: App, browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A page that fails its test on an exception of ours, an error of the console, or a request to another host."""
    options = getattr(request, "param", {})
    context = browser.new_context(base_url=app.url, **{"viewport": {"width": 1400, "height": 1000}} | options)
    opened = context.new_page()
    opened.set_default_timeout(120_000)
    complaints: list[str] = []
    opened.on("console", lambda message: complaints.append(message.text) if _is_complaint(message) else None)
    opened.on("response", lambda got: complaints.append(f"{got.status} {got.url}") if _is_missing(got) else None)
    opened.on("request", lambda sent: complaints.append(f"request to {sent.url}") if _is_elsewhere(sent.url) else None)
    yield opened
    assert not opened.query_selector("[data-testid=stException]"), opened.inner_text("[data-testid=stException]")
    context.close()
    assert complaints == []


def _is_complaint(message: ConsoleMessage) -> bool:
    return message.type == "error" and not message.text.startswith("Failed to load resource")  # responses tell which


def _is_missing(response: Response) -> bool:
    """An answer of 400 or more, but for Streamlit's own look for its server below a page's address."""
    return response.status >= 400 and "_stcore" not in response.url


def _is_elsewhere(url: str) -> bool:
    parts = urlparse(url)
    return parts.scheme in ("http", "https", "ws", "wss") and parts.hostname not in ("127.0.0.1", "localhost")
