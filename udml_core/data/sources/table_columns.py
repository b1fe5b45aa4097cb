"""The columns of a table: which of them are labels, names, images and the division into halves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import numpy as np

from udml_core.base.arrays import Booleans, Integers
from udml_core.base.errors import UserError, quoted
from udml_core.base.files import version_of
from udml_core.base.paths import may_read
from udml_core.data.sources.listing import ENDINGS, is_text
from udml_core.data.sources.table_files import HALVES, ColumnFile, by_value, numbered, test_words, value_text
from udml_core.data.sources.vector_files import ChoiceError, VectorFile, open_vectors, reading

USUAL_NAMES: dict[str, tuple[str, ...]] = {
    "label": ("label", "labels", "class", "classes", "class_name", "target", "targets", "category", "y"),
    "split": ("split", "subset", "partition", "is_test", "test"),
    "name": ("name", "names", "image", "file_name", "filename", "path", "id", "ids", "title"),
    "image": ("image_path", "image", "file_name", "filename", "file", "path"),
}
"""Names of columns that are recognized without a choice, most usual first, in lower case."""


@dataclass(frozen=True)
class Choices:
    """The columns that a user chose, by their names.

    None stands for the usual name, and an empty text for no column.

    Attributes:
        vectors: Array or column with the vectors.
        label: Class of each row.
        split: Half of each row: train or test.
        name: Unique name of each row.
        image: Path of each row's image, relative to the table's folder.
        text: Text that a row without an image is shown by.
    """

    vectors: str | None = None
    label: str | None = None
    split: str | None = None
    name: str | None = None
    image: str | None = None
    text: str | None = None

    @classmethod
    def parse(cls, query: str) -> Choices:
        """Read choices written as ``label=species&name=id``.

        Raises:
            UserError: A choice is unknown or named twice.
        """
        known = [field.name for field in fields(cls)]
        pairs = parse_qsl(query, keep_blank_values=True)
        names = [name for name, _ in pairs]
        if (query and not pairs) or not set(names) <= set(known) or len(set(names)) < len(names):
            raise UserError(f"After '#' a table's path has {', '.join(f'{name}=COLUMN' for name in known)}, each at "
                            f"most once and joined by '&'; got {quoted(query)}.")
        return cls(**dict(pairs))

    def __str__(self) -> str:
        """Return the text that `parse` reads."""
        return urlencode({field.name: value for field in fields(self)
                          if (value := getattr(self, field.name)) is not None})


@dataclass(frozen=True)
class OpenTable:
    """A file of vectors with its own columns and the columns of the metadata file beside it.

    Attributes:
        path: The file of vectors.
        vectors: The vectors.
        columns: Reader of each column by its name.
        beside: The metadata file; None if there is none.
    """

    path: Path
    vectors: VectorFile
    columns: Mapping[str, Callable[[], list[Any]]]
    beside: ColumnFile | None = None

    def title(self, column: str) -> str:
        """Return a column's name and file, as messages name it."""
        beside = self._beside(column)
        return f"The column {quoted(column)} of {self.path if beside is None else beside.path}"

    def place(self, column: str, row: int) -> str:
        """Return where a column has the value of a row, as messages name it."""
        beside = self._beside(column)
        return numbered(row) if beside is None else beside.place(row)

    def _beside(self, column: str) -> ColumnFile | None:
        return self.beside if self.beside is not None and column in self.beside.names else None

    def find(self, role: str, choices: Choices) -> str | None:
        """Return the column of a role: the chosen column, or the one with the most usual name.

        Raises:
            UserError: The table lacks the chosen column.
        """
        chosen = getattr(choices, role)
        if chosen is not None:
            if chosen and chosen not in self.columns:
                raise UserError(f"{self.path} has no column {quoted(chosen)} for '{role}'. Choose one of "
                                f"{', '.join(map(quoted, list(self.columns)[:20])) or 'none: it has no columns'}.")
            return chosen or None
        by_name = {name.lower(): name for name in self.columns}
        matches = [by_name[usual] for usual in USUAL_NAMES.get(role, ()) if usual in by_name]
        if role == "image":
            matches = [name for name in matches if are_image_files(self.columns[name]())]
        return matches[0] if matches else None

    def values(self, column: str) -> list[Any]:
        """Return the values of a column, one for each row.

        Raises:
            UserError: There are not as many values as vectors.
        """
        values = self.columns[column]()
        if len(values) != self.vectors.count:
            raise UserError(f"The column {quoted(column)} must have one value for each of the {self.vectors.count:,} "
                            f"vectors of {self.path}, got {len(values):,}.")
        return values

    def texts(self, column: str) -> list[str]:
        """Return the values of a column as text; missing values are empty."""
        return [_as_text(value) for value in self.values(column)]


