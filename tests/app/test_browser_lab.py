"""A training that is watched on the page Lab, in a real Chromium."""

from __future__ import annotations

import os
import re
import signal
import time

import pytest
from playwright.sync_api import Browser, Page, expect

from experiments.real_server import serving
from pages.parts.train.status_strip import strip_of
from tests.app.conftest import App
from tests.app.test_browser import NARROW, choose, newest, settle, until
from udml_core.base.paths import ASSETS
from udml_core.methods import METHODS
from udml_core.runs import Run

pytestmark = pytest.mark.browser
LINK = "/lab?dataset=digits&method=rpml&backbone=pixels&split=seen&fields=alpha:15,dimension:4,epochs:{}"
NOW = re.compile(r"^The query and its nearest images after")


def start(page: Page, epochs: int) -> None:
    """Open the form with a number of epochs, and press the button."""
    page.goto(LINK.format(epochs))
    settle(page)
    expect(page.get_by_role("application", name=re.compile("^Map"))).to_be_visible()
    page.get_by_role("button", name="Start training").click()
    page.wait_for_url(re.compile("live="))


def watched_run(app: App, epochs: int) -> Run:
    """Return the run that was started just now, with the number of epochs that the form was opened with."""
    run = newest(app)
    assert run.spec().fields["epochs"] == epochs, run.spec()
    return run


@pytest.mark.slow
def test_the_map_moves_while_a_run_trains_and_the_measures_follow(app: App, page: Page) -> None:
    start(page, 120)
    run = watched_run(app, 120)
    picture = page.get_by_role("img", name=re.compile(r"^after epoch \d+, 1,000 images"))
    expect(picture).to_be_visible()
    first = picture.get_attribute("aria-label")
    assert run.status().state == "running", "the map is there before the run has ended"
    row = page.get_by_role("group", name=NOW)
    expect(row.get_by_role("button")).to_have_count(9)
    expect(page.get_by_role("button", name="Stop", exact=True)).to_be_visible()
    expect(picture).not_to_have_attribute("aria-label", str(first))
    expect(page.get_by_role("button", name="Change a value and train again")).to_be_visible()
    assert until(run, "done", "failed") == "done", run.status().message
    expect(page.get_by_text("Whole group found · MAP@R")).to_be_visible()
    for label in ("Search", "Explore", "Runs"):
        expect(page.get_by_test_id("stMain").get_by_role("link", name=label)).to_be_visible()
    expect(page.get_by_role("img", name=re.compile(r"^after training, 1,000 images"))).to_be_visible()
    settle(page)
    page.reload()
    settle(page)
    expect(page.get_by_role("img", name=re.compile(r"^after training, 1,000 images"))).to_be_visible()
    page.get_by_role("button", name="Change a value and train again").click()
    expect(page.get_by_role("img", name=re.compile(r"^Before training, 1,000 images"))).to_be_visible()
    settle(page)
    assert "live=" not in page.url
    assert "epochs" in page.url, "the values stay in the form"


@pytest.mark.slow
def test_a_start_changes_neither_the_images_nor_the_colors_of_the_map(app: App, page: Page) -> None:
    page.goto(LINK.format(41))
    settle(page)
    before = page.get_by_role("img", name=re.compile(r"^Before training, 1,000 images"))
    expect(before).to_be_visible()
    legend, chart = page.get_by_role("group", name="Legend"), page.locator(".scatter.below")
    expect(legend).to_contain_text("class")
    shown, words = chart.get_attribute("data-colored"), legend.inner_text()
    chart.evaluate("root => { root.dataset.mark = 'the same map' }")
    page.get_by_role("button", name="Start training").click()
    page.wait_for_url(re.compile("live="))
    run = watched_run(app, 41)
    expect(page.get_by_role("img", name=re.compile(r"^after epoch \d+, 1,000 images"))).to_be_visible()
    assert (chart.get_attribute("data-colored"), legend.inner_text()) == (shown, words)
    assert chart.get_attribute("data-mark") == "the same map", "its points travel"
    page.get_by_role("radio", name="Clusters", exact=True).click()
    expect(legend).to_contain_text("Cluster")
    until(run, "done")
    expect(page.get_by_role("img", name=re.compile(r"^after training, 1,000 images"))).to_be_visible()
    expect(legend).to_contain_text("Cluster")
    page.get_by_role("button", name="Change a value and train again").click()
    expect(before).to_be_visible()
    expect(legend).to_contain_text("Cluster at ε = 0.65")


