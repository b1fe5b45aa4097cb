"""One embedding of a run, as search, maps and export take it, whether it is stored or refined."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from udml_core.base.arrays import Array, Floats, Integers, evenly_spaced, rows_of
from udml_core.base.errors import UserError
from udml_core.base.paths import dataset_cache
from udml_core.methods.model import Model, Picture
from udml_core.numerics import galleries
from udml_core.numerics.neighbors import nearest, search, without_own
from udml_core.runs import Run
from udml_core.runs.search.names import frame_words
from udml_core.runs.search.query import Query

COSINE, DISTANCE = "cosine similarity", "distance"
CHUNK = 1_000
"""Number of queries that a large gallery searches at once."""
CHECKED = 64
"""Number of rows that tell whether a stored file belongs to an embedding."""


class Nearest(NamedTuple):
    """The nearest images of a query, nearest first.

    Attributes:
        images: Image indices (k,).
        distances: Euclidean distances (k,).
        similarities: Cosine similarities (k,) or the scores of a re-ranking; None without unit length.
    """

    images: Sequence[int]
    distances: Sequence[float]
    similarities: Sequence[float] | None


class Index(Protocol):
    """A search index over the images of an embedding.

    Attributes:
        measure: What orders the hits, in words.
    """

    @property
    def measure(self) -> str: ...

    @property
    def accuracy(self) -> str:
        """How many of the nearest images an approximate search finds, in words; empty for an exact search."""

    def embed(self, image: Picture) -> Array:
        """Return a user's image (l,) as part of a query."""

    def nearest(self, query: Query, k: int, candidates: Array) -> Nearest:
        """Find the nearest images of a query.

        Args:
            query: The query.
            k: Number of images; fewer if there are fewer candidates.
            candidates: Mask (n,) of the images to search.
        """

    def nearest_each(self, images: Integers, candidates: Array) -> Integers:
        """Find the nearest candidate of each of several images of the embedding, other than the image itself.

        Args:
            images: Image indices (q,).
            candidates: Mask (n,) of the images to search, at least two of them.

        Returns:
            Image indices (q,).
        """

    def neighbors(self, images: Integers, k: int, candidates: Array) -> tuple[Integers, Floats]:
        """Find the nearest candidates of each of several candidates, without the image itself.

        Args:
            images: Image indices (q,), which are candidates.
            k: Number of neighbors; fewer if there are fewer candidates.
            candidates: Mask (n,) of the images to search.

        Returns:
            Image indices (q, k), −1 where a stored ranking ends, and the distances (q, k) that `nearest` gives.
        """


@dataclass(frozen=True, eq=False)
class Frame:
    """An embedding of a run by its name.

    Attributes:
        run: The run.
        name: `frozen`, `initial`, `final`, the number of an epoch, or the id of a refinement.
        rows: Embeddings (m, l).
        indices: Image indices (m,), ascending.
        part: The part of the data set that the images are, in words; empty for all images.
        open_index: Opens the search index.
        load_model: Loads the model.
        note: How the embedding was made and is searched, in words; empty for an embedding that the run stores.
    """

    run: Run
    name: str
    rows: Array
    indices: Array
    part: str
    open_index: Callable[[], Index] = field(repr=False)
    load_model: Callable[[], Model] = field(repr=False)
    note: str = ""

    @property
    def words(self) -> str:
        """The name in words, such as `after training`."""
        return frame_words(self.name, self.run)

    @cached_property
    def index(self) -> Index:
        """The search index, opened on first use."""
        return self.open_index()

    @property
    def model(self) -> Model:
        """The model that embeds new images.

        Raises:
            UserError: It is not stored.
        """
        return self.load_model()

    def take(self, indices: Array) -> Array:
        """Return the embeddings (m, l) of images.

        Raises:
            UserError: Some have none.
        """
        rows = rows_of(self.indices, indices)
        if (rows < 0).any():
            raise UserError(f"The frame {self.name} does not have the embedding of all {len(indices)} images. Choose "
                            "the same scope as the frame's.")
        is_whole = np.array_equal(rows, np.arange(len(self.rows)))
        return np.asarray(self.rows if is_whole else self.rows[rows])  # all rows stay on the disk


