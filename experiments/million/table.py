"""A large table of embeddings: real embeddings repeated with noise, and thumbnails that many rows share.

The embeddings are features of the 6,000 images of Fashion-MNIST that come with the app, reduced by PCA. Row i repeats
image i mod 6,000 with noise. Its thumbnail is the image itself, so that a folder of 6,000 small files serves any number
of rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from udml_core.base.arrays import Array
from udml_core.data import catalog
from udml_core.data.encoders import Encoder
from udml_core.data.features import features_of
from udml_core.data.thumbnails import make_thumbnail
from udml_core.numerics.neighbors import nearest
from udml_core.work.jobs.planning import encoder_of

SOURCE, BACKBONE = "fashion-mini", "efficientnet-lite0"
WIDTH = 128
NOISE = 0.5
"""Length of the noise, as a multiple of the median distance of an image to its nearest neighbor."""
BLOCK = 50_000
SHOPS = 20
"""Values of a column to filter by."""


def write_table(folder: Path, rows: int, width: int = WIDTH, seed: int = 0) -> Path:
    """Write vectors, columns and thumbnails of a large table into a new folder; return the path of the vectors.

    Args:
        folder: A new folder.
        rows: Number of rows.
        width: Dimensions of an embedding.
        seed: Seed of the noise and the columns.
    """
    folder.mkdir(parents=True)
    dataset = catalog.load(SOURCE)
    assert dataset.labels is not None
    base = _reduced(np.asarray(features_of(dataset, Encoder(encoder_of(dataset, BACKBONE)))), width)
    images = folder / "images"
    images.mkdir()
    for index in range(len(dataset)):
        make_thumbnail(dataset.images[index], 32).save(images / f"{index:04d}.png")
    path = folder / f"{rows}.npy"
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (rows, width)})
        for block in _repeated(base, rows, seed):
            file.write(block.tobytes())
    source, random = np.arange(rows) % len(dataset), np.random.default_rng(seed + 1)
    class_names = np.array(dataset.class_names)
    parquet.write_table(pa.table({
        "class": class_names[dataset.labels[source]],
        "image_path": np.array([f"images/{index:04d}.png" for index in range(len(dataset))])[source],
        "shop": np.array([f"shop {number}" for number in range(SHOPS)])[random.integers(0, SHOPS, rows)],
        "price": np.round(random.lognormal(3.0, 0.5, rows), 2)}), path.with_suffix(".parquet"))
    return path


def _reduced(features: Array, width: int) -> Array:
    """Return the unit rows (n, width) of features projected on their principal axes."""
    centered = features - features.mean(axis=0)
    axes = np.linalg.eigh(centered.T @ centered).eigenvectors[:, ::-1][:, :width]
    return _unit(centered @ axes)


def _repeated(base: Array, rows: int, seed: int) -> Iterator[Array]:
    """Yield blocks of the rows (b, d) of a base (n, d), repeated with noise, of unit length."""
    random, (count, width) = np.random.default_rng(seed), base.shape
    length = NOISE * float(np.median(np.sqrt(nearest(base, 1)[0]))) / np.sqrt(width)
    for start in range(0, rows, BLOCK):
        chosen = np.arange(start, min(start + BLOCK, rows)) % count
        yield _unit(base[chosen] + length * random.standard_normal((len(chosen), width), dtype=np.float32))


def _unit(rows: Array) -> Array:
    unit: Array = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype("<f4")
    return unit
