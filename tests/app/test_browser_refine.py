"""The page Refine in a real Chromium: live sliders, the votes, applying a recipe, and the search in the result."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.app.conftest import App
from tests.app.test_browser import complaints, in_both_windows, settle
from udml_core.runs import Run
from udml_core.runs.analyses import list_analyses
from udml_core.runs.analyses.kinds.refine import Refinement

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def run(app: App) -> Run:
    """A small finished run on the digits."""
    return app.trained(method="frozen")


@in_both_windows
def test_a_slider_changes_the_ranking_and_a_click_explains_an_image(page: Page, run: Run) -> None:
    page.goto(f"/refine?run={run.id}&recipe=average:k%3D5")
    after = page.get_by_role("group", name="The 24 nearest images, after").get_by_role("button")
    expect(after).to_have_count(24)
    settle(page)
    before = after.evaluate_all("tiles => tiles.map(tile => tile.dataset.id)")
    slider = page.get_by_role("slider", name=re.compile("^Neighbors"))
    for position in range(6, 18):
        slider.press("ArrowRight")
        expect(slider).to_have_value(str(position))
    page.wait_for_url(re.compile("average%3Ak%3D17|average:k=17|average:k%3D17"))
    settle(page)
    expect(page.get_by_text("by the mean of 18 images")).to_be_visible()
    assert after.evaluate_all("tiles => tiles.map(tile => tile.dataset.id)") != before
    assert not complaints(page)
    after.nth(3).click()
    page.wait_for_url(re.compile(r"image=\d+"))
    settle(page)
    expect(page.get_by_role("group", name="The 24 nearest images, after").locator("[aria-current]")).to_have_count(1)


@pytest.mark.slow
def test_an_applied_recipe_can_be_searched(page: Page, run: Run) -> None:
    page.goto(f"/refine?run={run.id}&recipe=average:k%3D4")
    page.get_by_role("button", name="Apply to all images").click()
    link = page.get_by_role("link", name="Search the refined embedding")
    expect(link).to_be_visible()
    expect(page.get_by_text("Applied to all")).to_be_visible()
    (analysis,) = list_analyses(run, Refinement)
    assert analysis.spec().recipe == "average:k=4"
    link.click()
    page.wait_for_url(re.compile(rf"refined={analysis.id}"))
    page.get_by_role("group", name="Sample queries").get_by_role("button").nth(4).click()
    expect(page.get_by_role("group", name="The 10 nearest images, refined").get_by_role("button")).to_have_count(10)
    settle(page)
    assert not complaints(page)
