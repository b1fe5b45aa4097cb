"""The instrument in a real Chromium: lasso, linked selection, scrubbing, share link, export, sliders, lesson."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.app.conftest import App
from tests.app.test_browser import complaints, newest, settle
from udml_core.runs import Run

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def mapped(app: App) -> Run:
    """A small finished run on the digits with a map of every epoch."""
    trained = app.command("train", "--dataset", "digits", "--backbone", "pixels", "--method", "rpml", "--set",
                          "dimension=16", "--set", "epochs=3", "--split", "seen", "--json")
    assert trained.returncode == 0, trained.stderr
    run = newest(app)
    for words in (["--kind", "pca", "--scope", "sample", "--frames", "0,1,2,3"], ["--kind", "grid", "--source", "pca"]):
        source = next((run.folder / "analyses").glob("pca-*")).name
        made = app.command("analyse", run.id, *(source if word == "pca" and words[1] == "grid" else word
                                                for word in words), "--json")
        assert made.returncode == 0, made.stderr
    return run


def epochs_map(run: Run) -> str:
    """The id of the map of every epoch."""
    return next(path.parent.name for path in (run.folder / "analyses").glob("pca-*/spec.json")
                if '"sample"' in path.read_text(encoding="utf-8"))


def drawn(page: Page, place: int = 0) -> Locator:
    """A map that has drawn its points."""
    chart = page.locator("div.scatter").nth(place)
    expect(chart).to_have_attribute("data-drawn", re.compile(r"\d+"))
    return chart


def lasso(page: Page, chart: Locator) -> None:
    """Shift-drag around the middle of a map."""
    chart.scroll_into_view_if_needed()
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


def test_a_lasso_selects_in_both_maps_the_gallery_and_the_link(page: Page, mapped: Run) -> None:
    page.goto(f"/map?run={mapped.id}&map={epochs_map(mapped)}&compare=frame")
    first, second = drawn(page), drawn(page, 1)
    settle(page)
    lasso(page, first)
    page.wait_for_url(re.compile("selected="))
    chosen = first.locator(".summary").inner_text()
    assert re.match(r"[\d,]+ of [\d,]+ selected", chosen), chosen
    expect(second.locator(".summary")).to_have_text(chosen)
    expect(page.get_by_role("group", name="Selected images")).to_be_visible()
    settle(page)
    page.goto(page.url)
    expect(drawn(page).locator(".summary")).to_have_text(chosen)
    page.keyboard.press("Escape")
    drawn(page).locator(".overlay").focus()
    page.keyboard.press("Escape")
    expect(drawn(page, 1).locator(".summary")).to_have_text(re.compile("images$"))


def test_the_cursor_moves_map_curves_and_neighbors(page: Page, mapped: Run) -> None:
    page.goto(f"/map?run={mapped.id}&map={epochs_map(mapped)}&frame=0&picked={mapped.sample_indices()[5]}")
    drawn(page)
    expect(page.get_by_role("group", name=re.compile("its nearest in the embedding, before training"))).to_be_visible()
    page.get_by_role("slider", name="Moment").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile("frame=1"))
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile("frame=2"))
    expect(page.get_by_role("group", name=re.compile("its nearest in the embedding, epoch 2"))).to_be_visible()
    expect(page.get_by_text("Clusters at this moment:")).to_be_visible()
    settle(page)


@pytest.mark.parametrize("page", [{"viewport": {"width": 1400, "height": 2000}}], indirect=True, ids=["tall"])
def test_the_exported_map_opens_from_disk(page: Page, browser: Browser, mapped: Run, tmp_path: Path) -> None:
    page.goto(f"/map?run={mapped.id}&map={epochs_map(mapped)}")
    drawn(page)
    settle(page)
    page.wait_for_timeout(1000)
    page.get_by_role("button", name="Share and export").click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Map as one HTML file").click()
    file = tmp_path / "map.html"
    waiting.value.save_as(file)
    context = browser.new_context(offline=True)
    alone = context.new_page()
    problems: list[str] = []
    alone.on("pageerror", lambda error: problems.append(str(error)))
    alone.goto(file.as_uri())
    lasso(alone, drawn(alone))
    expect(alone.locator(".summary")).to_have_text(re.compile("selected$"))
    context.close()
    assert problems == []


def test_clusters_re_form_while_the_slider_moves(page: Page, mapped: Run) -> None:
    page.goto(f"/clusters?run={mapped.id}")
    chart = drawn(page)
    settle(page)
    before = chart.get_attribute("data-colored")
    page.get_by_role("slider", name=re.compile("^ε")).focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(re.compile("epsilon="))
    expect(chart).not_to_have_attribute("data-colored", before or "")
    settle(page)


def test_a_grid_shows_every_image(page: Page, mapped: Run) -> None:
    made = json.loads(next((mapped.folder / "analyses").glob("grid-*/spec.json")).read_text(encoding="utf-8"))
    page.goto(f"/grid?run={mapped.id}&map={made['source']}&moment={made['frame']}")
    page.get_by_text("A seam between two images is dark").wait_for()
    chart = drawn(page)
    expect(chart.locator(".summary")).to_have_text(re.compile("images$"))
    settle(page)


def test_triplets_are_drawn_and_alpha_moves(page: Page, mapped: Run) -> None:
    page.goto(f"/triplets?run={mapped.id}")
    expect(page.get_by_role("img", name=re.compile("As the loss saw it: the angle is"))).to_be_visible()
    page.get_by_role("slider", name=re.compile("^α")).focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(re.compile("alpha=44"))
    settle(page)


def test_a_neighborhood_re_forms_and_a_click_makes_the_second_image(page: Page, mapped: Run) -> None:
    page.goto(f"/neighborhoods?run={mapped.id}")
    drawn(page)
    settle(page)
    page.get_by_role("slider", name=re.compile("Nα")).focus()
    first = page.get_by_role("img", name=re.compile("In the first image's flat")).get_attribute("alt") or ""
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile("n_alpha=4.1"))
    expect(page.get_by_role("img", name=first, exact=True)).to_have_count(0)
    page.get_by_role("group", name="By cosine").get_by_role("button").nth(5).click()
    page.wait_for_url(re.compile("second="))
    settle(page)
    page.get_by_role("button", name="Look at the second one").click()
    page.wait_for_url(re.compile("picked="))
    settle(page)


@pytest.fixture(scope="module")
def with_proxies(app: App) -> Run:
    trained = app.command("train", "--dataset", "digits", "--backbone", "pixels", "--method", "plm", "--set",
                          "dimension=16", "--set", "epochs=2", "--set", "views=2", "--split", "seen", "--json")
    assert trained.returncode == 0, trained.stderr
    return newest(app)


@pytest.mark.parametrize("page", [{"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
                                  for scheme, width in (("light", 1400), ("dark", 390))], indirect=True,
                         ids=["light-1400", "dark-390"])
def test_neighborhoods_and_proxies_fit_their_window_and_pass_axe(page: Page, with_proxies: Run) -> None:
    page.goto(f"/neighborhoods?run={with_proxies.id}")
    drawn(page, 1)
    page.get_by_text("Lines of equal similarity").click()
    expect(page.get_by_text("Similarity along and across as a table")).to_be_visible()
    settle(page)
    assert not complaints(page)


def test_a_click_on_a_proxy_s_image_looks_at_it(page: Page, with_proxies: Run) -> None:
    page.goto(f"/neighborhoods?run={with_proxies.id}&picked=5")
    drawn(page, 1)
    page.get_by_role("group", name="Images nearest to the proxy").get_by_role("button").nth(3).click()
    page.wait_for_url(re.compile(r"picked=(?!5\b)"))
    settle(page)


def test_the_lesson_unlocks_its_slider_after_a_prediction(page: Page, app: App) -> None:
    page.goto("/lesson_epsilon")
    settle(page)
    expect(page.get_by_role("slider")).to_have_count(0)
    page.get_by_text("Fewer, larger clusters").click()
    expect(page.get_by_role("slider")).to_be_visible()
    drawn(page)
    settle(page)
