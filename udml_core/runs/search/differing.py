"""Two embeddings of a data set, and the queries for which their first results differ, in the order of judging.

Either the nearest images differ, or the first ten results as sets, or as many first results as a typical group has:
then images that only one of the embeddings finds are judged, because the others count the same in both. Of a group, a
few are drawn at random for each embedding: their mean is that of all that differ. Known copies of a query are no
results, in either embedding: a copy is the same picture, which says nothing about either. Images with a finding of
quality are no queries, and no nearest images of queries that are judged: a plain photograph has no better result.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from udml_core.base.arrays import Array, Integers, evenly_spaced
from udml_core.base.errors import UserError
from udml_core.data.dataset import Dataset
from udml_core.data.given.judgments import Shown
from udml_core.runs.search.asked import asked_images
from udml_core.runs.search.copies import known_copies
from udml_core.runs.search.frame import Index
from udml_core.runs.search.query import Gallery, Query
from udml_core.runs.search.retrieval import Retrieval

MOST_QUERIES = 20_000
"""Largest number of queries; of more images, so many are drawn at random."""
FEWEST = 3
"""Number of images at least, because two images are each other's nearest in every embedding."""
SEPARATOR = ":"
Results = Literal["first", "ten", "group"]
"""What is judged: the first result of a query, its first ten, or as many as a typical group has."""
TEN, LARGEST = 10, 80
"""Number of the first ten results, and of the results of a group at most."""
DRAWN = 4
"""Images of each embedding that are drawn from a group's results."""
SPARE = 10
"""Further results to search, in place of copies of a query and of stored results that are not searched now."""


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
    """Two embeddings A and B, and the queries for which their results differ.

    Attributes:
        dataset: The data set.
        names: Names of A and B, RUN:FRAME.
        gallery: The images that are searched.
        images: Number of searched images, each of which could be a query.
        queries: Number of images that were queries.
        differing: Indices (m,) of the queries whose results differ, in the order of judging.
        candidates: Indices (m, 2) of the nearest images of these queries in A and in B; (m, 2, k) of the first k.
        results: What is judged.
        with_copies: Number of queries that have known copies, which are left out of their results.
        not_asked: Number of searched images that are no queries, because the audit lists them under Quality.
    """

    dataset: Dataset
    names: tuple[str, str]
    gallery: Gallery
    images: int
    queries: int
    differing: Integers
    candidates: Integers
    results: Results = "first"
    with_copies: int = 0
    not_asked: int = 0

    @property
    def key(self) -> str:
        """The name of the comparison, which does not depend on the order of A and B."""
        return comparison_key(self.names, self.gallery, self.results)

    @property
    def share(self) -> float:
        """The share of the queries whose results differ."""
        return len(self.differing) / self.queries

    @property
    def mean_changed(self) -> float:
        """How many of a differing query's results the other embedding does not find, on average."""
        changed = [len(self._only(position)[0]) for position in range(len(self.differing))]
        return float(np.mean(changed)) if changed else 0.0

    def options(self, position: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the images of A and of B that are judged: what the other does not find, in order of rank.

        Of a group, the names of query and images draw them, so that the same are drawn whatever the order of A and B.
        """
        first, second = self._only(position)
        return (self._drawn(position, first), self._drawn(position, second)) if self.results == "group" else (
            first, second)

    def _drawn(self, position: int, images: tuple[int, ...]) -> tuple[int, ...]:
        names, query = self.dataset.names, self.dataset.names[self.differing[position]]
        chosen = sorted(images, key=lambda image: _digest(self.key, "drawn", query, names[image]))[:DRAWN]
        return tuple(image for image in images if image in chosen)

    def _only(self, position: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the images of A and of B that the other does not find, in order of rank."""
        first, second = self.candidates[position].reshape(2, -1).tolist()
        return (tuple(image for image in first if image >= 0 and image not in second),
                tuple(image for image in second if image >= 0 and image not in first))

    def shared(self, position: int) -> int:
        """Return how many results of a query both embeddings find."""
        return self.candidates[position].size // 2 - len(self._only(position)[0])

    def shown(self, images: Sequence[int]) -> Shown:
        """Return images as a judgment stores them: the name of the nearest, or the names of a row in a fixed order."""
        names = [self.dataset.names[image] for image in images]
        return names[0] if self.results == "first" else tuple(sorted(names))

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


def comparison_key(names: Sequence[str], gallery: Gallery, results: Results = "first") -> str:
    """Return the name of a comparison, which does not depend on the order of the embeddings' names.

    Judgments of more than the first result have a name, and so a log and an order, of their own.
    """
    return " ".join([*sorted(names), gallery, *([] if results == "first" else [results])])


def compare(first: Side, second: Side, gallery: Gallery = "test", results: Results = "first",
            group: int = 0) -> Comparison:
    """Find the queries for which two embeddings have different nearest images, or different images in the first ten.

    Both search the same images: the images of the gallery that both embeddings have and that no run excludes. A query's
    known copies are left out of both, and two nearest images that are copies of each other do not differ.

    Args:
        first: Embedding A.
        second: Embedding B.
        gallery: Search the test half or all images.
        results: What is judged.
        group: How many images a typical group has, as a race of these images found; 0 to estimate it from A or B.

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
    asked = asked_images(dataset)
    if not (shared & asked).any():
        asked = np.ones(len(dataset), bool)
    queries = draw_queries(dataset, np.flatnonzero(shared & asked), comparison_key(names, gallery, results))
    indexes = [side.retrieval.frame(side.frame).index for side in (first, second)]
    copies = known_copies(dataset, first.retrieval.run.root)
    if results == "first":
        nearest = np.stack([first_result(index, queries, shared, copies) for index in indexes], axis=1)
        is_asked = (asked[nearest] | (nearest < 0)).all(axis=1)
        queries, nearest = (rows[is_asked] if is_asked.any() else rows for rows in (queries, nearest))
        differ = copies[nearest[:, 0]] != copies[nearest[:, 1]]
    else:
        count = TEN if results == "ten" else min(group, LARGEST) or group_size(
            min(first, second, key=lambda side: side.name))
        nearest = _results_of_both(indexes, queries, shared, copies, count)
        differ = (np.sort(nearest[:, 0]) != np.sort(nearest[:, 1])).any(axis=1)
    searched_copies = np.bincount(copies[shared], minlength=len(dataset))
    return Comparison(dataset, names, gallery, int(shared.sum()), len(queries), queries[differ], nearest[differ],
                      results, int((searched_copies[copies[queries]] > 1).sum()), int((shared & ~asked).sum()))


def group_size(side: Side) -> int:
    """Return how many first results are a group: as many images as a typical image has around it in an embedding.

    It takes steps of half a doubling, so that it hardly changes when images are added or excluded.
    """
    # Here, because they load torch.
    from udml_core.numerics.refinement.linear import unit_rows
    from udml_core.numerics.second_opinion import IMAGES, typical_group

    rows = side.retrieval.frame(side.frame).rows
    images = evenly_spaced(len(rows), IMAGES)
    group = typical_group(unit_rows(rows[images])) * len(rows) / len(images)
    return int(np.clip(round(TEN * 2 ** (round(2 * np.log2(group / TEN)) / 2)), TEN, LARGEST))


def first_result(index: Index, queries: Integers, searched: Array, copies: Integers) -> Integers:
    """Return the nearest image (q,) of each query that is no copy of it; −1 if there are only copies.

    Args:
        index: The index of an embedding.
        queries: Indices (q,) of searched images.
        searched: Mask (n,) of the images that are searched.
        copies: Index (n,) of the first known copy of each image.
    """
    nearest = index.nearest_each(queries, searched)
    after_copies = np.flatnonzero(copies[nearest] == copies[queries])
    if len(after_copies):
        nearest[after_copies] = first_results(index, queries[after_copies], searched, copies, 1)[:, 0]
    return nearest


def first_results(index: Index, queries: Integers, searched: Array, copies: Integers, count: int = TEN) -> Integers:
    """Return the nearest images (q, k) of each query that are no copies of it; −1 where there are only copies.

    Args:
        index: The index of an embedding.
        queries: Indices (q,) of searched images.
        searched: Mask (n,) of the images that are searched.
        copies: Index (n,) of the first known copy of each image.
        count: Number k of results; fewer if fewer images are searched.
    """
    results, known = _ranked(index, queries, searched, copies, count)
    return _completed(results, known, index, queries, searched, copies)


def _results_of_both(indexes: Sequence[Index], queries: Integers, searched: Array, copies: Integers, count: int
                     ) -> Integers:
    """Return the first results (q, 2, k) of each query in two embeddings; see `first_results`.

    Where a stored ranking ends earlier, k is as many results as it has of each query, but at least ten: the queries are
    not searched one by one.
    """
    ranked = [_ranked(index, queries, searched, copies, count) for index in indexes]
    least = min(int(known.min(initial=count)) for _, known in ranked)
    count = max(least, min(TEN, count, ranked[0][0].shape[1]))
    return np.stack([_completed(results[:, :count], known, index, queries, searched, copies)
                     for index, (results, known) in zip(indexes, ranked, strict=True)], axis=1)


def _ranked(index: Index, queries: Integers, searched: Array, copies: Integers, count: int
            ) -> tuple[Integers, Integers]:
    """Return the results (q, k) that a ranking has of each query, then −1, and their number (q,)."""
    count = min(count, int(searched.sum()) - 1)
    found = index.neighbors(queries, count + SPARE, searched)[0]
    is_result = (found >= 0) & (copies[found] != copies[queries][:, None])
    order = np.argsort(~is_result, axis=1, kind="stable")[:, :count]
    results = np.full((len(queries), count), -1, np.int64)
    results[:, :order.shape[1]] = np.take_along_axis(found, order, axis=1)
    return results, np.minimum(is_result.sum(axis=1), count)


def _completed(results: Integers, known: Integers, index: Index, queries: Integers, searched: Array, copies: Integers
               ) -> Integers:
    """Return results (q, k) with a search of their own for each query of which fewer are known."""
    results, count = results.copy(), results.shape[1]
    for row in np.flatnonzero(known < count).tolist():  # the stored ranking ends earlier
        others = searched & (copies != copies[queries[row]])
        images = index.nearest(Query((int(queries[row]),)), count, others).images[:count] if others.any() else []
        results[row] = [*images, *[-1] * (count - len(images))]
    return results


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
