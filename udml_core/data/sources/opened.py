"""The list of folders and files that the user opened, by their names."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from udml_core.base.errors import UserError, quoted
from udml_core.base.paths import existing_path, given_folder, may_read

LIST = "folders.json"


def opened_names() -> list[str]:
    """Return the whole list, with folders that do not exist now.

    A disconnected disk may come back.
    """
    try:
        return [str(Path(text)) for text in json.loads((given_folder() / LIST).read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError):
        return []


def opened_at() -> float:
    """Return when the list changed last, in seconds since 1970; 0 without a list."""
    try:
        return (given_folder() / LIST).stat().st_mtime
    except OSError:
        return 0.0


def opened_folders() -> list[Path]:
    """Return the opened folders that exist and may be read."""
    found = (existing_path(name) or existing_path(name.rpartition("#")[0] or name) for name in opened_names())
    return [path.resolve() for path in found if path is not None and os.path.isdir(path)]


def allowed_path(name: str, root: Path, opened: Sequence[Path]) -> Path | None:
    """Return the path that a table names, if it is below the data set's folder or a folder that the user opened.

    Args:
        name: The path, absolute or from the folder.
        root: The folder.
        opened: The folders that the user opened.
    """
    try:
        path = (root / name).resolve()
        return path if any(map(path.is_relative_to, (root, *opened))) and may_read(path) else None
    except (OSError, ValueError, RuntimeError):
        return None


def find_file(name: str, root: Path, opened: Sequence[Path]) -> Path | None:
    """Return the file that a table names, if it exists and `allowed_path` allows its path."""
    path = allowed_path(name, root, opened)
    return path if path is not None and os.path.isfile(path) else None


def not_opened(table: Path, root: Path, path: str, other_cure: str) -> UserError:
    """Return the error for a table of paths that lead out of its folder and the opened folders.

    Args:
        table: The table.
        root: The data set's folder.
        path: One of the paths.
        other_cure: What to do instead of opening a folder.
    """
    return UserError(
        f"The rows of {table} have no images, only their paths, such as {quoted(path)}. For safety, only files below "
        f"{root} and below the folders that you opened are read. Open the folder of the images first, on the page Data "
        f"or with `udml datasets --remember FOLDER`, or "
        f"{other_cure}")
