"""A query and its hits, whichever embedding is searched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from udml_core.base.arrays import Array, rows_of
from udml_core.base.errors import UserError

Gallery = Literal["test", "all"]
SHORTEST = 1e-6
"""Smallest length of a query vector that still has a direction."""


@dataclass(frozen=True, eq=False)
class Query:
    """A query: the mean embedding of some images, minus the mean embedding of others.

    An image is its index in the data set, or the embedding (l,) of a user's image; see `Retrieval.embed`.

    Attributes:
        add: Images to add.
        subtract: Images to subtract.
    """

    add: tuple[int | Array, ...]
    subtract: tuple[int | Array, ...] = ()

    @property
    def indices(self) -> list[int]:
        """Indices of the query images that belong to the data set."""
        return [image for image in (*self.add, *self.subtract) if isinstance(image, int)]

    def vector(self, rows: Array, indices: Array, normalized: bool) -> Array:
        """Return the query as one vector (l,).

        Args:
            rows: Embeddings (m, l).
            indices: Image indices (m,), ascending; the images of the query are among them.
            normalized: Whether the rows have unit length; the vector then has, too.

        Raises:
            UserError: The query has no image to add, or its images cancel each other out.
        """
        if not self.add:
            raise UserError("A query needs at least one image to add, got none. Add an image.")

        def mean(images: tuple[int | Array, ...]) -> Array:
            return np.mean([rows[rows_of(indices, image)] if isinstance(image, int) else image
                            for image in images], axis=0)

        vector = mean(self.add) - mean(self.subtract) if self.subtract else mean(self.add)
        length = float(np.linalg.norm(vector))
        if length < SHORTEST and (normalized or self.subtract):
            raise UserError("The images of this query cancel each other out. Remove one of them.")
        if normalized:
            return vector / length
        return vector + np.mean(rows, axis=0) if self.subtract else vector


@dataclass(frozen=True)
class Hit:
    """A retrieved image.

    Attributes:
        rank: Rank, from 1.
        index: Index of the image.
        distance: Euclidean distance to the query.
        similarity: Cosine similarity to the query; None if the embeddings do not have unit length.
        correct: Whether the image has the class of the query; None if the added images have no known common class.
    """

    rank: int
    index: int
    distance: float
    similarity: float | None
    correct: bool | None

    @property
    def shown(self) -> float:
        """The displayed number: the similarity, or the distance if there is no similarity."""
        return self.distance if self.similarity is None else self.similarity
