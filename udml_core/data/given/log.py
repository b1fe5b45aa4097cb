"""Append-only logs of what users say about images.

Each line is a JSON object and is never rewritten. The logs of a folder belong to its path, so that images can be added
and removed. When a folder is moved or copied, the logs about the same images are copied to the new path. The logs of
other data sets belong to their fingerprint. Actions on images follow files that were renamed or moved; see `following`.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock

from udml_core.base.errors import UserError
from udml_core.base.files import parse_json, replace_text, version_of
from udml_core.base.memory import Memory
from udml_core.base.paths import given_folder
from udml_core.data.dataset import Dataset, FileImages
from udml_core.data.given.following import all_names, moved_names, renamed

_MEMORY = Memory(16)
"""What follows from logs, by its name and the versions of the logs."""
Result = TypeVar("Result")


def log_path_of(dataset: Dataset, kind: str) -> Path:
    """Return the path of a log; copy an earlier log to it if it is missing.

    The earlier log is about the same images.
    """
    images = dataset.images
    owner = f"folder {images.root}" if isinstance(images, FileImages) else dataset.fingerprint
    home = hashlib.sha256(os.fsencode(owner)).hexdigest()[:24]
    path = given_folder() / "given" / home / f"{kind}.jsonl"
    with suppress(OSError):  # append_to_log reports what cannot be read or written
        pointer = _pointer_path(dataset)
        if path.exists():
            if not pointer.exists():
                _write_pointer(dataset, path)
        elif pointer.exists():
            _copy_log(path.parents[1] / pointer.read_text(encoding="utf-8") / path.name, path)
    return path


def log_version(dataset: Dataset, kind: str) -> tuple[int, ...]:
    """Return numbers that change with every line of a log; none before the first."""
    try:
        return version_of(log_path_of(dataset, kind))
    except OSError:
        return ()


def kept(what: str, dataset: Dataset, kinds: Sequence[str], compute: Callable[[], Result]) -> Result:
    """Return what follows from logs, computed once for each of their versions; a caller must not change it.

    Args:
        what: What follows from the logs.
        dataset: The data set.
        kinds: The names of the logs.
        compute: Computes it. A line that another process adds meanwhile may count already.
    """
    key = (what, dataset.fingerprint, *((log_path_of(dataset, kind), log_version(dataset, kind)) for kind in kinds))
    return _MEMORY.get(key, compute)


def _pointer_path(dataset: Dataset) -> Path:
    """Return the file that names the folder of the newest logs about these images.

    It does not depend on the images' path.
    """
    return given_folder() / "given" / "images" / dataset.fingerprint[:24]


def _write_pointer(dataset: Dataset, path: Path) -> None:
    pointer = _pointer_path(dataset)
    with suppress(OSError):
        if pointer.read_text(encoding="utf-8") == path.parent.name:
            return
    pointer.parent.mkdir(parents=True, exist_ok=True)
    replace_text(pointer, path.parent.name)


def _copy_log(source: Path, path: Path) -> None:
    if source.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_suffix(".lock")):
            if not path.exists():
                aside = path.with_suffix(".part")
                shutil.copyfile(source, aside)
                aside.replace(path)


def read_log(dataset: Dataset, kind: str) -> list[dict[str, Any]]:
    """Return all lines that are JSON objects, in order; damaged lines are skipped."""
    return [row for row in _lines(dataset, kind) if row is not None]


def _lines(dataset: Dataset, kind: str) -> list[dict[str, Any] | None]:
    """Return each line, or None in the place of a damaged one."""
    try:
        lines = log_path_of(dataset, kind).read_bytes().splitlines()
    except OSError:
        return []
    rows: list[dict[str, Any] | None] = []
    for line in filter(bytes.strip, lines):
        row = None
        with suppress(ValueError):
            row = parse_json(line)
        rows.append(row if isinstance(row, dict) else None)
    return rows


def unusable_lines(dataset: Dataset, kind: str, is_valid: Callable[[dict[str, Any]], bool]) -> int:
    """Count the lines of a log that `read_actions` skips."""
    return sum(row is None or not (row.get("undo") is True or is_valid(row)) for row in _lines(dataset, kind))


def read_actions(dataset: Dataset, kind: str, is_valid: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
    """Return the valid actions that no later line {"undo": true} reverted, in order.

    Args:
        dataset: The data set.
        kind: Name of the log.
        is_valid: Returns whether a line is an action, the same for each log; other lines are skipped.
    """
    return list(kept(f"actions of {kind}", dataset, [kind], lambda: _replayed(dataset, kind, is_valid)))


def _replayed(dataset: Dataset, kind: str, is_valid: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
    actions: list[dict[str, Any]] = []
    for row in read_log(dataset, kind):
        if row.get("undo") is True:
            del actions[-1:]
        elif is_valid(row):
            actions.append(row)
    if not dataset.digests or not isinstance(dataset.images, FileImages):
        return actions
    moved = moved_names(dataset, all_names(actions))
    return [{key: renamed(value, moved) for key, value in row.items()} for row in actions] if moved else actions


def append_to_log(dataset: Dataset, kind: str, row: Mapping[str, Any]) -> None:
    """Append one line under a lock, as several windows may write at once.

    Raises:
        UserError: The log cannot be written.
    """
    path = log_path_of(dataset, kind)
    line = json.dumps(row, ensure_ascii=False).encode() + b"\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_suffix(".lock")), path.open("a+b") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                line = line if file.read(1) == b"\n" else b"\n" + line  # the last writer was killed
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        _write_pointer(dataset, path)
    except OSError as error:
        raise UserError(f"Your {kind} could not be stored in {path}: {error}. Free some space, or set UDML_CACHE to "
                        "another folder.") from error
