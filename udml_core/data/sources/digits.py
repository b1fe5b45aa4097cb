"""Handwritten digits of scikit-learn, a small data set of real images."""

from __future__ import annotations

import gzip
import hashlib
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from udml_core.base.arrays import Array
from udml_core.data.dataset import ArrayImages, Dataset, Report
from udml_core.data.sources.source import Source


def read_digits() -> tuple[Array, Array]:
    """Return the images (1797, 8, 8) with values from 0 to 16, and their classes (1797,).

    The file that comes with scikit-learn is read without importing scikit-learn, which takes as long as PyTorch: a
    training would begin that much later.
    """
    found = find_spec("sklearn")
    path = Path(found.origin or "").parent / "datasets" / "data" / "digits.csv.gz" if found is not None else Path()
    if not path.is_file():  # another version keeps it elsewhere
        from sklearn.datasets import load_digits

        bunch = load_digits()
        return bunch.images, bunch.target
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        table = np.loadtxt(lines, delimiter=",")
    return table[:, :-1].reshape(-1, 8, 8), table[:, -1].astype(np.int64)


class Digits(Source):
    """1,797 digits of 8×8 pixels, 10 classes (E. Alpaydin, C. Kaynak, UCI; BSD)."""

    name = "digits"
    title = "Digits"
    summary = "1,797 handwritten digits, 8×8 pixels: small and fast, for first lessons."
    images = 1797
    classes = 10

    def missing(self) -> str | None:
        return None

    def load(self, report: Report) -> Dataset:
        images, target = read_digits()
        pixels = np.round(images * (255 / 16)).astype(np.uint8)
        labels = target.astype(np.int64)
        report(1.0, "digits")
        return Dataset(self.name, self.title, ArrayImages(pixels), labels, tuple("0123456789"),
                       hashlib.sha256(pixels.tobytes() + labels.tobytes()).hexdigest(), 8, True,
                       tuple(f"digit {index}" for index in range(len(pixels))))
