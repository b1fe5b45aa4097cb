"""CIFAR-10 as image files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from udml_core.base.errors import UserError
from udml_core.base.paths import data_folder
from udml_core.data.dataset import Dataset, Report
from udml_core.data.sources.image_folder import Folder
from udml_core.data.sources.levels import ClassLevel

HALVES = ("train", "test")


class Cifar10(Folder):
    """CIFAR-10 with its official division, below UDML_DATA.

    The files are cifar10/train/CLASS/* and cifar10/test/CLASS/*. JPEG files are a lossy copy. Source:
    A. Krizhevsky, "Learning multiple layers of features from tiny images", 2009.
    """

    def __init__(self) -> None:
        super().__init__((data_folder() or Path("UDML_DATA")) / "cifar10", "cifar10", "CIFAR-10")
        self.summary = "60,000 photographs of 32×32 pixels, 10 classes: 50,000 training and 10,000 test images."

    @property
    def classes(self) -> int | None:  # type: ignore[override]
        return len({file.split("/")[1] for file in self._files if file.count("/") > 1}) or None

    def missing(self) -> str | None:
        if data_folder() is None:
            return ("The data set cifar10 is read from cifar10/train/CLASS/* and cifar10/test/CLASS/* below the folder "
                    "UDML_DATA, which is not set. Set UDML_DATA to the folder of your data sets.")
        return super().missing()

    def _default_level(self, levels: Sequence[ClassLevel]) -> int:
        return 1  # the halves, which keeps the fingerprint of earlier versions; `load` names the classes

    def load(self, report: Report) -> Dataset:
        dataset = super().load(report)
        paths = [Path(name).parts for name in dataset.names]
        misplaced = [name for name, parts in zip(dataset.names, paths, strict=True)
                     if len(parts) < 3 or parts[0] not in HALVES]
        if misplaced:
            raise UserError(f"{self.path} must have its images in train/CLASS/* and test/CLASS/*, got {misplaced[0]}. "
                            "Move this file out of the folder.")
        names = sorted({parts[1] for parts in paths})
        labels = np.array([names.index(parts[1]) for parts in paths], dtype=np.int64)
        return replace(dataset, labels=labels, class_names=tuple(names),
                       official_test=np.array([parts[0] == "test" for parts in paths]))
