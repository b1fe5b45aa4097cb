"""Data set, features and halves that training and evaluation start from."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from udml_core.base.arrays import Array
from udml_core.data.augmentation import CROPS
from udml_core.data.dataset import Dataset, Report
from udml_core.data.encoders import Encoder
from udml_core.data.features import (
    BLOCK,
    LOADING,
    activations_of,
    crop_sources_of,
    features_of,
    features_path,
    pixels_of,
    views_of,
    views_path,
)
from udml_core.data.given.pair_sets import PairSet
from udml_core.data.inference import embed_pixels
from udml_core.data.side_by_side import frozen_encoder
from udml_core.data.speed import record_speed
from udml_core.data.splits import Split, fixed_sample
from udml_core.data.training_data import TrainingData, training_data
from udml_core.methods import Embedder
from udml_core.numerics.sampling import generator, label_pairs
from udml_core.runs import Run
from udml_core.runs.baselines import JUDGED
from udml_core.work.jobs import other_free_gpus, resolve_device
from udml_core.work.jobs.estimate import image_kind, view_kind
from udml_core.work.workers.calibration import calibrate

SAMPLE, TRAINED_SAMPLE = 3000, 1000
"""Number of test images whose embedding is stored for every epoch; fewer if the method trains the encoder."""
log = logging.getLogger("udml")


@dataclass(frozen=True)
class Loaded:
    """The common input of training and evaluation.

    Attributes:
        dataset: The data set.
        encoder: The frozen encoder on the run's device.
        features: Features of all images (n, d).
        split: Training and test half.
        sample: Indices of the fixed sample (s,).
        judged: Rows of the sample that curves are computed from.
        few: Labels (n,) for a method that learns from few labels, −1 where unknown; None for other methods.
        whole: Activations (n, 1, c, h, w) of all images after the early blocks; None unless the last blocks are
            trained.
    """

    dataset: Dataset
    encoder: Encoder
    features: Array
    split: Split
    sample: Array
    judged: Array
    few: Array | None
    whole: Array | None = None


def load(run: Run, report: Report, device: str = "auto", dataset: Dataset | None = None) -> Loaded:
    """Load the data set, its frozen features and its halves.

    Args:
        run: The run.
        report: Receives the progress.
        device: The device of the encoder.
        dataset: The run's data set; without it, it is loaded.

    Raises:
        UserError: The data set is missing or has changed since the run began, or the device does not exist.
    """
    spec = run.spec()
    dataset = run.dataset(report) if dataset is None else dataset
    report(0.0, LOADING)
    torch.backends.cudnn.deterministic = True  # else a GPU trains two equal runs to different weights
    device, split = resolve_device(device), spec.halves(dataset)
    with other_free_gpus(device) as others:
        for source in spec.encoder.sources:
            encoder = Encoder(source).to(device)
            calibrate(dataset, source, spec.device, encoder)  # the expected time stands while the features are computed
            with _timed(image_kind(source, spec.device), features_path(dataset, source), len(dataset)):
                features = features_of(dataset, encoder, report, others)
        if spec.encoder.parts:
            encoder = frozen_encoder(dataset, spec.encoder, split.train, report, device)
            features = features_of(dataset, encoder, report)
    few = spec.few_labels(dataset, split.train)
    if few is not None:
        log.info("training uses %d labels", (few >= 0).sum())
    if len(split.validation):
        log.info("selection uses %d labeled images of the training half, which training never sees; training uses %d "
                 "images and only the labels that the method declares", len(split.validation), len(split.train))
    method, whole = spec.build_method(), None
    if method.trained_part == "last" and encoder.trainable:
        with _others(encoder) as others:
            whole = activations_of(dataset, encoder, np.arange(len(dataset)), 1, CROPS, 0, report, others)
    size = TRAINED_SAMPLE if method.trains_encoder else SAMPLE
    sample = run.sample_indices() if run.epoch_numbers() else fixed_sample(split.test, size)
    judged = np.flatnonzero(np.isin(sample, fixed_sample(split.test, JUDGED)))
    return Loaded(dataset, encoder, features, split, sample, judged, few, whole)


def data_for_fit(run: Run, loaded: Loaded, report: Report) -> TrainingData:
    """Collect the features, images, labels and pairs that the method may train on."""
    spec = run.spec()
    method = spec.build_method()
    pixels = views = sources = activations = None
    if method.trained_part == "all" and loaded.encoder.trainable:
        pixels = pixels_of(loaded.dataset, loaded.encoder, report)
        if method.crops_images:
            sources = crop_sources_of(loaded.dataset, loaded.encoder, method.augmentation, report)
    if method.trained_part == "last" and loaded.encoder.trainable:
        with _others(loaded.encoder) as others:
            activations = activations_of(loaded.dataset, loaded.encoder, loaded.split.train, method.activations_needed,
                                         method.augmentation, spec.seed, report, others)
    if method.views_needed:
        train, count = loaded.split.train, method.views_needed
        path = views_path(loaded.dataset, spec.encoder, train, f"views{count}", method.augmentation, spec.seed)
        with _timed(view_kind(spec), path, count * len(train)), _others(loaded.encoder) as others:
            views = views_of(loaded.dataset, loaded.encoder, train, count, method.augmentation, spec.seed, report,
                             others)
    pairs = _pairs(run, loaded) if method.card.supervision == "pairs" else None
    return training_data(loaded.features, loaded.dataset.labels, loaded.split.train, method.card.supervision,
                         pixels, views, loaded.few, pairs, sources, activations)


def _others(encoder: Encoder) -> AbstractContextManager[list[str]]:
    """Hold the free GPUs besides the encoder's."""
    return other_free_gpus(str(next(encoder.buffers()).device))


