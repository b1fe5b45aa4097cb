"""Embeddings, images and labels as a user holds them in a program or a notebook, without a data set or a run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd
from PIL import Image

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError, quoted
from udml_core.data.dataset import ArrayImages, read_user_image
from udml_core.data.sources.versions import BLANK
from udml_core.data.thumbnails import make_thumbnail
from udml_core.exploration.map_content import Color, Layout
from udml_core.exploration.quick_map import NEIGHBORS, quick_map
from udml_core.numerics.neighbors import nearest

MOST_JOINED = 10_000
"""Number of images up to which the neighbors of all are searched, which takes seconds."""

LARGEST = 1e12
"""Largest number of a vector, so that squares, and sums of them, are finite in float32."""


@dataclass(frozen=True)
class Collection:
    """Embedded images.

    Attributes:
        index: The name of each image in pandas, of the rows of the embeddings, images or labels.
        embeddings: (n, d) float32.
        images: An image or the path of an image for each row.
        layout: Positions on the map, and the nearest neighbors where they are known.
        color: The labels as colors of the map.
        group: A name that no other collection has.
        unread: Why an image is gray, by its row, as far as images were drawn.
    """

    index: pd.Index[Any]
    embeddings: Array
    images: Sequence[Any] | ArrayImages
    layout: Layout
    color: Color
    group: str = field(default_factory=lambda: uuid4().hex[:8])
    unread: dict[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.embeddings)

    @property
    def codes(self) -> Array | None:
        """The class of each image (n,), −1 for none; None without classes."""
        return self.color.values if self.color.names and self.color.label else None

    def name(self, row: int) -> str:
        """Return the file name of an image, or its name in the index without a file."""
        image = self.images[row]
        return os.path.basename(image) if isinstance(image, str | os.PathLike) else f"image {self.index[row]}"

    def class_name(self, row: int) -> str:
        """Return the name of an image's class; empty without one."""
        return "" if self.codes is None or self.codes[row] < 0 else self.color.names[self.codes[row]]

    def thumbnail(self, row: int, cell: int) -> Image.Image:
        """Return an image in a square with a side in pixels.

        Raises:
            UserError: The image cannot be read, or is none.
        """
        image = self.images[row]
        if isinstance(image, str | os.PathLike):
            image = read_user_image(Path(image), str(image), cell)
        if not isinstance(image, Image.Image):
            raise UserError(f"Each of `images` must be a path or a PIL image; got {_described(image)} in row {row}.")
        return make_thumbnail(image.convert("RGB"), cell)

    def shown(self, row: int, cell: int) -> Image.Image:
        """Return a thumbnail, gray for a file that cannot be read, which is then in `unread`.

        Raises:
            UserError: It is neither a path nor an image.
        """
        try:
            return self.thumbnail(row, cell)
        except UserError as error:
            if not isinstance(self.images[row], str | os.PathLike):
                raise
            self.unread[row] = str(error)
            return Image.new("RGB", (cell, cell), BLANK)

    def nearest(self, row: int, k: int) -> tuple[Array, Array]:
        """Return the rows (k,) of the images nearest to an image, and their Euclidean distances; fewer if there are."""
        own = np.array([row])
        squares, rows = nearest(self.embeddings, min(k, len(self) - 1), own=own)
        return rows[0], np.sqrt(squares[0])


def collect(embeddings: Any, images: Any, labels: Any = None, positions: Any = None) -> Collection:
    """Check embeddings, images and labels, and lay out their map.

    Args:
        embeddings: Vectors (n, d): an array, a tensor, a data frame, or a series or list of n vectors.
        images: A path or a PIL image for each row, or an uint8 array (n, height, width) or (n, height, width, 3).
        labels: A class or a number for each row; None or NaN for images without.
        positions: Positions (n, 2) on the map, such as a UMAP layout; the two principal axes if None.

    Raises:
        UserError: An argument has another form, or they differ in length or index.
    """
    vectors = _numbers(embeddings, "embeddings")
    count = len(vectors)
    if count < 2:
        raise UserError(f"`embeddings` must have at least 2 rows; got {count}.")
    shown = _images(images)
    if positions is not None and np.all(pd.isna(np.asarray(positions, dtype=object))):  # an export without a map
        positions = None
    places = quick_map(vectors) if positions is None else _numbers(positions, "positions")
    if places.shape[1] != 2:
        raise UserError(f"`positions` must have 2 columns; got {places.shape[1]}.")
    for name, values in (("images", shown), ("labels", labels), ("positions", places)):
        if values is not None and len(values) != count:
            raise UserError(f"`{name}` must have a value for each of the {count:,} embeddings; got {len(values):,}.")
    neighbors = nearest(vectors, min(NEIGHBORS, count - 1))[1] if count <= MOST_JOINED else None
    layout = Layout(np.arange(count), places, "notebook", neighbors=neighbors)
    return Collection(_shared_index(count, embeddings=embeddings, images=images, labels=labels, positions=positions),
                      vectors, shown, layout,
                      _color(labels, count))


