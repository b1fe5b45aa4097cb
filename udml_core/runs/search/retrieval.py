"""Search among the images of a finished run, in any of its embeddings."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property

import numpy as np
from PIL import Image

from udml_core.base.arrays import Array, Integers
from udml_core.base.errors import UserError, counted
from udml_core.data.dataset import Dataset, Report
from udml_core.data.features import features_at_hand
from udml_core.data.given.exclusions import excluded_images
from udml_core.data.given.labels import assigned_classes, assigned_now
from udml_core.data.splits import Split
from udml_core.exploration.assigned import Labeled, labeled_images
from udml_core.exploration.failures import Atlas, NeighborHistory, failure_atlas, history
from udml_core.methods.model import Picture
from udml_core.numerics.evaluation.retrieval_measures import RetrievalMeasures, retrieval_measures
from udml_core.runs import Run
from udml_core.runs.search.frame import Frame
from udml_core.runs.search.frames import Frames
from udml_core.runs.search.names import FROZEN, TRAINED, Which, frame_words
from udml_core.runs.search.query import Gallery, Hit, Query
from udml_core.runs.tasks import ADVICE

MOST_VALUES = 2**26
"""Largest number of values of frozen features that are kept in memory without being asked for."""
COMPARED = 64
"""Number of images that tell whether training changed the embedding."""


class Retrieval:
    """Search among the images of a finished run in any of its embeddings, named as in `Frames`.

    Attributes:
        run: The run.
        spec: Its spec.
        dataset: Its data set.
        frames: Its embeddings.
    """

    def __init__(self, run: Run, dataset: Dataset | None = None) -> None:
        """Open a run for search.

        Args:
            run: A run that has embedded all images.
            dataset: Its data set, if it is loaded already.

        Raises:
            UserError: The run has no embeddings yet, or its data set is missing or has changed.
        """
        self.run = run
        self.spec = run.spec()
        status = run.status()
        if not status.can_search:
            raise UserError("A run can be searched as soon as it has embedded all images, and "
                            f"{run.id} is {status.state}. {ADVICE[status.state]}")
        self.dataset = dataset or run.dataset()
        run.check_dataset(self.dataset)
        self.frames = Frames(run, lambda: self.dataset, len(self.dataset))
        self._atlases: dict[tuple[Which, str], Atlas] = {}
        self._ranked: RetrievalMeasures | None = None
        self._history: NeighborHistory | None = None

    @cached_property
    def split(self) -> Split:
        return self.spec.halves(self.dataset, "last")

    @property
    def kept(self) -> Integers:
        """Ascending indices (m,) of the images that are not excluded, neither by the run nor since."""
        return np.setdiff1d(np.arange(len(self.dataset)), self.left_out)

    @property
    def left_out(self) -> Integers:
        """Ascending indices (m,) of the images that the run leaves out, or the user since."""
        return np.union1d(self.split.excluded, excluded_images(self.dataset))

    @cached_property
    def is_changed(self) -> bool:
        """Whether training changed the embedding; frozen features, for example, stay as they are."""
        before, after = (self.run.embeddings(which)[:COMPARED] for which in TRAINED)
        return not np.array_equal(before, after)

    @cached_property
    def before(self) -> str:
        """The embedding that shows what training achieved, beside the one after it.

        It is the frozen features, because a random start flatters every training; before training without them.
        """
        with suppress(UserError):  # the features are not stored, or their file is damaged
            if features_at_hand(self.dataset, self.spec.encoder).size <= MOST_VALUES:
                self.frame(FROZEN)
                return FROZEN
        return "initial"

    def frame(self, name: str) -> Frame:
        """Return an embedding by its name, opened once.

        Raises:
            UserError: The run does not have it.
        """
        return self.frames.frame(name)

    def embed(self, image: Picture, which: str = "final") -> Array:
        """Return the embedding (l,) of a user's image, as part of a query.

        Raises:
            UserError: The model of this embedding is not stored.
        """
        return self.frame(which).index.embed(image)

    def prepared(self, image: Image.Image) -> Array:
        """Return an image as input of the network, uint8 (3, s, s)."""
        return self.frames.embedder("final").encoder.prepare(image.convert("RGB"))

    def embed_prepared(self, pixels: Array, which: str = "final") -> Array:
        """Return the embeddings (b, l) of prepared images (b, 3, s, s)."""
        return self.frames.model(which).embed_prepared(pixels)

    def search(self, query: Query, k: int = 10, which: str = "final", gallery: Gallery = "all",
               allowed: Array | None = None) -> list[Hit]:
        """Find the k images nearest to a query, without the query images.

        Args:
            query: The query.
            k: Number of hits; fewer if the gallery is smaller.
            which: The embedding; a refinement has its own images only.
            gallery: Search all images or the test half.
            allowed: Mask (n,) of the images that may be retrieved; all if None.

        Returns:
            Hits, nearest first.

        Raises:
            UserError: The query has an unknown index or no image to add, its images cancel each other out, or the
                embedding does not exist or lacks a query image.
        """
        frame, count = self.frame(which), len(self.dataset)
        unknown = [index for index in query.indices if not 0 <= index < count]
        if unknown:
            raise UserError(f"The index of an image must be between 0 and {count - 1}, got {unknown[0]}.")
        candidates = self.searched(which, gallery, allowed)
        candidates[query.indices] = False
        nearest = frame.index.nearest(query, k, candidates)
        return [Hit(rank, image, distance, None if nearest.similarities is None else nearest.similarities[rank - 1],
                    self.is_correct(query, image))
                for rank, (image, distance) in enumerate(zip(nearest.images, nearest.distances, strict=True), 1)]

    def searched(self, which: str = "final", gallery: Gallery = "all", allowed: Array | None = None) -> Array:
        """Return the mask (n,) of the images that a search covers.

        Args:
            which: The embedding.
            gallery: Search all images or the test half.
            allowed: Mask (n,) of the images that may be retrieved; all if None.
        """
        mask = np.zeros(len(self.dataset), dtype=bool)
        mask[self.frame(which).indices] = True
        mask[self.left_out] = False
        if gallery == "test":
            outside = np.ones(len(mask), dtype=bool)
            outside[self.split.test] = False
            mask[outside] = False
        return mask if allowed is None else mask & allowed

    def describe_searched(self, which: str = "final", gallery: Gallery = "all", allowed: Array | None = None) -> str:
        """Describe what a search covers, such as "2,933 of 5,902 images searched (test half)".

        The search of a large data set is approximate: its measured recall is added.
        """
        searched, frame = self.searched(which, gallery, allowed), self.frame(which)
        half = "" if self.split.name == "all" else "test half" if gallery == "test" else "training half included"
        notes = ", ".join(note for note in (frame.part or half, "" if allowed is None else "filtered") if note)
        covered = f"{searched.sum():,} of {len(searched):,} images searched" + (f" ({notes})" if notes else "")
        return ", ".join(filter(None, (covered, frame.index.accuracy)))

    def search_item(self, index: int, k: int = 10, which: str = "final", gallery: Gallery = "all") -> list[Hit]:
        """Find the k images nearest to an image of the data set, without that image."""
        return self.search(Query((index,)), k, which, gallery)

    def search_image(self, image: Picture, k: int = 10, which: str = "final",
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
        """Find the nearest test image of each test image and compare their classes, without excluded images.

        The result is cached until other images are excluded.

        Raises:
            UserError: The data set has no classes, or fewer than two test images are left.
        """
        if self.dataset.labels is None:
            raise UserError(f"Failures are queries whose nearest image has another class, and {self.dataset.title} "
                            f"{self.dataset.without_labels}. Name two images of each of two classes on the page "
                            "Label, or sort the images into one folder for each class.")
        test = np.setdiff1d(self.split.test, self.left_out)
        if len(test) < 2:
            raise UserError(f"Failures compare at least two test images, and {counted(len(test), 'image')} of the test "
                            "half are not excluded. Include images again on the page Data.")
        return self._atlas(which, "test", test, self.dataset.labels[test], report)

    def labeled(self) -> Labeled | None:
        """Return the labeled images that are not excluded; None if they are too few to be searched.

        The classes keep their order, and so their codes, when further classes are assigned.
        """
        left_out = set(self.left_out.tolist())
        labels = {image: label for image, label in assigned_now(self.dataset).items() if image not in left_out}
        return labeled_images(labels, assigned_classes(self.dataset))

    def labeled_atlas(self, labeled: Labeled, which: Which = "final",
                      report: Report = lambda _share, _what: None) -> Atlas:
        """Find the nearest labeled image of each labeled image that is not alone in its class.

        The result is cached until other images have labels.
        """
        atlas = self._atlas(which, "labeled", labeled.images, labeled.codes, report)
        return atlas.of_queries(labeled.queries)

    def _atlas(self, which: Which, what: str, images: Integers, classes: Integers, report: Report) -> Atlas:
        known = self._atlases.get((which, what))
        if known is None or not (np.array_equal(known.queries, images) and np.array_equal(known.classes, classes)):
            phase = f"searching with every {what} image, {frame_words(which)}"
            known = self._atlases[which, what] = failure_atlas(self.frame(which).take(images), images, classes,
                                                               lambda share: report(share, phase))
        return known

    def ranked(self, report: Report = lambda _share, _what: None) -> RetrievalMeasures:
        """Rank all test images for each test image after training, in the order of `split.test`.

        The result is cached.

        Raises:
            UserError: The data set has no classes.
        """
        if self.dataset.labels is None:
            raise UserError(f"MAP@R needs class labels, and {self.dataset.title} {self.dataset.without_labels}.")
        if self._ranked is None:
            test = self.split.test
            self._ranked = retrieval_measures(self.frame("final").take(test), self.dataset.labels[test], whole=True,
                                              report=lambda share: report(share, "ranking all test images"))
        return self._ranked

    def precisions(self, report: Report = lambda _share, _what: None) -> Array:
        """Return the average precision at R of every test image, whose mean is MAP@R; see `ranked`.

        Returns:
            (t,) from 0 to 1; NaN for an image that is alone in its class.
        """
        return self.ranked(report).average_precisions

    def history(self, report: Report = lambda _share, _what: None) -> NeighborHistory:
        """Find the nearest image of each image of the fixed sample after every epoch.

        The result is cached.

        Raises:
            UserError: The run has no epoch.
        """
        if self._history is None:
            sample, epochs = self.run.sample_indices(), tuple(self.run.epoch_numbers())
            labels = self.dataset.labels
            self._history = history(sample, epochs, (self.frames.open(str(epoch)).rows for epoch in epochs),
                                    None if labels is None else labels[sample],
                                    lambda share: report(share, "searching in every epoch"))
        return self._history
