"""The pages Data and Train in a real browser."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from urllib.parse import urlencode

import pytest
from PIL import Image
from playwright.sync_api import Page, Route, expect

from tests.app.conftest import App
from tests.app.test_browser import choose, newest, settle
from tests.running import wait_for, write_clothes, write_digits
from udml_core.data import catalog
from udml_core.data.encoders import DEFAULT_BACKBONE
from udml_core.data.given.exclusions import excluded_names
from udml_core.exploration.audit import prepare_audit
from udml_core.runs import Run, list_runs
from udml_core.runs.analyses import create_analysis, plan_analysis
from udml_core.work.jobs.advising import TRIAL

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
def test_back_returns_to_each_choice_of_a_race_and_then_to_the_gallery_of_the_same_images(page: Page) -> None:
    page.goto("/data")
    settle(page)
    choose(page, "Data set", "Emoji, 1,214 drawings")
    page.wait_for_url(re.compile("dataset=emoji"))
    page.get_by_role("radio", name="Best search").click()
    page.wait_for_url(re.compile("view=advice.*serves=groups"))
    groups, first = ("All of them", "groups"), ("One match", "first")
    for label, serves in (first, groups, first):
        page.get_by_role("radio", name=label).click()  # none of several clicks is lost
        page.wait_for_url(re.compile(f"serves={serves}"))
    for label, serves in (groups, first, groups):
        page.go_back()
        page.wait_for_url(re.compile(f"serves={serves}"))
        expect(page.get_by_role("radio", name=label)).to_be_checked()
    page.go_back()
    page.wait_for_url(re.compile("dataset=emoji&view=gallery"))
    expect(page.get_by_role("group", name="Images of the data set")).to_be_visible()
    expect(page.get_by_role("radio", name="Gallery")).to_be_checked()
    page.go_forward()
    page.wait_for_url(re.compile("dataset=emoji&view=advice.*serves=groups"))
    expect(page.get_by_role("radio", name="All of them")).to_be_checked()
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="Results", exact=True).click()
    page.wait_for_url(re.compile("/results"))
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="Data", exact=True).click()
    page.wait_for_url(re.compile("/data.*dataset=emoji"))  # a link without a data set shows the last


def test_a_link_to_the_page_in_view_changes_the_address_in_the_browser(page: Page, finished: Run) -> None:
    page.goto(f"/search?run={finished.id}")
    settle(page)
    page.get_by_role("link", name="Refine without labels").click(timeout=20_000)
    page.wait_for_url(re.compile("tool=refine"))
    settle(page)
    page.go_back()
    page.wait_for_url(lambda address: "tool=refine" not in address)
    settle(page)
    page.go_forward()
    page.wait_for_url(re.compile("tool=refine"))


@pytest.mark.slow
def test_a_long_gallery_grows_while_it_is_scrolled_and_keys_reach_its_end(page: Page) -> None:
    page.goto("/data?dataset=digits")
    settle(page)
    tiles = page.get_by_role("group", name="Images of the data set").locator(".tile")
    tiles.first.focus()
    assert 0 < tiles.count() < 1000
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
    page.set_viewport_size({"width": 1400, "height": 900})
    box = page.get_by_role("button", name="Start training").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] < 900, "the button stays in the window"
    page.get_by_role("button", name="Start training").click()
    page.wait_for_url(re.compile(r"live="))
    first = newest(app)
    wait_for(first, "done", "failed")
    page.goto(f"/train?like={first.id}")
    page.wait_for_url(re.compile(r"fields="))
    settle(page)
    page.get_by_role("button", name="Start training").click()
    page.wait_for_url(re.compile(r"live="))
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
        page.get_by_text("Select images").click()
        settle(page)
        tiles = page.get_by_role("group", name="Groups of duplicates").get_by_role("button")
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


@pytest.mark.slow
def test_the_first_of_a_ranking_are_excluded_only_once_the_page_shows_them(
        app: App, page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", app.environment["UDML_CACHE"])
    folder = write_clothes(tmp_path / "ranked", "aaabbbcccddd")
    for name, gray in (("black", 4), ("white", 250)):
        Image.new("L", (28, 28), gray).save(folder / "d" / f"{name}.png")
    catalog.remember(str(folder))
    run = app.trained(method="frozen", dataset=str(folder), split="all", backbone=DEFAULT_BACKBONE)
    held: list[Route] = []
    holds = [True]
    try:
        app.analyzed(run, kind="audit")
        page.route("**/served/*", lambda route: held.append(route) if holds and route.request.resource_type == "fetch"
                   else route.continue_())
        address = {"dataset": str(folder), "view": "audit", "finding": "quality", "check": "dark"}
        page.goto(f"/data?{urlencode(address)}")
        offer, ranking = page.locator("[class*=st-key-audit-offer-] button").first, page.get_by_role(
            "group", name="Ranking of images")
        expect(ranking.get_by_role("button")).to_have_count(14)
        assert held, "the images of the ranking are on their way"
        expect(offer).to_be_hidden()
        page.keyboard.press("e")
        holds.clear()
        for route in held:
            route.continue_()
        expect(offer).to_be_visible()
        assert excluded_names(catalog.load(str(folder))) == (), "the key waited with the button"
        expect(offer).to_have_text(re.compile("Exclude the first 1"))
        ranking.evaluate("grid => { window.grid = grid; grid.style.height = '90px'; grid.scrollTop = 60; }")
        page.get_by_role("slider", name="Mark images").press("End")
        expect(ranking.get_by_text("▸")).to_have_count(14)
        assert ranking.evaluate("grid => grid.scrollTop") == 60, "the same images with other marks stay in place"
        page.get_by_role("radio", name=re.compile("^Low information")).click()
        settle(page)
        assert ranking.evaluate("grid => grid === window.grid"), "another check replaces the images, never the gallery"
        page.wait_for_function("() => window.grid.scrollTop === 0")  # another list begins at its top
        page.evaluate("document.activeElement?.blur()")
        page.keyboard.press("e")
        expect(ranking.get_by_role("button")).not_to_have_count(14)
        assert {"d/black.png", "d/white.png"} <= set(excluded_names(catalog.load(str(folder))))
    finally:
        shutil.rmtree(run.folder)
        catalog.forget(folder)


MOVED = """() => {
    const top = () => document.querySelector(".st-key-audit-finding").getBoundingClientRect().top;
    const before = top(), moved = [];
    const said = ".st-key-audit-line p, .st-key-audit-progress [data-testid=stProgress] p";
    for (const place of document.querySelectorAll(said)) {
        for (const count of [1, 8, 20]) {
            place.textContent = "a few words ".repeat(count);
            moved.push(top() - before);
        }
    }
    return moved;
}"""
"""Replaces the words about an audit by shorter and longer words, and returns how far they move what is below."""


@pytest.mark.slow
def test_the_words_of_an_audit_in_progress_move_nothing_and_hide_no_first_finding(
        app: App, page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", app.environment["UDML_CACHE"])
    folder = write_clothes(tmp_path / "in-progress", "aaabbbcccddd", {11: 0})
    catalog.remember(str(folder))
    run = app.trained(method="frozen", dataset=str(folder), split="all", backbone=DEFAULT_BACKBONE)
    prepare_audit(catalog.load(str(folder)))
    create_analysis(run, plan_analysis(kind="audit"))
    try:
        page.goto(f"/data?{urlencode({'dataset': str(folder), 'view': 'audit'})}")
        settle(page)
        expect(page.get_by_test_id("stProgress").get_by_text("Comparing all images")).to_be_visible()
        expect(page.get_by_role("group", name="Groups of duplicates").get_by_role("button")).to_have_count(2)
        moved = page.evaluate(MOVED)
        assert len(moved) == 6, "the line beside the number of images, and the progress"
        assert moved[:3] == [0, 0, 0], "the line is cut at two lines"
        assert moved[3:5] == [0, 0], "the progress has place for two lines"
    finally:
        shutil.rmtree(run.folder)


def check_order_on_a_phone(page: Page) -> None:
    """Check that the verdict stands above the choices on a phone, and below them elsewhere."""
    verdict, choices = page.locator(".st-key-advice-verdict"), page.get_by_role("radio", name="All of them")
    usual = page.viewport_size
    assert usual is not None
    for width, is_above in ((390, True), (usual["width"], False)):
        page.set_viewport_size({"width": width, "height": usual["height"]})
        boxes = verdict.bounding_box(), choices.bounding_box()
        assert boxes[0] is not None
        assert boxes[1] is not None
        assert (boxes[0]["y"] < boxes[1]["y"]) == is_above, f"at {width} px"


@pytest.mark.slow
def test_the_best_search_is_found_in_the_background_and_used(
        app: App, page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", app.environment["UDML_CACHE"])
    folder = write_digits(tmp_path / "digits", 60, by_class=False)
    catalog.remember(str(folder))
    begun = {run.id for run in list_runs(app.runs)}
    try:
        page.goto(f"/data?{urlencode({'dataset': str(folder)})}")
        settle(page)
        page.get_by_role("button", name="Find the best search").click()
        page.get_by_role("radio", name="2 min", exact=True).click()
        page.get_by_role("radio", name="All of them").click()
        expect(page.get_by_text("All images of the same kind should come before all others.")).to_be_visible()
        page.locator(".st-key-advice-start").get_by_role("button").click()
        expect(page.get_by_role("button", name="Stop").first).to_be_visible()
        page.goto("/learn")  # the race goes on without its page
        page.goto(f"/data?{urlencode({'dataset': str(folder), 'view': 'advice', 'budget': 2, 'serves': 'groups'})}")
        details, other = page.get_by_text("Details", exact=True), page.get_by_text("Use another candidate")
        expect(details).to_be_visible()  # the race has ended
        said = re.compile("Best search: |Nothing is better|No clear winner for ")
        expect(page.get_by_text(said).first).to_be_visible()
        expect(other).not_to_be_visible()
        details.click()
        page.get_by_text("Each candidate in a sentence").click()
        expect(page.get_by_text(re.compile("Whitening.*: (better|worse|no clear difference)")).first).to_be_visible()
        check_order_on_a_phone(page)
        other.click()
        page.get_by_role("button", name="Use it").first.click()
        page.wait_for_url(re.compile("/search.*run="))
        expect(page.get_by_role("heading", name="Search")).to_be_visible()
        assert all(TRIAL in run.notes().tags or run.spec().method == "frozen" for run in list_runs(app.runs)
                   if run.id not in begun)
    finally:
        for run in list_runs(app.runs):
            if run.id not in begun:
                shutil.rmtree(run.folder)
        catalog.forget(folder)
