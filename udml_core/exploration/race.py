"""A race for the best search, finished or in progress: its candidates, what became of each, and the advice.

A search is an encoder, a trained head or none, and a recipe of refinement. The order of the candidates decides only
what is tried; see `race_running`. A gain over the frozen features counts if it is certain even for the best of many
candidates, however many were tried. Of these candidates the largest gain is advised, or a simpler candidate whose
direct comparison with it shows no certain difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from udml_core.exploration.race_measured import Comparison, Measured, Serves, Verdict
from udml_core.numerics.refinement.recipe import Recipe, Rerank, Views

State = Literal["judged", "not tried", "given up", "not possible"]
TIMES = (2, 5, 15, 30, 60)
"""Usual times of a race in minutes."""
FROZEN = "frozen"
SHOWN_QUERIES, SHOWN_RESULTS = 2, 6
"""Number of queries that are shown as examples of a search, and of most results of each."""
FORMER_TITLES = {"Test-time views": Views.title, "k-reciprocal re-ranking": Rerank.title}
"""What steps are called now, by their titles in the races of earlier versions."""


class Setup(BaseModel):
    """A search that can be repeated.

    Attributes:
        backbone: The backbone.
        method: The method that trained a head; `frozen` without training.
        recipe: The recipe that refines the embedding; empty for none.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    backbone: str
    method: str = FROZEN
    recipe: str = ""

    @property
    def parsed(self) -> Recipe:
        """The recipe as steps."""
        return Recipe.parse(self.recipe)


class Outcome(BaseModel):
    """What became of a candidate.

    Attributes:
        name: The candidate's name.
        setup: Its search.
        state: Whether it was judged, was expected not to fit into the time, did not fit, or was not possible.
        kept: Whether it took the place of the best search so far.
        against_best: The comparison with the best search so far; None unless judged.
        against_start: The comparison with the frozen features; None unless judged.
        run: Id of the run whose embedding it searches; empty unless judged.
        seconds: Time that it took, or the expected time if it was not tried.
        needs: Expected time of a candidate that was given up; 0 where it is not known.
        reason: Why it was not judged.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str
    setup: Setup
    state: State = "judged"
    kept: bool = False
    against_best: Comparison | None = None
    against_start: Comparison | None = None
    run: str = ""
    seconds: float = 0.0
    needs: float = 0.0
    reason: str = ""

    @model_validator(mode="after")
    def _of_these_searches(self) -> Self:
        """Leave out verdicts that judges give too easily of this search; the frozen features have no step."""
        if self.against_start is not None:
            object.__setattr__(self, "against_start", self.against_start.between(Recipe(), self.setup.parsed))
        return self

    @field_validator("name")
    @classmethod
    def _as_now(cls, name: str) -> str:
        return next((name.replace(former, title) for former, title in FORMER_TITLES.items() if former in name), name)


class Duel(BaseModel):
    """A direct comparison with the largest certain gain.

    Attributes:
        simpler: A search that is simpler.
        largest: The search with the largest certain gain.
        comparison: What the judges say of the largest in comparison with the simpler.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    simpler: Setup
    largest: Setup
    comparison: Comparison

    @model_validator(mode="after")
    def _of_these_searches(self) -> Self:
        """Leave out verdicts that judges give too easily of these searches."""
        fair = self.comparison.between(self.simpler.parsed, self.largest.parsed)
        object.__setattr__(self, "comparison", fair)
        return self

    def is_level(self, serves: Serves) -> bool:
        """Return whether no certain difference was found in what the search serves.

        Of first results, the benchmark knows no training without labels that gains any, on any of its data sets. So a
        training must win by the interval of every page there, not by that of a single comparison.
        """
        measured = self.comparison.served(serves)
        is_strict = serves == "first" and self.largest.method != FROZEN == self.simpler.method
        return (measured.said if is_strict else measured.alone) != "better"


Results = tuple[tuple[int, int], ...]
"""Results of a query: the index of each image in the data set, and its rank."""


