"""Files of earlier exports that do not belong to a plan, and which of them an export can remove without a loss."""

from __future__ import annotations

import io
import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from udml_core.data.dataset import Dataset, FileImages
from udml_core.data.given.exclusions import excluded_names
from udml_core.work.exporting.sorting_plan import Former, Item, Reason

BLOCK = 2**20
"""Bytes that are compared at once."""


def former_files(dataset: Dataset, folder: Path, written: Iterable[Item], items: Collection[Item], prunes: bool
                 ) -> Iterator[Former]:
    """Yield the files of earlier exports that an export does not list.

    Args:
        dataset: The data set.
        folder: The folder of the export.
        written: The files that earlier exports have written to it and that are still there.
        items: The images of the export.
        prunes: Whether files are removed, so that each is compared with its image.
    """
    files, label_of = {item.file for item in items}, {item.image: item.label for item in items}
    rest = sorted((item for item in written if item.file not in files), key=lambda item: item.file)
    index_of = dataset.indices_by_name({item.image for item in rest})
    excluded, linked = set(excluded_names(dataset)), linked_into(dataset, folder) if prunes else frozenset()
    for item in rest:
        index = index_of.get(item.image)
        is_gone = index is None or not _has_image(dataset, index)
        reason: Reason = ("gone" if is_gone else "excluded" if item.image in excluded else
                          "left out" if item.image not in label_of else "unnamed" if not label_of[item.image] else
                          "renamed" if item.label else "named")
        yield Former(item, reason, why_kept(dataset, folder, item, linked) if prunes else "")


def linked_into(dataset: Dataset, folder: Path) -> frozenset[str]:
    """Return the real paths of images of a data set that are links into a folder."""
    images, inside = dataset.images, os.path.realpath(folder) + os.sep
    if not isinstance(images, FileImages):
        return frozenset()
    real = (os.path.realpath(images.source(index)) for index in range(len(dataset)))
    return frozenset(path for path in real if path.startswith(inside))


def why_kept(dataset: Dataset, folder: Path, item: Item, linked: Collection[str]) -> str:
    """Return why a file of an earlier export is not removed, in a few words; empty if nothing is lost without it.

    Nothing is lost without a link into the folder of the images, and without a copy whose image is still there and has
    the same content. `linked` are the files of the export that images of the data set link to; see `linked_into`.
    """
    path = folder / item.file
    root = os.path.realpath(dataset.images.root) if isinstance(dataset.images, FileImages) else None
    if os.path.realpath(path.parent) != str(Path(os.path.realpath(folder)) / path.parent.name):
        return "a link to another folder leads there"
    index = dataset.indices_by_name({item.image}).get(item.image)
    image = None if index is None or not isinstance(dataset.images, FileImages) else (
        dataset.images.source(index))
    if (image is not None and Path(os.path.realpath(image)).is_relative_to(os.path.realpath(folder))) or (
            os.path.realpath(path) in linked and not path.is_symlink()):
        return "your image is a link to a file of the export"
    if path.is_symlink():
        is_own = root is not None and Path(os.readlink(path)).is_relative_to(root)
        is_same = image is not None and os.path.realpath(path) == os.path.realpath(image)
        return "" if is_own or is_same else "the link leads elsewhere now"
    if index is None or not _has_image(dataset, index):
        return "the image is gone, so the copy may be the last"
    if root is not None and Path(os.path.realpath(path)).is_relative_to(root):
        return "the file lies among your images"
    return "" if _is_equal(dataset, index, path) else "the copy or its image has changed since"


def _has_image(dataset: Dataset, index: int) -> bool:
    images = dataset.images
    return not isinstance(images, FileImages) or images.source(index).exists()


def _is_equal(dataset: Dataset, index: int, path: Path) -> bool:
    """Return whether a copy has the content that an export writes now."""
    images = dataset.images
    if isinstance(images, FileImages):
        return path.is_file() and _are_equal(path, images.source(index))
    content = io.BytesIO()
    images[index].save(content, "PNG")
    return path.is_file() and path.read_bytes() == content.getvalue()


def _are_equal(first: Path, second: Path) -> bool:
    """Return whether two files have the same content now; `filecmp` remembers an answer by size and time."""
    if first.stat().st_size != second.stat().st_size:
        return False
    with first.open("rb") as one, second.open("rb") as other:
        while part := one.read(BLOCK):
            if part != other.read(BLOCK):
                return False
    return True
