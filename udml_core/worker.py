"""The only writer of results: trains, keeps every epoch, selects the model, embeds, evaluates, indexes."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import signal
import time
import traceback
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from udml_core.backbones import Encoder
from udml_core.data import catalog
from udml_core.data.dataset import Dataset, Report
from udml_core.data.features import BLOCK, embed_pixels, features_of, pixels_of
from udml_core.data.splits import VALIDATION_SHARE, Split, holdout, make_split
from udml_core.data.training import TrainingData, training_data
from udml_core.errors import UserError
from udml_core.evaluation import effective_rank, evaluate, map_at_r, neighbor_stability, recall_at_k
from udml_core.explanations import thinned
from udml_core.jobs import device_lock, place
from udml_core.methods import PCA, Embedder, Epoch, Method, Setting
from udml_core.neighbors import build_index, write_index
from udml_core.runs import BALLAST_BYTES, Run, Status

Array = np.ndarray[Any, Any]
SAMPLE = 1000
"""Images of the fixed sample whose embedding is kept for every epoch."""
TRIPLETS_KEPT = 2000
HEARTBEAT = 0.5
log = logging.getLogger("udml")


class StopRequestedError(BaseException):
    """The worker was told to end; not an Exception, so that nothing on the way swallows it."""


class Reporter:
    """Writes the status, at most twice a second unless something changed that a person waits for."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._last = 0.0
        self.status = run.stored_status()

    def change(self, **values: Any) -> None:
        """Write at once."""
        now = time.time()
        if values.get("phase", self.status.phase) != self.status.phase:
            values["phase_started"] = now
        self.status = self.status.model_copy(update=values | {"heartbeat": now})
        self._run.write_status(self.status)
        self._last = time.monotonic()

    def share(self, share: float, phase: str) -> None:
        """Write now and then."""
        if phase != self.status.phase or time.monotonic() - self._last > HEARTBEAT:
            self.change(share=share, phase=phase)


def work(run: Run) -> Status:
    """Take a run from where it stands to its end. Its failure is written down, not raised."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", force=True)
    with run.lock().acquire(timeout=5):
        if run.stop_requested():
            run.write_status(run.stored_status().model_copy(update={"state": "stopped", "finished": time.time()}))
            return run.stored_status()
        previous = signal.signal(signal.SIGTERM, _on_terminate)
        reporter = Reporter(run)
        try:
            reporter.change(state="waiting", pid=os.getpid(), message="", phase="waiting")
            run.reserve()
            _in_turn(run, reporter)
        except StopRequestedError:
            log.info("stopped")
            reporter.change(state="stopped", finished=time.time(), message="Stopped.")
        except Exception as error:
            _record_failure(run, reporter, error)
        finally:
            run.release_reserve()
            signal.signal(signal.SIGTERM, previous)
        return reporter.status


def _on_terminate(_number: int, _frame: Any) -> None:
    raise StopRequestedError


def _in_turn(run: Run, reporter: Reporter) -> None:
    """Wait for the device, first come first served, and work."""
    device = device_lock(run.spec().device)
    while True:
        if place(run, run.folder.parent) == 0:
            try:
                device.acquire(timeout=0)
                break
            except TimeoutError:
                reporter.share(0.0, "waiting for another program's run")
        time.sleep(0.3)
    try:
        reporter.change(state="running", started=time.time(), phase="starting", share=0.0)
        _Work(run, reporter).all()
        reporter.change(state="done", finished=time.time(), phase="", share=1.0)
        log.info("done")
    finally:
        device.release()


def _record_failure(run: Run, reporter: Reporter, error: Exception) -> None:
    """A message that a person can use in the status, the trace in error.txt, also where the disk is full."""
    disk_is_full = _is_disk_full(run, error)
    run.release_reserve()
    trace = traceback.format_exc()
    if isinstance(error, UserError):
        message = str(error)
    elif disk_is_full:
        message = "The disk is full. Finished epochs are kept: free some space, then resume the run."
    elif isinstance(error, MemoryError | torch.cuda.OutOfMemoryError):
        message = "The memory did not suffice. Choose a smaller batch, image size or data set, then train again."
    else:
        message = f"{type(error).__name__}: {error}"
    try:
        log.error("%s\n%s", message, trace)
        run.write_error(trace)
    except OSError:
        pass
    reporter.change(state="failed", finished=time.time(), message=message)


def _is_disk_full(run: Run, error: Exception) -> bool:
    """By the error's number; NumPy and faiss lose it, so also by the room that is left beside the reserve."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    return isinstance(error, OSError | RuntimeError) and shutil.disk_usage(run.folder).free < BALLAST_BYTES


