"""The page Instances in a real Chromium: live sliders, clicks, both color schemes, narrow windows, axe."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.app.conftest import App
from tests.app.test_browser import complaints, in_both_windows, settle
from udml_core.runs import Run

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def run(app: App) -> Run:
    """A small finished run on the digits with σ and a latent layer."""
    return app.trained(method="pslr", fields={"dimension": 8, "epochs": 2})


@in_both_windows
def test_the_softmax_follows_tau_and_a_click_chooses_an_image(page: Page, run: Run) -> None:
    page.goto(f"/instances?run={run.id}&picked=5")
    words = page.get_by_text("effective number of competitors")
    expect(words).to_be_visible()
    settle(page)
    before = words.inner_text()
    page.get_by_role("slider", name=re.compile("^Temperature")).focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile(r"temperature=0\.10[1-9]"))
    expect(page.get_by_text(before)).to_have_count(0)
    assert not complaints(page)
    page.get_by_role("group", name=re.compile("Strongest competitors after")).get_by_role("button").nth(2).click()
    page.wait_for_url(re.compile(r"picked=(?!5\b)"))
    settle(page)
