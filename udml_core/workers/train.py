"""The only writer of results: trains, keeps every epoch, selects the model, embeds, evaluates, indexes."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from udml_core.analyses import plan_analysis
from udml_core.arrays import Array
from udml_core.backbones import Encoder
from udml_core.data.dataset import Dataset, Report
from udml_core.data.features import BLOCK, embed_pixels, features_of, pixels_of, views_of
from udml_core.data.given.pairs import PairSet
from udml_core.data.splits import Split, fixed_sample, make_split
from udml_core.data.thumbnails import sheets_of
from udml_core.data.training import TrainingData, training_data
from udml_core.errors import UserError
from udml_core.evaluation import (
    effective_rank,
    evaluate,
    in_short,
    knn_accuracy,
    linear_accuracy,
    map_at_r,
    neighbor_stability,
    recall_at_k,
)
from udml_core.explanations import LatentLayer, thinned
from udml_core.jobs import device_lock, place, resolve_device
from udml_core.methods import PCA, Embedder, Epoch, LatentHead, Method, PairMethod, Setting, State
from udml_core.methods.nml import as_start, go_on
from udml_core.neighbors import build_index, write_index
from udml_core.runs import TRAINED_RANK, Run, best_epoch, first_collapsed
from udml_core.sampling import generator, label_pairs
from udml_core.tasks import Status
from udml_core.workers import analyse as analyst
from udml_core.workers.execute import Reporter, execute

SAMPLE, TRAINED_SAMPLE = 3000, 1000
"""Images of the fixed sample whose embedding is kept for every epoch; fewer where each passes a trained encoder."""
JUDGED = 1000
"""Of the sample, how many the curves are computed from; and of the training half, how many are kept beside it."""
TRIPLETS_KEPT = 2000
GRAPH_NEIGHBORS = 50
MOST_ANALYSED = 20_000
"""Images of which a map and a graph are made without being asked for: two minutes of one core."""
KNN, VOTING = 200, 5000
"""Training images that vote on a test image's class; for the curves, among how many they are found."""
log = logging.getLogger("udml")


def work(run: Run, analyse: bool = True) -> Status:
    """Take a run from where it stands to its end. Its failure is written down, not raised.

    Args:
        analyse: whether the map and the graph that pages show at once are computed too.
    """
    return execute(run, lambda reporter: _in_turn(run, reporter, analyse))


def assist(run: Run, device: str) -> None:
    """Train beside the process that works on a run, on a device of its own, and write nothing; where the run is done,
    that process does nothing either.

    Raises:
        UserError: the run's method trains in one process.
    """
    if run.stored_status().state == "done":
        return
    method = run.spec().build_method()
    if not method.shares_batches:
        raise UserError(f"{method.title} trains in one process, and several were started. Start it without torchrun.")
    loaded = load(run, _untold, device)
    checkpoint = run.read_checkpoint()
    setting = Setting(run.spec().seed, torch.device(device), loaded.encoder)
    for _ in method.fit(_training_data(run, loaded, _untold), setting, checkpoint[1] if checkpoint else None):
        pass


def _untold(_share: float, _what: str) -> None: ...


def _in_turn(run: Run, reporter: Reporter, analyse: bool) -> None:
    """Wait for the device, first come first served, and work."""
    device = device_lock(run.spec().device)
    while True:
        reporter.heed()
        if place(run, run.folder.parent) == 0:
            try:
                device.acquire(timeout=0)
                break
            except TimeoutError:
                reporter.share(0.0, "waiting for another program's run")
        time.sleep(0.3)
    try:
        reporter.change(state="running", started=time.time(), phase="starting", share=0.0)
        _Work(run, reporter).all(analyse)
    finally:
        device.release()


@dataclass(frozen=True)
class Loaded:
    """What training and evaluation start from.

    features (n, d) of all images. sample (s,): data set positions of the fixed sample. judged: rows of the sample that
    the curves are computed from. few (n,): the labels of a method that learns from few, −1 elsewhere.
    """

    dataset: Dataset
    encoder: Encoder
    features: Array
    split: Split
    sample: Array
    judged: Array
    few: Array | None


