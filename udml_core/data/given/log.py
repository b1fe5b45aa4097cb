"""What people say about the images of a data set: one JSON object a line, only ever appended to, so that nothing given
is ever lost.

A folder's journal belongs to the folder, so that images may come and go; where the folder was moved or copied, what
was said about the same images elsewhere is taken along. Any other data set's belongs to its images.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from filelock import FileLock

from udml_core.data.dataset import Dataset, FileImages
from udml_core.errors import UserError
from udml_core.files import replace_text
from udml_core.paths import given_folder


def log_path_of(dataset: Dataset, kind: str) -> Path:
    """Where the lines of a kind are kept."""
    images = dataset.images
    known = f"folder {images.root}" if isinstance(images, FileImages) else dataset.fingerprint
    home = hashlib.sha256(os.fsencode(known)).hexdigest()[:24]
    path = given_folder() / "given" / home / f"{kind}.jsonl"
    with suppress(OSError):  # what cannot be read or written here is said where a line is appended
        if path.exists():
            if not _mark_of(dataset).exists():
                _mark(dataset, path)
        elif _mark_of(dataset).exists():
            _take_along(path.parents[1] / _mark_of(dataset).read_text(encoding="utf-8") / path.name, path)
    return path


def _mark_of(dataset: Dataset) -> Path:
    """The file that says which folder of journals was last written to about these images, wherever they lie."""
    return given_folder() / "given" / "images" / dataset.fingerprint[:24]


def _mark(dataset: Dataset, path: Path) -> None:
    mark = _mark_of(dataset)
    mark.parent.mkdir(parents=True, exist_ok=True)
    replace_text(mark, path.parent.name)


def _take_along(former: Path, path: Path) -> None:
    if former.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_suffix(".lock")):
            if not path.exists():
                aside = path.with_suffix(".part")
                shutil.copyfile(former, aside)
                aside.replace(path)


def read_log(dataset: Dataset, kind: str) -> list[dict[str, Any]]:
    """Every line that is an object, in order; one that was cut short is passed over."""
    try:
        lines = log_path_of(dataset, kind).read_bytes().splitlines()
    except OSError:
        return []
    rows = []
    for line in lines:
        with suppress(ValueError):
            rows.append(json.loads(line))
    return [row for row in rows if isinstance(row, dict)]


def append_to_log(dataset: Dataset, kind: str, row: Mapping[str, Any]) -> None:
    """Add one line in one write; two windows that write at once wait for each other.

    Raises:
        UserError: the file cannot be written.
    """
    path = log_path_of(dataset, kind)
    line = json.dumps(row, ensure_ascii=False).encode() + b"\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_suffix(".lock")), path.open("a+b") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                line = line if file.read(1) == b"\n" else b"\n" + line  # a writer was killed within its line
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        _mark(dataset, path)
    except OSError as error:
        raise UserError(f"What you gave could not be kept in {path}: {error}. Free some space, or name another folder "
                        "with UDML_CACHE.") from error
