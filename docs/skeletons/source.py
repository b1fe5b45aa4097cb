"""Stripes: gratings in four directions, as an example of a data set."""

import hashlib

import numpy as np

from udml_core.data.dataset import ArrayImages, Dataset, Report
from udml_core.data.sources.source import Source

SIDE, CLASSES, EACH = 16, ("horizontal", "falling", "vertical", "rising"), 50


class Stripes(Source):
    """Gray images of 16×16 pixels, whose class is the direction of their stripes."""

    name = "stripes"
    title = "Stripes"
    summary = "200 gratings of 16×16 pixels in four directions."
    images = EACH * len(CLASSES)
    classes = len(CLASSES)

    def missing(self) -> str | None:
        return None  # otherwise which files are missing, and how to get them

    def load(self, report: Report) -> Dataset:
        random = np.random.default_rng(0)
        y, x = np.mgrid[:SIDE, :SIDE]
        labels = np.repeat(np.arange(len(CLASSES)), EACH)
        angles = labels[:, None, None] * np.pi / 4
        waves = np.sin(y * np.cos(angles) + x * np.sin(angles) + random.uniform(0, 6, (self.images, 1, 1)))
        pixels = np.round(127.5 * (waves + 1)).astype(np.uint8)
        report(1.0, self.name)
        return Dataset(self.name, self.title, ArrayImages(pixels), labels, CLASSES,
                       hashlib.sha256(pixels.tobytes()).hexdigest(), SIDE, True,
                       tuple(f"stripes {number}" for number in range(self.images)))
