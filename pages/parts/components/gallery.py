"""A gallery of a data set's images: clickable tiles cut out of sprite sheets."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import streamlit as st

from pages.parts.base.run_picker import open_search
from pages.parts.base.selection import Selection, select
from pages.parts.components.thumbnails import OWN_SHEET, all_sheets, own_sheet, pair_sheet
from pages.parts.components.transport import Message, component, packed_mask, unpacked
from udml_core.arrays import Array
from udml_core.data.dataset import Dataset

Mark = Literal["", "hit", "miss", "query", "same", "different"]
HTML = '<div class="grid" role="group"></div>\n'
LISTED_INSIDE = 200
"""More tiles than this are fetched once instead of travelling with every message."""


@dataclass(frozen=True)
class Tile:
    """One image, by its position in the data set, or one pair of images, by its place among those that are shown: what
    to call it, how to mark it, and a short badge in its place."""

    id: int
    caption: str
    mark: Mark = ""
    badge: str = ""


def mark_of(dataset: Dataset, index: int, query: int) -> Mark:
    """Whether an image is of the query's class; nothing without classes."""
    if dataset.labels is None:
        return ""
    return "hit" if dataset.labels[index] == dataset.labels[query] else "miss"


def tile_of(dataset: Dataset, index: int, mark: Mark = "", badge: str = "") -> Tile:
    """An image under its class, or under its name where it has none; a badge takes that place."""
    name = dataset.names[index] if dataset.labels is None else dataset.class_names[dataset.labels[index]]
    return Tile(int(index), dataset.caption(index), mark, badge or name.rsplit("/", 1)[-1])


def clicked_tile(clicks: Iterable[int | None]) -> int | None:
    """The image that was just picked in one of several galleries or maps, None where none was."""
    return next((one for one in clicks if one is not None), None)


def gallery(dataset: Dataset, tiles: list[Tile], label: str, key: str, side: int = 104, chosen: int | None = None,
            height: int | None = None) -> int | None:
    """Draw tiles; the position in the data set of the image that was just picked, or None.

    A right-click, a long press or Q leads away: that image becomes the query of the page Retrieval.

    Args:
        label: what the gallery shows, read out by screen readers.
        side: least width of a tile in pixels.
        chosen: the image to frame.
        height: scroll within so many pixels.
    """
    message = Message()
    header = _header(message, dataset, tiles, label, side, height) | {"multiple": False, "chosen": chosen}
    result = component("gallery", HTML)(data=message.packed(header), key=key, on_picked_change=lambda: None,
                                        on_asked_change=lambda: None)
    return _answer(dataset, result)


def pair_gallery(dataset: Dataset, pairs: Array, same: Array, badges: Sequence[str], label: str, key: str,
                     side: int = 150, chosen: int | None = None, height: int | None = None) -> int | None:
    """Draw pairs (p, 2) of a data set's images, each as one tile that says whether they are the same (p,); the place of
    the one that was just picked, or None. The rest is as in `gallery`."""
    tiles = [Tile(place, " and ".join(map(dataset.caption, pair)), "same" if alike else "different", badge)
             for place, (pair, alike, badge) in enumerate(zip(pairs.tolist(), same, badges, strict=True))]
    message = Message()
    header = {"label": label, "side": side, "height": height, "tiles": {"list": [vars(tile) for tile in tiles]},
              "sheets": pair_sheet(message, dataset, pairs, side // 2), "byPlace": True, "pairs": True,
              "multiple": False, "chosen": chosen}
    result = component("gallery", HTML)(data=message.packed(header), key=key, on_picked_change=lambda: None,
                                        on_asked_change=lambda: None)
    return None if result.picked is None else int(result.picked)


def selectable_gallery(dataset: Dataset, tiles: list[Tile], label: str, key: str, held: Selection, side: int = 72,
                      height: int = 420) -> int | None:
    """Draw tiles of which several can be selected, as part of the data set's one selection.

    Click or Space selects, Shift-click a range, Esc none. Returns the image that was just picked (Enter or
    double-click), or None.
    """
    message = Message()
    ids = np.array([tile.id for tile in tiles], dtype=np.int64)
    mask = packed_mask(np.flatnonzero(np.isin(ids, held.ids)), len(ids))
    header = _header(message, dataset, tiles, label, side, height) | {
        "multiple": True, "selection": {"mask": message.inside(mask), "revision": held.revision}}
    result = component("gallery", HTML)(
        data=message.packed(header), key=key, on_picked_change=lambda: None, on_asked_change=lambda: None,
        on_selection_change=lambda: _selected(key, dataset.fingerprint, ids))
    return _answer(dataset, result)


def _answer(dataset: Dataset, result: Any) -> int | None:
    if result.asked is not None:
        open_search(dataset, int(result.asked))
    return None if result.picked is None else int(result.picked)


def _selected(key: str, fingerprint: str, ids: Array) -> None:
    """What is selected here and not shown here stays; what is shown is as the tiles say."""
    answer: dict[str, Any] | None = st.session_state[key].selection
    if not answer or answer["count"] != len(ids):
        return
    held = st.session_state.get("selection")
    others = held.ids[~np.isin(held.ids, ids)] if isinstance(held, Selection) else np.zeros(0, dtype=np.int64)
    chosen = ids[unpacked(answer["mask"], len(ids))]
    select(fingerprint, np.concatenate([others, chosen]), int(answer["revision"]))


def _header(message: Message, dataset: Dataset, tiles: list[Tile], label: str, side: int,
            height: int | None) -> dict[str, Any]:
    ids = tuple(tile.id for tile in tiles)
    by_place = len(ids) <= OWN_SHEET
    listed: dict[str, Any] = {"list": [vars(tile) for tile in tiles]}
    if len(tiles) > LISTED_INSIDE:
        listed = {"url": message.url(json.dumps(listed["list"]).encode(), "application/json")}
    sheets = own_sheet(message, dataset, ids, side) if by_place else all_sheets(message, dataset)
    return {"label": label, "side": side, "height": height, "group": dataset.fingerprint[:8], "tiles": listed,
            "sheets": sheets, "byPlace": by_place}
