"""The map and the gallery in a real browser, beside Plotly's scattergl with `on_select` on the same page and points.

Times are taken inside the browser, from the event that a person makes to what they see (or what Python answers).
`python -m tests.benchmarks.test_instrument OUT.json` keeps a record of the same measurements.
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

from tests.app.conftest import FLAGS, chromium, serving

PAGE = Path(__file__).with_name("instrument_page.py")
ROUNDS, STEPS = 7, 200
pytestmark = [pytest.mark.benchmark, pytest.mark.browser, pytest.mark.timeout(1800)]

HELP = """() => {
  const inside = (root, found) => root.querySelector(found)
    ?? [...root.querySelectorAll("*")].map((one) => one.shadowRoot && inside(one.shadowRoot, found)).find(Boolean);
  window.find = (found) => inside(document, found);
  const lines = () => [...document.querySelectorAll("p")].map((one) => one.textContent);
  window.text = (start) => lines().find((line) => line.startsWith(start));
  for (const kind of ["pointerup", "keydown", "click"]) {
    window.addEventListener(kind, () => {
      if (window.armed) { window.began = performance.now(); window.armed = false; }
    }, true);
  }
  window.clock = (done, seen) => { // seen: until it is drawn, two frames later
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
def measured_page() -> Iterator[tuple[Browser, str, int]]:
    """A browser, the page's address, and the server's process."""
    with tempfile.TemporaryDirectory() as home:
        environment = os.environ | {"UDML_CACHE": f"{home}/cache", "UDML_RUNS": f"{home}/runs"}
        with serving(str(PAGE), environment) as (url, server), sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
            yield browser, url, server.pid
            browser.close()


def opened(browser: Browser, url: str, view: str, peer: str, count: int) -> tuple[Page, float]:
    """The page once it is drawn, and the seconds until then."""
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


def clocked(page: Page, done: str, act: Callable[[], Any], seen: bool) -> float:
    """Seconds from the event that `act` makes until `done` (JavaScript) holds."""
    page.evaluate(f"(seen) => {{ {done}; }}", seen)
    act()
    took = float(page.evaluate("window.took")) / 1000
    page.wait_for_timeout(700)
    return took


def lassos(page: Page, peer: str) -> list[float]:
    """Seconds from the release of a lasso until Python's answer is on the page."""
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
        times.append(clocked(page, 'const old = text("chosen"); clock(() => text("chosen") !== old, seen)',
                             page.mouse.up, False))
    return times


RECOLORED = {
    "ours": """const map = find("div.scatter"), old = map.dataset.colored;
               clock(() => map.dataset.colored !== old, seen)""",
    "plotly": """const old = find(".js-plotly-plot").layout.meta;
                 clock(() => ![old, undefined].includes(find(".js-plotly-plot")?.layout?.meta), seen)""",
}


def recolors(page: Page, peer: str) -> list[float]:
    """Seconds from one step of the ε slider until the clusters are drawn anew."""
    page.get_by_role("slider").focus()
    return [clocked(page, RECOLORED[peer], lambda: page.keyboard.press("ArrowLeft"), True) for _ in range(ROUNDS)]


def lasso_times(browser: Browser, url: str) -> dict[str, list[float]]:
    """Lassos at 100,000 points on both, at 300,000 and 1,000,000 on ours; and how long a million take to load."""
    found: dict[str, list[float]] = {}
    for peer, count in (("ours", 100_000), ("plotly", 100_000), ("ours", 300_000), ("ours", 1_000_000)):
        page, loading = opened(browser, url, "lasso", peer, count)
        found[f"lasso {peer} {count}"] = lassos(page, peer)
        page.close()
        if count == 1_000_000:
            found["load first 1000000"] = [loading]
            found["load 1000000"] = []
            for _ in range(3):
                page, loading = opened(browser, url, "lasso", peer, count)
                found["load 1000000"].append(loading)
                page.close()
    return found


def recolor_times(browser: Browser, url: str) -> dict[str, list[float]]:
    """A step of ε at 60,000 points on both."""
    found = {}
    for peer in ("ours", "plotly"):
        page, _ = opened(browser, url, "clusters", peer, 60_000)
        found[f"recolor {peer} 60000"] = recolors(page, peer)
        page.close()
    return found


def gallery_times(browser: Browser, url: str) -> dict[str, list[float]]:
    """A rerun beside 3,000 tiles, and a click on one of them, until Python's answer is on the page."""
    page, _ = opened(browser, url, "gallery", "tiles", 3000)
    tiles = page.get_by_role("group", name="Images").get_by_role("button")
    changed = 'const old = text("picked"); clock(() => text("picked") !== old, seen)'
    again = page.get_by_role("button", name="Again")
    found = {"gallery rerun 3000": [clocked(page, changed, again.click, False) for _ in range(ROUNDS)],
             "gallery click 3000": [clocked(page, changed, tiles.nth(3 + number).click, False)
                                    for number in range(ROUNDS)]}
    page.close()
    return found


def heaps(browser: Browser, url: str, server: int) -> dict[str, list[float]]:
    """MB of the page's heap and of the server, after 50 movements of the slider and after 100, 150, … 250."""
    page, _ = opened(browser, url, "clusters", "ours", 60_000)
    page.get_by_role("slider").focus()
    tools = page.context.new_cdp_session(page)
    found: dict[str, list[float]] = {"heap browser MB": [], "heap server MB": []}
    for step in range(STEPS + 50):
        page.evaluate(f"(seen) => {{ {RECOLORED['ours']}; }}", True)
        page.keyboard.press("ArrowLeft" if step // 25 % 2 == 0 else "ArrowRight")
        page.evaluate("window.took")
        if step % 50 == 49:
            tools.send("HeapProfiler.collectGarbage")
            used = tools.send("Runtime.getHeapUsage")
            found["heap browser MB"].append((used["usedSize"] + used.get("backingStorageSize", 0)) / 1e6)
            found["heap server MB"].append(psutil.Process(server).memory_info().rss / 1e6)
    page.close()
    return found


def middle(found: dict[str, list[float]], name: str) -> float:
    print(f"\n{name}: median {median(found[name]):.3f} s, {min(found[name]):.3f} to {max(found[name]):.3f}", end="")
    return median(found[name])


@pytest.fixture(scope="module")
def at() -> Iterator[tuple[Browser, str, int]]:
    with measured_page() as found:
        yield found


def test_python_knows_a_lasso_at_once(at: tuple[Browser, str, int]) -> None:
    found = lasso_times(*at[:2])
    ours, large = middle(found, "lasso ours 100000"), middle(found, "lasso ours 300000")
    ratio = middle(found, "lasso plotly 100000") / ours
    print(f"\nPlotly / ours at 100,000: {ratio:.1f}")
    assert max(ours, large) < 0.5
    assert ratio >= 4
    assert middle(found, "load 1000000") < 4


def test_a_step_of_epsilon_recolors_60_000_points_at_once(at: tuple[Browser, str, int]) -> None:
    found = recolor_times(*at[:2])
    ours = middle(found, "recolor ours 60000")
    ratio = middle(found, "recolor plotly 60000") / ours
    print(f"\nPlotly / ours: {ratio:.1f}")
    assert ours < 0.25
    assert ratio >= 4


def test_a_gallery_of_3_000_tiles_answers_at_once(at: tuple[Browser, str, int]) -> None:
    found = gallery_times(*at[:2])
    assert middle(found, "gallery rerun 3000") < 0.25
    assert middle(found, "gallery click 3000") < 0.25


def test_200_movements_leave_the_memory_as_it_was(at: tuple[Browser, str, int]) -> None:
    for name, sizes in heaps(*at).items():
        print(f"\n{name} after 50, 100, … movements: {', '.join(f'{size:.0f}' for size in sizes)}", end="")
        assert sizes[-1] < 1.1 * sizes[0] + 10


def main(out: Path) -> None:
    """Measure all and keep the record."""
    with measured_page() as (browser, url, server):
        measured = {**lasso_times(browser, url), **recolor_times(browser, url), **gallery_times(browser, url),
                    **heaps(browser, url, server)}
        chrome = browser.version
    record = {"command": f"python -m tests.benchmarks.test_instrument {out}",
              "what": "seconds (MB for the heaps), headless Chromium with software GL, peers on the same page and data",
              "device": f"CPU, {os.cpu_count()} cores", "date": datetime.date.today().isoformat(),
              "versions": {"python": platform.python_version(), "chromium": chrome}
              | {name: version(name) for name in ("streamlit", "plotly", "numpy")},
              "medians": {name: round(median(times), 3) for name, times in measured.items()},
              "measured": {name: [round(one, 3) for one in times] for name, times in measured.items()}}
    out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
