"""Vectors of the query's images in the embedding of a column."""

from __future__ import annotations

import streamlit as st

from udml_core.base.arrays import Array
from udml_core.runs import Run
from udml_core.runs.search.embedding import EmbeddingSearch
from udml_core.runs.search.retrieval import Query

from ..shell.run_hash import RUN_HASH
from .embeddings import Column
from .own_images import OwnImage, Side, embed_image
from .query import PageQuery


def query_in(column: Column, query: PageQuery) -> Query:
    """Build the query of the search in a column's embedding.

    Raises:
        UserError: The query has an own image, and the embedding has no model that could embed it.
    """
    def vectors(side: Side) -> tuple[int | Array, ...]:
        return tuple(image if isinstance(image, int) else _embed(column.search, image) for image in query.images(side))

    return Query(vectors("add"), vectors("subtract"))


def _embed(search: EmbeddingSearch, image: OwnImage) -> Array:
    if search.refined is None:
        return embed_image(search.retrieval, image, search.name)
    return _refined(search.retrieval.run, str(search.refined.recipe.find("views")), image.digest, search, image)


@st.cache_data(max_entries=200, show_spinner="Embedding …", hash_funcs=RUN_HASH)
def _refined(run: Run, views: str, digest: str, _search: EmbeddingSearch, _image: OwnImage) -> Array:  # noqa: ARG001
    return _search.embed(_image.image)
