"""The messages to the map, the gallery and the query row of a collection."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from udml_core.base.arrays import Array
from udml_core.base.components import Message
from udml_core.data.thumbnails import arrange, draw_thumbnails, join_sheets, join_thumbnails, sheet_file
from udml_core.exploration.gallery_content import Mark, Tile, gallery_header, sheets_header
from udml_core.exploration.map_content import ALONE, codes_array, points_header
from udml_core.notebook.collection import Collection

MOST_PICTURED = 20_000
"""Number of images up to which the map shows them; of more it shows points only."""
MOST_SHOWN = 120
"""Images of a gallery: its message passes a notebook's limit of 1 MB a second."""
MAP_HEIGHT, GALLERY_HEIGHT = 520, 320
GALLERY_SIDE, ROW_SIDE = 84, 104
"""Least width of a tile in pixels."""
COLUMNS = 12
JPEG = "image/jpeg"


@dataclass(frozen=True)
class AllSheets:
    """Thumbnails of all images.

    Attributes:
        files: JPEG files.
        cell: Side of a cell in pixels.
        columns: Number of cells in a row, and of rows on a full sheet.
    """

    files: tuple[bytes, ...]
    cell: int
    columns: int


@dataclass(frozen=True)
class Hits:
    """The nearest images of a query.

    Attributes:
        query: Row of the query.
        rows: Rows of its nearest images (k,), nearest first.
        distances: Their Euclidean distances (k,).
    """

    query: int
    rows: Array
    distances: Array


def draw_sheets(collection: Collection, report: Callable[[float], None] = lambda _share: None) -> AllSheets | None:
    """Draw the thumbnails of all images; None if there are too many.

    Args:
        collection: The images.
        report: Called with the share that is done.

    Raises:
        UserError: An image cannot be read.
    """
    count = len(collection)
    if count > MOST_PICTURED:
        return None
    cell, columns = arrange(count)

    thumbnails = draw_thumbnails(lambda row: collection.shown(row, cell), count, report)
    return AllSheets(tuple(map(sheet_file, join_sheets(thumbnails, cell, columns))), cell, columns)


def map_message(message: Message, collection: Collection, sheets: AllSheets | None, selected: Array, revision: int,
                hits: Hits | None = None) -> bytes:
    """Write the message to the map.

    Args:
        message: A new message.
        collection: The images.
        sheets: Thumbnails of all images.
        selected: Rows of the selected images.
        revision: Number of the selection.
        hits: A query, which is marked and joined with its nearest images.
    """
    color = collection.color
    classes = None if collection.codes is None else codes_array(collection.codes, len(color.names))
    names = json.dumps([collection.name(row) for row in range(len(collection))]).encode()
    marks = [] if hits is None else [{"row": hits.query, "word": "query", "lines": hits.rows.tolist(), "color": "",
                                      "radius": 11}]
    return message.pack(ALONE | points_header(message, collection.layout, color, selected, revision, True) | {
        "classLabel": color.label, "classes": message.once(classes), "classNames": list(color.names),
        "names": message.url(names, "application/json"),
        "sheets": None if sheets is None else sheets_header(
            [message.url(file, JPEG) for file in sheets.files], len(collection), sheets.columns, sheets.columns**2,
            sheets.cell),
        "label": f"Map of {len(collection):,} images", "height": MAP_HEIGHT, "group": collection.group, "marks": marks})


def gallery_message(message: Message, collection: Collection, rows: Array, label: str) -> bytes:
    """Write the message to the gallery, which shows the first images of `rows`."""
    tiles = [_tile(collection, row) for row in rows[:MOST_SHOWN].tolist()]
    return _tiles_message(message, collection, tiles, label, GALLERY_SIDE, strip=False)


def row_message(message: Message, collection: Collection, hits: Hits | None, label: str) -> bytes:
    """Write the message to the query row: the query, then its nearest images, with their distances."""
    if hits is None:
        return _tiles_message(message, collection, [], label, ROW_SIDE, strip=True)
    tiles = [_tile(collection, hits.query, "query")]
    for rank, (row, distance) in enumerate(zip(hits.rows.tolist(), hits.distances.tolist(), strict=True), 1):
        tiles.append(_tile(collection, row, _mark(collection, row, hits.query), f"{rank} · {distance:.3g}"))
    return _tiles_message(message, collection, tiles, label, ROW_SIDE, strip=True)


def _mark(collection: Collection, row: int, query: int) -> Mark:
    """Return "hit" for an image of the query's class, else "miss"; "" if either has none."""
    codes = collection.codes
    if codes is None or codes[row] < 0 or codes[query] < 0:
        return ""
    return "hit" if codes[row] == codes[query] else "miss"


def _tile(collection: Collection, row: int, mark: Mark = "", badge: str = "") -> Tile:
    name, class_name = collection.name(row), collection.class_name(row)
    return Tile(row, f"{class_name} · {name}" if class_name else name, mark, badge or class_name or name)


def _tiles_message(message: Message, collection: Collection, tiles: list[Tile], label: str, side: int, strip: bool
                   ) -> bytes:
    columns = min(COLUMNS, max(1, len(tiles)))
    content = sheet_file(join_thumbnails([collection.shown(tile.id, side) for tile in tiles], side, columns))
    sheets = sheets_header([message.url(content, JPEG)], len(tiles), columns, max(1, len(tiles)), side)
    return message.pack(gallery_header(message, tiles, sheets, label, side, None if strip else GALLERY_HEIGHT,
                                       collection.group, by_position=True)
                        | {"multiple": False, "chosen": None, "strip": strip})
