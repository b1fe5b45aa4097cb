"""Data sets whose images are in the rows of files: Parquet, Arrow, WebDataset shards and tables of LanceDB.

The images are decoded once, so that damaged images are found before training, and later read where the file holds them.
Only images that a file compresses, as Parquet does, are copied into the cache.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from filelock import FileLock

from udml_core.base import bounded
from udml_core.base.arrays import Integers
from udml_core.base.errors import UserError
from udml_core.base.files import parse_json, read_json, read_regular, replace_text
from udml_core.base.paths import cache_folder, may_read
from udml_core.data.dataset import DETAIL, Dataset, EncodedImages, Report, Skipped
from udml_core.data.sources.archive import Budget
from udml_core.data.sources.json_tables import parquet_patterns
from udml_core.data.sources.listed import SEVERAL_CLASSES, Listing, assemble
from udml_core.data.sources.listing import MOST_BESIDE, only_subfolder
from udml_core.data.sources.opened import find_file, not_opened, opened_folders
from udml_core.data.sources.row_file import ROWS, RowFile, StoredImage
from udml_core.data.sources.row_formats import (
    DamagedError,
    ending_of,
    first_holds_images,
    holds_images,
    open_rows,
    reading,
)
from udml_core.data.sources.row_writer import RowWriter
from udml_core.data.sources.rows import Row, listing_of, rows_of, with_classes
from udml_core.data.sources.scanning import Scan
from udml_core.data.sources.table_files import HALVES
from udml_core.data.sources.table_folder import LABEL_COLUMNS, TableFolder

MOST_FOUND = 1000
"""Paths in rows that are looked for before the images are read."""
SUBFOLDERS = ("data", *HALVES)
"""Subfolders that can have the files."""
STATE, CACHED = "state.json", "cache-"
"""The list of the files that `datasets` saved in a folder, and how the names of its cached results begin."""
LONGEST_STATE = 2**20
"""Largest length of that list in bytes, because the server parses it itself."""


@dataclass(frozen=True)
class RowImages(EncodedImages):
    """Images in parts of files.

    Attributes:
        files: The files.
        parts: File, offset and length of each image (n, 3); the file `COPY` is the last, and the length `WHOLE` stands
            for the whole file.
    """

    files: tuple[Path, ...]
    parts: Integers

    def __len__(self) -> int:
        return len(self.parts)

    def source(self, index: int) -> BinaryIO:
        number, offset, length = self.parts[index].tolist()
        with self.files[number].open("rb") as file:
            file.seek(offset)
            return io.BytesIO(file.read(length))

    def place(self, index: int) -> str:
        return f"{index:,} in {self.files[self.parts[index, 0]]}"


def files_of_rows(path: Path) -> list[Path]:
    """Return the files whose rows hold the images of a data set: the path itself, or files below a folder.

    The Parquet files of Hugging Face have a folder for each half below that of the only configuration.
    """
    if path.suffix == ".lance" or path.is_file():
        return [path] if holds_images(path) else []
    if not os.path.isdir(path):
        return []
    folders = [path, *(path / name for name in SUBFOLDERS)]
    found = (_found(folders) or _described_files(path)
             or _found([only / half for only in [only_subfolder(path)] if only for half in HALVES]))
    return [file for file in found if ending_of(file.name) == ending_of(found[0].name) and may_read(file)]


def _found(folders: Iterable[Path]) -> list[Path]:
    return [file for folder in folders if may_read(folder) for file in _files_in(folder)]


def _described_files(path: Path) -> list[Path]:
    """Return the Parquet files that a folder's Croissant description names if the first of them holds images."""
    files = sorted({file for pattern in parquet_patterns(path) for file in path.glob(pattern)})
    return files if first_holds_images(files) else []


def _files_in(folder: Path) -> list[Path]:
    """Return the sorted files of one format in a folder if the first of them holds images."""
    try:
        with os.scandir(folder) as entries:
            ending = next((suffix for entry in islice(entries, MOST_BESIDE)
                           if (suffix := ending_of(entry.name)) and entry.name[0] != "."), None)
        files = [] if ending is None else sorted(folder.glob(f"*{ending}"))
    except OSError:
        return []
    if ending == ".arrow":
        files = _without_cache(folder, files)
    return files if first_holds_images(files) else []


def _without_cache(folder: Path, files: list[Path]) -> list[Path]:
    """Return the Arrow files of a folder that `datasets` saved; it keeps results of its own calls beside them."""
    try:
        saved = {entry["filename"] for entry in parse_json(read_regular(folder / STATE, LONGEST_STATE))["_data_files"]}
    except (OSError, ValueError, TypeError, KeyError):
        saved = set()
    return [file for file in files if file.name in saved] or [file for file in files
                                                             if not file.name.startswith(CACHED)]


def half_of(file: str) -> str:
    """Return the word for a half in the path of a file, such as train-00000-of-00002.parquet; empty if none."""
    return next((word for word in re.split(r"[/\\._-]", file.lower()) if word in HALVES), "")


def _opened() -> list[str]:
    """Return the folders that the user opened, in which rows may name images."""
    return sorted(map(str, opened_folders()))


