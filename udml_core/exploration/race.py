"""The race for the best search: what is tried, in which order, and what is kept.

The decisions are pure: opinions, times and rankings come from a `Track`. A search is an encoder, a trained head or
none, and a recipe of refinement. Each candidate changes the best search so far in one respect. It takes its place only
if the judges find it better for what the search serves, against the best so far, and the price in the other measure is
small.

The order decides only what is tried. A gain over the frozen features counts if it is certain even for the best of so
many candidates. Of these candidates the largest gain is advised, or a simpler candidate whose direct comparison with it
shows no certain difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from statistics import NormalDist
from typing import Any, Literal, Protocol, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from udml_core.base.errors import UserError
from udml_core.numerics.refinement.recipe import STEPS, Average, Recipe, Rerank, Step, Views

Serves = Literal["first", "groups"]
"""What a search serves: the first results, or the whole group of a query."""
Verdict = Literal["better", "worse", "cannot tell"]
State = Literal["judged", "not tried", "given up", "not possible"]
ERRORS, TAIL = 1.96, 0.025
"""Half the width of a stored interval in standard errors, and the probability of a value above it."""
PRICE = 1.0
"""Share of the gain in the served measure that a step may lose in the other measure; 0 allows no loss."""
TIMES = (2, 5, 15, 30, 60)
"""Usual times of a race in minutes."""
REVERSED: Mapping[Verdict, Verdict] = {"better": "worse", "worse": "better", "cannot tell": "cannot tell"}
FROZEN = "frozen"
AVERAGES = ("average:k=3,alpha=3", "average:k=10,alpha=3", "average:k=20,times=2,alpha=3")
RANKINGS = ("rerank", "rerank:k1=40,k2=10,weight=0.1", "diffuse:k=20,alpha=0.9")
METHODS = ("deepcluster", "plm", "exemplar", "distill")
"""Methods without labels that gain MAP@R over the frozen features in the benchmark's record, on average over its data
sets, the largest gain first."""


class OutOfTimeError(UserError):
    """The time of a race ended while a candidate was computed.

    Attributes:
        share: The finished share of the candidate; 0 if it is not known.
        left: Seconds that it would still take, as its share tells; 0 if they are not known.
    """

    def __init__(self, message: str, share: float = 0.0, left: float = 0.0) -> None:
        super().__init__(message)
        self.share, self.left = share, left


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

    def among(self, candidates: int) -> Self:
        """Return the count with an interval that holds for several candidates at once, as `Measured.among`."""
        if self.better is None or self.low is None or self.high is None:
            return self
        wider = widened(candidates)
        return self.model_copy(update={"low": max(0.0, self.better - wider * (self.better - self.low)),
                                       "high": min(self.changed, self.better + wider * (self.high - self.better))})

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
        low: Lower end of the 95 % interval, averaged over the judges.
        high: Upper end of the interval.
        before: Mean cosine of a query and its results in the first search, averaged over the judges; None where an
            earlier version did not store it.
        after: The same in the second search.
        count: For how many queries the second search is better and worse; None where it is not known.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    verdict: Verdict
    difference: float
    low: float
    high: float
    before: float | None = None
    after: float | None = None
    count: Count | None = Field(default=None, exclude=True)  # `Comparison` stores it

    @property
    def is_contradicted(self) -> bool:
        """Whether the count of queries surely leans against the verdict, which follows the mean."""
        sign = {"better": 1, "worse": -1, "cannot tell": 0}[self.verdict]
        return self.count is not None and sign * self.count.leans < 0

    @property
    def agreed(self) -> Verdict:
        """The verdict of the judges, unless the count of queries contradicts it."""
        return "cannot tell" if self.is_contradicted else self.verdict

    @property
    def said(self) -> Verdict:
        """The verdict, unless the mean interval of the judges holds 0 or the count of queries contradicts it."""
        return "cannot tell" if self.low <= 0 <= self.high else self.agreed

    def among(self, candidates: int) -> Self:
        """Return the difference with intervals that hold for several candidates at once (Bonferroni's correction).

        The largest of many gains is often chance. With these intervals a picture shows what the verdict says.
        """
        wider = widened(candidates)
        return self.model_copy(update={"low": self.difference - wider * (self.difference - self.low),
                                       "high": self.difference + wider * (self.high - self.difference),
                                       "count": self.count and self.count.among(candidates)})

    def said_among(self, candidates: int) -> Verdict:
        """Return the verdict, where a difference counts only if it is certain among several candidates."""
        return self.among(candidates).said

    def is_certain(self, candidates: int) -> bool:
        """Return whether a gain is certain among several candidates."""
        return self.said_among(candidates) == "better"

    @property
    def reversed(self) -> Self:
        """The same difference with the searches in the other order."""
        return self.model_copy(update={"verdict": REVERSED[self.verdict], "difference": -self.difference,
                                       "low": -self.high, "high": -self.low,
                                       "before": self.after, "after": self.before,
                                       "count": self.count and self.count.reversed})


def widened(candidates: int) -> float:
    """Return by how much an interval is wider that holds for several candidates at once (Bonferroni's correction)."""
    return NormalDist().inv_cdf(1 - TAIL / candidates) / ERRORS if candidates > 1 else 1.0


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

    def is_level(self, serves: Serves) -> bool:
        """Return whether no certain difference was found in what the search serves."""
        return self.comparison.served(serves).said != "better"


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
        images: Number of images that are compared; 0 where an earlier version did not store it.
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
    images: int = 0

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
        return tuple(outcome for outcome in self.judged if self._is_certain(outcome))

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

    def _is_certain(self, outcome: Outcome) -> bool:
        """Return whether a judged candidate beats the frozen features at a small price, among all candidates."""
        of = outcome.against_start
        return of is not None and of.earns_its_place(self.serves) and self.gain(outcome).is_certain(len(self.judged))

    @property
    def count(self) -> int:
        """The number of judged candidates, among which a gain must be certain; at least 1."""
        return max(1, len(self.judged))

    @property
    def trained(self) -> dict[str, Comparison]:
        """The comparisons with the frozen features of embeddings that no recipe refines, by run."""
        return {outcome.run: outcome.against_start for outcome in self.judged
                if outcome.against_start is not None and not outcome.setup.recipe}

    def verdicts(self, outcome: Outcome) -> tuple[Verdict, Verdict]:
        """Return what every page says of a judged candidate against the frozen features: first results, whole groups.

        A gain counts only if it is certain among all candidates of the race.
        """
        of = outcome.against_start
        assert of is not None, "the candidate was judged"
        return of.first.said_among(self.count), of.groups.said_among(self.count)

    def verdict(self, outcome: Outcome) -> Verdict:
        """Return what every page says of a judged candidate in the served measure; see `verdicts`."""
        return self.gain(outcome).said_among(self.count)

    @property
    def better_otherwise(self) -> int:
        """The number of candidates that are certainly better in the measure that the race does not serve."""
        return sum(of.other(self.serves).is_certain(self.count) for outcome in self.judged
                   if (of := outcome.against_start) is not None)

    @property
    def is_judged(self) -> bool:
        """Whether the judges compared any candidate."""
        return bool(self.judged)


@dataclass(frozen=True)
class Idea:
    """A candidate before it is known what it changes.

    Attributes:
        name: Its name.
        change: Returns the best search so far with one change; None where the change means nothing.
        trains: Whether a head is trained for it.
    """

    name: str
    change: Callable[[Setup], Setup | None]
    trains: bool = False


class Track(Protocol):
    """Where a race takes place."""

    def refuses(self, best: Setup, setup: Setup) -> str:
        """Return why no judge can compare two searches; empty if one can."""

    def expects(self, setup: Setup) -> float:
        """Return the expected seconds of a candidate.

        Raises:
            UserError: It is not possible.
        """

    def is_measured(self, setup: Setup) -> bool:
        """Return whether the expected seconds rest on measurements on this machine."""

    def announce(self, name: str, left: float | None, own: float) -> None:
        """Receive each candidate before it is tried.

        Args:
            name: Its name.
            left: Expected seconds until the race ends; None if they are not known.
            own: The candidate's part of them.
        """

    def elapsed(self) -> float:
        """Return the seconds since the race began."""

    def compare(self, before: Setup, after: Setup) -> Comparison:
        """Compare two searches.

        Raises:
            UserError: The second is not possible.
        """

    def run_of(self, setup: Setup) -> str:
        """Return the id of the run whose embedding a search starts from."""


def run_race(start: Setup, ideas: Iterable[Idea], track: Track, serves: Serves, seconds: float,
             known: Mapping[Setup, Outcome] | None = None) -> Iterator[Outcome]:
    """Try candidates one after the other, each on top of the best search so far; yield what becomes of each.

    Args:
        start: The search to beat.
        ideas: The candidates in their order.
        track: Compares and measures time.
        serves: What the search serves.
        seconds: The time for all candidates. A candidate that is expected to take longer than the rest is not tried.
        known: Outcomes of an earlier attempt at this race, by their searches.
    """
    best, tried, known, ideas = start, {start}, known or {}, list(ideas)
    for number in range(len(ideas)):
        ideas[number:] = cheap_first(ideas[number:], best, track, seconds)
        idea = ideas[number]
        setup = idea.change(best)
        if setup is None or setup in tried:
            continue
        tried.add(setup)
        outcome = known.get(setup)
        if outcome is None or outcome.state == "not tried":
            track.announce(idea.name, seconds_left(ideas[number:], best, track, seconds), _expected(setup, track))
            outcome = try_candidate(idea.name, start, best, setup, track, serves, seconds)
        if outcome.kept:
            best = setup
        yield outcome


def cheap_first(ideas: Sequence[Idea], best: Setup, track: Track, seconds: float) -> list[Idea]:
    """Return the ideas with the trainings that come next sorted by time, unless the time suffices for all of them.

    Args:
        ideas: The candidates that are left, in their order.
        best: The best search so far.
        track: Knows the times.
        seconds: The time for all candidates.
    """
    trainings = list(takewhile(lambda idea: idea.trains, ideas))
    if len(trainings) < 2:
        return list(ideas)
    times = {idea.name: _expected(idea.change(best), track) for idea in trainings}
    if sum(times.values()) > seconds - track.elapsed():
        trainings.sort(key=lambda idea: times[idea.name])
    return [*trainings, *ideas[len(trainings):]]


def _expected(setup: Setup | None, track: Track) -> float:
    """Return the expected seconds of a candidate; 0 if it is not possible, which takes no time."""
    with suppress(UserError):
        return 0.0 if setup is None else track.expects(setup)
    return 0.0


def seconds_left(ideas: Iterable[Idea], best: Setup, track: Track, seconds: float) -> float | None:
    """Return the expected seconds of the candidates that are left; None if a time was never measured here.

    Args:
        ideas: The candidates; a candidate that does not fit into the time takes none.
        best: The best search so far; a later step on a better search takes about as long.
        track: Knows the times.
        seconds: The time for all candidates.
    """
    total, rest = 0.0, seconds - track.elapsed()
    for setup in dict.fromkeys(idea.change(best) for idea in ideas):
        if setup is None or setup == best or track.refuses(best, setup):
            continue
        try:
            expected = track.expects(setup)
        except UserError:  # it is not possible, which takes no time
            continue
        if total + expected <= rest:
            if not track.is_measured(setup):
                return None
            total += expected
    return total


def try_candidate(name: str, start: Setup, best: Setup, setup: Setup, track: Track, serves: Serves,
                  seconds: float) -> Outcome:
    """Judge one candidate, unless no judge can, or it does not fit into the rest of the time.

    Args:
        name: Its name.
        start: The search with frozen features.
        best: The best search so far.
        setup: The candidate.
        track: Compares and measures time.
        serves: What the search serves.
        seconds: The time for all candidates.
    """
    if reason := track.refuses(best, setup):
        return Outcome(name=name, setup=setup, state="not possible", reason=reason)
    began = track.elapsed()
    try:
        expected = track.expects(setup)
        if expected > seconds - began:
            return Outcome(name=name, setup=setup, state="not tried", seconds=expected)
        against_best = track.compare(best, setup)
        against_start = against_best if best == start else track.compare(start, setup)
    except UserError as error:
        took, is_late = track.elapsed() - began, isinstance(error, OutOfTimeError)
        needs = took + error.left if isinstance(error, OutOfTimeError) and error.left else 0.0
        return Outcome(name=name, setup=setup, state="given up" if is_late else "not possible", reason=str(error),
                       seconds=took, needs=needs)
    return Outcome(name=name, setup=setup, kept=against_best.earns_its_place(serves), against_best=against_best,
                   against_start=against_start, run=track.run_of(setup), seconds=track.elapsed() - began)


def settle(race: Race, track: Track) -> Race:
    """Return a race with the direct comparisons of simpler candidates with the largest certain gain.

    The comparisons end at the simplest candidate that the judges cannot tell from the largest gain: it is advised.
    """
    largest, duels = race.largest, list[Duel]()
    for outcome in sorted(race.certain, key=lambda outcome: complexity(race.start, outcome.setup)):
        if largest is None or complexity(race.start, outcome.setup) >= complexity(race.start, largest.setup):
            break
        if track.refuses(outcome.setup, largest.setup):
            continue
        with suppress(UserError):  # a run was removed meanwhile
            duels.append(Duel(simpler=outcome.setup, largest=largest.setup,
                              comparison=track.compare(outcome.setup, largest.setup)))
            if duels[-1].is_level(race.serves):
                break
    return race.model_copy(update={"duels": tuple(duels)})


def complexity(start: Setup, setup: Setup) -> tuple[bool, bool, int]:
    """Return how complex a search is, for comparisons: the smaller is simpler.

    A linear map or views are simpler than steps that refine the images at hand, and these than training or another
    encoder; then fewer steps are simpler.
    """
    steps = setup.parsed.steps
    is_other = setup.method != FROZEN or setup.backbone != start.backbone
    return is_other, refines_at_hand(setup), len(steps)


def refines_at_hand(setup: Setup) -> bool:
    """Return whether a search refines the images at hand with each other, which new images do not take part in."""
    return any(step.sees == "gallery" for step in setup.parsed.steps)


def list_ideas(encoders: Sequence[str], titles: Mapping[str, str], has_images: bool) -> list[Idea]:
    """List the candidates in the order of the race: cheap ones first.

    Args:
        encoders: Other backbones to try.
        titles: Titles of the methods and backbones by name.
        has_images: Whether there are images, of which views can be made and from which encoders read.
    """
    ideas = [_idea(step) for step in ("views", "whiten", *AVERAGES)]
    for step in RANKINGS:
        ideas += [_idea(step), _idea(step, without=("average",))]
    if not has_images:
        return [idea for idea in ideas if idea.name != Views.title]
    ideas += [Idea(titles[name], partial(_trained, name), trains=True) for name in METHODS]
    return ideas + [Idea(titles[name], partial(_on_backbone, name)) for name in encoders]


def _trained(name: str, best: Setup) -> Setup:
    """Return the best search on the head of a method."""
    return best.model_copy(update={"method": name})


def _on_backbone(name: str, best: Setup) -> Setup | None:
    """Return the best search with another backbone, on whose features no head was trained."""
    return None if name == best.backbone else Setup(backbone=name, recipe=best.recipe)


def _idea(text: str, without: tuple[str, ...] = ()) -> Idea:
    """Return the candidate that adds a step to the best recipe, in place of an equal step and of those in `without`."""
    (step,) = Recipe.parse(text).steps

    def change(best: Setup) -> Setup | None:
        recipe = best.parsed
        if without and not any(other.name in without for other in recipe.steps):
            return None
        return best.model_copy(update={"recipe": str(with_step(recipe, step, without))})

    return Idea(f"{step_title(step)}{' without averages' if without else ''}", change)


def with_step(recipe: Recipe, step: Step, without: tuple[str, ...] = ()) -> Recipe:
    """Return a recipe with a step in its usual place.

    Args:
        recipe: The recipe.
        step: The step. It replaces a step of its name; a ranking replaces any other ranking.
        without: Names of further steps to leave out.
    """
    kept = [other for other in recipe.steps if other.name not in (step.name, *without)
            and not other.role == step.role == "ranking"]
    return Recipe(tuple(sorted([*kept, step], key=lambda other: list(STEPS).index(other.name))))


def step_title(step: Step) -> str:
    """Return the title of a step with the number of neighbors."""
    match step:
        case Average(k=k, times=times):
            return f"Averaging with {k} neighbors" + (", twice" if times == 2 else "")
        case Rerank(k1=k1) if k1 != Rerank.model_fields["k1"].default:
            return f"{step.title} ({k1} neighbors)"
    return step.title
