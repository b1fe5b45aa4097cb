"""The page Retrieval in a real Chromium: own images, several images, links, failures and downloads."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, TimeoutError, expect
from pyarrow import parquet
from sklearn.datasets import load_digits

from tests.app.test_browser import complaints, download, in_both_windows, settle
from udml_core.runs import Run

pytestmark = pytest.mark.browser
PASTE = """(files) => {
  const transfer = new DataTransfer();
  for (const [name, text] of files) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    transfer.items.add(new File([bytes], name, { type: "image/png" }));
  }
  document.body.dispatchEvent(new ClipboardEvent("paste", {
    clipboardData: transfer, bubbles: true, composed: true, cancelable: true }));
}"""
DROP = """(box, text) => {
  const transfer = new DataTransfer();
  transfer.items.add(new File([Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))], "dropped.png",
                             { type: "image/png" }));
  box.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, composed: true, cancelable: true }));
}"""


def picture(index: int, side: int = 8) -> Image.Image:
    pixels = (load_digits().images[index] * 255 / 16).round().astype("uint8")
    return Image.fromarray(pixels).resize((side, side), Image.Resampling.NEAREST)


def encoded(image: Image.Image) -> str:
    content = io.BytesIO()
    image.save(content, "PNG")
    return base64.b64encode(content.getvalue()).decode()


def open_search(page: Page, run: Run, rest: str = "") -> Locator:
    """Open the page; return its box for own images once it listens."""
    page.goto(f"/retrieval?run={run.id}{rest}")
    settle(page)
    box = page.get_by_role("group", name=re.compile("own images|images of your own", re.IGNORECASE))
    expect(box).to_have_attribute("data-ready", "")
    return box


def paste(page: Page, *images: tuple[str, str]) -> None:
    """Paste images, given by name and content."""
    page.evaluate(PASTE, images)


def query_images(page: Page) -> Locator:
    """Return the images of the query beside the strip."""
    return page.locator(".st-key-query-shown img")


def after(page: Page) -> Locator:
    """Return the tiles of the ranking after training."""
    return page.get_by_role("group", name="The 10 nearest images, after training").get_by_role("button")


@pytest.mark.slow
def test_own_images_come_from_clipboard_drop_and_files(page: Page, finished: Run, tmp_path: Path) -> None:
    sent: list[int] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(len(frame))))
    box = open_search(page, finished, "&compare=initial~final")  # both say distances
    known, broken = tmp_path / "digit.png", tmp_path / "broken.png"
    picture(7).save(known)
    broken.write_bytes(b"no image at all")

    page.locator("input[type=file]").set_input_files(known)
    expect(after(page).first).to_have_attribute("aria-label", re.compile("digit 7,.*0.000"))
    expect(page.get_by_text("digit.png")).to_be_visible()
    page.locator("input[type=file]").set_input_files(broken)
    expect(page.get_by_text("broken.png must be an image")).to_be_visible()
    expect(after(page).first).to_have_attribute("aria-label", re.compile("digit 7,.*0.000"))

    box.evaluate(DROP, encoded(picture(11)))
    expect(page.get_by_text("dropped.png")).to_be_visible()
    expect(after(page).first).to_have_attribute("aria-label", re.compile("digit 11,.*0.000"))

    paste(page, ("image.png", encoded(picture(7))))
    expect(after(page).first).to_have_attribute("aria-label", re.compile("digit 7,.*0.000"))
    box.focus()
    box.evaluate("""(box) => {
      const transfer = new DataTransfer();
      transfer.setData("text/plain", "https://example.org/cat.jpg");
      box.dispatchEvent(new ClipboardEvent("paste", { clipboardData: transfer, bubbles: true, composed: true }));
    }""")
    expect(box.get_by_role("status")).to_contain_text(re.compile("copy the image", re.IGNORECASE))
    paste(page, ("pasted.png", base64.b64encode(b"no image at all").decode()))
    expect(page.get_by_text("pasted.png must be an image")).to_be_visible()

    random = np.random.default_rng(0)
    noisy = np.asarray(picture(5, 2400), dtype=np.int64) + random.integers(-9, 10, (2400, 2400))
    large = encoded(Image.fromarray(noisy.clip(0, 255).astype("uint8")))
    paste(page, ("large.png", large))
    expect(after(page).first).to_have_attribute("aria-label", re.compile("digit 5"))
    assert len(large) > 3_000_000
    assert max(sent) < 1_000_000, "the browser reduces a large image before it sends it"

    files = [tmp_path / f"{index}.png" for index in (5, 15)]
    for file in files:
        picture(int(file.stem)).save(file)
    page.locator("input[type=file]").set_input_files(files)
    expect(query_images(page)).to_have_count(2)
    settle(page)
    chosen = after(page).nth(1).get_attribute("data-id")
    after(page).nth(1).click()
    page.wait_for_url(re.compile(rf"add={chosen}(&|$)"))
    expect(query_images(page)).to_have_count(1)
    settle(page)


@pytest.mark.slow
def test_several_images_are_added_and_subtracted_and_a_link_shows_the_same(page: Page, finished: Run) -> None:
    open_search(page, finished)
    samples = page.get_by_role("group", name="Sample queries").get_by_role("button")
    ids = [samples.nth(position).get_attribute("data-id") for position in range(3)]

    def choose_mode(words: str) -> None:
        page.get_by_role("button", name="Compose").click()
        page.get_by_text(words).click()
        settle(page)
        page.keyboard.press("Escape")

    samples.nth(0).click()
    page.wait_for_url(re.compile(rf"add={ids[0]}(&|$)"))
    choose_mode("+ add it")
    samples.nth(1).click()
    page.wait_for_url(re.compile(rf"add={ids[0]}\.{ids[1]}(&|$)"))
    choose_mode("− subtract it")
    samples.nth(2).click()
    page.wait_for_url(re.compile(rf"subtract={ids[2]}(&|$)"))
    settle(page)
    expect(query_images(page)).to_have_count(3)
    shown = [tile.get_attribute("aria-label") for tile in after(page).all()]
    url = page.url
    page.goto("/data")
    settle(page)
    page.goto(url)
    expect(query_images(page)).to_have_count(3)
    expect(after(page)).to_have_count(10)
    settle(page)
    assert [tile.get_attribute("aria-label") for tile in after(page).all()] == shown
    page.get_by_role("button", name="Compose").click()
    page.get_by_role("button", name="Remove", exact=True).nth(2).click()
    page.wait_for_url(lambda url: "subtract" not in url)
    settle(page)


@pytest.mark.parametrize("page", [{"viewport": {"width": 1400, "height": 900}}], indirect=True, ids=["laptop"])
def test_results_come_first_and_keys_images_and_columns_change_them(page: Page, finished: Run) -> None:
    """The main path: results at once, next and previous by key, image size in the browser, a third embedding."""
    sent: list[int] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(len(frame))))
    page.goto(f"/retrieval?run={finished.id}")
    expect(after(page)).to_have_count(10)
    settle(page)
    box = after(page).first.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] < 900, "the first results lie above the fold"
    more = page.locator(".st-key-retrieval-more").bounding_box()
    assert more is not None
    assert more["height"] < 60, "no place is kept below the button that shows more"
    samples = page.get_by_role("group", name="Sample queries").get_by_role("button")
    expect(samples.first).to_have_attribute("aria-current", "true")
    ids = [samples.nth(position).get_attribute("data-id") for position in range(2)]
    page.keyboard.press("n")
    page.wait_for_url(re.compile(rf"add={ids[1]}(&|$)"))
    expect(samples.nth(1)).to_have_attribute("aria-current", "true")
    settle(page)
    page.keyboard.press("p")
    page.wait_for_url(re.compile(rf"add={ids[0]}(&|$)"))
    settle(page)

    messages = len(sent)
    assert messages, "messages to Python are seen"
    slider = page.get_by_role("slider", name="Image size")
    slider.focus()
    for _ in range(12):
        page.keyboard.press("ArrowRight")
    expect(slider).to_have_attribute("aria-valuetext", "136 pixels")
    larger = after(page).first.bounding_box()
    assert larger is not None
    assert larger["width"] > box["width"] + 10, "the slider acts in the browser"
    assert len(sent) == messages

    page.goto(f"/retrieval?run={finished.id}&add={ids[0]}&compare=initial~2~final")
    expect(page.get_by_role("group", name="The 10 nearest images, Epoch 2").get_by_role("button")).to_have_count(10)
    settle(page)
    enlarged = after(page).first.bounding_box()
    assert enlarged is not None
    assert enlarged["width"] >= 136, "the browser remembers the size"
    picked = after(page).nth(3).get_attribute("data-id")
    after(page).nth(3).click()
    page.wait_for_url(re.compile(rf"add={picked}(&|$)"))
    expect(page.get_by_text("among all 1,797 images")).to_have_count(2)
    settle(page)


@pytest.mark.slow
def test_on_a_phone_the_plain_search_is_below_the_chosen_search(page: Page, finished: Run) -> None:
    tops = []
    for width in (1400, 390):
        page.set_viewport_size({"width": width, "height": 844})
        open_search(page, finished, "&add=3&compare=frozen~final")
        plain, chosen = (page.locator(f".st-key-heading-{name}") for name in ("plain-frozen", "final"))
        expect(chosen).to_have_count(1)
        boxes = [of.evaluate("of => of.getBoundingClientRect().top") for of in (plain, chosen)]
        tops.append(boxes[0] - boxes[1])
    assert abs(tops[0]) < 60, "side by side"
    assert tops[1] > 100, "below"


@pytest.mark.slow
@pytest.mark.parametrize("page", [{"viewport": {"width": 1400, "height": 900}}], indirect=True, ids=["laptop"])
def test_an_own_image_is_refined_by_a_switch_and_explained_and_failures_fill_the_strip(
        page: Page, finished: Run, tmp_path: Path) -> None:
    open_search(page, finished)
    file = tmp_path / "mine.png"
    picture(7).save(file)
    page.locator("input[type=file]").set_input_files(file)
    expect(page.get_by_text("mine.png")).to_be_visible()
    settle(page)
    page.get_by_text("Averaging", exact=True).click()
    page.wait_for_url(re.compile("recipe=average"))
    refined = page.get_by_role("group", name="The 10 nearest images, RPML, then averaging").get_by_role("button")
    expect(refined).to_have_count(10)
    settle(page)
    box = refined.first.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] < 900, "the refined results lie above the fold"
    page.get_by_text("Why is the first result similar?").click()
    expect(page.get_by_role("group", name="Nearest images of both").get_by_role("button").first).to_be_visible()
    page.get_by_role("button", name="Filters").click()
    page.get_by_text("Only failures", exact=True).click()
    page.wait_for_url(re.compile("failures=1"))
    page.keyboard.press("Escape")
    samples = page.get_by_role("group", name="Sample queries").get_by_role("button")
    expect(samples.first).to_contain_text("→")
    settle(page)


@pytest.mark.slow
def test_a_confused_pair_opens_and_a_click_searches_with_its_query(page: Page, finished: Run) -> None:
    page.goto(f"/retrieval?run={finished.id}&misses=initial")
    settle(page)
    page.locator(".st-key-retrieval-part").get_by_text("Failures", exact=True).click()
    page.wait_for_url(re.compile("view=Failures"))
    expect(page.get_by_role("heading", name=re.compile("mistaken for"))).to_be_visible()
    settle(page)
    _click_second_row(page)
    page.wait_for_url(re.compile(r"pair=\d+\.\d+"))
    settle(page)
    url_of_row = page.url
    own, other = re.findall(r"pair=(\d+)\.(\d+)", url_of_row)[0]
    expect(page.get_by_role("heading", name=f"{own} mistaken for {other}")).to_be_visible()
    _click_first_cell(page, avoid=f"{own}.{other}")
    page.wait_for_url(lambda url: url != url_of_row and "pair=" in url)
    settle(page)
    own, other = re.findall(r"pair=(\d+)\.(\d+)", page.url)[0]
    queries = page.get_by_role("group", name=f"{own} mistaken for {other}: queries").get_by_role("button")
    expect(queries.first).to_have_attribute("aria-label", re.compile(
        rf"^digit {own}|^{own} .*(always a hit|never a hit|hit from epoch \d|lost in epoch \d)"))
    query = queries.first.get_attribute("data-id")
    queries.first.click()
    page.wait_for_url(re.compile(rf"add={query}(&|$)"))
    expect(after(page)).to_have_count(10)
    settle(page)


def _click_second_row(page: Page) -> None:
    """Choose the table's second row; its canvas accepts clicks only some time after it is drawn."""
    table = page.get_by_test_id("stDataFrame").first
    table.locator("canvas").first.wait_for()
    for _ in range(5):
        box = table.bounding_box()
        assert box is not None
        page.mouse.click(box["x"] + 15, box["y"] + 35 * 2.5)
        try:
            page.wait_for_url(re.compile("pair="), timeout=5_000)
            return
        except TimeoutError:
            continue


