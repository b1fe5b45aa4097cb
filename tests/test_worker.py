"""What the worker owns: results, selection, failures with a message, the unlabeled folder."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.running import spec, until, worked, write_digits
from udml_core import jobs
from udml_core.analyses import list_analyses
from udml_core.data import catalog
from udml_core.data.given import labels as annotations
from udml_core.data.given.pairs import PairSet
from udml_core.data.splits import fixed_sample, make_split
from udml_core.data.thumbnails import sheets_ready
from udml_core.errors import UserError
from udml_core.evaluation import effective_rank, map_at_r, recall_at_k
from udml_core.explanations import Clusters, LatentLayer, Pairs, Prototypes, Triplets, Uncertainty
from udml_core.exploration.instances import latent_rows
from udml_core.methods import RPML, Embedder
from udml_core.retrieval import Retrieval
from udml_core.runs import TRAINED_RANK, Run, best_epoch, create_run, list_runs
from udml_core.workers import material
from udml_core.workers import train as worker
from udml_core.workers.evaluate import evaluate_run


def quiet(_share: float, _what: str) -> None: ...


def test_a_run_leaves_everything_that_the_pages_read(tmp_path: Path) -> None:
    run = worked(tmp_path)
    assert run.status().state == "done", run.status().message
    rows, _ = run.metrics()
    assert [row["epoch"] for row in rows] == [0, 1, 2]
    assert {"loss", "mean weight", "violating", "effective rank", "neighbor stability", "sample map@r"} <= set(rows[1])
    assert [type(one) for one in run.explanations(1)] == [Clusters, Triplets]
    assert [type(one) for one in run.explanations(2)] == [Triplets]
    dataset = catalog.load("digits")
    test = make_split(dataset, "seen").test
    evaluation = run.evaluation()
    assert evaluation is not None
    assert set(evaluation) == {"initial", "frozen", "pca", "final"}
    assert evaluation["frozen"]["dimension"] == 64
    for name, which in (("initial", "initial"), ("final", "final")):
        embeddings = np.asarray(run.embeddings(which))[test]  # type: ignore[arg-type]
        labels = np.asarray(dataset.labels)[test]
        assert evaluation[name]["recall@1"] == pytest.approx(100 * recall_at_k(embeddings, labels)[1])
        assert evaluation[name]["map@r"] == pytest.approx(100 * map_at_r(embeddings, labels)[0])
    assert evaluate_run(run, material.load(run, quiet), quiet) == evaluation
    assert sheets_ready(dataset)


def test_the_sample_is_larger_than_what_the_curves_are_judged_on_and_stays_what_it_was(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(material, "SAMPLE", 200)
    monkeypatch.setattr(material, "JUDGED", 50)
    run = worked(tmp_path)
    test = make_split(catalog.load("digits"), "seen").test
    noted = run.sample_indices()
    assert len(noted) == 200
    assert set(noted) <= set(test)
    for number in (0, 2):
        assert len(run.epoch_sample(number)) == 200
    loaded = material.load(run, quiet)
    assert len(loaded.judged) == 50
    judged = run.epoch_sample(2)[loaded.judged]
    labels = np.asarray(loaded.dataset.labels)[noted[loaded.judged]]
    assert run.metrics()[0][2]["sample map@r"] == pytest.approx(map_at_r(judged, labels)[0])
    monkeypatch.setattr(material, "SAMPLE", 300)  # as a later version may have it
    np.testing.assert_array_equal(material.load(run, quiet).sample, noted)


def test_validation_keeps_the_best_epoch_and_hides_its_images_from_fit(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    whole_fit = RPML.fit

    def fit(self: RPML, data: Any, setting: Any, start: Any = None) -> Any:
        seen.append(len(data))
        return whole_fit(self, data, setting, start)

    monkeypatch.setattr(RPML, "fit", fit)
    run = worked(tmp_path, select="validation", fields={"dimension": 16, "epochs": 3, "steps": 2})
    assert run.status().state == "done", run.status().message
    train = make_split(catalog.load("digits"), "seen").train
    assert seen == [len(train) - len(material.load(run, quiet).split.validation)]
    assert 0.13 < 1 - seen[0] / len(train) < 0.17
    scores = [row["validation map@r"] for row in run.metrics()[0]][1:]
    assert run.kept_epoch() == 1 + int(np.argmax(scores))
    best = Embedder.load(run.best_embedder_path)
    loaded = material.load(run, quiet)
    held_out = best.embed_features(loaded.features[loaded.split.validation])
    labels = np.asarray(loaded.dataset.labels)[loaded.split.validation]
    assert map_at_r(held_out, labels)[0] == pytest.approx(max(scores), abs=1e-6)
    everything = best.embed_features(np.asarray(loaded.features))
    np.testing.assert_array_equal(run.embeddings("final"), everything)


@pytest.mark.parametrize("method", ["rpml", "srpml", "whiten", "pca", "frozen"])
def test_a_flat_folder_trains_with_every_method_and_is_judged_without_labels(method: str, tmp_path: Path) -> None:
    folder = str(write_digits(tmp_path / "flat", 80, by_class=False))
    small = {"dimension": 8, "epochs": 1, "n_neighbors": 6, "epsilon": 0.5}
    fields = small if "rpml" in method else {"dimension": 8} if method == "pca" else {}
    run = worked(tmp_path / "runs", method=method, dataset=folder, split=None, fields=fields)
    assert run.status().state == "done", run.status().message
    evaluation = run.evaluation()
    assert evaluation is not None
    assert {"trustworthiness", "continuity", "effective rank", "neighbors kept from frozen"} <= set(evaluation["final"])
    assert not {"recall@1", "nmi", "map@r"} & set(evaluation["final"])
    assert [hit.correct for hit in Retrieval(run).search_item(3, 5)] == [None] * 5


def test_labels_that_a_person_gave_are_frozen_with_the_run_and_choose_its_epoch(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    folder = str(write_digits(tmp_path / "flat", 80, by_class=False))
    dataset = catalog.load(folder)
    small = {"dimension": 8, "n_neighbors": 4, "epochs": 3, "partition": 0, "steps": 2}
    given = {"method": "ssdml", "dataset": folder, "split": None, "labels": "given", "fields": small}
    with pytest.raises(UserError, match="got 0 labels in 0 classes"):
        spec(**given)
    for start in range(0, 10):
        annotations.give(dataset, range(start, 40, 10), f"digit {start}")
    run = create_run(spec(**given), tmp_path / "runs")
    annotations.give(dataset, range(40), "something else")  # too late for this run
    assert worker.work(run).state == "done", run.status().message
    rows = run.metrics()[0]
    assert [row["epoch"] for row in rows] == [0, 1, 2, 3]
    best = Embedder.load(run.best_embedder_path)
    loaded = material.load(run, quiet)
    assert loaded.few is not None
    known = np.flatnonzero(loaded.few >= 0)
    assert known.tolist() == list(range(40))
    assert len(loaded.split.validation) == 0
    score = recall_at_k(best.embed_features(loaded.features[known]), loaded.few[known], (1,))[1]
    assert score == pytest.approx(max(row["given recall@1"] for row in rows[1:]))
    assert [row[TRAINED_RANK] for row in rows] == [row["effective rank"] for row in rows], "all train and all test"


def test_the_rank_that_given_labels_are_chosen_by_is_of_training_images(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    dataset = catalog.load("digits")
    for start in range(2):
        annotations.give(dataset, range(start, 20, 2), f"class {start}")
    monkeypatch.setattr("udml_core.runs.selection.RANKS_KEPT", (1, 1))  # whatever the first epoch does is a collapse
    fields = {"dimension": 8, "epochs": 2, "partition": 0, "steps": 2}
    run = worked(tmp_path, method="ssdml", labels="given", fields=fields)
    for row in run.metrics()[0]:
        trained = run.epoch_trained(row["epoch"])
        assert trained is not None
        assert row[TRAINED_RANK] == effective_rank(trained) != row["effective rank"]
    assert run.kept_epoch() == 1
    assert "no epoch is sound and epoch 1 is kept" in capsys.readouterr().err
    loaded = material.load(run, quiet)
    kept = Embedder.load(run.embedder_path).embed_features(loaded.features[fixed_sample(loaded.split.train, 1000)])
    np.testing.assert_allclose(kept, run.epoch_trained(1), atol=1e-6)


def rows(ranks: list[float], scores: list[float], name: str = TRAINED_RANK) -> list[dict[str, Any]]:
    """Epochs of a run on given labels; the test half says nothing."""
    return [{"epoch": epoch, "effective rank": 1.0, name: rank} | ({"given recall@1": score} if epoch else {})
            for epoch, (rank, score) in enumerate(zip(ranks, [0, *scores], strict=True))]


@pytest.mark.parametrize("name", [TRAINED_RANK, "effective rank"])  # older rows have no other rank
def test_given_labels_choose_among_the_epochs_before_the_collapse(name: str) -> None:
    assert best_epoch(rows([40, 41, 42, 43], [0.7, 0.8, 0.8], name)) == 3, "the last of equals"
    assert best_epoch(rows([43.5, 52.2, 56.7, 60.3], [0.7, 0.8, 0.9], name)) == 1, "a rank that rises is a collapse"
    assert best_epoch(rows([40, 38, 19, 39], [0.7, 0.9, 0.8], name)) == 1, "a rank that comes back tells nothing"
    assert best_epoch(rows([40, 15, 39, 5], [0.7, 0.8, 0.9], name)) == 1, "the first of none that is sound"
    assert best_epoch(rows([81, 20, 43, 61], [0.7, 0.8, 0.8], name), rank_shows_collapse=False) == 3, "the last of the best"


def test_a_metric_that_moves_the_rank_at_once_is_no_collapse(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    folder = str(write_digits(tmp_path / "flat", 80, by_class=False))
    for start in range(10):
        annotations.give(catalog.load(folder), range(start, 40, 10), f"digit {start}")
    monkeypatch.setattr("udml_core.runs.selection.RANKS_KEPT", (1, 1))
    monkeypatch.setattr(worker, "recall_at_k", lambda *_: {1: 1.0})  # all epochs are equals, so the last is to be kept
    fields = {"n_neighbors": 4, "epochs": 2, "partition": 0, "trains": "encoder", "batch_norm": "batch"}
    run = worked(tmp_path / "runs", method="lrml", dataset=folder, backbone="cnn", split=None, labels="given",
                 fields=fields)
    assert run.status().state == "done", run.status().message
    assert run.kept_epoch() == 2
    assert "no epoch is sound" not in capsys.readouterr().err
    np.testing.assert_allclose(run.embeddings("final")[run.sample_indices()], run.epoch_sample(2), rtol=1e-4, atol=1e-6)


def test_without_a_score_no_epoch_is_chosen() -> None:
    assert best_epoch([{"epoch": 0, "effective rank": 10.0}, {"epoch": 1, "effective rank": 9.0}]) is None


def test_a_data_set_that_vanished_or_changed_ends_a_run_with_a_message(tmp_path: Path) -> None:
    folder = write_digits(tmp_path / "images")
    planned = spec(dataset=str(folder), split="zero-shot", method="pca", fields={"dimension": 8})
    changed, vanished = create_run(planned, tmp_path / "runs"), create_run(planned, tmp_path / "runs")
    next(folder.rglob("*.png")).unlink()
    assert "has changed since this run was started" in worker.work(changed).message
    folder.rename(tmp_path / "elsewhere")
    status = worker.work(vanished)
    assert status.state == "failed"
    assert "no data set" in status.message
    assert "Traceback" in vanished.error()


@pytest.mark.parametrize(("fields", "message"), [
    ({"epsilon": 1.0, "dimension": 8}, "Lower the field 'epsilon'"),
    ({"epsilon": 0.0, "n_neighbors": 400, "dimension": 8}, "Raise the field 'epsilon'"),
])
def test_settings_that_leave_nothing_to_learn_say_which_field_to_move(
        fields: dict[str, Any], message: str, tmp_path: Path) -> None:
    status = worked(tmp_path, fields=fields).status()
    assert status.state == "failed"
    assert message in status.message


def test_a_full_disk_ends_a_run_with_a_message_and_leaves_finished_epochs_and_the_way_on(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = create_run(spec(fields={"dimension": 16, "epochs": 4, "steps": 2}), tmp_path)
    write = Run.write_checkpoint

    def full(self: Run, number: int, *rest: Any) -> None:
        if number == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(self, number, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "write_checkpoint", full)
        status = worker.work(run)
    assert status.state == "failed"
    assert "The disk is full" in status.message
    assert run.epoch_numbers()[:3] == [0, 1, 2]
    assert worker.work(run).state == "done"
    assert [row["epoch"] for row in run.metrics()[0]] == [0, 1, 2, 3, 4]


def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=900k", "tmpfs", str(disk)], capture_output=True,
                             check=False)
    if mounted.returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        run = create_run(spec(fields={"dimension": 16, "epochs": 60, "steps": 1}), disk)
        status = worker.work(run)
        assert status.state == "failed"
        assert "The disk is full" in status.message
        assert run.status().message == status.message
        assert run.metrics()[0]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("room", [120, 200, 280, 360, 440, 520])
def test_wherever_the_disk_fills_the_message_says_so(room: int, tmp_path: Path) -> None:
    """Curves, samples, checkpoints, embeddings (NumPy loses the error's number) or index (so does faiss)."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={room}k", "tmpfs", str(disk)], capture_output=True,
                      check=False).returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        run = create_run(spec(fields={"dimension": 16, "epochs": 1, "steps": 1}), disk)
        worker.work(run)
        assert run.status().state == "failed"
        assert "The disk is full" in run.status().message, run.error()
        assert all(np.isfinite(run.epoch_sample(row["epoch"])).all() for row in run.metrics()[0])
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_losses_that_are_not_finite_end_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from udml_core.methods import rpml

    monkeypatch.setattr(rpml, "_curves", lambda _last: {"loss": float("nan")})
    status = worked(tmp_path).status()
    assert status.state == "failed"
    assert "loss is not finite in epoch 1" in status.message


