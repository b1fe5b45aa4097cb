"""Estimate time, memory and disk space of a run before it starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import psutil

from udml_core.base.arrays import Integers
from udml_core.data.augmentation import CROPS, Augmentation
from udml_core.data.dataset import Dataset, step_name
from udml_core.data.encoders import EncoderSpec, activation_bytes, feature_width, image_seconds, late_share
from udml_core.data.features import features_path, views_path
from udml_core.data.speed import measured_speed, record_speed
from udml_core.runs import Spec
from udml_core.runs.search import FROZEN
from udml_core.runs.tasks import Status
from udml_core.work.jobs.needed_memory import ASSUMED_WIDTH, needed_memory

FEATURES = "features"
OF_FEATURES = (FEATURES, "activations")
"""How the names of the phases begin that compute features."""
OF_EVALUATION = ("embedding", "thumbnails", "evaluation")
OF_MAP = ("map", "graph")
"""The phases after the last epoch, and the last phases of all."""
BUSY = 2.0
"""Tasks for each core that wait or work, above which a machine is busy."""


@dataclass(frozen=True)
class Estimate:
    """A rough estimate for two CPU cores, or by measurements on this machine.

    Attributes:
        feature_seconds: Time to compute the features and activations that are not cached.
        training_seconds: Time of all epochs.
        memory_by_part: Bytes of memory that each part of the run needs.
        disk: Bytes of the features and activations that are not cached.
        measured: Whether every time from the start of the process to the results rests on earlier runs on this machine.
        evaluation_seconds: Time to embed and evaluate all images after the last epoch; 0 until an evaluation of the
            data set was measured.
        start_seconds: Time to start the process, read the data set and measure it before training; 0 until measured.
        follow_seconds: Time to compute the first map and the graph after the evaluation; 0 until measured.
        view_seconds: The part of `feature_seconds` for random views.
        judging_seconds: Time after the results until judges have compared the run, where no labels do; 0 until
            measured.
    """

    feature_seconds: float
    training_seconds: float
    memory_by_part: Mapping[str, float]
    disk: float
    measured: bool = False
    evaluation_seconds: float = 0.0
    start_seconds: float = 0.0
    follow_seconds: float = 0.0
    view_seconds: float = 0.0
    judging_seconds: float = 0.0

    @property
    def memory(self) -> float:
        """Bytes of memory of the part that needs most."""
        return max(self.memory_by_part.values())

    @property
    def seconds(self) -> float:
        """Time of the whole run."""
        return self.start_seconds + self.feature_seconds + self.seconds_from_training

    @property
    def seconds_without_map(self) -> float:
        """Time of a run that no map and graph follow, as in a sweep."""
        return self.seconds - self.follow_seconds

    @property
    def seconds_until_search(self) -> float:
        """Time until the images are embedded, which itself takes a few seconds."""
        return self.start_seconds + self.feature_seconds + self.training_seconds

    @property
    def seconds_from_training(self) -> float:
        """Time from the first epoch to the results."""
        return self.training_seconds + self.evaluation_seconds + self.follow_seconds


def estimate(spec: Spec, dataset: Dataset) -> Estimate:
    """Estimate a run's time and memory within a factor of two or three.

    If the last blocks are trained, the early blocks see every view once, and an epoch passes the late blocks only.
    """
    method = spec.build_method()
    halves = spec.halves(dataset)
    train = halves.train
    width = feature_width(spec.encoder) or ASSUMED_WIDTH
    divided = method.trained_part == "last" and spec.encoder.trainable
    late = late_share(spec.encoder) if divided else 1.0

    def missing(kind: str, count: int, indices: Integers, augmentation: Augmentation, seed: int) -> int:
        """Return the number of images and views that must be computed; in whole passes of several encoders."""
        paths = [views_path(dataset, source, indices, f"{kind}{count}", augmentation, seed)
                 for source in spec.encoder.sources]
        return count * len(indices) if count and not all(path.exists() for path in paths) else 0

    whole = len(dataset) if missing_sources(dataset, spec.encoder) else 0
    views = missing("views", method.views_needed, train, method.augmentation, spec.seed)
    early = 0
    if divided:
        early = missing("early", method.activations_needed, train, method.augmentation, spec.seed)
        early += missing("early", 1, np.arange(len(dataset)), CROPS, 0)  # for the curves of the epochs
    image_speed, epoch_speed = measured_image_speed(spec.encoder, spec.device), measured_speed(epoch_kind(spec))
    per_image = feature_seconds(dataset, spec.encoder, spec.device) / len(dataset) if whole else (
        image_speed or image_seconds(spec.encoder))
    view_speed = measured_speed(view_kind(spec))
    per_view = view_speed or per_image
    epoch = _expected_epoch(spec, len(train)) * (epoch_speed or 1.0)
    start, evaluation = measured_speed(start_kind(spec)), measured_speed(evaluation_kind(spec))
    needed = [epoch_speed, start, evaluation] + [image_speed] * (whole + early > 0) + [view_speed] * (views > 0)
    return Estimate((whole + (1 - late) * early) * per_image + views * per_view, epoch * method.epochs_planned,
                    needed_memory(method, spec.encoder, dataset, halves),
                    4.0 * (whole + views) * width + activation_bytes(spec.encoder) * early,
                    None not in needed, evaluation or 0.0, start or 0.0, measured_speed(follow_kind(spec)) or 0.0,
                    views * per_view, judging_seconds(spec, dataset))


def judging_seconds(spec: Spec, dataset: Dataset) -> float:
    """Return the expected seconds until judges have compared a finished run; 0 with labels, and until measured."""
    if dataset.labels is not None or spec.method == FROZEN:
        return 0.0
    kind = judging_kind(spec)
    known, each = measured_speed(kind), measured_speed(image_kind_of(kind))
    return known if known is not None else (each or 0.0) * len(dataset)


def missing_sources(dataset: Dataset, encoder: EncoderSpec) -> list[EncoderSpec]:
    """Return the encoders whose features of the images are not stored: of several side by side each has its own."""
    if features_path(dataset, encoder).exists():
        return []
    return [source for source in encoder.sources if not features_path(dataset, source).exists()]


def feature_seconds(dataset: Dataset, encoder: EncoderSpec, device: str) -> float:
    """Return the expected seconds of the features that are not stored."""
    return len(dataset) * sum(measured_speed(image_kind(source, device)) or image_seconds(source)
                              for source in missing_sources(dataset, encoder))


def measured_image_speed(encoder: EncoderSpec, device: str) -> float | None:
    """Return the seconds an image takes in all encoders, as measured on this machine; None if one was not measured."""
    speeds = [measured_speed(image_kind(source, device)) for source in encoder.sources]
    return None if None in speeds else sum(filter(None, speeds))


def training_left(spec: Spec, status: Status) -> float | None:
    """Return the expected seconds until a run that trains, or is evaluated after that, has its results.

    Returns:
        The seconds; None while nothing is measured: before the first epoch has ended, in other phases, and until an
        evaluation of the data set was measured on this machine.
    """
    after = measured_speed(evaluation_kind(spec))
    if status.state != "running" or after is None:
        return None
    follows = measured_speed(follow_kind(spec)) or 0.0
    phase, passed = step_name(status.phase), status.heartbeat - status.phase_started
    if phase in OF_EVALUATION:
        return max(0.0, after - passed) + follows
    if phase in OF_MAP:
        return max(0.0, follows - passed)
    if status.phase != "training" or status.epoch_seconds is None:
        return None
    return (status.seconds_left or 0.0) + after + follows


def start_left(spec: Spec, dataset: Dataset, status: Status) -> float | None:
    """Return the expected seconds until a run that does not train yet has its results.

    The features that are being computed count as fast as in this run, everything later as measured before.

    Returns:
        The seconds; None in other phases, and unless every time from the start to the results was measured.
    """
    if status.state != "running" or status.epochs or status.searchable:
        return None
    expected = estimate(spec, dataset)
    if not expected.measured:
        return None
    phase, own, later = step_name(status.phase), status.seconds_left, expected.seconds_from_training
    if phase.startswith(OF_FEATURES) and own is not None:
        return own + later + (expected.view_seconds if phase == FEATURES else 0.0)
    passed = max(0.0, status.heartbeat - (status.started or status.heartbeat))
    return later + max(0.0, expected.start_seconds + expected.feature_seconds - passed)


def is_busy() -> bool:
    """Return whether other work takes so much of this machine that a run takes longer than measured before."""
    return psutil.getloadavg()[0] > BUSY * (psutil.cpu_count() or 1)


def encoding_kind(spec: Spec) -> str:
    """Return the kind of speed of reading and encoding an image in a run."""
    return image_kind(spec.encoder, spec.device)


def image_kind(encoder: EncoderSpec, device: str) -> str:
    """Return the kind of speed of reading and encoding an image."""
    return f"image {encoder.key} {device}"


def view_kind(spec: Spec) -> str:
    """Return the kind of speed of drawing and encoding a random view."""
    return f"view {spec.encoder.key} {spec.device}"


def epoch_kind(spec: Spec) -> str:
    """Return the kind of speed of an epoch, relative to the method's expectation."""
    return f"epoch {spec.method} {spec.build_method().trained_part} {spec.encoder.key} {spec.device}"


