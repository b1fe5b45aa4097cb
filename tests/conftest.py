"""Isolation of the tests: a cache per session, a folder of runs per test; and the browser."""

from __future__ import annotations

import udml_core  # noqa: F401  (must be imported before anything that loads OpenMP)

# isort: split
import gc
import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from zlib import crc32

import pytest
import torch
from hypothesis import settings
from playwright.sync_api import Browser, sync_playwright

from experiments.real_server import BROWSERS, FLAGS, find_browser
from tests.tiers import slow_tests
from udml_core.base.malloc import keep_freed_memory
from udml_core.data.sources.opened import LIST

keep_freed_memory()


def declare_operators() -> torch.library.Library | None:
    """Declare two operators whose absence stops the import of torchvision.

    The package index has torchvision for CUDA only, whose compiled part does not load beside PyTorch for the CPU.
    Models and transforms do not need it.
    """
    spec = find_spec("torchvision")
    if spec is None or spec.origin is None:
        return None
    try:
        torch.ops.load_library(str(Path(spec.origin).with_name("_C.so")))
    except OSError:
        operators = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            operators.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        return operators
    return None


OPERATORS = declare_operators()  # they vanish with this object
settings.register_profile("project", deadline=None)  # a slow machine must not fail a test
settings.load_profile("project")


PART = "UDML_PART"
"""A part of the tests to run: 2/12 is the second of twelve, which together are all tests."""
PROCESSES = ("work", "runs", "cli", "experiments")
"""Folders of tests that start processes."""


def part_of(test: str, parts: int) -> int:
    """Return the part from 1 to `parts` to which a test belongs."""
    return crc32(test.encode()) % parts + 1


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the listed tests as slow, and order the tests for work stealing.

    It deals the tests out in equal parts and takes tests from the end of a part. The first part begins with tests that
    wait for browsers, so that few processes start a server, and the second with tests that wait for other processes.
    Tests that only compute fill the rest, and the waiting time.
    """
    listed = slow_tests()
    for item in items:
        if item.nodeid in listed:
            item.add_marker("slow")
    # Removed, so that tests that run pytest in a process of their own see all tests.
    number, _, parts = os.environ.pop(PART, "1/1").partition("/")
    chosen = [item for item in items if part_of(item.nodeid, int(parts)) == int(number)]
    config.hook.pytest_deselected(items=[item for item in items if part_of(item.nodeid, int(parts)) != int(number)])
    items[:] = chosen
    own = Path(__file__).parent
    browsers, starters, others = [], [], []
    for item in items:
        is_starter = item.path.relative_to(own).parts[0] in PROCESSES
        (browsers if item.get_closest_marker("browser") else starters if is_starter else others).append(item)
    part = len(items) // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    filling = max(0, part - len(browsers)) if part < len(items) else 0
    items[:] = browsers + others[:filling] + starters + others[filling:]


def pytest_collection_finish() -> None:
    """Leave what has been imported out of garbage collections, which would visit a million objects each time."""
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Share computed features and folder scans in one cache for the whole session."""
    folder, session = tmp_path_factory.mktemp("cache"), tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        session = session.parent
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UDML_CACHE", str(folder))
        patch.setenv("UDML_EXAMPLES", "0")  # tests count runs; tests of the examples turn them on
        patch.setenv("UDML_READY", "0")  # each page of a test would start a process
        patch.setenv("UDML_MAPS", "0")  # tests of maps after a run switch them on
        patch.setattr(os, "fsync", lambda _: None)  # tests of power cuts bring a disk that knows what was synced
        patch.setenv("UDML_TEST_RUNS", str(session / "executed-runs"))  # see `tests.running.worked`
        yield folder


@pytest.fixture(autouse=True)
def own_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "runs"))


@pytest.fixture(autouse=True)
def own_labels(shared_cache: Path) -> Iterator[None]:
    """Remove the labels, pairs and judgments that a test gave, and the folders that it opened.

    Other folders with the same images inherit what was given, and pages begin with the folder opened last.
    """
    given = shared_cache / "given"
    before, folders = set(given.rglob("*.jsonl")), shared_cache / LIST
    opened = folders.read_bytes() if folders.exists() else None
    yield
    for path in set(given.rglob("*.jsonl")) - before:
        path.unlink(missing_ok=True)
    if opened is not None:
        folders.write_bytes(opened)
    else:
        folders.unlink(missing_ok=True)


@pytest.fixture(autouse=True)
def own_main_module() -> Iterator[None]:
    """Restore the main module, which AppTest replaces by its script and new processes run again."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The browser."""
    path = chromium()
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield launched
        launched.close()


def chromium() -> str:
    """Return the path of Chromium; skip the test with instructions if it is not installed."""
    path = find_browser()
    if path is None:
        pytest.skip(f"Browser tests need Chromium, but none of {', '.join(BROWSERS)} is on the PATH. Install it: "
                    "`sudo apt install chromium` on Debian and Ubuntu.")
    return path
