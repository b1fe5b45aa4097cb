"""Search by words: a text is compared with the images in the features of the run's CLIP or SigLIP."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.data.dataset import Report
from udml_core.data.encoders import Encoder, EncoderSpec
from udml_core.data.encoders.words import LONGEST_TEXT, read_texts, words_of_folder
from udml_core.data.features import are_features_at_hand, features_of
from udml_core.runs.folder import Run
from udml_core.runs.search.names import FROZEN, WORDS
from udml_core.runs.search.query import Query
from udml_core.runs.search.retrieval import Retrieval

__all__ = ["LONGEST_TEXT", "check_word_features", "compute_word_features", "mean_direction", "read_texts",
           "reads_words", "word_query", "word_vectors", "words_frame"]


def reads_words(run: Run) -> bool:
    """Return whether words can be compared with a run's images: one of its encoders is CLIP or SigLIP."""
    return run.spec().encoder.of_words is not None


def words_frame(run: Run) -> str:
    """Return the name of the embedding in which words are compared with images.

    Raises:
        UserError: No encoder of the run reads words.
    """
    _encoder_of(run)
    return WORDS if run.spec().encoder.parts else FROZEN


def word_vectors(run: Run, texts: Sequence[str]) -> Array:
    """Return the vectors (b, l) of texts, of unit length, in the embedding of `words_frame`.

    Raises:
        UserError: No encoder of the run reads words, or its folder cannot be read.
    """
    encoder = _encoder_of(run)
    assert encoder.weights is not None, "CLIP and SigLIP are folders"
    return words_of_folder(encoder.weights).embed(texts)


def word_query(run: Run, text: str) -> Query:
    """Return the query of one or several texts, whose directions are averaged; semicolons separate them.

    Raises:
        UserError: The text is empty or too long, or no encoder of the run reads words.
    """
    return Query((mean_direction(word_vectors(run, read_texts(text))),))


def mean_direction(rows: Array) -> Array:
    """Return the mean (l,) of rows of unit length, of unit length again."""
    mean = rows.mean(axis=0)
    direction: Array = mean / max(float(np.linalg.norm(mean)), np.finfo(np.float32).tiny)
    return direction


def compute_word_features(opened: Retrieval, report: Report) -> None:
    """Compute and store the features of all images that words are compared with, unless they are stored."""
    features_of(opened.dataset, Encoder(_encoder_of(opened.run)), report)


def check_word_features(opened: Retrieval) -> None:
    """Check that the features of all images are stored, because a page cannot wait for them.

    Raises:
        UserError: They are not.
    """
    if not are_features_at_hand(opened.dataset, _encoder_of(opened.run)):
        raise UserError("Words are compared with the encoder's features of all images, which are not stored here. "
                        f"Compute them with `udml query {opened.run.id} --text WORDS`.")


def _encoder_of(run: Run) -> EncoderSpec:
    encoder = run.spec().encoder.of_words
    if encoder is None:
        raise UserError(f"Words need a run whose encoder is CLIP or SigLIP, and {run.id} uses "
                        f"{run.spec().backbone}. Train one with `udml train --backbone clip:FOLDER`.")
    return encoder
