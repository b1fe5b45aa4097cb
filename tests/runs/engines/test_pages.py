"""Every command in the pages about engines is executed by the real programs."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from udml_core.cli.commands import app
from udml_core.methods import METHODS
from udml_core.methods.shared.instance import InstanceMethod
from udml_core.runs import Run, list_runs, runs_folder
from udml_core.runs.tasks import LIVE_STATES
from udml_core.work import jobs

PAGES = Path(__file__).parents[3] / "docs"
TRIAL = "/tmp/one-node"


def commands(page: str) -> list[list[str]]:
    """Return the words of every command of a page."""
    blocks = re.findall(r"^```sh\n(.*?)^```", (PAGES / f"{page}.md").read_text(encoding="utf-8"), re.M | re.S)
    return [shlex.split(line) for block in blocks for line in block.splitlines()]


def execute(words: list[str], patch: pytest.MonkeyPatch) -> None:
    """Execute a command; `udml` in this process, because each start of the program takes seconds."""
    newest = max(list_runs(runs_folder()), key=lambda run: run.spec().created, default=None)
    words = [newest.id if word == "RUN" and newest else word for word in words]
    match words:
        case ["udml", *rest]:
            assert not app(rest, standalone_mode=False)
        case ["export", setting]:
            patch.setenv(*setting.split("=", 1))
        case _:
            subprocess.run(words, cwd=PAGES.parent, check=True, timeout=120, stdout=subprocess.DEVNULL)


@pytest.mark.slow
@pytest.mark.parametrize("page", ["submitit-local", "engines", "slurm", "torchrun"])
def test_every_command_of_a_page_works(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                       capsys: pytest.CaptureFixture[str]) -> None:
    listed = commands(page)
    assert len(listed) >= 3
    if page == "slurm":
        listed = [[word.replace(TRIAL, str(tmp_path / "slurm")) for word in words] for words in listed]
        started = subprocess.run(listed[0], cwd=PAGES.parent, capture_output=True, text=True, check=False)
        if started.returncode:
            reason = f"Slurm did not start: {started.stderr.strip()}"
            (pytest.fail if os.environ.get("UDML_NEEDS_SLURM") else pytest.skip)(reason)
        listed = listed[1:]
    try:
        for words in listed:
            if "--stop" in words:
                end(list_runs(runs_folder()))
            execute(words, monkeypatch)
        states = [run.status().state for run in list_runs(runs_folder())]
        assert not {"failed", "interrupted"} & set(states)
    finally:
        end(list_runs(runs_folder()))
        if page == "slurm":
            execute(listed[-1], monkeypatch)
    if page in ("slurm", "submitit-local"):
        assert f"({page}: " in capsys.readouterr().out


def end(runs: list[Run]) -> None:
    for run in runs:
        if run.status().state in LIVE_STATES:
            jobs.stop(run)


def test_the_page_lists_the_methods_that_share_batches() -> None:
    text = " ".join((PAGES / "torchrun.md").read_text(encoding="utf-8").split())
    sharing = [method for method in METHODS if method.make({}).shares_batches]
    *names, last = (method.__name__ for method in sharing if not issubclass(method, InstanceMethod))
    assert f"{', '.join(names)} and {last}, and all methods of random views, such as PSLR and SimCLR" in text
    assert {method for method in METHODS if issubclass(method, InstanceMethod)} < set(sharing)
