"""Data set, features and halves that training and evaluation start from."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from udml_core.arrays import Array
from udml_core.backbones import Encoder
from udml_core.data.dataset import Dataset, Report
from udml_core.data.features import BLOCK, embed_pixels, features_of, pixels_of, views_of
from udml_core.data.given.pairs import PairSet
from udml_core.data.splits import Split, fixed_sample, make_split
from udml_core.data.training import TrainingData, training_data
from udml_core.jobs import resolve_device
from udml_core.methods import Embedder
from udml_core.runs import Run
from udml_core.sampling import generator, label_pairs

SAMPLE, TRAINED_SAMPLE = 3000, 1000
"""Number of test images whose embedding is stored for every epoch; fewer if the method trains the encoder."""
JUDGED = 1000
"""Number of images of the sample that curves are computed from, and of training images stored for every epoch."""
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
    """

    dataset: Dataset
    encoder: Encoder
    features: Array
    split: Split
    sample: Array
    judged: Array
    few: Array | None


def load(run: Run, report: Report, device: str = "auto") -> Loaded:
    """Load the data set, its frozen features and its halves.

    Raises:
        UserError: The data set is missing or has changed since the run began, or the device does not exist.
    """
    spec = run.spec()
    dataset = run.dataset(report)
    encoder = Encoder(spec.encoder).to(resolve_device(device))
    features = features_of(dataset, encoder, report)
    split = make_split(dataset, spec.split, spec.holds_out, spec.seed)
    few = spec.few_labels(dataset, split.train)
    if few is not None:
        log.info("training uses %d labels", (few >= 0).sum())
    if len(split.validation):
        log.info("selection uses %d labeled images of the training half, which training never sees; training uses %d "
                 "images and only the labels that the method declares", len(split.validation), len(split.train))
    size = TRAINED_SAMPLE if spec.build_method().trains_encoder else SAMPLE
    sample = run.sample_indices() if run.epoch_numbers() else fixed_sample(split.test, size)
    judged = np.flatnonzero(np.isin(sample, fixed_sample(split.test, JUDGED)))
    return Loaded(dataset, encoder, features, split, sample, judged, few)


def data_for_fit(run: Run, loaded: Loaded, report: Report) -> TrainingData:
    """Collect the features, images, labels and pairs that the method may train on."""
    spec = run.spec()
    method = spec.build_method()
    pixels = views = None
    if method.trains_encoder and loaded.encoder.trainable:
        pixels = pixels_of(loaded.dataset, loaded.encoder, report)
    if method.views_needed:
        views = views_of(loaded.dataset, loaded.encoder, loaded.split.train, method.views_needed,
                         method.augmentation, spec.seed, report)
    pairs = _pairs(run, loaded) if method.card.supervision == "pairs" else None
    return training_data(loaded.features, loaded.dataset.labels, loaded.split.train, method.card.supervision,
                         pixels, views, loaded.few, pairs)


def embed(embedder: Embedder, loaded: Loaded, indices: Array,
          report: Callable[[float], None] = lambda _share: None) -> Array:
    """Embed images (b, l) float32 by index; a frozen encoder uses cached features."""
    if not embedder.trained:
        return embedder.embed_features(loaded.features[indices])
    pixels = pixels_of(loaded.dataset, loaded.encoder)
    parts = []
    for start in range(0, len(indices), BLOCK):
        parts.append(embed_pixels(embedder, pixels[indices[start : start + BLOCK]]))
        report(min(1.0, (start + BLOCK) / len(indices)))
    return np.concatenate(parts)


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
