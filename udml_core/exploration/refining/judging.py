"""The second opinion of a recipe in view: judges of a live gallery, fast enough for every movement of a slider."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from udml_core.base.arrays import Floats, Integers
from udml_core.exploration.refining.refined_gallery import RefinedGallery
from udml_core.numerics.second_opinion import FIRST, Interval, Judge, Opinion, cosine_difference


@dataclass(frozen=True)
class LiveJudge:
    """A judge that has compared the sampled queries of a gallery with all its images.

    A recipe changes the results of a query, not the cosines that the judge sees, so they are computed once.

    Attributes:
        queries: Rows (s,) of the sampled queries.
        whitened: Cosines (s, n) that decide on first results.
        refined: Cosines (s, n) that decide on groups.
        group: Number of results of a group.
    """

    queries: Integers
    whitened: Floats
    refined: Floats
    group: int

    @classmethod
    def of(cls, judge: Judge, queries: Integers) -> LiveJudge:
        """Prepare a judge of a gallery, all of whose images it judges."""
        return cls(queries, judge.whitened[queries] @ judge.whitened.T, judge.refined[queries] @ judge.refined.T,
                   judge.group)

    def compare(self, before: Integers, after: Integers) -> Opinion:
        """Compare two rankings (s, k) of the sampled queries, as `judge_rankings` does."""
        return Opinion(self._difference(self.whitened, before[:, :FIRST], after[:, :FIRST]),
                       self._difference(self.refined, before, after))

    def _difference(self, cosines: Floats, before: Integers, after: Integers) -> Interval:
        return cosine_difference(cosines.shape[1], self.queries, *(
            (results, np.take_along_axis(cosines, results, axis=1).astype(np.float64)) for results in (before, after)))


@dataclass(frozen=True)
class LiveOpinion:
    """What judges say of a refined gallery.

    Attributes:
        opinions: The opinion of each judge by its name.
        group: Number of results that were judged as a group.
        wanted: Number of results of a typical group; more than `group` if the recipe ranks fewer.
    """

    opinions: Mapping[str, Opinion]
    group: int
    wanted: int


def judge_recipe(judges: Mapping[str, LiveJudge], refined: RefinedGallery) -> LiveOpinion | None:
    """Compare a refined gallery with the gallery before, by judges that took no part.

    Args:
        judges: At least one judge by name.
        refined: The refined gallery.

    Returns:
        The opinions on the recipe; None if it ranks no image for some query.
    """
    wanted = min(judge.group for judge in judges.values())
    after = refined.rank_sample(wanted)
    depth = int((after >= 0).sum(axis=1).min())
    if not depth:
        return None
    before, after = refined.before.ranking[:, :depth], after[:, :depth]
    return LiveOpinion({name: judge.compare(before, after) for name, judge in judges.items()}, depth, wanted)
