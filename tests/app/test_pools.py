"""Every count of hits says among which images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pages.parts.home import instrument
from pages.parts.home.instrument import show_instrument
from pages.parts.shell.pools import among, among_sample
from tests.app.opening import opened, texts
from tests.running import worked
from udml_core.data.splits import Split
from udml_core.runs import Run

pytestmark = pytest.mark.usefixtures("own_places")
HALVES = Split("seen", np.arange(6), np.arange(6, 10))


@pytest.fixture(scope="module")
def run(places: Path) -> Run:
    """A finished run on the digits."""
    return worked(places / "runs")


@pytest.mark.parametrize(("count", "split", "words", "of_sample"), [
    (10, HALVES, "among all 10 images", "among all 10 images"),
    (4, HALVES, "among 4 test images", "among 4 test images"),
    (3, HALVES, "among 3 of 10 images", "among 3 sampled test images"),
    (9, HALVES.without([9]), "among all 9 images", "among all 9 images"),
    (10, Split("all", np.arange(10), np.arange(10)), "among all 10 images", "among all 10 images"),
    (4, Split("all", np.arange(10), np.arange(10)), "among 4 of 10 images", "among 4 of 10 images")])
def test_the_words_say_how_many_images_of_which_half(count: int, split: Split, words: str, of_sample: str) -> None:
    assert among(count, split, 10) == words
    assert among_sample(count, split, 10) == of_sample


def test_pages_with_different_pools_say_them(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    headers: list[dict[str, object]] = []
    monkeypatch.setattr(instrument, "_draw", lambda *_: None)
    monkeypatch.setattr(instrument.Message, "pack", lambda _self, header: headers.append(header) or b"")
    show_instrument(run)
    assert headers[0]["pool"] == "among 359 test images"
    shown = texts(opened("retrieval", run=run.id))
    assert shown.count("of 10 hits among all 1,797 images") == 2
    assert texts(opened("retrieval", run=run.id, gallery="test")).count("of 10 hits among 359 test images") == 2
