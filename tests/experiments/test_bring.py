"""The experiment on odd folders counts lost files, lost images, and errors without a message."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.bring.odd import GOOD, ODD, attempt, paths
from udml_core.base.errors import UserError
from udml_core.data import catalog


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))


def test_there_are_fifty_cases_that_open_or_are_refused(tmp_path: Path) -> None:
    assert sum(map(len, ODD.values())) >= 50
    ends = {kind: attempt(cases[name], tmp_path / kind)[0] for kind, cases, name in (
        ("folders", ODD["folders"], "a cut image"), ("tables", ODD["tables"], "Latin-1"),
        ("archives", ODD["archives"], "an archive of images"))}
    assert ends == {"folders": "opened", "tables": "refused", "archives": "opened"}


def test_what_is_lost_or_broken_counts_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = catalog.load

    def forgetful(name: str) -> Any:
        return replace(load(name), names=("a/1.png", "other"))

    def destructive(name: str) -> Any:
        dataset = load(name)
        (Path(name) / "notes.txt").unlink()
        return dataset

    def refusing(message: str, act: Any = lambda _name: None) -> Any:
        def refuse(name: str) -> Any:
            act(name)
            raise UserError(message)
        return refuse

    def failing(_name: str) -> Any:
        raise KeyError

    for number, (wrong, end) in enumerate((
            (load, "opened"), (forgetful, "lost"), (destructive, "lost"), (refusing("no"), "refused"),
            (refusing("no", catalog.remember), "lost"), (refusing("no", destructive), "lost"),
            (refusing(""), "broken"), (failing, "broken"))):
        monkeypatch.setattr(catalog, "load", wrong)
        assert attempt(paths(GOOD | {"notes.txt": b"text"}), tmp_path / str(number))[0] == end, number