@dataclass(frozen=True)
class Loaded:
    """What training and evaluation start from. `validation` (v,) are training images that `fit` never sees."""

    dataset: Dataset
    encoder: Encoder
    features: Array
    split: Split
    train: Array
    validation: Array
    sample: Array


class _Work:
    """One run's way from its spec to its results."""

    def __init__(self, run: Run, reporter: Reporter) -> None:
        self.run = run
        self.spec = run.spec()
        self.reporter = reporter
        self.device = torch.device(self.spec.device)
        self.method: Method = self.spec.build_method()

    def all(self) -> None:
        loaded = load(self.run, self.reporter.share)
        embedder = self._train(loaded)
        self._keep(loaded, embedder)
        self.reporter.change(phase="evaluation", share=0.0)
        evaluate_run(self.run, loaded, self.reporter.share)

    def _train(self, loaded: Loaded) -> Embedder:
        data = self._training_data(loaded)
        report = self.reporter.share
        setting = Setting(self.spec.seed, self.device, loaded.encoder, lambda share: report(share, "training"))
        known, _ = self.run.metrics()
        recorded = {row["epoch"]: row for row in known}
        checkpoint = self.run.read_checkpoint()
        done = checkpoint[0] if checkpoint else 0
        self.reporter.change(epoch=done, epochs=self.method.epochs_planned, phase="training", share=0.0)
        if 0 not in recorded:
            self._before_the_first(loaded, self.method.initial(data, setting))
        best = max((row.get("validation map@r", -1.0) for row in known), default=-1.0)
        embedder = Embedder.load(checkpoint[2], self.device) if checkpoint else None
        began = time.monotonic()
        for epoch in self.method.fit(data, setting, checkpoint[1] if checkpoint else None):
            if any(not np.isfinite(value) for value in epoch.losses.values()):
                raise UserError(f"The loss is not finite in epoch {epoch.number}. Lower the learning rate, then train "
                                "again.")
            row = self._measured(loaded, epoch)
            if row.get("validation map@r", -1.0) > best:
                best = row["validation map@r"]
                epoch.embedder.save(self.run.best_embedder_path)
            if epoch.number not in recorded:
                self.run.append_metrics(row | {"seconds": time.monotonic() - began})
            self.run.write_checkpoint(epoch.number, epoch.state, epoch.embedder)
            done, embedder = epoch.number, epoch.embedder
            self.reporter.change(epoch=done, epoch_seconds=time.monotonic() - began, share=0.0)
            log.info("epoch %d: %s", done, ", ".join(f"{name} {value:.4g}" for name, value in row.items()))
            began = time.monotonic()
        if self.spec.select == "validation" and self.run.best_embedder_path.exists():
            embedder = Embedder.load(self.run.best_embedder_path, self.device)
        assert embedder is not None, "fit yields at least once"
        return embedder

    def _training_data(self, loaded: Loaded) -> TrainingData:
        pixels = None
        if self.method.trains_encoder and loaded.encoder.trainable:
            pixels = pixels_of(loaded.dataset, loaded.encoder, self.reporter.share)
        return training_data(loaded.features, loaded.dataset.labels, loaded.train, self.method.supervision, pixels)

    def _before_the_first(self, loaded: Loaded, initial: Embedder) -> None:
        """Epoch 0: the start, kept like any other epoch, so that curves and maps begin where training does."""
        initial.save(self.run.initial_embedder_path)
        row = self._measured(loaded, Epoch(0, {}, initial, (), {}))
        self.run.append_metrics(row)

    def _measured(self, loaded: Loaded, epoch: Epoch) -> dict[str, Any]:
        """An epoch's row of curves; its explanations and the sample's embedding are kept on the way."""
        embedder = epoch.embedder.eval()
        sample = embed(embedder, loaded, loaded.sample)
        self.run.write_epoch(epoch.number, [thinned(one, TRIPLETS_KEPT) for one in epoch.explanations], sample)
        row: dict[str, Any] = {"epoch": epoch.number} | epoch.losses | {"effective rank": effective_rank(sample)}
        before = self.run.epoch_numbers()
        if epoch.number - 1 in before and len(sample) > 20:
            row["neighbor stability"] = neighbor_stability(self.run.epoch_sample(epoch.number - 1), sample)
        labels = loaded.dataset.labels
        if labels is not None:
            row["sample recall@1"] = recall_at_k(sample, labels[loaded.sample], (1,))[1]
            row["sample map@r"] = map_at_r(sample, labels[loaded.sample])[0]
            if len(loaded.validation):
                held_out = embed(embedder, loaded, loaded.validation)
                row["validation map@r"] = map_at_r(held_out, labels[loaded.validation])[0]
        return row

    def _keep(self, loaded: Loaded, embedder: Embedder) -> None:
        """Embed every image before and after training, and index them."""
        report = self.reporter.share
        everything = np.arange(len(loaded.dataset))
        initial = Embedder.load(self.run.initial_embedder_path, self.device)
        self.run.write_embeddings("initial", embed(initial, loaded, everything, lambda s: report(s / 2, "embedding")))
        final = embed(embedder.eval(), loaded, everything, lambda s: report(0.5 + s / 2, "embedding"))
        self.run.write_embeddings("final", final)
        write_index(build_index(final), self.run.index_path)
        embedder.save(self.run.embedder_path)


