"""Files: several threads write one, a deleted folder stays deleted, and arrays say how large they are."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

from udml_core.base.errors import UserError
from udml_core.base.files import read_arrays, replace_bytes, replace_text


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


def test_arrays_larger_than_the_limit_are_refused_before_they_are_decompressed(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, first=np.zeros(1_000_000), second=np.zeros(10))
    assert path.stat().st_size < 20_000
    assert len(read_arrays(path, 8_000_080)["first"]) == 1_000_000
    monkeypatch.setattr("numpy.load", lambda *_, **__: pytest.fail("an array was decompressed"))
    with pytest.raises(UserError, match=r"bomb\.npz .* arrays have 8,000,080 bytes, and at most 8,000,079 are read"):
        read_arrays(path, 8_000_079)


@pytest.mark.parametrize("shape", ["(10000,)", "(-1,)"])
def test_a_member_that_is_shorter_than_its_header_says_is_refused(shape: str, tmp_path: Path) -> None:
    path, header = tmp_path / "short.npz", f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}".ljust(117)
    with ZipFile(path, "w") as file:
        file.writestr("first.npy", b"\x93NUMPY\x01\x00" + bytes([118, 0]) + header.encode() + b"\n" + bytes(80))
    with pytest.raises(UserError, match=r"short\.npz .* its header says"):
        read_arrays(path, 10**9)
