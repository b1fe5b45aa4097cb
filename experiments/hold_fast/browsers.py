"""Twenty sessions in one real browser on one server, with the server's memory and the latency of pages."""

from __future__ import annotations

import atexit
import os
import time
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import numpy as np
import psutil
from playwright.sync_api import Page, sync_playwright

from experiments.hold_fast.attempt import Part, count_event, shared_folder
from experiments.hold_fast.damage import PAGES, analyzed
from experiments.hold_fast.kills import link_tree
from experiments.real_server import find_browser, serving
from udml_core.runs import Run

SESSIONS = 20
WARM_ROUNDS = 10
"""Rounds after which the caches of the server are filled."""
MOST_GROWTH = 50e6
"""Bytes by which the server may grow afterwards."""
IDLE = "!!document.querySelector('[data-testid=stApp][data-test-script-state=notRunning]')"
memory: list[int] = []
seconds: list[float] = []


@cache
def sessions() -> tuple[list[Page], psutil.Process, str]:
    """Start a server and a browser for all rounds; return the pages, the server and the run's id."""
    stack = ExitStack()
    atexit.register(stack.close)
    whole, runs = analyzed("rpml"), shared_folder("browsed")
    run = Run(runs / whole.id)
    link_tree(whole.folder, run.folder)
    url, server = stack.enter_context(serving("app.py", os.environ | {"UDML_RUNS": str(runs)}))
    playwright = stack.enter_context(sync_playwright())
    browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox", "--disable-gpu"])
    stack.callback(browser.close)
    pages = [browser.new_context(base_url=url).new_page() for _ in range(SESSIONS)]
    for page in pages:
        page.set_default_timeout(240_000)
    return pages, psutil.Process(server.pid), run.id


def move(random: np.random.Generator, _scratch: Path) -> str | None:
    """Let every session open a page or move a slider, all at the same time."""
    pages, server, run = sessions()
    began = time.monotonic()
    for page in pages:
        sliders = page.locator("[role=slider]")
        if random.random() < 0.5 and sliders.count():
            sliders.first.press(str(random.choice(["ArrowRight", "ArrowLeft"])))
        else:
            page.goto(f"/{random.choice(PAGES)}?run={run}", wait_until="commit")
        count_event()
    for page in pages:
        page.wait_for_selector("[data-testid=stMain]")
        page.wait_for_function(IDLE)
        seconds.append(time.monotonic() - began)
        if (shown := page.query_selector("[data-testid=stException]")) is not None:
            return f"{page.url}: {shown.inner_text()}"
    memory.append(server.memory_info().rss)
    low, middle, high = np.percentile(seconds, [50, 95, 99])
    print(f"browsers: round {len(memory)}, {SESSIONS} sessions complete after {low:.1f} s (p50), {middle:.1f} s "
          f"(p95), {high:.1f} s (p99); server {memory[-1] / 1e6:.0f} MB", flush=True)
    if len(memory) > WARM_ROUNDS and memory[-1] - memory[WARM_ROUNDS - 1] > MOST_GROWTH:
        return f"the server grew from {memory[WARM_ROUNDS - 1] / 1e6:.0f} to {memory[-1] / 1e6:.0f} MB"
    return None


PART = Part("browsers", move, limit=900, on_request=True)
