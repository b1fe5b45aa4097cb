"""Thumbnails, and sprite sheets of thumbnails that the browser draws from.

The sheets contain every image.
"""

from __future__ import annotations

import io
import math
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
from filelock import FileLock
from PIL import Image

from udml_core.base.errors import UserError
from udml_core.base.paths import dataset_cache
from udml_core.data.dataset import Dataset, Report
from udml_core.data.sources.versions import image_to_draw

SHEET = 4096
"""Longest side of a sheet in pixels; every WebGL implementation accepts a texture of this size."""
CELL, SMALL_CELL = 64, 32
"""Sides of a cell in pixels, for small and for large data sets."""
MANY = 20_000
"""Number of images above which a data set is large."""
QUALITY = 85
BLOCK = 64
"""Images that are read between two progress reports."""
TINY = 16
"""Pixels of the longer side of a tiny image. A gray one, such as a digit, is drawn as smooth strokes, and a colored one
in whole pixels: enlarged as a photograph it would look blurred."""
SHARP = 512
"""Pixels of the longer side to which a tiny image is enlarged."""
STROKE = 0.25, 0.75
"""Shares of an image's range of grays between which the edge of a smooth stroke lies."""
_are_tiny: dict[str, bool] = {}


@dataclass(frozen=True)
class Sheets:
    """JPEG sheets of square cells, row by row.

    Image i is on sheet i // per_sheet in cell i % per_sheet.

    Attributes:
        paths: Files of the sheets.
        cell: Side of a cell in pixels.
        columns: Number of cells in a row.
        per_sheet: Number of cells on a sheet.
    """

    paths: tuple[Path, ...]
    cell: int
    columns: int
    per_sheet: int


def in_whole_pixels(image: Image.Image, side: int) -> Image.Image:
    """Return an image in whole multiples of its pixels, which stay sharp, within a square; a larger one as it is."""
    factor = side // max(image.size)
    if factor < 2:
        return image
    return image.resize((factor * image.width, factor * image.height), Image.Resampling.NEAREST)


def enlarge_tiny(image: Image.Image) -> Image.Image:
    """Return a tiny image enlarged, a gray one as smooth strokes, a colored one in whole pixels; others as they are."""
    if max(image.size) > TINY:
        return image
    if image.mode != "RGB" or np.ptp(np.asarray(image), axis=2).max() > 0:
        return in_whole_pixels(image, SHARP)
    factor = SHARP // max(image.size)
    gray = image.convert("L")
    enlarged = gray.resize((factor * image.width, factor * image.height), Image.Resampling.BICUBIC)
    return enlarged.point(_stroke_curve(*gray.getextrema())).convert("RGB")


@cache
def _stroke_curve(darkest: int, lightest: int) -> list[int]:
    """Return the gray that stands for each of 256, a smooth step from an image's darkest gray to its lightest."""
    first, last = (darkest + share * (lightest - darkest) for share in STROKE)
    share = np.clip((np.arange(256) - first) / max(last - first, 1), 0, 1)
    return np.rint(darkest + (lightest - darkest) * share**2 * (3 - 2 * share)).astype(int).tolist()


