"""Search in what a finished run learnt, beside what it started from."""

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
NOTHING = 1e-6
"""A query shorter than this has no direction."""


@dataclass(frozen=True, eq=False)
class Query:
    """What is asked with: the mean of some images' embeddings, minus the mean of others'.

    Each image is a position in the data set, or the embedding (l,) of one from outside (`Retrieval.embed`).
    """

    add: tuple[int | Array, ...]
    subtract: tuple[int | Array, ...] = ()

    @property
    def own(self) -> list[int]:
        """Those of its images that are in the data set."""
        return [one for one in (*self.add, *self.subtract) if isinstance(one, int)]


@dataclass(frozen=True)
class Hit:
    """One retrieved image.

    distance: the Euclidean one. similarity: the cosine where embeddings are of unit length, else None. correct: whether
    it shares the class of the images that were added to the query, None where they have no class in common or it is
    unknown.
    """

    rank: int
    index: int
    distance: float
    similarity: float | None
    correct: bool | None

    @property
    def shown(self) -> float:
        """The number that people read: the similarity where there is one, else the distance."""
        return self.distance if self.similarity is None else self.similarity


class Retrieval:
    """A run's gallery: every image of its data set, embedded before and after training.

    Raises:
        UserError: the run is not done, or its data set is gone or has changed.
    """

    def __init__(self, run: Run, dataset: Dataset | None = None) -> None:
        self.run = run
        self.spec = run.spec()
        status = run.status()
        if status.state != "done":
            raise UserError(f"The run {run.id} is {status.state}, so there is nothing to search yet. "
                            + ADVICE[status.state])
        self.dataset = dataset or catalog.load(self.spec.dataset)
        if self.dataset.fingerprint != self.spec.fingerprint:
            raise UserError(f"The data set '{self.spec.dataset}' has changed since the run {run.id}, so its images "
                            "no longer match what was learnt. Restore it, or train again.")
        self._atlases: dict[Which, Atlas] = {}
        self._history: History | None = None

    @cached_property
    def split(self) -> Split:
        return make_split(self.dataset, self.spec.split)

    @cached_property
    def _final_index(self) -> Any:
        """As stored; made anew from the embeddings where that file is missing or broken."""
        try:
            return read_index(self.run.index_path)
        except UserError:
            return build_index(self.run.embeddings("final"))

    @cached_property
    def _initial_index(self) -> Any:
        return build_index(self.run.embeddings("initial"))

    @cached_property
    def _normalized(self) -> dict[Which, bool]:
        """Whether the embeddings are of unit length, so that hits have a cosine similarity."""
        return {"initial": self.run.is_normalized("initial"), "final": self.run.is_normalized("final")}

    @cached_property
    def _final_embedder(self) -> Embedder:
        return Embedder.load(self.run.embedder_path)

    @cached_property
    def _initial_embedder(self) -> Embedder:
        return Embedder.load(self.run.initial_embedder_path)

    def embed(self, image: Image.Image, which: Which = "final") -> Array:
        """The embedding (l,) of an image that a person brings."""
        return self.embed_prepared(self.prepared(image)[None], which)[0]

    def prepared(self, image: Image.Image) -> Array:
        """An image as the network reads it, uint8 (3, s, s)."""
        return self._final_embedder.encoder.prepare(image.convert("RGB"))

    def embed_prepared(self, pixels: Array, which: Which = "final") -> Array:
        """The embeddings (b, l) of prepared images (b, 3, s, s)."""
        return embed_pixels(self._final_embedder if which == "final" else self._initial_embedder, pixels)

    def search(self, query: Query, k: int = 10, which: Which = "final", gallery: Gallery = "test",
               allowed: Array | None = None) -> list[Hit]:
        """The k images nearest to a query, without the query's own; fewer where there are not so many.

        Args:
            allowed: (n,) bool, which images of the gallery may be found; all of them without it.

        Raises:
            UserError: the query names an image that is not there, adds none, or cancels itself out.
        """
        vector = self._vector(query, which)
        among = np.zeros(len(self.dataset), dtype=bool)
        among[self.split.test if gallery == "test" else slice(None)] = True
        if allowed is not None:
            among &= allowed
        among[query.own] = False
        index = self._final_index if which == "final" else self._initial_index
        squared, found = search(index, vector[None], k, among)
        label, labels, normalized = self._class_of(query), self.dataset.labels, self._normalized[which]
        return [Hit(rank, int(item), float(apart**0.5), float(1.0 - apart / 2.0) if normalized else None,
                    None if label is None or labels is None else bool(labels[item] == label))
                for rank, (apart, item) in enumerate(zip(squared[0], found[0], strict=True), 1)]

    def search_item(self, index: int, k: int = 10, which: Which = "final", gallery: Gallery = "test") -> list[Hit]:
        """The k images nearest to one of the data set's own, which is left out."""
        return self.search(Query((index,)), k, which, gallery)

    def search_image(self, image: Image.Image, k: int = 10, which: Which = "final",
                     gallery: Gallery = "test") -> list[Hit]:
        """The k images nearest to one that a person brings."""
        return self.search(Query((self.embed(image, which),)), k, which, gallery)

    def _vector(self, query: Query, which: Which) -> Array:
        """A query as one vector (l,), of unit length where embeddings are.

        Elsewhere a difference of images is a direction, which is gone from the middle of all images.
        """
        beyond = [one for one in query.own if not 0 <= one < len(self.dataset)]
        if beyond:
            raise UserError(f"The images are numbered 0 to {len(self.dataset) - 1}, got {beyond[0]}.")
        if not query.add:
            raise UserError("A query needs at least one image that is added, got none. Add one.")
        rows = self.run.embeddings(which)

        def mean(images: tuple[int | Array, ...]) -> Array:
            return np.mean([rows[one] if isinstance(one, int) else one for one in images], axis=0)

        normalized = self._normalized[which]
        vector = mean(query.add) - mean(query.subtract) if query.subtract else mean(query.add)
        length = float(np.linalg.norm(vector))
        if length < NOTHING and (normalized or query.subtract):
            raise UserError("The images of this query cancel each other out, so nothing is left to search with. "
                            "Take one of them out.")
        if normalized:
            return vector / length
        return vector + np.mean(rows, axis=0) if query.subtract else vector

    def _class_of(self, query: Query) -> int | None:
        """The class that all added images share."""
        labels = self.dataset.labels
        known = {int(labels[one]) if labels is not None and isinstance(one, int) else None for one in query.add}
        return known.pop() if len(known) == 1 else None

    def atlas(self, which: Which = "final", report: Report = lambda _share, _what: None) -> Atlas:
        """Where each test image's nearest other test image leads; computed once.

        Raises:
            UserError: the images have no classes.
        """
        if self.dataset.labels is None:
            raise UserError(f"Failures are queries whose nearest image is of another class, and {self.dataset.title} "
                            "has no classes. Sort the images into one sub-folder a class.")
        if which not in self._atlases:
            test = self.split.test
            words = {"initial": "before training", "final": "after training"}[which]
            self._atlases[which] = failure_atlas(np.asarray(self.run.embeddings(which)[test]), test,
                                                 self.dataset.labels[test],
                                                 lambda share: report(share, f"asking with every image, {words}"))
        return self._atlases[which]

    def history(self, report: Report = lambda _share, _what: None) -> History:
        """Each image's nearest within the fixed sample, after every epoch; computed once.

        Raises:
            UserError: the run kept no epoch.
        """
        if self._history is None:
            sample, epochs = self.run.sample_indices(), tuple(self.run.epoch_numbers())
            labels = self.dataset.labels
            self._history = history(sample, epochs, map(self.run.epoch_sample, epochs),
                                    None if labels is None else labels[sample],
                                    lambda share: report(share, "going through the epochs"))
        return self._history