def test_a_method_of_pairs_learns_from_labels_or_from_given_pairs_that_stay_with_the_run(tmp_path: Path) -> None:
    fields = {"dimension": 8, "epochs": 1}
    by_labels = worked(tmp_path, method="nml", fields=fields, most_pairs=300)
    assert by_labels.status().state == "done", by_labels.status().message
    evaluation = by_labels.evaluation()
    assert evaluation is not None
    assert 0 < evaluation["final"]["mprec@10"] <= 100
    record = next(one for one in by_labels.explanations(1) if isinstance(one, Pairs))
    assert len(record.pairs) == 300
    train = make_split(catalog.load("digits"), "seen").train
    inside = np.stack([train[:40], train[40:80]], axis=1)
    outside = np.array([[0, int(np.setdiff1d(np.arange(1797), train)[0])]])
    given = PairSet(np.concatenate([inside, outside]), np.arange(41) % 2 == 0)
    run = create_run(spec(method="nml", fields=fields, pairs=given), tmp_path, given)
    assert worker.work(run).state == "done", run.status().message
    used = next(one for one in run.explanations(1) if isinstance(one, Pairs))
    np.testing.assert_array_equal(train[used.pairs], inside)
    np.testing.assert_array_equal(used.same, given.same[:40])
    assert any(isinstance(one, Prototypes) for one in run.explanations(1))
    assert "pairs.npz" in [path.name for path in run.files_to_export()]


