"""Labels by keyboard in a real Chromium, with the focus where a hand just was."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.app.conftest import App
from tests.app.test_browser import settle
from udml_core.data.given import labels as annotations
from udml_core.data.given.log import log_path_of
from udml_core.runs import Run

pytestmark = pytest.mark.browser


@pytest.fixture
def unlabeled(app: App, finished: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A finished run with a map, on whose images nobody gave a label."""
    monkeypatch.setenv("UDML_CACHE", app.environment["UDML_CACHE"])
    log_path_of(finished.dataset(), "labels").unlink(missing_ok=True)
    made = app.command("analyse", finished.id, "--kind", "pca", "--scope", "all", "--frames", "final")
    assert made.returncode == 0, made.stderr
    return finished


def count(page: Page, labels: int) -> None:
    expect(page.get_by_test_id("stMetric").filter(has_text="Labels")).to_contain_text(str(labels))
    settle(page)


def own_class(page: Page) -> Locator:
    """The button of the class that the data set has for the suggested image."""
    return page.locator(".st-key-labels-class-own button").first


def test_keys_name_what_is_suggested_or_selected_and_undo(page: Page, unlabeled: Run) -> None:
    page.goto(f"/labels?run={unlabeled.id}")
    count(page, 0)
    own_class(page).click()
    count(page, 1)
    page.keyboard.press("1")
    count(page, 2)
    suggested = page.get_by_role("group", name="Images to label next").get_by_role("button")
    suggested.nth(1).click()
    suggested.nth(2).click()
    expect(page.get_by_text("To be named: 2 selected")).to_be_visible()
    settle(page)
    page.keyboard.press("1")
    count(page, 4)
    assert len(annotations.given(unlabeled.dataset())) == 4
    page.keyboard.press("u")
    count(page, 2)
    expect(page.get_by_text("To be named: 2 selected")).to_be_visible()
    page.get_by_label("Another class").fill("1 u s")
    page.get_by_label("Another class").press("Enter")
    count(page, 4)
    assert sorted(annotations.given(unlabeled.dataset()).values()).count("1 u s") == 2


def test_a_click_on_the_map_selects_and_the_next_key_names(page: Page, unlabeled: Run) -> None:
    page.goto(f"/labels?run={unlabeled.id}")
    count(page, 0)
    own_class(page).click()
    count(page, 1)
    chart = page.locator(".scatter").first
    expect(chart).to_have_attribute("data-drawn", re.compile("."))
    overlay = chart.locator(".overlay")
    overlay.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("To be named: 1 selected")).to_be_visible()
    settle(page)
    page.keyboard.press("1")
    count(page, 2)
    expect(page.get_by_text("To be named: the suggested one")).to_be_visible()
    settle(page)
