"""Kinds of candidates of which a race judged none, or too few without a winner, and the time that mends it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from udml_core.base.errors import counted, duration, listed
from udml_core.exploration.race import FROZEN, TIMES, Outcome, Race, State
from udml_core.exploration.race_clock import clock_words
from udml_core.numerics.refinement.recipe import Views

LATE: tuple[State, ...] = ("not tried", "given up")
"""States of candidates for which the time was too short."""
OTHER_ENCODERS = "other encoders"
AGAIN = 2.0
"""A candidate that was given up is expected to need so many times the time that it had, if its share is not known."""
HOUR = 60
USED = 0.95
"""Share of its time from which a race has used it."""


@dataclass(frozen=True)
class Gaps:
    """What a race has not judged.

    Attributes:
        late: Kinds of candidates for which the time was too short, in words.
        impossible: Reasons by kinds of candidates that were not possible, without encoders, which few judges can judge.
        minutes: A time that suffices for the late kinds; 0 without late kinds.
        needed: The expected seconds of such a race.
        given_up: The late candidates that were begun.
        untried: The late kinds of which a candidate was not begun.
        begun: The late kinds of which a candidate was judged or given up.
    """

    late: tuple[str, ...] = ()
    impossible: tuple[tuple[str, str], ...] = ()
    minutes: int = 0
    needed: float = 0.0
    given_up: tuple[Outcome, ...] = ()
    untried: tuple[str, ...] = ()
    begun: tuple[str, ...] = ()


def find_gaps(race: Race) -> Gaps:
    """Return the kinds of candidates of which a race judged none; without a winner, any candidate left out is a gap."""
    kinds = dict[str, list[Outcome]]()
    for outcome in race.outcomes:
        kinds.setdefault(_kind(race, outcome), []).append(outcome)
    missing = {kind: outcomes for kind, outcomes in kinds.items() if not any(
        outcome.state == "judged" for outcome in outcomes)}
    looked_at = kinds if race.is_judged and race.best is None else missing
    late = {kind: [outcome for outcome in outcomes if outcome.state in LATE] for kind, outcomes in looked_at.items()}
    late = {kind: outcomes for kind, outcomes in late.items() if outcomes}
    impossible = tuple((kind, outcomes[0].reason) for kind, outcomes in missing.items()
                       if kind not in (*late, OTHER_ENCODERS))
    needed = _needed_seconds(race, [outcome for outcomes in late.values() for outcome in outcomes]) if late else 0.0
    given_up = tuple(outcome for outcomes in late.values() for outcome in outcomes if outcome.state == "given up")
    untried = tuple(kind for kind, outcomes in late.items() if any(
        outcome.state == "not tried" for outcome in outcomes))
    begun = tuple(kind for kind in late if any(outcome.state in ("judged", "given up") for outcome in kinds[kind]))
    return Gaps(tuple(late), impossible, _minutes(race, needed) if late else 0, needed, given_up, untried, begun)


def gap_words(race: Race) -> str:
    """Return what was not tried, why, and what mends it; empty if every kind of candidate was judged."""
    gaps = find_gaps(race)
    words = [f"{_begun([kind])} were not possible: {reason}" for kind, reason in gaps.impossible]
    if gaps.late:
        words += [f"{outcome.name} {'were' if outcome.name == Views.title else 'was'} given up "
                  f"{why_left_out(outcome)}." for outcome in gaps.given_up]
        if untried := [f"other {kind.removeprefix('other ')}" if kind in gaps.begun else kind
                       for kind in gaps.untried]:
            words.append(f"{_begun(untried)} were not tried: they would not have fitted into the time that was left.")
        words.append(f"Run again with {minutes_words(gaps.minutes)}.")
    return " ".join(words)


def took_words(race: Race) -> str:
    """Return how long a race took, and why it ended, in a sentence; empty if an earlier version did not store it."""
    if not race.seconds:
        return ""
    late = sum(outcome.state in LATE for outcome in race.outcomes)
    rest = "every candidate was tried" if not late else f"{late} more did not fit into the time"
    return (f"The race took {clock_words(race.seconds)} of {clock_words(HOUR * race.budget)} min: "
            f"{counted(len(race.judged), 'candidate')} judged, {rest}.")


def early_words(race: Race) -> str:
    """Return that a race ended before its time, and how long what was left takes; empty if it used its time."""
    given, left = HOUR * race.budget, [outcome for outcome in race.outcomes if outcome.state in LATE]
    if not left or not race.seconds or race.seconds > USED * given:
        return ""
    shortest = min(outcome.needs or outcome.seconds for outcome in left)
    return (f"The race ended after {clock_words(race.seconds)} of {clock_words(given)} min: what was left needs "
            f"{'at least ' * (len(left) > 1)}about {duration(shortest)}.")


def why_left_out(outcome: Outcome) -> str:
    """Return why a candidate was not judged."""
    if outcome.state == "not possible":
        return outcome.reason.removesuffix(".")
    needs = outcome.seconds if outcome.state == "not tried" else outcome.needs
    expected = f"it would take about {duration(needs)}" if needs else "it took too long"
    return expected if outcome.state == "not tried" else f"after {duration(outcome.seconds)}, because {expected}"


def minutes_words(minutes: float) -> str:
    """Return a time in minutes or hours, as buttons name it."""
    return f"{minutes:g} minutes" if minutes <= HOUR or minutes % HOUR else f"{minutes // HOUR:g} hours"


def _kind(race: Race, outcome: Outcome) -> str:
    """Return the kind of a candidate as a race promises it."""
    if outcome.setup.method != FROZEN:
        return "short trainings"
    if outcome.setup.backbone != race.start.backbone:
        return OTHER_ENCODERS
    return Views.title.lower() if outcome.name == Views.title else "refinements of the features"


def _needed_seconds(race: Race, late: Sequence[Outcome]) -> float:
    """Return the expected seconds of a race that repeats the judged candidates and tries the late candidates."""
    spent = sum(outcome.seconds for outcome in race.outcomes if outcome.state == "judged")
    return spent + sum(outcome.needs or outcome.seconds * (AGAIN if outcome.state == "given up" else 1.0)
                       for outcome in late)


def _minutes(race: Race, seconds: float) -> int:
    """Return the shortest usual time that is longer than the race and suffices, or whole hours."""
    usual = (minutes for minutes in TIMES if minutes > race.budget and HOUR * minutes >= seconds)
    return next(usual, HOUR * math.ceil(max(seconds / 60, 2 * race.budget) / HOUR))


def _begun(names: Sequence[str]) -> str:
    """Return names at the beginning of a sentence."""
    joined = listed(names)
    return joined[0].upper() + joined[1:]
