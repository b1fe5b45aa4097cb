"""What judges measured of a search against another: differences with intervals, and counts of images."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import NormalDist
from typing import Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from udml_core.numerics.refinement.recipe import Recipe

Serves = Literal["first", "groups"]
"""What a search serves: the first results, or the whole group of a query."""
Verdict = Literal["better", "worse", "cannot tell"]
ERRORS, TAIL = 1.96, 0.025
"""Half the width of a stored interval in standard errors, and the probability of a value above it."""
FAMILY = 50
"""Number of comparisons for which a verdict holds at once (Bonferroni's correction): the largest of many gains is often
chance. It is at least what the longest race compares, and the same for each race, so that a verdict does not change
with the number of candidates that were tried."""
WIDER = NormalDist().inv_cdf(1 - TAIL / FAMILY) / ERRORS
"""By how much an interval is wider that holds for a family of comparisons at once."""
PRICE = 1.0
"""Share of the gain in the served measure that a step may lose in the other measure; 0 allows no loss."""
REVERSED: Mapping[Verdict, Verdict] = {"better": "worse", "worse": "better", "cannot tell": "cannot tell"}


class Count(BaseModel):
    """For how many queries a second search is better and worse, as shares of all queries.

    Attributes:
        changed: Share of the queries whose first result, or group of results, differs.
        better: Share of the queries for which the judges find the second better; None if too few differ to tell.
        worse: The same for worse.
        low: Lower end of the 95 % interval of `better`; None where it is not known.
        high: Upper end of the interval.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    changed: float
    better: float | None = None
    worse: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def wide(self) -> Self:
        """The count with an interval that holds for a family of comparisons at once."""
        if self.better is None or self.low is None or self.high is None:
            return self
        return self.model_copy(update={"low": max(0.0, self.better - WIDER * (self.better - self.low)),
                                       "high": min(self.changed, self.better + WIDER * (self.high - self.better))})

    @property
    def leans(self) -> int:
        """Whether more results are surely better than worse, 1, or fewer, −1; 0 if neither is sure or known."""
        if self.low is None or self.high is None:
            return 0
        half = self.changed / 2
        return 1 if self.low > half else -1 if self.high < half else 0

    @property
    def reversed(self) -> Self:
        """The same count with the searches in the other order."""
        ends = (None, None) if self.low is None or self.high is None else (self.changed - self.high,
                                                                            self.changed - self.low)
        return self.model_copy(update={"better": self.worse, "worse": self.better, "low": ends[0], "high": ends[1]})


class Measured(BaseModel):
    """How two searches differ in one measure, in mean cosines of the judges' features.

    Attributes:
        verdict: What the judges say of the second search together.
        difference: The gain of the second search, averaged over the judges.
        low: Lower end of the 95 % interval of a single comparison, averaged over the judges.
        high: Upper end of the interval.
        before: Mean cosine of a query and its results in the first search, averaged over the judges; None where an
            earlier version did not store it.
        after: The same in the second search.
        count: For how many queries the second search is better and worse; None where it is not known.
        untold: Verdicts that are not told of these searches, because judges give them too easily; see `untold`.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    verdict: Verdict
    difference: float
    low: float
    high: float
    before: float | None = None
    after: float | None = None
    count: Count | None = Field(default=None, exclude=True)  # `Comparison` stores it
    untold: tuple[Verdict, ...] = Field(default=(), exclude=True)  # the searches tell it

    @property
    def is_contradicted(self) -> bool:
        """Whether the count of queries surely leans against the verdict, which follows the mean."""
        return self._support < 0

    @property
    def is_borne_out(self) -> bool:
        """Whether the count of queries surely leans to the side of the verdict, where its interval is known."""
        return self.count is None or self.count.low is None or self._support > 0

    @property
    def _support(self) -> int:
        """Whether the count of queries surely leans to the side of the verdict, 1, or against it, −1; 0 if neither."""
        sign = {"better": 1, "worse": -1, "cannot tell": 0}[self.verdict]
        return 0 if self.count is None else sign * self.count.leans

    @property
    def agreed(self) -> Verdict:
        """The verdict of the judges, unless the count of queries contradicts it."""
        return "cannot tell" if self.is_contradicted else self.verdict

    @property
    def alone(self) -> Verdict:
        """The verdict of a comparison that was planned before and chosen from no others.

        The mean interval of the judges must leave out 0, and the count of queries must surely lean to the same side:
        pages show the count, and "worse" beside as many better as worse results would convince no reader. A verdict
        that judges give too easily is not told.
        """
        return "cannot tell" if self._found in self.untold else self._found

    @property
    def is_undervalued(self) -> bool:
        """Whether the judges find a certain difference that is not told; see `untold`."""
        return self.wide._found in self.untold

    @property
    def _found(self) -> Verdict:
        return "cannot tell" if self.low <= 0 <= self.high or not self.is_borne_out else self.verdict

    @property
    def wide(self) -> Self:
        """The difference with intervals that hold for a family of comparisons at once, as pages show them."""
        return self.model_copy(update={"low": self.difference - WIDER * (self.difference - self.low),
                                       "high": self.difference + WIDER * (self.high - self.difference),
                                       "count": self.count and self.count.wide})

    @property
    def said(self) -> Verdict:
        """The verdict on every page: a difference counts only if it is certain among a family of comparisons."""
        return self.wide.alone

    @property
    def reversed(self) -> Self:
        """The same difference with the searches in the other order."""
        return self.model_copy(update={"verdict": REVERSED[self.verdict], "difference": -self.difference,
                                       "low": -self.high, "high": -self.low,
                                       "before": self.after, "after": self.before,
                                       "untold": tuple(REVERSED[verdict] for verdict in self.untold),
                                       "count": self.count and self.count.reversed})


class Comparison(BaseModel):
    """What the judges say of a search in comparison with another.

    Attributes:
        first: The first results.
        groups: The whole groups.
        judges: The encoders that judge.
        changed: Share of the queries whose first result differs; None where an earlier version did not store it.
        better: Share of the queries whose first result the judges find better; None if too few differ to tell, or where
            an earlier version did not store it.
        worse: The same for a worse first result.
        within: The 95 % interval of `better`; None where an earlier version did not store it.
        whole: How many groups of results are better and worse; None where an earlier version did not store it.
        by_judge: What each judge measured, first results and whole groups; empty where an earlier version did not
            store it.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    first: Measured
    groups: Measured
    judges: tuple[str, ...]
    changed: float | None = None
    better: float | None = None
    worse: float | None = None
    within: tuple[float, float] | None = None
    whole: Count | None = None
    by_judge: Mapping[str, tuple[Measured, Measured]] = {}

    @model_validator(mode="after")
    def _count_beside_the_mean(self) -> Self:
        """Let each measure know its count of queries, which its verdict must not contradict."""
        for serves in get_args(Serves):
            counted = self.served(serves).model_copy(update={"count": self.count(serves)})
            object.__setattr__(self, serves, counted)  # a field has the name of what it serves
        return self

    def between(self, before: Recipe, after: Recipe) -> Self:
        """Return the comparison of two searches without the verdicts that judges give too easily; see `untold`.

        Args:
            before: The recipe of the first search.
            after: The recipe of the second search.
        """
        doubted = {"untold": untold(before, after)}
        return self.model_copy(update={
            "first": self.first.model_copy(update=doubted), "groups": self.groups.model_copy(update=doubted),
            "by_judge": {name: (first.model_copy(update=doubted), groups.model_copy(update=doubted))
                         for name, (first, groups) in self.by_judge.items()}})

    def count(self, serves: Serves) -> Count | None:
        """Return for how many queries the second search is better and worse; None if an earlier version judged."""
        if serves == "groups" or self.changed is None:
            return self.whole if serves == "groups" else None
        low, high = self.within or (None, None)
        return Count(changed=self.changed, better=self.better, worse=self.worse, low=low, high=high)

    def served(self, serves: Serves) -> Measured:
        """Return the measure that the search serves."""
        return self.first if serves == "first" else self.groups

    def other(self, serves: Serves) -> Measured:
        """Return the other measure."""
        return self.groups if serves == "first" else self.first

    def earns_its_place(self, serves: Serves) -> bool:
        """Return whether the second search takes the place of the first.

        The served measure must be better. If the other is worse, it must lose less than `PRICE` times the gain.
        """
        served, other = self.served(serves), self.other(serves)
        return served.agreed == "better" and (
            other.verdict != "worse" or -other.difference < PRICE * served.difference)


def untold(before: Recipe, after: Recipe) -> tuple[Verdict, ...]:
    """Return the verdicts on two searches that are not told: those against a step that judges undervalue.

    A judge sees which images are near in its own features. Steps that compare the images at hand with each other
    (averaging, re-ranking, diffusion) also find images that no encoder sees nearby, and their first results share
    neighbors in place of looks. `assets/results/second-opinion.json` and `advice.json` say how often "worse" was wrong
    of a search for such a step that the other search lacks: too often to be told.

    Args:
        before: The recipe of the first search.
        after: The recipe of the second search.
    """
    first, second = ({step.name for step in recipe.steps if step.sees == "gallery"} for recipe in (before, after))
    against: dict[Verdict, set[str]] = {"better": first - second, "worse": second - first}
    return tuple(verdict for verdict, steps in against.items() if steps)
