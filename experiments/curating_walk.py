"""Walk through the app as a curator would, from a messy folder to named folders; count clicks and seconds of waiting.

`python -m experiments.curating_walk FOLDER --out assets/results/curating.json` expects a folder of
`python -m experiments.messy`. A real server and Chromium are driven through the pages: import, copies, quality, a
sample, groups with their names, proposed names, and folders. The answers come from the true classes, so the walk
says nothing about a curator's own minutes: it has no doubts, reads no text and looks at nothing. It records what the
app itself asks for: clicks, keys, and the seconds in which it works and a curator waits. The folders are read back.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, sync_playwright

from experiments.real_server import FLAGS, find_browser, serving
from experiments.recording import provenance, record_parser, write_record

CHECKS = ("Blurry", "Dark", "Bright", "Low information", "Odd aspect ratio", "Odd size")
PURE, FEWEST = 0.7, 3
"""Share of the images in view that must show one class for a name, and the smallest group that is named."""
MOST_PROPOSALS = 20
LONGEST = 900_000
"""Milliseconds that the features and the audit may take."""
QUIET = "!document.querySelector('[data-testid=stApp][data-test-script-state=running]')"


class Curator:
    """Acts on the page, and counts what each step takes.

    Args:
        page: The browser's page.
        truth: The true class of each file.
    """

    def __init__(self, page: Page, truth: dict[str, str]) -> None:
        self.page, self.truth = page, truth
        self.steps: dict[str, dict[str, float]] = {}
        self.counts: Counter[str] = Counter()
        self.waited = 0.0

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Count the clicks, keys and seconds of waiting of a step."""
        self.counts.clear()
        self.waited = 0.0
        yield
        self.steps[name] = {"clicks": self.counts["click"], "keys": self.counts["key"],
                            "seconds waited": round(self.waited, 1)}
        print(f"{name}: {self.steps[name]}", flush=True)

    def act(self, kind: str, do: Callable[[], object], until: Callable[[], object] | None = None) -> None:
        """Do one thing, and wait until the page has answered."""
        self.counts[kind] += 1
        began = time.perf_counter()
        do()
        if until is not None:
            until()
        self.page.wait_for_timeout(50)  # a script that the action starts is running by then
        self.page.wait_for_function(QUIET)
        self.waited += time.perf_counter() - began

    def click(self, target: Locator, until: Callable[[], object] | None = None) -> None:
        self.act("click", lambda: target.first.click(), until)

    def press(self, key: str, until: Callable[[], object] | None = None) -> None:
        self.page.evaluate("document.activeElement?.blur()")
        self.act("key", lambda: self.page.keyboard.press(key), until)

    def write(self, label: str, text: str) -> None:
        """Type into a field and press Enter, which counts as one key."""
        field = self.page.get_by_label(label, exact=True)
        field.fill(text)
        self.act("key", lambda: field.press("Enter"))

    def tiles(self, group: str | re.Pattern[str]) -> list[str]:
        """Return the names of the images that a gallery shows."""
        shown = self.page.get_by_role("group", name=group).locator(".tile").evaluate_all(
            "tiles => tiles.map((tile) => tile.getAttribute('aria-label'))")
        return [next((name for name in self.truth if label.startswith(name)), label) for label in shown]


def bring(curator: Curator, photos: Path) -> None:
    """Import the folder, and wait for the audit of its images."""
    page = curator.page
    with curator.step("import"):
        curator.click(page.locator("[data-testid=stExpander] summary", has_text="Import your own images"))
        curator.write("Folder on this computer, a ZIP or TAR archive, or a table of embeddings", str(photos))
        curator.click(page.get_by_role("button", name="Use this folder"),
                      lambda: page.get_by_role("button", name=re.compile("Audit: ")).wait_for(timeout=LONGEST))


def clean(curator: Curator) -> None:
    """Exclude all but the best of the copies, and what each check of quality finds."""
    page = curator.page
    with curator.step("copies"):
        curator.click(page.get_by_role("button", name=re.compile("Audit: ")))
        for finding in ("Near-duplicates", "Exact copies"):
            curator.click(page.get_by_role("radio", name=re.compile(finding)))
            if page.get_by_role("button", name=re.compile("Exclude all but")).count():
                curator.press("e")
    with curator.step("quality"):
        curator.click(page.get_by_role("radio", name=re.compile("Quality")))
        for check in CHECKS:
            curator.click(page.get_by_role("radio", name=check, exact=True))
            offer = page.locator("[class*=st-key-audit-offer-] button").first
            offer.wait_for()
            if offer.is_enabled():
                curator.press("e")


def look_at_sample(curator: Curator) -> None:
    """Show a sample of diverse images in the gallery."""
    page = curator.page
    with curator.step("sample"):
        curator.click(page.get_by_role("radio", name="Gallery", exact=True))
        curator.click(page.locator(".st-key-data-sample input"))
        curator.click(page.get_by_role("option", name=re.compile("diverse", re.IGNORECASE)))