class _Work:
    """One run's way from its spec to its results."""

    def __init__(self, run: Run, reporter: Reporter) -> None:
        self.run = run
        self.spec = run.spec()
        self.reporter = reporter
        self.device = torch.device(resolve_device(self.spec.device))
        self.method: Method = self.spec.build_method()

    def all(self, analyse: bool) -> None:
        loaded = load(self.run, self.reporter.share, self.spec.device)
        sheets_of(loaded.dataset, self.reporter.share)
        embedder = self._train(loaded)
        self._keep(loaded, embedder)
        self.reporter.change(phase="evaluation", share=0.0)
        evaluate_run(self.run, loaded, self.reporter.share)
        if analyse:
            self._analyse(len(loaded.dataset), len(loaded.split.train))

    def _train(self, loaded: Loaded) -> Embedder:
        data = _training_data(self.run, loaded, self.reporter.share)
        report = self.reporter.share
        setting = Setting(self.spec.seed, self.device, loaded.encoder, lambda share: report(share, "training"))
        known, _ = self.run.metrics()
        recorded = {row["epoch"]: row for row in known}
        checkpoint = self.run.read_checkpoint()
        done = checkpoint[0] if checkpoint else 0
        self.reporter.change(epoch=done, epochs=self.method.epochs_planned, phase="training", share=0.0)
        start = self.run.read_start()
        if 0 not in recorded:
            initial = Embedder.load(start[1], self.device) if start else self.method.initial(data, setting)
            recorded[0] = self._before_the_first(loaded, initial)
        embedder = Embedder.load(checkpoint[2], self.device) if checkpoint else None
        began = time.monotonic()
        for epoch in self._epochs(data, setting, done, checkpoint and checkpoint[1], start and start[0]):
            if any(not np.isfinite(value) for value in epoch.losses.values()):
                raise UserError(f"The loss is not finite in epoch {epoch.number}. Lower the learning rate, then train "
                                "again.")
            row = self._measured(loaded, epoch)
            if best_epoch([*recorded.values(), row], self.method.rank_tells) == epoch.number:
                self.run.write_best(epoch.state, epoch.embedder)
            if epoch.number not in recorded:
                recorded[epoch.number] = row
                self.run.append_metrics(row | {"seconds": time.monotonic() - began})
            self.run.write_checkpoint(epoch.number, epoch.state, epoch.embedder)
            done, embedder = epoch.number, epoch.embedder
            self.reporter.change(epoch=done, epoch_seconds=time.monotonic() - began, share=0.0)
            log.info("epoch %d: %s", done, ", ".join(f"{name} {value:.4g}" for name, value in row.items()))
            self.reporter.heed()
            began = time.monotonic()
        if self.spec.select == "validation" and self.run.best_embedder_path.exists():
            embedder = Embedder.load(self.run.best_embedder_path, self.device)
            if self.spec.labels == "given" and self.method.rank_tells and first_collapsed(recorded) == 1:
                log.info("in the first epoch already the effective rank of the training images is far from the "
                         "start's, a collapse, so no epoch is sound and epoch 1 is kept; lower the learning rate")
        assert embedder is not None, "fit yields at least once"
        return embedder

    def _epochs(self, data: TrainingData, setting: Setting, done: int, state: State | None,
                start: State | None) -> Iterator[Epoch]:
        """Those behind the last finished one. A run that goes on from another numbers its own from 1, while its state
        counts on."""
        if start is None:
            return self.method.fit(data, setting, state)
        assert isinstance(self.method, PairMethod), "a plan to go on with another is refused"
        epochs = go_on(self.method, data, setting, state or as_start(start), self.method.epochs - done)
        return (replace(epoch, number=epoch.number - int(start["epoch"])) for epoch in epochs)

    def _before_the_first(self, loaded: Loaded, initial: Embedder) -> dict[str, Any]:
        """Epoch 0: the start, kept like any other epoch, so that curves and maps begin where training does; its row."""
        initial.save(self.run.initial_embedder_path)
        self.run.write_sample_indices(loaded.sample)
        row = self._measured(loaded, Epoch(0, {}, initial, (), {}))
        self.run.append_metrics(row)
        return row

    def _measured(self, loaded: Loaded, epoch: Epoch) -> dict[str, Any]:
        """An epoch's row of curves; its explanations and the sample's embedding are kept on the way."""
        embedder = epoch.embedder.eval()
        sample = embed(embedder, loaded, loaded.sample)
        trained = None
        if loaded.split.name != "all":
            trained = embed(embedder, loaded, fixed_sample(loaded.split.train, JUDGED))
        records = [thinned(one, TRIPLETS_KEPT) for one in (*epoch.explanations, *_latent_layer(embedder))]
        self.run.write_epoch(epoch.number, records, sample, trained)
        judged = sample[loaded.judged]
        row: dict[str, Any] = {"epoch": epoch.number} | epoch.losses | {"effective rank": effective_rank(judged)}
        before = self.run.epoch_numbers()
        if epoch.number - 1 in before and len(judged) > 20:
            earlier = self.run.epoch_sample(epoch.number - 1)[loaded.judged]
            row["neighbor stability"] = neighbor_stability(earlier, judged)
        labels = loaded.dataset.labels
        if self.spec.labels == "given" and loaded.few is not None:
            known = np.flatnonzero(loaded.few >= 0)
            row[TRAINED_RANK] = effective_rank(judged if trained is None else trained)
            row["given recall@1"] = recall_at_k(embed(embedder, loaded, known), loaded.few[known], (1,))[1]
        if labels is not None:
            of_judged = labels[loaded.sample[loaded.judged]]
            row["sample recall@1"] = recall_at_k(judged, of_judged, (1,))[1]
            row["sample map@r"] = map_at_r(judged, of_judged)[0]
            if loaded.split.name == "seen":
                train = fixed_sample(loaded.split.train, VOTING)
                voters = embed(embedder, loaded, train)
                row[f"sample knn@{KNN}"] = knn_accuracy(voters, labels[train], judged, of_judged, KNN)
            validation = loaded.split.validation
            if len(validation):
                row["validation map@r"] = map_at_r(embed(embedder, loaded, validation), labels[validation])[0]
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

    def _analyse(self, images: int, trained: int) -> None:
        """What is cheap and always wanted: the principal plane of all images, and the graph of the training half.

        Both grow with the square of the images, and the run cannot be searched meanwhile: of many images they wait
        until somebody asks for them. Nothing that goes wrong here takes back what was learnt.
        """
        if images > MOST_ANALYSED:
            log.info("no map or graph of so many images unless asked for")
            return
        k = getattr(self.method, "n_neighbors", min(GRAPH_NEIGHBORS, trained - 1))
        for kind, given in (("pca", {}), ("graph", {"scope": "train", "n_neighbors": k})):
            try:
                analyst.keep(self.run, plan_analysis(kind=kind, **given), self.reporter.share)
            except Exception as error:
                log.info("no %s: %s", kind, error)


