"""One writer at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from udml_core.base.errors import UserError
from udml_core.numerics.galleries.manifest import NAME, read_manifest

LOCK = "lock"


@contextmanager
def writing(folder: Path, create: bool = False) -> Iterator[None]:
    """Hold the lock of a gallery's folder.

    Args:
        folder: The folder.
        create: Whether the folder may be new; it must then be empty, or hold a gallery.

    Raises:
        UserError: Another process writes to it, it holds other files, or it is not a gallery.
    """
    if create:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise UserError(f"{folder} is not a folder. Choose another name.") from None
        if not (folder / NAME).exists() and not (folder / LOCK).exists() and any(folder.iterdir()):
            raise UserError(f"{folder} holds other files. Choose a new or an empty folder.")
    else:
        read_manifest(folder)  # no lock is written into a folder that is not a gallery
    try:
        with FileLock(folder / LOCK, timeout=0):
            yield
    except Timeout:
        raise UserError(f"Another process changes the gallery {folder}. Wait until it has finished.") from None