@pytest.mark.slow
def test_a_killed_worker_is_told_where_the_run_was_watched_and_it_resumes(app: App, page: Page) -> None:
    start(page, 1000)
    run = watched_run(app, 1000)
    expect(page.get_by_role("group", name=NOW)).to_be_visible()
    os.kill(run.status().pid or 0, signal.SIGKILL)
    until(run, "interrupted")
    expect(page.get_by_test_id("stAlert").filter(has_text="worker")).to_be_visible()
    page.get_by_role("button", name="Resume").click()
    until(run, "running")
    page.get_by_role("button", name="Stop", exact=True).click()
    until(run, "stopped")
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    settle(page)


@pytest.mark.slow
def test_a_training_goes_on_when_the_server_is_killed_and_the_page_finds_it_again(app: App, browser: Browser) -> None:
    with serving("serve.py", app.environment) as (url, server):
        context = browser.new_context(base_url=url)
        page = context.new_page()
        start(page, 900)
        run = watched_run(app, 900)
        until(run, "running")
        place = page.url.removeprefix(url)
        server.kill()
        server.wait(60)
        context.close()
    epoch = run.status().epoch
    deadline = time.monotonic() + 120
    while run.status().epoch <= epoch and time.monotonic() < deadline:
        time.sleep(0.1)
    assert (run.status().state, run.status().epoch > epoch) == ("running", True)
    with serving("serve.py", app.environment) as (url, _):
        context = browser.new_context(base_url=url)
        page = context.new_page()
        page.goto(place)
        expect(page.get_by_role("group", name=NOW)).to_be_visible()
        assert run.status().state == "running"
        page.get_by_role("button", name="Stop", exact=True).click()
        until(run, "stopped")
        context.close()


def test_opened_settings_come_above_the_button_and_the_map_stays_beside_them(page: Page) -> None:
    page.goto(LINK.format(10))
    settle(page)
    picture, summary = page.locator(".stage").first, page.locator("summary", has_text="More settings")
    picture.wait_for()
    summary.click()
    button = page.get_by_role("button", name="Start training")
    page.wait_for_function("""() => {
      const box = [...document.querySelectorAll(".st-key-lab details")].find((one) => one.open).getBoundingClientRect();
      const start = document.querySelector(".st-key-lab-start").getBoundingClientRect();
      return box.top >= 0 && start.top - box.top > 200;
    }""")
    expect(button).to_be_in_viewport(ratio=1)
    expect(picture).to_be_in_viewport(ratio=0.7)


def test_methods_are_chosen_by_keys(page: Page) -> None:
    page.goto("/lab?dataset=digits&method=pca&backbone=pixels&split=seen&fields=dimension:16")
    settle(page)
    cards = page.get_by_role("radiogroup", name="Method").get_by_role("radio")
    chosen = page.get_by_role("radio", name=re.compile("^PCA"))
    expect(chosen).to_have_attribute("aria-checked", "true")
    chosen.focus()
    page.keyboard.press("Home")
    expect(cards.first).to_be_focused()
    page.keyboard.press("r")
    expect(page.get_by_role("radio", name=re.compile("^RPML"))).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("method=rpml"))
    settle(page)
    expect(page.get_by_role("radio", name=re.compile("^RPML"))).to_have_attribute("aria-checked", "true")


def test_a_few_methods_are_shown_at_first_and_all_by_one_button(page: Page) -> None:
    page.goto("/lab?dataset=digits&method=pca&backbone=pixels&split=seen&fields=dimension:16")
    settle(page)
    cards = page.get_by_role("radiogroup", name="Method").get_by_role("radio")
    expect(cards.first).to_be_visible()
    few = cards.count()
    assert 3 <= few <= 5
    expect(page.get_by_role("radio", name=re.compile("^PCA"))).to_be_visible()
    page.get_by_role("button", name=f"All {len(METHODS)} methods").click()
    expect(cards).to_have_count(len(METHODS))
    assert page.locator(".cards").evaluate("list => list.scrollHeight <= list.clientHeight"), "no scroller of its own"
    page.get_by_role("radio", name=re.compile("^Triplet")).click()
    page.wait_for_url(re.compile("method=triplet"))
    settle(page)
    expect(page.get_by_role("radio", name=re.compile("^Triplet"))).to_have_attribute("aria-checked", "true")
    expect(cards).to_have_count(few)
    expect(page.locator(".st-key-lab-right h4")).to_have_text("Result")


