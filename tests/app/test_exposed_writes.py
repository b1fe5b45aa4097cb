"""A server that other people can reach writes into its own folders only, whatever a browser user names."""

from __future__ import annotations

import ast
import io
from pathlib import Path

import pytest
from PIL import Image

from tests.app.opening import ROOT, opened, texts
from tests.running import worked, write_digits
from udml_core.base.errors import UserError
from udml_core.base.paths import EXPOSED, imports_folder
from udml_core.data import catalog
from udml_core.data.given import labels

NAMES = ("../../planted", "/planted", "..", ".", "a/../../planted", "..\\planted", "~/planted", "a\0b", "p" * 300,
         "\u202eplanted", "planted\n", "C:\\planted")
WRITERS = {"mirror", "export", "export_model", "written_aside", "write_sorting", "write_shards"}
"""Functions of the library that write into a folder that the caller names; pages offer downloads in place of them."""


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_an_upload_stays_below_the_uploads(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside, cache = tmp_path / "outside", tmp_path / "outside" / "cache"
    cache.mkdir(parents=True)
    monkeypatch.setenv("UDML_CACHE", str(cache))
    monkeypatch.setenv("HOME", str(outside))
    monkeypatch.setenv(EXPOSED, "1")
    messages: list[str] = []
    content = io.BytesIO()
    Image.new("L", (8, 8)).save(content, "PNG")
    for chosen, path in ((name, "a/1.png"), ("plain", f"{name}/1.png"), ("other", f"{name}.png")):
        try:
            folder = catalog.import_files(chosen, [(path, content.getvalue()), ("b/2.png", content.getvalue())])
        except UserError as error:
            messages.append(str(error))
        else:
            assert folder.resolve().is_relative_to(imports_folder().resolve())
    try:
        catalog.import_table(name, [("x.csv", b"x,y\n1,2\n3,4\n5,7\n")])
    except UserError as error:
        messages.append(str(error))
    assert all(len(message) < 900 for message in messages)
    assert [path for path in tmp_path.rglob("*") if path.is_file() and cache not in path.parents] == []
    assert not Path("/planted").exists()


def test_no_folder_can_be_named_to_write_named_images_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = catalog.load(str(write_digits(tmp_path / "data", 40)))
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "runs"))
    run = worked(tmp_path / "runs", dataset=dataset.name, method="frozen", split="all")
    labels.assign(dataset, range(8), "a")
    test = opened("labels", run=run.id, section="folders")
    assert any(field.key == "labels-target" for field in test.text_input)
    monkeypatch.setenv(EXPOSED, "1")
    monkeypatch.setenv("UDML_DATA", str(tmp_path / "data"))
    test = opened("labels", run=run.id, section="folders")
    assert not test.exception
    assert not any(field.key == "labels-target" for field in test.text_input)
    assert "it writes no folders" in texts(test)


def test_pages_call_nothing_that_writes_to_a_named_folder() -> None:
    """TensorBoard, MLflow and exports are commands; the view Labels alone writes a folder, on a server of its own."""
    called = {(path.name, node.attr if isinstance(node, ast.Attribute) else node.id)
              for path in (ROOT / "pages").rglob("*.py") for node in ast.walk(ast.parse(path.read_text("utf-8")))
              if isinstance(node, ast.Attribute | ast.Name)}
    assert {pair for pair in called if pair[1] in WRITERS} == set()
    assert {file for file, name in called if name == "write_plan"} == {"folders.py"}
    assert {file for file, name in called if name == "move_files"} == {"moving.py"}