def test_unlabeled_images_learn_from_given_pairs_and_refuse_methods_of_labels(tmp_path: Path) -> None:
    folder = str(write_digits(tmp_path / "flat", 60, by_class=False))
    given = PairSet(np.arange(40).reshape(20, 2), np.arange(20) % 2 == 0)
    planned = spec(method="nml", dataset=folder, split=None, fields={"dimension": 4, "epochs": 1}, pairs=given)
    assert worker.work(create_run(planned, tmp_path / "runs", given)).state == "done"
    for method, pairs, message in (("nml", None, "has none. Sort the images into one sub-folder a class, or give"),
                                   ("lmnn", None, "learns from class labels"), ("pca", given, "learns from no pairs"),
                                   ("nml", PairSet(given.pairs, given.same | True), "pairs of both kinds")):
        with pytest.raises(UserError, match=message):
            spec(method=method, dataset=folder, split=None, fields={"dimension": 4}, pairs=pairs)
    with pytest.raises(UserError, match="between 2 and 500,000, got 1"):
        spec(method="nml", fields={"dimension": 4}, most_pairs=1)


def test_seen_classes_are_judged_by_the_training_half_and_pslr_by_both_representations(tmp_path: Path) -> None:
    fields = {"dimension": 8, "epochs": 1}
    run = worked(tmp_path, method="pslr", fields=fields)
    found = run.evaluation()
    assert found is not None
    assert set(found) == {"initial", "frozen", "pca", "final", "latent"}
    for row in found.values():
        assert 50 < row["knn@200"] <= 100
        assert 50 < row["linear probe"] <= 100
    assert any(isinstance(one, Uncertainty) for one in run.explanations(1))
    assert [isinstance(one, LatentLayer) for one in run.explanations(0)] == [True]
    dataset = catalog.load("digits")
    split, trained = make_split(dataset, "seen"), run.epoch_trained(1)
    assert trained is not None
    np.testing.assert_allclose(trained, run.embeddings("final")[fixed_sample(split.train, material.JUDGED)], atol=1e-6)
    layer = next(one for one in run.explanations(1) if isinstance(one, LatentLayer))
    z = latent_rows(np.asarray(run.embeddings("final"))[split.test], layer.weight)
    assert found["latent"]["map@r"] == pytest.approx(100 * map_at_r(z, np.asarray(dataset.labels)[split.test])[0])
    unseen = worked(tmp_path, method="pslr", fields=fields | {"embeds": "latent"}, split="zero-shot").evaluation()
    assert unseen is not None
    assert set(unseen) == {"initial", "frozen", "pca", "final"}
    assert "knn@200" not in unseen["final"]
    of_z = next(one for one in list_runs(tmp_path) if one.id != run.id)
    assert not any(isinstance(one, LatentLayer) for one in of_z.explanations(1))
    assert (of_z.embeddings("initial") >= 0).all()  # z of the layer that training starts from


