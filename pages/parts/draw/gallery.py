"""Galleries of a data set's images and of pairs: clickable tiles cut out of sprite sheets."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array
from udml_core.base.components import GALLERY_HTML, digest, pack_mask, unpack_mask
from udml_core.data.dataset import Dataset
from udml_core.data.thumbnails import are_sheets_made
from udml_core.exploration.gallery_content import Mark, ShadedTile, Tile, gallery_header

from ..shell.run_picker import open_search
from ..shell.selection import Selection, select
from .thumbnails import OWN_SHEET, all_sheets, own_sheet, pair_sheet
from .transport import Message, component

SIZE_HTML = """<label class="size">Image size
<input type="range"></label>
"""
SMALLEST, LARGEST = 56, 224
"""Least and largest width of an image in pixels."""


def mark_of(dataset: Dataset, index: int, query: int) -> Mark:
    """Return "hit" if an image has the query's class, else "miss"; "" without classes."""
    if dataset.labels is None:
        return ""
    return "hit" if dataset.labels[index] == dataset.labels[query] else "miss"


def tile_of(dataset: Dataset, index: int, mark: Mark = "", badge: str = "") -> Tile:
    """Make the tile of an image.

    Args:
        dataset: The data set.
        index: Index of the image.
        mark: The kind of border and symbol.
        badge: Short text below the image; if empty, the class, or the file name without classes.
    """
    name = dataset.names[index] if dataset.labels is None else dataset.class_names[dataset.labels[index]]
    return Tile(int(index), dataset.caption(index), mark, badge or name.rsplit("/", 1)[-1])


def shade(tiles: Iterable[Tile], images: Container[int]) -> list[Tile]:
    """Shade the tiles of some images, which tells neighboring groups apart."""
    return [ShadedTile(**vars(tile)) if tile.id in images else tile for tile in tiles]


def clicked_tile(clicks: Iterable[int | None]) -> int | None:
    """Return the first answer that is not None of several galleries and maps."""
    return next((index for index in clicks if index is not None), None)


def gallery(dataset: Dataset, tiles: list[Tile], label: str, key: str, side: int = 104, chosen: int | None = None,
            height: int | None = None, cell: int | None = None, strip: bool = False,
            on_pick: Callable[[int], None] | None = None, shared: bool = False, columns: int = 0,
            end: int | None = None) -> int | None:
    """Show a gallery of images.

    A right-click, a long press or the key Q opens the page Search with that image as the query.

    Args:
        dataset: The data set.
        tiles: The images.
        label: What the gallery shows, for screen readers.
        key: The widget's key.
        side: Least width of a tile in pixels.
        chosen: Index of the image to frame.
        height: Height in pixels above which the gallery scrolls.
        cell: Pixels of an image that the page's image size slider may enlarge; `side` without the slider.
        strip: Whether all images lie in one row, which scrolls.
        on_pick: Called with the clicked image before the page runs again, so that the same run can show it.
        shared: Whether tiles are cut out of the small thumbnails of all images, which takes no time, in place of a
            sharper sheet of their own.
        columns: Number of tiles in every row, on a phone too; 0 for as many as fit.
        end: Number of first tiles that count as the same as the query; the others are dimmed. None if it is unknown.

    Returns:
        The data set index of the image that was clicked just now, or None.
    """
    def picked() -> None:
        index = st.session_state[key].picked
        if on_pick is not None and index is not None:
            on_pick(int(index))

    message = Message()
    header = _header(message, dataset, tiles, label, cell or side, height, shared) | {
        "multiple": False, "chosen": chosen, "side": side, "resizable": cell is not None, "strip": strip,
        "columns": columns, "end": end}
    result = component("gallery", GALLERY_HTML)(data=message.pack(header), key=key, on_picked_change=picked,
                                                on_searched_change=lambda: None)
    return _clicked_image(dataset, result)


