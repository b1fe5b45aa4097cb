"""The page Pairs in a real Chromium: keys that work without a click, pairs as tiles, live sliders."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.app.conftest import App
from tests.app.test_browser import newest, settle
from udml_core.data import catalog
from udml_core.data.given.pairs import PairLog, PairSet
from udml_core.runs import Run

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def learnt(app: App) -> Run:
    """A small finished run on the digits that learnt from pairs."""
    trained = app.command("train", "--dataset", "digits", "--backbone", "pixels", "--method", "nml", "--set",
                          "dimension=6", "--set", "epochs=2", "--split", "seen", "--pairs", "3000", "--json")
    assert trained.returncode == 0, trained.stderr
    return newest(app)


def given(app: App) -> PairSet:
    """What was given in the app so far."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UDML_CACHE", app.environment["UDML_CACHE"])
        return PairLog(catalog.load("digits")).read()


def asked(page: Page) -> str:
    found = re.search(r"asked=([\d.]+)", page.url)
    assert found, page.url
    return found[1]


def press(page: Page, key: str) -> str:
    """Press a key on the page itself, and wait for the next pair; the one that was asked."""
    before = asked(page)
    page.keyboard.press(key)
    page.wait_for_url(lambda url: "asked=" in url and f"asked={before}" not in url)
    settle(page)
    return before


def test_keys_give_pairs_without_a_click(app: App, page: Page, learnt: Run) -> None:
    page.goto(f"/pairs?run={learnt.id}&show=give")
    expect(page.get_by_role("button", name="Same")).to_be_visible()
    settle(page)
    same = press(page, "s")
    expect(page.get_by_text("are the same.").first).to_be_visible()
    different = press(page, "d")
    found = given(app)
    assert [".".join(map(str, sorted(map(int, one.split("."))))) for one in (same, different)] == [
        ".".join(map(str, pair)) for pair in found.pairs.tolist()]
    assert found.same.tolist() == [True, False]
    skipped = press(page, "n")
    assert len(given(app)) == 2
    press(page, "u")
    assert asked(page) == skipped
    press(page, "u")
    assert asked(page) == different
    assert given(app).same.tolist() == [True]
    tiles = page.get_by_role("group", name="Given pairs").get_by_role("button")
    expect(tiles).to_have_count(1)
    tiles.first.click()
    page.wait_for_url(lambda url: f"asked={same}" in url or f"asked={'.'.join(same.split('.')[::-1])}" in url)
    expect(page.get_by_text("So far this pair is given as the same").first).to_be_visible()
    settle(page)


def test_a_pair_is_looked_at_and_the_hinge_moves(page: Page, learnt: Run) -> None:
    page.goto(f"/pairs?run={learnt.id}")
    tiles = page.get_by_role("group", name="Kept pairs").get_by_role("button")
    expect(tiles).to_have_count(60)
    settle(page)
    tiles.nth(3).click()
    page.wait_for_url(re.compile(r"pair=\d+\.\d+"))
    expect(tiles.nth(3)).to_have_attribute("aria-current", "true")
    settle(page)
    page.get_by_role("slider", name=re.compile("^b, ")).focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile("bias=0.11"))
    expect(page.get_by_text("kept pairs violate b = 0.11")).to_be_visible()
    page.get_by_text("Prototypes", exact=True).click()
    page.wait_for_url(re.compile("show=prototypes"))
    expect(page.get_by_role("img", name=re.compile("Prototype 1 as a picture"))).to_be_visible()
    settle(page)
