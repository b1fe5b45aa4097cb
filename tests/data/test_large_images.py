"""Limits on the memory of images that are decoded."""

from __future__ import annotations

import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from udml_core.base import bounded
from udml_core.base.errors import UserError
from udml_core.data import dataset, large_images
from udml_core.data.dataset import UserImage, read_image
from udml_core.data.sources.scanning import describe_content

THREADS = 6


def png(width: int, height: int) -> bytes:
    """Return a white PNG file, which is not decoded to write it."""
    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    row = b"\0" + b"\xff" * -(-width // 8)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(row * height, 1)) + chunk(b"IEND", b""))


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_an_image_that_pillow_would_decode_is_refused_where_it_needs_a_gigabyte(tmp_path: Path) -> None:
    content = png(12_000, 12_000)
    (tmp_path / "large.png").write_bytes(content)
    with Image.open(tmp_path / "large.png") as opened:
        assert opened.size == (12_000, 12_000)
    expected = r"its 12,000 × 12,000 pixels need more than 1\.0 GB of memory \(1\.2 GB\); save it smaller"
    for source in (content, tmp_path / "large.png"):
        with pytest.raises(UserError, match=expected):
            UserImage(source, "large.png").reduced(64)
    assert "12,000 × 12,000 pixels need more" in describe_content(content)["reason"]


class Counter:
    """Counts how many threads are inside at the same time, the most of all so far.

    Args:
        expected: How many are waited for, because threads begin late on a busy machine; more have a moment to come.
    """

    def __init__(self, expected: int) -> None:
        self.now = self.most = 0
        self._expected, self._changed = expected, threading.Condition()

    @contextmanager
    def inside(self) -> Iterator[None]:
        with self._changed:
            self.now += 1
            self.most = max(self.most, self.now)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self.most >= self._expected, 20)
        time.sleep(0.1)
        yield
        with self._changed:
            self.now -= 1


def most_at_once(read: Callable[[], object], counter: Counter) -> int:
    with ThreadPoolExecutor(THREADS) as threads:
        for done in [threads.submit(read) for _ in range(THREADS)]:
            done.result()
    return counter.most


@pytest.mark.parametrize(("large", "most"), [(100, 2), (1000, THREADS)])
@pytest.mark.parametrize("way", ["query", "folder", "bounded"])
def test_two_large_images_are_decoded_at_the_same_time(way: str, large: int, most: int,
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_images, "LARGE", large)
    counter, content = Counter(most), png(20, 20)
    reads: dict[str, Callable[[], object]] = {
        "query": lambda: UserImage(content, "a.png").reduced(),
        "folder": lambda: describe_content(content),
        "bounded": lambda: UserImage(content, "a.png").reduced()}

    def counted(function: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object) -> object:
            with counter.inside():
                return function(*arguments)

        return call

    if way == "query":
        monkeypatch.setattr(dataset, "_upright_rgb", counted(dataset._upright_rgb))
    elif way == "folder":
        monkeypatch.setattr(Image.Image, "load", counted(lambda _image: None))
        monkeypatch.setattr("PIL.PngImagePlugin.PngImageFile.load", counted(lambda _image: None))
    else:  # each call has a process of its own, which could not count the others
        monkeypatch.setattr(bounded, "is_on", lambda: True)
        monkeypatch.setattr(bounded, "call", counted(lambda _name, function, *arguments: function(*arguments)))
        monkeypatch.setattr(dataset, "turn", only_outside(dataset.turn))
    assert most_at_once(reads[way], counter) == most


def only_outside(turn: Callable[..., object]) -> Callable[..., object]:
    """Return turns of which a thread takes one: the reader of a bounded call is in another process."""
    holding = threading.local()

    @contextmanager
    def once(size: tuple[int, int]) -> Iterator[None]:
        if getattr(holding, "turn", False):
            yield
            return
        holding.turn = True
        with turn(size):  # type: ignore[attr-defined]
            yield
        holding.turn = False

    return once


def test_a_large_image_keeps_twice_the_needed_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (80, 120, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    assert read_image(tmp_path / "a.png", 10).size == (120, 80)
    monkeypatch.setattr(large_images, "LARGE", 1000)
    reduced = read_image(tmp_path / "a.png", 10)
    assert reduced.size == (30, 20)
    means = pixels.reshape(20, 4, 30, 4, 3).mean((1, 3))
    assert np.abs(np.asarray(reduced) - means).max() <= 1
    assert read_image(tmp_path / "a.png").size == (120, 80)


def test_the_server_reads_no_header_of_a_large_file_and_refuses_one_that_is_too_large(
        monkeypatch: pytest.MonkeyPatch) -> None:
    content, read = png(20, 20), list[str]()
    monkeypatch.setattr(bounded, "is_on", lambda: True)
    monkeypatch.setattr(bounded, "call", lambda *_: "decoded elsewhere")
    monkeypatch.setattr(dataset, "open_image", lambda _source: read.append("here"))
    monkeypatch.setattr(dataset, "LARGEST_HEADER", len(content))
    UserImage(content, "a.png").reduced()
    assert read == ["here"]
    monkeypatch.setattr(dataset, "LARGEST_HEADER", len(content) - 1)
    assert UserImage(content, "a.png").reduced() == "decoded elsewhere"
    assert read == ["here"]
    assert large_images.is_large(UserImage(content, "a.png")._size(None)), "it waits for its turn"
    monkeypatch.setattr(dataset, "MOST_UPLOADED", len(content) - 1)
    with pytest.raises(UserError, match=r"The image file a.png has 0 MB; at most 0 MB are read"):
        UserImage(content, "a.png").reduced()
