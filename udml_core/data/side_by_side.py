"""Encoders side by side, with the statistics of the training images that make their features comparable."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from filelock import FileLock

from udml_core.base.arrays import Array, Integers
from udml_core.base.errors import UserError
from udml_core.base.files import read_array, replace_array
from udml_core.base.paths import dataset_cache
from udml_core.data.dataset import Dataset, Report
from udml_core.data.encoders import Encoder, EncoderSpec
from udml_core.data.features import features_of
from udml_core.numerics.refinement.joining import joining
from udml_core.numerics.refinement.linear import unit_rows


def frozen_encoder(dataset: Dataset, spec: EncoderSpec, train: Integers, report: Report = lambda _share, _step: None,
                   device: str = "cpu", devices: Sequence[str] = ()) -> Encoder:
    """Return a frozen encoder; several side by side with the statistics of the training images, computed on first use.

    Args:
        dataset: The data set.
        spec: The encoder.
        train: Indices (n,) of the training images.
        report: Receives the progress of the parts' features, which are stored.
        device: Device of the encoder.
        devices: Further devices that share the images; see `features_of`.
    """
    encoder = Encoder(spec).to(device)
    if spec.parts:
        path = dataset_cache(dataset.fingerprint) / f"{spec.key}-map.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_suffix(".lock")):
            try:
                stored = read_array(path)
            except UserError:  # missing or damaged
                stored = _fit(encoder, lambda part: features_of(dataset, part, report, devices)[train])
                replace_array(path, stored)
        encoder.joint.fill(torch.from_numpy(stored[0]), torch.from_numpy(stored[1:]))
    return encoder


def _fit(encoder: Encoder, features: Callable[[Encoder], Array]) -> Array:
    """Return the offset and, below it, the map (1 + d, d) float32 of encoders, by their features of training images."""
    spec = encoder.spec
    rows = [unit_rows(features(part)) for part in encoder.part_encoders]
    joint = joining(rows, spec.part_weights, spec.whitening)
    return np.concatenate([joint.offset[None], joint.weight])
