"""Where files lie that belong to no run."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

ASSETS = Path(__file__).resolve().parents[1] / "assets"


def cache_folder() -> Path:
    """Computed features, prepared images and folder scans: UDML_CACHE, or the user's cache folder."""
    return Path(os.environ.get("UDML_CACHE") or platformdirs.user_cache_dir("udml-explorer", appauthor=False))


def given_folder() -> Path:
    """What people gave and nothing can compute anew: labels, pairs, imported images, the list of folders. UDML_CACHE,
    or the user's data folder."""
    return Path(os.environ.get("UDML_CACHE") or platformdirs.user_data_dir("udml-explorer", appauthor=False))


def dataset_cache(fingerprint: str) -> Path:
    """Where what was computed from a data set's images lies."""
    return cache_folder() / "features" / fingerprint[:24]


def data_folder() -> Path | None:
    """Further data sets, one a sub-folder: UDML_DATA, or None where it is not set."""
    value = os.environ.get("UDML_DATA")
    return Path(value) if value else None


def existing_path(text: str) -> Path | None:
    """The file or folder that a text names, `~` included; None where there is none, or no such name is possible."""
    try:
        path = Path(text).expanduser()
        return path if path.exists() else None
    except (OSError, ValueError, RuntimeError):  # too long or not allowed, a null byte, the ~ of nobody
        return None
