"""Estimate time, memory and disk space of a run before it starts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from udml_core.arrays import Integers
from udml_core.backbones import activation_bytes, feature_width, image_seconds, late_share
from udml_core.data.augmentation import CROPS, Augmentation
from udml_core.data.dataset import Dataset
from udml_core.data.features import features_path, views_path
from udml_core.data.splits import make_split
from udml_core.runs import Spec

ASSUMED_WIDTH = 1024
"""Assumed dimension of features whose network reports it only after loading."""


@dataclass(frozen=True)
class Estimate:
    """A rough estimate for two CPU cores.

    Attributes:
        feature_seconds: Time to compute the features and activations that are not cached.
        training_seconds: Time of all epochs.
        memory: Bytes.
        disk: Bytes of the features and activations that are not cached.
    """

    feature_seconds: float
    training_seconds: float
    memory: float
    disk: float


def estimate(spec: Spec, dataset: Dataset) -> Estimate:
    """Estimate a run's time and memory within a factor of two or three.

    If the last blocks are trained, the early blocks see every view once, and an epoch passes the late blocks only.
    """
    method = spec.build_method()
    train = make_split(dataset, spec.split, spec.holds_out, spec.seed).train
    width = feature_width(spec.encoder) or ASSUMED_WIDTH
    divided = method.trained_part == "last" and spec.encoder.trainable
    late = late_share(spec.encoder) if divided else 1.0

    def missing(kind: str, count: int, indices: Integers, augmentation: Augmentation, seed: int) -> int:
        """Return the number of images and views that must be computed."""
        path = views_path(dataset, spec.encoder, indices, f"{kind}{count}", augmentation, seed)
        return 0 if not count or path.exists() else count * len(indices)

    whole = 0 if features_path(dataset, spec.encoder).exists() else len(dataset)
    encoded = whole + missing("views", method.views_needed, train, method.augmentation, spec.seed)
    early = 0
    if divided:
        early = missing("early", method.activations_needed, train, method.augmentation, spec.seed)
        early += missing("early", 1, np.arange(len(dataset)), CROPS, 0)  # for the curves of the epochs
    per_image = image_seconds(spec.encoder)
    epoch = method.expected_seconds(len(train), width, late * per_image)
    gradients = 120 * 600 * late * spec.encoder.size**2 if method.trains_encoder else 0
    return Estimate((encoded + (1 - late) * early) * per_image, epoch * method.epochs_planned,
                    600e6 + method.expected_bytes(len(train), width) + gradients,
                    4.0 * encoded * width + activation_bytes(spec.encoder) * early)
