"""The official layouts, and which of them a folder has."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

from udml_core.base.paths import may_read
from udml_core.data.sources.listing import is_hidden
from udml_core.data.sources.official.boxed import Cars, Cub
from udml_core.data.sources.official.flowers import Flowers
from udml_core.data.sources.official.layout import Layout
from udml_core.data.sources.official.packed import Cifar10Batches, Cifar100, Stl10
from udml_core.data.sources.official.products import InShop, OnlineProducts
from udml_core.data.sources.official.trees import FlickrMaterials, LeedsButterflies, Omniglot, Scene15, Voc2007

LAYOUTS: tuple[type[Layout], ...] = (Cub, Cars, OnlineProducts, InShop, Stl10, Cifar10Batches, Cifar100, Flowers,
                                     FlickrMaterials, Scene15, LeedsButterflies, Omniglot, Voc2007)

MOST_BESIDE = 200
"""Largest number of entries of a folder whose only subfolder can be an official layout."""
DEEPEST = 3
"""Number of only subfolders, each in the one before, that can have an official layout."""


def detect(path: Path) -> tuple[type[Layout], Path] | None:
    """Return the official layout of a folder, or of its only subfolder, and so on `DEEPEST` levels down.

    Archives often have such subfolders: PASCAL VOC has VOCdevkit/VOC2007.

    Returns:
        The layout and the folder that has it; None if there is none.
    """
    folder: Path | None = path
    for _ in range(DEEPEST + 1):
        if folder is None:
            break
        layout = next((layout for layout in LAYOUTS if _matches(layout, folder)), None)
        if layout is not None:
            return layout, folder
        folder = _only_subfolder(folder)
    return None


def _matches(layout: type[Layout], folder: Path) -> bool:
    try:
        return layout.matches(folder)
    except OSError:  # a folder that may not be searched, or a disconnected disk
        return False


def _only_subfolder(path: Path) -> Path | None:
    """Return the only subfolder of a folder with at most `MOST_BESIDE` entries.

    The limit saves reading a large folder of images each time that the data sets are listed.
    """
    try:
        with os.scandir(path) as entries:
            first = list(islice(entries, MOST_BESIDE + 1))
            folders = [entry.path for entry in first if entry.is_dir() and not is_hidden(entry.name)]
    except OSError:
        return None
    if len(first) > MOST_BESIDE:
        return None
    return Path(folders[0]) if len(folders) == 1 and may_read(Path(folders[0])) else None
