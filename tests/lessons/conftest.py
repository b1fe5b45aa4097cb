"""Lessons as exported files in a real Chromium without a network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from udml_core.results.lessons import export_course


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the exported course."""
    folder = tmp_path_factory.mktemp("course")
    export_course(folder)
    return folder


PATIENCE_MS = 120_000
"""Milliseconds until a test gives up waiting: a slow machine must not fail it."""


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser's memory of its own."""
    with browser.new_context(viewport={"width": 1400, "height": 900}) as context:
        context.set_default_timeout(PATIENCE_MS)
        yield context


STORED_MS = 400
"""Milliseconds until Chromium has stored what a page kept, of which a reload or another page within 50 can lose all."""


@pytest.fixture
def open_lesson(context: BrowserContext, exported: Path) -> Iterator[Callable[..., Page]]:
    """Open a lesson's file and wait for its picture; the test fails on a request or an error of the page."""
    problems: list[str] = []
    pages: list[Page] = []

    def opened(name: str, query: str = "") -> Page:
        if pages and not pages[-1].is_closed():
            pages[-1].wait_for_timeout(STORED_MS)
        page = context.new_page()
        pages.append(page)
        page.on("request", lambda request: None if request.url.startswith(("file:", "data:")) else problems.append(
            request.url))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.goto(f"{(exported / name).as_uri()}.html{query}")
        page.wait_for_selector(".lesson[data-drawn], .path a")
        return page

    yield opened
    for page in pages:
        page.close()
    assert not problems


def reload_later(page: Page) -> None:
    """Reload when Chromium has stored what the page kept."""
    page.wait_for_timeout(STORED_MS)
    page.reload()


@pytest.fixture
def compute(open_lesson: Callable[..., Page]) -> Callable[..., Any]:
    """Return a lesson's numbers: `compute(name, state, "n => Array.from(n.parents)")`."""
    pages: dict[str, Page] = {}

    def computed(name: str, state: dict[str, Any], select: str = "numbers => numbers") -> Any:
        if name not in pages:
            pages[name] = open_lesson(name)
        return pages[name].evaluate("""([state, select]) => {
            const { lesson, start, data } = window.lesson;
            return (0, eval)(select)(lesson.compute({ ...start, ...state }, data));
        }""", [state, select])

    return computed