def _described(value: Any) -> str:
    """Return a value as messages quote it; an array's or tensor's type and shape in place of its numbers."""
    return f"a {type(value).__name__} of the shape {tuple(value.shape)}" if hasattr(value, "shape") else quoted(value)


def _numbers(values: Any, name: str) -> Array:
    """Return a matrix of numbers as float32."""
    if hasattr(values, "detach"):  # a tensor, also with a gradient, of a type that NumPy lacks, or on a GPU
        values = values.detach().float().cpu()
    if isinstance(values, pd.Series) or (isinstance(values, np.ndarray) and values.dtype == object):
        values = list(values)  # a column of vectors, as `images.parquet` has
    try:
        matrix = np.asarray(values, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise UserError(f"`{name}` must be an array of numbers; got {_described(values)}.") from error
    if matrix.ndim != 2 or not matrix.shape[1]:
        raise UserError(f"`{name}` must be an array of rows and columns; got the shape {matrix.shape}.")
    broken = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if len(broken):
        raise UserError(f"`{name}` must be finite; row {broken[0]} is not. Remove such rows.")
    largest = np.abs(matrix).max()
    if largest > LARGEST:
        raise UserError(f"`{name}` must be between −{LARGEST:g} and {LARGEST:g}; got {largest:.3g}, whose distances "
                        "are too large. Divide all numbers by the same one.")
    return matrix


def _images(images: Any) -> Sequence[Any] | ArrayImages:
    if isinstance(images, str | os.PathLike):
        raise UserError(f"`images` must have a path or an image for each row; got the single path {quoted(images)}. "
                        "List the files, such as sorted(Path(folder).rglob('*.*')), in the order of the embeddings.")
    if not isinstance(images, np.ndarray) or images.dtype == object or images.dtype.kind == "U":
        return list(images)
    if images.dtype != np.uint8 or images.ndim not in (3, 4) or (images.ndim == 4 and images.shape[3] != 3):
        raise UserError("An array of `images` must be uint8 of the shape (n, height, width) or (n, height, width, 3); "
                        f"got {images.dtype} of the shape {images.shape}.")
    return ArrayImages(images)


def _shared_index(count: int, **given: Any) -> pd.Index[Any]:
    """Return the index of the first pandas object; rows from 0 without one."""
    known = {name: values.index for name, values in given.items() if isinstance(values, pd.Series | pd.DataFrame)}
    first = next(iter(known), None)
    if first is None:
        return pd.RangeIndex(count)
    for name, index in known.items():
        if not index.equals(known[first]):
            raise UserError(f"The index of `{name}` must equal that of `{first}`. Order its rows with "
                            f"{name}.loc[{first}.index], or remove its index with {name}.reset_index(drop=True).")
    return known[first]


def _color(labels: Any, count: int) -> Color:
    """Return labels as colors: floating-point numbers on a scale, other values as classes."""
    if labels is None:
        return Color("", np.zeros(count, dtype=np.int64), ("images",))
    if hasattr(labels, "detach"):  # a tensor, whose elements would be tensors
        labels = labels.detach().cpu().numpy()
    values = np.asarray(labels)
    if values.ndim != 1:
        raise UserError(f"`labels` must be one value for each embedding; got the shape {values.shape}.")
    if values.dtype.kind == "f":
        return Color("label", values, none="no label")
    series = pd.Series(list(labels), dtype=object)
    known = list(series.dropna().unique())
    try:
        known.sort()
    except TypeError:  # of several types
        known.sort(key=str)
    if not known:
        return _color(None, count)
    codes = series.map({label: code for code, label in enumerate(known)}).fillna(-1)
    return Color("class", codes.to_numpy(dtype=np.int64), tuple(map(str, known)), none="no label")