def frame_file(frame: Frame, folder: str) -> Path:
    """Return the file of what is known about an embedding; its name depends on the run, the name and some rows.

    Args:
        frame: The embedding.
        folder: A folder of the data set's cache.
    """
    rows = np.ascontiguousarray(frame.rows[evenly_spaced(len(frame.rows), CHECKED)])
    content = f"{frame.run.id} {frame.name} {frame.rows.shape} {len(frame.indices)}".encode() + rows.tobytes()
    name = hashlib.sha256(content).hexdigest()[:24]
    return dataset_cache(frame.run.spec().fingerprint) / folder / f"{name}.npz"


@dataclass(frozen=True, eq=False)
class StoredIndex:
    """A search index over rows as they are.

    Attributes:
        title: The embedding and its run, for messages.
        rows: Embeddings (m, l).
        indices: Image indices (m,), ascending.
        normalized: Whether the rows have unit length, so that hits have a cosine similarity.
        index: Index over the rows; a `Gallery` for a large data set, whose rows are all images.
        load_model: Loads the model.
        lacking: Why the embedding lacks an image, in words.
    """

    title: str
    rows: Array
    indices: Array
    normalized: bool
    index: Any
    load_model: Callable[[], Model]
    lacking: str

    @property
    def measure(self) -> str:
        return COSINE if self.normalized else DISTANCE

    @property
    def accuracy(self) -> str:
        measured = self.index.manifest.recall if isinstance(self.index, galleries.StoredGallery) else None
        return "" if measured is None else f"which finds {100 * measured.recall:.1f} % of the 10 nearest"

    def embed(self, image: Picture) -> Array:
        return self.load_model().embed(image)

    def nearest(self, query: Query, k: int, candidates: Array) -> Nearest:
        """Find the nearest images of a query by Euclidean distance.

        Raises:
            UserError: The embedding lacks a query image, or its model has another width.
        """
        missing = [image for image in query.indices if image not in self.indices]
        if missing:
            raise UserError(f"Image {missing[0]} {self.lacking}")
        vector, width = query.vector(self.rows, self.indices, self.normalized), self.rows.shape[1]
        if len(vector) != width:
            raise UserError(f"{self.title} has {width} dimensions and its model {len(vector)}: a file of the run is "
                            "damaged. Train the run again.")
        squared, images = self._search(vector, k, candidates)
        return Nearest(images.tolist(), [float(distance**0.5) for distance in squared],
                       [float(1.0 - distance / 2.0) for distance in squared] if self.normalized else None)

    def neighbors(self, images: Integers, k: int, candidates: Array) -> tuple[Integers, Floats]:
        kept, own = np.flatnonzero(candidates[self.indices]), rows_of(self.indices, images)
        k = min(k, len(kept) - 1)
        if k < 1:
            return np.zeros((len(images), 0), np.int64), np.zeros((len(images), 0), np.float32)
        if isinstance(self.index, galleries.StoredGallery):
            searched = np.zeros(len(self.indices), dtype=bool)
            searched[kept] = True
            chunks = [without_own(*self.index.search_rows(np.asarray(self.rows[some], np.float32), k + 1, searched),
                                  some) for some in np.array_split(own, -(-len(own) // CHUNK))]
            squared, rows = (np.concatenate(parts) for parts in zip(*chunks, strict=True))
        else:
            squared, positions = nearest(self.rows[kept], k, own=np.searchsorted(kept, own))
            rows = kept[positions]
        return self.indices[rows], np.sqrt(squared)

    def nearest_each(self, images: Integers, candidates: Array) -> Integers:
        """Find the nearest candidate (q,) of each image (q,) by Euclidean distance."""
        return self.neighbors(images, 1, candidates)[0][:, 0]

    def _search(self, vector: Array, k: int, candidates: Array) -> tuple[Array, Array]:
        """Return the squared distances (k,) and the image indices (k,) of the nearest candidates."""
        if isinstance(self.index, galleries.StoredGallery):
            k = min(k, int(candidates.sum()))
            if not k:
                return np.zeros(0, np.float32), np.zeros(0, np.int64)
            squared, rows = self.index.search_rows(np.asarray(vector[None], np.float32), k, candidates)
        else:
            squared, rows = search(self.index, vector[None], k, candidates[self.indices])
        return squared[0], self.indices[rows[0]]
