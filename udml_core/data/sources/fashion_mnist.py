"""A subset of Fashion-MNIST that is part of the app."""

from __future__ import annotations

import numpy as np

from udml_core.base.paths import ASSETS
from udml_core.data.dataset import Dataset, Report
from udml_core.data.sources.idx import CLOTHES, gray_dataset
from udml_core.data.sources.source import Source


class FashionMini(Source):
    """500 training and 100 test images of each Fashion-MNIST class (Zalando, MIT).

    They are in `assets/fashion-mini.npz`.
    """

    name = "fashion-mini"
    title = "Fashion-MNIST, 6,000 images"
    summary = "600 photographs of each of 10 kinds of clothing, 28×28 pixels. Part of the app."
    images = 6000
    classes = 10

    def missing(self) -> str | None:
        return None if (ASSETS / "fashion-mini.npz").exists() else (
            "The file assets/fashion-mini.npz is missing. Restore it from the project.")

    def load(self, report: Report) -> Dataset:
        with np.load(ASSETS / "fashion-mini.npz", allow_pickle=False) as stored:
            pixels, labels, is_test = stored["pixels"], stored["labels"].astype(np.int64), stored["is_test"]
        report(1.0, "Fashion-MNIST")
        return gray_dataset(self, pixels, labels, is_test, CLOTHES)