def _click_first_cell(page: Page, avoid: str) -> None:
    """Click the middle of the heat map's first cell of another pair than `avoid`."""
    x, y = page.evaluate("""(avoid) => {
      const chart = document.querySelector(".js-plotly-plot");
      const cells = chart.data[1], cell = cells.customdata.findIndex((pair) => pair !== avoid);
      const { xaxis, yaxis } = chart._fullLayout, box = chart.getBoundingClientRect();
      return [box.x + xaxis._offset + xaxis.d2p(cells.x[cell]), box.y + yaxis._offset + yaxis.d2p(cells.y[cell])];
    }""", avoid)
    page.mouse.click(x, y)


@pytest.mark.slow
@pytest.mark.parametrize("page", [{"viewport": {"width": 1400, "height": 2000}}], indirect=True, ids=["tall"])
def test_embeddings_model_index_and_results_can_be_downloaded(page: Page, finished: Run, tmp_path: Path) -> None:
    """The window is tall, since a menu below a button that moves may end up out of sight."""
    page.goto(f"/retrieval?run={finished.id}&add=3")
    expect(after(page)).to_have_count(10)
    settle(page)
    table = parquet.read_table(download(page, "Embeddings (Parquet)", tmp_path))
    assert table.num_rows == 1797
    assert download(page, "Index (faiss)", tmp_path).read_bytes() == finished.index_path.read_bytes()
    assert download(page, "Model (safetensors)", tmp_path).read_bytes() == finished.embedder_path.read_bytes()
    rows = download(page, "Results (CSV)", tmp_path).read_text(encoding="utf-8").splitlines()
    assert rows[0] == "index,image,class,embedding,rank,similarity,distance"
    assert len(rows) == 21


@pytest.mark.slow
@in_both_windows
def test_both_views_fit_their_window_and_pass_axe(page: Page, finished: Run) -> None:
    for view in ("&add=3.4&subtract=9", "&view=Failures&misses=initial"):
        page.goto(f"/retrieval?run={finished.id}{view}")
        settle(page)
        assert not complaints(page), view