@pytest.mark.slow
@pytest.mark.parametrize("page", [{"viewport": NARROW}], indirect=True, ids=["390"])
def test_on_a_phone_the_choices_lie_in_a_drawer_and_the_picture_comes_first(app: App, page: Page) -> None:
    page.goto(LINK.format(7))
    settle(page)
    picture, begin = page.locator(".stage").first, page.get_by_role("button", name="Start training")
    picture.wait_for()
    methods, choose = page.get_by_role("radiogroup", name="Method"), page.get_by_role("button", name="Choices: Digits")
    expect(methods).to_be_hidden()
    expect(begin).to_be_in_viewport(ratio=1)
    expect(picture).to_be_in_viewport()
    choose.click()
    expect(methods).to_be_visible()
    expect(begin).to_be_in_viewport(ratio=1)
    effect = page.get_by_text("Smaller: fewer, larger groups.")
    effect.scroll_into_view_if_needed()
    expect(effect).to_be_in_viewport()
    picture.click(position={"x": 40, "y": 90})
    expect(methods).to_be_hidden()
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth"), "nothing is wider than the phone"
    begin.click()
    page.wait_for_url(re.compile("live="))
    assert until(watched_run(app, 7), "done", "failed") == "done"
    expect(page.get_by_role("img", name=re.compile(r"^after training, 1,000 images"))).to_be_visible()
    expect(page.get_by_text("Whole group found · MAP@R")).to_be_visible()


@pytest.mark.slow
def test_the_picture_of_the_angles_follows_the_slider_while_it_is_dragged(page: Page) -> None:
    page.goto(LINK.format(8))
    settle(page)
    angles = page.locator(".angles")
    expect(angles).to_have_attribute("data-drawn", "15")
    page.wait_for_timeout(1000)  # the form may still move down
    value = page.locator('[class*="-alpha"] [data-testid="stSliderThumbValue"]').first.bounding_box()
    assert value is not None
    x, y = value["x"] + value["width"] / 2, value["y"] + value["height"] + 9
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y, steps=4)
    expect(angles).not_to_have_attribute("data-drawn", "15")
    assert "alpha%3A15" in page.url or "alpha:15" in page.url, "Python has not heard of it yet"
    dragged = str(angles.get_attribute("data-drawn"))
    expect(angles).to_contain_text(f"exceed α = {dragged}°")
    page.mouse.up()
    page.wait_for_url(re.compile(f"alpha(%3A|:){dragged}"))
    settle(page)
    expect(angles).to_have_attribute("data-drawn", dragged)
    _the_clusters_follow(page)


def _the_clusters_follow(page: Page) -> None:
    """Drag the slider of ε, and check that the map and the count of its clusters follow before the release."""
    counts, chart = page.locator(".counts"), page.locator(".scatter").first
    expect(counts).to_contain_text("ε = ")
    before = counts.inner_text()
    value = page.locator('[class*="-epsilon"] [data-testid="stSliderThumbValue"]').first.bounding_box()
    assert value is not None
    x, y = value["x"] + value["width"] / 2, value["y"] + value["height"] + 9
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 40, y, steps=4)
    expect(chart).to_have_attribute("data-colored", re.compile("followed"))
    expect(counts).not_to_have_text(before)
    during = counts.inner_text()
    assert "epsilon" not in page.url, "Python has not heard of it yet"
    page.mouse.up()
    page.wait_for_url(re.compile("epsilon"))
    settle(page)
    expect(counts).to_have_text(during)


CUT = """strip => [...strip.querySelectorAll(".cells b, .cells i")].filter(value => {
  const isCut = value.scrollWidth > value.clientWidth + 1 && value.clientWidth > 0;
  return isCut || value.getBoundingClientRect().right > strip.getBoundingClientRect().right + 1;
}).map(value => value.textContent)"""
"""The values and notes of the line above the map that are cut."""


@pytest.mark.parametrize("page", [{"viewport": {"width": 1400, "height": 900}}, {"viewport": NARROW}], indirect=True,
                         ids=["1400", "390"])
def test_the_legend_shows_dots_between_images_and_the_shapes_of_points_without_them(page: Page) -> None:
    page.goto("/train?dataset=digits&method=rpml")
    marks = page.get_by_role("group", name="Legend").locator(".mark")
    expect(marks.nth(1)).to_have_text("●")
    page.get_by_role("button", name="Show thumbnails when zoomed in").click()
    expect(marks.nth(1)).not_to_have_text("●")


def test_no_value_above_the_map_is_cut(page: Page) -> None:
    cells = [("Epoch shown", "3.1 of 10", "training is at 4"), ("Whole group found", "47.9 %", "PCA 48.1 %"),
             ("Results in", "not known yet", "the first training here measures it")]
    widths = (270, 330) if page.viewport_size == NARROW else (420, 530, 620, 760)
    page.goto("/_stcore/health")
    page.set_content(f"<style>{(ASSETS / 'app.css').read_text(encoding='utf-8')}</style>" + "".join(
        f"<div style='width: {width}px; font-family: sans-serif'>{strip_of(cells, 0.3)}</div>" for width in widths))
    assert [strip.evaluate(CUT) for strip in page.locator(".lab-strip").all()] == [[]] * len(widths)


