"""Atomic writes: several threads write a file, and a deleted folder stays deleted."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from udml_core.files import replace_bytes, replace_text


def test_several_threads_can_write_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "status.json"
    texts = [str(number) * 1000 for number in range(10)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: replace_text(path, texts[number % 10]), range(200)))
    assert path.read_text() in texts
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_does_not_create_a_deleted_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        replace_bytes(tmp_path / "deleted" / "file", b"")
    assert not (tmp_path / "deleted").exists()
