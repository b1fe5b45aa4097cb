"""Search the embeddings of a finished run, before and after training."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from PIL import Image

from udml_core.arrays import Array
from udml_core.data import catalog
from udml_core.data.dataset import Dataset, Report
from udml_core.data.features import embed_pixels
from udml_core.data.splits import Split, make_split
from udml_core.errors import UserError
from udml_core.exploration.failures import Atlas, History, failure_atlas, history
from udml_core.methods import Embedder
from udml_core.neighbors import build_index, read_index, search
from udml_core.runs import Run
from udml_core.tasks import ADVICE

Which = Literal["initial", "final"]
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


class Retrieval:
    """Search among the images of a finished run, embedded before and after training.

    Attributes:
        run: The run.
        spec: Its spec.
        dataset: Its data set.
    """

    def __init__(self, run: Run, dataset: Dataset | None = None) -> None:
        """Open a run for search.

        Args:
            run: A finished run.
            dataset: Its data set, if it is loaded already.

        Raises:
            UserError: The run is not done, or its data set is missing or has changed.
        """
        self.run = run
        self.spec = run.spec()
        status = run.status()
        if status.state != "done":
            raise UserError(f"Only a finished run can be searched, and {run.id} is {status.state}. "
                            f"{ADVICE[status.state]}")
        self.dataset = dataset or catalog.load(self.spec.dataset)
        run.check_dataset(self.dataset)
        self._atlases: dict[Which, Atlas] = {}
        self._history: History | None = None

    @cached_property
    def split(self) -> Split:
        return make_split(self.dataset, self.spec.split)

    @cached_property
    def _final_index(self) -> Any:
        """The stored index; rebuilt from the embeddings if the file is missing or damaged."""
        try:
            return read_index(self.run.index_path)
        except UserError:
            return build_index(self.run.embeddings("final"))

    @cached_property
    def _initial_index(self) -> Any:
        return build_index(self.run.embeddings("initial"))

    @cached_property
    def _normalized(self) -> dict[Which, bool]:
        """Whether the embeddings have unit length, so that hits have a cosine similarity."""
        return {"initial": self.run.is_normalized("initial"), "final": self.run.is_normalized("final")}

    @cached_property
    def _final_embedder(self) -> Embedder:
        return Embedder.load(self.run.embedder_path)

    @cached_property
    def _initial_embedder(self) -> Embedder:
        return Embedder.load(self.run.initial_embedder_path)

    def embed(self, image: Image.Image, which: Which = "final") -> Array:
        """Return the embedding (l,) of a user's image."""
        return self.embed_prepared(self.prepared(image)[None], which)[0]

    def prepared(self, image: Image.Image) -> Array:
        """Return an image as input of the network, uint8 (3, s, s)."""
        return self._final_embedder.encoder.prepare(image.convert("RGB"))

    def embed_prepared(self, pixels: Array, which: Which = "final") -> Array:
        """Return the embeddings (b, l) of prepared images (b, 3, s, s)."""
        return embed_pixels(self._final_embedder if which == "final" else self._initial_embedder, pixels)

    def search(self, query: Query, k: int = 10, which: Which = "final", gallery: Gallery = "test",
               allowed: Array | None = None) -> list[Hit]:
        """Find the k images nearest to a query, without the query images.

        Args:
            query: The query.
            k: Number of hits; fewer if the gallery is smaller.
            which: The embedding before training (`initial`) or after (`final`).
            gallery: Search the test half or all images.
            allowed: Mask (n,) of the images that may be retrieved; all if None.

        Returns:
            Hits, nearest first.

        Raises:
            UserError: The query has an unknown index or no image to add, or its images cancel each other out.
        """
        vector = self._vector(query, which)
        candidates = np.zeros(len(self.dataset), dtype=bool)
        candidates[self.split.test if gallery == "test" else slice(None)] = True
        if allowed is not None:
            candidates &= allowed
        candidates[query.indices] = False
        index = self._final_index if which == "final" else self._initial_index
        squared, neighbors = search(index, vector[None], k, candidates)
        label, labels, normalized = self._common_class(query), self.dataset.labels, self._normalized[which]
        return [Hit(rank, int(neighbor), float(distance**0.5), float(1.0 - distance / 2.0) if normalized else None,
                    None if label is None or labels is None else bool(labels[neighbor] == label))
                for rank, (distance, neighbor) in enumerate(zip(squared[0], neighbors[0], strict=True), 1)]

    def search_item(self, index: int, k: int = 10, which: Which = "final", gallery: Gallery = "test") -> list[Hit]:
        """Find the k images nearest to an image of the data set, without that image."""
        return self.search(Query((index,)), k, which, gallery)

    def search_image(self, image: Image.Image, k: int = 10, which: Which = "final",
                     gallery: Gallery = "test") -> list[Hit]:
        """Find the k images nearest to a user's image."""
        return self.search(Query((self.embed(image, which),)), k, which, gallery)

    def _vector(self, query: Query, which: Which) -> Array:
        """Return a query as one vector (l,).

        The vector has unit length if the embeddings have unit length. Otherwise a difference of means is a direction,
        and the vector is the mean of all images moved along it.
        """
        return query_vector(query, self.run.embeddings(which), self._normalized[which])

    def is_correct(self, query: Query, index: int) -> bool | None:
        """Return whether an image has the class of a query; None if the added images have no known common class."""
        label, labels = self._common_class(query), self.dataset.labels
        return None if label is None or labels is None else bool(labels[index] == label)

    def _common_class(self, query: Query) -> int | None:
        """Return the class of all added images; None if it differs or is unknown."""
        labels = self.dataset.labels
        classes = {int(labels[image]) if labels is not None and isinstance(image, int) else None for image in query.add}
        return classes.pop() if len(classes) == 1 else None

    def atlas(self, which: Which = "final", report: Report = lambda _share, _what: None) -> Atlas:
        """Find the nearest test image of each test image and compare their classes.

        The result is cached.

        Raises:
            UserError: The data set has no classes.
        """
        if self.dataset.labels is None:
            raise UserError(f"Failures are queries whose nearest image has another class, and {self.dataset.title} "
                            "has no classes. Sort the images into one subfolder for each class.")
        if which not in self._atlases:
            test = self.split.test
            phase = f"searching with every test image, {'before' if which == 'initial' else 'after'} training"
            self._atlases[which] = failure_atlas(np.asarray(self.run.embeddings(which)[test]), test,
                                                 self.dataset.labels[test], lambda share: report(share, phase))
        return self._atlases[which]

    def history(self, report: Report = lambda _share, _what: None) -> History:
        """Find the nearest image of each image of the fixed sample after every epoch.

        The result is cached.

        Raises:
            UserError: The run has no epoch.
        """
        if self._history is None:
            sample, epochs = self.run.sample_indices(), tuple(self.run.epoch_numbers())
            labels = self.dataset.labels
            self._history = history(sample, epochs, map(self.run.epoch_sample, epochs),
                                    None if labels is None else labels[sample],
                                    lambda share: report(share, "searching in every epoch"))
        return self._history


def query_vector(query: Query, embeddings: Array, normalized: bool) -> Array:
    """Return a query as one vector (l,).

    Args:
        query: The query.
        embeddings: Embeddings (n, l) of the data set.
        normalized: Whether they have unit length; the vector then has, too.

    Raises:
        UserError: The query has an unknown index or no image to add, or its images cancel each other out.
    """
    unknown = [index for index in query.indices if not 0 <= index < len(embeddings)]
    if unknown:
        raise UserError(f"The index of an image must be between 0 and {len(embeddings) - 1}, got {unknown[0]}.")
    if not query.add:
        raise UserError("A query needs at least one image to add, got none. Add an image.")

    def mean(images: tuple[int | Array, ...]) -> Array:
        return np.mean([embeddings[image] if isinstance(image, int) else image for image in images], axis=0)

    vector = mean(query.add) - mean(query.subtract) if query.subtract else mean(query.add)
    length = float(np.linalg.norm(vector))
    if length < SHORTEST and (normalized or query.subtract):
        raise UserError("The images of this query cancel each other out. Remove one of them.")
    if normalized:
        return vector / length
    return vector + np.mean(embeddings, axis=0) if query.subtract else vector
