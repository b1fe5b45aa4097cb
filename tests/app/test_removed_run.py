"""A run that another session or the command line deletes while a page shows it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from pages.parts.shell import run_picker
from pages.parts.shell.views import VIEWS
from tests.app.opening import opened, texts
from tests.app.test_pages import SHOWN
from tests.running import worked
from tests.tiers import fast_first
from udml_core.runs import Run, list_runs
from udml_core.runs.trash import delete_run

FIRST = ("retrieval", "runs", "train", "explore")


@pytest.mark.parametrize("page", fast_first(sorted(SHOWN, key=lambda page: page not in FIRST), 4))
@pytest.mark.parametrize("for_good", [False, True])
def test_a_page_survives_that_its_run_is_deleted(page: str, for_good: bool, root: Path,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_RUNS", str(root))
    monkeypatch.setenv("UDML_EXAMPLES", "0")
    run = worked(root)
    test = opened(page, run=run.id)
    assert not test.exception
    if for_good:
        shutil.rmtree(run.folder)
    else:
        delete_run(run)
    for _ in range(2):  # the first movement afterwards, and a reload
        test.run()
        assert not test.exception, test.exception[0].message
        assert len(texts(test)) > 20
    assert not [other for other in list_runs(root) if other.id == run.id], "no page brings the folder back"
    assert not run.folder.exists()


@pytest.mark.parametrize("page", fast_first(sorted(VIEWS, key=lambda page: page not in FIRST), 4))
def test_a_page_survives_that_its_run_is_deleted_while_it_is_drawn(page: str, root: Path,
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    """What is drawn again alone after a movement holds a run whose folder is gone, as here."""
    monkeypatch.setenv("UDML_RUNS", str(root))
    monkeypatch.setenv("UDML_EXAMPLES", "0")
    worked(root)
    choose = run_picker._pick_app_run

    def choose_and_lose(*arguments: Any) -> Run:
        run = choose(*arguments)
        if run.folder.exists():
            delete_run(run)
        return run

    monkeypatch.setattr(run_picker, "_pick_app_run", choose_and_lose)
    test = opened(page)
    assert not test.exception, test.exception[0].message
    test.run()
    assert not test.exception, test.exception[0].message
    assert len(texts(test)) > 20
