"""Deleting runs, restoring them, and emptying the trash."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.running import spec
from udml_core.base.errors import UserError
from udml_core.runs import Run, create_run, list_runs
from udml_core.runs.analyses import create_analysis, plan_analysis
from udml_core.runs.engines.submission import private_folder
from udml_core.runs.trash import (
    DELETED_FILE,
    SECONDS_A_DAY,
    contents,
    delete_run,
    deleted_runs,
    empty_trash,
    restore_run,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "runs"


def ended(root: Path) -> Run:
    """Create a run that was stopped."""
    run = create_run(spec(), root)
    run.write_status(run.stored_status().model_copy(update={"state": "stopped"}))
    return run


def files_of(run: Run) -> dict[str, bytes]:
    """Return the content of each file of a run."""
    return {str(path.relative_to(run.folder)): path.read_bytes() for path in run.folder.rglob("*") if path.is_file()}


def test_a_deleted_run_is_not_listed_and_comes_back_unchanged(root: Path) -> None:
    run, other = ended(root), ended(root)
    before = files_of(run)
    delete_run(run)
    assert list_runs(root) == [other]
    assert [deleted.id for deleted in deleted_runs(root)] == [run.id]
    assert restore_run(run.id, root) == run
    assert set(list_runs(root)) == {run, other}
    assert {name: content for name, content in files_of(run).items() if name != "lock"} == before
    assert deleted_runs(root) == []


@pytest.mark.parametrize("held", [True, False])
def test_a_waiting_or_running_run_is_not_deleted(held: bool, root: Path) -> None:
    run = create_run(spec(), root)  # waiting: its worker has two minutes to start
    if held:
        lock = run.lock().acquire()
        run.write_status(run.stored_status().model_copy(update={"state": "running", "pid": 1}))
    with pytest.raises(UserError, match="Stop it first"):
        delete_run(run)
    if held:
        lock.lock.release()
    assert list_runs(root) == [run]


def test_a_run_whose_map_is_being_computed_is_not_deleted(root: Path) -> None:
    run = ended(root)
    analysis = create_analysis(run, plan_analysis(kind="umap"))
    with pytest.raises(UserError, match="being computed"):
        delete_run(run)
    assert list_runs(root) == [run]
    analysis.write_status(analysis.stored_status().model_copy(update={"state": "done"}))
    delete_run(run)
    assert list_runs(root) == []


def test_what_a_deletion_loses_is_counted(root: Path) -> None:
    run = ended(root)
    for number in (0, 1, 2):
        (run.folder / "epochs" / f"{number:04d}").mkdir(parents=True)
    analysis = create_analysis(run, plan_analysis(kind="umap"), state="done")
    (analysis.folder / "big").write_bytes(bytes(5000))
    lost = contents(run)
    assert (lost.epochs, lost.analyses) == (2, 1), "epoch 0 is before training"
    assert lost.size == sum(len(content) for content in files_of(run).values())


def test_the_trash_is_emptied_by_the_age_of_the_deletion(root: Path) -> None:
    old, new = ended(root), ended(root)
    for run in (old, new):
        delete_run(run)
    marker = root / ".trash" / old.id / DELETED_FILE
    marker.write_text(str(float(marker.read_text()) - 31 * SECONDS_A_DAY))
    assert [run.id for run in deleted_runs(root)] == [new.id, old.id]
    assert empty_trash(root, older_than_days=30) == 1
    assert [run.id for run in deleted_runs(root)] == [new.id]
    with pytest.raises(UserError, match="not in the trash"):
        restore_run(old.id, root)
    assert empty_trash(root) == 1
    assert empty_trash(root) == 0


@pytest.mark.parametrize("chosen", [False, True], ids=["beside the runs", "in a chosen folder"])
def test_the_files_of_a_runs_job_stay_until_it_is_removed_for_good(
        chosen: bool, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if chosen:
        monkeypatch.setenv("UDML_ENGINES", str(tmp_path / "jobs"))
    deleted, copied, other = ended(root), ended(root), ended(root)
    jobs = {run.id: private_folder(root) / run.id for run in (deleted, copied, other)}
    for folder in jobs.values():
        folder.mkdir()
        (folder / "1_submitted.pkl").touch()
    for run in (deleted, copied):
        delete_run(run)
    assert all(folder.exists() for folder in jobs.values()), "a deleted run can be restored"
    shutil.copytree(root / ".trash" / copied.id, copied.folder)
    assert empty_trash(root) == 2
    assert {run for run, folder in jobs.items() if folder.exists()} == {copied.id, other.id}


def test_a_job_folder_that_is_a_link_is_left_alone(root: Path, tmp_path: Path) -> None:
    run = ended(root)
    (tmp_path / "elsewhere" / run.id).mkdir(parents=True)
    (root / ".engines").symlink_to(tmp_path / "elsewhere")
    delete_run(run)
    assert empty_trash(root) == 1
    assert (tmp_path / "elsewhere" / run.id).exists()


def test_the_age_of_a_deletion_without_a_readable_time_is_the_folders(root: Path) -> None:
    run = ended(root)
    deleted = delete_run(run)
    (deleted.folder / DELETED_FILE).write_text("?")
    os.utime(deleted.folder, (1e9, 1e9))
    assert empty_trash(root, older_than_days=30) == 1


def test_a_run_is_restored_only_to_a_free_place(root: Path) -> None:
    run = ended(root)
    delete_run(run)
    run.folder.mkdir()
    with pytest.raises(UserError, match="a run of this id exists"):
        restore_run(run.id, root)
    assert [deleted.id for deleted in deleted_runs(root)] == [run.id]


@pytest.mark.parametrize("name", ["..", "../elsewhere", ""])
def test_only_ids_are_restored(name: str, root: Path) -> None:
    ended(root)
    with pytest.raises(UserError):
        restore_run(name, root)
