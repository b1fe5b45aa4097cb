"""The pages Data and Train in a real browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.app.conftest import App
from tests.app.test_browser import newest, settle
from tests.running import wait_for

pytestmark = pytest.mark.browser


def test_images_are_browsed_enlarged_and_found_by_name(page: Page) -> None:
    page.goto("/data?dataset=digits&find=digit 12")
    settle(page)
    gallery = page.get_by_role("group", name="Images of the data set")
    expect(gallery.get_by_role("button")).to_have_count(111)  # 12, 120 to 129, 1200 to 1299
    gallery.get_by_role("button").nth(1).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("digit 120", exact=True)).to_be_visible()
    expect(dialog.get_by_text("8 × 8 pixels")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(dialog.get_by_text("digit 121", exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_a_long_gallery_grows_while_it_is_scrolled_and_keys_reach_its_end(page: Page) -> None:
    page.goto("/data?dataset=digits")
    settle(page)
    tiles = page.get_by_role("group", name="Images of the data set").locator(".tile")
    tiles.first.focus()
    assert tiles.count() < 1000
    tiles.nth(250).scroll_into_view_if_needed()
    expect(tiles.nth(500)).to_be_attached()
    tiles.first.focus()
    page.keyboard.press("End")
    expect(tiles).to_have_count(1797)
    expect(tiles.last).to_be_focused()


def test_a_run_is_started_above_the_fold_and_another_like_it(app: App, page: Page) -> None:
    page.goto("/train?dataset=digits&method=plm&backbone=pixels&split=seen&fields=dimension:16,epochs:1")
    settle(page)
    box = page.get_by_role("button", name="Start training").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] < 900
    page.get_by_role("button", name="Start training").click()
    page.wait_for_url(re.compile(r"/runs"))
    first = newest(app)
    wait_for(first, "done", "failed")
    page.goto(f"/train?like={first.id}")
    page.wait_for_url(re.compile(r"fields="))
    settle(page)
    page.get_by_role("button", name="Start training").click()
    page.wait_for_url(re.compile(r"/runs"))
    second = newest(app)
    assert second.id != first.id
    assert second.spec().model_dump(exclude={"created"}) == first.spec().model_dump(exclude={"created"})
