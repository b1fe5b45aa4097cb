"""CSV tables for people, whose spreadsheets would run a name such as `=1+1` as a formula."""

from __future__ import annotations

import csv
import re
from collections.abc import Container, Iterable, Sequence
from typing import Any, TextIO

FORMULA = re.compile(r"'*[=+\-@\t\r]")
"""How a text begins that a spreadsheet would compute, or that `guarded` made harmless."""
NUMBER = re.compile(r"[+-][\d.,]+(?: ?%)?")
JOINT = "\u2060"
"""A sign without width, which also keeps an address from becoming a link."""


def guarded(value: Any) -> Any:
    """Return a cell with an apostrophe before a text that a spreadsheet would compute; numbers stay."""
    return f"'{value}" if isinstance(value, str) and FORMULA.match(value) else value


def inert(value: Any) -> Any:
    """Return a cell with a sign without width before a text that a spreadsheet would compute; numbers stay.

    It looks as before, for tables on the screen, which their readers can download.
    """
    is_computed = isinstance(value, str) and FORMULA.match(value) and not NUMBER.fullmatch(value)
    return f"{JOINT}{value}" if is_computed else value


def unguarded(text: str, known: Container[str] = ()) -> str:
    """Return the text from which `guarded` made a cell; a known text, which another program wrote, stays."""
    return text[1:] if text.startswith("'") and FORMULA.match(text) and text not in known else text


def write_rows(file: TextIO, rows: Iterable[Sequence[Any]]) -> None:
    """Write rows of guarded cells to a CSV file."""
    csv.writer(file).writerows([guarded(cell) for cell in row] for row in rows)
