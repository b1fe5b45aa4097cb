"""What the records of sorting rest on: whom a reader confuses, and how written folders agree with the true classes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from experiments import messy, named_folders, sorting
from udml_core.base.errors import UserError

SPECIES = {"a.jpg": "heron", "b.jpg": "heron", "c.jpg": "wren", "=d.jpg": "wren", "a-copy.jpg": "heron",
           "dark.jpg": "wren"}
KEY = {"classes": SPECIES, "duplicates": [{"file": "a-copy.jpg", "of": "a.jpg", "kind": "copies"}], "panoramas": [],
       **{kind: [] for kind in messy.DAMAGED}, "dark": ["dark.jpg"]}
ROWS = (("a.jpg", "first/a.jpg", "first"), ("a-copy.jpg", "first/a-copy.jpg", "first"), ("b.jpg", "unnamed/b.jpg", ""),
        ("c.jpg", "first/c.jpg", "first"), ("'=d.jpg", "second/_d.jpg", "second"),
        ("dark.jpg", "second/dark.jpg", "second"))


def write_export(folder: Path) -> Path:
    for _, file, _ in ROWS:
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    rows = [f"{file},{label},1,1,{image}" for image, file, label in (*ROWS, ("b.jpg", "second/gone.jpg", "second"))]
    table = "\n".join(["file_name,label,certainty,assigned,image", *rows])
    (folder / "metadata.csv").write_text(table, encoding="utf-8")
    return folder


def test_a_wrong_answer_names_the_species_of_the_most_similar_image_of_another_species() -> None:
    features = np.array([[2.0, 0], [3, 0.1], [1, 0.2], [0, 1], [0.1, 3]])
    species = np.array(["heron", "heron", "egret", "wren", "robin"])
    assert sorting.confused_with(features, species).tolist() == ["egret", "egret", "heron", "robin", "wren"]


def test_folders_are_compared_with_the_true_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                    capsys: pytest.CaptureFixture[str]) -> None:
    export, record = write_export(tmp_path / "export"), tmp_path / "named-folders.json"
    (tmp_path / "key.json").write_text(json.dumps(KEY), encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["named_folders", str(tmp_path), str(export), "--minutes", "13.5", "--clicks", "98",
                                     "--out", str(record)])
    named_folders.main()
    assert capsys.readouterr().out.strip() == (
        "13.5 minutes and 98 clicks from import to folders: 5 images in 2 folders of 2 species, 80 % of them with the "
        "species of their folder; 1 of 4 photographs unnamed; copies left: 1; planted faults left: 1")
    rows = json.loads(record.read_text(encoding="utf-8"))["datasets"][named_folders.TITLE]["rows"]["one reader"]
    assert (rows["minutes"], rows["clicks"], rows["share unnamed"]) == ([13.5, 0.0], [98, 0.0], [25.0, 0.0])
    with pytest.raises(UserError, match=r"does not know b\.jpg"):
        named_folders.agreement({"b.jpg": "first"}, {**KEY, "classes": {}})
    with pytest.raises(UserError, match=r"metadata\.csv could not be read"):
        named_folders.written_images(tmp_path)
