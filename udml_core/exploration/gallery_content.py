"""The content of a gallery as the browser reads it: tiles, and the sheets that their images are cut out of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from udml_core.base.components import Message

Mark = Literal["", "keep", "hit", "miss", "query", "same", "different", "anchor", "positive", "negative", "only"]
LISTED_INSIDE = 200
"""A longer list of tiles is fetched once instead of traveling with every message."""


@dataclass(frozen=True)
class Tile:
    """One image or one pair of images in a gallery.

    Attributes:
        id: The image's index in the data set, or the pair's position in the gallery.
        caption: The name that screen readers and tooltips give.
        mark: The kind of border and symbol.
        badge: Short text below the image; the caption if empty.
    """

    id: int
    caption: str
    mark: Mark = ""
    badge: str = ""


@dataclass(frozen=True)
class ShadedTile(Tile):
    """A tile of every second group, whose background tells neighboring groups apart."""

    shaded: bool = True


@dataclass(frozen=True)
class DetailedTile(Tile):
    """A tile with a detail that screen readers and tooltips give in place of its badge."""

    detail: str = ""


def gallery_header(message: Message, tiles: Sequence[Tile], sheets: dict[str, Any], label: str, side: int,
                   height: int | None, group: str, by_position: bool) -> dict[str, Any]:
    """Describe a gallery for the browser.

    Args:
        message: The message that carries or refers to the tiles.
        tiles: The images.
        sheets: Where the browser finds the thumbnails; see `sheets_header`.
        label: What the gallery shows, for screen readers.
        side: Least width of a tile in pixels.
        height: Height in pixels above which the gallery scrolls.
        group: Name of the components that show the image under the pointer together.
        by_position: Whether the sheets hold the images of the tiles in their order, rather than all images by id.
    """
    tile_list: dict[str, Any] = {"list": [vars(tile) for tile in tiles]}
    if len(tiles) > LISTED_INSIDE:
        tile_list = {"url": message.url(json.dumps(tile_list["list"]).encode(), "application/json")}
    return {"label": label, "side": side, "height": height, "group": group, "tiles": tile_list, "sheets": sheets,
            "byPosition": by_position}


def sheets_header(urls: Sequence[str], count: int, columns: int, per_sheet: int, cell: int) -> dict[str, Any]:
    """Describe where the browser finds the thumbnails of images.

    Args:
        urls: The address of each sheet.
        count: Number of images.
        columns: Number of cells in a row.
        per_sheet: Number of cells on a sheet; on the last one there may be fewer.
        cell: Side of a cell in pixels.
    """
    return {"urls": list(urls), "count": count, "columns": columns, "perSheet": per_sheet, "cell": cell}
