"""Words on the page Search, where a run's encoder is CLIP or SigLIP, and nothing of them elsewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.parts.labels.actions import OPENED
from pages.parts.shell.selection import Selection
from tests.app.opening import opened, texts
from tests.app.test_map_page import the_map
from tests.app.test_retrieval_page import headers
from tests.data.encoders.tiny_words import write_folder
from tests.running import trained, worked, write_digits
from udml_core.data.given.labels import assigned_labels, rejected_classes
from udml_core.runs import Run
from udml_core.runs.search import Retrieval
from udml_core.runs.search.naming import grouping_of
from udml_core.runs.search.words import word_query, word_vectors, words_frame

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


@pytest.fixture(scope="module")
def photos(places: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Frozen features of a tiny SigLIP, of 120 images without classes."""
    folder = write_folder(tmp_path_factory.mktemp("words") / "tiny", "siglip")
    images = write_digits(places / "photos", 120, by_class=False)
    return trained(places / "runs", method="frozen", dataset=str(images), backbone=f"clip:{folder}", split="all")


def grouped(run: Run, words: str) -> AppTest:
    """Open the groups of the page Label and type words."""
    test = opened("labels", run=run.id, section="groups", groups="8")
    assert not test.exception
    return test.text_area(key=f"labels-words-{run.id}").set_value(words).run()


def badges(test: AppTest) -> list[str]:
    return [tile["badge"] for header in headers(test) if header["label"] == "Groups without a name"
            for tile in header["tiles"]["list"]]


def test_a_group_is_named_by_a_word_rejected_and_undone(photos: Run) -> None:
    test = grouped(photos, "bird\nred\n\n bird \nlarge")
    assert not test.exception
    named = [badge.split(" · ")[0] for badge in badges(test)]
    assert set(named) <= {"bird", "red", "large", "undecided"}
    first = next(number for number, word in enumerate(named) if word != "undecided")
    tile = next(header["tiles"]["list"] for header in headers(test)
                if header["label"] == "Groups without a name")[first]["id"]
    test.session_state[OPENED] = tile
    members = group_of(photos, tile)
    select_images(test, photos, members)
    assert f"Nearest word: **{named[first]}** (+" in texts(test)
    test.button(key="labels-word-reject").click().run()
    assert rejected_classes(photos.dataset()) == {photos.dataset().names[image]: {named[first]} for image in members}
    test.button(key="labels-undo").click().run()
    assert rejected_classes(photos.dataset()) == {}
    test.session_state[OPENED] = tile
    select_images(test, photos, members)
    test.button(key="labels-word-confirm").click().run()
    assert assigned_labels(photos.dataset()) == {photos.dataset().names[image]: named[first] for image in members}
    test.button(key="labels-undo").click().run()
    assert assigned_labels(photos.dataset()) == {}


def group_of(run: Run, image: int) -> list[int]:
    """Return the images of the group of an image."""
    groups = grouping_of(Retrieval(run)).tree.groups(8)
    return np.flatnonzero(groups == groups[image]).tolist()


def select_images(test: AppTest, run: Run, images: list[int]) -> None:
    test.session_state["selection"] = Selection(run.dataset().fingerprint, np.array(images), 99)
    test.run()


def test_one_word_is_not_enough(photos: Run) -> None:
    test = grouped(photos, "bird")
    assert "at least 2 words, got 1" in texts(test)
    assert not any("bird" in badge for badge in badges(test))


def test_a_map_is_colored_along_an_attribute_axis(photos: Run) -> None:
    test = opened("explore", run=photos.id, color="attribute axis")
    assert not test.exception
    assert {"map-axis-low", "map-axis-high"} <= {box.key for box in test.text_input}
    test.text_input(key="map-axis-low").set_value("small").run()
    test.text_input(key="map-axis-high").set_value("large").run()
    assert not test.exception
    assert (test.query_params["low"], test.query_params["high"]) == ("small", "large")
    color = the_map(test)["color"]
    rows = Retrieval(photos).frame(words_frame(photos)).rows
    low, high = word_vectors(photos, ["small", "large"])
    expected_ends = np.percentile(rows @ (high - low), [2, 98])
    assert color["label"] == "small → large"
    np.testing.assert_allclose([color["low"], color["high"]], expected_ends, rtol=1e-4)
