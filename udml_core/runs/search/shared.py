"""Why a result is similar to a query, for queries from outside too: the nearest images that both have."""

from __future__ import annotations

from typing import NamedTuple

from udml_core.runs.search.query import Gallery, Hit, Query
from udml_core.runs.search.retrieval import Retrieval


class Shared(NamedTuple):
    """An image among the nearest of both a query and one of its results.

    Attributes:
        image: Index of the image.
        of_query: Its rank for the query, from 1.
        of_result: Its rank for the result, from 1.
    """

    image: int
    of_query: int
    of_result: int


def shared_neighbors(retrieval: Retrieval, query: Query, result: int, k: int, which: str = "final",
                     gallery: Gallery = "all") -> list[Shared]:
    """Find the images that are among the k nearest of a query and of a result, without the result itself.

    Args:
        retrieval: The search of a run.
        query: The query, of images of the data set, images from outside or both.
        result: Index of the result.
        k: Number of nearest images of each.
        which: The embedding.
        gallery: The images that are searched.

    Returns:
        The images, smallest sum of ranks first.
    """
    of_query: list[Hit] = retrieval.search(query, k, which, gallery)
    of_result = {hit.index: hit.rank for hit in retrieval.search_item(result, k, which, gallery)}
    shared = [Shared(hit.index, hit.rank, of_result[hit.index]) for hit in of_query if hit.index in of_result]
    return sorted(shared, key=lambda image: (image.of_query + image.of_result, image.of_query))
