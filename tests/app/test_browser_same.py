"""Where "the same" ends in a real Chromium: keys, a reload half-way, undo, and the line in the results."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

import pytest
from PIL import Image
from playwright.sync_api import Page, expect
from sklearn.datasets import load_digits

from tests.app.conftest import App
from tests.app.test_browser import complaints, in_both_windows, settle
from udml_core.data.dataset import Dataset
from udml_core.data.given.judged_pairs import judged_pairs, want_precision
from udml_core.data.given.pair_sets import PairLog
from udml_core.runs import Run
from udml_core.runs.search import Retrieval
from udml_core.runs.search.same import same_threshold

pytestmark = [pytest.mark.browser, pytest.mark.slow]
VIEW = quote("Same or different")


@pytest.fixture
def run(app: App) -> Run:
    """A run on the frozen pixels of the digits."""
    return app.trained(method="frozen")


@pytest.fixture
def dataset(run: Run, app: App, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """The digits, with the app's cache and no judged pair, with a precision that 20 judgments can show."""
    monkeypatch.setenv("UDML_CACHE", app.environment["UDML_CACHE"])
    dataset = run.dataset()
    while judged_pairs(dataset).answers():
        judged_pairs(dataset).undo()
    want_precision(dataset, 0.75)
    return dataset


def shown_pair(page: Page) -> tuple[int, int]:
    """Return the two images on the page."""
    button = page.locator("[class*='st-key-same-S-']")
    expect(button).to_have_count(1)
    first, second = re.findall(r"st-key-same-S-(\d+)-(\d+)", button.get_attribute("class") or "")[0]
    return int(first), int(second)


def press(page: Page, log: PairLog, key: str = "") -> None:
    """Answer by a key, by default as the labels say, and wait for the next pair."""
    labels, (first, second) = log.dataset.labels, shown_pair(page)
    assert labels is not None
    page.keyboard.press(key or ("s" if labels[first] == labels[second] else "d"))
    page.wait_for_function("""(before) => {
      const shown = document.querySelectorAll("[class*='st-key-same-S-']");
      return shown.length === 1 && !shown[0].classList.contains(before);
    }""", arg=f"st-key-same-S-{first}-{second}")
    settle(page)


def test_twenty_pairs_are_judged_with_keys_and_the_line_stands_in_the_results(
        app: App, page: Page, run: Run, dataset: Dataset, tmp_path: Path) -> None:
    log = judged_pairs(dataset)
    page.goto(f"/retrieval?run={run.id}&view={VIEW}")
    settle(page)
    meaning = page.get_by_role("textbox", name="What counts as the same?")
    meaning.fill("")
    meaning.press_sequentially("dusk")  # letters of the keys that answer
    meaning.press("Enter")
    expect(page.get_by_text("Do these two images show the same: dusk?")).to_be_visible()
    assert not log.answers()
    expect(meaning).not_to_be_focused()
    for _ in range(8):
        press(page, log)
    expect(page.get_by_text("Do these two images show the same: dusk?")).to_be_visible()
    skipped = shown_pair(page)
    press(page, log, "k")
    following = shown_pair(page)
    page.reload()
    settle(page)
    assert shown_pair(page) == following, "a reload continues with the same pair"
    expect(page.get_by_text("8 pairs judged.").first).to_be_visible()
    expect(page.get_by_text("1 pair skipped.")).to_be_visible()
    for _ in range(4):
        press(page, log)
    last = list(log.answers())[-1]
    press(page, log, "u")
    assert shown_pair(page) == last
    assert len(log.answers()) == 12
    assert log.answers()[skipped].same is None
    while len(log.read()) < 20:
        press(page, log)
    threshold = same_threshold(Retrieval(run))
    assert threshold is not None
    expect(page.get_by_text(threshold.sentence)).to_be_visible()

    page.locator(".st-key-retrieval-part").get_by_text("This query", exact=True).click()
    tiles = page.get_by_role("group", name=re.compile("The 10 nearest images")).get_by_role("button")
    expect(tiles).to_have_count(10)
    digit = tmp_path / "digit.png"
    Image.fromarray((load_digits().images[1500] * 255 / 16).round().astype("uint8")).save(digit)
    page.locator("input[type=file]").set_input_files(digit)
    expect(page.get_by_text("digit.png")).to_be_visible()
    settle(page)
    distances = [hit.distance for hit in Retrieval(run).search_item(1500, 10)]
    count = 1 + sum(distance <= threshold.distance for distance in distances[:9])
    expect(page.get_by_text(re.compile(rf"\b{count} of 10 count as the same"))).to_be_visible()
    words = [tile.get_attribute("aria-label") or "" for tile in tiles.all()]
    assert ["beyond the threshold" in word for word in words] == [False] * count + [True] * (10 - count)
    assert 0 < count < 10
    assert "end" in (tiles.nth(count).get_attribute("class") or "").split()
    expect(page.get_by_text("dimmed: beyond the threshold")).to_be_visible()
    assert not complaints(page)


@in_both_windows
def test_the_question_fits_into_the_window(page: Page, run: Run, dataset: Dataset) -> None:
    page.goto(f"/retrieval?run={run.id}&view={VIEW}")
    settle(page)
    shown_pair(page)
    expect(page.get_by_role("button", name=re.compile("^Same"))).to_be_in_viewport()
    press(page, judged_pairs(dataset))
    expect(page.get_by_text(re.compile("^Saved: (the same|different)"))).to_have_count(2)  # one for screen readers
    assert not complaints(page)
