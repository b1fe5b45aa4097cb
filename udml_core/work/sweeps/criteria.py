"""The measures that may choose the best combination of a sweep. None of them reads a label of the test half."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.base.files import read_array, version_of
from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.data.encoders import EncoderSpec
from udml_core.data.features import features_path
from udml_core.data.splits import fixed_sample
from udml_core.numerics.evaluation import effective_rank
from udml_core.numerics.measures import CURVES
from udml_core.runs import Run
from udml_core.runs.analyses import analysis_at
from udml_core.runs.opinions import OF_RUN, opinion_of
from udml_core.runs.sample_opinion import SampleJudge
from udml_core.runs.selection import TRAINED_RANK

JUDGED = "judged groups"
"""The criterion of runs whose second opinion is known: the gain in whole groups over the plain search."""
CRITERIA = {measure.key: measure for measure in (
    CURVES["validation map@r"], CURVES["validation recall@1"], CURVES["given recall@1"],
    replace(CURVES["second opinion"],
            help=f"Of training images, by one judge, without an interval. {CURVES['second opinion'].help}"),
    replace(CURVES[JUDGED], help=f"Of all judges of the run's second opinion together. {CURVES[JUDGED].help}"),
    replace(CURVES["effective rank"], help=CURVES[TRAINED_RANK].help))}
"""The criteria by key; higher is better. Criteria without labels are computed on training images."""
HOLDING_OUT = ("validation map@r", "validation recall@1")
"""Criteria for which a run must hold out labeled images."""


def score(run: Run, criterion: str) -> float | None:
    """Return a finished run's measure at the epoch that it keeps, in percent if it is a share.

    Returns:
        The measure; None if the run has not measured it.
    """
    if criterion == JUDGED:
        analysis = analysis_at(run, OF_RUN)
        return _judged(run, analysis.stored_status().ticket) if analysis.is_done() else None
    try:
        kept, row = _kept(run, *version_of(run.folder / "metrics.jsonl"))
        if criterion == "effective rank":
            return _rank(run, kept, *version_of(run.folder / "metrics.jsonl"))
        if criterion == "second opinion":
            return _opinion(run, kept, *version_of(run.folder / "metrics.jsonl"))
    except (OSError, UserError):
        return None
    value = row.get(criterion)
    if not isinstance(value, int | float):
        return None
    return 100.0 * value if CRITERIA[criterion].is_percent else float(value)


@lru_cache(maxsize=4096)
def _kept(run: Run, *_version: int) -> tuple[int, dict[str, Any]]:
    """Return the number of the kept epoch and its row of curves, read once."""
    kept = run.kept_epoch()
    return kept, next((row for row in run.metrics()[0] if row["epoch"] == kept), {})


@lru_cache(maxsize=4096)
def _rank(run: Run, kept: int, *_version: int) -> float | None:
    """Return the effective rank of a fixed sample of training images, computed once."""
    trained = _trained(run, kept)
    return None if trained is None else effective_rank(trained)


def _trained(run: Run, kept: int) -> Array | None:
    """Return the embedding of a fixed sample of training images.

    In the split `all` the training half is the whole data set, and the sample of every epoch is drawn from it.
    """
    trained = run.epoch_trained(kept)
    return run.epoch_sample(kept) if trained is None and run.spec().split == "all" else trained


@lru_cache(maxsize=4096)
def _opinion(run: Run, kept: int, *_version: int) -> float | None:
    """Return the difference in whole groups to frozen features on the sample of training images, computed once.

    Raises:
        UserError: The features of a judge or of the run are not stored; an error is not kept, so that the measure
            appears once they are.
    """
    trained, spec = _trained(run, kept), run.spec()
    if trained is None:
        return None
    dataset = _dataset(spec.dataset, spec.fingerprint)
    is_whole = run.epoch_trained(kept) is None
    images = run.sample_indices() if is_whole else fixed_sample(spec.halves(dataset).train, len(trained))
    images = np.asarray(images, np.int64)
    return _judge(spec.dataset, spec.fingerprint, spec.encoder, images.tobytes()).differences(trained)["second opinion"]


@lru_cache(maxsize=4096)
def _judged(run: Run, _ticket: float) -> float | None:
    """Return the difference in whole groups to the plain search by the run's second opinion, read once."""
    opinions = opinion_of(run)
    return None if opinions is None else opinions.measured("final")[1].difference


@lru_cache(maxsize=8)
def _judge(name: str, fingerprint: str, encoder: EncoderSpec, images: bytes) -> SampleJudge:
    """Return the judge of a sample, which the runs of a sweep share.

    Raises:
        UserError: The features of a judge or of the encoder are not stored.
    """
    dataset, rows = _dataset(name, fingerprint), np.frombuffer(images, np.int64)
    features = read_array(features_path(dataset, encoder), mapped=True)
    judge = SampleJudge.of(dataset, encoder.backbone, rows, features[rows])
    if judge is None:
        raise UserError("No features of an encoder that can judge are stored.")
    return judge


@lru_cache(maxsize=4)
def _dataset(name: str, fingerprint: str) -> Dataset:
    """Return the data set of a sweep's runs, loaded once.

    Raises:
        UserError: It is missing or has changed since.
    """
    dataset = catalog.load(name)
    if dataset.fingerprint != fingerprint:
        raise UserError(f"The data set {name} has changed since the run began.")
    return dataset
