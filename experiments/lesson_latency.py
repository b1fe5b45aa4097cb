"""Measure how long every lesson takes to show its picture and to answer, in a real Chromium.

    python -m experiments.lesson_latency --out assets/results/lessons.json

Each lesson is opened in the app, as `make app` serves it, and as an exported file from disk. `picture` is the time from
the navigation until the lesson has drawn; in the app it contains Streamlit's own start. An answer is timed from the key
on the lesson's first control until the browser has painted the next frame.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from statistics import median

from playwright.sync_api import Browser, Page, sync_playwright

from experiments.real_server import FLAGS, find_browser, serving
from experiments.recording import provenance, record_parser, write_record
from udml_core.results.lessons import Lesson, course, export_course

VISITS, KEYS = 5, 12
CONTROL = ".controls :is(input, [aria-pressed=false]), .stage :is([role=slider], button), .controls button"
WATCH = """() => {
  window.answers = [];
  addEventListener("keydown", (event) => {
    requestAnimationFrame(() => setTimeout(() => window.answers.push(performance.now() - event.timeStamp)));
  }, true);
}"""
DRAWN = """() => new Promise((resolve) => {
  const find = (root) => root.querySelector(".lesson[data-drawn]")
    ?? [...root.querySelectorAll("*")].map((element) => element.shadowRoot && find(element.shadowRoot)).find(Boolean);
  const look = () => find(document) ? resolve(performance.now()) : setTimeout(look, 5);
  look();
})"""


def main() -> None:
    parser = record_parser(__doc__)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        files, home = Path(folder) / "course", Path(folder)
        export_course(files)
        environment = os.environ | {"UDML_CACHE": str(home / "cache"), "UDML_RUNS": str(home / "runs")}
        with serving("serve.py", environment) as (url, _):
            browser = playwright.chromium.launch(executable_path=find_browser(), args=FLAGS)
            rows = {row_name(lesson): measure(browser, lesson, url, files / f"{lesson.id}.html") for lesson in course()}
            browser.close()
    write_record(options.out, provenance("lesson_latency") | {
        "protocol": f"window of 1400 x 900, headless Chromium with software GL on 2 CPU cores, which also run the "
                    f"server; medians of {VISITS} visits and {KEYS} keys; milliseconds; size of the file in kB",
        "datasets": {"Lessons": {"rows": rows}}})


def row_name(lesson: Lesson) -> str:
    """Return the name of a lesson's row in the record."""
    return f"{lesson.number}. {lesson.title}"


def measure(browser: Browser, lesson: Lesson, url: str, file: Path) -> dict[str, float]:
    """Return the times of a lesson in the app and from disk."""
    in_app = [visit(browser, f"{url}/learn?lesson={lesson.id}")[0] for _ in range(VISITS)]
    from_disk, answers = zip(*(visit(browser, file.as_uri()) for _ in range(VISITS)), strict=True)
    row = {"picture in the app": median(in_app), "picture from disk": median(from_disk),
           "answer": median(time for each in answers for time in each),
           "slowest answer": max(time for each in answers for time in each), "file kB": file.stat().st_size / 1000}
    print(lesson.id, {name: round(value) for name, value in row.items()}, flush=True)
    return row


def visit(browser: Browser, address: str) -> tuple[float, list[float]]:
    """Open a lesson.

    Returns:
        Milliseconds until its picture, and of every answer.
    """
    with browser.new_context(viewport={"width": 1400, "height": 900}) as context:
        page = context.new_page()
        page.goto(address)
        drawn: float = page.evaluate(DRAWN)
        return drawn, press(page)


def press(page: Page) -> list[float]:
    """Return the milliseconds of every answer to a key on the lesson's first control."""
    page.get_by_role("button", name="Skip the question").click()
    page.evaluate(WATCH)
    control = page.locator(CONTROL).first
    is_button = control.evaluate("control => control.tagName === 'BUTTON'")
    for _ in range(KEYS):
        control.focus()
        page.keyboard.press("Enter" if is_button else "ArrowRight")
    page.wait_for_timeout(100)
    times: list[float] = page.evaluate("window.answers")
    return times


if __name__ == "__main__":
    main()
