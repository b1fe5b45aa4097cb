"""A jury: encoders that took no part compare two rankings. The one place where a race asks for a second opinion."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from udml_core.base.arrays import Array, Integers
from udml_core.base.errors import UserError
from udml_core.data.encoder_names import encoders_in
from udml_core.data.judge_names import WEAK
from udml_core.data.judging import kin_reasons
from udml_core.exploration.race_measured import Comparison, Count, Measured
from udml_core.numerics.changed_groups import changed_both
from udml_core.numerics.changed_results import Changed
from udml_core.numerics.second_opinion import Interval, Judge, judge_rankings, vote


def independent(judges: Collection[str], took_part: Collection[str]) -> tuple[str, ...]:
    """Return the judges that took no part in a comparison; none if only raw pixels are left.

    Args:
        judges: Names of the judges.
        took_part: Backbones whose embeddings are compared; each of several encoders side by side took part.
    """
    left = tuple(judge for judge in judges if judge not in encoders_in(*took_part))
    return () if set(left) <= set(WEAK) else left


class Jury:
    """Prepared judges, and the queries whose results they compare."""

    def __init__(self, judges: Mapping[str, Judge], queries: Integers) -> None:
        """Seat the judges.

        Args:
            judges: The judges of the same m images by name.
            queries: Rows (q,) of the queries among the images.
        """
        self._judges, self.queries = judges, queries
        self._kin = dict[str, set[str]]()

    @property
    def depth(self) -> int:
        """The number of results of each query that the judges look at: the smallest of the groups that they see."""
        return min(judge.group for judge in self._judges.values())

    @property
    def weights(self) -> dict[str, float]:
        """What each judge counts."""
        return {name: judge.weight for name, judge in self._judges.items()}

    def meet(self, backbone: str, embeddings: Sequence[Array]) -> None:
        """Learn which judges are an encoder under another name; they never judge it.

        Args:
            backbone: The encoder.
            embeddings: Its features (m, d), the features of its parts, or embeddings that come from them.
        """
        for name, judge in self._judges.items():
            judged = [rows[judge.images] for rows in embeddings]
            self._kin.setdefault(backbone, set()).update(kin_reasons({name: judge.features}, backbone, judged))

    def refuses(self, took_part: Collection[str]) -> bool:
        """Return whether no judge is left without those encoders that took part."""
        return not self._left(took_part)

    def _left(self, took_part: Collection[str]) -> tuple[str, ...]:
        """Return the judges that took no part, under any name."""
        kin = {judge for name in {*took_part, *encoders_in(*took_part)} for judge in self._kin.get(name, ())}
        return independent([judge for judge in self._judges if judge not in kin], took_part)

    def compare(self, before: Integers, after: Integers, took_part: Collection[str]) -> Comparison:
        """Compare two rankings of the queries.

        Args:
            before: Rows (q, k) of the results to compare with, nearest first and without the query.
            after: Rows (q, k) of the judged results.
            took_part: Names of the encoders whose embeddings gave the rankings.

        Raises:
            UserError: No judge is left.
        """
        names = self._left(took_part)
        if not names:
            raise UserError("Every judge took part in one of the searches; got "
                            f"{', '.join(self._judges) or 'no judge'}. Name a further encoder as a judge.")
        judges = {name: self._judges[name] for name in names}
        opinions = [judge_rankings(judge, self.queries, before, after) for judge in judges.values()]
        weights = [judge.weight for judge in judges.values()]
        first, whole = (counted(changed, weights) for changed in zip(*(
            changed_both(judge, self.queries, before, after) for judge in judges.values()), strict=True))
        alone = {name: (combined([opinion.first_results], [1.0]), combined([opinion.groups], [1.0]))
                 for name, opinion in zip(names, opinions, strict=True)}
        return Comparison(first=combined([opinion.first_results for opinion in opinions], weights),
                          groups=combined([opinion.groups for opinion in opinions], weights), judges=names,
                          changed=first.changed, better=first.better, worse=first.worse,
                          within=None if first.low is None or first.high is None else (first.low, first.high),
                          whole=whole, by_judge=alone)


def counted(changed: Sequence[Changed], weights: Sequence[float]) -> Count:
    """Return the count of several judges as shares of all queries, with the means of the ends of their intervals.

    Args:
        changed: The shares of the queries that differ, as each judge sees them; at least one.
        weights: What each judge counts.
    """
    share = changed[0].share
    if not changed[0].is_known:
        return Count(changed=share)
    better, low, high = (share * _mean(values, weights) for values in (
        [of.better for of in changed], [of.low for of in changed], [of.high for of in changed]))
    return Count(changed=share, better=better, worse=share - better, low=low, high=high)


def _mean(values: Iterable[float], weights: Sequence[float]) -> float:
    """Return the mean by the judges' weights."""
    return sum(weight * value for weight, value in zip(weights, values, strict=True)) / (sum(weights) or 1.0)


def combined(intervals: Sequence[Interval], weights: Sequence[float], count: Count | None = None) -> Measured:
    """Return the verdict of several judges, with the means of their figures and of the ends of their intervals.

    The mean of the ends is a safe interval for the mean difference, whatever the judges have in common.

    Args:
        intervals: The same difference, as each judge sees it.
        weights: What each judge counts.
        count: For how many queries it is a gain; None where it is not known.
    """
    difference, low, high, before, after = (_mean((getattr(of, name) for of in intervals), weights) for name in (
        "difference", "low", "high", "before", "after"))
    return Measured(verdict=vote(intervals, weights), difference=difference, low=low, high=high, before=before,
                    after=after, count=count)
