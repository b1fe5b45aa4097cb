"""Tables beside images or vectors: CSV and Parquet files as columns of Python values."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from udml_core.errors import UserError, quoted
from udml_core.files import check_regular, read_regular

LONGEST = 2**30
"""Largest length of a CSV file in bytes."""
SEPARATORS = ",;\t"
HALVES = {"train": False, "training": False, "val": False, "valid": False, "validation": False, "dev": False,
          "test": True, "testing": True, "query": True, "gallery": True}
"""Whether the rows of a split are in the test half, by the usual names of splits."""


def column_names(path: Path) -> list[str]:
    """Return the names of the columns of a CSV or Parquet file.

    Raises:
        UserError: The file cannot be read, or two columns have the same name.
    """
    try:
        check_regular(path)
        if path.suffix == ".parquet":
            from pyarrow import parquet

            names = [str(name) for name in parquet.read_schema(path).names]
        else:
            with path.open(encoding="utf-8-sig", newline="") as file:
                names = _csv_names(file.readline(LONGEST))
    except Exception as error:  # a damaged file can raise any exception
        raise _unreadable(path, error) from error
    if len(set(names)) < len(names):
        raise UserError(f"{path} must have different names of columns in its first line, but a name occurs twice in "
                        f"{quoted(', '.join(names))}. Rename a column.")
    return names


def read_columns(path: Path, names: Sequence[str]) -> dict[str, list[Any]]:
    """Read some columns of a CSV or Parquet file.

    Returns:
        The values of each column, in order: text in CSV files, None for an empty cell.

    Raises:
        UserError: The file cannot be read, or has no such column.
    """
    absent = next((name for name in names if name not in column_names(path)), None)
    if absent is not None:
        raise UserError(f"The table {path} has no column '{absent}'. Add the column.")
    try:
        if path.suffix == ".parquet":
            from pyarrow import parquet

            table = parquet.read_table(path, columns=list(names), memory_map=False, partitioning=None)
            return {name: table.column(name).to_pylist() for name in names}
        text = read_regular(path, LONGEST).decode("utf-8-sig")
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=_separator(text.partition("\n")[0]))
        header = [name.strip() for name in next(lines)]
        # Spreadsheets write rows without values; in a single column a row without a value is a missing value.
        rows = [row for row in lines if row and (len(header) == 1 or any(cell.strip() for cell in row))]
    except Exception as error:  # a damaged file can raise any exception
        raise _unreadable(path, error) from error
    wrong = next((number for number, row in enumerate(rows, start=2) if len(row) != len(header)), None)
    if wrong is not None:
        raise UserError(f"{path} must have {len(header)} values in each row, as in its first line, got "
                        f"{len(rows[wrong - 2])} in row {wrong}. Correct this row.")
    return {name: [row[header.index(name)].strip() or None for row in rows] for name in names}


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
    return [name.strip() for name in next(csv.reader([header], delimiter=_separator(header)), [])]


def _separator(header: str) -> str:
    """Return the separator that is most frequent in the first line; spreadsheets write semicolons in many countries."""
    return max(SEPARATORS, key=header.count)


def _unreadable(path: Path, error: Exception) -> UserError:
    return UserError(f"The table {path} could not be read: {error}. Save it again as UTF-8 text with commas, or as "
                     "Parquet.")
