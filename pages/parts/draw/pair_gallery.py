"""A gallery of pairs of images: clickable tiles that show both images."""

from __future__ import annotations

from collections.abc import Sequence

from udml_core.base.arrays import Array
from udml_core.data.dataset import Dataset

from .gallery import HTML, Tile
from .thumbnails import pair_sheet
from .transport import Message, component


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
    result = component("gallery", HTML)(data=message.pack(header), key=key, on_picked_change=lambda: None,
                                        on_searched_change=lambda: None)
    return None if result.picked is None else int(result.picked)
