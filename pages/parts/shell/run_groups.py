"""Groups of runs whose measures can be compared: equal data set, split, backbone and excluded images."""

from __future__ import annotations

from collections.abc import Sequence

from udml_core.base.errors import counted
from udml_core.runs import Run

PARTS = ("Data set", "Split", "Backbone", "Excluded images")
Group = tuple[str, ...]


def group_of(run: Run) -> Group:
    """Return what a run shares with the runs that its measures can be compared with.

    Returns:
        Fingerprint of the data set, split, backbone, and the excluded images in words.
    """
    spec = run.spec()
    return spec.fingerprint, spec.split, spec.backbone, spec.excluded.words


def by_group(runs: Sequence[Run]) -> list[list[Run]]:
    """Return the runs of each group in their order; the group of the first run comes first."""
    groups: dict[Group, list[Run]] = {}
    for run in runs:
        groups.setdefault(group_of(run), []).append(run)
    return list(groups.values())


def group_column(runs: Sequence[Run]) -> tuple[str, list[str]]:
    """Name the groups of runs by the parts in which the groups differ.

    Returns:
        A heading, such as Data set · Backbone, and the group of each run in words, such as Digits · pixels; empty texts
        if all runs are in one group.
    """
    groups = [group_of(run) for run in runs]
    differing = [number for number in range(len(PARTS)) if len({group[number] for group in groups}) > 1]
    titles = [run.spec().dataset_title.split(",")[0] for run in runs]
    return (" · ".join(PARTS[number] for number in differing),
            [" · ".join(group[number] if number else title for number in differing)
             for group, title in zip(groups, titles, strict=True)])


def group_words(run: Run) -> str:
    """Return a run's group in words, such as Digits, split seen, backbone pixels."""
    _, split, backbone, _ = group_of(run)
    words = f"{run.spec().dataset_title.split(',')[0]}, split {split}, backbone {backbone}"
    count = run.spec().excluded.count
    return f"{words}, without {counted(count, 'image')} that you excluded" if count else words
