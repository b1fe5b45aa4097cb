"""What another race of the same images says of its best search in the measure that a race serves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from udml_core.base.errors import capitalized
from udml_core.exploration.race import Outcome, Race
from udml_core.exploration.race_figures import MEASURES, both_words
from udml_core.exploration.race_gaps import minutes_words
from udml_core.exploration.search_names import named_search, other_search


@dataclass(frozen=True)
class Elsewhere:
    """The best search of another finished race, which is better in what a race serves.

    Attributes:
        race: The other race.
        best: Its best search.
        is_later: Whether it ran later.
    """

    race: Race
    best: Outcome
    is_later: bool

    @property
    def name(self) -> str:
        """The other race in words."""
        return (f"{'a later' if self.is_later else 'an earlier'} race for {MEASURES[self.race.serves]}, in "
                f"{minutes_words(self.race.budget)}")

    @property
    def search(self) -> str:
        """The other race's best search in words."""
        return named_search(self.race, self.best.setup)

    def figures(self, race: Race) -> str:
        """Return both verdicts of the other race, what a race serves first."""
        assert self.best.against_start is not None, "the best search was judged"
        return both_words(self.best.against_start, race.serves, is_exact=True)

    def wins(self, race: Race) -> bool:
        """Return whether a race without a clear winner must advise this search."""
        return race.best is None

    def words(self, race: Race) -> str:
        """Return a sentence for the end of a race's advice."""
        search = self.search if race.best is None else other_search(self.race, self.best.setup, race.best.setup)
        return f"{capitalized(self.name)}, says of {search}: {self.figures(race)}."


def find_elsewhere(race: Race, others: Iterable[tuple[Race, bool]]) -> Elsewhere | None:
    """Return the largest gain of another race in what a race serves, which is certain and at a small price.

    Args:
        race: The race.
        others: Other finished races of the same frozen features, and whether they ran later.

    Returns:
        The best search of another race; None if none gains more than the race's own.
    """
    own = 0.0 if race.best is None else race.gain(race.best).difference
    found = [(race.gain(other.best).difference, Elsewhere(other, other.best, is_later)) for other, is_later in others
             if other.best is not None and race.is_certain(other.best) and race.gain(other.best).difference > own
             and (race.best is None or other.best.setup != race.best.setup)]
    return max(found, key=lambda pair: pair[0], default=(0.0, None))[1]
