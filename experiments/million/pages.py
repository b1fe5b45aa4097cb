"""The pages of a large run in a real Chromium: seconds to the first picture, answers, and memory on both sides."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import psutil
from playwright.sync_api import Page, sync_playwright

from experiments.real_server import FLAGS, find_browser, serving
from tests.app.test_browser_map import drawn_map, lasso

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
        row["server after its start, MB"] = _megabytes([psutil.Process(server.pid)])
        browser = playwright.chromium.launch(executable_path=find_browser(), args=FLAGS)
        page = browser.new_page(base_url=url, viewport=WINDOW)
        page.set_default_timeout(MOST_SECONDS * 1000)
        page.goto("/results")
        page.wait_for_selector("h1")
        page.wait_for_timeout(3000)
        row["browser before the map, MB"] = _megabytes(_browser(server.pid))
        received = _count_bytes(page)
        for visit in ("first", "later"):
            of_server, of_browser = _used(server.pid), _used_by_browser(server.pid)
            row[f"map, {visit} visit, s"] = _first_picture(page, f"/map?run={run}&color=column:+class")
            row[f"map, {visit} visit, processor seconds of the server"] = _used(server.pid) - of_server
            row[f"map, {visit} visit, processor seconds of the browser"] = _used_by_browser(server.pid) - of_browser
        row["fetched for two visits of the map, MB"] = sum(received) / 1e6
        row["server with the map, MB"] = _megabytes([psutil.Process(server.pid)])
        row["browser with the map, MB"] = _megabytes(_browser(server.pid))
        if pictures:
            page.screenshot(path=pictures / "map.png")
        browser.close()
    return row


def lasso_seconds(run: str, environment: dict[str, str]) -> dict[str, float]:
    """Return the seconds until a run's map is drawn, and from the end of a lasso on it until its images are listed."""
    with serving("serve.py", environment) as (url, server), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=FLAGS)
        page = browser.new_page(base_url=url, viewport=WINDOW)
        page.set_default_timeout(MOST_SECONDS * 1000)
        row = {"map, s": _first_picture(page, f"/map?run={run}")}
        page.wait_for_function(IDLE)
        page.wait_for_timeout(3000)
        of_server = _used(server.pid)
        lasso(page, drawn_map(page))
        start = time.monotonic()
        page.get_by_role("group", name="Selected images").wait_for()
        row["lasso, s"] = time.monotonic() - start
        row["lasso, processor seconds of the server"] = _used(server.pid) - of_server
        browser.close()
    return row


def _first_picture(page: Page, address: str) -> float:
    """Open an address in the browser and return the seconds until the map's points are drawn."""
    start = time.monotonic()
    page.goto(address)
    page.wait_for_function(DRAWN, polling=50)
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return time.monotonic() - start


def _count_bytes(page: Page) -> list[int]:
    """Return a list that grows by the length of each file that the browser fetches."""
    received: list[int] = []
    page.on("response", lambda answer: received.append(int(answer.headers.get("content-length", 0)))
            if "/served/" in answer.url else None)
    return received


def _browser(server: int) -> list[psutil.Process]:
    """Return the processes of the browser: the descendants of this process without the server."""
    return [process for process in psutil.Process().children(recursive=True) if process.pid != server]


def _used(pid: int) -> float:
    """Return the processor seconds that a process has used."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def _used_by_browser(server: int) -> float:
    """Return the processor seconds that the browser has used, without processes that have ended."""
    return sum(_used(process.pid) for process in _browser(server))


def _megabytes(processes: list[psutil.Process]) -> float:
    """Return the private memory of processes in MB, without processes that have ended."""
    total = 0
    for process in processes:
        with suppress(psutil.Error):
            total += process.memory_full_info().uss
    return total / 1e6
