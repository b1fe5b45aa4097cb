"""Changes of groups by `udml groups`, stored as the page Label stores them: joined, split, and images moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from udml_core.base.errors import UserError, counted, quoted

if TYPE_CHECKING:
    from udml_core.base.arrays import Integers
    from udml_core.data.dataset import Dataset


def group_rows(rows: list[Integers], group: int) -> Integers:
    """Return the rows of a group by its number, from 1.

    Raises:
        UserError: There is no such group.
    """
    if group > len(rows) or not len(rows[group - 1]):
        raise UserError(f"There is no group {group}: the groups have the numbers 1 to {len(rows)}, without groups "
                        "that were split or joined.")
    return rows[group - 1]


def join_groups(dataset: Dataset, indices: Integers, rows: list[Integers], joins: list[tuple[int, int]]) -> None:
    """Join the first group of each pair to the second; each pair is a change that undo reverts.

    Args:
        dataset: The data set.
        indices: Image indices (n,) of the rows.
        rows: The rows of each group; a joined group has none afterwards.
        joins: Numbers of the groups.

    Raises:
        UserError: There is no such group, or it would join itself.
    """
    for first, second in joins:
        if first == second:
            raise UserError(f"--join needs two groups; got {first} twice.")
        own = group_rows(rows, first)
        rows[second - 1] = _merged(dataset, indices, own, group_rows(rows, second))
        rows[first - 1] = own[:0]
        typer.echo(f"group {first} joined to group {second}: {counted(len(rows[second - 1]), 'image')}", err=True)


def move_images(dataset: Dataset, indices: Integers, rows: list[Integers], group: int, images: list[int]) -> None:
    """Move images into a group, in one change that undo reverts.

    Raises:
        UserError: There is no such group, or an image is in no group.
    """
    import numpy as np

    from udml_core.base.arrays import rows_of

    wanted = np.unique(np.array(images, np.int64))
    moved = rows_of(indices, wanted)
    if len(lost := wanted[~np.isin(moved, np.concatenate(rows))]):
        raise UserError(f"The image {quoted(dataset.names[lost[0]])} is in no group: it is excluded, or the run has no "
                        "group for it. Leave it out.")
    merged = _merged(dataset, indices, moved, group_rows(rows, group))
    typer.echo(f"{counted(len(moved), 'image')} moved to group {group}: {counted(len(merged), 'image')}", err=True)


def _merged(dataset: Dataset, indices: Integers, first: Integers, second: Integers) -> Integers:
    import numpy as np

    from udml_core.data.given.group_changes import GroupChange, change_groups

    merged = np.union1d(first, second)
    change_groups(dataset, GroupChange(indices[merged], np.zeros(len(merged), int)))
    return merged


def keep_parts(dataset: Dataset, indices: Integers, before: list[Integers], after: list[Integers]) -> None:
    """Store the parts of split groups; each split group is a change that undo reverts.

    Args:
        dataset: The data set.
        indices: Image indices (n,) of the rows.
        before: The rows of each group.
        after: The same with the parts of split groups after them; a split group has no rows.
    """
    import numpy as np

    from udml_core.data.given.group_changes import GroupChange, change_groups

    for own, left in zip(before, after, strict=False):
        if len(own) and not len(left):
            parts = [part for part in after[len(before):] if len(part) and np.isin(part, own).all()]
            codes = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
            change_groups(dataset, GroupChange(indices[np.concatenate(parts)], codes))
            typer.echo(f"{counted(len(own), 'image')} split into {counted(len(parts), 'group')}", err=True)
