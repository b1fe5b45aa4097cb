"""Selection of the epoch that a run keeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from udml_core.data.splits import Select
from udml_core.exploration.race_measured import ERRORS

TRAINED_RANK = "training effective rank"
OPINION, FIRST_OPINION, TRAINED_OPINION = "second opinion", "second opinion first result", "training second opinion"
"""Curves of what a judge sees: whole groups and first results of the judged test images, and whole groups of training
images where these are others."""
ERROR = " error"
"""What the name of a curve of standard errors adds to its curve's."""
RANKS_KEPT = (1 / 2, 5 / 4)
"""An embedding has collapsed when its effective rank leaves these multiples of the start's."""


def best_epoch(rows: Iterable[Mapping[str, Any]], rank_shows_collapse: bool = True,
               select: Select = "validation") -> int | None:
    """Return the epoch that selection keeps; None if no row has a selection measure.

    With held-out images this is the first epoch of the highest MAP@R, or of the highest recall@1 with `recall`: SSDML's
    paper reports recall, which may still rise while MAP@R falls. With labels assigned by a user it is the last
    epoch of the highest recall@1 among these labels before the collapse, or the first epoch if all have collapsed:
    a few training labels are still retrieved long after the neighborhoods around them have dissolved.

    Without labels, judges choose by `preferred_epoch`.

    Args:
        rows: One row of curves for each epoch.
        rank_shows_collapse: Whether to end the search at the collapse; see `Method`.
        select: The rule of the run.
    """
    by_epoch = {int(row["epoch"]): row for row in rows}
    if select == "judges":
        return preferred_epoch(by_epoch)
    trained = {epoch: row for epoch, row in by_epoch.items() if epoch}
    measure = "validation recall@1" if select == "recall" else "validation map@r"
    held_out = {epoch: row[measure] for epoch, row in trained.items() if measure in row}
    if held_out:
        return max(held_out, key=lambda epoch: (held_out[epoch], -epoch))
    assigned = {epoch: row["given recall@1"] for epoch, row in trained.items() if "given recall@1" in row}
    if not assigned:
        return None
    end = first_collapsed(by_epoch) if rank_shows_collapse else max(assigned) + 1
    sound = [epoch for epoch in assigned if epoch < end]
    return max(sound, key=lambda epoch: (assigned[epoch], epoch)) if sound else min(assigned)


def preferred_epoch(by_epoch: Mapping[int, Mapping[str, Any]]) -> int | None:
    """Return the last epoch that judges do not find surely worse than the best, the start included.

    An epoch is surely worse if its gain in whole groups, on training images, lies below the 95 % interval of the
    largest gain. A later epoch is preferred within it: on the record's runs, the largest gain alone gives up epochs for
    differences that are chance. The result is either the newest epoch or stays the same, so that the model of one epoch
    is stored at a time.

    Returns:
        The epoch; None unless every epoch was judged.
    """
    gains = {epoch: gain for epoch, row in by_epoch.items() if (gain := judged_gain(row)) is not None}
    if not gains or gains.keys() != by_epoch.keys():
        return None
    value, error = gains[max(gains, key=lambda epoch: gains[epoch][0])]
    return max(epoch for epoch, (gain, _) in gains.items() if gain >= value - ERRORS * error)


def judged_gain(row: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return the gain of an epoch in whole groups of training images, and its standard error; None if not judged."""
    known = [(row[name], row[f"{name}{ERROR}"]) for name in (TRAINED_OPINION, OPINION)
             if name in row and f"{name}{ERROR}" in row]
    return known[0] if known else None


def first_collapsed(by_epoch: Mapping[int, Mapping[str, Any]]) -> int:
    """Return the first collapsed epoch, or the number after the last epoch.

    An epoch has collapsed when its effective rank leaves `RANKS_KEPT` times the start's. Both ends count. A free
    metric can lower its loss on few directions, which lowers the rank. With SSDML's orthonormal metric all points are
    pushed apart instead, which *raises* it. The trials in the record of SSDML (`assets/results/findings.toml`) show
    between which ranks recall is lost. A rank that returns later is no sign of recovery. The rank is that of training
    images, because selection never uses the test half; older runs kept only the rank of test images.
    """
    name = TRAINED_RANK if TRAINED_RANK in by_epoch[0] else "effective rank"
    low, high = (share * by_epoch[0][name] for share in RANKS_KEPT)
    return min((epoch for epoch, row in by_epoch.items() if not low <= row[name] <= high), default=max(by_epoch) + 1)
