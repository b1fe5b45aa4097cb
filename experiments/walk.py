"""Record a walk of a newcomer, from the start of the server to "I see what training did", as an animated picture.

    python -m experiments.walk assets/readme/walk.webp

Only the example that opens by itself is used. The printed seconds count from the start of the server.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from experiments.real_server import FLAGS, find_browser, serving

WIDTH, SHOWN_MS = 900, 1600


def walk(page: Page, begin: float) -> list[Image.Image]:
    """Open Home, watch the training, and look at the same images before and after it."""
    frames: list[Image.Image] = []

    def keep(words: str) -> None:
        page.wait_for_function("!document.querySelector('[data-testid=stApp][data-test-script-state=running]')")
        page.wait_for_timeout(300)
        picture = Image.open(io.BytesIO(page.screenshot()))
        frames.append(picture.convert("RGB").resize((WIDTH, WIDTH * picture.height // picture.width)))
        print(f"{time.perf_counter() - begin:5.1f} s  {words}", flush=True)

    page.goto("/")
    page.locator(".instrument[data-drawn]").wait_for()
    keep("Home plays the training of an example")
    page.get_by_role("slider", name="Epoch").focus()
    page.keyboard.press("Home")
    keep("before training: the query's neighbors and their recall")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    keep("three epochs later")
    page.keyboard.press("End")
    keep("after training")
    page.get_by_role("link", name="Retrieval").first.click()
    page.get_by_role("group", name="The 10 nearest images, after training").wait_for()
    keep("Retrieval: the query that training changed most, before and after")
    page.locator(".st-key-query-next button").first.click()
    keep("the next query")
    page.get_by_role("link", name="Explore").first.click()
    page.locator(".scatter[data-drawn]").first.wait_for()
    keep("Explore: the map, and the neighbors of the current image")
    return frames


def main(out: Path) -> None:
    with tempfile.TemporaryDirectory() as home:
        environment = os.environ | {"UDML_CACHE": f"{home}/cache", "UDML_RUNS": f"{home}/runs", "UDML_MAPS": "0"}
        begin = time.perf_counter()
        with serving("serve.py", environment) as (url, _), sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=find_browser(), args=FLAGS)
            page = browser.new_page(base_url=url, viewport={"width": 1400, "height": 900})
            page.set_default_timeout(120_000)
            frames = walk(page, begin)
            browser.close()
    frames[0].save(out, save_all=True, append_images=frames[1:], duration=SHOWN_MS, loop=0, quality=60)
    print(f"{out}: {len(frames)} frames, {out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