@pytest.mark.slow
@pytest.mark.parametrize("page", [{"viewport": {"width": 1024, "height": 768}}, {"viewport": NARROW}], indirect=True,
                         ids=["1024", "390"])
def test_score_and_cancel_are_in_view_while_a_run_trains(app: App, page: Page) -> None:
    start(page, 998 if page.viewport_size == NARROW else 999)
    run = watched_run(app, 998 if page.viewport_size == NARROW else 999)
    score = page.get_by_text("Whole group found", exact=True).first
    expect(score).to_be_in_viewport(ratio=1, timeout=60_000)
    expect(page.locator(".stage").first).to_be_in_viewport()
    page.get_by_role("group", name=NOW).scroll_into_view_if_needed()
    if page.viewport_size == NARROW:
        expect(score).to_be_in_viewport(ratio=1)
    else:
        stage, right = page.locator(".stage").first.bounding_box(), page.locator(".st-key-lab-right").bounding_box()
        assert stage is not None
        assert right is not None
        assert right["x"] > stage["x"] + stage["width"], "the measures stand beside the map"
    page.get_by_role("button", name="Stop", exact=True).click()
    assert until(run, "stopped", "done") == "stopped"
    settle(page)


@pytest.mark.slow
def test_a_second_encoder_is_added_removed_and_trained_with(app: App, page: Page) -> None:
    page.goto("/lab?dataset=digits&method=pca&backbone=pixels&size=8&split=seen&fields=dimension:9")
    settle(page)
    page.get_by_text("Backbone, split, seed and device").click()
    whitening = page.get_by_role("combobox", name=re.compile("^Whitening of several"))
    expect(whitening).to_have_count(0)
    choose(page, "Second encoder", "cnn")
    page.wait_for_url(re.compile(r"backbone=pixels(%2B|\+)cnn"))
    expect(whitening).to_have_value("together")
    page.reload()
    settle(page)
    page.get_by_text("Backbone, split, seed and device").click()
    choose(page, "Second encoder", "none")
    page.wait_for_url(lambda url: "cnn" not in url)
    expect(whitening).to_have_count(0)
    choose(page, "Second encoder", "cnn")
    page.wait_for_url(re.compile(r"backbone=pixels(%2B|\+)cnn"))
    expect(page.get_by_role("img", name=re.compile("^Before training"))).to_be_visible()
    page.get_by_role("button", name="Start training").click()
    page.wait_for_url(re.compile("live="))
    run = newest(app)
    assert [part.backbone for part in run.spec().encoder.parts] == ["pixels", "cnn"]
    assert until(run, "done", "failed") == "done", run.status().message


@pytest.mark.slow
def test_a_training_is_paused_and_continued_by_keys_and_the_curve_goes_on(app: App, page: Page) -> None:
    start(page, 700)
    run = watched_run(app, 700)
    pause, go_on = (page.get_by_role("button", name=re.compile(f"{word} training")) for word in ("Pause", "Continue"))
    pause.focus()
    page.keyboard.press("Enter")
    expect(go_on).to_be_focused()
    expect(page.locator(".lab-strip")).to_contain_text("paused")
    rested = run.status()
    assert rested.is_paused
    expect(page.get_by_role("slider", name="Epoch").last).to_be_visible()  # the form has a slider of epochs
    time.sleep(1.5)  # an epoch takes milliseconds
    assert run.status() == rested, "nothing goes on"
    page.keyboard.press("Enter")
    expect(pause).to_be_focused()
    deadline = time.monotonic() + 60
    while run.status().epoch <= rested.epoch + 1 and time.monotonic() < deadline:
        time.sleep(0.1)
    page.keyboard.press("p")
    expect(go_on).to_be_visible()
    numbers = [row["epoch"] for row in run.metrics()[0]]
    assert numbers == list(range(len(numbers))), "no epoch is lost or trained again"
    assert numbers[-1] > rested.epoch
    page.get_by_role("button", name="Stop", exact=True).click()
    until(run, "stopped")
    expect(page.get_by_role("button", name="Resume")).to_be_visible()


def test_the_sidebar_of_a_small_screen_is_narrow(page: Page) -> None:
    widths = {}
    for width in (1400, 1024):
        page.set_viewport_size({"width": width, "height": 768})
        page.goto("/runs")
        settle(page)
        widths[width] = page.get_by_test_id("stSidebar").evaluate("box => box.getBoundingClientRect().width")
    assert widths == {1400: 240, 1024: 216}
