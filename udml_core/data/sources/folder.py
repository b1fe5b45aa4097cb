"""A user's folder of images: `folder/class/*.jpg`, or files without labels.

Images without labels are directly in the folder. The class folders can be deeper; see `levels`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from udml_core.data.dataset import Dataset, FileImages, Report, Skipped, open_image
from udml_core.data.sources.levels import (
    NO_CLASSES,
    ClassLevel,
    check_level,
    class_levels,
    first_class_level,
    name_with_level,
)
from udml_core.data.sources.listing import ENDINGS, is_text, listed
from udml_core.data.sources.source import Source
from udml_core.errors import UserError
from udml_core.files import replace_text
from udml_core.paths import cache_folder, may_read, readable_roots

SCAN_KEYS = frozenset({"bytes", "time", "digest", "size", "gray", "reason"})
LAYOUT = "folder/CLASS/image.jpg (one subfolder for each class), or image files directly in the folder (unlabeled)"


class Folder(Source):
    """A folder as a data set.

    The labels are the names of the subfolders at the class level, by default the first level with at least two
    subfolders. Without such a level the images are unlabeled. Every image is decoded once, so that damaged images are
    found before training; the result is cached by file size and modification time. The fingerprint is a digest of the
    names and the contents, and of a class level that is not the default.

    Attributes:
        path: The folder.
        level: The chosen class level, which is part of the name; None for the default.
    """

    def __init__(self, path: Path, name: str | None = None, title: str | None = None, level: int | None = None
                 ) -> None:
        with suppress(OSError, ValueError, RuntimeError):  # see `existing_path`; such a folder is missing
            path = path.expanduser().resolve()
        self.path = path
        self.level = level
        self.name = name_with_level(name or str(self.path), level)
        self.title = (title or self.path.name) + ("" if level is None else f" (class level {level})")
        self.summary = f"Images in {self.path}"

    def levels(self) -> list[ClassLevel]:
        """Return the classes at each level of subfolders, without opening an image."""
        return class_levels(self._files)

    @cached_property
    def _files(self) -> list[str]:
        return [] if not may_read(self.path) else sorted(file for file, _ in listed(self.path))

    # Counted on access only: a folder can be large, and the catalog lists many folders without opening them.
    @property
    def images(self) -> int | None:  # type: ignore[override]
        return len(self._files) if os.path.isdir(self.path) else None

    @property
    def classes(self) -> int | None:  # type: ignore[override]
        levels = self.levels()
        level = first_class_level(levels) if self.level is None else self.level
        return next((len(found.sizes) for found in levels if found.level == level and found.has_classes), None)

    def missing(self) -> str | None:
        if not may_read(self.path):
            return (f"This server does not read the folder {self.path}. It reads only folders in "
                    f"{', '.join(readable_roots())}. Choose a listed data set, or upload the images.")
        if not os.path.isdir(self.path):  # Path.is_dir raises if a parent folder is not accessible
            return f"The folder {self.path} does not exist. Expected: {LAYOUT}."
        if not is_text(str(self.path)):
            return f"The name of the folder {_printable(str(self.path))} is not valid Unicode text. Rename it."
        if next(listed(self.path), None) is None:
            return f"The folder {self.path} has no images. Expected: {LAYOUT}, with the extensions {_endings()}."
        return None

    def signature(self) -> str:
        state = hashlib.sha256()
        for file, entry in listed(self.path):
            with suppress(FileNotFoundError):  # it was deleted after it was listed
                status = entry.stat()
                state.update(os.fsencode(f"{file}|{status.st_size}|{status.st_mtime_ns}\n"))
        return state.hexdigest()

    def load(self, report: Report) -> Dataset:
        problem = self.missing()
        if problem:
            raise UserError(problem)
        entries = _scan(self.path, report)
        files = sorted(file for file, entry in entries.items() if entry["reason"] is None)
        skipped = [Skipped(_printable(file), entry["reason"]) for file, entry in sorted(entries.items())
                   if entry["reason"]]
        levels = class_levels(files)
        level = default = first_class_level(levels)
        if self.level is not None:
            check_level(self.level, levels, self.path)
            level = self.level
        groups: list[str] = []
        labels = None
        if level != NO_CLASSES:
            groups = list(levels[level - 1].sizes)
            loose = [file for file in files if file.count("/") < level]
            skipped += [Skipped(file, "has no class, because it is not in a class folder") for file in loose]
            files = [file for file in files if file.count("/") >= level]
            number_of = {group: number for number, group in enumerate(groups)}
            labels = np.array([number_of[file.split("/")[level - 1]] for file in files], dtype=np.int64)
        if len(files) < 2:
            raise UserError(f"The folder {self.path} needs at least 2 readable images, got {len(files)} "
                            f"({len(skipped)} skipped). Expected: {LAYOUT}.")
        sides = [min(entries[file]["size"]) for file in files]
        content = "\n".join(f"{file}|{entries[file]['digest']}" for file in files)
        content += "" if level == default else f"\nclass level {level}"
        return Dataset(self.name, self.title, FileImages(self.path, tuple(files)), labels,
                       tuple(groups), hashlib.sha256(content.encode()).hexdigest(),
                       int(np.median(sides)), all(entries[file]["gray"] for file in files), tuple(files),
                       skipped=tuple(skipped), distinct=len({entries[file]["digest"] for file in files}))


def _scan(root: Path, report: Report) -> dict[str, dict[str, Any]]:
    """Describe each image file: {path: bytes, time, digest, size, gray, reason}.

    Paths are relative to the folder. The reason says why a file is skipped and is None for a readable image. Unchanged
    files are taken from the cache.
    """
    cache_file = cache_folder() / "folders" / f"{hashlib.sha256(str(root).encode()).hexdigest()[:16]}.json"
    try:
        known = dict(json.loads(cache_file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        known = {}
    files = sorted(file for file, _ in listed(root))
    entries: dict[str, dict[str, Any]] = {}
    with ThreadPoolExecutor() as pool:
        described: Iterable[dict[str, Any]] = pool.map(lambda file: _describe(root / file, known.get(file)), files)
        for number, (file, entry) in enumerate(zip(files, described, strict=True)):
            entries[file] = entry
            if number % 50 == 0:
                report(number / len(files), "reading the folder")
    if entries != known:
        cache_file.parent.mkdir(parents=True, exist_ok=True)
        replace_text(cache_file, json.dumps(entries))
    report(1.0, "reading the folder")
    return entries


def _describe(path: Path, known: dict[str, Any] | None) -> dict[str, Any]:
    try:
        stat = path.stat()
        if known and known.keys() >= SCAN_KEYS and (known["bytes"], known["time"]) == (stat.st_size, stat.st_mtime_ns):
            return known
        if not is_text(str(path)):
            raise ValueError("its name is not valid Unicode text: rename it")
        entry: dict[str, Any] = {"bytes": stat.st_size, "time": stat.st_mtime_ns}
        with path.open("rb") as file:
            entry["digest"] = hashlib.file_digest(file, "sha256").hexdigest()
            file.seek(0)
            with open_image(file) as image:
                entry |= {"size": list(image.size), "gray": image.mode in ("1", "L", "I;16")}
                image.draft("RGB", (64, 64))
                image.load()
        if min(entry["size"]) < 4:
            return entry | {"reason": f"too small: {entry['size'][0]}×{entry['size'][1]} pixels"}
        return entry | {"reason": None}
    except Exception as error:  # a damaged image can raise any exception
        return {"bytes": -1, "time": -1, "digest": "", "size": [0, 0], "gray": False, "reason": _reason(error)}


def _reason(error: Exception) -> str:
    text = str(error)
    return "not an image" if "cannot identify" in text else text or type(error).__name__


def _printable(name: str) -> str:
    return os.fsencode(name).decode(errors="replace")


def _endings() -> str:
    return ", ".join(sorted(ENDINGS))
