"""Words on the page Search, where a run's encoder is CLIP or SigLIP, and nothing of them elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.opening import opened, texts
from tests.app.test_retrieval_page import headers
from tests.data.encoders.tiny_words import write_folder
from tests.running import trained, worked
from udml_core.runs import Run
from udml_core.runs.search import Retrieval
from udml_core.runs.search.words import word_query, words_frame

pytest.importorskip("tokenizers")
pytestmark = pytest.mark.usefixtures("own_places")
TEXT = "a bird that swims; a dark bird"


@pytest.fixture(scope="module", params=["", "pixels+"], ids=["alone", "side by side"])
def run(places: Path, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of frozen features whose encoder, or one of two, is a tiny CLIP."""
    folder = write_folder(tmp_path_factory.mktemp("words") / "tiny")
    return trained(places / "runs", method="frozen", backbone=f"{request.param}clip:{folder}", split="all")


def found(test: AppTest) -> list[int]:
    return [tile["id"] for header in headers(test) if header["label"].startswith("The 10 nearest images")
            for tile in header["tiles"]["list"]]


def expected(run: Run, text: str) -> list[int]:
    retrieval = Retrieval(run)
    return [hit.index for hit in retrieval.search(word_query(run, text), 10, words_frame(run))]


def test_typed_words_rank_the_images(run: Run) -> None:
    test = opened("retrieval", run=run.id)
    assert not test.exception
    test.text_input(key="query-words").set_value(TEXT).run()
    assert not test.exception
    assert test.query_params["words"] == TEXT
    assert found(test) == expected(run, TEXT)
    assert f"Query: **\u201c{TEXT}\u201d**" in texts(test)
    test.text_input(key="query-words").set_value("").run()
    assert "words" not in test.query_params


def test_a_link_with_words_opens_their_ranking_and_shows_no_markdown(run: Run) -> None:
    text = "green **bird** <b>"
    test = opened("retrieval", run=run.id, words=text)
    assert found(test) == expected(run, text)
    assert "**bird**" not in texts(test)


def test_without_such_an_encoder_there_is_no_line(places: Path) -> None:
    other = worked(places / "runs", fields={"dimension": 16, "epochs": 2})
    test = opened("retrieval", run=other.id, words=TEXT)
    assert not test.exception
    assert "query-words" not in {box.key for box in test.text_input}
    assert "swims" not in texts(test)
