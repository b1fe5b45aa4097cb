"""Which files hold images in rows, by their extensions."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from udml_core.base import bounded
from udml_core.base.errors import UserError, quoted
from udml_core.base.files import READ_ERRORS, version_of
from udml_core.base.paths import may_read
from udml_core.data.sources.arrow_rows import IMAGE_COLUMNS, ArrowFile, LanceRows, ParquetRows
from udml_core.data.sources.row_file import RowFile
from udml_core.data.sources.webdataset import COMPRESSED, TarRows, is_shard

SHARDS = (".tar", *COMPRESSED)
READERS: dict[str, type[RowFile]] = {".parquet": ParquetRows, ".arrow": ArrowFile, ".lance": LanceRows,
                                     **dict.fromkeys(SHARDS, TarRows)}
"""Readers by the ending of a file, or of the folder of a Lance table."""
MOST_DAMAGED = 8
"""Files of a folder that are opened to find a first one that is not damaged."""


def ending_of(name: str) -> str:
    """Return the ending by which a file has a reader; empty if it has none."""
    return next((ending for ending in READERS if name.endswith(ending)), "")


def holds_images(place: Path | str) -> bool:
    """Return whether the rows of a file hold images; False if it cannot or may not be read."""
    return bool(_finds_images(place, is_beside=False))


def first_holds_images(files: Sequence[Path]) -> bool:
    """Return whether the first file of a folder's files holds images; damaged files are passed over."""
    answers = (_finds_images(file, is_beside=True) for file in files[:MOST_DAMAGED])
    return bool(next((answer for answer in answers if answer is not None), False))


def _finds_images(place: Path | str, is_beside: bool) -> bool | None:
    """Return whether the rows of a file hold images; None if the file is damaged.

    Args:
        place: The path of the file.
        is_beside: Whether it is one of a folder's files; see `is_shard`.
    """
    try:
        path = Path(place).expanduser()
        return bool(ending_of(path.name)) and may_read(path) and _holds_images(path, version_of(path), is_beside)
    except (OSError, ValueError, RuntimeError):  # a name too long, with a null byte, or below an unknown home
        return False


@lru_cache(maxsize=256)
def _holds_images(path: Path, _version: tuple[int, int, int], is_beside: bool) -> bool | None:
    if path.suffix == ".lance":
        return (path / "_versions").is_dir()
    try:
        with reading(path):
            if ending_of(path.name) in SHARDS:
                return is_shard(path, is_beside)
            return bounded.call(path.name, _has_images, path)  # names of columns may share bytes, and grow without end
    except DamagedError:
        return None
    except UserError:
        return False


def _has_images(path: Path) -> bool:
    rows = READERS[ending_of(path.name)](path)
    return rows.holds_images() and not (path.suffix == ".parquet" and _has_vectors(rows))


def _has_vectors(rows: Any) -> bool:
    """Return whether a file has a column of lists of numbers: it is a table of embeddings then."""
    from pyarrow import types

    return any((types.is_list(field.type) or types.is_large_list(field.type) or types.is_fixed_size_list(field.type))
               and types.is_floating(field.type.value_type) for field in rows.schema)


def open_rows(path: Path) -> RowFile:
    """Open a file of rows by its extension.

    Raises:
        UserError: It holds no images, or is damaged.
    """
    with reading(path):
        rows = READERS[ending_of(path.name)](path)
        if not rows.holds_images():
            raise UserError(f"{path} holds no images. Expected: a column of bytes and paths, as the Image feature of "
                            f"`datasets` writes, or a column of bytes called {IMAGE_COLUMNS[0]}.")
        return rows


class DamagedError(UserError):
    """A file of rows that is damaged.

    Attributes:
        reason: What is wrong with it, as the reason why it is skipped; empty if it may be read at another time.
    """

    reason = ""


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what the readers of a damaged file of rows raise into one error that names the file.

    Raises:
        DamagedError: The file is damaged.
    """
    import pyarrow as pa

    try:
        yield
    except (*READ_ERRORS, tarfile.TarError, RuntimeError, pa.ArrowException) as error:  # LanceDB raises RuntimeError
        words = " ".join(str(error).split())[:200] or type(error).__name__
        damaged = DamagedError(f"{path} could not be read: {quoted(words)}. Download or write it again.")
        passes = isinstance(error, MemoryError) or getattr(error, "errno", None) is not None  # such as a permission
        damaged.reason = "" if passes else f"could not be read: {words}"
        raise damaged from error
