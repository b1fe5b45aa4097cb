"""A folder of images with a table, as the ImageFolder convention of Hugging Face has it."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from udml_core.base import bounded
from udml_core.base.errors import UserError, quoted
from udml_core.base.paths import may_read
from udml_core.data.dataset import Dataset, Report, Skipped
from udml_core.data.sources.listed import Listing, load_listing
from udml_core.data.sources.listing import listed
from udml_core.data.sources.located import Located
from udml_core.data.sources.table_files import HALVES, ColumnFile, by_value, column_names, find_column, value_text

TABLES = ("metadata.csv", "metadata.parquet")
FILE_COLUMNS = ("file_name", "filename", "image")
"""Columns of the images' paths; the convention is the first. Names of columns may have capitals."""
LABEL_COLUMNS = ("label", "class", "label_name", "class_name")
"""Columns of labels, the first that exists is the default."""
SPLIT_COLUMNS = ("split",)


def tables_of(path: Path) -> list[str]:
    """Return the tables of a folder, or else of its subfolders train, validation and test."""
    own = [name for name in TABLES if _is_table(path / name)]
    return own[:1] or [f"{half}/{name}" for half in HALVES for name in TABLES if _is_table(path / half / name)]


def _is_table(path: Path) -> bool:
    """Return whether a file is a table of images."""
    try:
        return path.is_file() and may_read(path) and find_column(column_names(path), FILE_COLUMNS) is not None
    except UserError:
        return True  # loading says what is wrong with it
    except OSError:
        return False


def unused_table(path: Path) -> str:
    """Say which table of a folder names no images and is not used; empty if there is none."""
    for name in TABLES:
        table = path / name
        if table.is_file() and may_read(table) and not _is_table(table):
            return (f"{name} is not used, because it has no column {FILE_COLUMNS[0]}; its columns: "
                    f"{', '.join(column_names(table)) or 'none'}.")
    return ""


class _Row(NamedTuple):
    """A row of a table: path, label, half and other values of an image; None where the table has no value."""

    file: str
    label: str | None
    is_test: bool | None
    others: tuple[Any, ...]


