"""The measures that may choose the best combination of a sweep. None of them reads the test half."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from udml_core.base.errors import UserError
from udml_core.base.files import version_of
from udml_core.numerics.evaluation import effective_rank
from udml_core.numerics.measures import CURVES
from udml_core.runs import Run
from udml_core.runs.selection import TRAINED_RANK

CRITERIA = {measure.key: measure for measure in (
    CURVES["validation map@r"], CURVES["validation recall@1"], CURVES["given recall@1"],
    replace(CURVES["effective rank"], help=CURVES[TRAINED_RANK].help))}
"""The criteria by key; higher is better. The effective rank is that of the training images."""
HOLDING_OUT = ("validation map@r", "validation recall@1")
"""Criteria for which a run must hold out labeled images."""


def score(run: Run, criterion: str) -> float | None:
    """Return a finished run's measure at the epoch that it keeps, in percent if it is a share.

    Returns:
        The measure; None if the run has not measured it.
    """
    try:
        kept, row = _kept(run, *version_of(run.folder / "metrics.jsonl"))
        if criterion == "effective rank":
            return _rank(run, kept, *version_of(run.folder / "metrics.jsonl"))
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
    """Return the effective rank of a fixed sample of training images, computed once.

    In the split `all` the training half is the whole data set, and the sample of every epoch is drawn from it.
    """
    trained = run.epoch_trained(kept)
    if trained is None and run.spec().split == "all":
        trained = run.epoch_sample(kept)
    return None if trained is None else effective_rank(trained)
