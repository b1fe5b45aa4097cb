"""The three kinds of judging by their names: what each answers, what is done so far, and what is next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from udml_core.base.errors import counted
from udml_core.exploration.race import Race
from udml_core.exploration.race_conclusion import Judgments

Kind = Literal["race", "blind", "same"]
NAMES: Mapping[Kind, str] = {"race": "Judges of the race", "blind": "Blind judgments", "same": "Same or different"}
"""How every page calls the three."""
PLAN = 20
"""Blind judgments that are asked first."""


def judging_lines(race: Race, judgments: Judgments, pairs: int, of_own: str = "") -> dict[Kind, str]:
    """Return what each kind of judging answers, what is done so far, and what is next, in sentences.

    Args:
        race: The race, which judges compared.
        judgments: Blind judgments of its advice, or of its largest gain, against the plain search.
        pairs: Number of pairs that the user called the same or different.
        of_own: What judgments say of the search in use, if it is another, in sentences.
    """
    names = {name for outcome in race.judged if outcome.against_start for name in outcome.against_start.judges}
    images = f" on {race.images:,} images" if race.images else ""
    searches = f"{len(race.judged):,} search{'es' * (len(race.judged) != 1)}"
    return {
        "race": "Networks look at the results in your place. They answer which search finds images that look more like "
                f"the query. So far: {counted(len(names), 'judge')} compared {searches} with the plain search{images}. "
                "Next: nothing, the race has ended.",
        "blind": "You choose between the results of two searches without their names. You answer which search is "
                 f"better for you, and your answer counts more than the race. So far: {_blind_count(judgments)}. "
                 f"{f'Of your search: {of_own} ' if of_own else ''}Next: {_next_blind(judgments)}",
        "same": "You say of two images whether they show the same kind. You answer down to which similarity results "
                "belong together, which says nothing about which search is better. So far: "
                f"{counted(pairs, 'pair')}. Next: "
                f"{'go on' if pairs else 'begin'} if you want Search to mark where the same kind ends."}


def _blind_count(judgments: Judgments) -> str:
    if not judgments.count:
        return "none"
    by = f" by {judgments.judges}" if judgments.judges else ""
    return f"{counted(judgments.count, 'judgment')}{by}{judgments.score and f' ({judgments.score})'}"


def _next_blind(judgments: Judgments) -> str:
    """Return what is next with blind judgments, as the end of a sentence."""
    if judgments.stance == "none":
        return f"judge {PLAN}; they decide if one search is far better."
    if judgments.stance == "open":
        return judgments.left or "more judgments could decide."
    return "nothing, your judgments have said what they can."
