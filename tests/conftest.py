"""Every test has caches and runs of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

import udml_core  # noqa: F401  (before anything that loads OpenMP)

settings.register_profile("ours", deadline=None)  # a slow machine is no fault
settings.load_profile("ours")


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Features and scans, computed once for the whole session."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def own_folders(shared_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(shared_cache))
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "runs"))
