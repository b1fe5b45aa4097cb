"""ARCHITECTURE.md names the floors of the import contract, every room, and the files of a run."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from tests.project.documents import ROOT, blocks, prose
from tests.running import worked

TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]


def floors() -> dict[int, set[str]]:
    """Return the names of the library's rooms on each floor of the table."""
    rows = re.findall(r"^\| (\d) \| (.+?) \|", prose(TEXT), re.MULTILINE)
    named = [(int(floor), room) for floor, rooms in rows for room in re.findall(r"`udml_core/([\w.]+)/?`", rooms)]
    return {floor: {Path(room).stem for other, room in named if other == floor} for floor, _ in named}


def test_the_floors_are_the_layers_of_the_contract() -> None:
    layers = next(contract["layers"] for contract in CONTRACTS if contract.get("containers") == ["udml_core"])
    assert floors() == {floor: set(re.findall(r"\w+", layer)) for floor, layer in enumerate(reversed(layers), 1)}


def test_every_room_of_the_library_stands_on_a_floor() -> None:
    library = ROOT / "udml_core"
    rooms = {path.stem for path in library.iterdir() if (path / "__init__.py").exists() or path.suffix == ".py"}
    assert set().union(*floors().values()) == rooms - {"__init__"}


def test_a_run_has_the_files_that_the_document_names(tmp_path: Path) -> None:
    _, *lines = next(block.code for block in blocks(TEXT) if "spec.json" in block.code).splitlines()
    named = {line.split()[0] for line in lines}
    run = worked(tmp_path, method="pca", fields={"dimension": 8})
    assert len(named) > 8
    assert not [name for name in named if not (run.folder / name).exists()]
