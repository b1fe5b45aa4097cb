"""Atomic file writes: a reader sees the old or the new file, never a part.

This also holds after a kill and after a power cut.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import threading
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, TypeVar, cast
from zipfile import BadZipFile, ZipFile

import numpy as np

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError

if TYPE_CHECKING:
    from pydantic import BaseModel

Record = TypeVar("Record", bound="BaseModel")
READ_ERRORS = (OSError, ValueError, TypeError, AttributeError, KeyError, EOFError, MemoryError, NotImplementedError,
               BadZipFile, zlib.error)
"""What NumPy raises for files that are not arrays, are damaged, or name an impossible shape."""


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
    publish(aside, path)


def publish_folder(aside: Path, final: Path) -> None:
    """Rename a folder that was written aside, after its files are on the disk.

    Without this a power cut can leave a renamed folder of empty files.
    """
    for path in aside.rglob("*"):
        sync(path)
    publish(aside, final)


def publish(aside: Path, final: Path) -> None:
    """Rename a file or a folder that was written aside, after it is on the disk."""
    sync(aside)
    aside.replace(final)
    sync(final.parent)


def sync(path: Path) -> None:
    """Wait until a file, or the list of files of a folder, is on the disk."""
    if os.name == "nt" and path.is_dir():  # Windows keeps the lists of folders by itself.
        return
    handle = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def digest_of_file(path: Path) -> str:
    """Return the SHA-256 digest of a file's content, as data sets of folders have it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_array(path: Path, mapped: bool = False) -> Array:
    """Read an array without unpickling.

    Raises:
        UserError: The file is missing or damaged.
    """
    try:
        _check_length(path)
        loaded: Array = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
        return loaded
    except READ_ERRORS as error:
        raise UserError(f"{path} should hold an array, but could not be read: {error}. "
                        "Resume the run or analysis, or start a new one.") from error


def _check_length(path: Path) -> None:
    """Check that a file is as long as its header says, before memory is reserved for it.

    Raises:
        OSError: It is not a regular file.
        ValueError: It is shorter, or not an array.
    """
    check_regular(path)
    with path.open("rb") as file:
        _declared_length(file, path.stat().st_size)


def _declared_length(file: IO[bytes], size: int) -> int:
    """Return the length in bytes of the array that a header declares.

    Raises:
        ValueError: It is no array, or longer than the file, which has `size` bytes.
    """
    read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    shape, _, dtype = read_header[np.lib.format.read_magic(file)](file)
    length = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or size < file.tell() + length:
        raise ValueError(f"its header says {file.tell() + length:,} bytes, and it has {size:,}")
    return length


def replace_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Replace a file with several arrays atomically."""
    _replace(path, path.with_suffix(".part"), lambda file: np.savez(file, allow_pickle=False, **arrays))


def read_arrays(path: Path, most: int) -> dict[str, Array]:
    """Read the arrays of a file without unpickling.

    Args:
        path: The file.
        most: Largest length in bytes of all arrays together. A compressed file of zeros is a thousand times shorter.

    Raises:
        UserError: The file is missing, damaged or larger.
    """
    try:
        check_regular(path)
        _check_members(path, most)
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except READ_ERRORS as error:
        raise UserError(f"{path} should hold arrays, but could not be read: {error}. "
                        "Remove the file and compute it again.") from error


def _check_members(path: Path, most: int) -> None:
    """Check what the arrays of a file declare, before any is decompressed.

    Raises:
        ValueError: A member is no array or shorter than it declares, or the arrays are too large.
    """
    with ZipFile(path) as stored:
        needed = 0
        for member in stored.infolist():
            with stored.open(member) as file:
                needed += _declared_length(file, member.file_size)
    if needed > most:
        raise ValueError(f"its arrays have {needed:,} bytes, and at most {most:,} are read")


def check_regular(path: Path) -> None:
    """Check that a path is not a folder, a named pipe or a device, which could be read for ever.

    Raises:
        OSError: It is; a missing file is left to the reader.
    """
    if path.exists() and not path.is_file():
        raise OSError("it is not a regular file")


def version_of(path: Path) -> tuple[int, int, int]:
    """Return numbers that change when a file is replaced, as keys of what was parsed from it.

    Raises:
        OSError: There is no such file.
    """
    file = path.stat()
    return file.st_ino, file.st_mtime_ns, file.st_size


def read_regular(path: Path, most: int | None = None) -> bytes:
    """Read a regular file.

    Args:
        path: The file.
        most: Largest length in bytes.

    Raises:
        OSError: There is no such regular file, or it is longer.
    """
    check_regular(path)
    if most is not None and path.stat().st_size > most:
        raise OSError(f"it has {path.stat().st_size:,} bytes, and at most {most:,} are read")
    return path.read_bytes()


def read_json(path: Path) -> Any:
    """Read a regular JSON file.

    Raises:
        OSError: There is no such regular file.
        ValueError: It is not JSON.
    """
    return parse_json(read_regular(path))


def read_record(model: type[Record], path: Path) -> Record:
    """Read a JSON file as a record, parsed once, because lists of runs need it at every step; again when replaced.

    Raises:
        OSError: There is no such regular file.
        ValueError: It does not describe the record.
    """
    return cast(Record, _parse_record(model, path, *version_of(path)))


@lru_cache(maxsize=8192)
def _parse_record(model: type[BaseModel], path: Path, *_version: int) -> BaseModel:
    return model.model_validate_json(read_regular(path))


def parse_json(text: str | bytes) -> Any:
    """Parse JSON.

    Raises:
        ValueError: It is not JSON, or nested so deeply that it cannot be parsed.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def append_line(path: Path, row: Mapping[str, Any]) -> None:
    """Append one JSON object to a file of lines, and wait until it is on the disk."""
    line = json.dumps(jsonable(row)).encode() + b"\n"
    with path.open("a+b") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            line = line if file.read(1) == b"\n" else b"\n" + line  # a writer was killed in the middle of its line
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def read_lines(path: Path, offset: int = 0) -> tuple[list[dict[str, Any]], int]:
    """Read the JSON objects of a file of lines; lines that hold none are skipped.

    Args:
        path: The file, which may be missing.
        offset: Byte offset to read from, as returned by the previous call.

    Returns:
        The objects, and the next offset. An unfinished last line is left for the next call.
    """
    if not path.is_file():
        return [], offset
    try:
        with path.open("rb") as file:
            file.seek(offset)
            content = file.read()
    except OSError:
        return [], offset
    end, rows = content.rfind(b"\n") + 1, []
    for line in content[:end].splitlines():
        with suppress(ValueError):
            rows.append(parse_json(line))
    return [row for row in rows if isinstance(row, dict)], offset + end


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
