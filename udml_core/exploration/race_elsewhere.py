"""What another race of the same images says of its best search in the measure that a race serves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from udml_core.exploration.race import Outcome, Race
from udml_core.exploration.race_figures import MEASURES, both_words, setup_words
from udml_core.exploration.race_gaps import minutes_words
from udml_core.exploration.race_measured import Measured


@dataclass(frozen=True)
class Elsewhere:
    """The best search of another finished race, which is better in what a race serves.

    Attributes:
        race: The other race.
        best: Its best search.
        is_later: Whether it ran later.
        is_certain: Whether its gain in the measure is certain among all its candidates, at a small price.
    """

    race: Race
    best: Outcome
    is_later: bool
    is_certain: bool

    @property
    def name(self) -> str:
        """The other race in words."""
        return (f"{'a later' if self.is_later else 'an earlier'} race for {MEASURES[self.race.serves]}, in "
                f"{minutes_words(self.race.budget)}")

    @property
    def search(self) -> str:
        """The other race's best search in words."""
        return setup_words(self.race, self.best.setup)

    def figures(self, race: Race) -> str:
        """Return both verdicts of the other race, what a race serves first."""
        assert self.best.against_start is not None, "the best search was judged"
        return both_words(self.best.against_start, race.serves, len(self.race.judged))

    def wins(self, race: Race) -> bool:
        """Return whether a race without a clear winner must advise this search."""
        return self.is_certain and race.best is None

    def words(self, race: Race) -> str:
        """Return a sentence for the end of a race's advice."""
        return f"{self.name[:1].upper()}{self.name[1:]}, says of {self.search}: {self.figures(race)}."


def find_elsewhere(race: Race, others: Iterable[tuple[Race, bool]]) -> Elsewhere | None:
    """Return the largest gain of another race in what a race serves; None if no best search says more than its own.

    Args:
        race: The race.
        others: Other finished races of the same frozen features, and whether they ran later.
    """
    own = 0.0 if race.best is None else race.gain(race.best).difference
    found = [(elsewhere, gain) for other, is_later in others if other.best is not None
             for elsewhere, gain in [_gain_of(race, other, other.best, is_later)]
             if gain.said == "better" and gain.difference > own
             and (race.best is None or other.best.setup != race.best.setup)]
    return max(found, key=lambda pair: (pair[0].is_certain, pair[1].difference), default=(None, None))[0]


def _gain_of(race: Race, other: Race, best: Outcome, is_later: bool) -> tuple[Elsewhere, Measured]:
    """Return what another race says of its best search, and its gain in what a race serves."""
    of = best.against_start
    assert of is not None, "the best search was judged"
    gain = of.served(race.serves)
    is_certain = gain.is_certain(len(other.judged)) and of.earns_its_place(race.serves)
    return Elsewhere(other, best, is_later, is_certain), gain
