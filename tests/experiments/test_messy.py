"""The messy folder: what the key says is in the files, copies are worse or equal, and broken files are broken."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_sample_image

from experiments import messy
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.image_facts import facts_of


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source") / "parts"
    random = np.random.default_rng(0)
    for number in range(110):
        image = Image.fromarray(load_sample_image(("china.jpg", "flower.jpg")[number % 2]))
        left, top = random.integers(0, 500), random.integers(0, 290)
        path = folder / ("china", "flower")[number % 2] / f"{number:03}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        image.crop((left, top, left + 130, top + 130)).save(path, quality=85)
    return folder


def test_the_key_describes_the_folder(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    key = messy.make_messy(tmp_path / "messy", catalog.load(str(source)), 80, 0)
    dataset = catalog.load(str(tmp_path / "messy" / "photos"))
    assert {skipped.file for skipped in dataset.skipped} == set(key["broken"])
    assert set(dataset.names) == set(key["classes"])
    assert len(dataset) == 80 + 66 + 3 + 20
    facts, index_of = facts_of(dataset), dataset.indices_by_name()
    for row in key["duplicates"]:
        copy, original = index_of[row["file"]], index_of[row["of"]]
        assert facts.pixels[copy] <= facts.pixels[original]
        assert facts.bytes[copy] <= facts.bytes[original], row
        assert facts.time[copy] > facts.time[original]
        assert (row["kind"] == "copies") == (
            (dataset.images[copy].size, facts.bytes[copy]) == (dataset.images[original].size, facts.bytes[original]))
    for name in key["panoramas"]:
        assert facts.width[index_of[name]] / facts.height[index_of[name]] == pytest.approx(7.5, rel=0.05)
    with pytest.raises(UserError, match="exists already"):
        messy.make_messy(tmp_path / "messy", catalog.load(str(source)), 80, 0)
    with pytest.raises(UserError, match="must be at least 76"):
        messy.make_messy(tmp_path / "other", catalog.load(str(source)), 70, 0)
