"""Speed of the map and the gallery in a real browser, compared with Plotly's scattergl and `on_select`.

Times are measured inside the browser, from the user's event to the drawn result or to Python's answer.
`python -m tests.benchmarks.test_instrument OUT.json` writes a record of the same measurements.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import psutil
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from experiments.real_server import FLAGS, serving
from tests.conftest import chromium

PAGE = Path(__file__).with_name("instrument_page.py")
ROUNDS, STEPS = 7, 200
pytestmark = [pytest.mark.benchmark, pytest.mark.browser, pytest.mark.timeout(1800)]

HELP = """() => {
  const inside = (root, selector) => root.querySelector(selector)
    ?? [...root.querySelectorAll("*")].map((element) => element.shadowRoot && inside(element.shadowRoot, selector))
      .find(Boolean);
  window.find = (selector) => inside(document, selector);
  const lines = () => [...document.querySelectorAll("p")].map((paragraph) => paragraph.textContent);
  window.text = (start) => lines().find((line) => line.startsWith(start));
  for (const kind of ["pointerup", "keydown", "click"]) {
    window.addEventListener(kind, () => {
      if (window.armed) { window.began = performance.now(); window.armed = false; }
    }, true);
  }
  window.clock = (done, seen) => { // seen: wait until the result is drawn, two frames later
    window.armed = true;
    window.took = new Promise((resolve) => {
      const look = () => {
        if (window.armed || !done()) { setTimeout(look, 2); return; }
        const end = () => resolve(performance.now() - window.began);
        if (seen) requestAnimationFrame(() => requestAnimationFrame(end)); else end();
      };
      look();
    });
  };
}"""


@contextmanager
def serve_page() -> Iterator[tuple[Browser, str, int]]:
    """Yield a browser, the page's address and the server's process number."""
    with tempfile.TemporaryDirectory() as home:
        environment = os.environ | {"UDML_CACHE": f"{home}/cache", "UDML_RUNS": f"{home}/runs"}
        with serving(str(PAGE), environment) as (url, server), sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
            yield browser, url, server.pid
            browser.close()


def open_page(browser: Browser, url: str, view: str, peer: str, count: int) -> tuple[Page, float]:
    """Return the drawn page and the seconds until it was drawn."""
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.set_default_timeout(120_000)
    begin = perf_counter()
    page.goto(f"{url}/?view={view}&peer={peer}&n={count}")
    page.wait_for_selector({"ours": "div.scatter[data-drawn]", "plotly": ".js-plotly-plot .gl-canvas",
                            "tiles": "div.grid[data-drawn]"}[peer])
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    took = perf_counter() - begin
    page.wait_for_timeout(3000)
    page.evaluate(HELP)
    return page, took


def time_event(page: Page, done: str, act: Callable[[], Any], seen: bool) -> float:
    """Return the seconds from an event until a condition holds.

    Args:
        page: The page.
        done: JavaScript that starts the clock with the condition.
        act: Triggers the event.
        seen: Whether to wait until the result is drawn.
    """
    page.evaluate(f"(seen) => {{ {done}; }}", seen)
    act()
    took = float(page.evaluate("window.took")) / 1000
    page.wait_for_timeout(700)
    return took


def time_lassos(page: Page, peer: str) -> list[float]:
    """Return the seconds from the release of each lasso until Python's answer is on the page."""
    box = page.locator(".overlay" if peer == "ours" else ".js-plotly-plot .nsewdrag").first.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    if peer == "ours":
        page.get_by_role("button", name="Lasso").click()
    times = []
    for number in range(ROUNDS):
        reach = 90 + 6 * number
        page.mouse.move(x - reach, y - reach)
        page.mouse.down()
        for right, down in ((reach, -reach), (reach, reach), (-reach, reach)):
            page.mouse.move(x + right, y + down, steps=5)
        times.append(time_event(page, 'const old = text("chosen"); clock(() => text("chosen") !== old, seen)',
                             page.mouse.up, False))
    return times


RECOLORED = {
    "ours": """const map = find("div.scatter"), old = map.dataset.colored;
               clock(() => map.dataset.colored !== old, seen)""",
    "plotly": """const old = find(".js-plotly-plot").layout.meta;
                 clock(() => ![old, undefined].includes(find(".js-plotly-plot")?.layout?.meta), seen)""",
}


def time_recoloring(page: Page, peer: str) -> list[float]:
    """Return the seconds from each step of the ε slider until the new clusters are drawn."""
    page.get_by_role("slider").focus()
    return [time_event(page, RECOLORED[peer], lambda: page.keyboard.press("ArrowLeft"), True) for _ in range(ROUNDS)]


def time_all_lassos(browser: Browser, url: str) -> dict[str, list[float]]:
    """Time lassos at 100,000 points on both maps and at up to 1,000,000 on ours, and loading 1,000,000 points."""
    times: dict[str, list[float]] = {}
    for peer, count in (("ours", 100_000), ("plotly", 100_000), ("ours", 300_000), ("ours", 1_000_000)):
        page, loading = open_page(browser, url, "lasso", peer, count)
        times[f"lasso {peer} {count}"] = time_lassos(page, peer)
        page.close()
        if count == 1_000_000:
            times["load first 1000000"] = [loading]
            times["load 1000000"] = []
            for _ in range(3):
                page, loading = open_page(browser, url, "lasso", peer, count)
                times["load 1000000"].append(loading)
                page.close()
    return times