def load(run: Run, report: Report) -> Loaded:
    """The data set, its frozen features and its halves.

    Raises:
        UserError: the data set is gone or is not the one that the run began with.
    """
    spec = run.spec()
    dataset = catalog.load(spec.dataset, report)
    if dataset.fingerprint != spec.fingerprint:
        raise UserError(f"The data set '{spec.dataset}' has changed since this run was started, so its images and "
                        "their order are not the same. Restore it, or start a new run.")
    device = torch.device(spec.device)
    encoder = Encoder(spec.encoder).to(device)
    features = features_of(dataset, encoder, report)
    split = make_split(dataset, spec.split)
    held_out = np.zeros(len(split.train), dtype=bool)
    if spec.select == "validation" and dataset.labels is not None:
        held_out = holdout(dataset.labels[split.train], VALIDATION_SHARE, spec.seed)
        log.info("selection uses %d labelled images of the training half that fit never sees; fit sees %d images and "
                 "no labels beyond those its method declares", held_out.sum(), (~held_out).sum())
    count = min(SAMPLE, len(split.test))
    sample = np.sort(np.random.default_rng(0).permutation(split.test)[:count])
    return Loaded(dataset, encoder, features, split, split.train[~held_out], split.train[held_out], sample)


def embed(embedder: Embedder, loaded: Loaded, positions: Array,
          report: Any = lambda _share: None) -> Array:
    """Embeddings (b, l) float32 of images by position: from cached features where the encoder is the frozen one."""
    if not embedder.trained:
        return embedder.embed_features(loaded.features[positions])
    pixels = pixels_of(loaded.dataset, loaded.encoder)
    parts = []
    for start in range(0, len(positions), BLOCK):
        parts.append(embed_pixels(embedder, pixels[positions[start : start + BLOCK]]))
        report(min(1.0, (start + BLOCK) / len(positions)))
    return np.concatenate(parts)


def evaluate_run(run: Run, loaded: Loaded, tell: Report) -> dict[str, dict[str, float]]:
    """Initial, frozen, PCA at the final width, and final, on the test half, by one protocol."""
    test = loaded.split.test
    features = loaded.features[test]
    labels = loaded.dataset.labels[test] if loaded.dataset.labels is not None else None
    space = Embedder(loaded.encoder).embed_features(features)
    final = np.asarray(run.embeddings("final")[test])
    candidates = {"initial": np.asarray(run.embeddings("initial")[test]), "frozen": space,
                  "pca": _pca(loaded, final.shape[1], features), "final": final}
    result = {}
    for position, (name, embeddings) in enumerate(candidates.items()):
        def report(share: float, done: int = position) -> None:
            tell((done + share) / len(candidates), "evaluation")

        result[name] = evaluate(embeddings, labels, space, report)
        if name in ("initial", "final"):
            result[name]["neighbors kept from frozen"] = 100 * _kept_neighbors(space, embeddings)
        log.info("%s: %s", name, ", ".join(f"{key} {value:.2f}" for key, value in result[name].items()))
    run.write_evaluation(result)
    return result


def _pca(loaded: Loaded, width: int, features: Array) -> Array:
    """PCA of the training half's unit features at a width, or as near to it as they allow."""
    data = training_data(loaded.features, None, loaded.train, "none")
    most = min(width, *data.features.shape)
    setting = Setting(0, next(loaded.encoder.buffers()).device, loaded.encoder)
    (epoch,) = PCA(dimension=most).fit(data, setting)
    return epoch.embedder.embed_features(features)


def _kept_neighbors(space: Array, embeddings: Array) -> float:
    """The mean share of the 10 nearest that stayed, on at most 2,000 evenly spread images."""
    chosen = np.linspace(0, len(space) - 1, min(2000, len(space))).astype(int)
    k = min(10, len(chosen) - 1)
    return neighbor_stability(space[chosen], embeddings[chosen], k)


