"""The widgets of a notebook without a browser: what is sent to them, and what their answers change."""

from __future__ import annotations

import base64
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import parquet

from tests.project.documents import ROOT, blocks
from udml_core.base.components import pack_mask
from udml_core.base.errors import UserError

if TYPE_CHECKING:
    from udml_core.notebook import Explorer

COUNT = 40
NAMES = pd.Index([f"photo-{row}" for row in range(COUNT)])


@pytest.fixture
def explorer() -> Explorer:
    pytest.importorskip("anywidget", reason="the widgets need anywidget: pip install '.[notebook]'")
    from udml_core.notebook import explore

    random = np.random.default_rng(0)
    return explore(pd.DataFrame(random.normal(size=(COUNT, 4)), index=NAMES),
                   random.integers(0, 256, (COUNT, 8, 8), dtype=np.uint8), ["a", "b"] * (COUNT // 2))


def answer(rows: list[int], revision: int, count: int = COUNT) -> dict[str, Any]:
    """Return a selection as assets/scatter.js sends it."""
    mask = pack_mask(np.array(rows), count)
    return {"mask": "" if mask is None else base64.b64encode(mask.tobytes()).decode(), "count": count,
            "revision": revision}


def test_without_anywidget_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.delitem(sys.modules, "udml_core.notebook", raising=False)
    with pytest.raises(ImportError, match=r"pip install 'udml-explorer\[notebook\]'"):
        import udml_core.notebook  # noqa: F401


@pytest.mark.parametrize("has_map", [True, False])
def test_an_export_opens_by_the_lines_of_the_documentation(has_map: bool, tmp_path: Path,
                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("anywidget", reason="the widgets need anywidget: pip install '.[notebook]'")
    from udml_core.notebook import explore

    monkeypatch.chdir(tmp_path)
    for folder in ("photos", "folder"):
        (tmp_path / folder).mkdir()
    names, places = [f"{row}.png" for row in range(4)], np.arange(8, dtype=np.float32).reshape(4, 2) ** 2
    for row, name in enumerate(names):
        Image.new("L", (8, 8), row).save(tmp_path / "photos" / name)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.eye(4, dtype=np.float32).ravel()), 4)
    x, y = (pa.array(column, pa.float32(), mask=None if has_map else np.ones(4, bool)) for column in places.T)
    parquet.write_table(pa.table({"file_name": names, "label": ["a", "a", "b", "b"], "vector": vectors,
                                  "projection_x": x, "projection_y": y}), tmp_path / "folder" / "images.parquet")
    document = (ROOT / "docs/notebook.md").read_text(encoding="utf-8")
    (code,) = [block.code for block in blocks(document) if "read_parquet" in block.code]
    found: dict[str, Any] = {"explore": explore}
    exec(code, found)
    sent = [file["content"] for file in found["shown"].map.files.values()]
    assert (places.tobytes() in sent) == has_map


def test_a_lasso_selects_names_and_sends_no_large_part_again(explorer: Explorer) -> None:
    heard, sent = list[Any](), list[str]()
    explorer.observe(lambda change: heard.append(list(change["new"])), "selection")
    explorer.map.observe(lambda change: sent.append(change["name"]), ["data", "files"])
    assert (len(explorer.selection), explorer.gallery.heading.startswith("Nothing selected: 40 images")) == (0, True)
    explorer.map.selection = answer([3, 17], 1)
    assert isinstance(explorer.selection, pd.Index)
    assert heard == [["photo-3", "photo-17"]]
    assert explorer.gallery.heading == "Selected: 2 images"
    assert sent == ["data"]
    explorer.map.selection = answer([3], 2, count=COUNT + 8)  # of other images
    assert list(explorer.selection) == ["photo-3", "photo-17"]
    explorer.map.selection = answer([], 3)
    assert list(explorer.selection) == []


def test_marimo_shows_the_three_widgets_below_each_other(explorer: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    marimo = SimpleNamespace(vstack=list, ui=SimpleNamespace(anywidget=lambda widget: ("shown", widget)))
    monkeypatch.setitem(sys.modules, "marimo", marimo)
    shown = [explorer.map, explorer.query_row, explorer.gallery]
    assert explorer._display_() == [("shown", widget) for widget in shown]


def test_a_program_selects_after_the_user(explorer: Explorer) -> None:
    explorer.map.selection = answer([3], 6)
    explorer.select(["photo-9", "photo-2"])
    assert list(explorer.selection) == ["photo-2", "photo-9"]
    assert b'"revision": 7' in explorer.map.data, "the map adopts a selection with a higher number only"
    with pytest.raises(UserError, match="No image has the name 'photo-99'"):
        explorer.select(["photo-1", "photo-99"])


@pytest.mark.parametrize("kind", ["picked", "searched"])
def test_a_click_in_every_component_searches(explorer: Explorer, kind: str) -> None:
    assert explorer.query is None
    for row, component in enumerate(explorer.children):
        component._handle_custom_msg({kind: row}, [])
        assert explorer.query == f"photo-{row}"
    rows, _ = explorer._collection.nearest(2, 12)
    assert list(explorer.neighbors) == [f"photo-{row}" for row in rows]
    assert explorer.query_row.heading.startswith("Nearest images to image photo-2,")
    before = explorer.map.data
    explorer.map._handle_custom_msg({kind: COUNT}, [])
    assert explorer.query == "photo-2"
    explorer.search("photo-5")
    assert explorer.query == "photo-5"
    assert explorer.map.data != before, "the query is marked on the map"


def test_images_that_cannot_be_read_are_gray_with_a_warning_unless_all_are(tmp_path: Path) -> None:
    pytest.importorskip("anywidget", reason="the widgets need anywidget: pip install '.[notebook]'")
    from udml_core.notebook import explore

    files = [tmp_path / f"{row}.png" for row in range(6)]
    for file in files[:4]:
        Image.new("RGB", (9, 9), "red").save(file)
    files[4].write_text("damaged")
    vectors = np.random.default_rng(0).normal(size=(6, 4))
    with pytest.warns(UserWarning, match=r"2 images cannot be read and are gray: .*4\.png must be an image.*5\.png "
                                         r"does not exist"):
        shown = explore(vectors, files)
    shown.search(5)
    assert shown.query == 5
    with pytest.raises(UserError, match=r"None of the 6 images can be read. The first: The image .*0\.png does not"):
        explore(vectors, [tmp_path / "absent" / file.name for file in files])
