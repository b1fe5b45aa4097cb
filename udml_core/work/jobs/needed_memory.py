"""The memory that runs and analyses need, compared with what is free before they start."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import psutil

from udml_core.base.arrays import WIDE
from udml_core.base.errors import UserError, byte_words
from udml_core.base.free_memory import free_memory
from udml_core.data.dataset import Dataset
from udml_core.data.encoders import EncoderSpec, feature_width, late_share
from udml_core.data.splits import Split
from udml_core.methods import Method
from udml_core.runs import Run, Spec
from udml_core.runs.analyses import AnalysisSpec
from udml_core.runs.analyses.kinds.pca import PCA
from udml_core.runs.search import FROZEN
from udml_core.runs.tasks import TRAINING, Status

ASSUMED_WIDTH = 1024
"""Assumed dimension of features whose network reports it only after loading."""
PROGRAM = 600e6
"""Bytes of a worker with its libraries, and of the blocks that it computes at once."""
FEATURES, INDEX, EVALUATION, MAP = "features", "index", "evaluation", "first map"
PARTS = {TRAINING: TRAINING, "embedding": INDEX, EVALUATION: EVALUATION, "layout": MAP}
"""The parts of a run after its features, by the phase that begins each."""
RUNS = re.compile(r"\budml_core (ready-)?work\b")
"""What the command lines of workers of runs contain."""


def needed_memory(method: Method, encoder: EncoderSpec, dataset: Dataset, halves: Split) -> dict[str, float]:
    """Return the bytes of memory that a run needs in each of its parts, in their order.

    The files of the features and of an embedding, which a run reads through the memory, count.

    Args:
        method: The method.
        encoder: The encoder of the features.
        dataset: The data set.
        halves: Training and test half.
    """
    images, train, test = len(dataset), len(halves.train), len(halves.test)
    width = feature_width(encoder) or ASSUMED_WIDTH
    own = min(int(getattr(method, "dimension", width)), width)
    late = late_share(encoder) if method.trained_part == "last" and encoder.trainable else 1.0
    gradients = 120 * 600 * late * encoder.size**2 if method.trains_encoder else 0
    # Unit features, the directions and their squares, beside the frozen features of the test half; wider features than
    # images are projected by smaller products.
    principal = 4 * test * width + train * width * 8 + 4 * width * min(own, train) + 24 * min(train, width)**2
    # One embedding at a time beside the frozen features; ranked in float64 unless it is wide.
    is_ranked = dataset.labels is not None or dataset.evaluation_classes is not None
    ranked = (8 if own >= WIDE else 20) if is_ranked else 8
    evaluation = test * (4 * width + ranked * own)
    features, embedding = 4 * images * width, 4 * images * own
    files = features + embedding
    return {name: float(PROGRAM + bytes_) for name, bytes_ in {
        FEATURES: features, TRAINING: files + method.expected_bytes(train, width) + gradients,
        INDEX: files + embedding, EVALUATION: files + max(principal, evaluation),
        MAP: PCA().expected_bytes(images, own, 0)}.items()}


def expected_memory(method: Method, encoder: EncoderSpec, dataset: Dataset, halves: Split) -> float:
    """Return the bytes of memory that a run needs in its largest part; see `needed_memory`."""
    return max(needed_memory(method, encoder, dataset, halves).values())


def memory_of(spec: Spec, dataset: Dataset) -> dict[str, float]:
    """Return the bytes of memory that a planned run needs in each of its parts; see `needed_memory`."""
    return needed_memory(spec.build_method(), spec.encoder, dataset, spec.halves(dataset))


def memory_by_part(status: Status) -> dict[str, tuple[float | None, float | None]]:
    """Return the bytes of memory of each part of a run, as planned and as measured; None where one is not known."""
    measured, part = dict[str, float](), FEATURES
    for phase, peak in status.peaks.items():
        part = PARTS.get(phase, part)
        measured[part] = max(peak, measured.get(part, 0.0))
    return {name: (status.planned.get(name), measured.get(name)) for name in (FEATURES, *PARTS.values())
            if name in status.planned or name in measured}


def words_of_plan(planned: Mapping[str, float]) -> str:
    """Return the memory of each part of a run, such as `features 0.7 GB, training 0.9 GB`."""
    return ", ".join(f"{name} {byte_words(size)}" for name, size in planned.items())


def check_memory(needed: float) -> None:
    """Check that this machine has free the memory that a run needs, once the runs before it have ended.

    Raises:
        UserError: It has not.
    """
    _check(needed, RUNS, "run", "choose a smaller size, a backbone whose features have fewer dimensions, or a method "
           "for fewer images")


def check_analysis(run: Run, spec: AnalysisSpec) -> None:
    """Check that this machine has free the memory that an analysis needs, once the analyses before it have ended.

    Raises:
        UserError: It has not.
    """
    kind = spec.build_kind()
    try:
        rows = run.embeddings("final")
    except UserError:  # it is missing, which the computation says
        return
    width = feature_width(run.spec().encoder) or ASSUMED_WIDTH if FROZEN in spec.frames else rows.shape[1]
    if getattr(kind, "scope", "") == "sample" or (
            kind.expected_bytes(len(rows), width, len(rows)) + PROGRAM <= free_memory()):
        return  # the data set, of which a half may need less, is not read
    dataset = run.dataset()
    halves, labels = run.spec().halves(dataset), dataset.labels
    covered = {"test": halves.test, "train": halves.train}.get(getattr(kind, "scope", "all"), np.arange(len(rows)))
    largest = 0 if labels is None else int(np.bincount(labels[covered] + 1)[1:].max(initial=0))
    before = re.compile(rf"\budml_core analyse-work {re.escape(str(run.root))}/[^/]+/analyses/")
    _check(kind.expected_bytes(len(covered), width, largest) + PROGRAM, before, kind.noun,
           "choose a smaller scope, such as the test half, or an embedding of fewer dimensions")


def _check(needed: float, workers: re.Pattern[str], noun: str, fix: str) -> None:
    """Compare with the free memory, and with that of workers that end before."""
    free = free_memory()
    if needed > free:
        free += _memory_of(workers)
    if needed > free:
        raise UserError(f"This {noun} needs about {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free "
                        f"here. Close other programs, or {fix}.")


def _memory_of(workers: re.Pattern[str]) -> float:
    """Return the bytes that workers use now: the next one of the device or the folder starts when they have ended."""
    return float(sum(process.info["memory_info"].rss for process in psutil.process_iter(["cmdline", "memory_info"])
                     if process.info["memory_info"] and workers.search(" ".join(process.info["cmdline"] or ()))))
