"""The worker: results, selection, failures with a message, unlabeled folders."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA

from tests.running import spec, trained, worked, write_digits
from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.dataset import step_name
from udml_core.data.encoders import Encoder
from udml_core.data.features import features_of, pixels_of
from udml_core.data.given import labels as annotations
from udml_core.data.given.exclusions import exclude
from udml_core.data.given.pair_sets import PairSet
from udml_core.data.inference import embed_pixels
from udml_core.data.speed import measured_speed
from udml_core.data.splits import fixed_sample, make_split
from udml_core.data.thumbnails import are_sheets_made
from udml_core.exploration.instances import latent_rows
from udml_core.methods import Embedder
from udml_core.methods.rpml import RPML
from udml_core.numerics.evaluation import effective_rank, map_at_r, nearest_is_hit, recall_at_k, retrieval_measures
from udml_core.numerics.explanations import Clusters, LatentLayer, Pairs, Prototypes, Triplets, Uncertainty
from udml_core.runs import TRAINED_RANK, Run, best_epoch, create_run
from udml_core.runs.analyses import list_analyses, plan_analysis
from udml_core.runs.search import Query, Retrieval
from udml_core.runs.tasks import Status
from udml_core.work import jobs
from udml_core.work.jobs.estimate import start_kind
from udml_core.work.jobs.follow_ups import want
from udml_core.work.jobs.stages import stage_of
from udml_core.work.workers import analyse as analysis_worker
from udml_core.work.workers import evaluate, execute, material, ready
from udml_core.work.workers import train as worker
from udml_core.work.workers.evaluate import evaluate_run
from udml_core.work.workers.execute import Reporter


def quiet(_share: float, _what: str) -> None: ...


def unit_features(run: Run) -> Array:
    """Return the features of all images in float64 with unit length."""
    rows = np.array(material.load(run, quiet).features, dtype=np.float64)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_a_worker_whose_run_was_removed_before_it_began_writes_nothing(tmp_path: Path) -> None:
    run = create_run(spec(), tmp_path)
    shutil.rmtree(run.folder)
    assert worker.work(run).state == "failed"
    assert {path.name for path in run.folder.rglob("*")} <= {"lock"}


def test_a_worker_reads_the_folder_once_and_names_what_follows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = catalog.load(str(write_digits(tmp_path / "digits", 120, by_class=False)))
    exclude(dataset, [3, 4])
    run = create_run(spec(method="frozen", dataset=dataset.name, split="all"), tmp_path / "runs")
    want(run, "audit")
    phases, change = list[str](), Reporter.change

    def note(reporter: Reporter, **values: Any) -> None:
        phases.append(step_name(values.get("phase", "")))
        change(reporter, **values)

    monkeypatch.setattr(Reporter, "change", note)
    assert worker.work(run).state == "done"
    named = [phase for phase in phases if phase]
    assert named.count("reading the folder") == 1
    assert named[named.index("reading the folder") + 1] == "quality of the images", "before the first block"
    assert "layout" in named[named.index("evaluation"):]
    assert named.index("comparing hashes") < named.index("evaluation"), "people wait for the audit"
    assert sorted(analysis.spec().kind for analysis in list_analyses(run)) == ["audit", "graph", "pca"]


def test_the_start_of_a_run_counts_no_features_which_are_computed_once(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    dataset = catalog.load(str(write_digits(tmp_path / "digits", 40, by_class=False)))
    run = create_run(spec(method="frozen", dataset=dataset.name, split="all"), tmp_path / "runs")

    def slow(*given: Any) -> Any:
        given[2](0.0, "features")
        time.sleep(1.5)
        return features_of(*given)

    monkeypatch.setattr(material, "features_of", slow)
    monkeypatch.setattr(ready, "began", time.time())
    assert worker.work(run, analyse=False).state == "done"
    assert 1.5 < run.status().seconds["features"] < 2.5
    assert "evaluation" in run.status().seconds
    start = measured_speed(start_kind(run.spec()))
    assert start is not None, "the next run of these images has a time from the beginning"
    assert 0 < start < 1.5


def test_an_analysis_that_reads_the_folder_says_at_once_what_it_does(tmp_path: Path) -> None:
    dataset = catalog.load(str(write_digits(tmp_path / "digits", 120, by_class=False)))
    exclude(dataset, [3, 4])
    run = create_run(spec(method="frozen", dataset=dataset.name, split="all"), tmp_path / "runs")
    worker.work(run, analyse=False)
    steps = list[tuple[float, str]]()
    analysis_worker.keep(run, plan_analysis("pca", frames=("final",)), lambda share, step: steps.append(
        (share, step_name(step))))
    at = max(number for number, (_, step) in enumerate(steps) if step == "reading the folder")
    assert steps[at + 1:at + 3] == [(0.0, "preparing the computation"), (0.0, "layout")]


def test_a_run_stores_everything_that_the_pages_read(tmp_path: Path) -> None:
    run = trained(tmp_path)
    assert run.status().state == "done", run.status().message
    rows, _ = run.metrics()
    assert [row["epoch"] for row in rows] == [0, 1, 2]
    assert {"loss", "mean weight", "violating", "effective rank", "neighbor stability", "sample map@r"} <= set(rows[1])
    assert [type(record) for record in run.explanations(1)] == [Clusters, Triplets]
    assert [type(record) for record in run.explanations(2)] == [Triplets]
    dataset = catalog.load("digits")
    test = make_split(dataset, "seen").test
    evaluation = run.evaluation()
    assert evaluation is not None
    assert set(evaluation) == {"initial", "frozen", "centered pca", "final"}
    assert evaluation["frozen"]["dimension"] == 64
    rows = unit_features(run)
    reference = PCA(len(run.embeddings("final")[0]), svd_solver="full").fit(rows[make_split(dataset, "seen").train])
    projected = reference.transform(rows[test])  # as RPML's embeddings, without unit length
    measured = map_at_r(projected, np.asarray(dataset.labels)[test])[0]
    assert evaluation["centered pca"]["map@r"] == pytest.approx(100 * measured, abs=0.01)
    for name, which in (("initial", "initial"), ("final", "final")):
        embeddings = np.asarray(run.embeddings(which))[test]  # type: ignore[arg-type]
        labels = np.asarray(dataset.labels)[test]
        assert evaluation[name]["recall@1"] == pytest.approx(100 * recall_at_k(embeddings, labels)[1])
        assert evaluation[name]["map@r"] == pytest.approx(100 * map_at_r(embeddings, labels)[0])
    assert evaluate_run(run, material.load(run, quiet), quiet) == evaluation
    assert are_sheets_made(dataset)


def test_a_run_can_be_searched_before_its_thumbnails_are_drawn(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = str(write_digits(tmp_path / "digits", 40))
    run = create_run(spec(method="frozen", dataset=dataset, split="all"), tmp_path / "runs")
    searched: list[int] = []

    def draw(dataset: Any, _report: Any) -> None:
        assert stage_of(run, run.stored_status()).name == "preparing the search"
        searched.append(len(Retrieval(run).search(Query((0,)))))

    monkeypatch.setattr(worker, "make_sheets", draw)
    assert worker.work(run, analyse=False).state == "done", run.status().message
    assert len(searched) == 1


def test_the_sample_is_larger_than_the_part_for_curves_and_does_not_change(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(material, "SAMPLE", 200)
    monkeypatch.setattr(material, "JUDGED", 50)
    run = trained(tmp_path)
    test = make_split(catalog.load("digits"), "seen").test
    sample = run.sample_indices()
    assert len(sample) == 200
    assert set(sample) <= set(test)
    for number in (0, 2):
        assert len(run.epoch_sample(number)) == 200
    loaded = material.load(run, quiet)
    assert len(loaded.judged) == 50
    judged = run.epoch_sample(2)[loaded.judged]
    labels = np.asarray(loaded.dataset.labels)[sample[loaded.judged]]
    assert run.metrics()[0][2]["sample map@r"] == pytest.approx(map_at_r(judged, labels)[0])
    monkeypatch.setattr(material, "SAMPLE", 300)  # a later version may use another size
    np.testing.assert_array_equal(material.load(run, quiet).sample, sample)


@pytest.mark.parametrize("select", ["validation", "recall"])
def test_validation_keeps_the_best_epoch_and_hides_its_images_from_fit(
        select: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    original_fit = RPML.fit

    def fit(self: RPML, data: Any, setting: Any, start: Any = None) -> Any:
        sizes.append(len(data))
        return original_fit(self, data, setting, start)

    monkeypatch.setattr(RPML, "fit", fit)
    run = trained(tmp_path, select=select, fields={"dimension": 16, "epochs": 3, "steps": 2})
    assert run.status().state == "done", run.status().message
    train = make_split(catalog.load("digits"), "seen").train
    assert sizes == [len(train) - len(material.load(run, quiet).split.validation)]
    assert 0.13 < 1 - sizes[0] / len(train) < 0.17
    measure = "validation map@r" if select == "validation" else "validation recall@1"
    scores = [row[measure] for row in run.metrics()[0]][1:]
    assert run.kept_epoch() == 1 + int(np.argmax(scores))
    best = Embedder.load(run.best_embedder_path)
    loaded = material.load(run, quiet)
    held_out = best.embed_features(loaded.features[loaded.split.validation])
    labels = np.asarray(loaded.dataset.labels)[loaded.split.validation]
    score = map_at_r(held_out, labels)[0] if select == "validation" else recall_at_k(held_out, labels, (1,))[1]
    assert score == pytest.approx(max(scores), abs=1e-6)
    embeddings = best.embed_features(np.asarray(loaded.features))
    np.testing.assert_array_equal(run.embeddings("final"), embeddings)


@pytest.mark.parametrize("method", ["rpml", "srpml", "whiten", "pca", "frozen"])
def test_an_unlabeled_folder_is_trained_and_evaluated_without_labels(method: str, tmp_path: Path) -> None:
    folder = str(write_digits(tmp_path / "flat", 80, by_class=False))
    small = {"dimension": 8, "epochs": 1, "n_neighbors": 6, "epsilon": 0.5}
    fields = small if "rpml" in method else {"dimension": 8} if method == "pca" else {}
    run = trained(tmp_path / "runs", method=method, dataset=folder, split=None, fields=fields)
    assert run.status().state == "done", run.status().message
    evaluation = run.evaluation()
    assert evaluation is not None
    assert {"trustworthiness", "continuity", "effective rank", "neighbors kept from frozen"} <= set(evaluation["final"])
    assert not {"recall@1", "nmi", "map@r"} & set(evaluation["final"])
    assert [hit.correct for hit in Retrieval(run).search_item(3, 5)] == [None] * 5


def test_assigned_labels_are_stored_with_the_run_and_select_its_epoch(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    folder = str(write_digits(tmp_path / "flat", 80, by_class=False))
    dataset = catalog.load(folder)
    small = {"dimension": 8, "n_neighbors": 4, "epochs": 3, "partition": 0, "steps": 2}
    options = {"method": "ssdml", "dataset": folder, "split": None, "labels": "given", "fields": small}
    with pytest.raises(UserError, match="got 0 labels in 0 classes"):
        spec(**options)
    for start in range(0, 10):
        annotations.assign(dataset, range(start, 40, 10), f"digit {start}")
    run = create_run(spec(**options), tmp_path / "runs")
    annotations.assign(dataset, range(40), "something else")  # after the start of this run
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
    assert [row[TRAINED_RANK] for row in rows] == [row["effective rank"] for row in rows], "equal halves"


@pytest.mark.slow
def test_assigned_labels_select_by_the_rank_of_training_images(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    dataset = catalog.load("digits")
    for start in range(2):
        annotations.assign(dataset, range(start, 20, 2), f"class {start}")
    monkeypatch.setattr("udml_core.runs.selection.RANKS_KEPT", (1, 1))  # every change counts as a collapse
    fields = {"dimension": 8, "epochs": 2, "partition": 0, "steps": 2}
    run = trained(tmp_path, method="ssdml", labels="given", fields=fields)
    for row in run.metrics()[0]:
        training = run.epoch_trained(row["epoch"])
        assert training is not None
        assert row[TRAINED_RANK] == effective_rank(training) != row["effective rank"]
    assert run.kept_epoch() == 1
    assert "collapsed in the first epoch" in capsys.readouterr().err
    loaded = material.load(run, quiet)
    kept = Embedder.load(run.embedder_path).embed_features(loaded.features[fixed_sample(loaded.split.train, 1000)])
    np.testing.assert_allclose(kept, run.epoch_trained(1), atol=1e-6)


def rows(ranks: list[float], scores: list[float], name: str = TRAINED_RANK) -> list[dict[str, Any]]:
    """Return curves of a run on assigned labels; the test half's rank stays constant."""
    return [{"epoch": epoch, "effective rank": 1.0, name: rank} | ({"given recall@1": score} if epoch else {})
            for epoch, (rank, score) in enumerate(zip(ranks, [0, *scores], strict=True))]


