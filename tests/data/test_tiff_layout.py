"""TIFF files whose parts need more than their size says, and TIFF files as programs write them."""

from __future__ import annotations

import io
import struct
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from PIL import Image

from experiments.bombs import LONG, SHORT, Field, tiff
from udml_core.data.dataset import read_image
from udml_core.data.sources.scanning import describe_content
from udml_core.data.tiff_layout import check_tiff


def tiled(side: int, tile: tuple[int, int], order: str = "<") -> bytes:
    """Return a gray image in one compressed tile, whose columns have the values 0, 1, 2 and so on."""
    width, height = tile
    content = zlib.compress((np.arange(width, dtype=np.uint32) % 256).astype(np.uint8).tobytes() * height)
    return tiff([(256, SHORT, [side]), (257, SHORT, [side]), (258, SHORT, [8]), (259, SHORT, [8]), (262, SHORT, [1]),
                 (277, SHORT, [1]), (322, LONG, [width]), (323, LONG, [height]), (324, LONG, [0]),
                 (325, LONG, [len(content)])], content, order)


def striped(count: int, side: int = 8) -> bytes:
    """Return a gray image that declares a number of strips of one row."""
    return tiff([(256, SHORT, [side]), (257, SHORT, [side]), (258, SHORT, [8]), (259, SHORT, [1]), (262, SHORT, [1]),
                 (273, SHORT, [8] * count), (277, SHORT, [1]), (278, SHORT, [1]), (279, SHORT, [side] * count)])


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_tile_may_be_larger_than_its_image(order: str) -> None:
    image = read_image(io.BytesIO(tiled(100, (256, 256), order)))
    assert image.size == (100, 100)
    assert np.asarray(image)[50, :, 0].tolist() == list(range(100))


@pytest.mark.parametrize("content", [tiled(100, (16_384, 8_192)), tiled(100, (16_384, 8_192), ">")])
def test_a_tile_far_larger_than_its_image_is_refused_before_memory_is_reserved(content: bytes) -> None:
    assert len(content) < 600_000
    before = psutil.Process().memory_info().rss
    with pytest.raises(ValueError, match=r"tiles of 134,217,728 pixels, and 100 × 100 pixels itself; save it without"):
        read_image(io.BytesIO(content))
    assert psutil.Process().memory_info().rss - before < 20e6
    assert describe_content(content)["reason"].startswith("it has tiles of")


def test_more_strips_than_rows_are_refused_at_once() -> None:
    assert read_image(io.BytesIO(striped(8))).size == (8, 8)
    content, began = striped(1_000_000), time.monotonic()
    with pytest.raises(ValueError, match="it has 1,000,000 parts, and at most 8 are read"):
        read_image(io.BytesIO(content))
    assert time.monotonic() - began < 1  # Pillow takes 10 s


@pytest.mark.parametrize("place", ["first", "last"])
def test_the_larger_of_two_equal_fields_counts(place: str) -> None:
    fields: list[Field] = [(322, LONG, [64]), (322, LONG, [2**20]), (323, LONG, [64])]
    content = tiff(fields if place == "last" else fields[::-1])
    with pytest.raises(ValueError, match="it has tiles of 67,108,864 pixels"):
        check_tiff(io.BytesIO(content))


@pytest.mark.parametrize("form", [{}, {"compression": "tiff_lzw"}, {"compression": "tiff_deflate"},
                                  {"compression": "packbits"}, {"big_tiff": True}])
@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "I;16", "CMYK"])
def test_files_as_pillow_writes_them_are_read(form: dict[str, Any], mode: str, tmp_path: Path) -> None:
    Image.new(mode, (30, 2000), 1).save(tmp_path / "a.tif", **form)
    assert read_image(tmp_path / "a.tif").size == (30, 2000)


def test_addresses_of_64_bits_are_followed() -> None:
    fields = b"".join(struct.pack("<HHQQ", number, LONG, 1, 2**16) for number in (322, 323))
    content = b"II+\0" + struct.pack("<HHQQ", 8, 0, 16, 2) + fields + bytes(8)
    with pytest.raises(ValueError, match="it has tiles of 4,294,967,296 pixels"):
        check_tiff(io.BytesIO(content))


@pytest.mark.parametrize("content", [b"", b"II*\0", b"II*\0\xff\xff\xff\xff", b"II+\0" + b"\xff" * 12, b"plain text",
                                     tiled(100, (256, 256))[:30]])
def test_a_cut_file_is_left_to_its_reader(content: bytes) -> None:
    file = io.BytesIO(content)
    check_tiff(file)
    assert file.tell() == 0
