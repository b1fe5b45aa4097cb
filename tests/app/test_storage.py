"""Folders of the app that cannot be written."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.hold_fast.sockets import Visitor, run_alone
from experiments.real_server import serving
from pages.parts.shell.views import PARAMETER, VIEWS, page_of
from udml_core.base.paths import python_path
from udml_core.base.storage import storage_problem

RUN = "20261122-120000-rpml-digits"


@pytest.fixture(params=["read-only", "full"])
def refusing(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A cache that cannot be written, and why: a mounted file system, because root may write in any folder."""
    cache = tmp_path / "cache"
    cache.mkdir()
    options = {"read-only": "ro", "full": "size=4k,nr_inodes=3"}[request.param]
    try:
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", str(cache)], check=False,
                              capture_output=True)
    except FileNotFoundError:
        pytest.skip("there is no command mount")
    if done.returncode:
        pytest.skip("this user may not mount a file system")
    monkeypatch.setenv("UDML_CACHE", str(cache))
    yield request.param
    subprocess.run(["umount", "-l", str(cache)], check=True)


async def shown(url: str, view: str) -> str:
    """Return the texts of a view of an example, which a real server sends."""
    visitor = Visitor(url)
    await visitor.open(page_of(view), f"{PARAMETER}={view}&run={RUN}")
    await visitor.close()
    return "\n".join(visitor.pictures.texts).replace("\\", "")


@pytest.mark.slow
def test_pages_say_which_folder_why_and_what_to_do(refusing: str, tmp_path: Path) -> None:
    reason = {"read-only": "it is read-only", "full": "the disk is full"}[refusing]
    sentence = f"The cache, {os.environ['UDML_CACHE']}, cannot be written, because {reason}"
    with serving("serve.py", os.environ | {"UDML_RUNS": str(tmp_path / "runs"), "UDML_EXAMPLES": "1"}) as (url, _):
        texts = {view: run_alone(shown(url, view)) for view in VIEWS}
    assert [view for view, words in texts.items() if "stack_trace" in words] == []
    assert {view for view, words in texts.items() if sentence in words} >= {"clusters", "labels", "compare"}
    assert all("or set UDML_CACHE to another folder and start again" in words for words in texts.values()
               if sentence in words)


@pytest.mark.slow
def test_the_command_line_says_it_too(refusing: str) -> None:
    done = subprocess.run([sys.executable, "-m", "udml_core", "audit", "digits"], capture_output=True, text=True,
                          check=False, env=os.environ | {"PYTHONPATH": python_path()})
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"The cache, {os.environ['UDML_CACHE']}, cannot be written, because ")
    assert last.endswith("or set UDML_CACHE to another folder and start again.")
    assert ("Free some space" in last) == (refusing == "full")


def test_only_the_apps_folders_are_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "runs"))
    inside, outside = str(tmp_path / "runs" / "a" / "spec.json"), "/elsewhere/file"
    for number, words in ((errno.EROFS, "it is read-only"), (errno.EACCES, "this user may not write in it")):
        problem = storage_problem(OSError(number, os.strerror(number), inside))
        assert str(problem) == (
            f"The folder of runs, {tmp_path / 'runs'}, cannot be written, because {words} (at {inside}). Make it "
            "writable for the user who runs the app, or set UDML_RUNS to another folder and start again.")
        assert storage_problem(OSError(number, os.strerror(number), outside)) is None
    folder = str(tmp_path / "runs")
    assert "runs, cannot be written, because it is read-only. Make" in str(
        storage_problem(OSError(errno.EROFS, "read-only", folder)))
    assert storage_problem(OSError(errno.ENOENT, "gone", inside)) is None
    assert "too long" in str(storage_problem(OSError(errno.ENAMETOOLONG, "long", "n" * 300)))
    assert storage_problem(OSError(errno.EROFS, "no name")) is None
