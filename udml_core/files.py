"""Writing so that a reader, or the next start after a kill, sees the old file or the new one and nothing between."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO
from zipfile import BadZipFile

import numpy as np

from udml_core.arrays import Array
from udml_core.errors import UserError


def replace_text(path: Path, text: str) -> None:
    """Write a text file aside, then put it in place."""
    replace_bytes(path, text.encode())


def replace_bytes(path: Path, content: bytes) -> None:
    """Write a file aside, then put it in place.

    Raises:
        FileNotFoundError: its folder is not there. It is never made here: what somebody removed stays removed.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.part")  # several may write it at once
    try:
        _replace(path, aside, lambda file: file.write(content))
    finally:
        aside.unlink(missing_ok=True)


def replace_array(path: Path, array: Array) -> None:
    """Write an array aside, then put it in place."""
    _replace(path, path.with_suffix(".part"), lambda file: np.save(file, array, allow_pickle=False))


def _replace(path: Path, aside: Path, write: Callable[[BinaryIO], object]) -> None:
    """Have a file written aside, wait until it is on the disk, then put it in place.

    What was written stays where it fails: NumPy does not say that a disk is full, and it is told by the room that is
    left.
    """
    with aside.open("wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)


def read_array(path: Path, mapped: bool = False) -> Array:
    """Read an array; nothing is unpickled.

    Raises:
        UserError: it is missing or broken.
    """
    try:
        loaded: Array = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
        return loaded
    except (OSError, ValueError, EOFError) as error:
        raise UserError(f"{path} should hold an array and could not be read: {error}. "
                        "Resume what was to write it, or start it anew.") from error


def replace_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write several arrays aside, then put them in place as one file."""
    _replace(path, path.with_suffix(".part"), lambda file: np.savez(file, allow_pickle=False, **arrays))


def read_arrays(path: Path) -> dict[str, Array]:
    """Read what `replace_arrays` wrote; nothing is unpickled.

    Raises:
        UserError: it is missing or broken.
    """
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise UserError(f"{path} should hold arrays and could not be read: {error}. "
                        "Remove it, then start it anew.") from error
