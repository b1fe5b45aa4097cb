"""Images that users search with from outside a data set, kept for a day, so that a reload of the page finds them."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from pathlib import Path

from udml_core.base.files import read_regular, replace_bytes
from udml_core.base.paths import cache_folder
from udml_core.data.dataset import UserImage

KEPT = 24 * 3600.0
"""Seconds for which an image is kept at least, unless there are too many."""
MOST = 200
"""Most images that are kept, of all users."""
MOST_BYTES = 100_000_000
DIGEST = re.compile(r"[0-9a-f]{40}")


def keep_query_image(image: UserImage, digest: str) -> None:
    """Keep an image under its digest, and remove images that are too old; a full or read-only disk keeps none.

    Args:
        image: The content of a file, with its name.
        digest: The SHA-1 of the content.
    """
    if not isinstance(image.source, bytes) or len(image.source) > MOST_BYTES:
        return
    with suppress(OSError):
        folder = _folder()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_bytes(folder / digest, f"{' '.join(image.name.split())}\n".encode() + image.source)
        _remove_old(folder)


def find_query_image(digest: str) -> UserImage | None:
    """Return an image that is kept under a digest; None without one.

    Args:
        digest: Text that may come from a link.
    """
    if not DIGEST.fullmatch(digest):
        return None
    with suppress(OSError, ValueError):
        name, _, content = read_regular(_folder() / digest).partition(b"\n")
        return UserImage(content, name.decode())
    return None


def _folder() -> Path:
    return cache_folder() / "queries"


def _remove_old(folder: Path) -> None:
    newest = sorted(((path.stat().st_mtime, path) for path in folder.iterdir()), reverse=True)
    for number, (stored, path) in enumerate(newest):
        if number >= MOST or stored < time.time() - KEPT:
            path.unlink(missing_ok=True)
