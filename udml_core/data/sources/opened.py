"""The list of folders and files that the user opened, by their names."""

from __future__ import annotations

import json
import os
from pathlib import Path

from udml_core.base.paths import existing_path, given_folder

LIST = "folders.json"


def opened_names() -> list[str]:
    """Return the whole list, with folders that do not exist now.

    A disconnected disk may come back.
    """
    try:
        return [str(Path(text)) for text in json.loads((given_folder() / LIST).read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError):
        return []


def opened_folders() -> list[Path]:
    """Return the opened folders that exist and may be read."""
    found = (existing_path(name) or existing_path(name.rpartition("#")[0] or name) for name in opened_names())
    return [path.resolve() for path in found if path is not None and os.path.isdir(path)]
