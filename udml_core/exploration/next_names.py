"""The next images of each class to ask about, the class first whose names are most probably right.

Certainty alone does not tell which class to ask about first: an image between two classes is certain of both. So the
classes are ordered by certainty times agreement, the share of a class among all labels where walks from an image end.
The record `sorting` measures how many images a simulated reader names by it.
"""

from __future__ import annotations

import numpy as np

from udml_core.base.arrays import Booleans, Floats, Integers
from udml_core.exploration.grouping import Proposal
from udml_core.exploration.naming import Naming

FEWEST, MOST = 10, 20
"""Fewest and most images of a class that a user is asked about at once; fewer if fewer are near."""


def next_proposals(naming: Naming, is_open: Booleans, most: Integers) -> list[Proposal]:
    """Return the next images of each class, the most certain first; the most probable class comes first.

    Images whose most probable class is another fill a class up to `FEWEST`.

    Args:
        naming: The labels.
        is_open: Whether an image (n,) has no label and is not excluded.
        most: Most images (c,) of each class.
    """
    rows = np.flatnonzero(is_open)
    if not len(rows) or not naming.classes:
        return []
    certainty, agreement = naming.certainties[rows], naming.agreement(rows)
    best = naming.named[0][rows]
    found: list[tuple[float, Proposal]] = []
    for code, count in enumerate(most.tolist()):
        own = _first(certainty[:, code], best == code, count)
        if len(own):
            sure = float((certainty[own, code] * agreement[own, code]).mean())
            found.append((sure, Proposal(code, rows[own], certainty[own, code])))
    return [proposal for _, proposal in sorted(found, key=lambda each: -each[0])]


def _first(certainty: Floats, is_own: Booleans, most: int) -> Integers:
    """Return the most certain of a class's own images, and as many others as are missing to `FEWEST`."""
    order = np.where(is_own, 1 + certainty, certainty)
    near = np.argpartition(-order, most)[:most] if most < len(order) else np.arange(len(order))
    near = near[np.lexsort((near, -order[near]))]
    count = max(int(is_own[near].sum()), FEWEST)
    first = near[certainty[near] > 0][:count]
    return first[np.lexsort((first, -certainty[first]))]