def make_thumbnail(image: Image.Image, side: int, square: bool = True) -> Image.Image:
    """Scale an image to fit into a square, with its aspect ratio kept.

    Args:
        image: An RGB image.
        side: Side of the square in pixels.
        square: Enlarge small images too, and center the image on a white square. Without it, small images keep their
            size and the result has no margins. Tiny images are enlarged.
    """
    image = enlarge_tiny(image)
    scale = side / max(image.size)
    if not square and scale >= 1:
        return image
    width, height = (max(1, round(length * scale)) for length in image.size)
    scaled = image.resize((width, height), Image.Resampling.BICUBIC, reducing_gap=2.0)
    if not square:
        return scaled
    paper = Image.new("RGB", (side, side), "white")
    paper.paste(scaled, ((side - width) // 2, (side - height) // 2))
    return paper


def join_thumbnails(thumbnails: Sequence[Image.Image], cell: int, columns: int) -> Image.Image:
    """Paste thumbnails, squares with a side of `cell` pixels, into a sheet, row by row."""
    sheet = Image.new("RGB", (columns * cell, max(1, -(-len(thumbnails) // columns)) * cell), "white")
    for position, thumbnail in enumerate(thumbnails):
        row, column = divmod(position, columns)
        sheet.paste(thumbnail, (column * cell, row * cell))
    return sheet


def join_sheets(thumbnails: Iterator[Image.Image], cell: int, columns: int) -> Iterator[Image.Image]:
    """Yield sheets with as many rows as columns; the last one may be shorter."""
    while some := list(islice(thumbnails, columns**2)):
        yield join_thumbnails(some, cell, columns)


def sheet_file(sheet: Image.Image) -> bytes:
    """Return a sheet as a file that is sent at once."""
    buffer = io.BytesIO()
    # JPEG takes a thirtieth of WebP's time, which a click on a query would wait for; full chroma keeps blocks in cells.
    sheet.save(buffer, "JPEG", quality=88, subsampling=0)
    return buffer.getvalue()


def arrange(count: int) -> tuple[int, int]:
    """Return the side of a cell in pixels and the number of columns of the sheets of all images.

    A full sheet has as many rows as columns.
    """
    cell = CELL if count <= MANY else SMALL_CELL
    return cell, min(SHEET // cell, math.ceil(math.sqrt(count)))


def make_sheets(dataset: Dataset, report: Report = lambda _share, _step: None) -> Sheets:
    """Return the sheets of a data set, made on first use.

    Raises:
        UserError: An image can no longer be read.
    """
    sheets = _plan(dataset)
    folder = sheets.paths[0].parent
    if not _exist(sheets):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_suffix(".lock")):
            if not _exist(sheets):
                _make(dataset, sheets, report)
    report(1.0, "thumbnails")
    return sheets


def are_sheets_made(dataset: Dataset) -> bool:
    """Return whether the sheets exist, so that `make_sheets` returns at once."""
    return _exist(_plan(dataset))


def _plan(dataset: Dataset) -> Sheets:
    cell, columns = arrange(len(dataset))
    count = -(-len(dataset) // columns**2)
    folder = dataset_cache(dataset.fingerprint) / f"thumbnails-{cell}{'-strokes' * _is_tiny(dataset)}"
    return Sheets(tuple(folder / f"{number:04d}.jpg" for number in range(count)), cell, columns, columns**2)


def _is_tiny(dataset: Dataset) -> bool:
    """Return whether the first image of a data set is tiny, read once; a file that cannot be read is not."""
    if dataset.fingerprint not in _are_tiny:
        with suppress(UserError):
            _are_tiny[dataset.fingerprint] = max(image_to_draw(dataset.images, 0).size) <= TINY
    return _are_tiny.get(dataset.fingerprint, False)


def _exist(sheets: Sheets) -> bool:
    return all(path.exists() for path in sheets.paths)


def _make(dataset: Dataset, sheets: Sheets, report: Report) -> None:
    final = sheets.paths[0].parent
    aside = final.with_suffix(".part")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    thumbnails = draw_thumbnails(lambda index: make_thumbnail(image_to_draw(dataset.images, index), sheets.cell),
                                 len(dataset), lambda share: report(share, "thumbnails"))
    for path, sheet in zip(sheets.paths, join_sheets(thumbnails, sheets.cell, sheets.columns), strict=True):
        sheet.save(aside / path.name, quality=QUALITY)
    shutil.rmtree(final, ignore_errors=True)
    aside.rename(final)


def draw_thumbnails(draw: Callable[[int], Image.Image], count: int, report: Callable[[float], None]
                    ) -> Iterator[Image.Image]:
    """Yield the thumbnails of all images in order, drawn by several threads.

    Args:
        draw: Draws the thumbnail of an image.
        count: Number of images.
        report: Called with the share that is done.
    """
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for start in range(0, count, BLOCK):
            stop = min(start + BLOCK, count)
            yield from pool.map(draw, range(start, stop))
            report(stop / count)
