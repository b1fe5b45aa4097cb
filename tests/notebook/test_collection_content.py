"""The messages of a collection, read as the browser reads them."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.base.test_components import part_of, unpack
from udml_core.base.components import Message
from udml_core.notebook import collection_content
from udml_core.notebook.collection import Collection, collect
from udml_core.notebook.collection_content import (
    MOST_SHOWN,
    Hits,
    draw_sheets,
    gallery_message,
    map_message,
    row_message,
)

COUNT = 200
LABELS = [None if row == 9 else "ab"[row % 2] for row in range(COUNT)]
NOTHING = np.zeros(0, dtype=np.int64)


@pytest.fixture(scope="module")
def collection() -> Collection:
    """Images of one gray each, which tells them apart."""
    pixels = np.repeat(np.arange(COUNT, dtype=np.uint8), 64).reshape(COUNT, 8, 8)
    return collect(np.random.default_rng(0).normal(size=(COUNT, 4)), pixels, LABELS)


class Kept:
    """What a message sends once."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def message(self) -> Message:
        def keep(content: bytes, _kind: str, name: str) -> str:
            self.files[name] = content
            return name

        return Message(keep)

    def gray(self, sheets: dict[str, Any], position: int) -> int:
        """Return the gray of a cell, which the browser finds as `positionOf` of assets/common.js does."""
        sheet, cell = divmod(position, sheets["perSheet"])
        row, column = divmod(cell, sheets["columns"])
        with Image.open(io.BytesIO(self.files[sheets["urls"][sheet]])) as image:
            side = sheets["cell"]
            return round(np.asarray(image.convert("L"))[row * side : (row + 1) * side,
                                                        column * side : (column + 1) * side].mean())


def test_the_map_has_positions_classes_the_query_and_every_image(collection: Collection,
                                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection_content, "arrange", lambda _count: (64, 9))  # three sheets
    kept, shares = Kept(), list[float]()
    sheets = draw_sheets(collection, shares.append)
    hits = Hits(5, *collection.nearest(5, 3))
    header, parts = unpack(map_message(kept.message(), collection, sheets, np.array([1, 8]), 4, hits))
    positions = np.frombuffer(kept.files[header["positions"]["url"]], np.float32).reshape(-1, 2)
    np.testing.assert_array_equal(positions, collection.layout.positions)
    assert header["classNames"] == ["a", "b"]
    classes = np.frombuffer(kept.files[header["classes"]["url"]], np.int8)
    np.testing.assert_array_equal(classes, collection.codes)
    np.testing.assert_array_equal(part_of(parts, header["color"]["values"]), collection.codes)
    mask = np.unpackbits(part_of(parts, header["selection"]["mask"]), bitorder="little")
    assert np.flatnonzero(mask).tolist() == [1, 8]
    assert header["selection"]["revision"] == 4
    assert header["marks"] == [{"row": 5, "word": "query", "lines": hits.rows.tolist(), "color": "", "radius": 11}]
    assert len(header["sheets"]["urls"]) == 3
    assert all(abs(kept.gray(header["sheets"], row) - row) <= 1 for row in (0, 8, 9, 80, 81, 199))
    assert shares == sorted(shares)
    assert len(shares) > 2
    again = Kept()
    map_message(again.message(), collection, sheets, NOTHING, 5)
    assert again.files.keys() == kept.files.keys(), "a selection sends no large part again"


def test_a_map_of_many_images_shows_points(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection_content, "MOST_PICTURED", COUNT - 1)
    assert draw_sheets(collection) is None
    assert unpack(map_message(Kept().message(), collection, None, NOTHING, 0))[0]["sheets"] is None


def test_the_gallery_shows_the_first_images_in_their_order(collection: Collection) -> None:
    kept = Kept()
    header, _ = unpack(gallery_message(kept.message(), collection, np.array([150, 9, 30]), "Selected"))
    assert [(tile["id"], tile["badge"], tile["caption"]) for tile in header["tiles"]["list"]] == [
        (150, "a", "a · image 150"), (9, "image 9", "image 9"), (30, "a", "a · image 30")]
    assert header["byPosition"]
    assert [kept.gray(header["sheets"], position) for position in range(3)] == [150, 9, 30]
    assert not unpack(gallery_message(Message(), collection, NOTHING, ""))[0]["tiles"]["list"]
    everything, _ = unpack(gallery_message(kept.message(), collection, np.arange(COUNT), "All"))
    assert [tile["id"] for tile in everything["tiles"]["list"]] == list(range(MOST_SHOWN))
    assert kept.gray(everything["sheets"], 17) == 17


def test_the_query_row_marks_hits_and_misses_by_class(collection: Collection) -> None:
    kept = Kept()
    rows, distances = np.array([4, 7, 9]), np.array([0.25, 1.5, 2.0])
    header, _ = unpack(row_message(kept.message(), collection, Hits(2, rows, distances), "Nearest"))
    assert [(tile["id"], tile["mark"], tile["badge"]) for tile in header["tiles"]["list"]] == [
        (2, "query", "a"), (4, "hit", "1 · 0.25"), (7, "miss", "2 · 1.5"), (9, "", "3 · 2")]
    assert [kept.gray(header["sheets"], position) for position in range(4)] == [2, 4, 7, 9]
    assert header["strip"]
    assert not unpack(row_message(Message(), collection, None, ""))[0]["tiles"]["list"]