class ImageRows(TableFolder):
    """Images in the rows of a file, or of all files of a folder."""

    expected = ("Parquet or Arrow files as `datasets` writes them, WebDataset shards (.tar), or a table of LanceDB, "
                "with images in their rows")
    usual_labels = (*LABEL_COLUMNS, "labels", "fine_label", "target", "category", "cls")

    def __init__(self, path: Path, name: str | None = None, title: str | None = None, label: str | None = None) -> None:
        files = files_of_rows(path.expanduser().resolve())
        is_folder = path.is_dir() and path.suffix != ".lance"
        super().__init__(path if is_folder else path.parent, name or str(path.expanduser().resolve()),
                         title or path.name, label)
        self._origin = path.expanduser().resolve()
        self.tables = [file.relative_to(self.path).as_posix() for file in files]
        self.summary = f"Images in {self._origin}"

    @property
    def origin(self) -> Path:
        return self._origin

    def _absent(self) -> str | None:
        if len(self.tables) > 1 and self.tables[0].endswith(".lance"):
            return (f"{self.path} has {len(self.tables)} tables: {', '.join(self.tables[:20])}. Name one of them, such "
                    f"as {self.path / self.tables[0]}.")
        return super()._absent()

    def _watched(self) -> Iterable[str]:
        for table in self.tables:
            yield table
            if table.endswith(".lance"):  # each change of a table writes a file
                yield from (f"{table}/_versions/{name}" for name in sorted(os.listdir(self.path / table / "_versions")))

    @property
    def columns(self) -> list[str]:
        return list(self._table["values"])

    def _typed_label(self) -> str | None:
        typed = [name for name in self._table["typed"] if name != self.split_column]
        return typed[0] if len(typed) == 1 else None

    @cached_property
    def _table(self) -> dict[str, Any]:
        """The number of rows of each file, the values and names of columns, and the damaged files with the reasons.

        What was read before is used if nothing changed.

        Reading them again would take as long as reading the files: a TAR archive has no list of its members.
        """
        kept = self._kept()
        return dict(self._bounded(self._read_table) if kept is None else kept["table"])

    def _read_table(self, take: Callable[[str, RowFile], None] | None = None) -> dict[str, Any]:
        """Read the files; a damaged one of several is left out.

        Args:
            take: Called with each file and its reader.
        """
        counts: list[int] = []
        values: dict[str, list[Any]] = {}
        flaws: list[tuple[str, str]] = []
        images: list[str] = []
        typed: list[str] = []
        for table in self.tables:
            try:
                with reading(self.path / table):
                    reader = open_rows(self.path / table)
                    part = {name: reader.read(name) if name in reader.names else [None] * reader.count
                            for name in values or reader.names}
                    count, flaw = reader.count, reader.flaw
                    images, typed = images or reader.image_columns, typed or reader.class_columns
                if take is not None:
                    take(table, reader)
            except DamagedError as error:
                part, count, flaw = {}, 0, error.reason
                if not flaw or len(self.tables) == 1:
                    raise
            for name, column in part.items():
                values.setdefault(name, []).extend(column)
            counts.append(count)
            flaws += [(table, flaw)] if flaw else []
        return {"counts": counts, "values": values, "flaws": flaws, "images": images, "typed": typed}

    def _bounded(self, function: Callable[..., Any], report: Report | None = None) -> Any:
        """Call a method that reads the files, by a bounded call unless it takes seconds to import their reader.

        Tables of LanceDB take so long, and no one can upload them.
        """
        if self.tables[0].endswith(".lance"):
            return function() if report is None else function(report=report)
        return bounded.call(self.title, function, extra=self._size(), report=report)

    def too_few(self, count: int, skipped: Sequence[Skipped]) -> UserError:
        return self._bounded(self._path_problem) or super().too_few(count, skipped)

    def _path_problem(self) -> UserError | None:
        """Return the error if the rows of the first file only name images, and none of these may be read."""
        opened = opened_folders()
        with reading(self.path / self.tables[0]):
            paths = open_rows(self.path / self.tables[0]).paths_alone()
        if not paths or any(find_file(path, self.path, opened) for path in paths[:MOST_FOUND]):
            return None
        return not_opened(self.path / self.tables[0], self.path, paths[0], (
            "write the images into the file: `dataset.save_to_disk(FOLDER)` does, and FOLDER opens here."))

    def describe(self) -> str:
        """Describe the images, and say what of the files is not used.

        Raises:
            UserError: No image can be read; see `_path_problem`.
        """
        if problem := self._bounded(self._path_problem):
            raise problem
        several = "" if self._several_classes is None else f" {SEVERAL_CLASSES}"
        used, *unused = self._table["images"] or [""]
        beside = f" The images are in the column {used}; not used: {', '.join(unused)}." if unused else ""
        damaged = "".join(f" {table} {reason}." for table, reason in self._table["flaws"])
        return f"{super().describe()}{several}{beside}{damaged}"

    @property
    def _several_classes(self) -> list[list[str] | None] | None:
        """The classes of each image, if some have several; None if the column of labels has one a row."""
        classes = self._table["values"].get(self.label_column or "", [])
        return classes if any(isinstance(several, list) and len(several) > 1 for several in classes) else None

    @cached_property
    def listing(self) -> Listing:
        rows = self._rows()
        left_out: list[Skipped] = []
        if self._several_classes is not None:
            return with_classes(listing_of(rows, False, self.other_columns, left_out), self._several_classes)
        if self.label_column is not None:
            left_out = [Skipped(row.file, f"has no value in the column {self.label_column}", "unused")
                        for row in rows if row.label is None]
            rows = [row for row in rows if row.label is not None]
        return listing_of(rows, self.label_column is not None, self.other_columns, left_out)

    def _rows(self) -> list[Row]:
        """Return the rows; a row's number stands for the name of the image, which only decoding finds."""
        values, counts = self._table["values"], self._table["counts"]
        halves = [half_of(table) for table, count in zip(self.tables, counts, strict=True) for _ in range(count)]
        labels = None if self.label_column is None or self._several_classes else [
            (value or [None])[0] if isinstance(value, list) else value for value in values[self.label_column]]
        return rows_of(list(map(str, range(len(halves)))), labels,
                       values[self.split_column] if self.split_column else halves,
                       [[", ".join(value) if isinstance(value, list) else value for value in values[name]]
                        for name in self.other_columns])

    def load(self, report: Report) -> Dataset:
        import numpy as np

        self.check()
        self._kept_path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self._kept_path.with_suffix(".lock")):  # several processes may open a data set at once
            kept = self._kept() or self._bounded(self._describe, report)
        self._table = kept["table"]
        vars(self).pop("listing", None)  # decoding the images can have found more damage
        report(1.0, "reading the images")
        names, parts = kept["names"], np.array(kept["parts"], np.int64).reshape(-1, 3)
        if len(names) != len(self.listing.files) + len(self.listing.left_out):
            raise UserError(f"{self.origin} changed while it was read. Open it again.")
        named = replace(self.listing, files=[names[int(number)] for number in self.listing.files],
                        left_out=[*(replace(row, file=names[int(row.file)]) for row in self.listing.left_out),
                                  *(Skipped(table, reason) for table, reason in self._table["flaws"])])
        number_of = {name: number for number, name in enumerate(names)}
        files = (*(self.path / file for file in kept["files"]), self._copy_path)
        entries: Scan = dict(zip(names, kept["entries"], strict=True))
        return assemble(self, named, entries, lambda files_kept: RowImages(
            files, parts[[number_of[name] for name in files_kept]]))

    @property
    def _kept_path(self) -> Path:
        return cache_folder() / "rows" / f"{hashlib.sha256(os.fsencode(self.origin)).hexdigest()[:24]}.json"

    @property
    def _copy_path(self) -> Path:
        return self._kept_path.with_suffix(".images")

    def _kept(self) -> dict[str, Any] | None:
        """Return what was read before; None if the files have changed since, or the copy is missing."""
        try:
            kept = read_json(self._kept_path)
            is_same = (kept["signature"] == self.signature() and kept["copied"] == self._copy_path.stat().st_size
                       and kept.get("opened") in (None, _opened()) and kept["table"].keys() >= {"images", "typed"})
            return dict(kept) if is_same else None
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def _block(self, table: str, stored: Iterator[StoredImage]) -> list[StoredImage]:
        """Read the next images of a file."""
        with reading(self.path / table):
            return list(islice(stored, ROWS))

    def _size(self) -> int:
        """Return the bytes of all files."""
        paths = (path for table in self.tables for path in (self.path / table, *(self.path / table).rglob("*")))
        return sum(path.stat().st_size for path in paths if path.is_file())

    def _describe(self, report: Report) -> dict[str, Any]:
        """Decode every image once, copy compressed images, and keep where each is."""
        signature = self.signature()
        part = self._copy_path.with_suffix(".part")
        try:
            with part.open("wb") as copy, ThreadPoolExecutor() as pool:
                writer = RowWriter(self.path, copy, Budget(self.title, self._size()))

                def take(table: str, reader: RowFile) -> None:
                    with writer.all_or_none():
                        stored = reader.images()
                        while block := self._block(table, stored):
                            writer.take(table, block, pool.map)
                            report(self.tables.index(table) / len(self.tables),
                                   f"reading the images{DETAIL}{len(writer.names):,}")

                read = self._read_table(take)
            part.replace(self._copy_path)
            kept = {"names": writer.unique_names(), "files": list(writer.files), "parts": writer.parts,
                    "entries": writer.entries, "copied": self._copy_path.stat().st_size, "signature": signature,
                    "table": read}
            if all(entry["reason"] for entry in writer.entries):
                return kept  # the images may come to be where the rows name them
            if writer.lacks_images:
                kept["opened"] = _opened()
            replace_text(self._kept_path, json.dumps(kept))
        except OSError as error:
            raise UserError(f"The images of {self.origin} could not be read or copied to {cache_folder()}: {error}. "
                            "Free some space, or set UDML_CACHE to another folder.") from error
        finally:
            part.unlink(missing_ok=True)
        return kept
