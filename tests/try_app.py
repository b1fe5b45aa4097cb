"""Start the app that a wheel installed, beside foreign files of the same names, and use it in a real browser.

`python -m tests.try_app PROGRAM FOLDER`, in an environment with Playwright: PROGRAM is `udml-explorer` of another
environment, and FOLDER an empty folder to work in.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from experiments.real_server import FLAGS, STARTING, find_browser
from tests.running import write_digits

FOREIGN = ("app.py", "serve.py", "pages/__init__.py", "pages/data.py", "streamlit.py", "udml_core/__init__.py")
"""Files of a user, in the folder where the command is typed."""
OPENER = """#!/bin/sh
echo "$1" > opened.part && mv opened.part opened.txt
"""
"""In place of a browser: notes the address."""
MILLISECONDS = 120_000


@contextmanager
def started(program: str, home: Path, *words: str) -> Iterator[str]:
    """Start the app; yield the address that it opens in the browser, and end it by Ctrl+C."""
    (home / "opened.txt").unlink(missing_ok=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("UDML_", "PYTHON"))}
    environment |= {"BROWSER": f"{home / 'browser.sh'} %s", "UDML_CACHE": str(home / "cache")}
    with (home / "printed.txt").open("w+", encoding="utf-8") as printed:
        server = subprocess.Popen([program, *words], cwd=home, env=environment, stdout=printed, stderr=printed)
        try:
            deadline = time.monotonic() + STARTING
            while not (home / "opened.txt").exists():
                assert server.poll() is None, (home / "printed.txt").read_text(encoding="utf-8")
                assert time.monotonic() < deadline, "no browser was opened"
                time.sleep(0.1)
            yield (home / "opened.txt").read_text(encoding="utf-8").strip()
            server.send_signal(signal.SIGINT)
            assert server.wait(60) == 0, "Ctrl+C must end the server quietly"
        finally:
            server.kill()
        printed.seek(0)
        lines = printed.read()
    assert not re.search("Traceback|Abort", lines), lines
    assert re.search(r"^UDML Explorer [\d.]+: http://", lines, re.MULTILINE), "a browser elsewhere needs the address"
    assert ("/data?dataset=" in lines) == bool(words), lines
    assert "Streamlit app" not in lines
    assert lines.endswith("UDML Explorer has ended. Runs in progress continue.\n"), lines
    assert ("Port 8501 is taken, so the app uses port 85" in lines) == (":8501" not in lines), lines


def settled(page: Page) -> None:
    """Wait until the page no longer runs, and look for errors."""
    expect(page.locator("[data-testid=stApp]")).to_have_attribute("data-test-script-state", "notRunning",
                                                                  timeout=MILLISECONDS)
    assert page.locator("[data-testid=stException]").count() == 0, page.inner_text("body")


def use(page: Page, url: str) -> None:
    """Browse the folder, and open an example's map, a lesson and the records."""
    expect(page.get_by_text("60 of 60 images")).to_be_visible(timeout=MILLISECONDS)
    server = url.partition("data?")[0]
    page.goto(f"{server}learn")
    expect(page.get_by_text(re.compile(r"^\d+ lessons, "))).to_be_visible(timeout=MILLISECONDS)
    page.goto(f"{server}explore")
    settled(page)
    expect(page.locator("canvas").first).to_be_visible(timeout=MILLISECONDS)
    page.goto(f"{server}results")
    settled(page)


def main(program: str, folder: str) -> None:
    """Start the app twice: with a folder, and while its usual port is taken."""
    home, began = Path(folder).resolve(), time.monotonic()
    write_digits(home / "photos")
    for name in FOREIGN:
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text("raise ImportError('a file of the user was imported')\n", encoding="utf-8")
    (home / "browser.sh").write_text(OPENER, encoding="utf-8")
    (home / "browser.sh").chmod(0o755)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=FLAGS)
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        with started(program, home, "photos") as url:
            page.goto(url)
            images = page.get_by_role("group", name="Images of the data set").get_by_role("button")
            expect(images.first).to_be_visible(timeout=MILLISECONDS)
            print(f"{Path(program).name} shows the first picture after {time.monotonic() - began:.1f} s")
            use(page, url)
        assert any((home / "runs").iterdir()), "the audit of the folder was started"
        browser.close()
    with suppress(OSError), socket.create_server(("127.0.0.1", 8501)), started(program, home) as url:
        assert re.fullmatch(r"http://127\.0\.0\.1:850[2-9]/", url), url
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run([program, "--no-browser", "--port", port], cwd=home, text=True, capture_output=True)
    assert done.returncode == 1
    assert f"Port {port} is used" in done.stderr
    assert "Traceback" not in done.stderr


if __name__ == "__main__":
    main(*sys.argv[1:])
