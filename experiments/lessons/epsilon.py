"""Lesson 4: ε merges and shatters; and the digits that several lessons show."""

from __future__ import annotations

from typing import Any

import numpy as np

from udml_core.base.arrays import Array
from udml_core.data import catalog
from udml_core.exploration.lesson_examples import SMALLEST, Ascent, digits_ascent, smallest_ascent


def digits() -> dict[str, Any]:
    """Return the pixels of the 1,797 digits, 0 to 16, and their classes."""
    dataset = catalog.load("digits")
    pixels = np.stack([np.asarray(dataset.images[index].convert("L")) for index in range(len(dataset))])
    return {"pixels": np.round(pixels.reshape(len(dataset), -1) / 255 * 16).astype(np.uint8),
            "classes": dataset.labels.astype(np.uint8)}


def epsilon() -> dict[str, Any]:
    """Return the steps of authority ascent and the positions, of 45 points in three groups and of the digits."""
    dataset, ascent = digits_ascent()
    groups = np.repeat(np.arange(3, dtype=np.uint8), SMALLEST // 3)
    return {"points": _steps(smallest_ascent(), groups), "digits": _steps(ascent, dataset.labels)}


def _steps(ascent: Ascent, classes: Array) -> dict[str, Any]:
    rows, columns, relevancy = ascent.graph.steps()
    return {"rows": rows.astype(np.int16), "columns": columns.astype(np.int16),
            "relevancy": relevancy.astype(np.float32), "positions": ascent.positions.astype(np.float32),
            "classes": classes.astype(np.uint8)}
