"""The page Explore in a real Chromium against a real server."""

from __future__ import annotations

import re
import shutil
from urllib.parse import parse_qs, urlparse

import pytest
from playwright.sync_api import Locator, Page, expect

from pages.parts.shell.epoch_images import epoch_images
from tests.app.test_browser import NARROW, settle
from tests.app.test_browser_map import drawn_map, lasso
from udml_core.runs import Run
from udml_core.runs.analyses import plan_analysis
from udml_core.work.workers.analyse import keep

pytestmark = pytest.mark.browser


def parameter(page: Page, name: str) -> str:
    return parse_qs(urlparse(page.url).query).get(name, [""])[0]


@pytest.mark.parametrize("page", [{"viewport": NARROW}], indirect=True, ids=["390"])
def test_on_a_phone_every_control_of_the_map_is_in_reach_and_the_map_in_the_first_screen(
        page: Page, finished: Run) -> None:
    page.goto(f"/explore?run={finished.id}")
    expect(drawn_map(page)).to_be_in_viewport(ratio=0.9)
    controls = page.locator(".st-key-explore-toolbar").locator("button, [role=combobox], [role=slider]")
    boxes = [box for control in controls.all() if (box := control.bounding_box()) is not None]
    assert len(boxes) >= 5
    for box in boxes:
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= NARROW["width"]
    toolbar = page.locator(".st-key-explore-toolbar")
    assert toolbar.evaluate("bar => bar.scrollWidth <= bar.clientWidth"), "nothing is behind its edge"


@pytest.mark.parametrize("page", [{"viewport": {"width": 1400, "height": 900}}], indirect=True, ids=["laptop"])
def test_map_and_panel_share_one_image_and_one_selection(page: Page, finished: Run) -> None:
    page.goto(f"/explore?run={finished.id}")
    chart = drawn_map(page)
    current = page.get_by_alt_text("Current image: ")
    expect(page.locator(".st-key-explore-tiles-neighbors-1 .tile")).to_have_count(10)
    for shown in (chart, current):  # above the fold: the map to its lower edge, and the current image
        box = shown.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 900
    play, picture = page.get_by_role("button", name="Play").bounding_box(), chart.bounding_box()
    assert play is not None
    assert picture is not None
    assert 0 <= picture["y"] - play["y"] - play["height"] <= 24, "the cursor is right above the map"
    assert picture["width"] >= 500
    first = current.get_attribute("alt")
    _click_a_point(page, chart)
    expect(current).not_to_have_attribute("alt", first or "")
    clicked = parameter(page, "picked")
    assert clicked
    page.locator(".st-key-explore-tiles-neighbors-1 .tile").nth(2).click()
    page.wait_for_url(lambda url: f"picked={clicked}" not in url)
    _keep_the_image_on_reload_and_in_depth(page)
    _fill_the_panel_with_a_lasso(page)
    before = parameter(page, "picked")
    page.get_by_role("button", name="Next", exact=True).click()
    page.wait_for_url(lambda url: f"picked={before}&" not in f"{url}&")
    settle(page)
    expect(page.get_by_role("heading", name="Explore")).to_be_visible()  # what the callback loads must draw nothing
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()


@pytest.mark.parametrize("page", [{"viewport": {"width": 1400, "height": 900}}], indirect=True, ids=["laptop"])
def test_the_panel_shows_a_whole_triangle_and_the_link_to_its_page(page: Page, finished: Run) -> None:
    page.goto(f"/explore?run={finished.id}&panel=triplets")
    triangle = page.locator("img[alt^='Triplet of epoch']")
    triangle.wait_for()
    drawn_map(page)  # what it waits for stands above it until then
    settle(page)
    panel = page.locator(".st-key-explore-details").bounding_box()
    assert panel is not None
    for shown in (triangle, page.get_by_role("link", name="Open in depth")):
        box = shown.bounding_box()
        assert box is not None
        assert panel["y"] <= box["y"], "above the panel's upper edge"
        assert box["y"] + box["height"] <= panel["y"] + panel["height"] <= 900, "below the panel's lower edge"
    assert (triangle.bounding_box() or {})["height"] >= 300


WATCH = """() => {
  const find = (selector, root = document) => root.querySelector(selector)
    ?? [...root.querySelectorAll("*")].map((each) => each.shadowRoot && find(selector, each.shadowRoot)).find(Boolean);
  window.seen = [];
  const look = () => {
    const map = find(".scatter").getAttribute("aria-label").split(", ")[1];
    const panel = document.querySelector(".st-key-explore-details").innerText;
    window.seen.push([find(".slider.line output").textContent, map, panel]);
    window.looking = requestAnimationFrame(look);
  };
  look();
}"""


@pytest.mark.slow
def test_slider_map_and_panel_show_the_same_epoch_while_it_plays(page: Page, finished: Run) -> None:
    page.goto(f"/explore?run={finished.id}&map=pca-epochs")
    drawn_map(page)
    settle(page)
    page.evaluate(WATCH)
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(page.get_by_role("button", name="Play")).to_be_visible(timeout=60_000)
    seen = page.evaluate("() => window.seen")
    assert {word for word, *_ in seen} >= {"before training", "after training"}
    assert [(word, drawn) for word, drawn, _ in seen if word != drawn] == []
    epochs = {word for word, *_ in seen if word.startswith("epoch")}
    assert epochs
    assert epochs <= {word for word, _, panel in seen if word.capitalize() in panel}, "the panel follows in time"


