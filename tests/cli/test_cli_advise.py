"""The command `udml advise`: what it prints of a race, and the commands that use its winner."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.running import write_digits
from udml_core.base.errors import UserError
from udml_core.cli import commands as cli
from udml_core.data import catalog
from udml_core.exploration import race_running
from udml_core.runs import Run, list_runs
from udml_core.runs.analyses import Analysis
from udml_core.work.workers import analyse
from udml_core.work.workers import train as training

OPTIONS = ["--backbone", "pixels", "--judges", "efficientnet-lite0", "--encoders", "squeezenet", "--budget", "30"]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks are executed at once in this process, and no method is trained."""
    def work(task: Run | Analysis, *_: Any) -> None:
        if isinstance(task, Run):
            training.work(task, analyse=False)
        else:
            analyse.work(task, train=training.work_aside)

    monkeypatch.setattr("udml_core.work.jobs.launch.launch", work)
    monkeypatch.setattr(race_running, "METHODS", ())


def call(capsys: Any, *words: str) -> tuple[str, str]:
    cli.app(["advise", *words], standalone_mode=False)
    printed = capsys.readouterr()
    return printed.out, printed.err


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_a_race_is_followed_and_ends_with_the_commands_that_search(capsys: Any, tmp_path: Path) -> None:
    folder, root = write_digits(tmp_path / "digits", 100, by_class=False), tmp_path / "runs"
    words = [str(folder), "--serves", "groups", "--runs", str(root), *OPTIONS]
    out, err = call(capsys, *words, "--json")
    answer = json.loads(out)
    sentences = [candidate["sentence"] for candidate in answer["candidates"]]
    assert len(sentences) > 5
    assert all(sentence.split("; ")[0] in err for sentence in sentences), "each candidate has a line"
    assert answer["state"] == "done"
    assert str(folder) in catalog.remembered_folders(), "the app lists the folder"
    assert answer["asked"]["serves"] == "groups"
    winner = answer["winner"]
    (frozen,) = (run for run in list_runs(root) if run.spec().backbone == "pixels")
    if winner is None:
        assert answer["commands"] == [f"udml query {frozen.id} picture.jpg"]
    else:
        refine, query = map(shlex.split, answer["commands"])
        assert refine[:5] == ["udml", "refine", winner["run"], "--recipe", winner["setup"]["recipe"]]
        assert query[:3] == ["udml", "query", winner["run"]]
        cli.app([*refine[1:], "--runs", str(root)], standalone_mode=False)
        cli.app([*query[1:3], "0", *query[4:], "--runs", str(root), "--json"], standalone_mode=False)
        assert json.loads(capsys.readouterr().out.splitlines()[-1])["embedding"].startswith("refine-")
    again, _ = call(capsys, *words)
    assert again.startswith(answer["advice"]), "a finished race is not run again"


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("words", "message"), [
    (["--serves", "all"], "not one of 'first', 'groups'"), (["--budget", "0"], "budget: .* got 0"),
    (["--judges", "squeznet"], "got 'squeznet'"), (["--backbone", "vgg"], "got 'vgg'")])
def test_bad_options_are_refused_before_anything_is_computed(
        words: list[str], message: str, capsys: Any, tmp_path: Path) -> None:
    folder, root = write_digits(tmp_path / "digits", 30, by_class=False), tmp_path / "runs"
    with pytest.raises(Exception, match=message):
        call(capsys, str(folder), "--runs", str(root), *words)
    assert not list_runs(root)


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_a_table_needs_a_second_table_as_a_judge(capsys: Any, tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(60, 8)).astype(np.float32)
    tables = [tmp_path / f"{name}.npy" for name in ("own", "judge", "short")]
    judge = rows @ np.random.default_rng(1).normal(size=(8, 8)).astype(np.float32)
    for path, vectors in zip(tables, (rows, judge, rows[:40]), strict=True):
        np.save(path, vectors)
    words = [str(tables[0]), "--runs", str(tmp_path / "runs"), "--budget", "30", "--json"]
    with pytest.raises(UserError, match="needs a second table of vectors of the same images as a judge"):
        call(capsys, *words)
    answer = json.loads(call(capsys, *words, "--judges", str(tables[1]))[0])
    assert {candidate["state"] for candidate in answer["candidates"]} == {"judged"}
    assert answer["candidates"][0]["name"] == "Whitening"
    for table, message in ((tables[2], "short.npy has 40 rows without the names of all 60 images"),
                           (tables[0], "has the features that it would judge")):
        with pytest.raises(SystemExit):
            call(capsys, *words, "--judges", str(table))
        assert message in capsys.readouterr().err
