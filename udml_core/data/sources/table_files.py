"""Tables beside images or vectors: CSV and Parquet files as columns of Python values."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from datetime import date, time
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from udml_core.base import bounded
from udml_core.base.errors import UserError, quoted
from udml_core.base.files import check_regular, read_regular, version_of
from udml_core.data.sources.listing import is_text

LONGEST = 2**30
"""Largest length of a CSV file, and of a column, in bytes."""
LONGEST_TEXT = 32_767
"""Most letters of a text in a column, as in the usual spreadsheets."""
LONGEST_LINE = 2**20
"""Largest length of the line with the names of the columns, in bytes; it is read whenever folders are listed."""
MOST_COLUMNS = 20_000
SEPARATORS = ",;\t"
HALVES = {"train": False, "training": False, "val": False, "valid": False, "validation": False, "dev": False,
          "test": True, "testing": True, "query": True, "gallery": True}
"""Whether the rows of a split are in the test half, by the usual names of splits; see `test_words`."""


def test_words(words: Iterable[str]) -> set[str]:
    """Return which words of a division name its test half: without a test half, a validation half beside a training.

    Args:
        words: Words in `HALVES`, such as the names of all splits.
    """
    known = set(words)
    validation = {word for word in known if not word.startswith("train")}
    return {word for word in known if HALVES[word]} or (validation if validation != known else set())


def column_names(path: Path) -> list[str]:
    """Return the names of the columns of a CSV or Parquet file.

    Raises:
        UserError: The file cannot be read, or two columns have the same name.
    """
    try:
        check_regular(path)
        if path.suffix == ".parquet":
            return list(parquet_columns(path))
        with path.open("rb") as file:
            line = file.readline(LONGEST_LINE + 1)
        if len(line) > LONGEST_LINE:
            raise ValueError(f"its first line is longer than {LONGEST_LINE:,} bytes")
        first = io.StringIO(line.decode("utf-8-sig"), newline="").readline()
        names = _csv_names(first)
    except UserError:
        raise
    except Exception as error:  # a damaged file can raise any exception
        raise _unreadable(path, error) from error
    check_columns(path, names)
    return names


def parquet_columns(path: Path) -> dict[str, str]:
    """Return what each column of a Parquet file holds: `text`, `number`, `nested`, or `other`.

    Raises:
        UserError: The file has too many columns, or two of the same name.
    """
    return bounded.call(path.name, _parquet_columns, path)  # columns may share the bytes of a long name


def _parquet_columns(path: Path) -> dict[str, str]:
    from pyarrow import parquet, types

    schema = parquet.read_schema(path)
    check_columns(path, schema.names)

    def content(kind: Any) -> str:
        if types.is_string(kind) or types.is_large_string(kind):
            return "text"
        return "nested" if types.is_nested(kind) else "number" if types.is_floating(kind) else "other"

    return {field.name: content(field.type) for field in schema}


def check_columns(path: Path, names: Sequence[str]) -> None:
    """Check the names of a table's columns.

    Raises:
        UserError: There are too many, they are too long, or two are the same.
    """
    if len(names) > MOST_COLUMNS:
        raise UserError(f"{path} has {len(names):,} columns, and a table can have {MOST_COLUMNS:,}. Remove the columns "
                        "that are not needed.")
    letters = sum(map(len, names))
    if letters > LONGEST_LINE:
        raise UserError(f"{path} has names of columns with {letters:,} letters altogether, and they can have "
                        f"{LONGEST_LINE:,}. Shorten the names.")
    if len(set(names)) < len(names):
        raise UserError(f"{path} must have different names of columns in its first line, but a name occurs twice in "
                        f"{quoted(', '.join(names))}. Rename a column.")


class ColumnFile:
    """The columns of a CSV or Parquet file; a CSV file is parsed once, at the first column that is read.

    Attributes:
        path: The file.
        names: Names of the columns.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names = column_names(path)

    @property
    def count(self) -> int:
        """Number of rows.

        Raises:
            UserError: The file cannot be read.
        """
        return len(self.read(self.names[0])) if self.names else 0

    def read(self, name: str) -> list[Any]:
        """Read the values of a column, in order: text in CSV files, None for an empty cell.

        Raises:
            UserError: The file cannot be read, or has no such column.
        """
        if name not in self.names:
            raise UserError(f"The table {self.path} has no column '{name}'. Add the column.")
        if self.path.suffix != ".parquet":
            column = self.names.index(name)
            return [row[column].strip() or None for row, _ in self._rows]
        try:
            values = parquet_values(self.path, name)
        except UserError:
            raise
        except Exception as error:  # a damaged file can raise any exception
            raise _unreadable(self.path, error) from error
        return values

    def place(self, row: int) -> str:
        """Return where a row is, as messages name it: its line in a CSV file, its number in a Parquet file."""
        return numbered(row) if self.path.suffix == ".parquet" else f"line {self._rows[row][1]:,}"

    @cached_property
    def _rows(self) -> list[tuple[list[str], int]]:
        """The cells of each row of a CSV file, and the line where the row begins."""
        rows = []
        try:
            text = read_regular(self.path, LONGEST).decode("utf-8-sig")
            lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator(text))
            width, line = len(next(lines)), lines.line_num + 1
            for row in lines:
                # Spreadsheets write rows without values; in a single column a row without a value is a missing value.
                if row and (width == 1 or any(cell.strip() for cell in row)):
                    rows.append((row, line))
                line = lines.line_num + 1
        except Exception as error:  # a damaged file can raise any exception
            raise _unreadable(self.path, error) from error
        wrong = next(((row, line) for row, line in rows if len(row) != width), None)
        if wrong is not None:
            raise UserError(f"{self.path} must have {width} values in each row, as in its first line, got "
                            f"{len(wrong[0])} in line {wrong[1]:,}. Correct this line.")
        return rows


