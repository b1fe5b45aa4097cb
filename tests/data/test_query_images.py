"""Images of queries that are kept for a day."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest

from udml_core.data import query_images
from udml_core.data.dataset import UserImage
from udml_core.data.query_images import KEPT, find_query_image, keep_query_image


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path))
    return tmp_path / "queries"


def kept(content: bytes, name: str = "a.png") -> str:
    digest = hashlib.sha1(content, usedforsecurity=False).hexdigest()
    keep_query_image(UserImage(content, name), digest)
    return digest


def test_an_image_is_found_with_its_name_and_removed_after_a_day(cache: Path) -> None:
    first = kept(b"line 1\nline 2", "two\nlines.png")
    assert find_query_image(first) == UserImage(b"line 1\nline 2", "two lines.png")
    long_ago = time.time() - KEPT - 60
    os.utime(cache / first, (long_ago, long_ago))
    second = kept(b"other")
    assert find_query_image(first) is None
    assert find_query_image(second) is not None


def test_too_many_images_push_out_the_oldest(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_images, "MOST", 2)
    first = kept(b"0")
    os.utime(cache / first, (time.time() - 60,) * 2)
    kept(b"1")
    kept(b"2")
    assert find_query_image(first) is None
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize("digest", ["", "..", "../secret", "a" * 39, "A" * 40, "/etc/passwd"])
def test_a_link_names_no_other_file(digest: str) -> None:
    assert find_query_image(digest) is None
