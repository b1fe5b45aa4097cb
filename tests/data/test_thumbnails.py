"""Thumbnails and sprite sheets: every image is complete and in its own cell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from udml_core.data import catalog, thumbnails
from udml_core.data.dataset import ArrayImages, Dataset
from udml_core.data.thumbnails import Sheets, are_sheets_made, make_sheets, make_thumbnail


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))


def uniform_images(count: int) -> Dataset:
    """Return wide images of one color each, which need margins."""
    levels = np.arange(count) * 37 % 200
    pixels = np.broadcast_to(levels[:, None, None], (count, 10, 20)).astype(np.uint8)
    return replace(catalog.load("digits"), images=ArrayImages(pixels), labels=None, fingerprint=f"uniform-{count}")


def cell(sheets: Sheets, index: int) -> np.ndarray:
    sheet, position = divmod(index, sheets.per_sheet)
    row, column = divmod(position, sheets.columns)
    pixels = np.asarray(Image.open(sheets.paths[sheet]))
    return pixels[row * sheets.cell : (row + 1) * sheets.cell, column * sheets.cell : (column + 1) * sheets.cell]


def test_each_image_is_complete_in_its_cell_on_white(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thumbnails, "SHEET", 512)  # 8 by 8 cells, so that 150 images need three sheets
    dataset = uniform_images(150)
    sheets = make_sheets(dataset)
    assert (len(sheets.paths), sheets.cell, sheets.columns, sheets.per_sheet) == (3, 64, 8, 64)
    for index in (0, 7, 8, 63, 64, 127, 128, 149):
        pixels = cell(sheets, index).astype(int)
        assert abs(pixels[32, 32] - index * 37 % 200).max() <= 3
        assert pixels[4].min() > 250
        assert pixels[60].min() > 250
    assert Image.open(sheets.paths[2]).size == (512, 3 * 64)


def test_tiny_gray_images_become_smooth_strokes_and_colored_ones_keep_their_pixels() -> None:
    stairs = Image.fromarray((255 * (np.eye(8, k=1) + np.eye(8, k=2))).astype(np.uint8)).convert("RGB")
    drawn = np.asarray(make_thumbnail(stairs, 64)).astype(int)[..., 0]
    edges = [int(np.argmax(row > 127)) for row in drawn[8:40]]
    assert np.diff(edges).min() >= 0 < max(edges) - min(edges)
    assert np.bincount(np.diff(edges)).argmax() == 1, "a slope, no steps of eight pixels"
    assert max(np.diff(edges)) <= 2
    assert drawn[20, 36] == 255
    assert not drawn[20, :12].any(), "paper far from the stroke"
    digits = catalog.load("digits")
    in_sheet = cell(make_sheets(digits), 3).astype(int)
    alone = np.asarray(make_thumbnail(digits.images[3], 64)).astype(int)
    assert abs(in_sheet - alone).mean() < 4, "JPEG changes values a little"
    pixels = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    own = np.asarray(make_thumbnail(Image.fromarray(pixels), 160)).astype(int)
    assert abs(own - np.kron(pixels, np.ones((20, 20, 1)))).mean() < 4


def test_a_small_photograph_is_interpolated_and_a_tiny_image_enlarged_also_without_margins() -> None:
    digits = catalog.load("digits")
    ramp = Image.fromarray(np.tile(np.arange(20, dtype=np.uint8) * 12, (20, 1))).convert("RGB")
    assert len(np.unique(np.asarray(make_thumbnail(ramp, 160)))) > 100, "an image of 20 pixels is interpolated"
    assert make_thumbnail(digits.images[3], 680, square=False).size == (512, 512)


@pytest.mark.parametrize("shape", [(1, 300), (300, 1), (1, 1)])
def test_images_of_any_aspect_ratio_keep_at_least_one_pixel(shape: tuple[int, int]) -> None:
    pixels = np.zeros((2, *shape), np.uint8)
    sheets = make_sheets(replace(uniform_images(2), images=ArrayImages(pixels), fingerprint=f"{shape}"))
    assert cell(sheets, 1).min() < 128


def test_many_images_get_smaller_cells_and_sheets_fit_into_a_texture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thumbnails, "MANY", 100)
    sheets = make_sheets(uniform_images(101))
    assert sheets.cell == 32
    assert thumbnails.SHEET // sheets.cell >= sheets.columns


def test_sheets_are_made_once_with_progress_and_again_if_one_is_missing() -> None:
    dataset = uniform_images(150)
    shares: list[float] = []
    assert not are_sheets_made(dataset)
    sheets = make_sheets(dataset, lambda share, _step: shares.append(share))
    assert shares == sorted(shares)
    assert len(shares) >= 3
    assert are_sheets_made(dataset)
    before = sheets.paths[0].stat().st_mtime_ns
    assert make_sheets(dataset) == sheets
    assert sheets.paths[0].stat().st_mtime_ns == before
    sheets.paths[0].unlink()
    assert not are_sheets_made(dataset)
    assert make_sheets(dataset).paths[0].exists()


def test_an_interrupted_computation_leaves_no_complete_sheets() -> None:
    def stop(share: float, _step: str) -> None:
        if share > 0.5:
            raise KeyboardInterrupt

    dataset = uniform_images(150)
    with pytest.raises(KeyboardInterrupt):
        make_sheets(dataset, stop)
    assert not are_sheets_made(dataset)
    assert len(make_sheets(dataset).paths) == 1


@pytest.mark.parametrize(("size", "square", "expected"), [
    ((20, 10), True, (40, 40)), ((20, 10), False, (20, 10)), ((80, 20), True, (40, 40)), ((80, 20), False, (40, 10)),
])
def test_a_thumbnail_fits_into_the_square_and_is_enlarged_only_with_margins(
        size: tuple[int, int], square: bool, expected: tuple[int, int]) -> None:
    thumbnail = make_thumbnail(Image.new("RGB", size, "red"), 40, square)
    assert thumbnail.size == expected
    assert thumbnail.getpixel((expected[0] // 2, expected[1] // 2)) == (255, 0, 0)
    corner = thumbnail.getpixel((0, 0))
    assert corner == ((255, 255, 255) if square else (255, 0, 0))
