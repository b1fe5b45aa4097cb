"""The line for words: they are compared with the images in the features of the run's CLIP or SigLIP."""

from __future__ import annotations

import streamlit as st

from udml_core.base.arrays import Array
from udml_core.runs.search import Retrieval
from udml_core.runs.search.words import LONGEST_TEXT, mean_direction, read_texts, reads_words

from ..draw.palette import BEFORE
from ..shell.words import frame_of_words, vectors_of_words
from .embeddings import Column
from .query import PageQuery, current_words, set_query

LINE = "query-words"


def search_by_words(retrieval: Retrieval) -> None:
    """Show the line for words where the run's encoder reads them; what is typed becomes the whole query."""
    if not reads_words(retrieval.run):
        return
    st.session_state[LINE] = current_words()
    st.text_input("Search by words", key=LINE, on_change=_take, max_chars=LONGEST_TEXT, label_visibility="collapsed",
                  placeholder="Search by words: a bird that swims",
                  help="Ranks the images by the cosine between text and image in the features of "
                       f"{retrieval.spec.encoder.of_words and retrieval.spec.encoder.of_words.backbone}; "
                       "semicolons separate texts whose directions are averaged.")


def _take() -> None:
    set_query(PageQuery(words=st.session_state[LINE].strip()))


def word_column(retrieval: Retrieval) -> Column:
    """Return the embedding in which words are compared with images.

    Raises:
        UserError: Its features are not stored.
    """
    frame, encoder = frame_of_words(retrieval), retrieval.spec.encoder.of_words
    return Column(frame.name, f"Cosine with the words, {encoder and encoder.backbone}", BEFORE, retrieval, frame)


def word_vector(retrieval: Retrieval, words: str) -> Array:
    """Return the direction (l,) of the words of a query, computed once.

    Raises:
        UserError: The words are empty or too long, or the folder of the encoder cannot be read.
    """
    return mean_direction(vectors_of_words(retrieval.run, read_texts(words)))
