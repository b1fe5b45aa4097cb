"""The memory that a run needs, compared with what is free before it starts."""

from __future__ import annotations

import re

import psutil

from udml_core.base.arrays import WIDE
from udml_core.base.errors import UserError
from udml_core.base.free_memory import free_memory
from udml_core.data.dataset import Dataset
from udml_core.data.encoders import EncoderSpec, feature_width, late_share
from udml_core.data.splits import Split
from udml_core.methods import Method

ASSUMED_WIDTH = 1024
"""Assumed dimension of features whose network reports it only after loading."""
RUNS = re.compile(r"\budml_core (ready-)?work\b")
"""What the command lines of workers of runs contain."""


def expected_memory(method: Method, encoder: EncoderSpec, dataset: Dataset, halves: Split) -> float:
    """Return the bytes of memory that a run needs in its largest phase: training, PCA, or the evaluation.

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
    # Unit features, the directions and their squares; wider features than images are projected by smaller products.
    principal = train * width * 8 + 4 * width * min(own, train) + 24 * min(train, width)**2
    # One embedding at a time beside the frozen features; ranked in float64 unless it is wide.
    is_ranked = dataset.labels is not None or dataset.evaluation_classes is not None
    ranked = (8 if own >= WIDE else 20) if is_ranked else 8
    evaluation = test * (4 * width + ranked * own)
    files, index = 4 * images * (width + own), 4 * images * own
    return 600e6 + files + max(method.expected_bytes(train, width) + gradients, principal, evaluation, index)


def check_memory(needed: float) -> None:
    """Check that this machine has free the memory that a run needs, once the runs before it have ended.

    Raises:
        UserError: It has not.
    """
    free = free_memory()
    if needed > free:
        free += _memory_of_runs()
    if needed > free:
        raise UserError(f"This run needs about {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free here. "
                        "Close other programs, or choose a smaller size, a backbone whose features have fewer "
                        "dimensions, or a method for fewer images.")


def _memory_of_runs() -> float:
    """Return the bytes that workers of runs use now: the next run of the device starts when they have ended."""
    return float(sum(process.info["memory_info"].rss for process in psutil.process_iter(["cmdline", "memory_info"])
                     if process.info["memory_info"] and RUNS.search(" ".join(process.info["cmdline"] or ()))))
