"""The data set in a folder: an official layout, images with a table or in the rows of files, or plain images."""

from __future__ import annotations

import os
import re
from pathlib import Path

from udml_core.base.errors import UserError, quoted
from udml_core.base.paths import may_read
from udml_core.data.sources.image_folder import Folder
from udml_core.data.sources.image_rows import ImageRows, files_of_rows
from udml_core.data.sources.levels import split_level
from udml_core.data.sources.listing import only_subfolder
from udml_core.data.sources.located import Located
from udml_core.data.sources.metadata import MetadataFolder, is_table_file, tables_of
from udml_core.data.sources.official.boxed import Cars, Cub
from udml_core.data.sources.official.flowers import Flowers
from udml_core.data.sources.official.idx_folder import IdxFolder
from udml_core.data.sources.official.layout import OfficialLayout
from udml_core.data.sources.official.packed import Cifar10Batches, Cifar100, Stl10
from udml_core.data.sources.official.products import InShop, OnlineProducts
from udml_core.data.sources.official.trees import FlickrMaterials, LeedsButterflies, Omniglot, Scene15, Voc2007

LAYOUTS: tuple[type[OfficialLayout], ...] = (
    Cub, Cars, OnlineProducts, InShop, Stl10, Cifar10Batches, Cifar100, Flowers, FlickrMaterials, Scene15,
    LeedsButterflies, Omniglot, Voc2007, IdxFolder)

DEEPEST = 3
"""Number of only subfolders, each in the one before, that can have an official layout."""
_OPTION = re.compile(r"^(.+)#(?:(crop|part)=([^#/\\]{1,100})|(label)=(.{1,1000}))$")
"""An option after a name. A label is the name of a column, which can have any letters."""


def plain_name(name: str) -> str:
    """Return the name of a data set without what follows `#`, such as `#level=2`."""
    plain, level = split_level(name)
    return plain if level is not None else split_option(name)[0]


def split_option(name: str) -> tuple[str, tuple[str, str] | None]:
    """Split a name such as `birds#crop=box` into the plain name and the option.

    Returns:
        The name, and the option's key and value; None if the name has none.
    """
    match = _OPTION.match(name)
    return (match[1], (match[2] or match[4], match[3] or match[5])) if match else (name, None)


def open_folder(path: Path, suffix: str = "", name: str | None = None, title: str | None = None) -> Located:
    """Return the data set in a folder.

    A class level opens the folder as plain images, whatever its layout.

    Args:
        path: The folder.
        suffix: What follows the plain name, such as `#level=2`, `#crop=box` or `#label=species`; empty for the
            default.
        name: Name of the data set; None for the path.
        title: Title of a plain folder; None for its name.

    Raises:
        UserError: The layout of the folder has no such option.
    """
    level, option = split_level(f"folder{suffix}")[1], split_option(f"folder{suffix}")[1]
    if level is not None:
        return Folder(path, name, title, level)
    if may_read(path) and os.path.isdir(path):
        layout = _detect(path)
        if layout is not None:
            # The name stays the path that was asked for, so that it is remembered once.
            return layout[0](layout[1], name or str(path.expanduser().resolve()), option)
    label = None if option is None else option[1]
    if (option is None or option[0] == "label") and may_read(path):
        if is_table_file(path) or (os.path.isdir(path) and tables_of(path)):
            return MetadataFolder(path, name, title, label)
        if files_of_rows(path):
            return ImageRows(path, name, title, label)
    if option is not None:
        raise UserError(f"Only official data sets, folders with metadata.csv and images in rows of files have options, "
                        f"got {quoted(suffix)} for {path}. Leave it out.")
    return Folder(path, name, title)


def _detect(path: Path) -> tuple[type[OfficialLayout], Path] | None:
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
        folder = only_subfolder(folder)
    return None


def _matches(layout: type[OfficialLayout], folder: Path) -> bool:
    try:
        return layout.matches(folder)
    except OSError:  # a folder that may not be searched, or a disconnected disk
        return False
