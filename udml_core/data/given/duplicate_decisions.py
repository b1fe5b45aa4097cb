"""What users decide about duplicates: pairs that are the same photograph or not, and the copies to keep, by name.

Each line of the log is one action: {"same": [[…, …], …]} and {"different": …} decide pairs, {"keep": […]} names copies
that are kept, {"undo": true} reverts the last action that was not reverted yet. A later decision replaces an earlier.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from udml_core.base.arrays import Integers
from udml_core.data.dataset import Dataset
from udml_core.data.given.log import append_to_log, read_actions

KIND = "duplicates"
NO_PAIRS = np.zeros((0, 2), np.int64)


@dataclass(frozen=True, eq=False)
class Decisions:
    """What was decided.

    Attributes:
        same: Pairs i < j (s, 2) int64 of the same photograph.
        different: Pairs i < j (d, 2) int64 of different photographs.
        preferred: Images to keep, the last decision first.
    """

    same: Integers = field(default_factory=lambda: NO_PAIRS)
    different: Integers = field(default_factory=lambda: NO_PAIRS)
    preferred: tuple[int, ...] = ()

    @property
    def decided(self) -> Integers:
        """All decided pairs (p, 2)."""
        return np.concatenate([self.same, self.different])


def decisions_of(dataset: Dataset) -> Decisions:
    """Return the decisions about the images that the data set has now."""
    verdicts: dict[tuple[str, str], bool] = {}
    kept: dict[str, None] = {}
    for row in _actions(dataset):
        for word in ("same", "different"):
            for pair in row.get(word, ()):
                verdicts[min(pair), max(pair)] = word == "same"
        for name in row.get("keep", ()):
            kept.pop(name, None)
            kept[name] = None
    index_of = dataset.indices_by_name({name for pair in verdicts for name in pair} | set(kept))

    def pairs(is_same: bool) -> Integers:
        rows = [sorted((index_of[left], index_of[right])) for (left, right), same in verdicts.items()
                if same == is_same and left in index_of and right in index_of]
        return np.array(rows, np.int64).reshape(-1, 2)

    return Decisions(pairs(True), pairs(False), tuple(index_of[name] for name in reversed(kept) if name in index_of))


def decide(dataset: Dataset, pairs: Integers, same: bool) -> None:
    """Store in one action that pairs (p, 2) are the same photograph, or that they are not.

    Raises:
        UserError: The decision cannot be written.
    """
    if len(pairs):
        append_to_log(dataset, KIND, {"same" if same else "different": [
            [dataset.names[left], dataset.names[right]] for left, right in pairs.tolist()]})


def prefer(dataset: Dataset, images: Iterable[int]) -> None:
    """Store in one action that these images are the copies to keep in their groups.

    Raises:
        UserError: The choice cannot be written.
    """
    if names := [dataset.names[index] for index in images]:
        append_to_log(dataset, KIND, {"keep": names})


def undo_decision(dataset: Dataset) -> bool:
    """Revert the last action, and return whether there was one.

    Raises:
        UserError: The log cannot be written.
    """
    if not _actions(dataset):
        return False
    append_to_log(dataset, KIND, {"undo": True})
    return True


def can_undo_decision(dataset: Dataset) -> bool:
    """Return whether there is an action to revert."""
    return bool(_actions(dataset))


def _actions(dataset: Dataset) -> list[dict[str, Any]]:
    """Return the actions that were not reverted, in order; damaged lines are skipped."""
    return read_actions(dataset, KIND, lambda row: _is_names(row.get("keep")) or any(
        _is_pairs(row.get(word)) for word in ("same", "different")))


def _is_pairs(value: Any) -> bool:
    return isinstance(value, list) and all(_is_names(pair) and len(pair) == 2 for pair in value)


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)
