"""Which files below a folder could be images, without opening any."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path

ENDINGS = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"})


def listed(root: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Files with an image's ending below a folder, by relative path with forward slashes; hidden ones are left out.

    Links to folders are followed, each folder is looked into once, by its own name before a link's; what may not be
    read is passed over.
    """
    waiting, seen = deque([("", str(root))]), set()
    while waiting:
        prefix, folder = waiting.popleft()
        entries, identity = _entries(folder)
        if identity is None or identity in seen:
            continue
        seen.add(identity)
        for entry in entries:
            if is_hidden(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                waiting.appendleft((f"{prefix}{entry.name}/", entry.path))
            elif entry.is_symlink() and os.path.isdir(entry.path):
                waiting.append((f"{prefix}{entry.name}/", entry.path))
            elif entry.name.lower().endswith(tuple(ENDINGS)) and os.path.isfile(entry.path):
                yield prefix + entry.name, entry


def is_hidden(name: str) -> bool:
    """Whether a file or folder of that name belongs to the system and not to a person."""
    return name.startswith((".", "__MACOSX"))


def is_text(name: str) -> bool:
    """Whether a name can be written into JSON, CSV and pages: on old disks and in foreign archives not all can."""
    try:
        name.encode()
        return True
    except UnicodeEncodeError:
        return False


def _entries(folder: str) -> tuple[list[os.DirEntry[str]], tuple[int, int] | None]:
    """What lies in a folder, by name, and which folder it is; None where it may not be read."""
    try:
        status = os.stat(folder)
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name), (status.st_dev, status.st_ino)
    except OSError:
        return [], None