def parquet_values(path: Path, name: str) -> list[Any]:
    """Return the values of a column of a Parquet file; equal texts are one object.

    A text that is stored once can be named by millions of rows. So texts stay a dictionary, and are measured before
    anything is decoded.

    Raises:
        UserError: The column is too long, or has a text that is.
    """
    from pyarrow import parquet, types

    kind = parquet.read_schema(path).field(name).type
    is_text = types.is_string(kind) or types.is_large_string(kind)
    with parquet.ParquetFile(path, read_dictionary=[name] if is_text else None) as file:
        stored = [group.column(column) for group in map(file.metadata.row_group, range(file.metadata.num_row_groups))
                  for column in range(group.num_columns) if group.column(column).path_in_schema == name]
        check_column(path, name, sum(chunk.total_uncompressed_size for chunk in stored), 0)
        values: list[Any] = []
        size = 0
        for batch in file.iter_batches(65_536, columns=[name]):
            decoded = _shared_values(batch.column(0))
            lengths = [len(value) for value in decoded if isinstance(value, str)]
            size += sum(lengths)
            check_column(path, name, size, max(lengths, default=0))
            values += decoded
    return values


def check_column(path: Path, name: str, size: int, longest: int) -> None:
    """Check the size of a column of a table, in bytes, and its longest text.

    Raises:
        UserError: One is too large.
    """
    if size > LONGEST or longest > LONGEST_TEXT:
        found = (f"a text of {longest:,} letters; at most {LONGEST_TEXT:,}" if longest > LONGEST_TEXT else
                 f"{size:,} bytes; at most {LONGEST:,}")
        raise UserError(f"The column {quoted(name)} of {path} has {found} are read. Shorten its texts, or remove the "
                        "column.")


def _shared_values(column: Any) -> list[Any]:
    """Return a column as Python values; a text of a dictionary is one object in all rows."""
    from pyarrow import types

    if not types.is_dictionary(column.type):
        return [plain_value(value) for value in column.to_pylist()]
    words = [plain_value(value) for value in column.dictionary.to_pylist()]
    return [None if index is None else words[index] for index in column.indices.to_pylist()]


def numbered(row: int) -> str:
    """Return the number of a row as messages name it."""
    return f"row {row:,} (counted from 0)"


def plain_value(value: Any) -> Any:
    """Return a value of a Parquet column; a date or a time becomes text in ISO 8601."""
    return value.isoformat() if isinstance(value, date | time) else value  # a timestamp is a date


def value_text(value: Any) -> str:
    """Return a value as text: 3 for 3.0; empty for a missing value, which can also be an undefined number."""
    if value is None or value != value:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def by_value(name: str) -> tuple[bool, float, str]:
    """Return a key that sorts whole numbers by value, before other names."""
    is_number = name.removeprefix("-").isdecimal() and len(name) < 16
    return not is_number, float(name) if is_number else 0.0, name


def _csv_names(header: str) -> list[str]:
    return [name.strip() for name in next(csv.reader([header], delimiter=separator(header)), [])]


def names_only_paths(path: Path, usual: tuple[str, ...]) -> bool:
    """Return whether a Parquet file has a column of paths, by some names, and no numbers that could be vectors."""
    try:
        return _names_only_paths(path, version_of(path), usual)
    except OSError:
        return False


@lru_cache(maxsize=256)
def _names_only_paths(path: Path, _version: tuple[int, int, int], usual: tuple[str, ...]) -> bool:
    import pyarrow as pa

    try:
        check_regular(path)
        columns = parquet_columns(path)
    except (OSError, ValueError, UserError, pa.ArrowException):  # opening it says what is wrong
        return False
    column = find_column(columns, usual)
    return column is not None and columns[column] == "text" and not {"number", "nested"} & set(columns.values())


def find_column(names: Iterable[str], wanted: Iterable[str]) -> str | None:
    """Return the column with the first of some wanted names, in lower or upper case; None if there is none."""
    by_name: dict[str, str] = {}
    for name in names:
        by_name.setdefault(name.strip().lower(), name)
    return next((by_name[name] for name in wanted if name in by_name), None)


def separator(text: str) -> str:
    """Return the separator that is most frequent in a first line; spreadsheets write semicolons in many countries."""
    return max(SEPARATORS, key=text.partition("\n")[0].count)


def foreign_path(path: Path) -> UserError | None:
    """Return the error for a file that its reader cannot open because of its path; None for any other file."""
    if is_text(str(path)) or path.suffix.lower() not in (".parquet", ".safetensors"):
        return None
    return UserError(f"{path} could not be read, because its path is not UTF-8 text. Rename the file or its folder.")


def _unreadable(path: Path, error: Exception) -> UserError:
    if (foreign := foreign_path(path)) is not None:
        return foreign
    reason = str(error)
    if isinstance(error, UnicodeDecodeError):
        line = error.object[:error.start].count(b"\n") + 1
        reason = f"line {line:,} is not UTF-8 text, because it has the byte 0x{error.object[error.start]:02X}"
    return UserError(f"The table {path} could not be read: {reason}. Save it again as UTF-8 text with commas, or as "
                     "Parquet.")
