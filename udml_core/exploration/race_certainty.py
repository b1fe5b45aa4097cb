"""How sure a race is of a call, how small a difference it can tell, and why another race may call it differently."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import NormalDist, median

from udml_core.base.errors import counted, listed
from udml_core.exploration.race import Outcome, Race
from udml_core.exploration.race_figures import MEASURES, SAID, UNTOLD, figure_words, said_word
from udml_core.exploration.race_gaps import minutes_words
from udml_core.exploration.race_measured import ERRORS, FAMILY, TAIL, Measured, Serves
from udml_core.exploration.search_names import named_search
from udml_core.numerics.judgments import judgments_needed

CLOSE = 10.0
"""A call is close if ten times the chance, or a tenth of it, would turn it over."""
RARE = 0.001
"""The smallest chance that is named."""
MANY = 100
"""Judgments that few people give."""
TOO_LITTLE = "too little to be judged by eye"
"""What a gain changes for which more judgments would be needed than that."""
EYES = "Judges compare looks, not species or class: your own eyes decide what is right."
"""What no chance says."""
TENS = 10
"""Numbers of judgments are rounded up to tens, because a forecast is rough."""
OFTEN = 0.5
"""Chance whose number says nothing any more."""


def chance_of(measured: Measured) -> float:
    """Return at most which chance one of a family of candidates without any difference has to look this different."""
    end = measured.low if measured.difference > 0 else measured.high
    half = abs(measured.difference - end)
    if not half:
        return 0.0 if measured.difference else 1.0
    return min(1.0, FAMILY * (1 - NormalDist().cdf(ERRORS * abs(measured.difference) / half)))


def is_close(race: Race, outcome: Outcome) -> bool:
    """Return whether a call on a gain is so close that other images may turn it over.

    A call that the judges or the count of images contradict does not depend on chance alone and is never close.
    """
    gain = race.gain(outcome)
    if gain.difference <= 0 or gain.agreed != "better":
        return False
    return TAIL / CLOSE <= chance_of(gain) <= TAIL * CLOSE


def effort_of(race: Race, outcome: Outcome) -> float | None:
    """Return how many blind judgments tell a candidate from the plain search, if a user sees results as judges do.

    Returns:
        Their number, rounded up to tens; infinity for more than `MANY`, and None if no count of queries is known.
    """
    count = race.gain(outcome).count
    if count is None or not count.better or not count.worse or not race.images:
        return None
    share = count.better / (count.better + count.worse)
    needed = judgments_needed(share, round(count.changed * race.images), MANY)
    return math.inf if needed is None else math.ceil(needed / TENS) * TENS


def effort_words(effort: float) -> str:
    """Return a finite number of judgments in words, such as `about 30`."""
    return f"about {effort:.0f}"


def certainty_words(race: Race, outcome: Outcome, is_done: bool = True) -> str:
    """Return how sure the call on a gain is, in a sentence; empty without a gain that judges agree on.

    Args:
        race: The race.
        outcome: A judged candidate, the advice or the largest gain.
        is_done: Whether the race is finished.
    """
    gain = race.gain(outcome)
    if gain.difference <= 0 or gain.agreed != "better":
        return ""
    chance = chance_of(gain)
    said = f"chance alone looks this good in {_of_races(chance)}"
    if not is_close(race, outcome):
        if race.verdict(outcome) == "better":
            return f"The judges are very sure: {said}. {EYES}"
        doubt = said if chance < OFTEN else "chance alone often looks this good"
        return f"The judges are not sure of the largest gain: {doubt}. {EYES}"
    if race.verdict(outcome) == "better":
        by_eye = ": check it with your eyes" if effort_of(race, outcome) != math.inf else ""
        then = by_eye if is_done else "; a later candidate may gain more"
        return f"Slightly better, a close call: {said}, and other images may turn it over{then}."
    return f"A close call: {said}, which is too often to call it better. Blind judgments can decide."


def close_words(race: Race, outcome: Outcome) -> str:
    """Return that a gain is a close call, to stand behind a verdict; empty if it is not, or if it is not called."""
    return ", a close call" if race.verdict(outcome) == "better" and is_close(race, outcome) else ""


def _of_races(chance: float) -> str:
    """Return a chance as a number of races."""
    if chance < RARE:
        return "fewer than 1 of 1,000 such races"
    if chance < 0.01:
        return f"at most about {max(1, round(1000 * chance))} of 1,000 such races"
    return f"at most about {round(100 * chance)} of 100 such races"


def resolution_words(race: Race) -> str:
    """Return what "no clear difference" means in a race, with the smallest difference that it can tell."""
    if not race.is_judged:
        return ""
    halves = [(gain.high - gain.low) / 2 for outcome in race.judged for gain in [race.gain(outcome).wide]]
    images = f"{race.images:,} images" if race.images else "these images"
    return (f"{SAID['cannot tell'].capitalize()} does not mean equal: with {images}, a difference below "
            f"about {figure_words(median(halves))} in the similarity of {MEASURES[race.serves]} may be chance.")


def called_otherwise(race: Race, others: Iterable[Race]) -> str:
    """Return that another race called the advice, or the largest gain, differently, and why; empty if none did.

    Args:
        race: The race.
        others: Other finished races of the same features, the newest first.
    """
    outcome = race.best or next(iter(race.judged), None)
    if outcome is None:
        return ""
    for other in others:
        same = next((known for known in other.judged if known.setup == outcome.setup), None)
        if same is None or same.against_start is None:
            continue
        said = same.against_start.served(race.serves).said
        if said != race.verdict(outcome):
            return (f"The race of {minutes_words(other.budget)} for {MEASURES[other.serves]} says of "
                    f"{named_search(race, outcome.setup)}: {SAID[said]} in {MEASURES[race.serves]}; this race says: "
                    f"{SAID[race.verdict(outcome)]}. {_why(race, other)}")
    return ""


def _why(race: Race, other: Race) -> str:
    """Return why two races call one search differently; the number of their candidates plays no part."""
    reasons = []
    if race.images and other.images and race.images != other.images:
        reasons.append(f"that race looks at {other.images:,} images, this one at {race.images:,}")
    if race.weights and other.weights and race.weights != other.weights:
        reasons.append("other judges looked at the results, or the same judges counted differently")
    if not reasons:
        return "The difference is at the limit of what a race can tell: confirm it by blind judgments."
    return f"Why: {'; '.join(reasons)}. Judge blindly to decide."


def calls_words(race: Race, serves: Serves) -> str:
    """Return how many of the judged candidates are better, worse, and cannot be told, without a full stop.

    Args:
        race: The race.
        serves: The measure.
    """
    said = [said_word(of.against_start.served(serves)) for of in race.judged if of.against_start is not None]
    better, worse, level, undervalued = (said.count(word) for word in (*map(SAID.__getitem__, (
        "better", "worse", "cannot tell")), UNTOLD))
    others = {f"{worse} {'is' if worse == 1 else 'are'} worse": worse,
              f"{level} show{'s' * (level == 1)} {SAID['cannot tell']}": level,
              f"{undervalued} {'has' if undervalued == 1 else 'have'} {UNTOLD}": undervalued}
    rest = listed([words for words, count in others.items() if count]) if any(others.values()) else ""
    return (f"For {MEASURES[serves]}, {better or 'none'} of {counted(len(said), 'candidate')} "
            f"{'is' if better <= 1 else 'are'} better beyond chance{rest and f', {rest}'}")
