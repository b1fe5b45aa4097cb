"""A user's table of embeddings: one vector for each row, with or without images.

The vectors are copied once into the cache as float32, so that training, pages and analyses map them into memory.
Metadata come from the table's own columns, or from `NAME.csv` or `NAME.parquet` beside it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from filelock import FileLock

from udml_core.base import bounded
from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.base.files import read_array, read_json, replace_text
from udml_core.base.paths import cache_folder, dataset_cache, existing_path, may_read, readable_roots
from udml_core.data.dataset import TABLE, Dataset, Report, Skipped
from udml_core.data.dataset_columns import Columns
from udml_core.data.sources.metadata import is_table_file
from udml_core.data.sources.row_formats import holds_images
from udml_core.data.sources.source import Source
from udml_core.data.sources.table_columns import (
    Choices,
    OpenTable,
    metadata_path,
    open_table,
    read_halves,
    read_labels,
    read_names,
)
from udml_core.data.sources.vector_files import ENDINGS, open_vectors, reading
from udml_core.data.text_tiles import TILE, TableImages

LAYOUT = "NAME.npy, NAME.npz, NAME.parquet or NAME.safetensors with one vector for each row"
_NAME = re.compile(rf"^(.+?(?:{'|'.join(map(re.escape, ENDINGS))}))(?:#(.*))?$", re.IGNORECASE | re.DOTALL)
_KEPT = ("fingerprint", "labels", "class_names", "names", "test", "files", "texts", "distinct", "columns")


def table_of(name: str) -> EmbeddingTable | None:
    """Return the table that a path names, such as vectors.parquet or vectors.parquet#label=species.

    The result is None if the path is not that of an existing file with such an extension, or if its rows hold images or
    only name them.

    Raises:
        UserError: The path is that of a table, but the choices after '#' are not valid.
    """
    match = _NAME.match(name)
    path = existing_path(match[1]) if match else None
    if match is None or path is None or not path.is_file() or holds_images(path) or is_table_file(path):
        return None
    return EmbeddingTable(path, Choices.parse(match[2] or ""))


def write_table(folder: Path, stem: str, files: Sequence[tuple[str, bytes]]) -> Path:
    """Write an uploaded table and the file with its columns, and return the path of its vectors.

    Args:
        folder: A new folder.
        stem: Name of the written files without extension.
        files: Names and contents: the vectors, and a CSV or Parquet file with columns, if any.

    Raises:
        UserError: There are not one or two files of these formats.
        OSError: The files cannot be written.
    """
    by_ending = {Path(name).suffix.lower(): content for name, content in files}
    vectors = [ending for ending in by_ending if ending in ENDINGS]
    if len(by_ending) != len(files) or len(files) > 2 or not vectors or not by_ending.keys() <= {*ENDINGS, ".csv"}:
        raise UserError("A table is one file, or one file of vectors and one CSV or Parquet file with its columns; "
                        f"got {', '.join(name for name, _ in files)[:200] or 'no file'}. Expected: {LAYOUT}.")
    if len(vectors) == 2 and ".parquet" not in vectors:
        raise UserError(f"The columns of a table must be a CSV or Parquet file, got two files of vectors: "
                        f"{', '.join(name for name, _ in files)[:200]}. Upload one of them.")
    for ending, content in by_ending.items():
        (folder / f"{stem}{ending}").write_bytes(content)
    main = next((ending for ending in vectors if ending != ".parquet"), ".parquet")
    return folder / f"{stem}{main}"


@contextmanager
def table_aside(files: Sequence[tuple[str, bytes]]) -> Iterator[EmbeddingTable]:
    """Yield an uploaded table, written into a temporary folder; see `write_table`."""
    with TemporaryDirectory() as folder:
        yield EmbeddingTable(write_table(Path(folder), "table", files))


class EmbeddingTable(Source):
    """A file of vectors as a data set.

    Attributes:
        path: The file.
        choices: The columns that the user chose, which are part of the name.
    """

    classes = None

    def __init__(self, path: Path, choices: Choices = Choices()) -> None:  # noqa: B008 (it is frozen)
        with suppress(OSError, ValueError, RuntimeError):  # see `existing_path`; such a file is missing
            path = path.expanduser().resolve()
        self.path = path
        self.choices = choices
        suffix = str(choices)
        self.name = str(path) + (f"#{suffix}" if suffix else "")
        self.title = path.name + (f" ({suffix})" if suffix else "")
        self.summary = f"Embeddings in {path}"

    # Read on access only: the catalog lists many data sets without opening them.
    @property
    def images(self) -> int | None:  # type: ignore[override]
        with suppress(UserError):
            return open_vectors(self.path, self.choices.vectors).count
        return None

    def missing(self) -> str | None:
        if not may_read(self.path):
            return (f"This server does not read the file {self.path}. It reads only files in "
                    f"{', '.join(readable_roots())}. Choose a listed data set, or upload the file.")
        if not os.path.isfile(self.path):
            return f"The file {self.path} does not exist. Expected: {LAYOUT}."
        return None

    def signature(self) -> str:
        with suppress(OSError):
            files = [file for file in (self.path, metadata_path(self.path)) if file is not None]
            return " ".join(f"{file.suffix} {(status := file.stat()).st_size} {status.st_mtime_ns}" for file in files)
        return ""

    def header(self) -> OpenTable:
        """Open the table without reading its vectors.

        Raises:
            UserError: The file is missing or cannot be read.
        """
        self.check()
        return open_table(self.path, self.choices)

    def classes_column(self) -> str | None:
        return self.header().find("label", self.choices)

    def load(self, report: Report) -> Dataset:
        self._kept_path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self._kept_path.with_suffix(".lock")):  # several processes may open a new table at once
            kept = self._kept() or bounded.call(self.path.name, self._read, extra=self.length(), report=report)
        report(1.0, "reading the table")
        vectors = read_array(_vectors_path(kept["fingerprint"]), mapped=True)
        names, names_or_labels = tuple(kept["names"]), kept["texts"]
        class_names = tuple(kept["class_names"])
        labels = None if kept["labels"] is None else np.array(kept["labels"], dtype=np.int64)
        texts = names
        if names_or_labels == "labels" and labels is not None:
            texts = tuple(class_names[label] for label in labels)
        elif isinstance(names_or_labels, list):
            texts = tuple(names_or_labels)
        images = TableImages(self.path.parent, None if kept["files"] is None else tuple(kept["files"]), texts)
        columns = Columns(kept["columns"], self._column, len(names))
        return Dataset(self.name, self.title, images, labels, class_names, kept["fingerprint"], TILE, False, names,
                       None if kept["test"] is None else np.array(kept["test"], dtype=bool), _without_image(images),
                       kept["distinct"], columns=columns, vectors=vectors, divides_own_images=kept["test"] is not None)

    def _column(self, name: str) -> list[Any]:
        """Read a column of the table again, or none of its values if the table has changed so much that it is gone."""
        return bounded.call(self.path.name, self._column_here, name, extra=self.length())

    def length(self) -> int:
        """Return the bytes of the file, which a reader can map; 0 if it is gone."""
        with suppress(OSError):
            return self.path.stat().st_size
        return 0

    def _column_here(self, name: str) -> list[Any]:
        table = self.header()
        return table.values(name) if name in table.columns else []

    @property
    def _kept_path(self) -> Path:
        digest = hashlib.sha256(os.fsencode(self.name)).hexdigest()[:24]
        return cache_folder() / "tables" / f"{digest}.json"

    def _kept(self) -> dict[str, Any] | None:
        """Return what was read before; None if the files have changed since, or the copied vectors are missing."""
        try:
            kept = read_json(self._kept_path)
            is_same = kept["signature"] == self.signature() and kept.keys() >= set(_KEPT)
            return dict(kept) if is_same and _vectors_path(kept["fingerprint"]).is_file() else None
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None

    def _read(self, report: Report) -> dict[str, Any]:
        """Read the whole table and keep what was read.

        Raises:
            UserError: The files cannot be read, a number is not finite, or a column does not fit its role.
        """
        signature = self.signature()
        table = self.header()
        kept = _read_columns(table, self.choices)
        part = self._kept_path.with_suffix(".part")
        try:
            digest, is_one_vector = _copy_vectors(table, part, report)
            used = {key: value for key, value in kept.items() if key != "columns"}
            digest.update(json.dumps(used, sort_keys=True).encode())
            kept |= {"fingerprint": digest.hexdigest(), "distinct": 1 if is_one_vector else None}
            target = _vectors_path(kept["fingerprint"])
            target.parent.mkdir(parents=True, exist_ok=True)
            part.replace(target)
            replace_text(self._kept_path, json.dumps(kept | {"signature": signature}))
        except OSError as error:
            raise UserError(f"The vectors of {self.path} could not be copied to {cache_folder()}: {error}. Free some "
                            "space, or set UDML_CACHE to another folder.") from error
        finally:
            part.unlink(missing_ok=True)
        return kept


def _vectors_path(fingerprint: str) -> Path:
    """Return the path of the copied vectors, where features are stored."""
    return dataset_cache(fingerprint) / f"{TABLE}.npy"


def _read_columns(table: OpenTable, choices: Choices) -> dict[str, Any]:
    """Read the columns that the data set uses.

    The texts of the tiles are a column's values, or the word `names` or `labels`.
    """
    label, split, name, image, text = (table.find(role, choices) for role in ("label", "split", "name", "image",
                                                                             "text"))
    labels, class_names = read_labels(table, label) if label else (None, ())
    if len(class_names) < 2:
        labels, class_names = None, ()
    names = read_names(table, name) if name else tuple(f"row {row}" for row in range(table.vectors.count))
    texts: Any = table.texts(text) if text and text != name else "names"
    if labels is not None and ((text and text == label) or (text is None and name is None)):
        texts = "labels"
    return {"labels": None if labels is None else labels.tolist(), "class_names": class_names, "names": names,
            "test": read_halves(table, split).tolist() if split else None,
            "files": table.texts(image) if image else None, "texts": texts,
            "columns": [other for other in table.columns if other not in (label, split, name, image)]}


def _copy_vectors(table: OpenTable, target: Path, report: Report) -> tuple[Any, bool]:
    """Write the vectors as a float32 array, block by block.

    Returns:
        A digest of the array, and whether all vectors are the same.

    Raises:
        UserError: The file is damaged, or a number is not finite.
        OSError: The array cannot be written.
    """
    vectors, start = table.vectors, 0
    digest, first, is_one_vector = hashlib.sha256(), None, True
    with target.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False,
                                                    "shape": (vectors.count, vectors.width)})
        blocks = vectors.blocks()
        while start < vectors.count:
            with reading(table.path):
                block = next(blocks, None)
            if block is None:
                raise UserError(f"{table.path} declares {vectors.count:,} rows, but ends after {start:,}. Write the "
                                "file again.")
            rows = _checked(table, block, start)
            first = rows[:1].copy() if first is None else first
            is_one_vector = is_one_vector and bool((rows == first).all())
            content = rows.tobytes()
            digest.update(content)
            file.write(content)
            start += len(rows)
            report(start / vectors.count, "reading the table")
    digest.update(f"{vectors.count} {vectors.width}".encode())
    return digest, is_one_vector


def _checked(table: OpenTable, block: Array, start: int) -> Array:
    """Return a block as float32 (b, d), little-endian.

    Raises:
        UserError: A number is not finite.
    """
    with np.errstate(over="ignore"):
        rows: Array = np.ascontiguousarray(block, dtype="<f4")
    finite = np.isfinite(rows)
    if not finite.all():
        row, column = (int(number) for number in np.argwhere(~finite)[0])
        raise UserError(f"All numbers of {table.path} must be finite as float32; row {start + row:,} has "
                        f"{block[row, column]} in dimension {column:,} (both counted from 0). Remove such rows, or "
                        "compute their vectors again.")
    return rows


def _without_image(images: TableImages) -> tuple[Skipped, ...]:
    """List the image files that the table names and that cannot be shown."""
    inside: dict[str, bool] = {}
    root = str(images.root)  # joining texts is several times faster than joining paths

    @cache  # many rows can share an image
    def is_shown(file: str) -> bool:
        # A regular file in a folder inside is inside, so that only folders and links are followed to where they lead.
        folder = os.path.dirname(file)
        if folder not in inside:
            inside[folder] = images.has_folder(folder)
        try:
            mode = os.lstat(os.path.join(root, file)).st_mode if inside[folder] else 0
        except (OSError, ValueError):
            return False
        return stat.S_ISREG(mode) or (stat.S_ISLNK(mode) and images.find(file) is not None)

    return tuple(Skipped(file, "not found in the table's folder; the row is shown as text")
                 for file in images.files or () if file and not is_shown(file))