@pytest.mark.parametrize("name", [TRAINED_RANK, "effective rank"])  # older runs have only this rank
def test_assigned_labels_select_among_the_epochs_before_the_collapse(name: str) -> None:
    assert best_epoch(rows([40, 41, 42, 43], [0.7, 0.8, 0.8], name)) == 3, "the last of equal epochs"
    assert best_epoch(rows([43.5, 52.2, 56.7, 60.3], [0.7, 0.8, 0.9], name)) == 1, "a rank that rises is a collapse"
    assert best_epoch(rows([40, 38, 19, 39], [0.7, 0.9, 0.8], name)) == 1, "a rank that returns is no recovery"
    assert best_epoch(rows([40, 15, 39, 5], [0.7, 0.8, 0.9], name)) == 1, "the first if all have collapsed"
    ignored = best_epoch(rows([81, 20, 43, 61], [0.7, 0.8, 0.8], name), rank_shows_collapse=False)
    assert ignored == 3, "the last of the best"


def test_methods_whose_rank_shows_no_collapse_keep_the_best_epoch(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    folder = str(write_digits(tmp_path / "flat", 80, by_class=False))
    for start in range(10):
        annotations.assign(catalog.load(folder), range(start, 40, 10), f"digit {start}")
    monkeypatch.setattr("udml_core.runs.selection.RANKS_KEPT", (1, 1))
    monkeypatch.setattr(worker, "recall_at_k", lambda *_: {1: 1.0})  # all epochs are equal, so the last is kept
    fields = {"n_neighbors": 4, "epochs": 2, "partition": 0, "trains": "all", "batch_norm": "batch"}
    run = trained(tmp_path / "runs", method="lrml", dataset=folder, backbone="cnn", split=None, labels="given",
                 fields=fields)
    assert run.status().state == "done", run.status().message
    assert run.kept_epoch() == 2
    assert "collapsed" not in capsys.readouterr().err
    np.testing.assert_allclose(run.embeddings("final")[run.sample_indices()], run.epoch_sample(2), rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_a_run_that_trains_the_last_blocks_stores_a_whole_encoder(tmp_path: Path) -> None:
    fields = {"trains": "last", "dimension": 8, "epochs": 1, "views": 3, "proxies": 10, "learning_rate": 0.01,
              "batch_norm": "batch"}
    run = trained(tmp_path, method="plm", backbone="cnn", fields=fields)
    assert run.status().state == "done", run.status().message
    embedder, dataset = Embedder.load(run.embedder_path), run.dataset()
    assert embedder.trained
    rows, images = run.sample_indices()[:20], pixels_of(dataset, embedder.encoder)
    final = embed_pixels(embedder, images[rows])
    np.testing.assert_allclose(run.embeddings("final")[rows], final, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(run.epoch_sample(1)[:20], final, rtol=0, atol=5e-3)  # from float16 activations
    frozen, trained_weights = Encoder(embedder.encoder.spec).state_dict(), embedder.encoder.state_dict()
    moved = {name.split(".")[1] for name, value in frozen.items() if not torch.equal(value, trained_weights[name])}
    assert moved == {"11", "12"}


def test_without_a_score_no_epoch_is_selected() -> None:
    assert best_epoch([{"epoch": 0, "effective rank": 10.0}, {"epoch": 1, "effective rank": 9.0}]) is None


def test_a_missing_or_changed_data_set_fails_with_a_message(tmp_path: Path) -> None:
    folder = write_digits(tmp_path / "images")
    planned = spec(dataset=str(folder), split="zero-shot", method="pca", fields={"dimension": 8})
    changed, missing = create_run(planned, tmp_path / "runs"), create_run(planned, tmp_path / "runs")
    next(folder.rglob("*.png")).unlink()
    assert "was removed or changed since this run. Restore it" in worker.work(changed).message
    folder.rename(tmp_path / "elsewhere")
    status = worker.work(missing)
    assert status.state == "failed"
    assert "data set" in status.message
    assert "Traceback" in missing.error()


@pytest.mark.parametrize(("fields", "message"), [
    ({"epsilon": 1.0, "dimension": 8}, "Lower the field 'epsilon'"),
    ({"epsilon": 0.0, "n_neighbors": 400, "dimension": 8}, "Raise the field 'epsilon'"),
])
def test_fields_that_leave_no_triplets_fail_with_the_name_of_the_field(
        fields: dict[str, Any], message: str, tmp_path: Path) -> None:
    status = trained(tmp_path, fields=fields).status()
    assert status.state == "failed"
    assert message in status.message


@pytest.mark.parametrize(("number", "message"), [
    (errno.ENOSPC, "The disk is full"),
    (errno.EROFS, "The system refused to read or write /there: Read-only file system"),
])
def test_a_refused_write_fails_with_a_message_and_the_run_can_be_resumed(
        number: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = create_run(spec(fields={"dimension": 16, "epochs": 4, "steps": 2}), tmp_path)
    write = Run.write_checkpoint

    def full(self: Run, epoch: int, *rest: Any) -> None:
        if epoch == 3:
            raise OSError(number, os.strerror(number), "/there")
        write(self, epoch, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "write_checkpoint", full)
        status = worker.work(run)
    assert status.state == "failed"
    assert message in status.message
    assert run.epoch_numbers()[:3] == [0, 1, 2]
    assert worker.work(run).state == "done"
    assert [row["epoch"] for row in run.metrics()[0]] == [0, 1, 2, 3, 4]


def test_a_full_file_system_fails_with_a_message(tmp_path: Path) -> None:
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
def test_a_full_disk_is_recognized_at_every_write(room: int, tmp_path: Path) -> None:
    """The disk fills at any file; NumPy and faiss lose the error's number."""
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


def test_losses_that_are_not_finite_fail_with_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from udml_core.methods import rpml

    monkeypatch.setattr(rpml, "_curves", lambda _last: {"loss": float("nan")})
    status = trained(tmp_path).status()
    assert status.state == "failed"
    assert "loss is not finite in epoch 1" in status.message


def test_pair_methods_learn_from_drawn_or_given_pairs_which_are_stored(tmp_path: Path) -> None:
    fields = {"dimension": 8, "epochs": 1}
    drawn = trained(tmp_path, method="nml", fields=fields, most_pairs=300)
    assert drawn.status().state == "done", drawn.status().message
    evaluation = drawn.evaluation()
    assert evaluation is not None
    assert 0 < evaluation["final"]["mprec@10"] <= 100
    record = next(record for record in drawn.explanations(1) if isinstance(record, Pairs))
    assert len(record.pairs) == 300
    train = make_split(catalog.load("digits"), "seen").train
    inside = np.stack([train[:40], train[40:80]], axis=1)
    outside = np.array([[0, int(np.setdiff1d(np.arange(1797), train)[0])]])
    given = PairSet(np.concatenate([inside, outside]), np.arange(41) % 2 == 0)
    run = create_run(spec(method="nml", fields=fields, pairs=given), tmp_path, given)
    assert worker.work(run).state == "done", run.status().message
    used = next(record for record in run.explanations(1) if isinstance(record, Pairs))
    np.testing.assert_array_equal(train[used.pairs], inside)
    np.testing.assert_array_equal(used.same, given.same[:40])
    assert any(isinstance(record, Prototypes) for record in run.explanations(1))
    assert "pairs.npz" in [path.name for path in run.files_to_export()]


def test_unlabeled_images_learn_from_given_pairs_and_reject_methods_that_need_labels(tmp_path: Path) -> None:
    folder = str(write_digits(tmp_path / "flat", 60, by_class=False))
    given = PairSet(np.arange(40).reshape(20, 2), np.arange(20) % 2 == 0)
    planned = spec(method="nml", dataset=folder, split=None, fields={"dimension": 4, "epochs": 1}, pairs=given)
    assert worker.work(create_run(planned, tmp_path / "runs", given)).state == "done"
    for method, pairs, message in (("nml", None, "has none. Sort the images into one .*, or give"),
                                   ("lmnn", None, "learns from class labels"),
                                   ("pca", given, "does not learn from pairs"),
                                   ("nml", PairSet(given.pairs, given.same | True), "pairs of both kinds")):
        with pytest.raises(UserError, match=message):
            spec(method=method, dataset=folder, split=None, fields={"dimension": 4}, pairs=pairs)
    with pytest.raises(UserError, match="between 2 and 500,000, got 1"):
        spec(method="nml", fields={"dimension": 4}, most_pairs=1)


def test_seen_classes_are_evaluated_against_the_training_half_and_pslr_in_both_layers(tmp_path: Path) -> None:
    fields = {"dimension": 8, "epochs": 1}
    run = trained(tmp_path, method="pslr", fields=fields)
    evaluation = run.evaluation()
    assert evaluation is not None
    assert set(evaluation) == {"initial", "frozen", "centered pca", "final", "latent"}
    for row in evaluation.values():
        assert 50 < row["knn@200"] <= 100
        assert 50 < row["linear probe"] <= 100
    assert any(isinstance(record, Uncertainty) for record in run.explanations(1))
    assert [isinstance(record, LatentLayer) for record in run.explanations(0)] == [True]
    dataset = catalog.load("digits")
    split, training = make_split(dataset, "seen"), run.epoch_trained(1)
    assert training is not None
    np.testing.assert_allclose(training, run.embeddings("final")[fixed_sample(split.train, material.JUDGED)], atol=1e-6)
    layer = next(record for record in run.explanations(1) if isinstance(record, LatentLayer))
    z = latent_rows(np.asarray(run.embeddings("final"))[split.test], layer.weight)
    assert evaluation["latent"]["map@r"] == pytest.approx(100 * map_at_r(z, np.asarray(dataset.labels)[split.test])[0])
    latent = trained(tmp_path, method="pslr", fields=fields | {"embeds": "latent"}, split="zero-shot")
    unseen = latent.evaluation()
    assert unseen is not None
    assert set(unseen) == {"initial", "frozen", "centered pca", "final"}
    assert "knn@200" not in unseen["final"]
    assert not any(isinstance(record, LatentLayer) for record in latent.explanations(1))
    assert (latent.embeddings("initial") >= 0).all()  # z of the layer before training


PLAN = """import udml_core.work.workers.analyse
import udml_core.work.workers.train
from udml_core.data import catalog
from udml_core.runs import RunRequest
from udml_core.work import jobs
request = RunRequest.make({"dataset": "fashion-mini", "method": "rpml", "backbone": "pixels"})
jobs.plan(request, catalog.load("fashion-mini"))
"""


@pytest.mark.slow
def test_starting_or_planning_a_run_loads_only_the_libraries_of_every_run() -> None:
    late = ("numba", "scipy", "sklearn", "pandas", "pyarrow", "umap", "openTSNE", "torchvision", "timm",
            "udml_core.methods.mom", "udml_core.methods.uhml", "udml_core.numerics.refinement.refiner")
    check = f"\nimport sys\nprint([name for name in {late} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", PLAN + check], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("error", [MemoryError("too little"), RuntimeError("anything")])
def test_a_failed_map_does_not_fail_the_run(error: Exception, tmp_path: Path,
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise error

    monkeypatch.setattr(analysis_worker, "keep", failing)
    run = trained(tmp_path, method="pca", fields={"dimension": 8})
    assert run.status().state == "done", run.status().message
    assert len(Retrieval(run).search_item(0, 3)) == 3


def test_large_data_sets_get_a_map_but_no_graph_without_a_request(tmp_path: Path,
                                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "MOST_ANALYZED", 1796)
    (map_,) = list_analyses(trained(tmp_path, method="pca", fields={"dimension": 8}))
    assert (map_.spec().kind, map_.is_done()) == ("pca", True)
    assert map_.projection().neighbors.shape == (2, 1797, 10)
    monkeypatch.setattr(worker, "MOST_ANALYZED", 1797)
    kinds = {analysis.spec().kind for analysis in list_analyses(trained(tmp_path, method="frozen", fields={}))}
    assert kinds == {"pca", "graph"}


@pytest.mark.parametrize("name", [
    "embeddings.npy", "embeddings-initial.npy", "embedder.safetensors", "evaluation.json"])
def test_a_damaged_result_is_computed_again(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("udml_core.work.jobs.launch.launch", worker.work)
    run = worked(tmp_path, fields={"epochs": 1, "dimension": 8})
    before = run.embeddings("final").copy()
    with pytest.raises(UserError, match="nothing to resume"):
        jobs.resume(run)
    (run.folder / name).write_bytes(b"")
    assert name in (run.broken_result() or "")
    jobs.resume(run)
    assert run.status().state == "done"
    assert run.broken_result() is None
    np.testing.assert_array_equal(run.embeddings("final"), before)


def test_a_second_process_does_nothing_for_a_finished_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = worked(tmp_path, method="isif", fields={"dimension": 8, "epochs": 1})
    monkeypatch.setattr(worker, "load", lambda *_: pytest.fail("the data set was loaded"))
    worker.assist(done, "cpu")


def test_a_method_of_one_process_rejects_a_second_one(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"RPML trains in one process, but several were started\. Start it without "
                                        r"torchrun, or use SRPML, PLM, SSDML, PSLR, ISIF, NCE, Exemplar"):
        worker.assist(create_run(spec(), tmp_path), "cpu")


def test_a_detail_of_a_step_does_not_restart_its_remaining_time(tmp_path: Path) -> None:
    reporter = Reporter(create_run(spec(), tmp_path))
    reporter.change(state="running", phase="features")
    begun = reporter.status.phase_started
    reporter.change(phase="features · 5 images per second")
    assert (reporter.status.phase_started, reporter.status.phase) == (begun, "features · 5 images per second")
    reporter.change(phase="evaluation", share=0.25)
    assert reporter.status.phase_started > begun
    reporter.change(share=0.5)
    assert reporter.status.share_started == 0.25


def test_a_run_is_searched_while_it_is_evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = create_run(spec(), tmp_path)
    seen: list[tuple[str, list[int]]] = []

    def search_meanwhile(run: Run, loaded: material.Loaded, report: Any) -> dict[str, dict[str, float]]:
        hits = Retrieval(run).search_item(3, 5)
        seen.append((run.stored_status().phase, [hit.index for hit in hits]))
        return evaluate_run(run, loaded, report)

    monkeypatch.setattr(worker, "evaluate_run", search_meanwhile)
    assert worker.work(run).state == "done"
    assert seen == [("evaluation", [hit.index for hit in Retrieval(run).search_item(3, 5)])]


def test_many_test_images_are_asked_by_a_sample_and_all_on_request(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = worked(tmp_path)
    before, loaded = run.evaluation(), material.load(run, quiet)
    monkeypatch.setattr(evaluate, "ASKED_ALL", 100)
    monkeypatch.setattr(evaluate, "ASKED", 50)
    monkeypatch.setattr(evaluate, "LONGEST_EXACT", 0)
    final = evaluate_run(run, loaded, quiet)["final"]
    labels, points = loaded.dataset.labels, np.asarray(run.embeddings("final"))[loaded.split.test]
    assert labels is not None
    rows = np.flatnonzero(np.isin(loaded.split.test, fixed_sample(loaded.split.test, 50)))
    hits = nearest_is_hit(points, labels[loaded.split.test])[rows]
    assert (final["queries"], final["images"]) == (50, len(loaded.split.test))
    assert final["recall@1"] == pytest.approx(100 * hits.mean()), "queries of the sample, gallery of all"
    assert evaluate_run(run, loaded, quiet, exact=True) == before


@pytest.mark.parametrize(("seconds", "is_exact"), [(0.02, True), (0.1, False)])
def test_all_test_images_are_asked_after_a_sample_where_that_takes_less_than_a_minute(
        seconds: float, is_exact: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two embeddings differ from others: 2 · 359 queries take 14 or 72 seconds."""
    run = worked(tmp_path, method="frozen")
    before, loaded, now, written = run.evaluation(), material.load(run, quiet), [0.0], list[Any]()

    rank = retrieval_measures.rankings

    def slow(*arguments: Any) -> Any:
        for part in rank(*arguments):
            now[0] += seconds * len(part[0])
            yield part

    monkeypatch.setattr(retrieval_measures, "rankings", slow)
    monkeypatch.setattr(evaluate.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(evaluate, "ASKED_ALL", 100)
    monkeypatch.setattr(evaluate, "ASKED", 50)
    write = Run.write_evaluation
    monkeypatch.setattr(Run, "write_evaluation", lambda run, result: (written.append(result), write(run, result))[1])
    steps = list[str]()
    result = evaluate_run(run, loaded, lambda _share, step: steps.append(step))
    assert list(dict.fromkeys(steps)) == ["evaluation", "evaluation · every image, after the sample"][:1 + is_exact]
    assert [stored["final"].get("queries") for stored in written] == [50, None][:1 + is_exact], "sample first"
    assert result == run.evaluation() == (before if is_exact else written[0])


class Rests:
    """A user who pauses a run in the middle of an epoch, and continues or stops it while the worker rests."""

    def __init__(self, run: Run, monkeypatch: pytest.MonkeyPatch, then: Callable[[], None]) -> None:
        self.run, self.then, self.seen = run, then, list[Status]()
        self.seconds, self.sleep = 0.0, time.sleep
        monkeypatch.setattr(execute.time, "monotonic", lambda: time.perf_counter() + self.seconds)
        monkeypatch.setattr(execute.time, "sleep", self._look)

    def observe(self, share: float, phase: str) -> None:
        if phase == "training" and share > 0 and self.run.stored_status().epoch == 1 and not self.seen:
            self.run.request_pause()

    def _look(self, seconds: float) -> None:
        status = self.run.status()
        if not status.is_paused:
            return self.sleep(seconds)
        self.seen.append(status)
        self.seconds += 1000  # a long rest
        return self.then()


def paused(root: Path, monkeypatch: pytest.MonkeyPatch, end: str) -> tuple[Run, Rests]:
    """Train a run that is paused within its second epoch and then gets another request."""
    run = create_run(spec(fields={"dimension": 16, "epochs": 3, "steps": 3}), root)
    rests = Rests(run, monkeypatch, getattr(run, end))
    share = Reporter.share
    monkeypatch.setattr(Reporter, "share", lambda self, *values: (rests.observe(*values), share(self, *values))[1])
    monkeypatch.setattr(execute, "PAUSE_LOOKS", 0.0)
    worker.work(run)
    return run, rests


def test_a_paused_training_keeps_every_epoch_and_its_result_and_counts_no_time(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, rests = paused(tmp_path / "paused", monkeypatch, "end_pause")
    assert [(status.state, status.epoch, 0 < status.share < 1) for status in rests.seen] == [("running", 1, True)]
    monkeypatch.undo()
    whole = trained(tmp_path / "whole", fields={"dimension": 16, "epochs": 3, "steps": 3})
    assert run.status().state == "done", run.status().message
    assert not run.status().paused
    assert [row["epoch"] for row in run.metrics()[0]] == [0, 1, 2, 3]
    assert np.array_equal(run.embeddings("final"), whole.embeddings("final"))
    assert all(row.get("seconds", 0.0) < 1000 for row in run.metrics()[0])


def test_a_paused_training_can_be_stopped_and_resumes_without_the_pause(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, rests = paused(tmp_path, monkeypatch, "request_stop")
    assert len(rests.seen) == 1
    assert (run.status().state, run.status().epoch, run.status().is_paused) == ("stopped", 1, False)
    monkeypatch.undo()
    run.clear_failure()
    assert worker.work(run).state == "done"
    assert [row["epoch"] for row in run.metrics()[0]] == [0, 1, 2, 3]
