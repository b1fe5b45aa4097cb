"""Measure how long every page takes to open and to answer one interaction, in a real Chromium.

    python -m experiments.latency --out assets/results/latency.json

Pages show the example runs, served as `make app` does, in a window of 1400 x 900 pixels with software GL. A visit is
timed from the click on a link until the last change of the page; the first visit of a page after the server's start is
listed apart from later ones. An interaction is timed from the key or mouse event: `first change` is when anything on
the page changed, and `picture` is when the script had ended and the last change was drawn. Home's player runs in the
browser, so its frames per second are counted instead.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Page, sync_playwright

from experiments.real_server import FLAGS, find_browser, serving
from experiments.recording import provenance, record_parser
from pages.parts.shell.views import VIEWS, page_of, views_of
from udml_core.data import catalog
from udml_core.runs import create_run
from udml_core.work import jobs, sweeps
from udml_core.work.workers import train

ROUNDS, VISITS, QUIET = 7, 5, 400
RPML, PLM, ISIF, SSDML, NML = (f"20261122-12{minute:02}00-{name}" for minute, name in enumerate(
    ("rpml-digits", "plm-clothes", "isif-emoji", "ssdml-digits", "nml-digits")))
WATCH = """() => {
  const state = () => document.querySelector("[data-testid=stApp]")?.dataset.testScriptState;
  for (const kind of ["pointerdown", "keydown"]) {
    addEventListener(kind, () => {
      if (!window.armed) return;
      window.armed = false;
      window.began = performance.now();
    }, true);
  }
  window.watch = (quiet) => {
    window.armed = true;
    let first = 0, last = 0, ran = false;
    const roots = [document.body];
    const observer = new MutationObserver(() => {
      if (window.armed) return;
      last = performance.now();
      first ||= last;
    });
    const seen = new Set();
    const observe = (root) => {
      if (seen.has(root)) return;
      seen.add(root);
      observer.observe(root, {subtree: true, childList: true, attributes: true, characterData: true});
      for (const element of root.querySelectorAll("*")) if (element.shadowRoot) observe(element.shadowRoot);
    };
    observe(document.body);
    window.took = new Promise((resolve) => {
      const look = () => {
        observe(document.body);
        const now = performance.now();
        if (!window.armed && first && state() === "notRunning" && now - last > quiet) {
          observer.disconnect();
          requestAnimationFrame(() => requestAnimationFrame(() => {
            const drawing = performance.now() - now;  // how long two frames take
            resolve([first - window.began, last - window.began + drawing]);
          }));
        } else if (!window.armed && !first && now - window.began > 3000) {
          resolve(null);  // nothing changed, for example because a click hit no image
        } else setTimeout(look, 5);
      };
      look();
    });
  };
}"""
FRAMES = """() => new Promise((resolve) => {
  let frames = 0;
  const begin = performance.now();
  const step = () => {
    frames += 1;
    const passed = performance.now() - begin;
    if (passed > 4000) resolve(1000 * frames / passed); else requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})"""


Act = Callable[[Page, int], None]


def press_slider(page: Page, turn: int) -> None:
    """Move the page's first slider by one step, forth and back."""
    page.get_by_role("slider").first.focus()
    page.keyboard.press("ArrowLeft" if turn % 2 else "ArrowRight")


def click(selector: str) -> Act:
    """Return an interaction that clicks an element."""
    return lambda page, _turn: page.locator(selector).first.click()


def choose_next(group: str) -> Act:
    """Return an interaction that clicks the choices of a group in turn, beginning with the second."""
    def act(page: Page, turn: int) -> None:
        choices = page.locator(f"{group} button")
        choices.nth((turn + 1) % choices.count()).click()
    return act


def choose_tab(page: Page, turn: int) -> None:
    """Open the tabs of the chosen run's details in turn, beginning with the second."""
    tabs = page.get_by_role("tab")
    tabs.nth((turn + 1) % tabs.count()).click()


def click_map(page: Page, turn: int) -> None:
    """Click the map, at another position each time."""
    box = page.locator(".overlay").first.bounding_box()
    assert box is not None
    share = 0.3 + 0.05 * (turn % 8)
    page.mouse.click(box["x"] + share * box["width"], box["y"] + (0.8 - share) * box["height"])


def follow_lesson(page: Page, turn: int) -> None:
    """Open the first lesson from the course's path, or return to the path."""
    (page.get_by_role("link", name="All lessons") if turn % 2 else page.locator(".path a")).first.click()


def open_measures(page: Page, _turn: int) -> None:
    """Open the list of measures that choose the best runs of a sweep."""
    page.locator("[data-testid=stSelectbox]", has_text="Choose the best by").locator("input").click()
    page.get_by_role("option").first.wait_for()
    page.wait_for_timeout(QUIET)


def choose_option(page: Page, turn: int) -> None:
    """Click an option of the open list, beginning with the second."""
    options = page.get_by_role("option")
    options.nth((turn + 1) % options.count()).click()


INTERACTIONS: dict[str, tuple[str, str, Act]] = {
    "": (RPML, "move the epoch", press_slider),
    "data": (RPML, "change the view", choose_next(".st-key-data-view")),
    "labels": (SSDML, "move γ", press_slider),
    "train": (RPML, "move α", press_slider),
    "runs": (RPML, "open the next tab", choose_tab),
    "explore": (PLM, "click an image on the map", click_map),
    "retrieval": (PLM, "next query", click(".st-key-query-next button")),
    "refine": (RPML, "move the first slider", press_slider),
    "compare": (RPML, "change the part", choose_next(".st-key-compare-part")),
    "clusters": (RPML, "move ε", press_slider),
    "neighborhoods": (PLM, "move k", press_slider),
    "triplets": (RPML, "move α", press_slider),
    "instances": (ISIF, "move τ", press_slider),
    "affinity": (SSDML, "move γ", press_slider),
    "pairs": (NML, "move b", press_slider),
    "results": (RPML, "choose a table", click("[data-testid=stExpander] summary")),
    "learn": (RPML, "open a lesson, and return", follow_lesson),
    "sweeps": (RPML, "choose another measure", choose_option),
    "benchmark": (RPML, "change what training uses", choose_next(".st-key-benchmark-uses")),
}
"""By page: the run, the name of the interaction, and the interaction."""
PREPARATIONS: dict[str, Act] = {"sweeps": open_measures}
"""By page: what happens before each interaction and is not timed."""
SWEEP: dict[str, Any] = {"data": "digits", "methods": {"pca": {"dimension": [4, 8, 16]}},
                         "options": {"backbone": "pixels", "split": "seen", "device": "cpu"}}
"""Three runs of seconds, because a page without sweeps has no interaction."""


def follow_link(page: Page, name: str) -> None:
    """Click a page's link in the sidebar, or a view in the control of its page if that page is shown.

    The link of the page that is shown would keep its view.
    """
    if views_of(page_of(name)) and page.url.partition("?")[0].endswith(f"/{page_of(name)}"):
        page.locator("[class*=st-key-view-of-]").get_by_text(VIEWS[name].title, exact=True).first.click()
    else:
        page.locator(f"[data-testid=stSidebarNavLink][href$='/{page_of(name)}']").first.click()


def timed(page: Page, act: Callable[[], None]) -> tuple[float, float] | None:
    """Return the milliseconds from an event until the first change and until the finished picture.

    Returns:
        Both times; None if nothing changed.
    """
    page.evaluate(f"watch({QUIET})")
    act()
    took = page.evaluate("window.took")
    page.wait_for_timeout(300)
    return took and (took[0], took[1])


def measure(page: Page, name: str) -> dict[str, float]:
    """Return the medians of visits and of the interaction of a page."""
    run, _, act = INTERACTIONS[name]
    first, *others = views_of(page_of(name)) or [name]
    other = first if name in others else "explore" if name == "results" else "results"
    page.goto(f"/{page_of(other)}?run={run}")
    page.wait_for_selector("h1")
    page.wait_for_timeout(2000)
    page.evaluate(WATCH)
    visits = []
    for visit in range(VISITS):
        if took := timed(page, lambda: follow_link(page, name)):
            visits.append(took[1])
        if visit < VISITS - 1:
            timed(page, lambda: follow_link(page, other))
    page.wait_for_timeout(1500)  # background work of the visit, such as a warm-up, is over
    answers = []
    for turn in range(ROUNDS):
        if name in PREPARATIONS:
            PREPARATIONS[name](page, turn)
        if took := timed(page, partial(act, page, turn)):
            answers.append(took)
    row = {"first visit ms": visits[0], "later visits ms": median(visits[1:]),
           "first change ms": median(first for first, _ in answers), "picture ms": median(last for _, last in answers),
           "slowest picture ms": max(last for _, last in answers)}
    if not name:
        row["frames per second"] = page.evaluate(FRAMES)
    return {title: round(value) for title, value in row.items()}


def train_sweep(root: Path) -> None:
    """Train the runs of `SWEEP` in this process, and store them as a sweep in a folder of runs."""
    description = sweeps.make_sweep(SWEEP, "PCA: dimension")
    dataset = catalog.load(SWEEP["data"])
    for planned in sweeps.plan_runs(sweeps.complete(description)):
        train.work(create_run(jobs.plan(planned.request, dataset), root))
    sweeps.start_sweep(description, root)  # finds the runs, so that it queues none


def main() -> None:
    parser = record_parser(__doc__, required=False)
    parser.add_argument("--page", action="append", choices=[name or "home" for name in INTERACTIONS],
                        help="measure only this page; repeatable")
    options = parser.parse_args()
    names = [name for name in INTERACTIONS if not options.page or (name or "home") in options.page]
    rows = {}
    with tempfile.TemporaryDirectory() as home:
        environment = os.environ | {"UDML_CACHE": f"{home}/cache", "UDML_RUNS": f"{home}/runs", "UDML_MAPS": "0"}
        os.environ.update(environment)
        if "sweeps" in names:
            train_sweep(Path(environment["UDML_RUNS"]))
        with serving("serve.py", environment) as (url, _), sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=find_browser(), args=FLAGS)
            for name in names:
                page = browser.new_page(base_url=url, viewport={"width": 1400, "height": 900})
                page.add_init_script("localStorage.setItem('sidebarNavState', 'expanded')")  # all links are there
                page.set_default_timeout(60_000)
                title = f"{(name or 'home').replace('_', ' ').capitalize()}: {INTERACTIONS[name][1]}"
                try:
                    rows[title] = measure(page, name)
                except PlaywrightError as error:
                    print(f"{title}: {error}")
                print(title, rows.get(title), flush=True)
                page.close()
    if options.out:
        record = provenance("latency") | {
            "protocol": "example runs, window of 1400 x 900, headless Chromium with software GL on "
                        f"{os.cpu_count()} CPU cores that also run the server; medians of {VISITS - 1} later visits "
                        f"and {ROUNDS} interactions; milliseconds from the event",
            "datasets": {"Every page": {"rows": rows}}}
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
