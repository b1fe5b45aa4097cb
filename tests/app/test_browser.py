"""The main paths of a user in a real Chromium against a real server."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import Download, Locator, Page, TimeoutError, ViewportSize, expect
from sklearn.datasets import load_digits

from tests.app.conftest import App
from tests.running import spec
from udml_core.runs import Run, list_runs
from udml_core.runs.verdict import side_of
from udml_core.work import jobs

pytestmark = pytest.mark.browser
PAGES = ("", "data", "train", "runs", "sweeps", "explore", "compare", "map", "grid", "clusters", "neighborhoods",
         "instances", "triplets", "labels", "affinity", "pairs", "retrieval", "refine", "learn", "results", "benchmark")
MINUTE = 60_000
FOLDER = re.compile("^Folder, ZIP or TAR")
FITS = """(() => {
  const main = document.querySelector("[data-testid=stMain]");
  return !main || main.scrollWidth <= main.clientWidth;
})()"""
"""Whether the page's content, which has scroll bars of its own, is no wider than its place."""


def settle(page: Page) -> None:
    """Wait until the app has drawn its page and no script is running."""
    page.wait_for_selector("h1")
    page.wait_for_function("!document.querySelector('[data-testid=stApp][data-test-script-state=running]')")


def newest(app: App) -> Run:
    """Return the newest run."""
    return list_runs(app.runs)[0]


def until(run: Run, *states: str, seconds: float = 800) -> str:
    """Wait until a run is in one of several states; return the state."""
    deadline = time.monotonic() + seconds
    while (state := run.status().state) not in states:
        assert time.monotonic() < deadline, f"{run.id} is {run.status()} after {seconds} s"
        time.sleep(0.1)
    return state


def press_to_download(button: Locator, open_menu: Callable[[], None] = lambda: None) -> Download:
    """Press a button that makes its file when it is pressed, and return the file.

    A page that is drawn again at that moment closes the menu or replaces the button, so this tries again.
    """
    for seconds in (5, 20, 60, 120):
        if not button.is_visible():
            open_menu()
        try:
            with button.page.expect_download(timeout=1000 * seconds) as waiting:
                button.click(timeout=1000 * seconds)
        except TimeoutError:
            continue
        return waiting.value
    raise AssertionError(f"nothing was downloaded by {button}")


def download(page: Page, label: str, folder: Path) -> Path:
    """Press a button of the menu "Share and export" and return the stored file."""
    menu = page.get_by_role("button", name="Share and export")
    file = press_to_download(page.get_by_role("button", name=label), menu.click)
    file.save_as(folder / file.suggested_filename)
    return folder / file.suggested_filename


NARROW: ViewportSize = {"width": 390, "height": 900}
WIDE: ViewportSize = {"width": 1400, "height": 900}
in_both_windows = pytest.mark.parametrize("page", [
    pytest.param({"color_scheme": "light", "viewport": WIDE}, id="light-1400"),
    pytest.param({"color_scheme": "dark", "viewport": NARROW}, id="dark-390", marks=pytest.mark.slow)], indirect=True)
