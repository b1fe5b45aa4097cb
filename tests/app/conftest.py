"""A real server and a real browser, with runs and caches of their own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Response, expect

from experiments.real_server import ROOT, serving
from tests.running import worked
from udml_core.runs import Run, list_runs
from udml_core.runs.analyses import Analysis, plan_analysis
from udml_core.work.workers import analyse

expect.set_options(timeout=120_000)  # A slow machine must not fail a test.


@dataclass(frozen=True)
class App:
    """A running app.

    Attributes:
        url: The server's address.
        runs: The folder of runs.
        environment: Environment variables of the server.
    """

    url: str
    runs: Path
    environment: dict[str, str]

    def trained(self, **request: Any) -> Run:
        """Return a finished run in the app's folder of runs; an equal request trains once in a test session."""
        return worked(self.runs, **request)

    def analyzed(self, run: Run, **fields: Any) -> Analysis:
        """Compute an analysis of a run in this process."""
        return analyse.keep(run, plan_analysis(**fields), lambda *_: None)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder of runs of a test."""
    return tmp_path / "runs"


@pytest.fixture
def pair(root: Path) -> list[Run]:
    """Two finished runs that differ in the seed, the newest first."""
    for seed in (0, 1):
        worked(root, seed=seed)
    return list_runs(root)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the tests of a module share."""
    return tmp_path_factory.mktemp("places")


@pytest.fixture
def own_places(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module's folder of runs, in place of a folder for each test."""
    monkeypatch.setenv("UDML_RUNS", str(places / "runs"))


@pytest.fixture(scope="session")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """The running app."""
    home = tmp_path_factory.mktemp("app")
    environment = os.environ | {"UDML_CACHE": str(home / "cache"), "UDML_RUNS": str(home / "runs"),
                                "PYTHONPATH": str(ROOT)}
    environment.pop("UDML_DATA", None)
    with serving("serve.py", environment) as (url, _):
        yield App(url, home / "runs", environment)


@pytest.fixture(scope="session")
def finished(app: App) -> Run:
    """A small finished run on the digits in the app's folder of runs."""
    return app.trained(fields={"dimension": 16, "epochs": 3})


@pytest.fixture(scope="session")
def window(app: App, browser: Browser) -> Iterator[BrowserContext]:
    """A window of the browser, which loads and compiles the app's scripts once."""
    context = browser.new_context(base_url=app.url)
    context.set_default_timeout(120_000)
    yield context
    context.close()


@pytest.fixture
def page(window: BrowserContext, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A tab without memory that fails its test on an exception, a console error, or a request to another host."""
    options = {"viewport": {"width": 1400, "height": 1000}} | getattr(request, "param", {})
    new_page = window.new_page()
    new_page.set_viewport_size(options.pop("viewport"))
    new_page.emulate_media(**options)
    complaints: list[str] = []
    new_page.on("console", lambda message: complaints.append(message.text) if _is_complaint(message) else None)
    new_page.on("response", lambda response: complaints.append(f"{response.status} {response.url}")
                if _is_missing(response) else None)
    new_page.on("request", lambda request: complaints.append(f"request to {request.url}")
                if _is_elsewhere(request.url) else None)
    yield new_page
    complaints += new_page.locator("[data-testid=stException]").all_inner_texts()
    new_page.evaluate("localStorage.clear()")
    new_page.close()
    window.clear_cookies()
    assert complaints == []


def _is_complaint(message: ConsoleMessage) -> bool:
    return message.type == "error" and not message.text.startswith("Failed to load resource")  # see _is_missing


def _is_missing(response: Response) -> bool:
    return response.status >= 400


def _is_elsewhere(url: str) -> bool:
    parts = urlparse(url)
    return parts.scheme in ("http", "https", "ws", "wss") and parts.hostname not in ("127.0.0.1", "localhost")
