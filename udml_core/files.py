"""Atomic file writes: a reader sees the old or the new file, never a part.

This also holds after a kill.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile

import numpy as np

from udml_core.arrays import Array
from udml_core.errors import UserError


def replace_text(path: Path, text: str) -> None:
    """Replace a text file atomically."""
    replace_bytes(path, text.encode())


def replace_bytes(path: Path, content: bytes) -> None:
    """Replace a file atomically.

    Raises:
        FileNotFoundError: The folder does not exist. It is never created here, because a user may have removed it.
    """
    # The name is unique, as several processes and threads may write the same file at once.
    aside = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.part")
    try:
        _replace(path, aside, lambda file: file.write(content))
    finally:
        aside.unlink(missing_ok=True)


def replace_array(path: Path, array: Array) -> None:
    """Replace a file with an array atomically."""
    _replace(path, path.with_suffix(".part"), lambda file: np.save(file, array, allow_pickle=False))


def _replace(path: Path, aside: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write aside, wait until the content is on the disk, then rename.

    A failed write leaves its partial file: NumPy does not report a full disk, so the caller recognizes one by the
    remaining space, which the partial file keeps occupied.
    """
    with aside.open("wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)


def read_array(path: Path, mapped: bool = False) -> Array:
    """Read an array without unpickling.

    Raises:
        UserError: The file is missing or damaged.
    """
    try:
        loaded: Array = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
        return loaded
    except (OSError, ValueError, EOFError) as error:
        raise UserError(f"{path} should hold an array, but could not be read: {error}. "
                        "Resume the run or analysis, or start a new one.") from error


def replace_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Replace a file with several arrays atomically."""
    _replace(path, path.with_suffix(".part"), lambda file: np.savez(file, allow_pickle=False, **arrays))


def read_arrays(path: Path) -> dict[str, Array]:
    """Read the arrays of a file without unpickling.

    Raises:
        UserError: The file is missing or damaged.
    """
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise UserError(f"{path} should hold arrays, but could not be read: {error}. "
                        "Remove the file and compute it again.") from error


def jsonable(value: Any) -> Any:
    """Convert to what JSON can hold.

    Infinite and undefined numbers become null, NumPy scalars become Python's.
    """
    if isinstance(value, Mapping):
        return {str(key): jsonable(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
