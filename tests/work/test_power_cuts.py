"""What survives a power cut: every file that was not synced after its last write is lost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from experiments.hold_fast.damage import KINDS, damage
from experiments.hold_fast.power import forgetful_disk
from tests.running import spec, trained, worked
from udml_core.base.errors import UserError
from udml_core.base.files import read_array, read_arrays, replace_array, replace_arrays
from udml_core.data import catalog
from udml_core.data.dataset import read_user_image
from udml_core.data.given.pair_sets import read_pairs
from udml_core.runs import create_run
from udml_core.runs.analyses import list_analyses
from udml_core.runs.analyses.kinds.graph import NeighborGraph
from udml_core.runs.baselines import BASELINES_FILE, read_baselines
from udml_core.runs.search import Retrieval
from udml_core.work.exporting import export
from udml_core.work.jobs import dispatch
from udml_core.work.workers import train as worker


@pytest.mark.parametrize("method", ["rpml", *(pytest.param(name, marks=pytest.mark.slow) for name in ("plm", "pca"))])
def test_everything_that_a_finished_run_keeps_is_on_the_disk(method: str, tmp_path: Path) -> None:
    fields = {"dimension": 8} | ({} if method == "pca" else {"epochs": 2})
    with forgetful_disk() as disk:
        run = trained(tmp_path / "runs", method=method, fields=fields)
        assert run.status().state == "done"
        assert disk.synced
        assert disk.lost(run.folder) == []


class PowerCutError(BaseException):
    """The computer stops here."""


@pytest.mark.slow
@pytest.mark.parametrize("renames", range(1, 26, 3))
def test_a_run_continues_from_its_last_durable_epoch_and_ends_equal(renames: int, tmp_path: Path,
                                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    request = {"fields": {"dimension": 8, "epochs": 3, "steps": 2}}
    undisturbed = worked(tmp_path / "undisturbed", **request)
    left, replace = renames, Path.replace

    def replace_or_stop(path: Path, target: Path) -> Path:
        nonlocal left
        left -= 1
        if left == 0:
            raise PowerCutError
        return replace(path, target)

    with forgetful_disk() as disk, monkeypatch.context() as patched:
        run = create_run(spec(**request), tmp_path / "runs")
        patched.setattr(Path, "replace", replace_or_stop)
        with pytest.raises(PowerCutError):
            worker.work(run)
    finished = [row["epoch"] for row in run.metrics()[0]]
    disk.cut_power(run.folder)
    assert [row["epoch"] for row in run.metrics()[0]] == finished
    run.clear_failure()
    assert worker.work(run).state == "done"
    np.testing.assert_array_equal(run.embeddings("final"), undisturbed.embeddings("final"))
    assert [row["loss"] for row in run.metrics()[0][1:]] == [row["loss"] for row in undisturbed.metrics()[0][1:]]


def test_a_damaged_sample_of_an_epoch_is_never_fatal(tmp_path: Path) -> None:
    request = {"fields": {"dimension": 8, "epochs": 3, "steps": 2}}
    run = worked(tmp_path / "runs", **request)
    whole = run.epoch_sample(3)
    (run.folder / "epochs" / "0003" / "sample.npy").write_bytes(b"")
    for path in (run.folder / "epochs" / "0002").glob("*.npz"):
        path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(UserError, match=r"sample\.npy should hold an array"):
        run.epoch_sample(3)
    assert run.explanations(2) == []
    assert run.explanations(1)
    run.write_epoch(3, (), whole)
    np.testing.assert_array_equal(run.epoch_sample(3), whole)
    run.write_epoch(3, (), whole + 1)
    np.testing.assert_array_equal(run.epoch_sample(3), whole)


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_array_gives_one_message(kind: str, tmp_path: Path) -> None:
    single, several = tmp_path / "single.npy", tmp_path / "several.npz"
    replace_array(single, np.arange(5000.0))
    replace_arrays(several, {"first": np.arange(5000.0)})
    for path, read in ((single, read_array), (several, lambda p: read_arrays(p, 10**6)),
                       (single, lambda p: read_array(p, mapped=True))):
        if path.is_file():
            damage(path, kind)
        with pytest.raises(UserError, match=path.name):
            read(path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_of_a_finished_run_never_gives_a_trace(kind: str, tmp_path: Path) -> None:
    run = worked(tmp_path / "runs", fields={"dimension": 8, "epochs": 1, "steps": 2})
    for name in ("metrics.jsonl", "evaluation.json", "embeddings.npy", "epochs/0001/sample.npy", "epochs/sample.npy",
                 "index.faiss", "embedder.safetensors"):
        damage(run.folder / name, kind)
    for record in (run.folder / "epochs" / "0001").glob("*.npz"):
        damage(record, kind)
    assert len(run.metrics()[0]) <= (kind == "half")  # whole lines before the cut are kept
    assert run.evaluation() is None
    assert run.explanations(1) == []
    assert run.broken_result()
    for read in (lambda: run.embeddings("final"), lambda: run.epoch_sample(1)):
        with pytest.raises(UserError, match="should hold an array"):
            read()


@pytest.mark.parametrize(("name", "which"), [("embeddings.npy", "final"), ("embeddings-initial.npy", "initial")])
def test_embeddings_of_another_number_of_images_are_refused_by_every_reader(
        name: str, which: Literal["initial", "final"], tmp_path: Path) -> None:
    run = worked(tmp_path / "runs", method="pca", fields={"dimension": 8})
    assert run.broken_result() is None
    damage(run.folder / name, "rows")
    readers = (lambda: run.embeddings(which), lambda: Retrieval(run).search_item(0),
               lambda: export(run, tmp_path / "export"))
    for read in readers:
        with pytest.raises(UserError, match="should have a row for each image, but have"):
            read()
    assert "Resume the run" in (run.broken_result() or "")


def test_arrays_of_another_type_or_shape_give_a_message(tmp_path: Path) -> None:
    run = worked(tmp_path / "runs", fields={"dimension": 8, "epochs": 1, "steps": 2})
    sample, cluster = run.folder / "epochs" / "0001" / "sample.npy", run.folder / "epochs" / "0001" / "clusters.npz"
    graph = list_analyses(run, NeighborGraph)[0]
    for path, kind in ((sample, "rows"), (cluster, "dtype"), (graph.folder / "result.npz", "dtype"),
                       (run.folder / "index.faiss", "pipe"), (run.folder / "notes.json", "text")):
        if path.exists():
            damage(path, kind)
    with pytest.raises(UserError, match=r"sample\.npy should have a row for each image, but have"):
        Retrieval(run).history()
    damage(sample, "flat")
    with pytest.raises(UserError, match=r"sample\.npy should hold an array of another kind"):
        run.epoch_sample(1)
    assert "clusters" not in {record.stored_as for record in run.explanations(1)}
    with pytest.raises(UserError, match=r"result\.npz should hold the result"):
        graph.result()
    assert Retrieval(run).search_item(0)


@pytest.mark.parametrize("kind", ["nested", "pipe", "list", "object"])
def test_a_damaged_small_file_never_stops_the_queue(kind: str, tmp_path: Path) -> None:
    run = create_run(spec(), tmp_path)
    run.queue({})
    for name in ("status.json", "metrics.jsonl", "evaluation.json", BASELINES_FILE, "notes.json", "log.txt", "ticket"):
        (run.folder / name).touch()
        damage(run.folder / name, kind)
    assert dispatch.head(tmp_path, "cpu") is None
    assert run.metrics()[0] == []
    assert run.evaluation() is None
    assert read_baselines(run) is None
    assert bool(run.notes().problem) == (kind != "object")
    assert run.log_tail() == "" or kind != "pipe"


@pytest.mark.parametrize("source", ["pipe", "/dev/zero"])
def test_a_users_file_that_never_ends_gives_a_message(source: str, tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv" if source == "pipe" else Path(source)
    if source == "pipe":
        os.mkfifo(path)
    with pytest.raises(UserError, match="could not be read: it is not a regular file"):
        read_pairs(path, catalog.load("digits"))
    with pytest.raises(UserError, match="must be an image file, but is a folder, a named pipe or a device"):
        read_user_image(path, path.name)


def test_a_file_of_pairs_has_a_largest_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("first,second,same\n0,1,1\n")
    monkeypatch.setattr("udml_core.data.given.pair_sets.MOST_BYTES", path.stat().st_size - 1)
    with pytest.raises(UserError, match="it has 24 bytes, and at most 23 are read"):
        read_pairs(path, catalog.load("digits"))
    monkeypatch.setattr("udml_core.data.given.pair_sets.MOST_BYTES", path.stat().st_size)
    assert len(read_pairs(path, catalog.load("digits"))) == 1
