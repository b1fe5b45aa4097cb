"""Every image of a data set as a small square, on sheets that a browser draws from."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from filelock import FileLock
from PIL import Image

from udml_core.data.dataset import Dataset, Report
from udml_core.paths import dataset_cache

SHEET = 4096
"""The longest side of a sheet in pixels: what every WebGL takes as one texture."""
CELL, SMALL_CELL = 64, 32
MANY = 20_000
"""Above so many images, the smaller cell."""
QUALITY = 85
AHEAD = 64


@dataclass(frozen=True)
class Sheets:
    """JPEG sheets of square cells. Image i lies on sheet i // per_sheet in its cell i % per_sheet, row by row."""

    paths: tuple[Path, ...]
    cell: int
    columns: int
    per_sheet: int


def sheets_of(dataset: Dataset, report: Report = lambda _share, _what: None) -> Sheets:
    """The sheets of a data set, made where they are not there yet.

    Raises:
        UserError: an image cannot be read any more.
    """
    sheets = _planned(dataset)
    folder = sheets.paths[0].parent
    if not _are_there(sheets):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_suffix(".lock")):
            if not _are_there(sheets):
                _make(dataset, sheets, report)
    report(1.0, "thumbnails")
    return sheets


def sheets_ready(dataset: Dataset) -> bool:
    """Whether the sheets are there, so that `sheets_of` returns at once."""
    return _are_there(_planned(dataset))


def _planned(dataset: Dataset) -> Sheets:
    cell = CELL if len(dataset) <= MANY else SMALL_CELL
    columns = min(SHEET // cell, math.ceil(math.sqrt(len(dataset))))
    count = -(-len(dataset) // columns**2)
    folder = dataset_cache(dataset.fingerprint) / f"thumbnails-{cell}"
    return Sheets(tuple(folder / f"{number:04d}.jpg" for number in range(count)), cell, columns, columns**2)


def _are_there(sheets: Sheets) -> bool:
    return all(path.exists() for path in sheets.paths)


def _make(dataset: Dataset, sheets: Sheets, report: Report) -> None:
    final = sheets.paths[0].parent
    aside = final.with_suffix(".part")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    thumbnails = _thumbnails(dataset, sheets.cell, report)
    for path in sheets.paths:
        tiles = list(islice(thumbnails, sheets.per_sheet))
        rows = -(-len(tiles) // sheets.columns)
        sheet = Image.new("RGB", (sheets.columns * sheets.cell, rows * sheets.cell), "white")
        for place, tile in enumerate(tiles):
            row, column = divmod(place, sheets.columns)
            sheet.paste(tile, (column * sheets.cell, row * sheets.cell))
        sheet.save(aside / path.name, quality=QUALITY)
    shutil.rmtree(final, ignore_errors=True)
    aside.rename(final)


def _thumbnails(dataset: Dataset, cell: int, report: Report) -> Iterator[Image.Image]:
    """All images in order, whole, centred on white."""
    def thumbnail(index: int) -> Image.Image:
        image = dataset.images[index]
        scale = cell / max(image.size)
        width, height = (max(1, round(side * scale)) for side in image.size)
        paper = Image.new("RGB", (cell, cell), "white")
        small = image.resize((width, height), Image.Resampling.BICUBIC, reducing_gap=2.0)
        paper.paste(small, ((cell - width) // 2, (cell - height) // 2))
        return paper

    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for start in range(0, len(dataset), AHEAD):
            stop = min(start + AHEAD, len(dataset))
            yield from pool.map(thumbnail, range(start, stop))
            report(stop / len(dataset), "thumbnails")