def evaluation_kind(spec: Spec) -> str:
    """Return the kind of speed of embedding and evaluating all images of a data set."""
    return f"evaluation {spec.fingerprint[:12]} {spec.encoder.key} {spec.device}"


def start_kind(spec: Spec) -> str:
    """Return the kind of speed of starting a run: from the start of its process to its first epoch."""
    return f"start {spec.fingerprint[:12]} {spec.encoder.key} {spec.device}"


def follow_kind(spec: Spec) -> str:
    """Return the kind of speed of the map and the graph that follow the evaluation."""
    return f"follow {spec.fingerprint[:12]} {spec.encoder.key} {spec.device}"


def judging_kind(spec: Spec) -> str:
    """Return the kind of speed of the second opinion on a run of a data set."""
    return f"judging {spec.fingerprint[:12]} {spec.encoder.key} {spec.device}"


def image_kind_of(kind: str) -> str:
    """Return the kind of speed of one image of any data set, from that of a data set."""
    what, _, rest = kind.split(" ", 2)
    return f"{what} image {rest}"


def record_stage(kind: str, seconds: float, images: int) -> None:
    """Keep the time of a stage for this data set and, for others, of one of its images."""
    record_speed(kind, seconds)
    record_speed(image_kind_of(kind), seconds / max(images, 1))


def record_epoch(spec: Spec, images: int, seconds: float) -> None:
    """Keep the time of an epoch on this machine.

    Args:
        spec: The run's spec.
        images: Number of training images.
        seconds: The measured time.
    """
    record_speed(epoch_kind(spec), seconds / _expected_epoch(spec, images))


def _expected_epoch(spec: Spec, images: int) -> float:
    method = spec.build_method()
    divided = method.trained_part == "last" and spec.encoder.trainable
    late = late_share(spec.encoder) if divided else 1.0
    return method.expected_seconds(images, feature_width(spec.encoder) or ASSUMED_WIDTH,
                                   late * image_seconds(spec.encoder))
