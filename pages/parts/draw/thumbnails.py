"""Sprite sheets: small thumbnails of a data set, large thumbnails of a few images."""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

import streamlit as st
from PIL import Image

from udml_core.base import components
from udml_core.base.arrays import Array
from udml_core.base.components import digest
from udml_core.data.dataset import Dataset
from udml_core.data.sources.versions import image_to_draw
from udml_core.data.thumbnails import are_sheets_made, join_thumbnails, make_sheets, make_thumbnail, sheet_file
from udml_core.exploration.gallery_content import sheets_header

from .transport import Message

COLUMNS = 12
"""Columns of a sheet; even, so that both images of a pair lie in the same row."""
OWN_SHEET = 150
"""Up to this number, images get a sheet of their own, at the size in which they are shown."""


class _Thumbnails:
    """Thumbnails for sheets of a few images, shared by all sessions; those unused for the longest time go.

    The images of two sheets differ in a few: clusters at the next ε, the neighbors of the next image.
    """

    MOST = 96 * 1024 ** 2

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int, int], Image.Image] = OrderedDict()
        self._pixels = 0
        self._changing = threading.Lock()

    def thumbnail(self, dataset: Dataset, index: int, cell: int) -> Image.Image:
        """Return the thumbnail of an image in a square cell with a side in pixels."""
        key = dataset.fingerprint, index, cell
        with self._changing:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = make_thumbnail(image_to_draw(dataset.images, index), cell)
        with self._changing:
            if key not in self._kept:
                self._kept[key] = made
                self._pixels += cell * cell
            while 4 * self._pixels > self.MOST:  # Pillow keeps three channels in four bytes
                (_, _, side), _ = self._kept.popitem(last=False)
                self._pixels -= side * side
        return made


THUMBNAILS = _Thumbnails()


def all_sheets(message: components.Message, dataset: Dataset) -> dict[str, Any]:
    """Describe where the browser finds the thumbnail of each image of a data set.

    Missing thumbnails are made first, with a progress bar.

    Args:
        message: The message that refers to the sheets.
        dataset: The data set.
    """
    if are_sheets_made(dataset):
        sheets = make_sheets(dataset)
    else:
        bar = st.progress(0.0, "Creating thumbnails …")

        def report(share: float, _what: str) -> None:
            bar.progress(min(1.0, share), "Creating thumbnails …")

        try:
            sheets = make_sheets(dataset, report)
        finally:
            bar.empty()
    files = [(str(path), path.stat().st_mtime_ns) for path in sheets.paths]
    urls = [message.url(_content(*file), "image/jpeg", f"{dataset.fingerprint}-{sheets.cell}-{number}-{file[1]}")
            for number, file in enumerate(files)]
    return sheets_header(urls, len(dataset), sheets.columns, sheets.per_sheet, sheets.cell)


def own_sheet(message: Message, dataset: Dataset, indices: tuple[int, ...], side: int) -> dict[str, Any]:
    """Describe one sheet with the thumbnails of a few images, which is made when the browser fetches it.

    Args:
        message: The message that refers to the sheet.
        dataset: The data set.
        indices: Data set indices, in the order of the cells.
        side: Width of a cell in pixels.
    """
    cell, columns = max(side, 64), min(COLUMNS, max(1, len(indices)))
    name = digest(f"{dataset.name} {dataset.fingerprint} {cell} {indices}".encode())
    url = message.later(lambda: _sheet(dataset, indices, cell, columns), "image/jpeg", name)
    return sheets_header([url], len(indices), columns, max(1, len(indices)), cell)


def pair_sheet(message: Message, dataset: Dataset, pairs: Array, side: int) -> dict[str, Any]:
    """Describe one sheet whose cells each hold the two images of a pair side by side.

    Args:
        message: The message that refers to the sheet.
        dataset: The data set.
        pairs: Data set indices, (p, 2).
        side: Width of one image in pixels.
    """
    sheet = own_sheet(message, dataset, tuple(pairs.ravel().tolist()), side)
    return sheet | {"count": len(pairs), "columns": max(1, sheet["columns"] // 2), "perSheet": max(1, len(pairs))}


@st.cache_resource(max_entries=32, show_spinner=False)
def _content(path: str, changed: int) -> bytes:  # noqa: ARG001 (a new sheet is read again)
    return Path(path).read_bytes()


def _sheet(dataset: Dataset, indices: tuple[int, ...], cell: int, columns: int) -> bytes:
    thumbnails = [THUMBNAILS.thumbnail(dataset, index, cell) for index in indices]
    return sheet_file(join_thumbnails(thumbnails, cell, columns))
