"""A folder of images with a table, as the ImageFolder convention of Hugging Face has it, or with a list in JSON."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path, PurePosixPath

from udml_core.base import bounded
from udml_core.base.errors import UserError, counted, first_of, quoted
from udml_core.base.paths import may_read
from udml_core.data.dataset import Dataset, Report, Skipped
from udml_core.data.sources.json_tables import JSON_TABLES, is_damaged, open_columns
from udml_core.data.sources.listed import Listing, is_readable, load_listing
from udml_core.data.sources.listing import listed
from udml_core.data.sources.opened import allowed_path, not_opened, opened_folders
from udml_core.data.sources.rows import Row, listing_of, plain_path, rows_of
from udml_core.data.sources.table_files import HALVES, find_column, names_only_paths
from udml_core.data.sources.table_folder import TableFolder

CONVENTION = ("metadata.csv", "metadata.parquet", "metadata.jsonl")
FILE_COLUMNS = ("file_name", "filename", "image")
"""Columns of the images' paths; the convention is the first. Names of columns may have capitals."""
PATH_COLUMNS = (*FILE_COLUMNS, "path", "file", "file_path", "filepath", "image_path")
"""Columns of the images' paths in a table that is opened by its own path."""
TABLE_ENDINGS = (".csv", ".tsv", ".jsonl")


def tables_of(path: Path) -> list[str]:
    """Return the tables of a folder, or else of its subfolders train, validation and test."""
    own = [name for name in (*CONVENTION, *JSON_TABLES) if _is_table(path / name)]
    return own[:1] or [f"{half}/{name}" for half in HALVES for name in CONVENTION if _is_table(path / half / name)]


def file_column(names: Sequence[str], usual: Sequence[str] = FILE_COLUMNS) -> str | None:
    """Return the column of the images' paths, which `datasets` lets begin with any word; None if there is none."""
    return find_column(names, usual) or next(
        (name for name in names if name.strip().lower().endswith(f"_{FILE_COLUMNS[0]}")), None)


def is_table_file(path: Path) -> bool:
    """Return whether a path is that of a file that can be a table of images: by its name, or by a Parquet file's head.
    """
    ending = path.suffix.lower()
    return ending in (*TABLE_ENDINGS, ".parquet") and os.path.isfile(path) and may_read(path) and (
        ending != ".parquet" or names_only_paths(path, PATH_COLUMNS))


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
                    f"{first_of(open_columns(table).names)}.")
    for table in (path / name for name in JSON_TABLES):
        if table.is_file() and may_read(table) and is_damaged(table):
            return f"{table.name} is not used, because it could not be read as JSON. Write it again."
    other = next((file for file in sorted(path.glob("*.csv")) if _names_paths(file)), None)
    return "" if other is None else (f"{other.name} is not used. To use it, open it by its path {other}, or name it "
                                     f"{CONVENTION[0]} with a column {FILE_COLUMNS[0]}.")


def _names_paths(path: Path) -> bool:
    """Return whether a table has a column for the paths of images."""
    with suppress(UserError, OSError):
        return may_read(path) and find_column(open_columns(path).names, PATH_COLUMNS) is not None
    return False