def selectable_gallery(dataset: Dataset, tiles: list[Tile], label: str, key: str, selected: Selection, side: int = 72,
                       height: int = 420, shown: str = "") -> int | None:
    """Show a gallery in which images can be selected.

    A click or Space selects an image, Shift-click a range; Esc clears. Enter or a double-click opens an image.

    Args:
        dataset: The data set.
        tiles: The images.
        label: What the gallery shows, for screen readers.
        key: The widget's key.
        selected: The data set's selection.
        side: Least width of a tile in pixels.
        height: Height in pixels above which the gallery scrolls.
        shown: Name of the content, which the browser's element has as `data-shown` once its first images are painted.

    Returns:
        The data set index of the image that was opened just now, or None.
    """
    message = Message()
    ids = np.array([tile.id for tile in tiles], dtype=np.int64)
    mask = pack_mask(np.flatnonzero(np.isin(ids, selected.ids)), len(ids))
    header = _header(message, dataset, tiles, label, side, height) | {
        "multiple": True, "shown": shown, "selection": {"mask": message.inside(mask), "of": digest(ids.tobytes()),
                                        "revision": selected.revision}}
    result = component("gallery", GALLERY_HTML)(
        data=message.pack(header), key=key, on_picked_change=lambda: None, on_searched_change=lambda: None,
        on_selection_change=lambda: _update_selection(key, dataset.fingerprint, ids))
    return _clicked_image(dataset, result)


def pair_gallery(dataset: Dataset, pairs: Array, same: Array, badges: Sequence[str], label: str, key: str,
                 side: int = 150, chosen: int | None = None, height: int | None = None) -> int | None:
    """Show a gallery of pairs of images, each marked as the same or different.

    Args:
        dataset: The data set.
        pairs: Data set indices, (p, 2).
        same: Whether the two images of each pair are the same, (p,) bool.
        badges: A short text for each pair.
        label: What the gallery shows, for screen readers.
        key: The widget's key.
        side: Least width of a tile in pixels.
        chosen: Position of the pair to frame.
        height: Height in pixels above which the gallery scrolls.

    Returns:
        The position of the pair that was clicked just now, or None.
    """
    tiles = [Tile(position, " and ".join(map(dataset.caption, pair)), "same" if is_same else "different", badge)
             for position, (pair, is_same, badge) in enumerate(zip(pairs.tolist(), same, badges, strict=True))]
    message = Message()
    header = {"label": label, "side": side, "height": height, "tiles": {"list": [vars(tile) for tile in tiles]},
              "sheets": pair_sheet(message, dataset, pairs, side // 2), "byPosition": True, "pairs": True,
              "multiple": False, "chosen": chosen}
    result = component("gallery", GALLERY_HTML)(data=message.pack(header), key=key, on_picked_change=lambda: None,
                                                on_searched_change=lambda: None)
    return None if result.picked is None else int(result.picked)


def image_size(key: str, value: int) -> None:
    """Show the slider that sets the width of all resizable galleries of the page, in the browser alone.

    Args:
        key: The widget's key.
        value: Width in pixels until the user chooses another.
    """
    component("size", SIZE_HTML)(data={"low": SMALLEST, "high": LARGEST, "value": value}, key=key, width="content")


def _clicked_image(dataset: Dataset, result: Any) -> int | None:
    """Return the clicked image, or open the page Search to search with it."""
    if result.searched is not None:
        open_search(dataset, int(result.searched))
    return None if result.picked is None else int(result.picked)


def _update_selection(key: str, fingerprint: str, ids: Array) -> None:
    """Adopt the selection in a gallery of the images `ids`.

    Selected images outside the gallery stay selected.
    """
    answer: dict[str, Any] | None = st.session_state[key].selection
    if not answer or answer["of"] != digest(ids.tobytes()):  # a click on images that the page no longer shows
        return
    earlier = st.session_state.get("selection")
    others = earlier.ids[~np.isin(earlier.ids, ids)] if isinstance(earlier, Selection) else np.zeros(0, dtype=np.int64)
    chosen = ids[unpack_mask(answer["mask"], len(ids))]
    select(fingerprint, np.concatenate([others, chosen]), int(answer["revision"]))


def _header(message: Message, dataset: Dataset, tiles: list[Tile], label: str, side: int,
            height: int | None, shared: bool = False) -> dict[str, Any]:
    ids = tuple(tile.id for tile in tiles)
    by_position = dataset.is_large or (len(ids) <= OWN_SHEET and not shared)
    sheets = own_sheet(message, dataset, ids, side) if by_position else all_sheets(message, dataset)
    header = gallery_header(message, tiles, sheets, label, side, height, dataset.fingerprint[:8], by_position)
    if by_position and not dataset.is_large and are_sheets_made(dataset):
        header["early"] = all_sheets(message, dataset)  # small thumbnails, until the own sheet is there
    return header
