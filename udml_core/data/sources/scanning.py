"""Decoding every image of a folder once, so that damaged images are found before training."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from udml_core.base.files import replace_text
from udml_core.base.paths import cache_folder
from udml_core.data.dataset import DETAIL, Report, open_image
from udml_core.data.sources.listing import is_text

SCAN_KEYS = frozenset({"bytes", "time", "digest", "size", "gray", "reason"})
Scan = dict[str, dict[str, Any]]
"""Description of each image file: {path: bytes, time, digest, size, gray, reason}.

The reason says why a file is skipped and is None for a readable image.
"""


def scan(root: Path, files: Sequence[str], report: Report, step: str = "reading the folder") -> Scan:
    """Describe image files; unchanged files are taken from the cache.

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
    entries: Scan = {}
    with ThreadPoolExecutor() as pool:
        described: Iterable[dict[str, Any]] = pool.map(lambda file: _describe(root / file, known.get(file)), files)
        for number, (file, entry) in enumerate(zip(files, described, strict=True)):
            entries[file] = entry
            if number % 50 == 0:
                report(number / len(files), f"{step}{DETAIL}{number:,} of {len(files):,}")
    if entries != known:
        cache_file.parent.mkdir(parents=True, exist_ok=True)
        replace_text(cache_file, json.dumps(entries))
    report(1.0, f"{step}{DETAIL}{len(files):,} of {len(files):,}")
    return entries


def scan_path(root: Path) -> Path:
    """Return the file that caches the descriptions of a folder's images."""
    return cache_folder() / "folders" / f"{hashlib.sha256(os.fsencode(root)).hexdigest()[:16]}.json"


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
