"""Folders outside of runs."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

_PACKAGE = Path(__file__).resolve().parent
ASSETS = _PACKAGE / "assets" if (_PACKAGE / "assets").is_dir() else _PACKAGE.parent / "assets"
"""Embedded data, records and browser code: inside the installed package, or beside it in a checkout."""


def cache_folder() -> Path:
    """Return the folder of features, prepared images and folder scans.

    It is UDML_CACHE, or the user's cache folder.
    """
    return Path(os.environ.get("UDML_CACHE") or platformdirs.user_cache_dir("udml-explorer", appauthor=False))


def given_folder() -> Path:
    """Return the folder of labels, pairs, imported images and the list of folders.

    It is UDML_CACHE, or the user's data folder. Users gave these data, so nothing in it can be recomputed.
    """
    return Path(os.environ.get("UDML_CACHE") or platformdirs.user_data_dir("udml-explorer", appauthor=False))


def dataset_cache(fingerprint: str) -> Path:
    """Return the folder of everything computed from a data set's images."""
    return cache_folder() / "features" / fingerprint[:24]


def runs_folder() -> Path:
    """Return the folder of runs: UDML_RUNS, or `runs` in the current folder."""
    return Path(os.environ.get("UDML_RUNS") or "runs").resolve()


def data_folder() -> Path | None:
    """Return the folder of further data sets: UDML_DATA, or None if it is not set.

    Each subfolder is a data set.
    """
    value = os.environ.get("UDML_DATA")
    return Path(value) if value else None


def existing_path(text: str) -> Path | None:
    """Return the file or folder that a text names; None if it does not exist.

    The text may begin with `~`.
    """
    try:
        path = Path(text).expanduser()
        return path if path.exists() else None
    except (OSError, ValueError, RuntimeError):  # a name too long or not allowed, a null byte, an unknown user after ~
        return None
