"""Photograph every page with the example runs: one picture of all pages in light, in dark and on a phone.

    python -m experiments.contact_sheet assets/readme/pages.webp

With `--keep FOLDER`, the full-size pictures are kept there, with a fourth one of a projector's size.
"""

from __future__ import annotations

import argparse
import io
import os
import tempfile
from pathlib import Path

from PIL import Image, ImageDraw
from playwright.sync_api import Browser, Page, sync_playwright

from experiments.latency import ISIF, NML, PLM, RPML, SSDML
from experiments.real_server import FLAGS, find_browser, serving

RUNS = {"home": RPML, "explore": RPML, "retrieval": ISIF, "refine": ISIF, "clusters": RPML,
        "neighborhoods": PLM, "triplets": RPML, "instances": ISIF, "affinity": SSDML, "labels": SSDML, "pairs": NML,
        "runs": RPML, "compare": RPML, "data": "", "train": "", "results": "", "learn": ""}
"""Page: the example that shows it best."""
VIEWS = {"light": ("light", (1400, 900)), "dark": ("dark", (1400, 900)), "phone": ("light", (390, 844))}
PROJECTOR = {"projector": ("dark", (2560, 1440))}
HEIGHT, GAP, HEAD, A_ROW = 300, 8, 22, 3
"""Pixels of a small picture, between pictures and above them; number of pages side by side."""
PATIENCE, DRAWING = 600_000, 4000
"""Milliseconds that a page has to appear, and that its components have to draw."""
QUIET = """() => !document.querySelector(
  "[data-testid=stApp][data-test-script-state=running], [data-testid=stMain] [data-testid=stSkeleton]")"""


def photograph(page: Page, url: str) -> Image.Image:
    """Open a page, wait until it is drawn, and return its picture."""
    page.goto(url)
    page.wait_for_selector("[data-testid=stMain] h1, .instrument[data-drawn]")
    page.wait_for_timeout(1000)
    page.wait_for_function(QUIET)
    page.wait_for_timeout(DRAWING)  # Components draw some time after Streamlit has finished.
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def photograph_all(browser: Browser, url: str, views: dict[str, tuple[str, tuple[int, int]]],
                   keep: Path | None) -> dict[str, list[Image.Image]]:
    """Return the pictures of every page, in the order of the views."""
    pictures: dict[str, list[Image.Image]] = {name: [] for name in RUNS}
    for view, (scheme, (width, height)) in views.items():
        page = browser.new_page(color_scheme="dark" if scheme == "dark" else "light",
                                viewport={"width": width, "height": height})
        page.set_default_timeout(PATIENCE)
        for name, run in RUNS.items():
            pictures[name].append(photograph(page, f"{url}/{'' if name == 'home' else name}{run and f'?run={run}'}"))
            if keep is not None:
                pictures[name][-1].save(keep / f"{name}-{view}.png")
            print(f"{name}, {view}", flush=True)
        page.close()
    return pictures


def contact_sheet(pictures: dict[str, list[Image.Image]]) -> Image.Image:
    """Return one picture with a small picture of every view of every page, below the page's name."""
    small = {name: [view.resize((HEIGHT * view.width // view.height, HEIGHT), Image.Resampling.LANCZOS)
                    for view in of_page] for name, of_page in pictures.items()}
    cell = max(sum(view.width + GAP for view in of_page) for of_page in small.values()) + GAP
    rows = -(-len(small) // A_ROW)
    sheet = Image.new("RGB", (cell * A_ROW, rows * (HEAD + HEIGHT + GAP)), "#808080")
    draw = ImageDraw.Draw(sheet)
    for number, (name, of_page) in enumerate(small.items()):
        left, top = cell * (number % A_ROW) + GAP, (HEAD + HEIGHT + GAP) * (number // A_ROW)
        draw.text((left, top + 4), name.capitalize(), "white", font_size=14)
        for view in of_page:
            sheet.paste(view, (left, top + HEAD))
            left += view.width + GAP
    return sheet


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        environment = os.environ | {"UDML_CACHE": f"{home}/cache", "UDML_RUNS": f"{home}/runs", "UDML_MAPS": "0"}
        browser = playwright.chromium.launch(executable_path=find_browser(), args=FLAGS)
        with serving("serve.py", environment) as (url, _):
            pictures = photograph_all(browser, url, VIEWS | (PROJECTOR if options.keep is not None else {}),
                                      options.keep)
        browser.close()
    sheet = contact_sheet({name: of_page[:len(VIEWS)] for name, of_page in pictures.items()})
    sheet.save(options.out, quality=70)
    print(f"{options.out}: {len(pictures)} pages, {options.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
