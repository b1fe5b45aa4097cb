"""Listing of files that could be images, without opening them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from udml_core.base.paths import may_read

HEIC_ENDINGS = frozenset({".heic", ".heif"})
ENDINGS = HEIC_ENDINGS | {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".avif"}

MOST_BESIDE = 200
"""Entries of a folder among which an only subfolder or a file of rows is looked for: it can have millions."""


def listed(root: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield the files below a folder that have an image extension.

    The relative paths have forward slashes. Hidden files and unreadable folders are skipped, and links that lead where
    an exposed server may not read. Other links to folders are followed; each folder is visited once, under its own name
    if possible.
    """
    waiting, seen = deque([("", str(root))]), set()
    while waiting:
        prefix, folder = waiting.popleft()
        entries, identity = _entries(folder)
        if identity is None or identity in seen:
            continue
        seen.add(identity)
        for entry in entries:
            if is_hidden(entry.name) or (entry.is_symlink() and not may_read(Path(entry.path))):
                continue
            if entry.is_dir(follow_symlinks=False):
                waiting.appendleft((f"{prefix}{entry.name}/", entry.path))
            elif entry.is_symlink() and os.path.isdir(entry.path):
                waiting.append((f"{prefix}{entry.name}/", entry.path))
            elif _is_image_name(entry.name) and os.path.isfile(entry.path):
                yield prefix + entry.name, entry


def has_image(root: Path) -> bool:
    """Return whether `listed` yields a file; a large folder of images is not read to its end."""
    try:
        with os.scandir(root) as entries:
            if any(entry.is_file(follow_symlinks=False) and _is_image_name(entry.name) for entry in entries):
                return True
    except OSError:
        return False
    return next(listed(root), None) is not None


def _is_image_name(name: str) -> bool:
    return name.lower().endswith(tuple(ENDINGS)) and not is_hidden(name)


def is_hidden(name: str) -> bool:
    """Return whether a name is hidden or belongs to the operating system."""
    return name.startswith((".", "__MACOSX"))


def is_text(name: str) -> bool:
    """Return whether a name is valid Unicode.

    Names on old disks and in foreign archives may be invalid.
    """
    try:
        name.encode()
        return True
    except UnicodeEncodeError:
        return False


def _entries(folder: str) -> tuple[list[os.DirEntry[str]], tuple[int, int] | None]:
    """Return the sorted entries of a folder and its identity.

    The identity is None if the folder is unreadable.
    """
    try:
        status = os.stat(folder)
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name), (status.st_dev, status.st_ino)
    except OSError:
        return [], None


def only_subfolder(path: Path) -> Path | None:
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
