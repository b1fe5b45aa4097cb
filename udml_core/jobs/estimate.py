"""Estimate time and memory of a run before it starts."""

from __future__ import annotations

from dataclasses import dataclass

from udml_core.backbones import feature_width, image_seconds
from udml_core.data.dataset import Dataset
from udml_core.data.features import features_path
from udml_core.data.splits import make_split
from udml_core.runs import Spec

ASSUMED_WIDTH = 1024
"""Assumed dimension of features whose network reports it only after loading."""


@dataclass(frozen=True)
class Estimate:
    """A rough estimate for two CPU cores.

    Attributes:
        feature_seconds: Time to compute the features that are not cached.
        training_seconds: Time of all epochs.
        memory: Bytes.
    """

    feature_seconds: float
    training_seconds: float
    memory: float


def estimate(spec: Spec, dataset: Dataset) -> Estimate:
    """Estimate a run's time and memory within a factor of two or three."""
    method = spec.build_method()
    train = len(make_split(dataset, spec.split).train)
    per_image = image_seconds(spec.encoder)
    cached = features_path(dataset, spec.encoder).exists()
    width = feature_width(spec.encoder) or ASSUMED_WIDTH
    epoch = method.expected_seconds(train, width, per_image)
    activations = 120 * 600 * spec.encoder.size**2 if method.trains_encoder else 0
    encoded = (0 if cached else len(dataset)) + method.views_needed * train
    return Estimate(encoded * per_image, epoch * method.epochs_planned,
                    600e6 + method.expected_bytes(train, width) + activations)
