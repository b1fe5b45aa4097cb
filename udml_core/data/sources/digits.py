"""Handwritten digits of scikit-learn, a small data set of real images."""

from __future__ import annotations

import hashlib

import numpy as np

from udml_core.data.dataset import ArrayImages, Dataset, Report
from udml_core.data.sources.source import Source


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
        from sklearn.datasets import load_digits

        bunch = load_digits()
        pixels = np.round(bunch.images * (255 / 16)).astype(np.uint8)
        labels = bunch.target.astype(np.int64)
        report(1.0, "digits")
        return Dataset(self.name, self.title, ArrayImages(pixels), labels, tuple("0123456789"),
                       hashlib.sha256(pixels.tobytes() + labels.tobytes()).hexdigest(), 8, True,
                       tuple(f"digit {index}" for index in range(len(pixels))))
