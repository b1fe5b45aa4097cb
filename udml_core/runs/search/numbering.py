"""Numbers of groups that stay when images are added: a group is numbered as the earlier group that it continues."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from udml_core.base.arrays import Booleans, Integers
from udml_core.exploration.grouping import keep_numbers
from udml_core.runs import Run, list_runs
from udml_core.runs.analyses import REFINED, find_analysis
from udml_core.runs.analyses.kinds.groups import Grouping
from udml_core.runs.search.naming import groups_at_epsilon, has_graph
from udml_core.runs.search.refined import finished_refinements
from udml_core.runs.search.retrieval import Retrieval

LATEST = 2
"""Latest earlier states of a folder that are looked at, beside the first."""
Opened = Callable[[Run, str], tuple[Retrieval, Grouping] | None]
"""Opens a run and the groups of its embedding; None if it cannot be opened, or its groups would take long."""


@dataclass(frozen=True)
class Forming:
    """How groups are formed.

    Attributes:
        count: Number of groups; without one, ε decides.
        epsilon: The ε of the authority ascent.
    """

    count: int | None = None
    epsilon: float | None = None

    def groups(self, opened: Retrieval, grouping: Grouping, frame: str) -> Integers:
        """Return the group (n,) of each grouped image by falling size.

        Raises:
            UserError: The run has no neighbor graph of the embedding, which an ε needs.
        """
        if self.epsilon is None:
            return grouping.tree.groups(self.count or 1)
        return groups_at_epsilon(opened, grouping, frame, self.epsilon)


@dataclass(frozen=True, eq=False)
class NumberedGroups:
    """Groups, numbered as in the earlier states of a folder.

    Attributes:
        groups: Group (n,) of each image: by falling size in the first state; later groups keep the number of the group
            that they continue.
        unknown: Earlier states whose groups are not known, so that nothing is numbered as in them.
        known: Earlier states whose numbers are kept.
        is_later: Whether each image (n,) was added after the first known state.
    """

    groups: Integers
    is_later: Booleans
    unknown: int = 0
    known: int = 0

    @property
    def are_new(self) -> bool:
        """Whether the folder had earlier states, and the numbers of all of them are unknown."""
        return bool(self.unknown and not self.known)


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


def frame_of(run: Run, frame: str, other: Run) -> str | None:
    """Return the name in another run of a run's embedding: a refinement by the same recipe; None without it."""
    if run.id == other.id or not frame.startswith(REFINED):
        return frame
    spec = find_analysis(run, frame).spec()
    return next((analysis.id for analysis in finished_refinements(other, spec.scope)
                 if analysis.spec().recipe == spec.recipe), None)


def numbered_groups(run: Run, forming: Forming, opened: Opened, frame: str = "final") -> NumberedGroups:
    """Return the group of each grouped image of a run, numbered as in the earlier states of its folder.

    Args:
        run: The run.
        forming: How groups are formed.
        opened: Opens each run.
        frame: The embedding of the run.
    """
    numbers: dict[str, int] = {}
    groups, is_later, states = np.zeros(0, int), np.zeros(0, bool), 0
    first: frozenset[str] | None = None
    runs = earlier_runs(run)
    for each in runs:
        if (found := _formed(run, each, forming, opened, frame)) is None:
            continue
        names, groups = found
        first = frozenset(names) if first is None else first
        is_later = np.array([name not in first for name in names], bool)
        if numbers:
            groups = keep_numbers(groups, np.array([numbers.get(name, -1) for name in names], int))
        numbers, states = dict(zip(names, groups.tolist(), strict=True)), states + 1
    return NumberedGroups(groups, is_later, len(runs) - states, states - 1)


def _formed(run: Run, each: Run, forming: Forming, opened: Opened, frame: str) -> tuple[Sequence[str], Integers] | None:
    """Return names and groups of the images of a state; None if its groups are not known."""
    own = frame_of(run, frame, each)
    if own is None or (forming.epsilon is not None and each.id != run.id and not has_graph(each, own)):
        return None
    if (found := opened(each, own)) is None:
        return None
    retrieval, grouping = found
    names = [retrieval.dataset.names[image] for image in grouping.indices.tolist()]
    return names, forming.groups(retrieval, grouping, own)
