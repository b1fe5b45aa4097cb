"""Two embeddings of a data set, and the queries for which their nearest images differ, in the order of judging."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from udml_core.base.arrays import Array, Integers
from udml_core.base.errors import UserError
from udml_core.data.dataset import Dataset
from udml_core.runs.search.query import Gallery
from udml_core.runs.search.retrieval import Retrieval

MOST_QUERIES = 20_000
"""Largest number of queries; of more images, so many are drawn at random."""
FEWEST = 3
"""Number of images at least, because two images are each other's nearest in every embedding."""
SEPARATOR = ":"


@dataclass(frozen=True, eq=False)
class Side:
    """An embedding to compare.

    Attributes:
        retrieval: The search of its run.
        frame: Its name within the run, as in `Frames`.
    """

    retrieval: Retrieval
    frame: str

    @property
    def name(self) -> str:
        """The name of the embedding among all runs, RUN:FRAME."""
        return side_name(self.retrieval.run.id, self.frame)


def side_name(run_id: str, frame: str) -> str:
    """Return the name of a run's embedding among all runs, RUN:FRAME."""
    return f"{run_id}{SEPARATOR}{frame}"


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two embeddings A and B, and the queries for which their nearest images differ.

    Attributes:
        dataset: The data set.
        names: Names of A and B, RUN:FRAME.
        gallery: The images that are searched.
        images: Number of searched images, each of which could be a query.
        queries: Number of images that were queries.
        differing: Indices (m,) of the queries whose nearest images differ, in the order of judging.
        candidates: Indices (m, 2) of the nearest images of these queries in A and in B.
    """

    dataset: Dataset
    names: tuple[str, str]
    gallery: Gallery
    images: int
    queries: int
    differing: Integers
    candidates: Integers

    @property
    def key(self) -> str:
        """The name of the comparison, which does not depend on the order of A and B."""
        return comparison_key(self.names, self.gallery)

    @property
    def share(self) -> float:
        """The share of the queries whose nearest images differ."""
        return len(self.differing) / self.queries

    @cached_property
    def positions(self) -> dict[str, int]:
        """Position in the order of judging, by the name of the query."""
        return {self.dataset.names[query]: position for position, query in enumerate(self.differing.tolist())}

    def is_swapped(self, judge: str, position: int) -> bool:
        """Return whether B's image is on the left for a judge, at random for each query.

        Exchanging A and B exchanges their sides, too, so that the judge sees the same.
        """
        query = self.dataset.names[self.differing[position]]
        is_second_left = bool(_digest(self.key, "side", judge, query)[0] & 1)
        return is_second_left != (self.names[0] > self.names[1])


def comparison_key(names: Sequence[str], gallery: Gallery) -> str:
    """Return the name of a comparison, which does not depend on the order of the embeddings' names."""
    return " ".join([*sorted(names), gallery])


def compare(first: Side, second: Side, gallery: Gallery = "test") -> Comparison:
    """Find the queries for which two embeddings have different nearest images.

    Both search the same images: the images of the gallery that both embeddings have and that no run excludes.

    Args:
        first: Embedding A.
        second: Embedding B.
        gallery: Search the test half or all images.

    Raises:
        UserError: The embeddings are of different images, or have fewer than three in common.
    """
    check_images(first.retrieval, second.retrieval, gallery)
    dataset = first.retrieval.dataset
    shared = np.logical_and(*(side.retrieval.searched(side.frame, gallery) for side in (first, second)))
    if shared.sum() < FEWEST:
        raise UserError(f"Comparing {first.name} and {second.name} needs at least {FEWEST} images that both can "
                        f"search, got {shared.sum()}. Compare two other embeddings, or search all images.")
    names = (first.name, second.name)
    queries = draw_queries(dataset, np.flatnonzero(shared), comparison_key(names, gallery))
    nearest = np.stack([side.retrieval.frame(side.frame).index.nearest_each(queries, shared)
                        for side in (first, second)], axis=1)
    differ = nearest[:, 0] != nearest[:, 1]
    return Comparison(dataset, names, gallery, int(shared.sum()), len(queries), queries[differ], nearest[differ])


def check_images(first: Retrieval, second: Retrieval, gallery: Gallery) -> None:
    """Reject embeddings of different images.

    Raises:
        UserError: The data sets differ, or the test halves if only these are searched.
    """
    if first.spec.fingerprint != second.spec.fingerprint:
        raise UserError(f"The embeddings must be of the same images; {first.run.id} is on {first.dataset.title} and "
                        f"{second.run.id} on {second.dataset.title}, or the images have changed in between. Choose "
                        "two runs on the same data set.")
    if gallery == "test" and first.spec.split != second.spec.split:
        raise UserError(f"The test half of {first.run.id} has the split '{first.spec.split}' and that of "
                        f"{second.run.id} the split '{second.spec.split}'. Search all images, or choose runs with the "
                        "same split.")


def draw_queries(dataset: Dataset, images: Integers, key: str) -> Integers:
    """Return queries in a uniformly random order that the names of the comparison and of the images fix.

    Each image has a number of its own, the digest of both names, and the queries ascend by it. So the order of two
    queries stays the same, whatever images are added or excluded, and every beginning of the order is a uniform sample
    without replacement.

    Args:
        dataset: The data set.
        images: Indices (n,) of the images.
        key: Name of the comparison.

    Returns:
        Indices (q,), at most `MOST_QUERIES`.
    """
    digests: Array = np.array([_digest(key, "order", dataset.names[image]) for image in images.tolist()])
    return images[np.argsort(digests, kind="stable")[:MOST_QUERIES]]


def _digest(*words: str) -> bytes:
    """Return a number for some words that looks random and is the same on every machine."""
    return hashlib.sha256("\0".join(words).encode("utf-8", "surrogateescape")).digest()
