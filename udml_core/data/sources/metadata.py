"""A folder of images with a table, as the ImageFolder convention of Hugging Face has it, or with a list in JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from udml_core.base import bounded
from udml_core.base.errors import UserError, counted, quoted
from udml_core.base.paths import may_read
from udml_core.data.dataset import Dataset, Report, Skipped
from udml_core.data.sources.json_tables import JSON_TABLES, open_columns
from udml_core.data.sources.listed import Listing, load_listing
from udml_core.data.sources.listing import listed
from udml_core.data.sources.rows import Row, listing_of, plain_path, rows_of
from udml_core.data.sources.table_files import HALVES, find_column
from udml_core.data.sources.table_folder import TableFolder

CONVENTION = ("metadata.csv", "metadata.parquet", "metadata.jsonl")
FILE_COLUMNS = ("file_name", "filename", "image")
"""Columns of the images' paths; the convention is the first. Names of columns may have capitals."""


def tables_of(path: Path) -> list[str]:
    """Return the tables of a folder, or else of its subfolders train, validation and test."""
    own = [name for name in (*CONVENTION, *JSON_TABLES) if _is_table(path / name)]
    return own[:1] or [f"{half}/{name}" for half in HALVES for name in CONVENTION if _is_table(path / half / name)]


def file_column(names: Sequence[str]) -> str | None:
    """Return the column of the images' paths, which `datasets` lets begin with any word; None if there is none."""
    return find_column(names, FILE_COLUMNS) or next(
        (name for name in names if name.strip().lower().endswith(f"_{FILE_COLUMNS[0]}")), None)


def _is_table(path: Path) -> bool:
    """Return whether a file is a table of images."""
    try:
        return path.is_file() and may_read(path) and file_column(open_columns(path).names) is not None
    except UserError:
        return True  # loading says what is wrong with it
    except OSError:
        return False


def unused_table(path: Path) -> str:
    """Say which table of a folder names no images and is not used; empty if there is none."""
    for name in CONVENTION:
        table = path / name
        if table.is_file() and may_read(table) and not _is_table(table):
            return (f"{name} is not used, because it has no column {FILE_COLUMNS[0]}; its columns: "
                    f"{', '.join(open_columns(table).names) or 'none'}.")
    return ""


class MetadataFolder(TableFolder):
    """Images that a table metadata.csv, .parquet or .jsonl, or a list in JSON, names in its column `file_name`.

    A column of the table has the labels, and the column `split` the official division; the others are columns of the
    data set. If no class is in both halves,
    the division is the zero-shot split. Images without a row are left out.
    """

    expected = ("metadata.csv, metadata.parquet or metadata.jsonl with the column file_name, the images that it names, "
                "and optionally a column label and a column split with train and test")

    def __init__(self, path: Path, name: str | None = None, title: str | None = None, label: str | None = None) -> None:
        super().__init__(path, name, title, label)
        self.tables = tables_of(self.path)

    def _watched(self) -> Iterable[str]:
        return *self.tables, *(file for file, _ in listed(self.path))

    def load(self, report: Report) -> Dataset:
        self.check()
        return load_listing(self, self.listing, report, f"reading the images of {self.tables[0]}")

    @cached_property
    def _all_columns(self) -> list[str]:
        with self._advising():
            return open_columns(self.path / self.tables[0]).names

    @property
    def columns(self) -> list[str]:
        return [name for name in self._all_columns if name != self._file_column]

    @property
    def _file_column(self) -> str:
        return file_column(self._all_columns) or FILE_COLUMNS[0]

    @contextmanager
    def _advising(self) -> Iterator[None]:
        """Add to the message of an unreadable table how to open the folder without it."""
        try:
            yield
        except UserError as error:
            raise UserError(f"{error} To open the images without the table, add #level=1 to the name of the folder if "
                            "its subfolders are the classes, or else #level=0.") from error

    @cached_property
    def listing(self) -> Listing:
        """The rows of the tables, read at first use.

        Raises:
            UserError: A table is damaged, or has no such column of labels.
        """
        rows = bounded.call(self.tables[0], self._rows)
        known, images = {row.file for row in rows}, {file for file, _ in listed(self.path)}
        table = self.tables[0]
        left_out = [Skipped(file, f"has no row in {table}") for file in sorted(images - known)]
        if table in JSON_TABLES:  # a list of another program can describe more images than were copied
            left_out += [Skipped(row.file, f"is in {table}, but is no image of this folder") for row in rows
                         if row.file not in images]
            rows = [row for row in rows if row.file in images]
        if self.label_column is not None:
            left_out += [Skipped(row.file, self._without_label) for row in rows if row.label is None]
            rows = [row for row in rows if row.label is not None]
        return listing_of(rows, self.label_column is not None, self.other_columns, left_out)

    @property
    def _without_label(self) -> str:
        return f"has no value in the column {self.label_column} of {self.tables[0]}"

    def describe(self) -> str:
        """Describe the images, and say how many are left out because the table gives them no class."""
        count = sum(skipped.reason == self._without_label for skipped in self.listing.left_out)
        return super().describe() + (
            f" Left out: {counted(count, 'image')} without a value in the column {self.label_column}. Add #level=0 to "
            "the name of the folder to list all images, without classes." if count else "")

    def _rows(self) -> list[Row]:
        return [row for table in self.tables for row in self._read(table)]

    def _read(self, table: str) -> list[Row]:
        """Read the rows of a table."""
        folder = table.rpartition("/")[0]
        file, label, split = self._file_column, self.label_column, self.split_column
        wanted = [file, *dict.fromkeys(name for name in (label, split) if name)]
        with self._advising():
            source = open_columns(self.path / table)
            content = {name: source.read(name) for name in wanted}
            # The tables of two halves need not have the same other columns.
            others = [source.read(name) if name in source.names else [None] * len(content[file])
                      for name in self.other_columns]
        files = content[file]
        absent = next((row for row, path in enumerate(files) if not isinstance(path, str)), None)
        if absent is not None:
            raise UserError(f"{self.path / table} must name an image in the column {file} of each row, got "
                            f"{quoted(files[absent])} in {source.place(absent)}. Fill it in, or remove the row.")
        paths = [plain_path(f"{folder}/{path}" if folder else path) for path in files]
        halves = [folder] * len(files) if folder else content[split] if split else [None] * len(files)
        return rows_of(paths, content[label] if label else None, halves, others)
