"""Search any stored embedding of a finished run: frozen, before and after training, or of an epoch."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from PIL import Image

from udml_core.base.arrays import Array, Integers
from udml_core.base.errors import UserError
from udml_core.base.files import read_array
from udml_core.data import catalog
from udml_core.data.dataset import Dataset, Report
from udml_core.data.encoders import Encoder
from udml_core.data.features import embed_pixels, features_path
from udml_core.data.splits import Split
from udml_core.exploration.failures import Atlas, History, failure_atlas, history
from udml_core.methods import Embedder
from udml_core.numerics import galleries
from udml_core.numerics.evaluation import average_precisions
from udml_core.numerics.neighbors import build_index, read_index, search
from udml_core.numerics.refinement.linear import unit_rows
from udml_core.runs import Run
from udml_core.runs.tasks import ADVICE

Which = Literal["initial", "final"]
Gallery = Literal["test", "all"]
FROZEN = "frozen"
COMPARED = 64
"""Number of images that tell whether training changed the embedding."""
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


@dataclass(frozen=True, eq=False)
class StoredEmbedding:
    """A stored embedding of all images, or of some.

    Attributes:
        rows: Embeddings (m, l).
        indices: Image indices (m,), ascending.
        normalized: Whether the rows have unit length, so that hits have a cosine similarity.
        index: Search index over the rows; a `StoredGallery` for a large data set.
    """

    rows: Array
    indices: Array
    normalized: bool
    index: Any

    def search(self, vector: Array, k: int, candidates: Array) -> tuple[Array, Array]:
        """Find the k nearest rows of a query.

        Args:
            vector: The query (l,).
            k: Number of rows.
            candidates: Mask (n,) of the images to search.

        Returns:
            Squared distances and image indices (k,).
        """
        if isinstance(self.index, galleries.StoredGallery):  # of all images, so that its rows are their indices
            k = min(k, int(candidates.sum()))
            if not k:
                return np.zeros(0, np.float32), np.zeros(0, np.int64)
            squared, rows = self.index.search_rows(np.asarray(vector[None], np.float32), k, candidates)
        else:
            squared, rows = search(self.index, vector[None], k, candidates[self.indices])
        return squared[0], self.indices[rows[0]]


class Retrieval:
    """Search among the images of a finished run in any of its stored embeddings.

    The embeddings are `frozen` (the backbone's features), `initial` (before training), `final` (after training), and
    each epoch by its number, such as `3`, with the fixed sample of test images only.

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
        self._stored: dict[str, StoredEmbedding] = {}
        self._embedders: dict[str, Embedder] = {}
        self._atlases: dict[Which, Atlas] = {}
        self._precisions: Array | None = None
        self._history: History | None = None

    @cached_property
    def split(self) -> Split:
        return self.spec.halves(self.dataset, "last")

    @property
    def kept(self) -> Integers:
        """Ascending indices (m,) of the images that are not excluded."""
        return np.setdiff1d(np.arange(len(self.dataset)), self.split.excluded)

    @cached_property
    def is_changed(self) -> bool:
        """Whether training changed the embedding; frozen features, for example, stay as they are."""
        before, after = (self.run.embeddings(which)[:COMPARED] for which in get_args(Which))
        return not np.array_equal(before, after)

    def stored_embeddings(self) -> list[str]:
        """List the embeddings that can be searched; frozen features only if the cache still holds them."""
        epochs = [str(number) for number in self.run.epoch_numbers() if number]
        return [*([FROZEN] if self._features_path.exists() else []), "initial", "final", *epochs]

    @property
    def _features_path(self) -> Path:
        return features_path(self.dataset, self.spec.encoder)

    def stored(self, name: str) -> StoredEmbedding:
        """Return a stored embedding, opened once.

        Raises:
            UserError: The run does not have it.
        """
        if name not in self._stored:
            self._stored[name] = self._open(name)
        return self._stored[name]

    def _open(self, name: str) -> StoredEmbedding:
        if name not in self.stored_embeddings() and name != "0":
            raise UserError(f"The run {self.run.id} has no embedding '{name[:40]}'. Choose one of "
                            f"{', '.join(self.stored_embeddings())}.")
        everything = np.arange(len(self.dataset))
        match name:
            case "final":
                rows = self._of_all("final")
                return StoredEmbedding(rows, everything, self.run.is_normalized("final"), self._final_index(rows))
            case "initial":
                rows = self._of_all("initial")
                return StoredEmbedding(rows, everything, self.run.is_normalized("initial"), build_index(rows))
            case "frozen":
                rows = unit_rows(read_array(self._features_path, mapped=True))
                return StoredEmbedding(rows, everything, True, build_index(rows))
        rows = self._of_sample(int(name), self.run.sample_indices())
        normalized = self.run.is_normalized("final" if int(name) else "initial")
        return StoredEmbedding(rows, self.run.sample_indices(), normalized, build_index(rows))

    def _of_all(self, which: Which) -> Array:
        """Return the embeddings of all images.

        Raises:
            UserError: They are missing, damaged or of another number of images.
        """
        return _with_rows(self.run.embeddings(which), len(self.dataset), f"the {which} embeddings")

    def _of_sample(self, epoch: int, sample: Array) -> Array:
        """Return the embedding of the fixed sample after an epoch.

        Raises:
            UserError: It is missing, damaged or of another number of images.
        """
        return _with_rows(self.run.epoch_sample(epoch), len(sample), f"the sample of epoch {epoch}")

    def _final_index(self, rows: Array) -> Any:
        """Return the stored index; rebuilt from the embeddings if it is missing or damaged."""
        if self.dataset.is_large:
            with suppress(UserError):
                large = galleries.StoredGallery.open(self.run.gallery_path)
                if (len(large), large.manifest.dimension) == rows.shape:
                    return large
            return build_index(rows)
        try:
            index = read_index(self.run.index_path)
        except UserError:
            return build_index(rows)
        return index if (index.ntotal, index.d) == rows.shape else build_index(rows)

    def embedder(self, name: str) -> Embedder:
        """Return the model of an embedding, loaded once.

        Raises:
            UserError: The model of an epoch is not stored.
        """
        if name not in self._embedders:
            match name:
                case "frozen":
                    self._embedders[name] = Embedder(Encoder(self.spec.encoder)).eval()
                case "initial":
                    self._embedders[name] = Embedder.load(self.run.initial_embedder_path)
                case "final":
                    self._embedders[name] = Embedder.load(self.run.embedder_path)
                case _:
                    raise UserError(f"Your own images cannot be embedded as in epoch {name}, because the models of "
                                    "epochs are not stored. Compare the embeddings before and after training.")
        return self._embedders[name]

    def embed(self, image: Image.Image, which: str = "final") -> Array:
        """Return the embedding (l,) of a user's image.

        Raises:
            UserError: The embedding is that of an epoch, whose model is not stored.
        """
        return self.embed_prepared(self.prepared(image)[None], which)[0]

    def prepared(self, image: Image.Image) -> Array:
        """Return an image as input of the network, uint8 (3, s, s)."""
        return self.embedder("final").encoder.prepare(image.convert("RGB"))

    def embed_prepared(self, pixels: Array, which: str = "final") -> Array:
        """Return the embeddings (b, l) of prepared images (b, 3, s, s)."""
        return embed_pixels(self.embedder(which), pixels)

    def search(self, query: Query, k: int = 10, which: str = "final", gallery: Gallery = "all",
               allowed: Array | None = None) -> list[Hit]:
        """Find the k images nearest to a query, without the query images.

        Args:
            query: The query.
            k: Number of hits; fewer if the gallery is smaller.
            which: The stored embedding: `frozen`, `initial`, `final` or the number of an epoch.
            gallery: Search all images or the test half.
            allowed: Mask (n,) of the images that may be retrieved; all if None.

        Returns:
            Hits, nearest first.

        Raises:
            UserError: The query has an unknown index or no image to add, its images cancel each other out, or the
                embedding does not exist or lacks a query image.
        """
        stored = self.stored(which)
        vector = query_vector(self._in_rows(query, which), stored.rows, stored.normalized)
        width = stored.rows.shape[1]
        if len(vector) != width:
            raise UserError(f"The embedding '{which}' of {self.run.id} has {width} dimensions and its model "
                            f"{len(vector)}: a file of the run is damaged. Train the run again.")
        candidates = self.searched(which, gallery, allowed)
        candidates[query.indices] = False
        return [Hit(rank, int(neighbor), float(distance**0.5),
                    float(1.0 - distance / 2.0) if stored.normalized else None, self.is_correct(query, int(neighbor)))
                for rank, (distance, neighbor) in enumerate(zip(*stored.search(vector, k, candidates), strict=True), 1)]

    def searched(self, which: str = "final", gallery: Gallery = "all", allowed: Array | None = None) -> Array:
        """Return the mask (n,) of the images that a search covers."""
        return searched_images(self.stored(which).indices, self.split, gallery, allowed, len(self.dataset))

    def describe_searched(self, which: str = "final", gallery: Gallery = "all", allowed: Array | None = None) -> str:
        """Describe what a search covers, such as "2,933 of 5,902 images searched (test half)".

        The search of a large data set is approximate: its measured recall is added.
        """
        part = "" if which in (FROZEN, *get_args(Which)) else "fixed sample of the test half"
        words = describe_searched(self.searched(which, gallery, allowed), self.split, gallery, allowed is not None,
                                  part)
        index = self.stored(which).index
        found = index.manifest.recall if isinstance(index, galleries.StoredGallery) else None
        return words if found is None else f"{words}, which finds {100 * found.recall:.1f} % of the 10 nearest"

    def _in_rows(self, query: Query, which: str) -> Query:
        """Replace the image indices of a query by rows of an embedding.

        Raises:
            UserError: An index is unknown, or the embedding lacks the image.
        """
        count, indices = len(self.dataset), self.stored(which).indices
        unknown = [index for index in query.indices if not 0 <= index < count]
        if unknown:
            raise UserError(f"The index of an image must be between 0 and {count - 1}, got {unknown[0]}.")
        missing = [index for index in query.indices if index not in indices]
        if missing:
            raise UserError(f"Image {missing[0]} has no embedding of epoch {which}: epochs keep a fixed sample of "
                            f"{len(indices):,} test images. Choose a query from the sample, or another embedding.")

        def rows(images: tuple[int | Array, ...]) -> tuple[int | Array, ...]:
            return tuple(int(np.searchsorted(indices, image)) if isinstance(image, int) else image for image in images)

        return Query(rows(query.add), rows(query.subtract))

    def search_item(self, index: int, k: int = 10, which: str = "final", gallery: Gallery = "all") -> list[Hit]:
        """Find the k images nearest to an image of the data set, without that image."""
        return self.search(Query((index,)), k, which, gallery)

    def search_image(self, image: Image.Image, k: int = 10, which: str = "final",
                     gallery: Gallery = "all") -> list[Hit]:
        """Find the k images nearest to a user's image."""
        return self.search(Query((self.embed(image, which),)), k, which, gallery)

    def is_correct(self, query: Query, index: int) -> bool | None:
        """Return whether an image has the class of a query; None if the added images have no known common class."""
        classes = self.dataset.evaluation_classes
        if classes is not None:
            added = [image for image in query.add if isinstance(image, int)]
            shared = classes[added].all(axis=0) if len(added) == len(query.add) else np.zeros(classes.shape[1], bool)
            return bool((shared & classes[index]).any()) if shared.any() and classes[index].any() else None
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
                            f"{self.dataset.without_labels}. Sort the images into one subfolder for each class.")
        if which not in self._atlases:
            test = self.split.test
            phase = f"searching with every test image, {'before' if which == 'initial' else 'after'} training"
            self._atlases[which] = failure_atlas(np.asarray(self._of_all(which)[test]), test,
                                                 self.dataset.labels[test], lambda share: report(share, phase))
        return self._atlases[which]

    def precisions(self, report: Report = lambda _share, _what: None) -> Array:
        """Return the average precision at R of every test image after training, whose mean is MAP@R.

        The result is cached.

        Returns:
            (t,) from 0 to 1 in the order of `split.test`; NaN for an image that is alone in its class.

        Raises:
            UserError: The data set has no classes.
        """
        if self.dataset.labels is None:
            raise UserError(f"MAP@R needs class labels, and {self.dataset.title} {self.dataset.without_labels}.")
        if self._precisions is None:
            test = self.split.test
            self._precisions = average_precisions(np.asarray(self._of_all("final")[test]), self.dataset.labels[test],
                                                  lambda share: report(share, "ranking all test images"))
        return self._precisions

    def history(self, report: Report = lambda _share, _what: None) -> History:
        """Find the nearest image of each image of the fixed sample after every epoch.

        The result is cached.

        Raises:
            UserError: The run has no epoch.
        """
        if self._history is None:
            sample, epochs = self.run.sample_indices(), tuple(self.run.epoch_numbers())
            labels = self.dataset.labels
            self._history = history(sample, epochs, (self._of_sample(epoch, sample) for epoch in epochs),
                                    None if labels is None else labels[sample],
                                    lambda share: report(share, "searching in every epoch"))
        return self._history


