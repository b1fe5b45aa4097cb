"""Decoding every image of a folder once, so that damaged images are found before training."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO

from udml_core.base import bounded
from udml_core.base.files import replace_text
from udml_core.base.paths import cache_folder
from udml_core.data.dataset import DETAIL, NEEDS_HEIC, Report, open_image, reads_heic
from udml_core.data.large_images import check_memory, turn
from udml_core.data.sources.listing import HEIC_ENDINGS, is_text

SCAN_KEYS = frozenset({"bytes", "time", "digest", "size", "gray", "reason"})
UNREAD = -1
"""Stands for the bytes and the time of a file that cannot be read, so that it is read again."""
Scan = dict[str, dict[str, Any]]
"""Description of each image file: {path: bytes, time, digest, size, gray, reason}.

The reason says why a file is skipped and is None for a readable image.
"""


def scan(root: Path, files: Sequence[str], report: Report, step: str = "reading the folder") -> Scan:
    """Describe image files; unchanged files are taken from the cache, and others are read by a bounded call.

    Args:
        root: The folder.
        files: Paths relative to the folder.
        report: Receives the finished share.
        step: Name of the step for the report.
    """
    cache_file = scan_path(root)
    try:
        known = dict(json.loads(cache_file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        known = {}
    changed = [file for file in files if not _is_known(root / file, known.get(file))]
    described: Scan = {}
    if changed:
        described = bounded.call(str(root), describe_images, root, changed, step, len(files), report=report)
    entries: Scan = {file: described.get(file) or known[file] for file in files}
    if entries != known:
        cache_file.parent.mkdir(parents=True, exist_ok=True)
        replace_text(cache_file, json.dumps(entries))
    report(1.0, f"{step}{DETAIL}{len(files):,} of {len(files):,}")
    return entries


def known_reasons(root: Path, files: Sequence[str]) -> list[str | None] | None:
    """Return why each file was skipped when it was read last, None for an image; None if some were not read yet."""
    try:
        known = dict(json.loads(scan_path(root).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    is_read = all(_is_known(root / file, entry := known.get(file)) or (entry and entry.get("bytes") == UNREAD)
                  for file in files)
    if not is_read:
        return None
    return [known[file]["reason"] for file in files]


def scan_path(root: Path) -> Path:
    """Return the file that caches the descriptions of a folder's images."""
    return cache_folder() / "folders" / f"{hashlib.sha256(os.fsencode(root)).hexdigest()[:16]}.json"


def describe_images(root: Path, files: Sequence[str], step: str, total: int, *, report: Report) -> Scan:
    """Decode image files and describe them.

    Args:
        root: The folder.
        files: Paths relative to the folder.
        step: Name of the step for the report.
        total: Number of files of the folder, of which the other files are known.
        report: Receives the finished share.
    """
    entries: Scan = {}
    before = total - len(files)
    with ThreadPoolExecutor() as pool:
        for number, (file, entry) in enumerate(zip(files, pool.map(lambda file: _describe(root / file), files),
                                                   strict=True), start=before):
            entries[file] = entry
            if number % 50 == 0:
                report(number / total, f"{step}{DETAIL}{number:,} of {total:,}")
    return entries


def _is_known(path: Path, known: dict[str, Any] | None) -> bool:
    """Return whether the cache describes a file as it is."""
    if not known or not known.keys() >= SCAN_KEYS:
        return False
    # Environments with and without the package for HEIC images share the cache.
    lacks_package = str(known["reason"]).startswith(NEEDS_HEIC)
    if (lacks_package or path.suffix.lower() in HEIC_ENDINGS) and lacks_package == reads_heic():
        return False
    try:
        stat = path.stat()
    except (OSError, ValueError):
        return False
    return bool((known["bytes"], known["time"]) == (stat.st_size, stat.st_mtime_ns))


def _describe(path: Path) -> dict[str, Any]:
    try:
        stat = path.stat()
        if not is_text(str(path)):
            raise ValueError("its name is not valid Unicode text: rename it")
        entry: dict[str, Any] = {"bytes": stat.st_size, "time": stat.st_mtime_ns}
        with path.open("rb") as file:
            return entry | _describe_content(file)
    except Exception as error:  # a damaged image can raise any exception
        return {"bytes": UNREAD, "time": UNREAD, **unreadable(error)}


def describe_content(content: bytes) -> dict[str, Any]:
    """Decode the content of an image file and describe it, without what only a file has."""
    try:
        return _describe_content(io.BytesIO(content))
    except Exception as error:  # a damaged image can raise any exception
        return unreadable(error)


def _describe_content(file: BinaryIO) -> dict[str, Any]:
    entry: dict[str, Any] = {"digest": hashlib.file_digest(file, "sha256").hexdigest()}  # type: ignore[arg-type]
    file.seek(0)
    with open_image(file) as image:
        entry |= {"size": list(image.size), "gray": image.mode in ("1", "L", "I;16")}
        image.draft("RGB", (64, 64))
        check_memory(image)
        with turn(image.size):
            image.load()
    width, height = entry["size"]
    return entry | {"reason": f"too small: {width}×{height} pixels" if min(width, height) < 4 else None}


def unreadable(error: Exception) -> dict[str, Any]:
    """Return the description of an image that cannot be decoded."""
    return {"digest": "", "size": [0, 0], "gray": False, "reason": _reason(error)}


def _reason(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "it needs too much memory: save it smaller"
    text = str(error)
    return "not an image" if "cannot identify" in text else text or type(error).__name__
