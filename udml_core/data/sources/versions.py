"""The states in which a folder of images was opened, by fingerprint.

A folder may change after a run. Its earlier states keep earlier runs of use, and say which images are new and which
rows of stored arrays belong to unchanged images.
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image

from udml_core.base.errors import UserError
from udml_core.base.files import replace_bytes
from udml_core.data.dataset import FileImages, Images
from udml_core.data.sources.scanning import Scan, scan_path

DIGITS = 24
"""Digits of the fingerprint in the name of a version."""
BLANK = "#d9d9d9"
"""Color in place of an image that is gone."""


@dataclass(frozen=True)
class Version:
    """A state of a folder.

    Attributes:
        seen: When it was opened first, in seconds since 1970.
        entries: Description of each file; see `scanning.Scan`.
        names: The images in their order.
    """

    seen: float
    entries: Scan
    names: tuple[str, ...]

    @property
    def digests(self) -> tuple[str, ...]:
        """Digest of each image's file, in the order of the images."""
        return tuple(self.entries[name]["digest"] for name in self.names)


@dataclass(frozen=True)
class VersionImages(FileImages):
    """The images of an earlier state of a folder, of which some may be gone.

    Attributes:
        gone: Indices of the images that were removed or changed.
    """

    gone: frozenset[int] = field(default_factory=frozenset)

    def reduced(self, index: int, side: int | None = None) -> Image.Image:
        """Return an image; see `FileImages.reduced`.

        Raises:
            UserError: The image is gone, or cannot be read.
        """
        if index in self.gone:
            raise UserError(f"The image {self.root / self.files[index]} was removed or changed since this run. "
                            "Restore it, or start a new run.")
        return super().reduced(index, side)


def image_to_draw(images: Images, index: int) -> Image.Image:
    """Return an image for a page, or a gray square if it is gone from its folder."""
    is_gone = isinstance(images, VersionImages) and index in images.gone
    return Image.new("RGB", (64, 64), BLANK) if is_gone else images[index]


def keep_version(root: Path, fingerprint: str, entries: Scan, names: Sequence[str]) -> None:
    """Store a state of a folder, unless it is known."""
    path = _path(root, fingerprint)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        stored = {"seen": time.time(), "entries": entries, "names": list(names)}
        replace_bytes(path, gzip.compress(json.dumps(stored).encode(), 1))


def read_version(root: Path, fingerprint: str) -> Version | None:
    """Return a state of a folder; None if it is unknown or its file is damaged."""
    try:
        stored = json.loads(gzip.decompress(_path(root, fingerprint).read_bytes()))
        version = Version(float(stored["seen"]), dict(stored["entries"]), tuple(stored["names"]))
        return version if version.entries.keys() >= set(version.names) else None
    except (OSError, EOFError, ValueError, KeyError, TypeError):
        return None


def known_versions(root: Path) -> list[str]:
    """Return the beginnings of the fingerprints of a folder's known states, the newest first."""
    paths = _path(root, "").parent.glob("*.json.gz")
    return [path.name.partition(".")[0] for path in sorted(paths, key=lambda path: -path.stat().st_mtime_ns)]


def _path(root: Path, fingerprint: str) -> Path:
    scanned = scan_path(root)
    return scanned.with_name(f"{scanned.stem}-versions") / f"{fingerprint[:DIGITS]}.json.gz"
