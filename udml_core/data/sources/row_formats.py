"""Which files hold images in rows, by their extensions."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

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


def ending_of(name: str) -> str:
    """Return the ending by which a file has a reader; empty if it has none."""
    return next((ending for ending in READERS if name.endswith(ending)), "")


def holds_images(place: Path | str, is_beside: bool = False) -> bool:
    """Return whether the rows of a file hold images; False if it cannot or may not be read.

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
def _holds_images(path: Path, _version: tuple[int, int, int], is_beside: bool) -> bool:
    if ending_of(path.name) in SHARDS:
        return is_shard(path, is_beside)
    if path.suffix == ".lance":
        return (path / "_versions").is_dir()
    import pyarrow as pa

    try:
        rows = READERS[ending_of(path.name)](path)
        return rows.holds_images() and not (path.suffix == ".parquet" and _has_vectors(rows))
    except (*READ_ERRORS, pa.ArrowException):
        return False


def _has_vectors(rows: Any) -> bool:
    """Return whether a file has a column of lists of numbers: it is a table of embeddings then."""
    from pyarrow import types

    return any((types.is_list(field.type) or types.is_large_list(field.type) or types.is_fixed_size_list(field.type))
               and types.is_floating(field.type.value_type) for field in rows.schema)


def open_rows(path: Path) -> RowFile:
    """Open a file of rows by its extension.

    Raises:
        UserError: It holds no images, or cannot be read.
    """
    import pyarrow as pa

    try:
        rows = READERS[ending_of(path.name)](path)
        if not rows.holds_images():
            raise UserError(f"{path} holds no images. Expected: a column of bytes and paths, as the Image feature of "
                            f"`datasets` writes, or a column of bytes called {IMAGE_COLUMNS[0]}.")
        return rows
    except (*READ_ERRORS, pa.ArrowException) as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: Exception) -> UserError:
    """Return the error for a damaged file of rows."""
    reason = " ".join(str(error).split())[:200] or type(error).__name__
    return UserError(f"{path} could not be read: {quoted(reason)}. Download or write it again.")
