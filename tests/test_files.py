"""Writing aside: by several threads at once, and never into a folder that somebody removed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from udml_core.files import replace_bytes, replace_text


def test_threads_of_one_process_can_write_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "status.json"
    texts = [str(number) * 1000 for number in range(10)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda turn: replace_text(path, texts[turn % 10]), range(200)))
    assert path.read_text() in texts
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_gone_is_not_made_again(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        replace_bytes(tmp_path / "gone" / "file", b"")
    assert not (tmp_path / "gone").exists()