"""A wide light window and a narrow dark one."""


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with 120 unlabeled images and a broken file."""
    folder = tmp_path_factory.mktemp("photographs")
    for index, digit in enumerate(load_digits().images[:120]):
        Image.fromarray((digit * 15).astype("uint8")).resize((32, 32)).save(folder / f"photo {index:03}.png")
    (folder / "broken.jpg").write_bytes(b"\xff\xd8\xff no image")
    return folder


def test_the_first_link_to_a_page_is_answered_by_the_app(app: App, page: Page) -> None:
    page.goto("/train")
    settle(page)
    expect(page.get_by_role("link", name="Search")).to_be_visible()
    expect(page.get_by_role("link", name="app")).to_have_count(0)


def test_the_button_on_home_trains_the_default_and_the_run_can_be_searched(app: App, page: Page) -> None:
    page.goto("/")
    page.get_by_role("button", name="Train RPML now").click()
    page.wait_for_function("location.pathname === '/lab' && location.search.includes('live=')")
    run = newest(app)
    page.reload()
    assert until(run, "done", "failed") == "done", run.status().message
    link = page.get_by_test_id("stMain").get_by_role("link", name="Search", exact=True)
    expect(link).to_be_visible(timeout=2 * MINUTE)
    link.click()
    page.wait_for_url(re.compile(r"/search"))
    gallery = page.get_by_role("group", name="Sample queries")
    gallery.get_by_role("button").nth(4).click()
    page.wait_for_url(re.compile(r"add=\d+"))
    after = page.get_by_role("group", name="The 10 nearest images, after training")
    expect(after.get_by_role("button")).to_have_count(10)
    expect(page.get_by_role("group", name="The 10 nearest images, raw pixels").get_by_role("button")
           ).to_have_count(10)
    assert "class" in (after.get_by_role("button").first.get_attribute("aria-label") or "")
    settle(page)
    first_query = page.url
    after.get_by_role("button").nth(2).click()
    page.wait_for_url(lambda url: url != first_query and "add=" in url)
    settle(page)


def test_home_plays_a_training_and_its_query_changes_without_python(page: Page, finished: Run) -> None:
    page.goto(f"/?run={finished.id}")
    training = page.locator(".instrument[data-drawn]")
    expect(training).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    cursor = page.get_by_role("slider", name="Epoch")
    cursor.focus()
    page.keyboard.press("Home")
    expect(training).to_have_attribute("data-epoch", "0")
    expect(cursor).to_have_attribute("aria-valuetext", re.compile(r"^before training · whole group found \d+\.\d %"))
    tiles = page.get_by_role("group", name="The nearest images of the query").get_by_role("button")
    expect(tiles).to_have_count(10)
    before = [tile.get_attribute("aria-label") for tile in tiles.all()]
    page.keyboard.press("End")
    expect(training).to_have_attribute("data-epoch", str(len(finished.epoch_numbers()) - 1))
    assert [tile.get_attribute("aria-label") for tile in tiles.all()] != before
    query = training.get_attribute("data-query")
    tiles.first.click()
    expect(training).not_to_have_attribute("data-query", str(query))
    page.get_by_role("application").focus()
    page.keyboard.press("ArrowLeft")
    expect(training).to_have_attribute("data-epoch", str(len(finished.epoch_numbers()) - 2))
    page.keyboard.press(" ")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    settle(page)


@pytest.mark.parametrize("page", [
    {"viewport": {"width": 1400, "height": 900}},
    pytest.param({"viewport": {"width": 1024, "height": 768}}, marks=pytest.mark.slow),
    pytest.param({"viewport": {"width": 390, "height": 844}}, marks=pytest.mark.slow)], indirect=True,
    ids=["1400x900", "1024x768", "390x844"])
def test_the_map_of_images_comes_first_and_the_three_ways_are_above_the_fold(page: Page, finished: Run) -> None:
    page.goto(f"/?run={finished.id}")
    training = page.locator(".instrument[data-marks]")
    expect(training).to_have_attribute("data-marks", "images")
    settle(page)
    stage, size = page.locator(".stage").bounding_box(), page.viewport_size
    assert stage is not None
    assert size is not None
    own = page.locator(".st-key-home-used")  # of a folder that another test opened
    above = (own.bounding_box() or {"height": 0.0})["height"] + 16 if own.count() else 0.0
    assert stage["y"] - above < (200 if size["width"] > 600 else 270), "only a title and a sentence above it"
    expect(page.get_by_text("Find similar images in your own folder")).to_be_in_viewport(ratio=1)
    assert stage["height"] >= 0.38 * size["height"]
    doors = page.locator(".st-key-home-doors")
    for door in (doors.get_by_role("button", name="Search my folder"), doors.get_by_role("link", name="Try it live"),
                 doors.get_by_role("link", name="Learn")):
        box = door.bounding_box()
        assert box is not None
        assert stage["y"] + stage["height"] <= box["y"]
        assert box["y"] + box["height"] - above <= size["height"]
        assert box["x"] + box["width"] <= size["width"]
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.get_by_role("button", name="Zoom in").click()
    expect(training).to_have_attribute("data-marks", "images")


@pytest.mark.parametrize("page", [{"reduced_motion": "reduce"}], indirect=True)
def test_home_does_not_play_by_itself_when_motion_is_reduced(page: Page, finished: Run) -> None:
    page.goto(f"/?run={finished.id}")
    training = page.locator(".instrument[data-drawn]")
    expect(training).to_have_attribute("data-epoch", str(len(finished.epoch_numbers()) - 1))
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    own, rivals = (page.locator(f".bar.{kind}").evaluate_all(
        "bars => bars.map((bar) => [parseFloat(bar.textContent), bar.className])") for kind in ("own", "rival"))
    assert own
    for at, (value, look) in enumerate(own):
        side = side_of(value, [rival for rival, _ in rivals[at::len(own)]], len(finished.sample_indices()))
        assert look == ["bar own below", "bar own level", "bar own"][side + 1], "another color below a baseline"
    settle(page)


def test_back_needs_one_press_a_page_and_keys_search(page: Page, finished: Run) -> None:
    page.goto("/")
    page.wait_for_function("Boolean(window.udmlHistory)")
    settle(page)
    for name in ("Search", "Data"):
        page.get_by_test_id("stSidebarNav").get_by_role("link", name=name, exact=True).click()
        page.wait_for_url(re.compile(f"/{name.lower()}.*(run|dataset)="))
        settle(page)
        expect(page).to_have_title(f"{name} · UDML Explorer")
    page.go_back()
    page.wait_for_url(re.compile("/search"))
    settle(page)
    assert "dataset=" not in page.url, "the parameters of Data stay on Data"
    page.go_back()
    page.wait_for_url(re.compile(r"/(\?.*)?$"))
    settle(page)
    expect(page).to_have_title("UDML Explorer")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()
    page.keyboard.press("/")
    page.get_by_role("combobox", name="Search for a page, a run or an image").fill(number := finished.id[6:8])
    page.keyboard.press("Enter")  # A short number means an image, although the run's id has these digits too.
    page.wait_for_url(re.compile(rf"/search.*add={int(number)}\b"))
    settle(page)


def test_keys_move_through_the_gallery_and_it_keeps_its_focus(page: Page, finished: Run) -> None:
    page.goto(f"/retrieval?run={finished.id}")
    tiles = page.get_by_role("group", name="Sample queries").get_by_role("button")
    expect(tiles.first).to_be_visible()
    tiles.first.focus()
    page.keyboard.press("ArrowRight")
    expect(tiles.nth(1)).to_be_focused()
    page.keyboard.press("End")
    expect(tiles.last).to_be_focused()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    chosen = page.evaluate("document.activeElement.shadowRoot?.activeElement?.dataset.id ?? "
                           "document.activeElement.dataset.id")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(rf"add={chosen}\b"))
    settle(page)
    expect(page.get_by_role("group", name="Sample queries").locator(f"[data-id='{chosen}']")).to_be_focused()


def choose(page: Page, label: str, option: str) -> None:
    """Choose an option in a select box; its list closes again if its expander is still opening."""
    for _ in range(5):
        page.get_by_role("combobox", name=re.compile(label)).click()
        try:
            page.get_by_role("option", name=option, exact=True).click(timeout=5_000)
            break
        except TimeoutError:
            continue
    settle(page)


@pytest.mark.slow
def test_options_of_train_stay_in_the_link_and_the_run_is_compared_with_another(
        app: App, page: Page, finished: Run) -> None:
    page.goto("/train?dataset=digits&method=pca&backbone=pixels&split=seen&size=32")
    settle(page)
    page.get_by_text("Backbone, split, seed and device").click()
    choose(page, "Keep the epoch", "validation")
    page.wait_for_url(re.compile("select=validation"))
    page.get_by_role("spinbutton", name="Seed").fill("7")
    page.get_by_role("spinbutton", name="Seed").press("Enter")
    page.wait_for_url(re.compile("seed=7"))
    choose(page, "Split", "all")
    page.wait_for_url(re.compile("split=all"))
    choose(page, "Split", "seen")
    page.wait_for_url(re.compile("split=seen"))
    page.reload()
    settle(page)
    assert {"backbone=pixels", "split=seen", "size=32", "seed=7", "select=validation"} <= set(
        page.url.split("?")[1].split("&"))
    page.get_by_role("button", name="Start training").click()
    page.wait_for_url(re.compile(r"live="))
    run = newest(app)
    spec = run.spec()
    assert (spec.method, spec.encoder.backbone, spec.encoder.size) == ("pca", "pixels", 32)
    assert (spec.split, spec.seed, spec.select) == ("seen", 7, "validation")
    assert until(run, "done", "failed") == "done", run.status().message
    page.goto("/runs")
    settle(page)
    box = page.get_by_test_id("stDataFrame").first.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 15, box["y"] + 35 * 2.5)  # the first row, the newest run, is chosen already
    settle(page)
    page.get_by_role("button", name="Compare image by image").click()
    page.wait_for_url(re.compile(r"compare"))


@pytest.mark.slow
def test_a_folder_without_labels_is_imported_trained_and_searched(
        app: App, page: Page, photographs: Path) -> None:
    page.goto("/data?import=1")
    settle(page)
    page.get_by_role("textbox", name=FOLDER).fill(str(photographs / "nowhere"))
    page.get_by_role("textbox", name=FOLDER).press("Enter")
    page.get_by_test_id("stTabs").get_by_role("button", name="Open", exact=True).click()
    expect(page.get_by_test_id("stAlert").filter(has_text="nowhere")).to_be_visible()
    page.get_by_role("textbox", name=FOLDER).fill(str(photographs))
    page.get_by_role("textbox", name=FOLDER).press("Enter")
    page.get_by_test_id("stTabs").get_by_role("button", name="Open", exact=True).click()
    expect(page.get_by_text("1 file cannot be read")).to_be_visible()
    expect(page.get_by_text("· no classes ·")).to_be_visible()
    page.goto(f"/train?dataset={photographs}&method=whiten")
    page.get_by_role("button", name="Start training").click()
    page.wait_for_url(re.compile(r"live="))
    run = newest(app)
    assert until(run, "done", "failed") == "done", run.status().message
    page.goto(f"/runs?run={run.id}")
    expect(page.get_by_text("Not judged yet.")).to_be_visible()
    page.get_by_text("Figures of the embedding").click()
    expect(page.get_by_text(re.compile("^All measures on the "))).to_be_visible()
    evaluation = run.evaluation()
    assert evaluation is not None
    assert "recall@1" not in evaluation["final"]
    assert evaluation["final"]["trustworthiness"] > 50
    page.goto(f"/retrieval?run={run.id}&add=3")
    expect(page.get_by_role("group", name="The 20 nearest images, after training").get_by_role("button")
           ).to_have_count(20)
    settle(page)


@pytest.mark.slow
def test_a_run_is_stopped_killed_and_resumed_twice_on_the_page(
        app: App, page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", app.environment["UDML_CACHE"])
    run = jobs.submit(spec(fields={"dimension": 32, "epochs": 1000}), app.runs)
    until(run, "running")
    page.goto(f"/runs?run={run.id}")
    page.get_by_role("button", name="Stop").click()
    until(run, "stopped")
    page.get_by_role("button", name="Resume").click()
    until(run, "running")
    os.kill(run.status().pid or 0, signal.SIGKILL)
    until(run, "interrupted")
    expect(page.get_by_test_id("stAlert").filter(has_text="worker")).to_be_visible()
    page.get_by_role("button", name="Resume").click()
    until(run, "running")
    page.get_by_role("button", name="Stop").click()
    until(run, "stopped")
    settle(page)


ALONE = ("runs", "sweeps", "compare", "map", "results", "benchmark")
"""Pages that no other fast test opens in a browser."""


@pytest.mark.parametrize("name", ALONE)
@pytest.mark.usefixtures("finished")
def test_a_page_opens_in_the_browser(name: str, page: Page) -> None:
    page.goto(f"/{name}")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    settle(page)
    expect(page.get_by_test_id("stException")).to_have_count(0)
    expect(page.get_by_test_id("stMain").get_by_role("alert")).to_have_count(0)


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
@pytest.mark.usefixtures("finished")
def test_a_page_fits_a_narrow_and_a_wide_window_and_passes_axe_in_dark_and_light(name: str, page: Page) -> None:
    """Open the page narrow and dark, then make it wide and light, which costs a third of opening it again."""
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size(NARROW)
    page.goto(f"/{name}")
    settle(page)
    assert not complaints(page), "narrow and dark"
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(WIDE)
    settle(page)
    page.wait_for_timeout(700)
    if _problems(page):  # Streamlit changes some colors of a drawn page late or never.
        page.goto(f"/{name}")
        settle(page)
        assert not complaints(page), "wide and light"


def complaints(page: Page) -> list[tuple[str, list[str]]]:
    """Return the problems of a drawn page: overflow, and serious violations that axe finds in our own nodes."""
    deadline = time.monotonic() + 60
    while True:  # Components draw some time after Streamlit has finished.
        page.wait_for_timeout(700)
        problems = _problems(page)
        if not problems or time.monotonic() > deadline:
            return problems


def _problems(page: Page) -> list[tuple[str, list[str]]]:
    if not page.evaluate("document.documentElement.scrollWidth <= innerWidth + 2"):
        return [("wider than its window", [page.url])]
    if not page.evaluate(FITS):
        return [("scrolls sideways", [page.url])]
    violations = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    serious = [(violation["id"], [node["html"][:160] for node in violation["nodes"] if ours(node["html"])])
               for violation in violations if violation["impact"] in ("serious", "critical")]
    return [(rule, nodes) for rule, nodes in serious if nodes]


def ours(html: str) -> bool:
    """Return whether our pages made a node, not Streamlit's widgets."""
    return not re.search(r"data-testid=\"st|class=\"st-|emotion|data-baseweb|glideDataEditor|plotly|js-plotly", html)