@pytest.mark.parametrize("error", [MemoryError("too little"), RuntimeError("anything")])
def test_a_map_that_fails_takes_back_nothing_that_was_learnt(error: Exception, tmp_path: Path,
                                                             monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise error

    monkeypatch.setattr(worker.analysis_worker, "keep", failing)
    run = worked(tmp_path, method="pca", fields={"dimension": 8})
    assert run.status().state == "done", run.status().message
    assert len(Retrieval(run).search_item(0, 3)) == 3


def test_of_many_images_no_map_is_made_unless_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "MOST_ANALYSED", 1796)
    assert list_analyses(worked(tmp_path, method="pca", fields={"dimension": 8})) == []
    monkeypatch.setattr(worker, "MOST_ANALYSED", 1797)
    kinds = {one.spec().kind for one in list_analyses(worked(tmp_path, method="frozen", fields={}))}
    assert kinds == {"pca", "graph"}


@pytest.mark.parametrize("name", [
    "embeddings.npy", "embeddings-initial.npy", "embedder.safetensors", "evaluation.json"])
def test_a_result_that_was_damaged_is_made_anew(name: str, tmp_path: Path) -> None:
    run = worked(tmp_path, fields={"epochs": 1, "dimension": 8})
    before = run.embeddings("final").copy()
    with pytest.raises(UserError, match="nothing to resume"):
        jobs.resume(run)
    (run.folder / name).write_bytes(b"")
    assert name in (run.broken_result() or "")
    jobs.resume(run)
    until(run, "done")
    assert run.broken_result() is None
    np.testing.assert_array_equal(run.embeddings("final"), before)


