"""Locks inside folders that another process may remove."""

from __future__ import annotations

import shutil
import sys
import threading
from pathlib import Path

import pytest
from filelock import FileLock, Timeout

from udml_core.base import locks


def test_a_lock_is_that_of_filelock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not locks.is_held(path)
    assert not path.exists(), "a look creates nothing"
    with locks.held(path, 0):
        assert locks.is_held(path)
        with pytest.raises(Timeout):
            FileLock(path).acquire(timeout=0)
        with pytest.raises(Timeout), locks.held(path, 0.05):
            pass
    assert not locks.is_held(path)
    with FileLock(path):
        assert locks.is_held(path)
        with pytest.raises(Timeout), locks.held(path, 0):
            pass


def test_a_lock_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    other = FileLock(path, thread_local=False)
    other.acquire()
    threading.Timer(0.2, other.release).start()
    with locks.held(path, 20):
        assert locks.is_held(path)


def test_no_folder_is_created(tmp_path: Path) -> None:
    path = tmp_path / "runs" / ".dispatch" / "cpu.lock"
    with pytest.raises(FileNotFoundError), locks.held(path, 1):
        pass
    assert not locks.is_held(path)
    (tmp_path / "runs").write_text("a file where a folder was")
    assert not locks.is_held(path)
    assert [child.name for child in tmp_path.iterdir()] == ["runs"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not remove the folder of an open file")
def test_a_lock_that_was_removed_while_it_was_waited_for_guards_nothing(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "runs" / "lock"
    path.parent.mkdir()
    other = FileLock(path)
    other.acquire()

    def remove(_seconds: float) -> None:
        shutil.rmtree(path.parent)
        other.release()

    monkeypatch.setattr(locks.time, "sleep", remove)
    with pytest.raises(FileNotFoundError), locks.held(path, 20):
        pass
    assert not path.parent.exists()


def test_a_look_while_another_process_looks_finds_no_holder(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    wrong: list[bool] = []

    def look() -> None:
        wrong.extend(held for _ in range(300) if (held := locks.is_held(path)))

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
