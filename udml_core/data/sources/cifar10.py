"""CIFAR-10 as image files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from udml_core.data.dataset import Dataset, Report
from udml_core.data.sources.folder import Folder
from udml_core.errors import UserError
from udml_core.paths import data_folder

HALVES = ("train", "test")


class Cifar10(Folder):
    """A. Krizhevsky, "Learning multiple layers of features from tiny images", 2009, with the authors' division, below
    UDML_DATA as cifar10/train/CLASS/* and cifar10/test/CLASS/*. Files in JPEG are a lossy copy."""

    def __init__(self) -> None:
        super().__init__((data_folder() or Path("UDML_DATA")) / "cifar10", "cifar10", "CIFAR-10")
        self.summary = "60,000 photographs of 32×32 pixels, 10 classes: 50,000 train and 10,000 test."

    @property
    def classes(self) -> int | None:  # type: ignore[override]
        return len({file.split("/")[1] for file in self._files if file.count("/") > 1}) or None

    def missing(self) -> str | None:
        if data_folder() is None:
            return ("cifar10 is looked for as cifar10/train/CLASS/* and cifar10/test/CLASS/* below the folder "
                    "UDML_DATA, which is not set.")
        return super().missing()

    def load(self, report: Report) -> Dataset:
        found = super().load(report)
        parts = [Path(name).parts for name in found.names]
        astray = [name for name, one in zip(found.names, parts, strict=True) if len(one) < 3 or one[0] not in HALVES]
        if astray:
            raise UserError(f"{self.path} must have its images as train/CLASS/* and test/CLASS/*, and has {astray[0]}. "
                            "Move it away.")
        names = sorted({one[1] for one in parts})
        labels = np.array([names.index(one[1]) for one in parts], dtype=np.int64)
        return replace(found, labels=labels, class_names=tuple(names),
                       official_test=np.array([one[0] == "test" for one in parts]))
