"""Train a run: store every epoch, select the model, embed, evaluate and index.

This is the only writer of a run's results.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch
from filelock import BaseFileLock
from torch import Tensor

from udml_core.base.arrays import Array, some_rows
from udml_core.base.errors import UserError
from udml_core.base.malloc import release_freed_memory
from udml_core.data.dataset import WAITING, Dataset, Report
from udml_core.data.features import LOADING, features_path
from udml_core.data.given.exclusions import excluded_names
from udml_core.data.image_facts import STEP as QUALITY
from udml_core.data.image_hashes import STEP as HASHES
from udml_core.data.speed import record_speed
from udml_core.data.splits import fixed_sample
from udml_core.data.thumbnails import make_sheets
from udml_core.data.training_data import TrainingData
from udml_core.exploration.audit import prepare_audit
from udml_core.methods import Embedder, Epoch, Method, Setting, State, names_of
from udml_core.methods.shared.distributed import agree_on_number
from udml_core.numerics.evaluation import effective_rank, knn_accuracy, map_at_r, neighbor_stability, recall_at_k
from udml_core.numerics.explanations import thin
from udml_core.numerics.galleries import build_gallery
from udml_core.numerics.neighbors import build_index, ignore_progress, write_index
from udml_core.runs import TRAINED_RANK, Run, best_epoch, first_collapsed
from udml_core.runs.analyses import AnalysisKind, plan_analysis
from udml_core.runs.analyses.kinds.graph import NeighborGraph
from udml_core.runs.analyses.kinds.pca import PCA
from udml_core.runs.baselines import JUDGED, read_baselines, sample_baselines, write_baselines
from udml_core.runs.engines import read_owner
from udml_core.runs.sample_opinion import CURVES as JUDGED_CURVES
from udml_core.runs.sample_opinion import SampleJudge
from udml_core.runs.search import FROZEN
from udml_core.runs.selection import ERROR, OPINION, TRAINED_OPINION
from udml_core.runs.spec import ExclusionList
from udml_core.runs.tasks import Status
from udml_core.work.jobs import device_lock, devices_of, resolve_device, start_wanted
from udml_core.work.jobs.estimate import (
    OF_FEATURES,
    evaluation_kind,
    follow_kind,
    record_epoch,
    record_stage,
    start_kind,
)
from udml_core.work.jobs.follow_ups import AUDIT, wants, withdraw
from udml_core.work.jobs.needed_memory import check_analysis, memory_of
from udml_core.work.workers import ready
from udml_core.work.workers.evaluate import KNN, evaluate_run
from udml_core.work.workers.execute import Reporter, execute
from udml_core.work.workers.material import Loaded, data_for_fit, embed, load
from udml_core.work.workers.watching import StepWatcher

POLL = 0.3
TRIPLETS_KEPT = 2000
MOST_ANALYZED = 20_000
"""Largest data set for which a graph is computed without a request, in about two minutes of one core with the map."""
LIBRARIES = "loading the libraries"
"""What a process does before a run begins."""
LONGEST_START = 60.0
"""Seconds that a process may take to load its libraries."""
VOTING = 5000
"""Number of training images that may vote in the k-nearest-neighbor accuracy of the curves."""
log = logging.getLogger("udml")


def work(run: Run, analyse: bool = True) -> Status:
    """Execute a run from its last finished epoch to the end.

    A failure is recorded in the status, not raised.

    Args:
        run: The run.
        analyse: Whether to compute the map and the graph that pages show first.
    """
    return execute(run, lambda reporter: _on_free_device(run, reporter, analyse))


def work_aside(run: Run, report: Report) -> Status:
    """Execute a run as a part of another task, which receives its progress; no map or graph follows."""
    return execute(run, lambda reporter: _on_free_device(run, reporter, analyse=False), report)


def assist(run: Run, device: str) -> None:
    """Share the training of a run with the process that executes it.

    This process uses another device and writes nothing. If the run is done, do nothing, as that process does.

    Raises:
        UserError: The run's method trains in one process.
    """
    if run.stored_status().state == "done":
        return
    method = run.spec().build_method()
    if not method.shares_batches:
        raise UserError(f"{method.card.title} trains in one process, but several were started. Start it without "
                        f"torchrun, or use {names_of(lambda other: other.shares_batches)}.")
    while run.stored_status().state == "waiting":  # the first process waits for the devices
        time.sleep(POLL)
    loaded = load(run, ignore_progress, device)
    checkpoint = run.read_checkpoint() if agree_on_number(0) else None  # the first process may begin again
    spec = run.spec()
    setting = Setting(spec.seed, torch.device(device), loaded.encoder, precision=spec.precision, compile=spec.compile)
    for _ in method.fit(data_for_fit(run, loaded, ignore_progress), setting, checkpoint[1] if checkpoint else None):
        pass


def _on_free_device(run: Run, reporter: Reporter, analyse: bool) -> None:
    """Wait for the device, then work.

    The dispatcher alone keeps the order of the queue: it waits for this worker, so a worker that waited for a run moved
    ahead of it would stop the queue for ever. Slurm has granted the devices of its jobs already. Several devices are
    locked in the order of their numbers, so that two runs never wait for each other.
    """
    owner, libraries = read_owner(run.folder), _seconds_of_libraries()
    is_granted = owner is not None and owner.request.engine == "slurm"
    with ExitStack() as held:
        for name in [] if is_granted else devices_of(run.spec()):
            held.callback(_wait_for(name, reporter).release)
        reporter.change(state="running", started=time.time(), phase="starting", share=0.0, peaks={},
                        seconds={LIBRARIES: libraries} if libraries else {})
        reporter.measure_memory()
        _Work(run, reporter).all(analyse)


def _seconds_of_libraries() -> float:
    """Return the time since this process began to load its libraries; 0 if it has done other work before."""
    alive = time.time() - (ready.began or psutil.Process().create_time())
    return alive if 0 <= alive < LONGEST_START else 0.0  # the clock may have gone back


def _wait_for(name: str, reporter: Reporter) -> BaseFileLock:
    """Return the acquired lock of a device."""
    device = device_lock(name)
    while True:
        reporter.stop_if_requested()
        try:
            device.acquire(timeout=0)
            return device
        except TimeoutError:
            reporter.share(0.0, WAITING)
        time.sleep(POLL)


class _Work:
    """The steps from the spec of a run to its results."""

    def __init__(self, run: Run, reporter: Reporter) -> None:
        self.run = run
        self.spec = run.spec()
        self.reporter = reporter
        self.device = torch.device(resolve_device(self.spec.device))
        self.method: Method = self.spec.build_method()
        self.judge: SampleJudge | None = None
        self.trained_judge: SampleJudge | None = None
        self.began = time.time()

    def all(self, analyse: bool) -> None:
        dataset = self.run.dataset(self.reporter.share)
        self.reporter.change(planned=memory_of(self.spec, dataset))
        if wants(self.run, "audit"):  # its first findings need no features, so they come first
            prepare_audit(dataset, self.reporter.share)
        loaded = load(self.run, self.reporter.share, self.spec.device, dataset)
        embedder = self._train(loaded)
        release_freed_memory()
        began = time.monotonic()
        self._keep(loaded, embedder)
        spent = time.monotonic() - began
        self.reporter.change(searchable=True)
        if wants(self.run, "advice"):
            start_wanted(self.run.root)
        if wants(self.run, "audit"):  # before what no user waits for
            self._compare(loaded.dataset)
        self.reporter.change(phase="thumbnails", share=0.0)
        if not loaded.dataset.is_large:  # the thumbnails of a few images are made when they are shown
            make_sheets(loaded.dataset, self.reporter.share)
        began = time.monotonic() - spent
        self.reporter.change(phase="evaluation", share=0.0)
        release_freed_memory()
        # The device stays locked: its memory still holds the encoder, and plans count the memory of one run at a time.
        evaluate_run(self.run, loaded, self.reporter.share)
        record_stage(evaluation_kind(self.spec), time.monotonic() - began, len(loaded.dataset))
        if analyse and not self._is_replaced(loaded.dataset):
            began = time.monotonic()
            self._analyse(loaded.dataset, len(loaded.split.train))
            record_stage(follow_kind(self.spec), time.monotonic() - began, len(loaded.dataset))

    def _train(self, loaded: Loaded) -> Embedder:
        data = data_for_fit(self.run, loaded, self.reporter.share)
        report = self.reporter.share
        watcher = StepWatcher(self.run, lambda embedder: self._measured_step(loaded, embedder), self.reporter.clock)
        setting = Setting(self.spec.seed, self.device, loaded.encoder, lambda share: report(share, "training"),
                          self.spec.precision, self.spec.compile, watcher.observe)
        known, _ = self.run.metrics()
        recorded = {row["epoch"]: row for row in known}
        checkpoint = self._checkpoint(recorded)
        done = agree_on_number(checkpoint[0] if checkpoint else 0)
        self.reporter.change(epoch=done, epochs=self.method.epochs_planned, phase="training", share=0.0)
        start = self.run.read_start()
        if 0 not in recorded or JUDGED_CURVES.keys() <= recorded[0].keys():  # else the curves would begin in the middle
            self._seat_judges(loaded)
        clock = self.reporter.clock  # the time of an epoch does not count a pause
        measuring = clock()
        if 0 not in recorded:
            initial = Embedder.load(start[1], self.device) if start else self.method.initial(data, setting)
            recorded[0] = self._keep_start(loaded, initial)
        embedder = Embedder.load(checkpoint[2], self.device) if checkpoint else None
        self._record_start(loaded)
        began = clock()
        # With cached features a step costs milliseconds; a trained encoder embeds the images, as for the start.
        watcher.begin(done, began - measuring if self.method.trains_encoder else 0.0)
        earlier = [row for number, row in recorded.items() if number <= done]
        for epoch in () if self._falls(earlier) else self._epochs(data, setting, done, checkpoint and checkpoint[1],
                                                                  start and start[0]):
            if any(not np.isfinite(value) for value in epoch.losses.values()):
                raise UserError(f"The loss is not finite in epoch {epoch.number}. Lower the learning rate and start a "
                                "new run.")
            row = self._measured(loaded, epoch)
            rows = [*recorded.values(), row]
            if self._best(rows) == epoch.number:
                self.run.write_best(epoch.number, epoch.state, epoch.embedder)
            if epoch.number not in recorded:
                recorded[epoch.number] = row
                self.run.append_metrics(row | {"seconds": clock() - began})
            self.run.write_checkpoint(epoch.number, epoch.state, epoch.embedder)
            done, embedder = epoch.number, epoch.embedder
            watcher.epoch = done
            self.reporter.change(epoch=done, epoch_seconds=clock() - began, share=0.0)
            record_epoch(self.spec, len(data), clock() - began)
            log.info("epoch %d: %s", done, ", ".join(f"{name} {value:.4g}" for name, value in row.items()))
            self.reporter.stop_if_requested()
            self.reporter.rest_if_requested()
            self._keep_baselines(loaded, embedder)
            if self._falls(rows):
                log.info("the judges find the last %d epochs surely worse than epoch %d: training ends",
                         self.spec.patience, self._best(rows))
                break
            began = clock()
        best = self._best(recorded.values())
        if self.spec.select != "last" and best is not None:
            embedder = self._kept(best, done)
            if self.spec.labels == "given" and self.method.rank_shows_collapse and first_collapsed(recorded) == 1:
                log.info("the embedding collapsed in the first epoch: the effective rank of the training images "
                         "differs too much from the start's; epoch 1 is kept; lower the learning rate")
        assert embedder is not None, "fit yields at least once"
        return embedder

    def _seat_judges(self, loaded: Loaded) -> None:
        """Prepare the judges of each epoch; without stored features of a judge, say that the last epoch is kept."""
        self.judge = _sample_judge(self.spec.backbone, loaded, loaded.sample[loaded.judged])
        if self.spec.select == "judges" and loaded.split.name != "all":
            self.trained_judge = _sample_judge(self.spec.backbone, loaded, fixed_sample(loaded.split.train, JUDGED))
        if self.spec.select == "judges" and self.judge is None:
            log.info("no encoder that took no part has looked at these images yet, so no judge chooses the epoch: the "
                     "last epoch is kept; second opinions of runs store such features")

    def _kept(self, best: int, done: int) -> Embedder:
        """Return the model of the selected epoch; 0 is the start."""
        if self.spec.select == "judges" and best != done:
            log.info("the judges find epoch %d surely worse than the best: epoch %d is kept", done, best)
        if not best:
            return Embedder.load(self.run.initial_embedder_path, self.device)
        if not self.run.has_best(best, done):
            raise UserError(f"{self.run.best_embedder_path.parent} should hold the model of epoch {best}, which "
                            "this run keeps, but could not be read. Resume the run: it trains again.")
        return Embedder.load(self.run.best_embedder_path, self.device)

    def _falls(self, rows: Iterable[dict[str, Any]]) -> bool:
        """Return whether as many epochs as the run allows are surely worse than the best."""
        if self.spec.patience is None or self.spec.select != "judges":
            return False
        known = list(rows)
        best = self._best(known)
        return best is not None and known[-1]["epoch"] - best >= self.spec.patience

    def _record_start(self, loaded: Loaded) -> None:
        """Keep the time from the start of this process to the first epoch without what is computed only once."""
        folder = features_path(loaded.dataset, self.spec.encoder).parent
        is_first = any(path.stat().st_mtime > self.began for path in folder.glob("*"))
        of_phases = self.reporter.status.seconds
        once = sum(seconds for phase, seconds in of_phases.items()
                   if is_first and (phase.startswith(OF_FEATURES) or phase in (LOADING, QUALITY, HASHES)))
        spent = of_phases.get(LIBRARIES, 0.0) + time.time() - self.began - once
        if spent > 0:  # the clock did not go back
            record_speed(start_kind(self.spec), spent)

    def _best(self, rows: Iterable[dict[str, Any]]) -> int | None:
        """Return the epoch that selection keeps; None if no row has a selection measure."""
        return best_epoch(rows, self.method.rank_shows_collapse, self.spec.select)

    def _checkpoint(self, recorded: dict[int, dict[str, Any]]) -> tuple[int, dict[str, Tensor], Path] | None:
        """Read the checkpoint to continue from; None if training begins at the start.

        It does so if the best epoch's model or curves are lost, because later epochs do not bring them back.
        """
        checkpoint = self.run.read_checkpoint()
        if checkpoint is None or self.spec.select == "last":
            return checkpoint
        done = checkpoint[0]
        if recorded.keys() >= set(range(done + 1)):
            best = self._best(recorded.values())
            if not best or best > done or self.run.has_best(best, done):  # the start has a file of its own
                return checkpoint
        log.info("the model or the curves of the best epoch so far could not be read: training begins again")
        return None

    def _epochs(self, data: TrainingData, setting: Setting, done: int, state: State | None,
                start: State | None) -> Iterator[Epoch]:
        """Yield the epochs after the last finished one.

        A run that continues another counts its own epochs from 1, while the state keeps counting from the other's.
        """
        if start is None:
            return self.method.fit(data, setting, state)
        epochs = self.method.continue_fit(data, setting, state or self.method.state_to_continue(start),
                                          self.method.epochs_planned - done)
        return (replace(epoch, number=epoch.number - int(start["epoch"])) for epoch in epochs)

    def _keep_start(self, loaded: Loaded, initial: Embedder) -> dict[str, Any]:
        """Store the model before training as epoch 0, and return its row of curves."""
        initial.save(self.run.initial_embedder_path)
        self.run.write_sample_indices(loaded.sample)
        row = self._measured(loaded, Epoch(0, {}, initial, (), {}))
        self.run.append_metrics(row)
        return row

    def _keep_baselines(self, loaded: Loaded, embedder: Embedder) -> None:
        """Store frozen features and PCA as the curves measure them, once width and distance are known."""
        labels, sample = loaded.dataset.labels, loaded.sample
        if labels is None or read_baselines(self.run) is not None:
            return
        width = self.run.epoch_sample(self.run.epoch_numbers()[-1]).shape[1]
        release_freed_memory()  # of the curves, before PCA
        write_baselines(self.run, sample_baselines(loaded.features, labels, loaded.split.train, sample[loaded.judged],
                                                   width, embedder.head.normalized))

    def _measured(self, loaded: Loaded, epoch: Epoch) -> dict[str, Any]:
        """Measure and store an epoch.

        The epoch's explanations and the sample's embedding are stored.

        Returns:
            The row of curves.
        """
        embedder = epoch.embedder.eval()
        sample = embed(embedder, loaded, loaded.sample, quick=True)
        trained = None
        if loaded.split.name != "all":
            trained = embed(embedder, loaded, fixed_sample(loaded.split.train, JUDGED), quick=True)
        explanations = (*epoch.explanations, *self.method.embedder_explanations(embedder))
        records = [thin(record, TRIPLETS_KEPT) for record in explanations]
        self.run.write_epoch(epoch.number, records, sample, trained)
        judged = some_rows(sample, loaded.judged)
        row: dict[str, Any] = {"epoch": epoch.number} | epoch.losses | {"effective rank": effective_rank(judged)}
        before = self.run.epoch_numbers()
        if epoch.number - 1 in before and len(judged) > 20:
            with suppress(UserError):  # A power cut can damage an earlier sample; the curve then misses a point.
                earlier = some_rows(self.run.epoch_sample(epoch.number - 1), loaded.judged)
                row["neighbor stability"] = neighbor_stability(earlier, judged)
        if self.judge is not None:
            row |= self.judge.differences(judged)
        if self.trained_judge is not None and trained is not None:
            of_trained = self.trained_judge.differences(trained)
            row |= {f"{TRAINED_OPINION}{end}": of_trained[f"{OPINION}{end}"] for end in ("", ERROR)}
        labels = loaded.dataset.labels
        if self.spec.labels == "given" and loaded.few is not None:
            known = np.flatnonzero(loaded.few >= 0)
            row[TRAINED_RANK] = effective_rank(judged if trained is None else trained)
            row["given recall@1"] = recall_at_k(embed(embedder, loaded, known, quick=True), loaded.few[known], (1,))[1]
        if labels is not None:
            of_judged = labels[loaded.sample[loaded.judged]]
            row["sample recall@1"] = recall_at_k(judged, of_judged, (1,))[1]
            row["sample map@r"] = map_at_r(judged, of_judged)[0]
            if loaded.split.name == "seen":
                train = fixed_sample(loaded.split.train, VOTING)
                voters = embed(embedder, loaded, train, quick=True)
                row[f"sample knn@{KNN}"] = knn_accuracy(voters, labels[train], judged, of_judged, KNN)
            validation = loaded.split.validation
            if len(validation):
                held_out = embed(embedder, loaded, validation, quick=True), labels[validation]
                row["validation map@r"] = map_at_r(*held_out)[0]
                row["validation recall@1"] = recall_at_k(*held_out, (1,))[1]
        return row

    def _measured_step(self, loaded: Loaded, embedder: Embedder) -> tuple[dict[str, Any], Array, Array | None]:
        """Measure a step within an epoch as `_measured` does an epoch, by what a picture of the training shows."""
        images = loaded.sample[loaded.judged]
        judged, trained = embed(embedder, loaded, images, quick=True), None
        if loaded.split.name != "all":
            trained = embed(embedder, loaded, fixed_sample(loaded.split.train, JUDGED), quick=True)
        row: dict[str, Any] = {"effective rank": effective_rank(judged)}
        if loaded.dataset.labels is not None:
            row["sample map@r"] = map_at_r(judged, loaded.dataset.labels[images])[0]
        return row, judged, trained

    def _keep(self, loaded: Loaded, embedder: Embedder) -> None:
        """Store the embeddings of all images before and after training, and the index."""
        report = self.reporter.share
        self.reporter.change(phase="embedding", share=0.0)
        everything = np.arange(len(loaded.dataset))
        initial = Embedder.load(self.run.initial_embedder_path, self.device)
        self.run.write_embeddings("initial", embed(initial, loaded, everything, lambda s: report(s / 2, "embedding")))
        final = embed(embedder.eval(), loaded, everything, lambda s: report(0.5 + s / 2, "embedding"))
        self.run.write_embeddings("final", final)
        del final  # the index copies it
        final = self.run.embeddings("final")
        if loaded.dataset.is_large:
            _build_gallery(final, self.run.gallery_path, report)
        else:
            write_index(build_index(final), self.run.index_path)
        embedder.save(self.run.embedder_path)

    def _is_replaced(self, dataset: Dataset) -> bool:
        """Return whether other images of frozen features are excluded by now, which pages then prepare in a new run."""
        return self.spec.method == FROZEN and self.spec.excluded != ExclusionList.of(excluded_names(dataset))

    def _compare(self, dataset: Dataset) -> None:
        """Compare all images for the audit that waits for their features; if it fails, the audit follows the run."""
        from udml_core.work.workers import analyse as analysis_worker

        try:
            check_analysis(self.run, AUDIT)
            analysis_worker.keep(self.run, AUDIT, self.reporter.share, dataset)
            withdraw(self.run, "audit")
        except Exception as error:
            log.info("no audit: %s", error)

    def _analyse(self, dataset: Dataset, trained: int) -> None:
        """Compute the PCA map of all images and the graph of the training half.

        A failure does not fail the run, which can be searched meanwhile. The time of the graph grows with the square of
        the number of images, so that of a large data set waits for a user's request. Its map follows every run: the
        neighbors of 200,000 images take minutes, and of more images none are computed.
        """
        from udml_core.work.workers import analyse as analysis_worker  # its libraries delay the first epoch

        analyses: dict[type[AnalysisKind], dict[str, Any]] = {
            PCA: {}, NeighborGraph: {"scope": "train", "n_neighbors": self.method.graph_neighbors(trained)}}
        if len(dataset) > MOST_ANALYZED:
            log.info("no graph is computed for more than %d images without a request", MOST_ANALYZED)
            del analyses[NeighborGraph]
        for kind, options in analyses.items():
            try:
                analysis_worker.keep(self.run, plan_analysis(kind, **options), self.reporter.share, dataset)
            except Exception as error:
                log.info("no %s: %s", kind.name, error)


def _sample_judge(backbone: str, loaded: Loaded, images: Array) -> SampleJudge | None:
    """Return the judge of a sample (s,) of images; None if no features of a judge are stored."""
    try:
        return SampleJudge.of(loaded.dataset, backbone, images, loaded.features[images])
    except Exception as error:  # a curve that is missing must not stop the training
        log.info("no second opinion by epoch: %s", error)
        return None


def _build_gallery(vectors: Array, folder: Path, report: Report) -> None:
    """Build the index of a large run, or continue a build of the same vectors that was interrupted.

    A gallery of other vectors, or one that is damaged or was changed, is replaced.
    """
    with suppress(UserError):
        if build_gallery(vectors, folder, report).manifest.changes == len(vectors):
            return
    shutil.rmtree(folder, ignore_errors=True)
    build_gallery(vectors, folder, report)
