"""Free memory within the limits of control groups."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from udml_core.base import free_memory as module
from udml_core.base.free_memory import free_memory


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with 8 GB free, and the folder of its control groups."""
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=8e9))
    monkeypatch.setattr(module, "GROUPS", tmp_path)
    monkeypatch.setattr(module, "OWN", tmp_path / "own")
    return tmp_path


def write(folder: Path, limit: str, used: int, version: int = 2) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in zip(module.FILES[version], (limit, used), strict=True):
        (folder / name).write_text(f"{value}\n")
    (folder / "memory.stat").write_text("anon 5\ninactive_file 200000000\nactive_file 100000000\n")


def test_without_limits_the_machine_counts(groups: Path) -> None:
    assert free_memory() == 8e9, "no control groups"
    (groups / "own").write_text("3:cpu:/job\n0::/job\n")
    assert free_memory() == 8e9, "a group that is not visible"
    write(groups / "job", "max", 1_000_000_000)
    assert free_memory() == 8e9


def test_the_tightest_group_bounds_and_its_cached_files_are_free(groups: Path) -> None:
    (groups / "own").write_text("0::/user/job\n")
    write(groups / "user/job", "max", 1_000_000_000)
    write(groups / "user", "4000000000", 1_500_000_000)
    assert free_memory() == 4e9 - 1.5e9 + 0.3e9
    write(groups / "user", "1000000000", 1_500_000_000)
    assert free_memory() == 0, "a group may use more than its limit for a moment"


def test_limits_of_the_first_version_count(groups: Path) -> None:
    (groups / "own").write_text("5:memory:/docker/abc\n1:cpu:/docker/abc\n")
    write(groups / "memory", "2000000000", 500_000_000, version=1)
    assert free_memory() == 2e9 - 0.5e9 + 0.3e9, "in a container the own group is the root"
