"""The progress of analyses over the page's corner, which moves nothing, in a real Chromium."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import FloatRect, Page, expect

from tests.app.test_browser import NARROW, WIDE, settle
from udml_core.runs import Run
from udml_core.runs.analyses import create_analysis, plan_analysis

pytestmark = [pytest.mark.browser, pytest.mark.slow]
CORNER = "[class*='st-key-analysis-corner-']"


@pytest.fixture
def watched(finished: Run) -> Iterator[Run]:
    """A copy of a finished run, whose analyses no process computes."""
    run = Run(shutil.copytree(finished.folder, finished.folder.with_name("20250102-000000-rpml-0000ac")))
    yield run
    shutil.rmtree(run.folder)


def box_of(page: Page, selector: str) -> FloatRect:
    """Return the box of the first element that a selector finds."""
    box = page.locator(selector).first.bounding_box()
    assert box is not None, selector
    return box


@pytest.mark.parametrize(("page", "stays"), [({"viewport": WIDE}, True), ({"viewport": NARROW}, False)],
                         indirect=["page"], ids=["1400", "390"])
def test_the_menu_closes_over_the_page_that_it_opened_on_a_phone(page: Page, stays: bool, finished: Run) -> None:
    page.goto(f"/runs?run={finished.id}")
    settle(page)
    menu = page.get_by_test_id("stSidebar")
    if not stays:
        page.get_by_test_id("stExpandSidebarButton").click()
    menu.get_by_role("link", name="Data").click()
    page.wait_for_url("**/data*")
    settle(page)
    assert stays == (box_of(page, "[data-testid=stSidebar]")["width"] > 100)


@pytest.mark.parametrize("page", [{"viewport": WIDE}, {"viewport": NARROW}], indirect=True, ids=["1400", "390"])
def test_progress_appears_over_the_corner_and_the_picture_stays(page: Page, watched: Run) -> None:
    page.goto(f"/explore?run={watched.id}")
    page.locator(".stage").first.wait_for()
    settle(page)
    still = box_of(page, ".stage")
    analysis = create_analysis(watched, plan_analysis("umap", scope="all", frames=("final",)))
    page.reload()
    page.locator(".stage").first.wait_for()
    line = page.locator(CORNER).get_by_role("status")
    expect(line).to_contain_text("UMAP")
    settle(page)
    assert box_of(page, ".stage") == still, "nothing moves"
    corner, size = box_of(page, f"{CORNER} [class*='st-key-progress-']"), page.viewport_size
    assert size is not None
    assert size["height"] / 2 < corner["y"] <= size["height"] - corner["height"], "it lies in the window's lower part"
    assert 0 <= corner["x"] <= size["width"] - corner["width"], "no part of it is cut off"
    page.mouse.wheel(0, 300)
    scrolled = box_of(page, f"{CORNER} [class*='st-key-progress-']")
    assert abs(scrolled["y"] - corner["y"]) < 1, "it stays while the page scrolls"
    expect(page.locator(CORNER).get_by_role("button", name="Stop")).to_be_visible()
    analysis.remove()
    expect(line).to_have_count(0)
