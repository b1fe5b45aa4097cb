"""The parts of a race's largest gain as candidates of their own, so that a simpler search can be advised.

Each candidate changes the best search so far, so that a step after the first is never tried alone. Whitening after
views may owe its whole gain to whitening: its parts tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from udml_core.exploration.race import FROZEN, Outcome, Race, Setup
from udml_core.exploration.race_figures import chain_words
from udml_core.exploration.race_running import Idea, Track, run_race, try_candidate
from udml_core.numerics.refinement.recipe import Recipe


def run_with_parts(race: Race, ideas: Iterable[Idea], track: Track, seconds: float,
                   known: Mapping[Setup, Outcome] | None = None, chosen: Setup | None = None) -> Iterator[Outcome]:
    """Judge the search in use, run a race, and then try the parts of its largest certain gain that were no candidates.

    Args:
        race: The race before its first candidate.
        ideas: The candidates in their order.
        track: Compares and measures time.
        seconds: The time for all candidates; a part that does not fit into the rest is left out.
        known: Outcomes of an earlier attempt at this race, by their searches.
        chosen: The search that the user chose, on which no candidate builds; None for no choice, or the plain search.

    Yields:
        Each outcome.
    """
    outcomes = dict[Setup, Outcome]()
    if chosen is not None and chosen != race.start:
        outcomes[chosen] = (known or {}).get(chosen) or _try_part(race, chosen, track, seconds)
        yield outcomes[chosen]
    for outcome in run_race(race.start, ideas, track, race.serves, seconds, known):
        outcomes[outcome.setup] = outcome
        yield outcome
    largest = race.model_copy(update={"outcomes": tuple(outcomes.values())}).largest
    tried = {race.start, *outcomes}
    for setup in parts_of(race.start, largest.setup) if largest is not None else ():
        if setup in tried:
            continue
        part = (known or {}).get(setup) or _try_part(race, setup, track, seconds)
        if part.state == "judged":
            yield part


def parts_of(start: Setup, setup: Setup) -> list[Setup]:
    """Return each step of a search alone, and the search without one of its steps; a trained head counts as a step.

    Args:
        start: The search with frozen features.
        setup: The search.
    """
    steps = setup.parsed.steps
    heads = [setup] if setup.method == FROZEN else [setup, setup.model_copy(update={"method": FROZEN})]
    fewer = [(step,) for step in steps] + [tuple(step for step in steps if step != left_out) for left_out in steps]
    recipes = [*dict.fromkeys(str(Recipe(chosen)) for chosen in [*fewer, steps])]
    parts = [head.model_copy(update={"recipe": recipe}) for recipe in recipes for head in reversed(heads)]
    return [part for part in parts if part not in (setup, start)]


def _try_part(race: Race, setup: Setup, track: Track, seconds: float) -> Outcome:
    """Compare a part with the frozen features; no later candidate builds on it."""
    name = chain_words(race, setup)
    track.announce(name, None, 0.0)
    outcome = try_candidate(name, race.start, race.start, setup, track, race.serves, seconds)
    return outcome.model_copy(update={"kept": False})
