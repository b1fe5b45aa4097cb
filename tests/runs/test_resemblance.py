"""Whether any image of a run resembles a user's image."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from tests.running import worked
from udml_core.numerics.neighbors import nearest
from udml_core.runs import Run
from udml_core.runs.search import Retrieval
from udml_core.runs.search.frame import frame_file
from udml_core.runs.search.resemblance import (
    FEWEST,
    LEAST,
    SAMPLE,
    Unlike,
    doubt_words,
    find_unlike,
    nearest_distances,
    share_beside,
    share_nearer,
)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run of RPML on the digits in 4 dimensions, in a cache of its own."""
    trained = worked(tmp_path / "runs", fields={"dimension": 4, "epochs": 2, "steps": 3, "unit_length": True})
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    return trained


def unlike(retrieval: Retrieval, image: Image.Image, name: str = "final") -> Unlike | None:
    return find_unlike(retrieval, partial(retrieval.embed, image), name)


def test_distances_equal_brute_force_and_are_read_where_they_are_kept(run: Run) -> None:
    retrieval = Retrieval(run)
    frame, searched = retrieval.frame("final"), retrieval.searched()
    distances = nearest_distances(frame, searched)
    rows = np.asarray(run.embeddings("final"), dtype=np.float64)
    some = np.linspace(0, len(rows) - 1, SAMPLE).astype(int)
    squared = ((rows[some, None] - rows[None]) ** 2).sum(axis=2)
    squared[np.arange(SAMPLE), some] = np.inf
    np.testing.assert_allclose(np.sort(distances), np.sort(np.sqrt(squared.min(axis=1))), atol=2e-4)
    frame_file(frame, "nearest").write_bytes(b"damaged")
    np.testing.assert_array_equal(nearest_distances(frame, searched), distances)
    np.testing.assert_array_equal(nearest_distances(frame, np.zeros_like(searched)), distances, "they are kept")


def test_a_copy_resembles_itself_and_noise_resembles_no_digit(run: Run) -> None:
    retrieval = Retrieval(run)
    assert unlike(retrieval, retrieval.dataset.images[11]) is None
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64), dtype=np.uint8))
    assert retrieval.before == "frozen"
    known = unlike(retrieval, noise)
    assert known is not None
    assert (known.share >= LEAST, known.embedding in ("final", "frozen")) == (True, True)
    assert known.sentence.startswith("No image here resembles yours: its nearest is farther away than that of ")
    assert unlike(retrieval, noise, "frozen") == Unlike("frozen", "raw pixels", 1.0)


def test_an_image_may_be_of_another_kind_if_most_images_have_a_nearer_nearest_image(run: Run) -> None:
    retrieval = Retrieval(run)
    distances = nearest_distances(retrieval.frame("final"), retrieval.searched("final"))
    far, near = np.quantile(distances, 0.95), np.quantile(distances, 0.5)
    row = np.asarray(retrieval.frame("final").rows[0], dtype=np.float32)

    def share_at(distance: float) -> float:
        """Return the share for a point whose nearest image has a distance."""
        point = SimpleNamespace(distance=distance)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(retrieval, "search", lambda *_: [point])
            share = share_beside(retrieval, lambda _: row, "final")
        assert share is not None
        return share

    assert share_at(far) == pytest.approx(0.95, abs=0.01)
    assert doubt_words(share_at(far)) == (
        "Your image may be of a kind that is not here: its nearest image is far, and "
        f"{int(100 * share_at(far))} of 100 images here have a nearer one.")
    assert doubt_words(0.8) == ("The nearest image is farther than usual: 80 of 100 images here have a nearer one. "
                                "Look whether it is of the same kind.")
    assert not doubt_words(share_at(near))
    assert not doubt_words(None)


def test_a_blank_image_resembles_no_digit_by_its_pixels(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    retrieval = Retrieval(run)
    near = retrieval.frame("final")
    blank = Image.new("L", (8, 8), 255)
    embed = retrieval.embed
    copy = np.asarray(near.rows[0], dtype=np.float32)
    monkeypatch.setattr(retrieval, "embed", lambda image, which: copy if which == "final" else embed(image, which))
    known = unlike(retrieval, blank)
    assert known is not None
    assert known.embedding == "frozen"


def test_too_few_images_tell_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    retrieval = Retrieval(run)
    few = np.arange(len(retrieval.dataset)) < FEWEST - 1
    monkeypatch.setattr(retrieval, "searched", lambda _name: few)
    assert unlike(retrieval, Image.new("L", (8, 8), 255), "frozen") is None


def test_an_image_like_the_others_is_called_unlike_in_about_one_case_of_a_hundred() -> None:
    draw = np.random.default_rng(3).standard_normal
    shares = []
    for _ in range(20):
        points, queries = draw((400, 6)), draw((200, 6))
        own = np.sqrt(nearest(points, 1)[0].ravel())
        shares += [share_nearer(own, distance) for distance in np.sqrt(nearest(points, 1, queries)[0].ravel())]
    assert 0.004 < np.mean(np.array(shares) >= LEAST) < 0.02


@pytest.mark.parametrize(("share", "words"), [(0.9999, "99 % of the images"), (1.0, "every image")])
def test_the_sentence_never_rounds_up(share: float, words: str) -> None:
    sentence = Unlike("frozen", "raw pixels", share).sentence
    assert sentence.endswith(f"farther away than that of {words} here (raw pixels).")
