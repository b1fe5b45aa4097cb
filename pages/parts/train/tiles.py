"""Small tiles of images, without names that they would cut."""

from __future__ import annotations

from udml_core.data.dataset import Dataset
from udml_core.exploration.gallery_content import Mark, Tile

from ..draw.gallery import tile_of

SHORT, NO_NAME = 2, "\u00a0"
"""Letters of a class name that a small tile shows, and what it shows in place of a longer name."""


def small_tile(dataset: Dataset, index: int, mark: Mark = "") -> Tile:
    """Return a tile without a long name below it, which a small tile would cut."""
    names = dataset.class_names if dataset.labels is not None else ("",)
    is_short = dataset.labels is not None and max(map(len, names)) <= SHORT
    return tile_of(dataset, int(index), mark, "" if is_short else NO_NAME)
