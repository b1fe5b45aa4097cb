"""The words for the embeddings of a run, and for the baselines that an evaluation adds: the only table of them."""

from __future__ import annotations

from typing import NamedTuple


class EmbeddingWords(NamedTuple):
    """What an embedding is called.

    Attributes:
        title: As the heading of a row, a column or a choice.
        sentence: Within a sentence.
        short: Beside a line in a chart and before a qualification, such as `Start of RPML`.
    """

    title: str
    sentence: str
    short: str


EMBEDDING_WORDS = {
    "plain": EmbeddingWords("Plain search", "the plain search", "Plain"),
    "frozen": EmbeddingWords("Frozen features", "frozen features", "Frozen"),
    "pixels": EmbeddingWords("Raw pixels", "raw pixels", "Pixels"),
    "initial": EmbeddingWords("Before training", "before training", "Start"),
    "final": EmbeddingWords("After training", "after training", "After training"),
    "words": EmbeddingWords("Features that words search", "features that words search", "Words"),
    "refined": EmbeddingWords("Refined", "refined", "Refined"),
    "latent": EmbeddingWords("After training, latent z", "after training, latent z", "z"),
    "centered pca": EmbeddingWords("PCA (centered)", "PCA", "PCA"),
    "pca": EmbeddingWords("PCA, same dimension", "PCA of the same dimension", "PCA"),
}
"""The words by the name in an evaluation; `plain` is the search with frozen features, where no labels measure these,
and `refined` stands for all refinements, `pixels` for features that are pixels.

Versions before 0.3 evaluated "pca", which is not centered.
"""


def words_of(name: str) -> EmbeddingWords:
    """Return the words for an embedding.

    Args:
        name: A key of `EMBEDDING_WORDS`, or the number of an epoch; 0 is before training.
    """
    if name in EMBEDDING_WORDS:
        return EMBEDDING_WORDS[name]
    if not name.isdecimal():
        return EmbeddingWords(name.capitalize(), name, name)  # a candidate that only another version evaluates
    return words_of("initial") if int(name) == 0 else EmbeddingWords(f"Epoch {name}", f"epoch {name}", f"Epoch {name}")


def in_numbers(width: int | None) -> str:
    """Return how many numbers an embedding has for each image; nothing if it is not known."""
    return "" if width is None else f"{width:,} numbers"
