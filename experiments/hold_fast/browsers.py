"""Sessions in one real browser on one server, with the server's memory and the latency of pages and sliders.

The environment variable `HOLD_FAST_SESSIONS` sets their number, 20 by default, and `HOLD_FAST_SLIDERS` the share of
slider movements on a page with sliders, 0.5 by default. Each slider must change its value in the browser, and nearly
all movements must make the server send other data of a picture.
"""

from __future__ import annotations

import atexit
import os
import time
from collections import defaultdict
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path

import numpy as np
import psutil
from playwright.sync_api import Locator, Page, WebSocket, sync_playwright

from experiments.hold_fast.attempt import Hostility, count_event, note_figure, shared_folder
from experiments.hold_fast.damage import PAGES, analyzed
from experiments.hold_fast.kills import link_tree
from experiments.hold_fast.sockets import Pictures
from experiments.real_server import find_browser, serving
from udml_core.runs import Run

SESSIONS = int(os.environ.get("HOLD_FAST_SESSIONS", "20"))
SLIDERS = float(os.environ.get("HOLD_FAST_SLIDERS", "0.5"))
MOST_GROWTH = 50e6
"""Bytes by which the server may grow afterwards."""
NEARLY_ALL, FEW = 0.9, 2
"""The share of all movements so far that must change a picture, unless so few did not."""
UNMOVED = 20.0
"""Seconds after which a slider whose step has started no work is no longer waited for."""
IDLE = "!!document.querySelector('[data-testid=stApp][data-test-script-state=notRunning]')"
WATCH = """
window.pressed = 0;   // when the slider was moved; 0 is the start of the visit
window.finished = 0;  // milliseconds from then until the server's script ended
let ran = false;
new MutationObserver(() => {
  const state = document.querySelector("[data-testid=stApp]")?.dataset.testScriptState;
  if (state === "running") ran = true;
  else if (ran && state === "notRunning") {
    ran = false;
    window.finished = performance.now() - window.pressed;
  }
}).observe(document, {subtree: true, childList: true, attributes: true, attributeFilter: ["data-test-script-state"]});
"""
COMPLETE = "document.querySelector('[data-testid=stMain]')?.innerText.trim() ? window.finished : 0"
"""The first script of a visit can end before its page is drawn."""
memory: list[int] = []
opened: set[str] = set()
"""Pages opened so far. The first visit of a page imports modules and fills caches, so growth counts from the round in
which the last page was opened."""
moved: list[bool] = []
"""Whether each movement of a slider changed a picture."""
pictures: defaultdict[Page, Pictures] = defaultdict(Pictures)
"""What the server has sent to each session, from the messages that its browser received."""
warm: list[int] = []
"""The server's memory after each round since then."""


@cache
def sessions() -> tuple[list[Page], psutil.Process, str]:
    """Start a server and a browser for all rounds; return the pages, the server and the run's id."""
    stack = ExitStack()
    atexit.register(stack.close)
    whole, runs = analyzed("rpml"), shared_folder("browsed")
    run = Run(runs / whole.id)
    link_tree(whole.folder, run.folder)
    url, server = stack.enter_context(serving("serve.py", os.environ | {"UDML_RUNS": str(runs)}))
    playwright = stack.enter_context(sync_playwright())
    browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox", "--disable-gpu"])
    stack.callback(browser.close)
    pages = [browser.new_context(base_url=url).new_page() for _ in range(SESSIONS)]
    for page in pages:
        page.set_default_timeout(240_000)
        page.add_init_script(WATCH)
        page.on("websocket", partial(follow, page))
    return pages, psutil.Process(server.pid), run.id


def follow(page: Page, socket: WebSocket) -> None:
    """Follow the messages of a new connection of a session."""
    seen = pictures[page] = Pictures()
    socket.on("framereceived", lambda content: seen.follow(content) if isinstance(content, bytes) else None)


def press(random: np.random.Generator, slider: Locator) -> bool:
    """Move a slider by a tenth of its track, not beyond its end; return whether its value changed.

    A single step of some sliders changes no picture.
    """
    value, low, high = (float(number) for number in slider.evaluate("each => [each.value, each.min, each.max]"))
    is_right = value <= low or (value < high and random.random() < 0.5)
    slider.press("PageUp" if is_right else "PageDown")
    return float(slider.evaluate("each => each.value")) != value


def wait_for(waiting: dict[Page, str]) -> dict[str, list[float]]:
    """Wait until the sessions are complete; return their seconds, by action."""
    seconds: dict[str, list[float]] = {"page": [], "slider": []}
    began = time.monotonic()
    while waiting:
        for page, kind in list(waiting.items()):
            if finished := page.evaluate(COMPLETE):
                seconds[kind].append(finished / 1000)
                del waiting[page]
            elif kind == "slider" and time.monotonic() - began > UNMOVED and page.evaluate(IDLE):
                del waiting[page]
        time.sleep(0.05)
    return seconds


def move(random: np.random.Generator, _scratch: Path) -> str | None:
    """Let every session open a page or move a slider, all at the same time."""
    pages, server, run = sessions()
    waiting: dict[Page, str] = {}
    before: dict[Page, dict[str, str]] = {}
    for page in pages:
        sliders = page.get_by_role("slider")
        if random.random() < SLIDERS and pictures[page].sliders:  # the first page has sliders that the browser answers
            page.evaluate("window.finished = 0; window.pressed = performance.now()")
            former = dict(pictures[page].drawn)
            if not press(random, sliders.first):
                return f"{page.url}: the slider kept its value"
            before[page] = former
            waiting[page] = "slider"
        else:
            name = str(random.choice(PAGES))
            opened.add(name)
            page.goto(f"/{name}?run={run}", wait_until="commit")
            waiting[page] = "page"
        count_event()
    seconds = wait_for(waiting)
    if shown := next((f"{page.url}: {element.inner_text()}" for page in pages
                      if (element := page.query_selector("[data-testid=stException]")) is not None), None):
        return shown
    changed = [pictures[page].drawn != former for page, former in before.items()]
    moved.extend(changed)
    if changed:
        note_figure("movements that changed a picture", sum(changed) / len(changed))
    if (dead := moved.count(False)) >= FEW and dead > (1 - NEARLY_ALL) * len(moved):
        return f"{dead} of {len(moved)} movements of sliders changed no picture, the last at " + ", ".join(
            page.url for page, is_alive in zip(before, changed, strict=True) if not is_alive)
    memory.append(server.memory_info().rss)
    note_figure("sessions", SESSIONS)
    for kind, each in seconds.items():
        if each:
            note_figure(f"{kind} p50 s", float(np.median(each)))
            note_figure(f"{kind} slowest s", max(each))
    note_figure("server MB", memory[-1] / 1e6)
    print(f"browsers: round {len(memory)}, {seconds}, server {memory[-1] / 1e6:.0f} MB", flush=True)
    if opened == set(PAGES):
        warm.append(memory[-1])
        if warm[-1] - warm[0] > MOST_GROWTH:
            return f"the server grew from {warm[0] / 1e6:.0f} to {warm[-1] / 1e6:.0f} MB"
    return None


PART = Hostility("browsers", move, limit=900, on_request=True)
