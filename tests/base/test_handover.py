"""Tasks that are handed to a process that waits."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from udml_core.base import handover

SETTINGS = {"UDML_CACHE": "/somewhere"}


def received(folder: Path, settings: dict[str, str], found: list[Path | None], begun: threading.Event) -> None:
    with handover.offered(folder, settings) as offer:
        begun.set()
        found.append(handover.received(offer))


@pytest.fixture
def waiting(tmp_path: Path) -> tuple[Path, list[Path | None], threading.Thread]:
    """Return the folder of offers with a process that waits, what it receives, and the process."""
    folder, found, begun = tmp_path / "ready", [], threading.Event()
    handover.want(folder)
    thread = threading.Thread(target=received, args=(folder, SETTINGS, found, begun))
    thread.start()
    assert begun.wait(10)
    return folder, found, thread


def test_a_task_goes_to_the_process_that_waits_once(
        waiting: tuple[Path, list[Path | None], threading.Thread], tmp_path: Path) -> None:
    folder, found, thread = waiting
    assert handover.is_waiting(folder)
    assert handover.hand_over(folder, tmp_path / "run", SETTINGS)  # returns when the process has ended
    assert found == [tmp_path / "run"]
    assert not handover.is_waiting(folder)
    assert not handover.hand_over(folder, tmp_path / "second", SETTINGS)
    thread.join()
    assert [path.name for path in folder.iterdir()] == ["wanted"]


def test_a_process_with_other_settings_is_left_alone_and_ends_when_no_page_wants_it(
        waiting: tuple[Path, list[Path | None], threading.Thread], tmp_path: Path) -> None:
    folder, found, thread = waiting
    assert not handover.hand_over(folder, tmp_path / "run", {"UDML_CACHE": "/elsewhere"})
    assert thread.is_alive()
    os.utime(folder / "wanted", (0, 0))
    thread.join(10)
    assert not thread.is_alive()
    assert found == [None]


def test_the_offer_of_a_process_that_died_is_no_offer(tmp_path: Path) -> None:
    (tmp_path / "1.json").write_text("{}")
    (tmp_path / "1.lock").touch()
    assert not handover.hand_over(tmp_path, tmp_path / "run", {})
    assert not handover.is_waiting(tmp_path)
    assert not (tmp_path / "1.json").exists()
