"""Maps, grids and explanations in a real Chromium against a real server."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.app.conftest import App
from tests.app.test_browser import complaints, download, in_both_windows, settle
from udml_core.base.paths import ASSETS
from udml_core.runs import Run
from udml_core.runs.analyses import create_analysis, list_analyses, plan_analysis
from udml_core.runs.analyses.kinds.pca import PCA
from udml_core.runs.tasks import Status

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def mapped(app: App) -> Run:
    """A small finished run on the digits with a map of every epoch and an image grid."""
    run = app.trained(fields={"dimension": 16, "epochs": 3})
    (source,) = list_analyses(run, PCA)
    app.analyzed(run, kind="pca", scope="sample", frames=("0", "1", "2", "3"))
    app.analyzed(run, kind="grid", source=source.id, frame="final")
    return run


def epochs_map(run: Run) -> str:
    """Return the id of the map of every epoch."""
    return next(path.parent.name for path in (run.folder / "analyses").glob("pca-*/spec.json")
                if '"sample"' in path.read_text(encoding="utf-8"))


def drawn_map(page: Page, position: int = 0) -> Locator:
    """Wait until a map of the page has drawn its points, and return the map."""
    chart = page.locator("div.scatter").nth(position)
    expect(chart).to_have_attribute("data-drawn", re.compile(r"\d+"))
    return chart


def lasso(page: Page, chart: Locator) -> None:
    """Draw a lasso around the middle of a map with the Shift key."""
    chart.evaluate("element => element.scrollIntoView({block: 'nearest'})")  # a redrawn element is found again
    box = chart.locator(".overlay").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.keyboard.down("Shift")
    page.mouse.move(x - 120, y - 120)
    page.mouse.down()
    for left, up in ((120, -120), (120, 120), (-120, 120)):
        page.mouse.move(x + left, y + up, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")


TALL = {"viewport": {"width": 1400, "height": 2000}}


@pytest.mark.slow
@pytest.mark.parametrize("page", [TALL], indirect=True, ids=["tall"])
def test_map_links_its_views_and_exports_a_file_that_works_offline(
        page: Page, browser: Browser, mapped: Run, tmp_path: Path) -> None:
    _move_the_cursor(page, mapped)
    _select_with_a_lasso(page)
    _export_the_map(page, browser, tmp_path)


def _move_the_cursor(page: Page, run: Run) -> None:
    """Open two embeddings of a map side by side and step through the epochs of the first."""
    page.goto(f"/map?run={run.id}&map={epochs_map(run)}&compare=frame&frame=0&picked={run.sample_indices()[5]}")
    drawn_map(page)
    neighbors = "The 10 nearest images"
    expect(page.get_by_role("group", name=f"{neighbors}, raw pixels")).to_be_visible()
    expect(page.get_by_role("group", name=f"{neighbors}, before training")).to_be_visible()
    page.get_by_role("slider", name="Epoch", exact=True).focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile("frame=1"))
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile("frame=2"))
    expect(page.get_by_role("group", name=f"{neighbors}, epoch 2")).to_be_visible()
    page.get_by_text("Training curves and clusters at this epoch").click()
    expect(page.get_by_text("Clusters at this epoch:")).to_be_visible()
    settle(page)


def _select_with_a_lasso(page: Page) -> None:
    """Select images on the first map, and clear the selection after a reload."""
    first, second = drawn_map(page), drawn_map(page, 1)
    lasso(page, first)
    page.wait_for_url(re.compile("selected="))
    summary = first.locator(".summary").inner_text()
    assert re.match(r"[\d,]+ of [\d,]+ selected", summary), summary
    expect(second.locator(".summary")).to_have_text(summary)
    expect(page.get_by_role("group", name="Selected images")).to_be_visible()
    settle(page)
    page.goto(page.url)
    expect(drawn_map(page).locator(".summary")).to_have_text(summary)
    page.keyboard.press("Escape")
    drawn_map(page).locator(".overlay").focus()
    page.keyboard.press("Escape")
    expect(drawn_map(page, 1).locator(".summary")).to_have_text(re.compile("images$"))
    settle(page)


def _export_the_map(page: Page, browser: Browser, folder: Path) -> None:
    """Download the map as a file and use it in a browser without a network."""
    file = download(page, "Map as an HTML file", folder)
    context = browser.new_context(offline=True)
    offline_page = context.new_page()
    problems: list[str] = []
    offline_page.on("pageerror", lambda error: problems.append(str(error)))
    offline_page.goto(file.as_uri())
    lasso(offline_page, drawn_map(offline_page))
    expect(offline_page.locator(".summary")).to_have_text(re.compile("selected$"))
    context.close()
    assert problems == []


@pytest.mark.slow
def test_umap_appears_by_itself_and_the_lasso_lists_its_images_beside_the_map(page: Page, app: App) -> None:
    """PCA's layout stands in for the worker's result; tests/work/test_follow_ups.py computes UMAP."""
    run = app.trained(fields={"dimension": 16, "epochs": 3})
    (pca,) = list_analyses(run, PCA)
    umap = create_analysis(run, plan_analysis(kind="umap"))
    with umap.lock().acquire():
        umap.write_status(Status(state="running", started=time.time(), phase="layout"))
        page.goto(f"/map?run={run.id}")
        drawn_map(page)
        expect(page.get_by_role("combobox", name="Layout")).to_have_value(re.compile("^PCA"))
        umap.write_result(np.load(pca.folder / "result.npz"))
        umap.write_status(Status(state="done"))
    expect(page.get_by_role("combobox", name="Layout")).to_have_value("UMAP · by epoch")
    chart = drawn_map(page)
    settle(page)
    lasso(page, chart)
    listed = page.get_by_role("group", name="Selected images")
    expect(listed).to_be_visible()
    expect(chart.locator(".legend button").first).to_contain_text(" / ")
    top, beside = chart.bounding_box(), page.locator(".st-key-explore-details").bounding_box()
    images, window = listed.bounding_box(), page.viewport_size
    assert top is not None
    assert beside is not None
    assert images is not None
    assert window is not None
    assert top["y"] <= beside["y"] <= top["y"] + 260, "the panel is beside the map"
    assert beside["x"] > top["x"] + top["width"] - 5
    assert images["y"] + images["height"] <= beside["y"] + beside["height"]
    assert images["y"] < window["height"]
    settle(page)


@pytest.mark.slow
def test_the_camera_never_runs_into_blank_space(page: Page, mapped: Run) -> None:
    page.goto(f"/map?run={mapped.id}&camera-map=0,0,100000000")
    chart = drawn_map(page)
    overlay = chart.locator(".overlay")
    overlay.focus()
    for key in ["ArrowRight"] * 30 + ["+"] * 30 + ["ArrowUp"] * 30:
        page.keyboard.press(key)
    inside = """chart => {
      const { chart: map } = chart; const { width, height } = map.room();
      for (let row = 0; row < map.header.count; row += 1) {
        const [x, y] = map.toScreen(map.to[2 * row], map.to[2 * row + 1]);
        if (x >= 0 && y >= 0 && x <= width && y <= height) return true;
      }
      return false;
    }"""
    assert chart.evaluate(inside)
    page.keyboard.press("0")
    for _ in range(20):
        page.keyboard.press("-")
    assert chart.evaluate("chart => chart.chart.camera.zoom / chart.chart.fitted") == pytest.approx(1, abs=0.001)
    settle(page)


ZOOM = "chart => chart.chart.camera.zoom"
ZOOMED = f"([chart, before]) => ({ZOOM})(chart) > before"


def test_the_wheel_scrolls_past_a_map_until_it_is_clicked(page: Page, app: App) -> None:
    page.goto("/lab?dataset=digits")
    chart = drawn_map(page)
    settle(page)
    surface = chart.locator(".overlay")
    surface.hover()
    before = chart.evaluate(ZOOM)
    page.mouse.wheel(0, -200)
    expect(page.locator(".fingers")).to_have_text("Ctrl and the wheel zoom the map, or click it first")
    assert chart.evaluate(ZOOM) == before
    page.keyboard.down("Control")
    page.mouse.wheel(0, -200)
    page.keyboard.up("Control")
    page.wait_for_function(ZOOMED, arg=[chart.element_handle(), before])
    before = chart.evaluate(ZOOM)
    surface.focus()  # as after a click
    page.mouse.wheel(0, -200)
    page.wait_for_function(ZOOMED, arg=[chart.element_handle(), before])
    page.set_viewport_size({"width": 1400, "height": 600})  # which the map fills
    settle(page)
    before = chart.evaluate(ZOOM)
    surface.blur()
    surface.hover()
    page.mouse.wheel(0, -200)
    page.wait_for_function(ZOOMED, arg=[chart.element_handle(), before])


def test_a_map_without_a_size_shows_the_view_of_its_address_once_it_has_one(page: Page, mapped: Run) -> None:
    page.goto(f"/explore?run={mapped.id}")
    chart = drawn_map(page)
    settle(page)
    wanted, shown = chart.evaluate("""async (root) => {
        const drawn = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        const { chart } = root;
        const wanted = 2 * chart.fitted;
        root.style.display = "none"; // as in a page that is drawn again
        await drawn();
        chart.header = { ...chart.header, camera: [chart.camera.x, chart.camera.y, wanted] };
        chart.camera = null;
        chart.move(chart.flat, true, true, null);
        root.style.display = "";
        await drawn();
        return [wanted, chart.camera.zoom];
    }""")
    assert shown == pytest.approx(wanted, rel=0.01), "else all points fall into one"


def test_clusters_follow_the_slider(page: Page, mapped: Run) -> None:
    page.goto(f"/clusters?run={mapped.id}&epsilon=0.9")  # more clusters than the legend has lines
    chart = drawn_map(page)
    settle(page)
    before = chart.get_attribute("data-colored")
    page.get_by_role("slider", name=re.compile("ε")).focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(lambda address: "epsilon=0.9" not in address and "epsilon=" in address)
    expect(chart).not_to_have_attribute("data-colored", before or "")
    expect(page.get_by_text(re.compile("images moved"))).to_be_visible()
    settle(page)
    listed = chart.locator(".legend button:visible").all_inner_texts()
    sizes = [int(text.split()[-1].replace(",", "")) for text in listed if "cluster" in text]
    assert sizes == sorted(sizes, reverse=True), "so the largest clusters have colors of their own"
    more = chart.locator(".legend .more")
    expect(more).to_have_text(re.compile(r"\+ [1-9]\d* more"))
    last = chart.locator(".legend button:not(.more)").last
    expect(last).to_be_hidden()
    more.press("Enter")
    expect(last).to_be_visible()
    expect(more).to_have_attribute("aria-expanded", "true")
    expect(chart.locator(".legend button:focus")).to_have_count(1)
    expect(chart.locator(".legend .more:focus")).to_have_count(0)  # but the first category that was hidden
    more.press("Enter")
    expect(last).to_be_hidden()


def test_grid_shows_all_images(page: Page, mapped: Run) -> None:
    spec = json.loads(next((mapped.folder / "analyses").glob("grid-*/spec.json")).read_text(encoding="utf-8"))
    page.goto(f"/grid?run={mapped.id}&map={spec['source']}&moment={spec['frame']}")
    page.get_by_text("Similar images are neighbors in the grid.").wait_for()
    chart = drawn_map(page)
    expect(chart.locator(".summary")).to_have_text(re.compile("images$"))
    settle(page)


def test_triplets_follow_the_slider_and_keep_their_order_in_the_address(page: Page, mapped: Run) -> None:
    page.goto(f"/triplets?run={mapped.id}")
    expect(page.get_by_role("img", name=re.compile("After training: the half angle is"))).to_be_visible()
    page.get_by_role("slider", name=re.compile("α")).focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(re.compile("alpha=44"))
    settle(page)
    page.get_by_test_id("stButtonGroup").get_by_role("radio", name="angle").click()
    page.wait_for_url(re.compile("by=angle"))
    expect(page.get_by_text("the badge is the angle")).to_be_visible()
    settle(page)


@pytest.mark.slow
def test_a_neighborhood_is_seen_from_near_until_the_user_moves_the_map(page: Page, mapped: Run) -> None:
    page.goto(f"/neighborhoods?run={mapped.id}&picked=5")
    chart = page.locator(".st-key-neighborhood-map .scatter[data-drawn]").element_handle(timeout=60_000)
    inside = """chart => {
        const { header, to, stage: { clientWidth: width, clientHeight: height } } = chart.chart;
        return header.marks.flatMap(({ row, lines }) => [row, ...lines]).every((row) => {
            const [x, y] = chart.chart.toScreen(to[2 * row], to[2 * row + 1]);
            return x > 0 && y > 0 && x < width && y < height;
        });
    }"""
    assert chart.evaluate("chart => chart.chart.isAtMarks")
    assert chart.evaluate(inside)
    assert chart.evaluate(f"chart => ({ZOOM})(chart) / chart.chart.fitted") > 1.05
    assert "camera" not in page.url, "the page chose it, not the user"
    chart.evaluate("chart => { chart.chart.fit(); chart.chart.ask(); }")
    assert chart.evaluate(f"chart => ({ZOOM})(chart) / chart.chart.fitted") == pytest.approx(1)


def test_a_neighborhood_follows_the_slider_and_a_click_chooses_the_second_image(page: Page, mapped: Run) -> None:
    page.goto(f"/neighborhoods?run={mapped.id}&section=pair")
    drawn_map(page)
    settle(page)
    page.get_by_role("button", name="More").click()
    page.get_by_role("slider", name=re.compile("Nα")).focus()
    first = page.get_by_role("img", name=re.compile("In the first image's flat")).get_attribute("alt") or ""
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile("n_alpha=4.1"))
    expect(page.get_by_role("img", name=first, exact=True)).to_have_count(0)
    page.keyboard.press("Escape")
    page.get_by_role("tab", name="Rankings").click()
    page.get_by_role("group", name="By distance").get_by_role("button").nth(5).click()
    page.wait_for_url(re.compile("second="))
    settle(page)
    page.get_by_role("button", name=re.compile("Swap the images|Look at the second")).click()
    page.wait_for_url(re.compile("picked="))
    settle(page)


@pytest.fixture(scope="module")
def with_proxies(app: App) -> Run:
    return app.trained(method="plm", fields={"dimension": 16, "epochs": 2, "views": 2})


@pytest.mark.slow
@in_both_windows
def test_neighborhoods_with_proxies_fit_the_window_pass_axe_and_open_a_clicked_image(
        page: Page, with_proxies: Run) -> None:
    page.goto(f"/neighborhoods?run={with_proxies.id}&picked=5")
    drawn_map(page)
    expect(page.locator("div.scatter")).to_have_count(1)
    page.get_by_role("tab", name="Lines of equal similarity").click()
    expect(page.get_by_text("Similarity along and across as a table")).to_be_visible()
    settle(page)
    assert not complaints(page)
    page.get_by_role("tab", name="Proxies").click()
    drawn_map(page, 1)
    page.get_by_role("group", name="Images nearest to the proxy").get_by_role("button").nth(3).click()
    page.wait_for_url(re.compile(r"picked=(?!5\b)"))
    settle(page)


ROOMY = """async (root) => {
    const { chart } = root;
    const computed = Float32Array.from({ length: 2 * chart.header.count }, (_, at) => {
        const group = (at >> 1) % 5; // five groups within a hundredth of the map, with equal points
        return 10 * (at % 2 ? group % 2 : group) + 0.1 * Math.sin(at % 40);
    });
    const nearest = (flat) => {
        const of = [];
        for (let row = 0; row < chart.header.count; row += 1) {
            let least = Infinity;
            for (let other = 0; other < chart.header.count; other += 1) {
                const away = Math.hypot(flat[2 * row] - flat[2 * other], flat[2 * row + 1] - flat[2 * other + 1]);
                if (other !== row) least = Math.min(least, away);
            }
            of.push(least);
        }
        return of.sort((a, b) => a - b);
    };
    const center = (flat, group) => [0, 1].map((axis) => {
        const of = [...flat].filter((_, at) => at % 2 === axis && (at >> 1) % 5 === group);
        return of.reduce((sum, value) => sum + value, 0) / of.length;
    });
    chart.header = { ...chart.header, roomy: true, bounds: null };
    chart.move(computed, true, true, null);
    const [drawn, spots, bounds] = [chart.to, nearest(chart.to), chart.boundsOf(chart.to)];
    const guest = chart.drawnAt([computed[8], computed[9]]);
    const apart = Math.max(...[0, 1, 2, 3, 4].map((group) => Math.hypot(
        ...center(drawn, group).map((value, axis) => value - center(computed, group)[axis]))));
    root.querySelector('[data-tool="apart"]').click();
    return {
        before: nearest(computed)[0], least: spots[0], middle: spots[spots.length >> 1], bounds, apart,
        room: Math.sqrt((0.45 * 40.2 * 10.2) / chart.header.count),
        computedBounds: chart.boundsOf(computed), guest, drawn: [drawn[8], drawn[9]],
        isBack: chart.to.every((value, at) => value === computed[at]),
    };
}"""


def test_images_that_lie_on_each_other_have_room_until_a_button_shows_the_computed_map(page: Page, mapped: Run) -> None:
    page.goto(f"/explore?run={mapped.id}")
    chart = drawn_map(page)
    settle(page)
    expect(chart.locator("[data-tool=apart]")).to_be_hidden()  # of PCA, whose distances tell something
    got = chart.evaluate(ROOMY)
    assert got["before"] == 0
    assert got["least"] > 0.2 * got["room"], "no two points lie on each other"
    assert 0.4 * got["room"] < got["middle"] < got["room"]
    assert got["bounds"] == pytest.approx(got["computedBounds"], abs=1e-4), "the view stays"
    assert got["apart"] < 4, "groups keep their places"
    assert got["guest"] == pytest.approx(got["drawn"], abs=1e-4), "a new image lies beside its nearest image"
    assert got["isBack"]


INK = """([gray, color]) => {
    const data = new Uint8ClampedArray(4 * 64 * 64);
    gray.forEach((value, at) => data.set([value, value, value, 255], 4 * at));
    colorInk(data, 64, color);
    return Array.from({ length: 64 * 64 }, (_none, at) => data[4 * at + 3]);
}"""


def test_gray_images_on_a_map_are_ink_of_their_color_on_paper(page: Page, mapped: Run) -> None:
    page.goto(f"/explore?run={mapped.id}")
    overlay = drawn_map(page).locator(".overlay")
    settle(page)
    page.wait_for_function("""overlay => {
        const { data } = overlay.getContext("2d").getImageData(0, 0, overlay.width, overlay.height);
        const is = (at, test) => data[at + 3] > 200 && test(data[at], data[at + 1], data[at + 2]);
        let [paper, black] = [0, 0];
        for (let at = 0; at < data.length; at += 4) {
            paper += is(at, (...parts) => Math.min(...parts) > 250);
            black += is(at, (...parts) => Math.max(...parts) < 40);
        }
        return paper > 2000 && black < paper / 10;
    }""", arg=overlay.element_handle())


def test_an_image_as_ink_keeps_its_grays(browser: Browser) -> None:
    page = browser.new_page()
    page.add_script_tag(path=ASSETS / "ink.js")
    fine = np.random.default_rng(0).integers(0, 256, (64, 64))
    fine[[0, 0, -1, -1], [0, -1, 0, -1]] = 0
    ink = np.array(page.evaluate(INK, [fine.ravel().tolist(), [1, 2, 3]])).reshape(64, 64)
    assert np.abs(ink - np.minimum(255, 1.15 * fine)).max() <= 1
    page.close()