def metadata_path(path: Path) -> Path | None:
    """Return the metadata file beside a file of vectors: the same name with .csv, or else with .parquet."""
    beside = (path.with_suffix(ending) for ending in (".csv", ".parquet"))
    return next((other for other in beside if other != path and other.is_file() and may_read(other)), None)


def open_table(path: Path, choices: Choices) -> OpenTable:
    """Open a file of vectors and the metadata file beside it.

    Raises:
        UserError: A file cannot be read, or the metadata have another number of rows.
    """
    vectors = open_vectors(path, choices.vectors)

    def reader(name: str) -> Callable[[], list[Any]]:
        def read() -> list[Any]:
            with reading(path):
                return vectors.read(name)

        return read

    columns = {name: reader(name) for name in vectors.columns}
    metadata = metadata_path(path)
    if metadata is None:
        return OpenTable(path, vectors, columns)
    with reading(metadata):
        beside = _parsed(metadata, version_of(metadata))
    if beside.count != vectors.count:
        raise UserError(f"{metadata.name} lies beside {path} and must describe its {vectors.count:,} rows, got "
                        f"{beside.count:,} rows. Make them equal, or rename {metadata.name}.")
    columns |= {name: partial(beside.read, name) for name in beside.names}
    return OpenTable(path, vectors, columns, beside)


@lru_cache(maxsize=1)
def _parsed(path: Path, _version: tuple[int, int, int]) -> ColumnFile:
    """Return the columns of a metadata file, parsed once for each version: pages open a table again and again."""
    return ColumnFile(path)


def are_image_files(values: Sequence[Any]) -> bool:
    """Return whether at least half of the values are names of image files."""
    texts = [value for value in values if isinstance(value, str)]
    return 2 * sum(Path(text).suffix.lower() in ENDINGS for text in texts) >= max(1, len(values))


def _as_text(value: Any) -> str:
    """Return a value as Unicode text."""
    text = value_text(value)
    return text if is_text(text) else text.encode(errors="replace").decode()


def read_labels(table: OpenTable, column: str) -> tuple[Integers, tuple[str, ...]]:
    """Return the class (n,) of each row, and the names of the classes; numbers are sorted by value.

    Raises:
        UserError: A row has no class.
    """
    texts = [" ".join(text.split()) for text in table.texts(column)]
    if "" in texts:
        raise ChoiceError(f"{table.title(column)} must name the class of every row; "
                          f"{table.place(column, texts.index(''))} has none.",
                          "Fill it in, or add `#label=` to the path to use no classes.",
                          "Fill it in, or rename the column to use no classes.")
    names = sorted(set(texts), key=by_value)
    number_of = {name: number for number, name in enumerate(names)}
    return np.array([number_of[text] for text in texts], dtype=np.int64), tuple(names)


def read_names(table: OpenTable, column: str) -> tuple[str, ...]:
    """Return the name of each row.

    Raises:
        UserError: Two rows have the same name.
    """
    names = tuple(text or f"row {row}" for row, text in enumerate(table.texts(column)))
    if len(set(names)) < len(names):
        first: dict[str, int] = {}
        row, name = next((row, name) for row, name in enumerate(names) if first.setdefault(name, row) != row)
        raise ChoiceError(f"{table.title(column)} must have a different name for each row; "
                          f"{table.place(column, first[name])} and {table.place(column, row)} both have "
                          f"{quoted(name)}.",
                          "Choose another column with `#name=COLUMN` after the path, or `#name=` to number the rows.",
                          "Change the names, or rename the column to number the rows.")
    return names


def read_halves(table: OpenTable, column: str) -> Booleans:
    """Return a mask (n,) of the test half.

    Raises:
        UserError: A value is neither train nor test, or a half is empty.
    """
    values = [text.strip().lower() for text in table.texts(column)]
    flags = {"true": True, "1": True, "false": False, "0": False} if "test" in column.lower() else {}
    unknown = next((row for row, value in enumerate(values) if value not in HALVES and value not in flags), None)
    if unknown is not None:
        raise ChoiceError(f"{table.title(column)} must say train or test for every row; "
                          f"{table.place(column, unknown)} has {quoted(values[unknown])}.",
                          "Choose another column with `#split=COLUMN` after the path, or `#split=` for none.",
                          "Correct the values, or rename the column to use no halves.")
    tests = test_words(value for value in values if value in HALVES)
    is_test = np.array([flags.get(value, value in tests) for value in values])
    if is_test.all() or not is_test.any():
        raise ChoiceError(f"{table.title(column)} must have rows of both halves, train and test; all rows are "
                          f"{'test' if is_test.all() else 'train'}.", "Add `#split=` to the path to ignore it.",
                          "Rename the column to use no halves.")
    return is_test
