"""Tables that list the images of an export: the table beside the folders, and lists that an export keeps for itself."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path

from udml_core.base.errors import UserError, quoted
from udml_core.base.files import replace_text
from udml_core.base.spreadsheets import unguarded, write_rows
from udml_core.work.exporting.safe_names import stays_inside
from udml_core.work.exporting.sorting_plan import HOWS, How, Item

METADATA, EARLIER, UNFINISHED = "metadata.csv", "earlier.csv", "unfinished.csv"
"""The table of an export, written files that it does not list, and the list of an interrupted export."""
COLUMNS = ("image", "file", "class", "certainty", "assigned", "how")


def write_list(path: Path, items: Iterable[Item], how: How) -> None:
    """Write a list that `read_table` reads."""
    text = io.StringIO(newline="")
    write_rows(text, [COLUMNS, *((item.image, item.file, item.label, repr(item.certainty), int(item.is_assigned), how)
                                 for item in items)])
    replace_text(path, text.getvalue())


def read_table(path: Path, what: str, file: str, label: str) -> tuple[How | None, tuple[Item, ...]]:
    """Return what an export writes, if its table says so, and the images in the table.

    Args:
        path: The table.
        what: What it should list, for the message.
        file: Name of the column of paths.
        label: Name of the column of classes.

    Raises:
        UserError: It cannot be read.
    """
    try:
        with path.open(newline="", encoding="utf-8") as table:
            reader = csv.DictReader(table)
            if lacking := {"image", file, label, "certainty", "assigned"} - set(reader.fieldnames or ()):
                raise KeyError(f"it has no column {min(lacking)}")
            rows = list(reader)
            if any(None in row.values() for row in rows):
                raise ValueError("a row has fewer values than the first line")
        items = tuple(Item(unguarded(row["image"]), unguarded(row[file]), unguarded(row[label]),
                           float(row["certainty"]), row["assigned"] == "1") for row in rows)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, csv.Error) as error:
        reason = error.args[0] if isinstance(error, KeyError) else error  # its text has quotation marks
        raise UserError(f"{quoted(str(path))} should list {what}, but could not be read: {reason}. Choose another "
                        "folder.") from error
    return next((how for how in HOWS if rows and how == rows[0].get("how")), None), items


def is_inside(file: str) -> bool:
    """Return whether a path is as an export gives it: a folder and a file, both with names that lead nowhere else."""
    parts = file.split("/")
    return len(parts) == 2 and all(map(stays_inside, parts))
