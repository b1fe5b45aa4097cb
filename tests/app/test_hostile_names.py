"""Hostile names of classes, runs and images: stored, shown, exported, and in a saved map that Chromium opens."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser

from experiments.hold_fast.names import recorded_downloads
from tests.app.opening import opened
from tests.running import worked
from udml_core.base.errors import UserError
from udml_core.base.spreadsheets import unguarded
from udml_core.data import catalog
from udml_core.data.given import labels
from udml_core.runs import Run
from udml_core.runs.analyses import plan_analysis
from udml_core.runs.notes import LONGEST_NAME, Notes
from udml_core.work.exporting import model, target
from udml_core.work.workers import analyse

SCRIPT = "</script><script>window.planted=1</script>"
NAMES = (SCRIPT.replace("/", "\u2044"), "<img src=x onerror=window.planted=1>", "\u202egnp.exe\u2066",
         "\U0001f3f3\ufe0f\u200d\U0001f308" * 12, "=HYPERLINK(1)", "a" * 240)
"""Names that a folder can have; the bar in the first one is no slash."""
pytestmark = pytest.mark.usefixtures("own_places")


@pytest.fixture(scope="module")
def run(places: Path) -> Run:
    """A finished run with a map, whose classes, name and labels are hostile."""
    random, folder = np.random.default_rng(0), places / f"named {NAMES[1]}"
    for name in NAMES:
        (folder / name).mkdir(parents=True)
        for number in range(4):
            Image.fromarray(random.integers(0, 256, (10, 10), dtype=np.uint8)).save(folder / name / f"{number}.png")
    dataset = catalog.load(str(folder))
    run = worked(places / "runs", dataset=dataset.name, method="frozen", split="all")
    run.write_notes(Notes.make(SCRIPT, SCRIPT, (SCRIPT[:40],)))
    assert labels.assign(dataset, range(12), SCRIPT) == SCRIPT
    analyse.keep(run, plan_analysis(kind="pca"), lambda *_: None)
    return run


def test_a_name_above_a_page_ends_neither_its_text_nor_the_style(run: Run) -> None:
    bodies = [html.proto.body for html in opened("explore", run=run.id).get("html")]
    styles = [body for body in bodies if ":root { --run-name" in body]
    assert styles
    for style in styles:
        value = style.removeprefix('<style>:root { --run-name: "').removesuffix('"; }</style>')
        assert not set('<>"{};') & set(value)
        assert "script" in value, "as escapes of a style, which show what the name says"


def test_names_are_stored_as_they_are_and_long_ones_refused(run: Run) -> None:
    assert run.notes().name == SCRIPT
    assert sorted(run.dataset().class_names) == sorted(NAMES)
    assert set(labels.assigned_labels(run.dataset()).values()) == {SCRIPT}
    with pytest.raises(UserError, match=f"A name has at most {LONGEST_NAME}"):
        Notes.make("\U0001f600" * 300)
    with pytest.raises(UserError, match="1 to 100 letters, got 300"):
        labels.assign(run.dataset(), [0], "\u05d0" * 300)


def test_the_list_of_an_exported_model_holds_the_names_and_no_formula(run: Run, tmp_path: Path) -> None:
    model.export_model(run, tmp_path / "model", onnx=False)
    with (tmp_path / "model" / target.GALLERY).open(encoding="utf-8", newline="") as file:
        rows = [cell for row in csv.reader(file) for cell in row]
    assert set(NAMES) <= {unguarded(cell) for cell in rows}
    assert not [cell for cell in rows if cell[:1] in "=+-@\t" and cell]
    assert "<script>window" not in (tmp_path / "model" / target.CARD).read_text(encoding="utf-8")


@pytest.mark.browser
@pytest.mark.parametrize("color", ["class", "label"])
def test_a_saved_map_runs_nothing_that_a_name_plants(color: str, run: Run, browser: Browser, tmp_path: Path) -> None:
    with recorded_downloads() as made:
        test = opened("explore", run=run.id, color=color)
    assert not test.exception
    (content,) = (content for each in made if isinstance(content := each() if callable(each) else each, bytes)
                  and content.lstrip()[:9].lower() == b"<!doctype")
    file = tmp_path / "map.html"
    file.write_bytes(content)
    context = browser.new_context(offline=True)
    page = context.new_page()
    problems: list[Any] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", lambda dialog: problems.append(dialog.message))
    page.goto(file.as_uri())
    page.locator("canvas").first.wait_for()
    page.mouse.move(300, 300)
    for x in range(100, 900, 40):
        page.mouse.move(x, 400)
    assert page.evaluate("window.planted") is None
    assert page.locator("img[src=x]").count() == 0
    assert problems == []
    context.close()
