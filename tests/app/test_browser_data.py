"""The pages Data and Train in a real browser."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from tests.app.conftest import App
from tests.app.test_browser import newest, settle
from tests.running import wait_for, write_clothes
from udml_core.data import catalog
from udml_core.data.encoders import DEFAULT_BACKBONE
from udml_core.data.given.exclusions import excluded_names

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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_duplicate_is_excluded_and_included_again(
        app: App, page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", app.environment["UDML_CACHE"])
    folder = write_clothes(tmp_path / "clothes", "aaabbbcccddd", {11: 0})
    catalog.remember(str(folder))
    run = app.trained(method="frozen", dataset=str(folder), split="all", backbone=DEFAULT_BACKBONE)
    try:
        app.analyzed(run, kind="audit")
        page.goto(f"/data?{urlencode({'dataset': str(folder)})}")
        settle(page)
        page.get_by_role("button", name=re.compile(r"Audit: \d+ finding")).click()
        tiles = page.get_by_role("group", name="Images of the finding Exact duplicates").get_by_role("button")
        expect(tiles).to_have_count(2)
        tiles.nth(1).click()
        page.get_by_role("button", name="Exclude selected (1)").click()
        expect(page.get_by_text("No two images have equal content.")).to_be_visible()
        assert excluded_names(catalog.load(str(folder))) == ("d/11.png",)
        page.get_by_role("radio", name="Excluded (1)").click()
        expect(page.get_by_role("group", name="Excluded images").get_by_role("button")).to_have_count(1)
        page.get_by_role("button", name="Undo").click()
        expect(page.get_by_text("No image is excluded, so new runs use all images.")).to_be_visible()
        assert excluded_names(catalog.load(str(folder))) == ()
    finally:
        shutil.rmtree(run.folder)
        catalog.forget(folder)
