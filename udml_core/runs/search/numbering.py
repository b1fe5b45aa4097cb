"""Numbers of groups that stay when images are added: a group is numbered as the earlier group that it continues."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from udml_core.base.arrays import Integers
from udml_core.exploration.grouping import keep_numbers
from udml_core.runs import Run, list_runs
from udml_core.runs.analyses.kinds.groups import Grouping
from udml_core.runs.search.retrieval import Retrieval

LATEST = 2
"""Latest earlier states of a folder that are looked at, beside the first."""
Opened = Callable[[Run], tuple[Retrieval, Grouping] | None]
"""Opens a run and its groups; None if it cannot be opened, or its groups would take long."""


def earlier_runs(run: Run) -> list[Run]:
    """Return runs of the first and the latest states of a run's folder, by the same method and encoder.

    A state has certain images, without the images that were excluded then. The states are in order, and the run
    itself is last.
    """
    spec = run.spec()
    first: dict[tuple[str, str], Run] = {}
    state = spec.fingerprint, spec.excluded.digest
    known = [(other.spec(), other) for other in list_runs(run.folder.parent)]
    for own, other in sorted(known, key=lambda pair: pair[0].created):  # ids of one second have no order
        if own.created >= spec.created or not other.stored_status().can_search:
            continue
        if (own.dataset, own.method, own.fields, own.encoder.key) == (
                spec.dataset, spec.method, spec.fields, spec.encoder.key) and (
                own.fingerprint, own.excluded.digest) != state:
            first.setdefault((own.fingerprint, own.excluded.digest), other)
    states = list(first.values())
    return [*states[:1], *states[1:][-LATEST:], run]


def numbered_groups(run: Run, count: int, opened: Opened) -> Integers:
    """Return the group (n,) of each grouped image of a run, numbered as in the earlier states of its folder.

    Args:
        run: The run.
        count: Number of groups.
        opened: Opens each run.

    Returns:
        The groups by falling size for the first state; later groups keep the number of the group that they continue.
    """
    known: dict[str, int] = {}
    groups = np.zeros(0, int)
    for each in earlier_runs(run):
        if (found := opened(each)) is None:
            continue
        retrieval, grouping = found
        names = [retrieval.dataset.names[image] for image in grouping.indices.tolist()]
        groups = grouping.tree.groups(count)
        if known:
            groups = keep_numbers(groups, np.array([known.get(name, -1) for name in names], int))
        known = dict(zip(names, groups.tolist(), strict=True))
    return groups
