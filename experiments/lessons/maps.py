"""Lesson 10: t-SNE and UMAP maps of digits and of random pixels."""

from __future__ import annotations

from typing import Any

import numpy as np

from udml_core.base.arrays import Array
from udml_core.data import catalog
from udml_core.exploration.map_values import neighbors_kept
from udml_core.numerics.evaluation import distortion
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.projection.tsne import tsne_layout
from udml_core.numerics.projection.umap import umap_layouts

COUNT, SIDE, LEVELS = 600, 8, 16
NEIGHBORS = 10
"""Number of neighbors that a map is judged by."""
PERPLEXITIES = (2, 5, 30, 100)
UMAP_NEIGHBORS = (5, 15, 50, 200)


def chosen_digits() -> Array:
    """Return the indices of 600 digits, drawn with seed 0."""
    return np.sort(np.random.default_rng(0).permutation(len(catalog.load("digits")))[:COUNT])


def digits_pixels() -> Array:
    """Return the pixels (600, 64) of the chosen digits, 0 to 16."""
    dataset = catalog.load("digits")
    images = np.stack([np.asarray(dataset.images[index].convert("L")).ravel() for index in chosen_digits()])
    return np.round(images / 255 * LEVELS).astype(np.uint8)


def random_pixels() -> Array:
    """Return random pixels (600, 64), 0 to 16."""
    return np.random.default_rng(0).integers(0, LEVELS + 1, (COUNT, SIDE * SIDE)).astype(np.uint8)


def vectors(pixels: Array) -> Array:
    """Return pixels as vectors of unit length."""
    rows = pixels.astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def quality(points: Array, positions: Array) -> dict[str, float]:
    """Measure a map: the mean share of true neighbors kept, trustworthiness and continuity."""
    trust, continuity = distortion(points, positions, NEIGHBORS)
    kept = neighbors_kept(nearest(points, NEIGHBORS)[1], nearest(positions, NEIGHBORS)[1])
    return {"kept": float(kept.mean()), "trustworthiness": float(trust.mean()), "continuity": float(continuity.mean())}


def maps() -> dict[str, Any]:
    """Return the pixels, and every map with its quality."""
    content: dict[str, Any] = {"classes": catalog.load("digits").labels[chosen_digits()].astype(np.uint8)}
    for name, pixels in {"digits": digits_pixels(), "noise": random_pixels()}.items():
        points = vectors(pixels)
        layouts = {f"tsne{size}": tsne_layout(points, size) for size in PERPLEXITIES}
        layouts |= {f"umap{size}": umap_layouts([points], size)[0] for size in UMAP_NEIGHBORS}
        content[name] = {"pixels": pixels, "maps": {
            key: {"positions": positions.astype(np.float32)} | quality(points, positions.astype(np.float32))
            for key, positions in layouts.items()}}
    return content
