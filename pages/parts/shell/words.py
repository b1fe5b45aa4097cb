"""Vectors of words for the pages, each text read once."""

from __future__ import annotations

import streamlit as st

from udml_core.base.arrays import Array
from udml_core.runs import Run
from udml_core.runs.search import Frame, Retrieval
from udml_core.runs.search.words import check_word_features, word_vectors, words_frame

from .run_hash import RUN_HASH


def frame_of_words(retrieval: Retrieval) -> Frame:
    """Return the embedding in which words are compared with images.

    Raises:
        UserError: Its features are not stored.
    """
    check_word_features(retrieval)
    return retrieval.frame(words_frame(retrieval.run))


@st.cache_data(max_entries=200, show_spinner="Reading the words …", hash_funcs=RUN_HASH)
def vectors_of_words(run: Run, texts: tuple[str, ...]) -> Array:
    """Return the vectors (b, l) of texts, of unit length.

    Raises:
        UserError: The folder of the run's encoder cannot be read.
    """
    return word_vectors(run, texts)
