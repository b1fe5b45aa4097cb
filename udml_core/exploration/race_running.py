"""How a race for the best search runs: what is tried, in which order, and what is kept.

The decisions are pure: opinions, times and rankings come from a `Track`. Each candidate changes the best search so far
in one respect. It takes its place only if the judges find it better for what the search serves, against the best so
far, and the price in the other measure is small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Protocol

from udml_core.base.errors import UserError
from udml_core.exploration.race import FROZEN, Duel, Outcome, Race, Setup
from udml_core.exploration.race_measured import Comparison, Serves
from udml_core.numerics.refinement.recipe import STEPS, Average, Recipe, Rerank, Step, Views

AVERAGES = ("average:k=3,alpha=3", "average:k=10,alpha=3", "average:k=20,times=2,alpha=3")
RANKINGS = ("rerank", "rerank:k1=40,k2=10,weight=0.1", "diffuse:k=20,alpha=0.9")
METHODS = ("deepcluster", "plm", "exemplar", "distill")
"""Methods without labels that gain MAP@R over the frozen features in the benchmark's record, on average over its data
sets, the largest gain first."""


ROUGH = 1.25
"""An expected time is rough: at the end a candidate is tried that is expected to take so many times the time that is
left. Before, a training that was never measured here is begun only if so many times its expected time is left."""
MUCH = 0.4
"""Share of the time from which a step without a training comes after the others."""


class OutOfTimeError(UserError):
    """The time of a race ended while a candidate was computed.

    Attributes:
        share: The finished share of the candidate; 0 if it is not known.
        left: Seconds that it would still take, as its share tells; 0 if they are not known.
    """

    def __init__(self, message: str, share: float = 0.0, left: float = 0.0) -> None:
        super().__init__(message)
        self.share, self.left = share, left


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

    A candidate that was not tried, because it takes too long, comes again at the end if it may fit after all; so does
    a step whose first seconds showed that it takes much of the time.

    Args:
        start: The search to beat.
        ideas: The candidates in their order.
        track: Compares and measures time.
        serves: What the search serves.
        seconds: The time for all candidates. A candidate that is expected to take longer than the rest is not tried.
        known: Outcomes of an earlier attempt at this race, by their searches.
    """
    best, tried, known, late = start, {start}, known or {}, list[Outcome]()
    ideas = slow_steps_late(list(ideas), start, track, seconds)
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
        late += [outcome] * (outcome.state == "not tried")
        yield outcome
    for left in sorted(late, key=lambda outcome: outcome.seconds):
        if _claims(left.setup, track, _expected(left.setup, track), ROUGH) <= seconds - track.elapsed():
            track.announce(left.name, None, 0.0)
            outcome = try_candidate(left.name, start, best, left.setup, track, serves, seconds, ROUGH)
            best = left.setup if outcome.kept else best
            yield outcome


def slow_steps_late(ideas: Sequence[Idea], start: Setup, track: Track, seconds: float) -> list[Idea]:
    """Return the ideas with steps that take much of the time after the others, so that the first results come early.

    Args:
        ideas: The candidates in their order; trainings come after the steps.
        start: The search to beat.
        track: Knows the times.
        seconds: The time for all candidates.
    """
    steps, rest = list(takewhile(lambda idea: not idea.trains, ideas)), seconds - track.elapsed()
    slow = [idea for idea in steps if MUCH * rest < _expected(idea.change(start), track) <= rest]
    return [*(idea for idea in steps if idea not in slow), *slow, *ideas[len(steps):]]


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


def _claims(setup: Setup, track: Track, expected: float, rough: float = 1.0) -> float:
    """Return the seconds that must be left for a candidate to begin.

    A training that is given up wastes all of its own, which other candidates could use, but not at the end.

    Args:
        setup: The candidate.
        track: Knows whether its time was measured.
        expected: Its expected seconds.
        rough: How many times the time that is left a candidate may be expected to take at the end; 1 before.
    """
    if setup.method == FROZEN or rough > 1:
        return expected / rough
    return expected if track.is_measured(setup) else ROUGH * expected


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
        if total + _claims(setup, track, expected) <= rest:
            if not track.is_measured(setup):
                return None
            total += expected
    return total


def try_candidate(name: str, start: Setup, best: Setup, setup: Setup, track: Track, serves: Serves,
                  seconds: float, rough: float = 1.0) -> Outcome:
    """Judge one candidate, unless no judge can, or it does not fit into the rest of the time.

    Args:
        name: Its name.
        start: The search with frozen features.
        best: The best search so far.
        setup: The candidate.
        track: Compares and measures time.
        serves: What the search serves.
        seconds: The time for all candidates.
        rough: How many times the time that is left a candidate may be expected to take at the end; 1 before.
    """
    if reason := track.refuses(best, setup):
        return Outcome(name=name, setup=setup, state="not possible", reason=reason)
    began = track.elapsed()
    try:
        expected = track.expects(setup)
        if _claims(setup, track, expected, rough) > seconds - began:
            return Outcome(name=name, setup=setup, state="not tried", seconds=expected)
        against_best = track.compare(best, setup)
        against_start = against_best if best == start else track.compare(start, setup)
    except UserError as error:
        took, is_late = track.elapsed() - began, isinstance(error, OutOfTimeError)
        needs = took + error.left if isinstance(error, OutOfTimeError) and error.left else 0.0
        if needs and setup.method == FROZEN and rough == 1:  # its finished parts are kept until it comes again
            return Outcome(name=name, setup=setup, state="not tried", seconds=needs)
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


def seconds_to_settle(race: Race) -> float:
    """Return the expected seconds of `settle`: of a comparison for each simpler candidate, as long as most took."""
    largest = race.largest
    simpler = [] if largest is None else [other for other in race.certain if complexity(
        race.start, other.setup) < complexity(race.start, largest.setup)]
    took = sorted(outcome.seconds for outcome in race.judged if outcome.setup.method == FROZEN)
    return len(simpler) * took[len(took) // 2] if simpler and took else 0.0


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


def step_title(step: Step, is_brief: bool = False) -> str:
    """Return the title of a step, with the number of neighbors unless it is brief."""
    match step:
        case Average(k=k, times=times):
            return "Averaging" + f" with {k} neighbors" * (not is_brief) + (", twice" if times == 2 else "")
        case Rerank(k1=k1) if not is_brief and k1 != Rerank.model_fields["k1"].default:
            return f"{step.title} ({k1} neighbors)"
    return step.title
