"""Lesson 3: easy, semi-hard, hard. The triplets, their labels and the first map; training runs in the browser."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from experiments.lessons.epsilon import digits
from udml_core.base.arrays import Array
from udml_core.data import catalog
from udml_core.numerics.sampling import cluster_triplets, generator

CLASSES = (0, 1, 2, 3, 4, 6)
EACH = 50
"""Images of each class."""
WRONG = 0.1
"""Share of images with a wrong label."""
PER_IMAGE = 40
"""Triplets with an image as their anchor."""


def unit_pixels(rows: Array) -> Array:
    """Return images (n, 64) with length 1, from the pixels that the browser reads too."""
    pixels = digits()["pixels"][rows].astype(np.float64)
    return pixels / np.linalg.norm(pixels, axis=1, keepdims=True)


def hardness() -> dict[str, Any]:
    """Return images, their true classes and labels, shuffled triplets, and the first map's projection.

    The first map shows the two principal components.
    """
    digit_of = catalog.load("digits").labels
    random = np.random.default_rng(1)
    rows = np.sort(np.concatenate([random.choice(np.flatnonzero(digit_of == digit), EACH, replace=False)
                                   for digit in CLASSES]))
    classes = np.searchsorted(CLASSES, digit_of[rows])
    labels = classes.copy()
    wrong = random.choice(len(rows), int(WRONG * len(rows)), replace=False)
    labels[wrong] = (classes[wrong] + random.integers(1, len(CLASSES), len(wrong))) % len(CLASSES)
    triplets = cluster_triplets(torch.from_numpy(labels), PER_IMAGE, len(rows) * PER_IMAGE, generator(0, 0)).numpy()
    points = unit_pixels(rows)
    components = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2][:2].T
    return {"rows": rows.astype(np.int16), "classes": classes.astype(np.uint8), "labels": labels.astype(np.uint8),
            "triplets": triplets[np.random.default_rng(0).permutation(len(triplets))].astype(np.int16),
            "projection": components.astype(np.float32)}
