"""The certainty of each class from which its names are accepted, so that a chosen share of the names is right.

Only names that a user checked say how many names are right. Labels alone do not: an image of a class without a label
can be nearer to a labeled class than all other labeled classes are. Of 100 species of birds, five with ten labels each,
labels that were left out promised that 95 % of the names were right, and 42 % were. So a class accepts names down to
the lowest of its checked names to which enough were right, with a margin for their number, and none without checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import beta

from udml_core.base.arrays import Floats, Integers
from udml_core.base.errors import counted, listed
from udml_core.exploration.naming import Naming

PRECISION = 0.9
"""Share of the accepted names that should be right, unless a user chooses another."""
FEWEST = 10
"""Checked names of a class from which it can accept others."""
DOUBT = 0.2
"""Largest probability, given the checked names, that the share of right names is below the goal."""
NONE = 1.01
"""The certainty that no name reaches."""
MOST_NAMED = 3
"""Classes that are called by their names in a sentence."""


@dataclass(frozen=True, eq=False)
class Acceptance:
    """The certainty of each class from which its names are accepted, and what it rests on.

    Attributes:
        least: The certainty (c,) of each class; above 1 if it accepts no name.
        target: Share of the accepted names that should be right.
        checked: Number (c,) of checked names of each class.
        right: Number (c,) of these that were right.
    """

    least: Floats
    target: float
    checked: Integers
    right: Integers

    def words(self, classes: Sequence[str]) -> str:
        """Return what is accepted and why in sentences, for readers who know nothing of calibration.

        Args:
            classes: The name of each class.
        """
        accepts = np.flatnonzero(self.least <= 1)
        if not len(accepts):
            return f"Only the images that you named have a name. {self._missing}"
        names = [classes[code] for code in accepts[:MOST_NAMED].tolist()]
        names += [counted(len(accepts) - MOST_NAMED, "more class")] if len(accepts) > MOST_NAMED else []
        checked, right = int(self.checked[accepts].sum()), int(self.right[accepts].sum())
        return (f"Similar images are named {listed(names)} too: you checked {checked:,} such names, and "
                f"{'all' if right == checked else f'{right:,}'} were right. At least {100 * self.target:.0f} % of "
                "these names should be right.")

    @property
    def _missing(self) -> str:
        """What no class has yet."""
        if not self.checked.sum():
            done = f"Check {FEWEST} proposed names of a class"
        elif self.checked.max() < FEWEST:
            done = f"Check {counted(FEWEST - int(self.checked.max()), 'more name')} of the class that you checked most"
        else:
            wrong = int((self.checked - self.right).sum())
            return (f"You checked {counted(int(self.checked.sum()), 'proposed name')}, and "
                    f"{wrong:,} {'was' if wrong == 1 else 'were'} wrong, too many to name others by them. Name more "
                    "images, or check more names.")
        return f"{done}: if nearly all are right, similar images get the name by themselves."


def calibrate(naming: Naming, rows: Integers, codes: Integers, target: float = PRECISION) -> Acceptance:
    """Find the lowest certainty of each class whose names are right often enough.

    A checked name counts with the certainty that it would have now without the labels of its fold. It is right if the
    image has the class now.

    Args:
        naming: The labels.
        rows: Rows (j,) of the images whose proposed name a user checked.
        codes: The class (j,) that was proposed.
        target: Share of the accepted names that should be right.
    """
    certainty, is_right = naming.certainty_without_own(rows, codes), naming.codes[rows] == codes
    least = np.full(naming.classes, NONE)
    for code in np.unique(codes).tolist():
        of_class = np.flatnonzero(codes == code)
        ordered = of_class[np.argsort(-certainty[of_class], kind="stable")]
        count, right = np.arange(1, len(ordered) + 1), np.cumsum(is_right[ordered])
        sure = beta.ppf(DOUBT, right + 0.5, count - right + 0.5)
        reached = np.flatnonzero((sure >= target) & (count >= FEWEST) & (certainty[ordered] > 0))
        if len(reached):
            least[code] = certainty[ordered[reached[-1]]]
    return Acceptance(least, target, *(np.bincount(codes[some], minlength=len(least)) for some in (
        np.ones(len(codes), bool), is_right)))