def time_all_recoloring(browser: Browser, url: str) -> dict[str, list[float]]:
    """Time a step of ε at 60,000 points on both maps."""
    times = {}
    for peer in ("ours", "plotly"):
        page, _ = open_page(browser, url, "clusters", peer, 60_000)
        times[f"recolor {peer} 60000"] = time_recoloring(page, peer)
        page.close()
    return times


def time_gallery(browser: Browser, url: str) -> dict[str, list[float]]:
    """Time a rerun of a page with 3,000 tiles, and a click on a tile, until Python's answer is on the page."""
    page, _ = open_page(browser, url, "gallery", "tiles", 3000)
    tiles = page.get_by_role("group", name="Images").get_by_role("button")
    changed = 'const old = text("picked"); clock(() => text("picked") !== old, seen)'
    again = page.get_by_role("button", name="Again")
    times = {"gallery rerun 3000": [time_event(page, changed, again.click, False) for _ in range(ROUNDS)],
             "gallery click 3000": [time_event(page, changed, tiles.nth(3 + number).click, False)
                                    for number in range(ROUNDS)]}
    page.close()
    return times


def measure_heaps(browser: Browser, url: str, server: int) -> dict[str, list[float]]:
    """Return the MB of the page's heap and of the server after 50, 100, … 250 movements of the slider."""
    page, _ = open_page(browser, url, "clusters", "ours", 60_000)
    page.get_by_role("slider").focus()
    tools = page.context.new_cdp_session(page)
    megabytes: dict[str, list[float]] = {"heap browser MB": [], "heap server MB": []}
    for step in range(STEPS + 50):
        page.evaluate(f"(seen) => {{ {RECOLORED['ours']}; }}", True)
        page.keyboard.press("ArrowLeft" if step // 25 % 2 == 0 else "ArrowRight")
        page.evaluate("window.took")
        if step % 50 == 49:
            tools.send("HeapProfiler.collectGarbage")
            used = tools.send("Runtime.getHeapUsage")
            megabytes["heap browser MB"].append((used["usedSize"] + used.get("backingStorageSize", 0)) / 1e6)
            megabytes["heap server MB"].append(psutil.Process(server).memory_info().rss / 1e6)
    page.close()
    return megabytes


def print_median(times: dict[str, list[float]], name: str) -> float:
    print(f"\n{name}: median {median(times[name]):.3f} s, {min(times[name]):.3f} to {max(times[name]):.3f}", end="")
    return median(times[name])


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Browser, str, int]]:
    with serve_page() as page:
        yield page


def test_a_lasso_reaches_python_within_half_a_second(served: tuple[Browser, str, int]) -> None:
    times = time_all_lassos(*served[:2])
    ours, large = print_median(times, "lasso ours 100000"), print_median(times, "lasso ours 300000")
    ratio = print_median(times, "lasso plotly 100000") / ours
    print(f"\nPlotly / ours at 100,000: {ratio:.1f}")
    assert max(ours, large) < 0.5
    assert ratio >= 4
    assert print_median(times, "load 1000000") < 4


def test_a_step_of_epsilon_recolors_60_000_points_within_250_ms(served: tuple[Browser, str, int]) -> None:
    times = time_all_recoloring(*served[:2])
    ours = print_median(times, "recolor ours 60000")
    ratio = print_median(times, "recolor plotly 60000") / ours
    print(f"\nPlotly / ours: {ratio:.1f}")
    assert ours < 0.25
    assert ratio >= 4


def test_a_gallery_of_3_000_tiles_answers_within_250_ms(served: tuple[Browser, str, int]) -> None:
    times = time_gallery(*served[:2])
    assert print_median(times, "gallery rerun 3000") < 0.25
    assert print_median(times, "gallery click 3000") < 0.25


def test_200_movements_of_the_slider_leak_no_memory(served: tuple[Browser, str, int]) -> None:
    for name, sizes in measure_heaps(*served).items():
        print(f"\n{name} after 50, 100, … movements: {', '.join(f'{size:.0f}' for size in sizes)}", end="")
        assert sizes[-1] < 1.1 * sizes[0] + 10


def main(out: Path) -> None:
    """Measure everything and write the record."""
    with serve_page() as (browser, url, server):
        measured = {**time_all_lassos(browser, url), **time_all_recoloring(browser, url),
                    **time_gallery(browser, url), **measure_heaps(browser, url, server)}
        chrome = browser.version
    record = {"command": f"python -m tests.benchmarks.test_instrument {out}",
              "what": "seconds (MB for the heaps), headless Chromium with software GL, peers on the same page and data",
              "device": f"CPU, {os.cpu_count()} cores", "date": datetime.date.today().isoformat(),
              "versions": {"python": platform.python_version(), "chromium": chrome}
              | {name: version(name) for name in ("streamlit", "plotly", "numpy")},
              "medians": {name: round(median(times), 3) for name, times in measured.items()},
              "measured": {name: [round(seconds, 3) for seconds in times] for name, times in measured.items()}}
    out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
