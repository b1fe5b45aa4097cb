"""A folder of images that a person brings: `folder/class/*.jpg`, or flat and unlabeled."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from udml_core.data.dataset import Dataset, FileImages, Report, Skipped
from udml_core.data.places import cache_folder
from udml_core.data.sources.source import Source
from udml_core.data.storage import replace_text
from udml_core.errors import UserError

ENDINGS = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"})
KNOWN = frozenset({"bytes", "time", "size", "gray", "reason"})
LAYOUT = "folder/CLASS/image.jpg (one sub-folder a class), or image files side by side (unlabeled)"


class Folder(Source):
    """A folder as a data set.

    Labels are the first-level sub-folders' names. With fewer than two of them the images are unlabeled. Every image is
    decoded once, so that a broken one is found before training; what was found is remembered by size and time.
    """

    def __init__(self, path: Path, name: str | None = None, title: str | None = None) -> None:
        self.path = path.expanduser().resolve()
        self.name = name or str(self.path)
        self.title = title or self.path.name
        self.summary = f"Images below {self.path}"

    @cached_property
    def _files(self) -> list[str]:
        return image_files(self.path) if self.path.is_dir() else []

    # Looked for when asked: a folder can be large, and most of its kind are only named.
    @property
    def images(self) -> int | None:  # type: ignore[override]
        return len(self._files) if self.path.is_dir() else None

    @property
    def classes(self) -> int | None:  # type: ignore[override]
        groups = {file.split("/", 1)[0] for file in self._files if "/" in file}
        return len(groups) if len(groups) > 1 else None

    def missing(self) -> str | None:
        if not self.path.is_dir():
            return f"The folder {self.path} does not exist. Expected: {LAYOUT}."
        if not self.images:
            return f"The folder {self.path} has no images. Expected: {LAYOUT}, with the endings {_endings()}."
        return None

    def load(self, report: Report) -> Dataset:
        problem = self.missing()
        if problem:
            raise UserError(problem)
        found = _scan(self.path, report)
        files = sorted(file for file, entry in found.items() if entry["reason"] is None)
        skipped = [Skipped(file, entry["reason"]) for file, entry in sorted(found.items()) if entry["reason"]]
        groups = sorted({Path(file).parts[0] for file in files if len(Path(file).parts) > 1})
        labels = None
        if len(groups) > 1:
            loose = [file for file in files if len(Path(file).parts) == 1]
            skipped += [Skipped(file, "lies beside the class folders, so it has no class") for file in loose]
            files = [file for file in files if len(Path(file).parts) > 1]
            number = {group: position for position, group in enumerate(groups)}
            labels = np.array([number[Path(file).parts[0]] for file in files], dtype=np.int64)
        if len(files) < 2:
            raise UserError(f"The folder {self.path} needs at least 2 readable images, found {len(files)} "
                            f"({len(skipped)} skipped). Expected: {LAYOUT}.")
        sides = [min(found[file]["size"]) for file in files]
        content = "\n".join(f"{file}|{found[file]['bytes']}|{found[file]['time']}" for file in files)
        return Dataset(self.name, self.title, FileImages(self.path, tuple(files)), labels,
                       tuple(groups) if labels is not None else (), hashlib.sha256(content.encode()).hexdigest(),
                       int(np.median(sides)), all(found[file]["gray"] for file in files), tuple(files),
                       skipped=tuple(skipped))


def image_files(root: Path) -> list[str]:
    """Files with an image's ending below a folder, as relative paths with forward slashes; hidden ones are left out."""
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*")
                  if path.suffix.lower() in ENDINGS and path.is_file()
                  and not any(part.startswith((".", "__MACOSX")) for part in path.relative_to(root).parts))


def _scan(root: Path, report: Report) -> dict[str, dict[str, Any]]:
    """What each file is: {relative path: bytes, time, size, gray, reason}; reason is None for a readable image."""
    memory = cache_folder() / "folders" / f"{hashlib.sha256(str(root).encode()).hexdigest()[:16]}.json"
    try:
        known = dict(json.loads(memory.read_text()))
    except (OSError, ValueError, TypeError):
        known = {}
    files = image_files(root)
    found: dict[str, dict[str, Any]] = {}
    with ThreadPoolExecutor() as pool:
        entries: Iterable[dict[str, Any]] = pool.map(lambda file: _look(root / file, known.get(file)), files)
        for position, (file, entry) in enumerate(zip(files, entries, strict=True)):
            found[file] = entry
            if position % 50 == 0:
                report(position / len(files), "reading the folder")
    if found != known:
        replace_text(memory, json.dumps(found))
    report(1.0, "reading the folder")
    return found


def _look(path: Path, known: dict[str, Any] | None) -> dict[str, Any]:
    try:
        stat = path.stat()
        if known and known.keys() >= KNOWN and (known["bytes"], known["time"]) == (stat.st_size, stat.st_mtime_ns):
            return known
        entry: dict[str, Any] = {"bytes": stat.st_size, "time": stat.st_mtime_ns, "size": [0, 0], "gray": False}
        with Image.open(path) as image:
            entry |= {"size": list(image.size), "gray": image.mode in ("1", "L", "I;16")}
            image.draft("RGB", (64, 64))
            image.load()
        if min(entry["size"]) < 4:
            return entry | {"reason": f"too small: {entry['size'][0]}×{entry['size'][1]} pixels"}
        return entry | {"reason": None}
    except Exception as error:  # a broken image can raise anything
        return {"bytes": -1, "time": -1, "size": [0, 0], "gray": False, "reason": _plainly(error)}


def _plainly(error: Exception) -> str:
    text = str(error)
    return "not an image" if "cannot identify" in text else text or type(error).__name__


def _endings() -> str:
    return ", ".join(sorted(ENDINGS))