def _latent_layer(embedder: Embedder) -> tuple[LatentLayer, ...]:
    """What leads from the embedding to a latent representation, where one lies behind it."""
    head = embedder.head
    return (LatentLayer(head.latent),) if isinstance(head, LatentHead) and head.shown == "instance" else ()


def _training_data(run: Run, loaded: Loaded, report: Report) -> TrainingData:
    """What the run's method may see of the training half."""
    spec = run.spec()
    method = spec.build_method()
    pixels = views = None
    if method.trains_encoder and loaded.encoder.trainable:
        pixels = pixels_of(loaded.dataset, loaded.encoder, report)
    if method.views_needed:
        views = views_of(loaded.dataset, loaded.encoder, loaded.split.train, method.views_needed,
                         method.augmentation, spec.seed, report)
    pairs = _pairs(run, loaded) if method.supervision == "pairs" else None
    return training_data(loaded.features, loaded.dataset.labels, loaded.split.train, method.supervision,
                         pixels, views, loaded.few, pairs)


def _pairs(run: Run, loaded: Loaded) -> PairSet:
    """Those that were given, of the images that train; else as many as are wanted, drawn from the labels."""
    spec, train, labels = run.spec(), loaded.split.train, loaded.dataset.labels
    if spec.pairs == "given":
        found = run.pairs().within(train)
    else:
        assert labels is not None, "a plan without labels or pairs is refused"
        drawn = label_pairs(torch.from_numpy(labels[train]), spec.most_pairs, generator(spec.seed, 0))
        found = PairSet(*(one.numpy() for one in drawn))
    found.check()
    log.info("%d pairs, of which %d are the same", len(found), found.same.sum())
    return found