class MetadataFolder(Located):
    """Images that a table metadata.csv or metadata.parquet names in its column `file_name`.

    A column of the table has the labels, and the column `split` the official division; the others are columns of the
    data set. If no class is in both halves,
    the division is the zero-shot split. Images without a row are left out.

    Attributes:
        label: Name of the column of the labels; None for the first of `LABEL_COLUMNS` that exists.
    """

    expected = ("metadata.csv or metadata.parquet with the column file_name, the images that it names, and optionally "
                "a column label and a column split with train and test")

    def __init__(self, path: Path, name: str | None = None, title: str | None = None, label: str | None = None) -> None:
        super().__init__(path, name, title)
        self.label = label
        if label is not None:
            self.name += f"#label={label}"
            self.title += f" (label {label})"
        self.tables = tables_of(self.path)

    @property
    def images(self) -> int | None:  # type: ignore[override]
        return self._count(lambda listing: len(listing.files))

    @property
    def classes(self) -> int | None:  # type: ignore[override]
        return self._count(lambda listing: len(listing.class_names)) or None

    def _count(self, count: Any) -> int | None:
        try:
            return None if self.missing() else count(self.listing)
        except UserError:
            return None

    def describe(self) -> str:
        listing = self.listing
        classes = f"in {len(listing.class_names):,} classes" if listing.labels else "without classes"
        columns = f" Other columns: {', '.join(self._other_columns)}." if self._other_columns else ""
        unused = self._split_column and listing.in_test is None and listing.training_classes is None
        split = (f" The column {self._split_column} does not say train or test for every image, so it is not used."
                 if unused else "")
        return f"{len(listing.files):,} images {classes}, from {self.tables[0]}.{columns}{split}"

    def _absent(self) -> str | None:
        return None if self.tables else f"{self.path} has no table of images. Expected: {self.expected}."

    def _watched(self) -> Iterable[str]:
        return *self.tables, *(file for file, _ in listed(self.path))

    def load(self, report: Report) -> Dataset:
        self.check()
        return load_listing(self, self.listing, report, f"reading the images of {self.tables[0]}")

    @cached_property
    def _columns(self) -> list[str]:
        with self._advising():
            return column_names(self.path / self.tables[0])

    @property
    def _file_column(self) -> str:
        return find_column(self._columns, FILE_COLUMNS) or FILE_COLUMNS[0]

    @property
    def _split_column(self) -> str | None:
        return find_column(self._columns, SPLIT_COLUMNS)

    @contextmanager
    def _advising(self) -> Iterator[None]:
        """Add to the message of an unreadable table how to open the folder without it."""
        try:
            yield
        except UserError as error:
            raise UserError(f"{error} To open the images without the table, add #level=1 to the name of the folder if "
                            "its subfolders are the classes, or else #level=0.") from error

    @property
    def label_column(self) -> str | None:
        """The column of the labels; None if there is none."""
        if self.label is None:
            return find_column(self._columns, LABEL_COLUMNS)
        if self.label not in self._columns or self.label == self._file_column:
            usable = [name for name in self._columns if name != self._file_column]
            raise UserError(f"{self.path / self.tables[0]} has no column {quoted(self.label)} for labels. Its columns: "
                            f"{', '.join(usable)}.")
        return self.label

    @property
    def label_columns(self) -> list[str]:
        """The columns that can have the labels."""
        return [name for name in self._columns if name not in (self._file_column, self._split_column)]

    @property
    def _other_columns(self) -> list[str]:
        return [name for name in self.label_columns if name != self.label_column]

    @cached_property
    def listing(self) -> Listing:
        """The rows of the tables, read at first use.

        Raises:
            UserError: A table is damaged, or has no such column of labels.
        """
        rows = bounded.call(self.tables[0], self._rows)
        known = {row.file for row in rows}
        table = self.tables[0]
        left_out = [Skipped(file, f"has no row in {table}") for file, _ in listed(self.path) if file not in known]
        if self.label_column is not None:
            left_out += [Skipped(row.file, f"has no value in the column {self.label_column} of {table}")
                         for row in rows if row.label is None]
            rows = [row for row in rows if row.label is not None]
        return _listing(rows, self.label_column is not None, self._other_columns, left_out)

    def _rows(self) -> list[_Row]:
        return [row for table in self.tables for row in self._read(table)]

    def _read(self, table: str) -> list[_Row]:
        """Read the rows of a table."""
        folder = table.rpartition("/")[0]
        file, label, split = self._file_column, self.label_column, self._split_column
        wanted = [file, *dict.fromkeys(name for name in (label, split) if name)]
        with self._advising():
            source = ColumnFile(self.path / table)
            content = {name: source.read(name) for name in wanted}
            # The tables of two halves need not have the same other columns.
            others = [source.read(name) if name in source.names else [None] * len(content[file])
                      for name in self._other_columns]
        files = content[file]
        absent = next((row for row, path in enumerate(files) if not isinstance(path, str)), None)
        if absent is not None:
            raise UserError(f"{self.path / table} must name an image in the column {file} of each row, got "
                            f"{quoted(files[absent])} in {source.place(absent)}. Fill it in, or remove the row.")
        paths = [_plain(f"{folder}/{path}" if folder else path) for path in files]
        labels = [_label(value) for value in content[label]] if label else [None] * len(files)
        words = [folder] * len(files) if folder else content[split] if split else [None] * len(files)
        halves = [HALVES.get(str(word).lower()) for word in words]
        return [_Row(*row) for row in zip(paths, labels, halves, zip(*others, strict=True) if others else [()] * len(
            paths), strict=True)]


def _plain(file: str) -> str:
    """Return a path with forward slashes and without `./`, as `listed` names the image."""
    path = file.replace("\\", "/")
    return path if ".." in path else posixpath.normpath(path)


def _label(value: Any) -> str | None:
    """Return a label as text; None if there is no value, which Parquet files also write as an undefined number."""
    if value is None or value != value:
        return None
    if isinstance(value, list | dict):
        raise UserError(f"A label must be a text or a number, got {quoted(value)}. An image can have one class only. "
                        "Choose another column with #label=COLUMN after the name.")
    return value_text(value)


def _listing(rows: list[_Row], has_labels: bool, columns: list[str], left_out: list[Skipped]) -> Listing:
    files, labels, halves = [row.file for row in rows], [row.label or "" for row in rows], [row.is_test for row in rows]
    others = {name: [row.others[number] for row in rows] for number, name in enumerate(columns)}
    # The division counts only if it is known for each image, and has both halves.
    in_test = [bool(half) for half in halves] if {True, False} == set(halves) else None
    if not has_labels:
        return Listing(files, in_test=in_test, columns=others, left_out=left_out)
    train, test = ({label for label, half in zip(labels, halves, strict=True) if half is is_test}
                   for is_test in (False, True))
    divided = in_test is not None and not train & test
    names = sorted(train, key=by_value) + sorted(test, key=by_value) if divided else sorted(
        set(labels), key=by_value)
    number_of = {name: number for number, name in enumerate(names)}
    return Listing(files, [number_of[label] for label in labels], names, None if divided else in_test,
                   len(train) if divided else None, columns=others, left_out=left_out)
