"""Groups that users form by hand: merged, split, or with images moved out of them.

A change is a line {"groups": [[…], …]} of the log of labels, so that one undo reverts names and changes of groups in
their order: the images of each list, by name, form a group from then on. {"groups": []} drops all changes before it.
The log may come from another computer, so every line is checked, and the page says how many could not be used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from udml_core.base.arrays import Integers
from udml_core.base.errors import UserError, counted
from udml_core.data.dataset import Dataset
from udml_core.data.given.labels import GROUPS, KIND, MOST_PARTS, is_label_action, label_actions
from udml_core.data.given.log import append_to_log, log_path_of, unusable_lines

MOST_CHANGES = 1_000
"""Most changes that are applied: each takes a few milliseconds."""


@dataclass(frozen=True, eq=False)
class GroupChange:
    """A change of groups by hand: images that form groups of their own from now on.

    Attributes:
        images: Image indices (m,).
        parts: Group (m,) of each, 0 …: all 0 merges them, other values split them.
    """

    images: Integers
    parts: Integers


@dataclass(frozen=True)
class GroupChanges:
    """The changes that apply, and what is wrong with the log.

    Attributes:
        changes: The changes in their order.
        problem: Why lines were ignored, in a sentence with what to do; empty if all could be used.
    """

    changes: tuple[GroupChange, ...]
    problem: str


def change_groups(dataset: Dataset, change: GroupChange) -> None:
    """Store a change of groups, which undo reverts.

    Raises:
        UserError: There are too many changes or parts, or the log cannot be written.
    """
    if len(_stored(dataset)) >= MOST_CHANGES:
        raise UserError(f"You have changed groups {MOST_CHANGES:,} times, and no more changes are stored. Name groups, "
                        "then drop the changes.")
    parts = [change.images[change.parts == part].tolist() for part in np.unique(change.parts)]
    if len(parts) > MOST_PARTS:
        raise UserError(f"One change forms at most {MOST_PARTS} groups, got {len(parts)}. Split into fewer parts.")
    append_to_log(dataset, KIND, {GROUPS: [[dataset.names[image] for image in part] for part in parts]})


def drop_changes(dataset: Dataset) -> None:
    """Drop all changes of groups, which undo reverts.

    Raises:
        UserError: The log cannot be written.
    """
    if _stored(dataset):
        append_to_log(dataset, KIND, {GROUPS: []})


def group_changes(dataset: Dataset) -> GroupChanges:
    """Return the changes of groups that apply now; images that the data set no longer has are left out."""
    stored = _stored(dataset)
    index_of = dataset.indices_by_name({name for parts in stored for part in parts for name in part})
    changes = (_change(parts, index_of) for parts in stored[:MOST_CHANGES])
    return GroupChanges(tuple(change for change in changes if len(change.images)),
                        _problem(dataset, len(stored) - MOST_CHANGES))


def _stored(dataset: Dataset) -> list[list[list[str]]]:
    """Return the groups of each change after the last time that all were dropped."""
    stored: list[list[list[str]]] = []
    for action in label_actions(dataset):
        if GROUPS in action:
            stored = [*stored, action[GROUPS]] if action[GROUPS] else []
    return stored


def _change(parts: list[list[str]], index_of: Mapping[str, int]) -> GroupChange:
    pairs = np.array(sorted((index_of[name], part) for part, names in enumerate(parts) for name in names
                            if name in index_of), np.int64).reshape(-1, 2)
    return GroupChange(pairs[:, 0], pairs[:, 1])


def _problem(dataset: Dataset, too_many: int) -> str:
    if too_many > 0:
        return (f"{counted(too_many, 'change')} of groups beyond the first {MOST_CHANGES:,} were ignored. Name groups, "
                "then drop the changes.")
    damaged = unusable_lines(dataset, KIND, is_label_action)
    return "" if not damaged else (
        f"{counted(damaged, 'line')} of your stored names and changes of groups could not be read, and were ignored: "
        f"the file {log_path_of(dataset, KIND).name} is damaged. All other lines count.")