@pytest.mark.slow
def test_a_click_on_a_map_of_some_images_names_the_image_at_that_point(page: Page, finished: Run) -> None:
    page.goto(f"/explore?run={finished.id}&map=pca-epochs&picked=0")
    chart = drawn_map(page)
    settle(page)
    images = epoch_images(finished).indices
    assert len(images) < len(finished.dataset())
    x, y = _middle_point(chart)
    chart.locator(".overlay").click(position={"x": x, "y": y})
    page.wait_for_url(re.compile(r"picked=[1-9]\d*"))
    row = chart.evaluate("(chart, [x, y]) => chart.chart.nearest(x, y)", [x, y])
    assert int(parameter(page, "picked")) == images[row]


@pytest.mark.slow
def test_no_name_on_the_map_covers_an_image(page: Page, finished: Run) -> None:
    page.goto(f"/explore?run={finished.id}&map=pca-now&color=class")
    chart = drawn_map(page)
    settle(page)
    names, images, side = chart.evaluate("""chart => {
      const { chart: map } = chart;
      return [map.overlay.names.boxes, map.overlay.chosen.map((row) => map.screenPosition(row)), 36];
    }""")
    assert len(names) >= 3
    assert len(images) >= 5
    covered = [(name, x, y) for name in names for x, y in images
               if name["left"] < x + side / 2 and x - side / 2 < name["right"]
               and name["top"] < y + side / 2 and y - side / 2 < name["bottom"]]
    assert covered == []


@pytest.mark.slow
def test_no_points_of_the_map_stay_below_a_grid(page: Page, finished: Run) -> None:
    run = Run(shutil.copytree(finished.folder, finished.folder.with_name("20250101-000000-rpml-0000ab")))
    pca = plan_analysis(kind="pca")
    for spec in (pca, plan_analysis(kind="grid", source=pca.id, frame="final")):
        keep(run, spec, lambda _share, _step: None)
    page.goto(f"/explore?run={run.id}&map={pca.id}")
    chart = drawn_map(page)
    assert _has_points(chart)
    page.locator(f".st-key-explore-map-{run.id} input").click()
    page.get_by_role("option", name="Grid of PCA").first.click()
    page.wait_for_function("chart => chart.chart.header.grid", arg=chart.element_handle())
    assert not _has_points(chart)


def _has_points(chart: Locator) -> bool:
    """Return whether the map draws a point."""
    drawn: bool = chart.evaluate("""chart => {
      const { chart: map } = chart, { gl } = map.points;
      map.stale = true;
      map.frame(performance.now());
      const pixels = new Uint8Array(4 * gl.drawingBufferWidth * gl.drawingBufferHeight);
      gl.readPixels(0, 0, gl.drawingBufferWidth, gl.drawingBufferHeight, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
      return pixels.some(Boolean);
    }""")
    return drawn


def _middle_point(chart: Locator) -> tuple[float, float]:
    """Return the place of the point in the middle of the map: most of the map is empty."""
    x, y = chart.evaluate("""chart => {
      const { chart: map } = chart, { width, height } = map.room();
      const points = Array.from({ length: map.header.count }, (_, row) => map.screenPosition(row));
      const away = ([x, y]) => Math.hypot(x - width / 2, y - height / 2);
      return points.reduce((best, point) => (away(point) < away(best) ? point : best));
    }""")
    return x, y


def _click_a_point(page: Page, chart: Locator) -> None:
    x, y = _middle_point(chart)
    chart.locator(".overlay").click(position={"x": x, "y": y})
    page.wait_for_url(re.compile(r"picked=\d+"))


def _keep_the_image_on_reload_and_in_depth(page: Page) -> None:
    current = page.get_by_alt_text("Current image: ")
    page.locator(".st-key-explore-panel").get_by_text("Neighborhood", exact=True).click()
    expect(page.get_by_text(re.compile(r"Members: \d+ of \d+ candidates"))).to_be_visible()
    settle(page)
    shown = current.get_attribute("alt")
    page.reload()
    expect(page.get_by_text(re.compile(r"Members: \d+ of \d+ candidates"))).to_be_visible()
    expect(current).to_have_attribute("alt", shown or "")
    picked = parameter(page, "picked")
    page.get_by_role("link", name="Open in depth").click()
    page.wait_for_url("**/explore?tool=neighborhoods**")
    assert parameter(page, "picked") == picked
    expect(page.get_by_text((shown or "").removeprefix("Current image: ")).first).to_be_visible()
    page.go_back()
    expect(current).to_have_attribute("alt", shown or "")


def _fill_the_panel_with_a_lasso(page: Page) -> None:
    settle(page)  # a map that comes again with the page would forget the lasso
    lasso(page, drawn_map(page))
    tiles = page.locator(".st-key-explore-tiles-selected .tile")
    expect(tiles.first).to_be_visible()
    expect(page.get_by_text(re.compile(r"\d+ images selected"))).to_be_visible()
    page.go_back()
    expect(tiles).to_have_count(0)
    expect(drawn_map(page).locator(".summary")).not_to_contain_text("selected")
    page.go_forward()
    expect(tiles.first).to_be_visible()
    settle(page)
    for action in ("Label", "Search", "CSV"):
        expect(page.get_by_text(action, exact=True).first).to_be_visible()
    before = parameter(page, "picked")
    tiles.nth(1).dblclick()
    page.wait_for_url(lambda url: f"picked={before}&" not in f"{url}&")
    page.get_by_role("button", name="Clear", exact=True).first.click()
    expect(tiles).to_have_count(0)
    expect(page.get_by_text("After training", exact=True).first).to_be_visible()