def name_groups(curator: Curator) -> None:
    """Open each group once; name it if most of its images in view show one class, without the others."""
    page, groups = curator.page, curator.page.get_by_role("group", name="Groups without a name")
    with curator.step("groups and names"):
        link = page.locator("[data-testid=stSidebarNavLink][href$='/label']")
        curator.click(link, lambda: groups.wait_for(timeout=LONGEST))
        seen: set[str] = set()
        while True:
            waiting = [name for name in curator.tiles("Groups without a name") if name not in seen]
            if not waiting:
                return
            seen.add(waiting[0])
            tile = groups.locator(".tile").nth(curator.tiles("Groups without a name").index(waiting[0]))
            border = page.get_by_role("group", name="Images of the group, the border first")
            curator.click(tile, border.wait_for)
            _name_group(curator)


def _name_group(curator: Curator) -> None:
    shown = curator.tiles("Images of the group, the border first")
    label, count = Counter(curator.truth.get(name, "") for name in shown).most_common(1)[0]
    if len(shown) < FEWEST or count < PURE * len(shown) or not label:
        curator.press("Escape")
        return
    images = curator.page.get_by_role("group", name="Images of the group, the border first").locator(".tile")
    for position, name in enumerate(shown):
        if curator.truth.get(name) != label:
            curator.click(images.nth(position))
    curator.write("Class name", label)


def check_names(curator: Curator) -> None:
    """Confirm proposed names in bulk, after the wrong images were selected and rejected."""
    page = curator.page
    with curator.step("proposed names"):
        curator.click(page.get_by_role("tab", name="Proposed names"))
        for _ in range(MOST_PROPOSALS):
            offer = page.get_by_role("button", name=re.compile(r"^Not .*selected"))
            if not offer.count():
                return
            label = re.sub(r"^.*?Not (.*): .*$", r"\1", offer.first.inner_text().replace("\n", " "))
            shown = curator.tiles(re.compile("Images that look like"))
            images = page.get_by_role("group", name=re.compile("Images that look like")).locator(".tile")
            wrong = [row for row, name in enumerate(shown) if curator.truth.get(name) != label]
            for row in wrong:
                curator.click(images.nth(row))
            if wrong:
                curator.press("n")
            if len(wrong) < len(shown):
                curator.press("y")


def write_folders(curator: Curator, target: Path) -> None:
    """Write one folder for each class."""
    page = curator.page
    with curator.step("folders"):
        curator.click(page.get_by_role("tab", name="Folders"))
        curator.page.get_by_label("Folder to write to", exact=True).fill(str(target))
        plan = page.get_by_role("button", name=re.compile("Write .* image"))
        curator.click(page.get_by_role("button", name="Show plan"), plan.wait_for)
        curator.click(plan, lambda: page.get_by_text(re.compile("written to")).wait_for(timeout=LONGEST))


def result_of(target: Path, key: dict[str, Any], excluded: int) -> dict[str, float]:
    """Read the folders back, and return their purity and what stayed without a name."""
    found = {path.name: path.parent.name for path in target.glob("*/*.*") if path.name in key["classes"]}
    right = sum(key["classes"][name] == folder for name, folder in found.items())
    left = len(key["classes"]) - excluded
    return {"photographs": len(key["classes"]), "excluded": excluded, "folders": len(set(found.values())),
            "named": len(found), "unnamed": left - len(found),
            "purity, %": round(100 * right / max(1, len(found)), 1), "named, %": round(100 * len(found) / left, 1)}


def walk(folder: Path, home: Path) -> dict[str, Any]:
    """Walk through the app with an empty cache, and return what each step took and what came of it."""
    key = json.loads((folder / "key.json").read_text(encoding="utf-8"))
    environment = os.environ | {"UDML_CACHE": f"{home}/cache", "UDML_RUNS": f"{home}/runs", "UDML_EXAMPLES": "0"}
    os.environ.update(environment)
    with serving("serve.py", environment) as (url, _), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=FLAGS)
        page = browser.new_page(base_url=url, viewport={"width": 1400, "height": 900})
        page.set_default_timeout(60_000)
        page.goto("/data")
        page.wait_for_selector("h1")
        curator = Curator(page, key["classes"])
        bring(curator, folder / "photos")
        clean(curator)
        look_at_sample(curator)
        name_groups(curator)
        check_names(curator)
        write_folders(curator, home / "sorted")
        browser.close()
    from udml_core.data import catalog  # after the environment names the cache
    from udml_core.data.given.exclusions import excluded_names

    excluded = len(excluded_names(catalog.load(str(folder / "photos"))))
    return {"steps": curator.steps, "result": result_of(home / "sorted", key, excluded)}


def main() -> None:
    """Walk, and write the record."""
    parser = record_parser(__doc__)
    parser.add_argument("folder", type=Path, help="a folder of experiments.messy")
    values = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        found = walk(values.folder.resolve(), Path(home))
    total = {name: round(sum(step[name] for step in found["steps"].values()), 1)
             for name in ("clicks", "keys", "seconds waited")}
    rows = {name: {title: [value, 0.0] for title, value in row.items()}
            for name, row in {**found["steps"], "in all": total}.items()}
    write_record(values.out, provenance("curating_walk") | {
        "protocol": "Messy folder of experiments.messy, a window of 1400 x 900 in headless Chromium on the cores that "
                    "also run the server, an empty cache. Answers come from the true classes; seconds waited are the "
                    "seconds between an action and the finished page. They hold none of a curator's own minutes.",
        "result": found["result"],
        "datasets": {f"Messy folder, {found['result']['photographs']:,} photographs": {"rows": rows}}})


if __name__ == "__main__":
    main()
