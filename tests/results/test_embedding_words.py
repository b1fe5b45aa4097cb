"""The words for embeddings."""

import pytest

from udml_core.results.embedding_words import EMBEDDING_WORDS, words_of


@pytest.mark.parametrize(("name", "title", "sentence"), [
    ("0", "Before training", "before training"), ("12", "Epoch 12", "epoch 12"),
    ("final", "After training", "after training"), ("another baseline", "Another baseline", "another baseline")])
def test_every_name_has_words(name: str, title: str, sentence: str) -> None:
    assert words_of(name)[:2] == (title, sentence)


def test_no_two_embeddings_have_the_same_words() -> None:
    for kind in ("title", "sentence"):
        words = [getattr(of, kind) for of in EMBEDDING_WORDS.values()]
        assert len(set(words)) == len(words)
