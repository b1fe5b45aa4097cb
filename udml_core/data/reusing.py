"""Rows of stored arrays that are about unchanged images, so that a folder that grows computes only its new images."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from udml_core.base.arrays import Integers
from udml_core.base.paths import dataset_cache
from udml_core.data.dataset import Dataset, FileImages
from udml_core.data.sources.versions import known_versions, read_version


@dataclass(frozen=True, eq=False)
class Earlier:
    """A file about a state of a folder: an earlier one, or the present one.

    Attributes:
        path: The file.
        rows: Row (n,) there of each image, −1 for images that this state did not have.
        count: Number of images that this state had.
    """

    path: Path
    rows: Integers
    count: int

    @property
    def missing(self) -> Integers:
        """The images (m,) whose rows must be computed."""
        return np.flatnonzero(self.rows < 0)

    @property
    def known(self) -> Integers:
        """The other images, in order."""
        return np.flatnonzero(self.rows >= 0)


def current_file(dataset: Dataset, file: str) -> Earlier | None:
    """Return the file of this name about the present state of a data set; None without one.

    Args:
        dataset: The data set.
        file: Name of the file in the folder of what is computed from a data set.
    """
    path = dataset_cache(dataset.fingerprint) / file
    return Earlier(path, np.arange(len(dataset)), len(dataset)) if path.exists() else None


def earlier_file(dataset: Dataset, file: str) -> Earlier | None:
    """Return the newest file of this name about an earlier state of a data set's folder; None without one.

    Images are the same if their files have the same content, whatever their names.

    Args:
        dataset: The data set.
        file: Name of the file in the folder of what is computed from a data set.
    """
    if not dataset.digests or not isinstance(dataset.images, FileImages):
        return None
    for fingerprint in known_versions(dataset.images.root):
        path = dataset_cache(fingerprint) / file
        if dataset.fingerprint.startswith(fingerprint) or not path.exists():
            continue
        if (version := read_version(dataset.images.root, fingerprint)) is not None:
            row_of = {digest: row for row, digest in enumerate(version.digests)}
            rows = np.array([row_of.get(digest, -1) for digest in dataset.digests], np.int64)
            return Earlier(path, rows, len(version.names)) if (rows >= 0).any() else None
    return None
