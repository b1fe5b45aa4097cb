"""The pages of a large run in a real Chromium: seconds to the first picture, answers, and memory on both sides."""

from __future__ import annotations

import time
from pathlib import Path

import psutil
from playwright.sync_api import Page, sync_playwright

from experiments.real_server import FLAGS, find_browser, serving

DRAWN = """() => {
  for (const host of document.querySelectorAll("[data-testid=stBidiComponentRegular], [data-testid]")) {
    const root = (host.shadowRoot ?? host).querySelector?.(".scatter[data-drawn]");
    if (root) return true;
  }
  return false;
}"""
"""Whether the points of a map are drawn."""
IDLE = "() => document.querySelector('[data-testid=stApp]')?.dataset.testScriptState === 'notRunning'"
WINDOW = {"width": 1400, "height": 900}
MOST_SECONDS = 120


def open_pages(run: str, environment: dict[str, str], pictures: Path | None = None) -> dict[str, float]:
    """Open the pages of a run and return what was measured.

    Args:
        run: The run's id.
        environment: Environment of the server, with UDML_RUNS and UDML_CACHE.
        pictures: Folder to write a picture of each page into; None for no pictures.
    """
    row: dict[str, float] = {}
    with serving("serve.py", environment) as (url, server), sync_playwright() as playwright:
        row["server after its start, MB"] = _megabytes(server.pid)
        browser = playwright.chromium.launch(executable_path=find_browser(), args=FLAGS)
        known = {process.pid for process in psutil.Process().children(recursive=True)} - {server.pid}
        page = browser.new_page(base_url=url, viewport=WINDOW)
        page.set_default_timeout(MOST_SECONDS * 1000)
        page.goto("/results")
        page.wait_for_selector("h1")
        page.wait_for_timeout(3000)
        before = sum(map(_megabytes, known))
        received = _count_bytes(page)
        for visit in ("first", "later"):
            row[f"map, {visit} visit, s"] = _first_picture(page, f"/map?run={run}&color=column:+class")
        row["fetched for two visits of the map, MB"] = round(sum(received) / 1e6, 1)
        row["server with the map, MB"] = _megabytes(server.pid)
        row["browser with the map, MB"] = sum(map(_megabytes, known)) - before
        if pictures:
            page.screenshot(path=pictures / "map.png")
        browser.close()
    return row


def _first_picture(page: Page, address: str) -> float:
    """Open an address in the browser and return the seconds until the map's points are drawn."""
    start = time.monotonic()
    page.goto(address)
    page.wait_for_function(DRAWN, polling=50)
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return round(time.monotonic() - start, 2)


def _count_bytes(page: Page) -> list[int]:
    """Return a list that grows by the length of each file that the browser fetches."""
    received: list[int] = []
    page.on("response", lambda answer: received.append(int(answer.headers.get("content-length", 0)))
            if "/media/" in answer.url else None)
    return received


def _megabytes(pid: int) -> float:
    """Return the private memory of a process in MB; 0 if it has ended."""
    try:
        return round(psutil.Process(pid).memory_full_info().uss / 1e6)
    except psutil.Error:
        return 0.0
