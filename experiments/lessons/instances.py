"""Lesson 7: every image its own class."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from experiments.lessons.epsilon import digits
from udml_core.data.augmentation import Augmentation

PER_CLASS = 8
SMALLEST = 0.75
"""Smallest share of the image area that a view keeps."""


def instances() -> dict[str, Any]:
    """Return two random views, 8 × 8 pixels each, of some digits of every class.

    Their embedding, as the lesson computes it, is the difference from the mean view, divided by its length.
    """
    drawn = digits()
    random = np.random.default_rng(3)
    rows = np.concatenate([np.sort(random.choice(np.flatnonzero(drawn["classes"] == digit), PER_CLASS, replace=False))
                           for digit in range(10)])
    images = torch.from_numpy(drawn["pixels"][rows].reshape(-1, 1, 8, 8).repeat(3, axis=1) * 15)
    augmentation = Augmentation(smallest=SMALLEST, flip=False, gray=0, jitter=None)
    generator = torch.Generator().manual_seed(3)
    views = [augmentation(images, generator)[:, 0].reshape(len(rows), 64) / 15 for _view in range(2)]
    return {"views": torch.cat(views).round().clamp(0, 16).numpy().astype(np.uint8),
            "classes": drawn["classes"][rows]}