@contextmanager
def _timed(kind: str, path: Path, count: int) -> Iterator[None]:
    """Keep the seconds an image takes, unless the file exists or was begun by an interrupted computation."""
    begun = path.exists() or path.with_suffix(".part").exists()
    start = time.monotonic()
    yield
    if not begun:
        record_speed(kind, (time.monotonic() - start) / count)


def embed(embedder: Embedder, loaded: Loaded, indices: Array,
          report: Callable[[float], None] = lambda _share: None, quick: bool = False) -> Array:
    """Embed images (b, l) float32 by index; a frozen encoder uses cached features.

    Args:
        embedder: The embedder.
        loaded: The input of the run.
        indices: Indices (b,) of the images.
        report: Called with the finished share.
        quick: Whether stored activations of frozen early blocks may be used, which are rounded to float16.
    """
    if not embedder.trained:
        is_whole = np.array_equal(indices, np.arange(len(loaded.features)))
        return embedder.embed_features(loaded.features, None if is_whole else indices)
    inputs, module = (loaded.whole[:, 0], _FromActivations(embedder)) if quick and loaded.whole is not None else (
        pixels_of(loaded.dataset, loaded.encoder), embedder)
    parts = []
    for start in range(0, len(indices), BLOCK):
        parts.append(embed_pixels(module, inputs[indices[start : start + BLOCK]]))
        report(min(1.0, (start + BLOCK) / len(indices)))
    return np.concatenate(parts)


class _FromActivations(torch.nn.Module):
    """An embedder that reads activations of the encoder's early blocks in place of images."""

    def __init__(self, embedder: Embedder) -> None:
        super().__init__()
        self.embedder = embedder

    def forward(self, activations: torch.Tensor) -> torch.Tensor:
        embeddings: torch.Tensor = self.embedder.head(self.embedder.encoder.late(activations))
        return embeddings


def _pairs(run: Run, loaded: Loaded) -> PairSet:
    """Return the given pairs of training images, or pairs drawn from the labels."""
    spec, train, labels = run.spec(), loaded.split.train, loaded.dataset.labels
    if spec.pairs == "given":
        pairs = run.pairs().within(train)
    else:
        assert labels is not None, "planning rejects a run without labels or pairs"
        drawn = label_pairs(torch.from_numpy(labels[train]), spec.most_pairs, generator(spec.seed, 0))
        pairs = PairSet(*(part.numpy() for part in drawn))
    pairs.check()
    log.info("%d pairs, %d of them similar", len(pairs), pairs.same.sum())
    return pairs
