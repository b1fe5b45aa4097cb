"""Sprite sheets: every image in its cell, whole, once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from udml_core.data import catalog, thumbnails
from udml_core.data.dataset import ArrayImages, Dataset
from udml_core.data.thumbnails import Sheets, sheets_of, sheets_ready


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))


def flat(count: int) -> Dataset:
    """Images of one colour each, wide, so that they need padding."""
    levels = np.arange(count) * 37 % 200
    pixels = np.broadcast_to(levels[:, None, None], (count, 10, 20)).astype(np.uint8)
    return replace(catalog.load("digits"), images=ArrayImages(pixels), labels=None, fingerprint=f"flat-{count}")


def cell(sheets: Sheets, index: int) -> np.ndarray:
    sheet, place = divmod(index, sheets.per_sheet)
    row, column = divmod(place, sheets.columns)
    pixels = np.asarray(Image.open(sheets.paths[sheet]))
    return pixels[row * sheets.cell : (row + 1) * sheets.cell, column * sheets.cell : (column + 1) * sheets.cell]


def test_image_i_lies_in_its_cell_whole_and_on_white(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thumbnails, "SHEET", 512)  # 8 by 8 cells, so that 150 images need three sheets
    dataset = flat(150)
    sheets = sheets_of(dataset)
    assert (len(sheets.paths), sheets.cell, sheets.columns, sheets.per_sheet) == (3, 64, 8, 64)
    for index in (0, 7, 8, 63, 64, 127, 128, 149):
        found = cell(sheets, index).astype(int)
        assert abs(found[32, 32] - index * 37 % 200).max() <= 3
        assert found[4].min() > 250
        assert found[60].min() > 250
    assert Image.open(sheets.paths[2]).size == (512, 3 * 64)


@pytest.mark.parametrize("shape", [(1, 300), (300, 1), (1, 1)])
def test_images_of_any_shape_keep_at_least_a_pixel(shape: tuple[int, int]) -> None:
    pixels = np.zeros((2, *shape), np.uint8)
    sheets = sheets_of(replace(flat(2), images=ArrayImages(pixels), fingerprint=f"{shape}"))
    assert cell(sheets, 1).min() < 128


def test_many_images_take_smaller_cells_and_no_sheet_is_larger_than_a_texture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thumbnails, "MANY", 100)
    sheets = sheets_of(flat(101))
    assert sheets.cell == 32
    assert thumbnails.SHEET // sheets.cell >= sheets.columns


def test_sheets_are_made_once_with_progress_and_again_where_one_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = flat(150)
    shares: list[float] = []
    assert not sheets_ready(dataset)
    sheets = sheets_of(dataset, lambda share, _what: shares.append(share))
    assert shares == sorted(shares)
    assert len(shares) >= 3
    assert sheets_ready(dataset)
    before = sheets.paths[0].stat().st_mtime_ns
    assert sheets_of(dataset) == sheets
    assert sheets.paths[0].stat().st_mtime_ns == before
    sheets.paths[0].unlink()
    assert not sheets_ready(dataset)
    assert sheets_of(dataset).paths[0].exists()


def test_a_failure_half_way_leaves_nothing_that_looks_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(share: float, _what: str) -> None:
        if share > 0.5:
            raise KeyboardInterrupt

    dataset = flat(150)
    with pytest.raises(KeyboardInterrupt):
        sheets_of(dataset, stop)
    assert not sheets_ready(dataset)
    assert len(sheets_of(dataset).paths) == 1