def _with_rows(rows: Array, count: int, what: str) -> Array:
    """Return rows if there are as many as images.

    Raises:
        UserError: There are not.
    """
    if len(rows) != count:
        raise UserError(f"The run stores {what} of {len(rows):,} images in place of {count:,}. Resume the run, or "
                        "start a new one.")
    return rows


def searched_images(covered: Array, split: Split, gallery: Gallery, allowed: Array | None, count: int) -> Array:
    """Return the mask (n,) of the images that a search covers.

    Args:
        covered: Indices of the images that the embedding has.
        split: Training and test half.
        gallery: Search all images or the test half.
        allowed: Mask (n,) of the images that may be retrieved; all if None.
        count: Number n of images in the data set.
    """
    mask = np.zeros(count, dtype=bool)
    mask[covered] = True
    mask[split.excluded] = False
    if gallery == "test":
        outside = np.ones(count, dtype=bool)
        outside[split.test] = False
        mask[outside] = False
    return mask if allowed is None else mask & allowed


def describe_searched(searched: Array, split: Split, gallery: Gallery, is_filtered: bool, part: str = "") -> str:
    """Describe what a search covers, such as "5,902 of 5,902 images searched (training half included)".

    Args:
        searched: Mask (n,) of the images.
        split: Training and test half.
        gallery: Whether all images or the test half were to be searched.
        is_filtered: Whether filters reduce the images.
        part: The part of the data set that the embedding has, in words; empty for all images.
    """
    half = "" if split.name == "all" else "test half" if gallery == "test" else "training half included"
    notes = ", ".join(note for note in (part or half, "filtered" if is_filtered else "") if note)
    return f"{searched.sum():,} of {len(searched):,} images searched" + (f" ({notes})" if notes else "")


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
