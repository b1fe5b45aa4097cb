"""The snippets of docs/bring-your-data.md, executed with the libraries that are installed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.project.documents import ROOT, blocks
from udml_core.data import catalog

DOCUMENT = (ROOT / "docs" / "bring-your-data.md").read_text(encoding="utf-8")
BEGIN, *PARTS = re.split(r"^## ", DOCUMENT, flags=re.MULTILINE)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.partition("\n")[0])
def test_a_snippet_writes_what_its_command_opens(part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    for number in range(6):
        folder = tmp_path / "photos" / ("cat", "dog")[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (16, 16), (40 * number, 90, 20)).save(folder / f"{number}.jpg")
    code = [block for block in blocks(part) if block.language == "python"]
    for package in re.findall(r"^(?:import|from) (\w+)", "".join(block.code for block in code), re.MULTILINE):
        pytest.importorskip(package)
    names: dict[str, Any] = {}
    for block in (*blocks(BEGIN), *code):
        exec(block.code, names)
    (command,) = [block.code for block in blocks(part) if block.language == "sh"]
    program, verb, path = shlex.split(command)
    assert (program, verb) == ("udml", "app")
    dataset = catalog.load(path)
    assert (len(dataset), dataset.class_names, len(dataset.skipped)) == (6, ("cat", "dog"), 0)
    assert sorted(dataset.images[row].getpixel((5, 5))[0] // 30 for row in range(6)) == [0, 1, 2, 4, 5, 6]
