"""The page Pairs in a real Chromium: keys without a click, pairs as tiles, live sliders."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.app.conftest import App
from tests.app.test_browser import settle
from udml_core.data import catalog
from udml_core.data.given.pair_sets import PairLog, PairSet
from udml_core.runs import Run

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def run(app: App) -> Run:
    """A small finished run on the digits that learned from pairs."""
    return app.trained(method="nml", fields={"dimension": 6, "epochs": 2}, most_pairs=3000)


def labeled_pairs(app: App) -> PairSet:
    """Return the pairs labeled in the app so far."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UDML_CACHE", app.environment["UDML_CACHE"])
        return PairLog(catalog.load("digits")).read()


def current_pair(page: Page) -> str:
    """Return the pair in the address."""
    match = re.search(r"asked=([\d.]+)", page.url)
    assert match, page.url
    return match[1]


def press(page: Page, key: str) -> str:
    """Press a key on the page, wait for the next pair, and return the pair before."""
    before = current_pair(page)
    page.keyboard.press(key)
    page.wait_for_url(lambda url: "asked=" in url and f"asked={before}" not in url)
    settle(page)
    return before


def test_keys_label_pairs_without_a_click_and_a_stored_pair_can_be_selected(app: App, page: Page, run: Run) -> None:
    page.goto(f"/label?tool=pair_labels&run={run.id}")
    expect(page.get_by_role("button", name="Same")).to_be_visible()
    settle(page)
    same = press(page, "s")
    expect(page.get_by_text("are labeled as same.").first).to_be_visible()
    different = press(page, "d")
    labeled = labeled_pairs(app)
    assert [".".join(map(str, sorted(map(int, pair.split("."))))) for pair in (same, different)] == [
        ".".join(map(str, pair)) for pair in labeled.pairs.tolist()]
    assert labeled.same.tolist() == [True, False]
    skipped = press(page, "k")
    assert len(labeled_pairs(app)) == 2
    press(page, "u")
    assert current_pair(page) == skipped
    press(page, "u")
    assert current_pair(page) == different
    assert labeled_pairs(app).same.tolist() == [True]
    tiles = page.get_by_role("group", name="Labeled pairs").get_by_role("button")
    expect(tiles).to_have_count(1)
    tiles.first.click()
    page.wait_for_url(lambda url: f"asked={same}" in url or f"asked={'.'.join(same.split('.')[::-1])}" in url)
    expect(page.get_by_text("This pair is currently labeled same").first).to_be_visible()
    settle(page)
    page.goto(f"/explore?tool=pairs&run={run.id}")
    select_a_stored_pair(page)


def select_a_stored_pair(page: Page) -> None:
    """Select a pair, move b, and open the prototypes."""
    tiles = page.get_by_role("group", name="Stored pairs").get_by_role("button")
    expect(tiles).to_have_count(60)
    settle(page)
    tiles.nth(3).click()
    page.wait_for_url(re.compile(r"pair=\d+\.\d+"))
    expect(tiles.nth(3)).to_have_attribute("aria-current", "true")
    settle(page)
    page.get_by_role("slider", name=re.compile("^Distance threshold")).focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile("bias=0.11"))
    expect(page.get_by_text("violate the margin at b = 0.11")).to_be_visible()
    page.get_by_text("Prototypes", exact=True).click()
    page.wait_for_url(re.compile("show=prototypes"))
    expect(page.get_by_role("img", name=re.compile("Prototype 1 as an image"))).to_be_visible()
    settle(page)