def load(run: Run, report: Report, device: str = "auto") -> Loaded:
    """The data set, its frozen features and its halves, on this machine's device.

    Raises:
        UserError: the data set is gone or is not the one that the run began with, or the device is not here.
    """
    spec = run.spec()
    dataset = run.dataset(report)
    encoder = Encoder(spec.encoder).to(resolve_device(device))
    features = features_of(dataset, encoder, report)
    split = make_split(dataset, spec.split, spec.holds_out, spec.seed)
    few = spec.few_labels(dataset, split.train)
    if few is not None:
        log.info("fit sees %d labels", (few >= 0).sum())
    if len(split.validation):
        log.info("selection uses %d labelled images of the training half that fit never sees; fit sees %d images and "
                 "no labels beyond those its method declares", len(split.validation), len(split.train))
    size = TRAINED_SAMPLE if spec.build_method().trains_encoder else SAMPLE
    sample = run.sample_indices() if run.epoch_numbers() else fixed_sample(split.test, size)
    judged = np.flatnonzero(np.isin(sample, fixed_sample(split.test, JUDGED)))
    return Loaded(dataset, encoder, features, split, sample, judged, few)


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
    """Initial, frozen, PCA at the final width, and final, on the test half, by one protocol; of PSLR also its latent
    representation. In the split `seen` with labels, also what the training half's labels tell of the test half."""
    train, test, labels = loaded.split.train, loaded.split.test, loaded.dataset.labels
    candidates = _candidates(run, loaded, test)
    of_train = _candidates(run, loaded, train) if loaded.split.name == "seen" and labels is not None else {}
    space = candidates["frozen"]
    result = {}
    for position, (name, embeddings) in enumerate(candidates.items()):
        def report(share: float, done: int = position) -> None:
            tell((done + share) / len(candidates), "evaluation")

        result[name] = evaluate(embeddings, None if labels is None else labels[test], space, report)
        if labels is not None and name in of_train:
            seen = (of_train[name], labels[train], embeddings, labels[test])
            result[name] |= {f"knn@{KNN}": 100 * knn_accuracy(*seen, k=KNN),
                             "linear probe": 100 * linear_accuracy(*seen)}
        if name in ("initial", "final"):
            result[name]["neighbors kept from frozen"] = 100 * _kept_neighbors(space, embeddings)
        log.info("%s: %s", name, ", ".join(f"{key} {value:.2f}" for key, value in in_short(result[name]).items()))
    run.write_evaluation(result)
    return result


def _candidates(run: Run, loaded: Loaded, positions: Array) -> dict[str, Array]:
    """What is compared, (b, l) each, of images by position."""
    features, final = loaded.features[positions], np.asarray(run.embeddings("final")[positions])
    found = {"initial": np.asarray(run.embeddings("initial")[positions]),
             "frozen": Embedder(loaded.encoder).embed_features(features),
             "pca": _pca(loaded, final.shape[1], features), "final": final}
    head = Embedder.load(run.embedder_path).head
    if isinstance(head, LatentHead) and head.shown == "instance":
        found["latent"] = head.latent_of(torch.from_numpy(final)).numpy()
    return found


def _pca(loaded: Loaded, width: int, features: Array) -> Array:
    """PCA of the training half's unit features at a width, or as near to it as they allow."""
    data = training_data(loaded.features, None, loaded.split.train, "none")
    most = min(width, *data.features.shape)
    setting = Setting(0, next(loaded.encoder.buffers()).device, loaded.encoder)
    (epoch,) = PCA(dimension=most).fit(data, setting)
    return epoch.embedder.embed_features(features)


def _kept_neighbors(space: Array, embeddings: Array) -> float:
    """The mean share of the 10 nearest that stayed, on at most 2,000 evenly spread images."""
    chosen = np.linspace(0, len(space) - 1, min(2000, len(space))).astype(int)
    k = min(10, len(chosen) - 1)
    return neighbor_stability(space[chosen], embeddings[chosen], k)


