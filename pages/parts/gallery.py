"""A gallery of a data set's images: one sprite sheet, clickable tiles."""

from __future__ import annotations

import io
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import streamlit as st
from PIL import Image, ImageOps

from pages.parts.loading import opened_dataset
from udml_core.data.dataset import Dataset

ASSETS = Path(__file__).resolve().parents[2] / "assets"
COLUMNS = 12
Mark = Literal["", "hit", "miss", "query"]


@dataclass(frozen=True)
class Tile:
    """One image: its position in the data set, what to call it, how to mark it, and a short badge in its place."""

    id: int
    caption: str
    mark: Mark = ""
    badge: str = ""


def tile_of(dataset: Dataset, index: int) -> Tile:
    """An image under its class, or under its name where it has none."""
    name = dataset.names[index] if dataset.labels is None else dataset.class_names[dataset.labels[index]]
    return Tile(index, dataset.caption(index), badge=name.rsplit("/", 1)[-1])


def gallery(dataset: Dataset, tiles: list[Tile], label: str, key: str, side: int = 104,
            chosen: int | None = None) -> int | None:
    """Draw tiles; the position of the image that was just picked, or None.

    Args:
        label: what the gallery shows, read out by screen readers.
        side: least width of a tile in pixels.
    """
    sheet = _sheet(dataset.name, dataset.fingerprint, tuple(tile.id for tile in tiles), side)
    header = json.dumps({"tiles": [asdict(tile) for tile in tiles], "columns": min(COLUMNS, len(tiles)),
                         "side": side, "chosen": chosen, "label": label}).encode()
    result = _component()(data=len(header).to_bytes(4, "little") + header + sheet, key=key,
                          on_picked_change=lambda: None)
    picked = result.picked
    return None if picked is None else int(picked)


@st.cache_resource
def _component():  # type: ignore[no-untyped-def]
    return st.components.v2.component("udml_gallery", html='<div class="grid" role="group"></div>\n',
                                      css=(ASSETS / "gallery.css").read_text(),
                                      js=(ASSETS / "gallery.js").read_text())


@st.cache_data(max_entries=64, show_spinner=False)
def _sheet(name: str, fingerprint: str, indices: tuple[int, ...], side: int) -> bytes:  # noqa: ARG001
    """The images as squares in rows of COLUMNS, one WebP file."""
    dataset = opened_dataset(name)
    columns = min(COLUMNS, len(indices))
    cell = max(side, 64)
    sheet = Image.new("RGB", (columns * cell, -(-len(indices) // columns) * cell), "white")
    for position, index in enumerate(indices):
        square = ImageOps.pad(dataset.images[index], (cell, cell), Image.Resampling.LANCZOS, color="white")
        sheet.paste(square, (position % columns * cell, position // columns * cell))
    buffer = io.BytesIO()
    sheet.save(buffer, "WEBP", quality=90)
    return buffer.getvalue()
