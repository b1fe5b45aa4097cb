"""Small files of processes that wait, which import only the standard library; other code uses `files`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def read_object(path: Path) -> dict[str, Any] | None:
    """Return the JSON object in a file; None if there is none."""
    try:
        content = json.loads(read_text(path))
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def read_text(path: Path) -> str:
    """Read a regular file: reading a named pipe would never end."""
    if not path.is_file():
        raise FileNotFoundError(path)
    return path.read_text(encoding="utf-8")


def write_text(path: Path, text: str) -> None:
    """Write a file that readers see whole or not at all."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    aside.write_text(text, encoding="utf-8")
    aside.replace(path)