class MetadataFolder(TableFolder):
    """Images that a table metadata.csv, .parquet or .jsonl, or a list in JSON, names in its column `file_name`.

    A column of the table has the labels, and the column `split` the official division; the others are columns of the
    data set. If no class is in both halves,
    the division is the zero-shot split. Images without a row are left out. A table that is opened by its own path can
    have any name, and is the list of the images.
    """

    expected = ("metadata.csv, metadata.parquet or metadata.jsonl with the column file_name, the images that it names, "
                "and optionally a column label and a column split with train and test")

    def __init__(self, path: Path, name: str | None = None, title: str | None = None, label: str | None = None) -> None:
        file = path.expanduser()
        self._is_file = is_table_file(file)
        if self._is_file:
            # Paths in the table can lead over a link that the resolved path does not have.
            self._folders = [str(file.parent.absolute()), str(file.resolve().parent)]
            path, name, title = file.resolve().parent, name or str(file.resolve()), title or file.name
        super().__init__(path, name, title, label)
        if not self._is_file:
            self._folders = [str(self.path)]
        self.tables = [file.resolve().name] if self._is_file else tables_of(self.path)
        self.summary = f"Images in {self.origin}"

    @property
    def origin(self) -> Path:
        return self.path / self.tables[0] if self._is_file else self.path

    def _absent(self) -> str | None:
        if self._is_file and file_column(self._all_columns, PATH_COLUMNS) is None:
            return (f"The table {self.origin} has no column of paths of images; its columns: "
                    f"{first_of(self._all_columns)}. Name the column {FILE_COLUMNS[0]}, or open the file of "
                    "the vectors if these are columns of a table of embeddings.")
        return super()._absent()

    def _watched(self) -> Iterable[str]:
        if not self._is_file:
            return *self.tables, *(file for file, _ in listed(self.path))
        with suppress(UserError):
            files = *self.listing.files, *(skipped.file for skipped in self.listing.left_out)
            return *self.tables, *(os.path.join(self.listing.root or "", file) for file in files)
        return self.tables

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
        return file_column(self._all_columns, PATH_COLUMNS if self._is_file else FILE_COLUMNS) or FILE_COLUMNS[0]

    @contextmanager
    def _advising(self) -> Iterator[None]:
        """Add to the message of an unreadable table how to open the folder without it."""
        try:
            yield
        except UserError as error:
            if self._is_file:
                raise
            raise UserError(f"{error} To open the images without the table, add #level=1 to the name of the folder if "
                            "its subfolders are the classes, or else #level=0.") from error

    @cached_property
    def listing(self) -> Listing:
        """The rows of the tables, read at first use.

        Raises:
            UserError: A table is damaged, or has no such column of labels.
        """
        rows = bounded.call(self.tables[0], self._rows)
        root, rows = (None, rows) if self.tables[0] in JSON_TABLES else _below_one_folder(self.path, rows)
        known = {row.file for row in rows}
        is_list = self._is_file or root is not None
        images = known if is_list else {file for file, _ in listed(self.path)}
        table = self.tables[0]
        left_out = [Skipped(file, f"has no row in {table}", "unused") for file in sorted(images - known)]
        if table in JSON_TABLES:  # a list of another program can describe more images than were copied
            left_out += [Skipped(row.file, f"is in {table}, but is no image of this folder", "unused") for row in rows
                         if row.file not in images]
            rows = [row for row in rows if row.file in images]
        else:
            missing = {row.file for row in rows if (is_list or row.file not in images)
                       and not is_readable((root or self.path) / row.file)}
            left_out[:0] = [Skipped(row.file, "is missing", "missing") for row in rows if row.file in missing]
            rows = [row for row in rows if row.file not in missing]
        if self.label_column is not None:
            left_out += [Skipped(row.file, self._without_label, "unused") for row in rows if row.label is None]
            rows = [row for row in rows if row.label is not None]
        listing = listing_of(rows, self.label_column is not None, self.other_columns, left_out)
        return replace(listing, root=root)

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
        paths = self._inner_paths(files, folder) if table not in JSON_TABLES else files
        halves = [folder] * len(files) if folder else content[split] if split else [None] * len(files)
        return rows_of(paths, content[label] if label else None, halves, others)

    def _inner_paths(self, files: Sequence[str], folder: str) -> list[str]:
        """Return the paths of a table's images relative to the data set's folder; of images elsewhere, whole paths.

        Raises:
            UserError: A path leads out of the folder and of the folders that the user opened.
        """
        paths = [plain_path(os.path.join(folder, self._inside(file))) for file in files]
        if not any(map(_leaves, paths)):
            return self._from_folder(paths) if self._is_file else paths
        opened = opened_folders()
        allowed = [allowed_path(path, self.path, opened) if _leaves(path) else path for path in paths]
        if None not in allowed:
            return [str(path) for path in allowed]
        common = os.path.commonpath([os.path.dirname(os.path.abspath(self.path / path)) for path in paths])
        cure = (f"move {self.tables[0]} to {common}, and open it there." if len(Path(common).parts) > 1 else
                f"copy the images below {self.path}, and correct the paths.")
        raise not_opened(self.path / self.tables[0], self.path, paths[allowed.index(None)], cure)

    def _inside(self, file: str) -> str:
        """Return an absolute path below the folder as a relative one, and any other path as it is."""
        return next((file[len(folder) + 1:] for folder in self._folders if file.startswith(f"{folder}{os.sep}")), file)

    def _from_folder(self, paths: list[str]) -> list[str]:
        """Return paths that begin with the folder's own name, such as pics/0.png in pics/paths.csv, without it."""
        parts, own = PurePosixPath(paths[0]).parts if paths else (), self.path.parts
        if not parts or (self.path / paths[0]).exists():
            return paths
        start = next(("/".join(parts[:count]) + "/" for count in range(1, len(parts))
                      if parts[:count] == own[-count:] and (self.path / Path(*parts[count:])).exists()), "")
        return [path.removeprefix(start) for path in paths]


def _leaves(path: str) -> bool:
    """Return whether a path can lead out of the folder of its table."""
    return os.path.isabs(path) or ".." in PurePosixPath(path).parts


def _below_one_folder(folder: Path, rows: list[Row]) -> tuple[Path | None, list[Row]]:
    """Return the folder that has all images, and rows with paths below it.

    Args:
        folder: The data set's folder.
        rows: The rows, with whole paths of images elsewhere.

    Returns:
        The folder, None for the data set's own, and the rows.
    """
    if not any(os.path.isabs(row.file) for row in rows):
        return None, rows
    paths = [folder / row.file for row in rows]
    root = Path(os.path.commonpath([path.parent for path in paths]))
    return root, [row._replace(file=path.relative_to(root).as_posix()) for path, row in zip(paths, rows, strict=True)]