class Example(BaseModel):
    """A query with results of the plain search and of a candidate.

    Attributes:
        setup: The candidate's search.
        serves: What the results show: the first results, or what only one of the searches finds in a whole group.
        query: Index of the query in the data set.
        before: Results of the plain search.
        after: The candidate's results, as many.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    setup: Setup
    serves: Serves
    query: int
    before: Results
    after: Results


class Race(BaseModel):
    """A race, finished or in progress.

    Attributes:
        serves: What the search serves.
        budget: The time in minutes.
        start: The search with frozen features.
        run: Id of the run of the frozen features.
        titles: Titles of the backbones and methods by name.
        weights: What each judge counts; empty where an earlier version did not store it.
        outcomes: The candidates in their order.
        duels: The simpler candidates that were compared with the largest certain gain, the simplest first.
        reason: Why nothing could be judged; empty if the race was possible.
        group: Number of results that the judges see as a whole group; 0 where an earlier version did not store it.
        near: Number of images near a typical image, as the network of the plain search sees them: a guess of how many
            images a kind has; 0 where an earlier version did not store it.
        images: Number of images that are compared; 0 where an earlier version did not store it.
        seconds: Time that judges and candidates took, without waiting; 0 where an earlier version did not store it.
        refused: Why judges were left out, in sentences.
        examples: Queries with their results by the plain search and by the advice for either measure, drawn at random
            among those whose results differ; none where an earlier version did not store them.
        chosen_for: What decided which candidates were tried, where the race is read for another measure than it served;
            else None.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    serves: Serves
    budget: float
    start: Setup
    run: str
    titles: Mapping[str, str] = {}
    weights: Mapping[str, float] = {}
    outcomes: tuple[Outcome, ...] = ()
    duels: tuple[Duel, ...] = ()
    reason: str = ""
    group: int = 0
    near: int = 0
    images: int = 0
    seconds: float = 0.0
    refused: tuple[str, ...] = ()
    examples: tuple[Example, ...] = ()
    chosen_for: Serves | None = None

    def serving(self, serves: Serves | None) -> Self:
        """Return the same race as it answers for a measure, for judges measure both; None stands for its own."""
        own = self.chosen_for or self.serves
        if serves in (None, self.serves):
            return self
        return self.model_copy(update={"serves": serves, "chosen_for": None if serves == own else own})

    def with_lines(self, lines: Iterable[Mapping[str, Any]]) -> Self:
        """Return the race with the outcomes that were stored line by line; of equal searches the last counts."""
        outcomes = {(outcome := Outcome.model_validate(line)).setup: outcome for line in lines}
        return self.model_copy(update={"outcomes": tuple(outcomes.values())})

    @property
    def judged(self) -> tuple[Outcome, ...]:
        """The candidates that were compared with the frozen features, the largest gain in the served measure first."""
        known = [outcome for outcome in self.outcomes if outcome.against_start is not None]
        return tuple(sorted(known, key=lambda outcome: self.gain(outcome).difference, reverse=True))

    @property
    def certain(self) -> tuple[Outcome, ...]:
        """The candidates that surely beat the frozen features at a small price, the largest gain first."""
        return tuple(outcome for outcome in self.judged if self.is_certain(outcome))

    @property
    def largest(self) -> Outcome | None:
        """The largest certain gain; None if no candidate surely beats the frozen features."""
        return next(iter(self.certain), None)

    @property
    def duel(self) -> Duel | None:
        """The comparison by which a simpler candidate is advised in place of the largest gain; None without one."""
        largest = self.largest
        return next((duel for duel in self.duels if largest is not None and duel.largest == largest.setup
                     and duel.is_level(self.serves)), None)

    @property
    def best(self) -> Outcome | None:
        """The advice: the largest certain gain, or a simpler candidate that is as good; None without a certain gain."""
        duel = self.duel
        return self.largest if duel is None else next(
            (outcome for outcome in self.certain if outcome.setup == duel.simpler), self.largest)

    def gain(self, outcome: Outcome) -> Measured:
        """Return the gain of a judged candidate over the frozen features in the served measure."""
        assert outcome.against_start is not None, "the candidate was judged"
        return outcome.against_start.served(self.serves)

    def is_certain(self, outcome: Outcome) -> bool:
        """Return whether a judged candidate surely beats the frozen features at a small price."""
        of = outcome.against_start
        return of is not None and of.earns_its_place(self.serves) and self.verdict(outcome) == "better"

    @property
    def trained(self) -> dict[str, Comparison]:
        """The comparisons with the frozen features of embeddings that no recipe refines, by run."""
        return {outcome.run: outcome.against_start for outcome in self.judged
                if outcome.against_start is not None and not outcome.setup.recipe}

    def verdicts(self, outcome: Outcome) -> tuple[Verdict, Verdict]:
        """Return what every page says of a judged candidate against the frozen features: first results, groups."""
        of = outcome.against_start
        assert of is not None, "the candidate was judged"
        return of.first.said, of.groups.said

    def examples_of(self, outcome: Outcome) -> list[Example]:
        """List the stored queries with the results of a candidate in what the race serves."""
        return [of for of in self.examples if (of.setup, of.serves) == (outcome.setup, self.serves)]

    def verdict(self, outcome: Outcome) -> Verdict:
        """Return what every page says of a judged candidate in the served measure; see `verdicts`."""
        return self.gain(outcome).said

    @property
    def is_judged(self) -> bool:
        """Whether the judges compared any candidate."""
        return bool(self.judged)
