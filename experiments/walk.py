"""Record a walk of a newcomer, from `make app` to "I see what training did", as an animated picture in real time.

    python -m experiments.walk assets/readme/walk.webp

The packages are installed, as after the first start. Only the example that opens by itself is used, and every step is a
click or a key that the page shows. A frame is shown for as long as it stood on the screen; the printed seconds count
from `make app`.
"""

from __future__ import annotations

import html
import io
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from experiments.real_server import FLAGS, ROOT, find_browser, wait_until_healthy

COMMAND = ("make", "--old-file", ".venv/ready", "app")
"""`make app` without a look at the installed packages, so that recording never installs any."""
WIDTH = 900
LOOK_MS, LAST_MS = 1500, 4000
"""Time that a newcomer looks at a picture, and that the last frame is shown."""
TERMINAL = "<pre style='font: 22px monospace; margin: 40px'>$ make app\n{}</pre>"


class Recorder:
    """Frames of a page with the time of each."""

    def __init__(self, page: Page) -> None:
        """Begin now."""
        self._page = page
        self._begin = time.perf_counter()
        self.frames: list[Image.Image] = []
        self.times: list[float] = []

    def keep(self, words: str) -> None:
        """Wait until the page is drawn, keep a frame, and look at it."""
        page = self._page
        page.wait_for_function("!document.querySelector('[data-testid=stApp][data-test-script-state=running]')")
        picture = Image.open(io.BytesIO(page.screenshot()))
        self.frames.append(picture.convert("RGB").resize((WIDTH, WIDTH * picture.height // picture.width)))
        self.times.append(time.perf_counter() - self._begin)
        print(f"{self.times[-1]:5.1f} s  {words}", flush=True)
        page.wait_for_timeout(LOOK_MS)

    def save(self, out: Path) -> None:
        """Save the frames with their real durations; the first begins with the recording."""
        ends = [*self.times[1:], self.times[-1] + LAST_MS / 1000]
        begins = [0.0, *self.times[1:]]
        shown = [round(1000 * (end - begin)) for begin, end in zip(begins, ends, strict=True)]
        self.frames[0].save(out, save_all=True, append_images=self.frames[1:], duration=shown, loop=0, quality=60)


@contextmanager
def made_app(environment: dict[str, str]) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Run `make app`; yield the app's address and the process at once."""
    port = environment.get("STREAMLIT_SERVER_PORT", "8501")
    process = subprocess.Popen(COMMAND, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               start_new_session=True)
    try:
        yield f"http://127.0.0.1:{port}", process
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)


def walk(recorder: Recorder, page: Page, url: str) -> None:
    """Open Home, watch the training, and look at the same query before and after it."""
    page.goto(url)
    page.locator(".instrument[data-drawn]").wait_for()
    recorder.keep("Home plays the training of an example")
    page.get_by_role("slider", name="Epoch").focus()
    page.keyboard.press("Home")
    recorder.keep("before training: the query's neighbors beside PCA's")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    recorder.keep("three epochs later")
    page.keyboard.press("End")
    recorder.keep("after training")
    page.locator(".instrument button.search").click()
    page.get_by_role("group", name="The 10 nearest images, after training").wait_for()
    recorder.keep("Search: the same query, before and after")


def main(out: Path) -> None:
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        environment = os.environ | {"UDML_CACHE": f"{home}/cache", "UDML_RUNS": f"{home}/runs", "UDML_MAPS": "0"}
        browser = playwright.chromium.launch(executable_path=find_browser(), args=FLAGS)
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.set_default_timeout(120_000)
        recorder = Recorder(page)
        with made_app(environment) as (url, process):
            assert process.stdout is not None
            said = process.stdout.readline().decode()
            page.set_content(TERMINAL.format(html.escape(said)))
            recorder.keep("make app")
            wait_until_healthy(url, process)
            walk(recorder, page, url)
            recorder.save(out)
        browser.close()
    print(f"{out}: {len(recorder.frames)} frames, {out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