def by_torchrun(run: Run, *more: str) -> subprocess.CompletedProcess[str]:
    words = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "udml_core",
             "work", str(run.folder), *more)
    return subprocess.run(words, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=240,
                          check=False)


def test_a_run_by_two_processes_learns_what_it_learns_by_one(tmp_path: Path) -> None:
    fields = {"dimension": 8, "epochs": 2, "batch": 200}
    alone = worked(tmp_path, method="isif", fields=fields)
    shared = create_run(spec(method="isif", fields=fields), tmp_path)
    shared.request_stop()  # as it stands once it was started and stopped
    shared.write_status(shared.stored_status().model_copy(update={"state": "stopped"}))
    done = by_torchrun(shared, "--again")
    assert shared.status().state == "done", done.stderr
    for one, other in zip(alone.metrics()[0], shared.metrics()[0], strict=True):
        assert one.get("loss", 0.0) == pytest.approx(other.get("loss", 0.0), rel=1e-4)
    np.testing.assert_allclose(shared.embeddings("final"), alone.embeddings("final"), atol=1e-3)


def test_nobody_helps_with_a_run_that_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = worked(tmp_path, method="isif", fields={"dimension": 8, "epochs": 1})
    monkeypatch.setattr(worker, "load", lambda *_: pytest.fail("it was loaded"))
    worker.assist(done, "cpu")


def test_a_method_of_one_process_refuses_to_help(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="RPML trains in one process, and several were started"):
        worker.assist(create_run(spec(), tmp_path), "cpu")
