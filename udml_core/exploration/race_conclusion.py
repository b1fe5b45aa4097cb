"""What to use after a race and blind judgments of its advice: one conclusion for every page and command.

A race asks encoders, blind judgments ask the user, who decides what a good result is. As soon as judgments of the
advised search against the plain search say something, the conclusion follows them; until then it is the race's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from udml_core.base.errors import capitalized
from udml_core.exploration.race import Outcome, Race
from udml_core.exploration.race_advice import AT_HAND, Advised, equals_words, reason_words, tell_advice
from udml_core.exploration.race_certainty import TOO_LITTLE, certainty_words, effort_of, effort_words, is_close
from udml_core.exploration.race_elsewhere import Elsewhere
from udml_core.exploration.race_measured import Verdict
from udml_core.exploration.race_words import changed_sentence, decider_words, dissent_words, is_unseen, needs_eyes
from udml_core.exploration.search_names import named_search, recipe_once, without_recipe

Stance = Literal["none", "open", "better", "level", "worse"]
"""What judgments say of a search against the frozen features: nothing, not decided yet, or that it is better, hardly
different, or worse."""
Basis = Literal["race", "unseen", "doubted", "confirmed", "preferred", "level", "contradicted"]
"""What a conclusion rests on: the race alone, a training whose gain is too small to see, or judgments that lean against
its advice and do not decide yet, confirm it, prefer a gain that it is not sure of, see no clear difference, or
contradict it."""
Action = Literal["use", "judge", "name", "search", "again", ""]
"""What is next: use the search, judge, name groups, keep the plain search, run the race again, or nothing."""

CANNOT_TELL = "cannot tell which is better"
STAYS = "Either will do, and the plain search is simpler."
"""What judgments say where more are not worth the time, and what follows from it, on every page."""


@dataclass(frozen=True)
class Judgments:
    """What blind judgments say of a search in comparison with the frozen features.

    Attributes:
        stance: What they say.
        count: Their number.
        judges: Who judged, such as `Ann and Bob`; empty if the user alone did.
        score: Their count by answer, in words.
        finding: The share of the queries in which one search finds the better results, in words, if they decide.
        left: How many more could decide, in a sentence; empty if they decide, or nothing is judged.
        is_behind: Whether enough of them, which do not decide yet, lean against the search.
        level: What they say where more are not worth the time, as the predicate of a sentence.
    """

    stance: Stance = "none"
    count: int = 0
    judges: str = ""
    score: str = ""
    finding: str = ""
    left: str = ""
    is_behind: bool = False
    level: str = CANNOT_TELL

    @property
    def words(self) -> str:
        """The judgments as the subject of a sentence that does not begin with them."""
        number = f"{self.count:,} judgment{'s' * (self.count != 1)}"
        return f"{number} by {self.judges}" if self.judges else f"your {number}"

    @property
    def verb_ending(self) -> str:
        """The ending of a verb of which they are the subject."""
        return "s" * (self.count == 1)


UNJUDGED = Judgments()
SAYS: Mapping[Basis, Verdict | None] = {"race": None, "unseen": None, "doubted": None, "confirmed": "better",
                                        "preferred": "better", "level": "cannot tell", "contradicted": "worse"}


@dataclass(frozen=True)
class Conclusion:
    """What to use, how sure that is, and what is next.

    Attributes:
        race: The race that compared the search that judgments are about.
        candidate: That search: the advice of the race, or its largest gain; None if nothing was judged.
        use: The search to use; None to keep the plain search.
        basis: What the conclusion rests on.
        headline: What to use.
        counted: How many of 100 searches get better and worse, in a sentence; empty if judgments decide, or unknown.
        sure: How sure it is, in a sentence; empty if nothing is known.
        next_step: What is next, in a sentence; empty for nothing.
        action: The same as an action.
        beside: What the race says where judgments decide, in a sentence.
        equals: How many other searches do about as well, and why the one to use was chosen, in sentences.
        decider: Which judge decides alone, in a sentence; empty for several judges.
        dissent: Which judges do not find the search to use better, in a sentence; empty if all do.
        details: Everything else.
        is_begun: Whether judgments were begun that do not decide yet.
    """

    race: Race
    candidate: Outcome | None
    use: Outcome | None
    basis: Basis
    headline: str
    counted: str
    sure: str
    next_step: str
    action: Action
    beside: str = ""
    equals: str = ""
    decider: str = ""
    dissent: str = ""
    details: tuple[str, ...] = ()
    is_begun: bool = False

    @property
    def named(self) -> str:
        """The search that judgments are about, by its plain name with its recipe; empty if nothing was judged."""
        return "" if self.candidate is None else named_search(self.race, self.candidate.setup)

    @property
    def plain_headline(self) -> str:
        """The headline without the recipe of the search that it names."""
        return self.headline.replace(self.named.removeprefix(without_recipe(self.named)), "")

    def once(self, *sentences: str) -> list[str]:
        """Return sentences in which the recipe of the search stands behind its first mention alone."""
        return recipe_once(filter(None, sentences), self.named)

    def after(self, words: str) -> str:
        """Return words that stand below the conclusion, which has named the recipe of the search."""
        return self.once(self.headline, self.counted, self.sure, self.beside, words)[-1] if words else ""

    @property
    def is_judged(self) -> bool:
        """Whether judgments decide, not the race alone."""
        return self.verdict is not None

    @property
    def verdict(self) -> Verdict | None:
        """What judgments say of the search that they are about; None if the race alone speaks."""
        return SAYS[self.basis]

    @property
    def is_overruled(self) -> bool:
        """Whether the race advises a search that the conclusion does not."""
        return self.basis in ("unseen", "doubted", "level", "contradicted") and self.candidate == self.race.best

    @property
    def sentences(self) -> list[str]:
        """All sentences."""
        return self.once(self.headline, self.counted, self.sure, self.beside, self.decider, self.dissent,
                         self.equals, self.next_step, *self.details)


def subject_of(race: Race, elsewhere: Elsewhere | None = None) -> tuple[Race, Outcome | None]:
    """Return the search that judgments of a race are about, and the race that compared it.

    It is the advice, else the largest gain; None if the race judged nothing.
    """
    if elsewhere is not None and elsewhere.wins(race):
        return elsewhere.race, elsewhere.best
    return race, race.best or next(iter(race.judged), None)


def conclude(race: Race, judgments: Judgments = UNJUDGED, is_done: bool = True, elsewhere: Elsewhere | None = None,
             for_other_aim: Race | None = None, others: Sequence[Race] = (), is_ready: bool = False) -> Conclusion:
    """Return what to use, how sure that is, and what is next.

    Args:
        race: The race.
        judgments: Blind judgments of the search of `subject_of` against the frozen features, of what the race serves.
        is_done: Whether the race is finished.
        elsewhere: What another race of the same images says of its best search; None without such a race.
        for_other_aim: A finished race that serves what this race does not serve; see `tell_advice`.
        others: All other finished races of the same images, the newest first.
        is_ready: Whether all images are prepared for the search to use.
    """
    told = tell_advice(race, is_done, elsewhere, for_other_aim, others)
    own, candidate = subject_of(race, elsewhere)
    advised = candidate if candidate is not None and candidate == own.best else None
    basis = "race" if candidate is None else _basis(judgments, advised is not None)
    if basis == "race" and is_done and advised is not None and is_unseen(own):
        basis = "unseen"
    use = candidate if basis == "preferred" else None if basis not in ("race", "confirmed") else advised
    next_step, action = _next(race, told, judgments, use, basis, is_done, is_ready)
    sure = _race_sure(race, told) if basis in ("race", "unseen") else _judged_sure(judgments)
    headline, beside, counted, hedged = told.headline, "", "", ""
    if basis == "race" and use is not None and use.against_start is not None:
        hedged = changed_sentence(use.against_start, own.serves)
        counted = changed_sentence(use.against_start, own.serves, is_hedged=False) if is_close(own, use) else hedged
    if candidate is not None and basis != "race":
        name = named_search(own, candidate.setup)
        headline, beside = _headline(basis, judgments, name), _beside(basis, name, advised is not None)
    equals = [equals_words(own), reason_words(own)] if use is not None and use == own.best else []
    does_race_decide = basis in ("race", "unseen")
    dissent = dissent_words(own, use) if use is not None and does_race_decide else ""
    known = {counted, hedged, sure, beside, dissent, *equals, *([] if use is not None else [AT_HAND])} | (
        set() if basis == "race" else {_race_sure(race, told)})
    all_else = (*told.shown, *told.details)
    details = tuple(words for words in all_else if words not in known)
    sure = "" if sure == counted else sure
    return Conclusion(own, candidate, use, basis, headline, counted, sure, next_step, action, beside,
                      " ".join(filter(None, equals)), decider_words(own) if does_race_decide else "", dissent, details,
                      judgments.stance == "open")


def _basis(judgments: Judgments, is_advised: bool) -> Basis:
    """Return what a conclusion rests on; `is_advised` says whether the race advises what was judged."""
    match judgments.stance:
        case "open" if judgments.is_behind and is_advised:
            return "doubted"
        case "better":
            return "confirmed" if is_advised else "preferred"
        case "level":
            return "level"
        case "worse":
            return "contradicted"
    return "race"


def _headline(basis: Basis, judgments: Judgments, name: str) -> str:
    """Return what to use where the race alone does not decide."""
    if basis == "unseen":
        return f"Keep the plain search: what {name} changes is too little to be seen."
    if basis in ("confirmed", "preferred"):
        return f"Better search, {basis} by {judgments.words}: {name}."
    if basis == "doubted":
        return f"Keep the plain search until you have decided: {judgments.words} lean{judgments.verb_ending} to it."
    if basis == "level":
        return f"Either search will do: {judgments.words} {judgments.level}."
    return f"Keep the plain search: {judgments.words} prefer{judgments.verb_ending} it."


def _beside(basis: Basis, name: str, is_advised: bool) -> str:
    """Return what the race says beside what decides."""
    if basis == "unseen":
        return ("The judges of the race prefer it, but the benchmark knows no training without labels that finds more "
                "right first images.")
    if basis == "confirmed":
        return "The judges of the race prefer it, too."
    if basis == "preferred":
        return "The judges of the race were not sure of it."
    unsure = "were not sure"
    if basis == "level":
        return f"The judges of the race {f'prefer {name}' if is_advised else f'{unsure} of {name}, either'}."
    return f"The judges of the race prefer {name}: you can use it nevertheless." if is_advised else (
        f"The judges of the race {unsure} of {name}, either.")


def _race_sure(race: Race, told: Advised) -> str:
    """Return how sure a race is of its call, else the first thing that it says of it."""
    outcome = race.best or next(iter(race.judged), None)
    sure = "" if outcome is None else certainty_words(race, outcome)
    return sure if sure and sure in (*told.shown, *told.details) else next(iter(told.shown), "")


def _judged_sure(judgments: Judgments) -> str:
    """Return how sure judgments are, in a sentence."""
    return f"How sure: {'; '.join(filter(None, (judgments.score, judgments.finding)))}."


def _next(race: Race, told: Advised, judgments: Judgments, use: Outcome | None, basis: Basis, is_done: bool,
          is_ready: bool) -> tuple[str, Action]:
    """Return what is next, in a sentence and as an action."""
    if judgments.stance == "open":
        words, does = judgments.words, "does" if judgments.count == 1 else "do"
        score = f" ({judgments.score})" if judgments.score and basis != "doubted" else ""
        return f"{capitalized(words)} {does} not decide yet{score}: {judgments.left}", "judge"
    if use is None:
        if basis == "level":
            return "Search with either; the plain search is simpler.", "search"
        if basis != "race":
            return "Search with the plain search.", "search"
        if not is_done:
            return "Continue the race.", ""
        if not race.is_judged:
            return "", "again" if not race.reason else ""
        return told.next_step or "Search with the plain search.", "search"
    if basis == "race" and use == race.best and (is_close(race, use) or needs_eyes(race)):
        return _confirm(race, use)
    if is_ready:
        return "All images are prepared for this search: name the groups that it finds.", "name"
    if basis != "race":
        return "Search with it.", "use"
    return "Search with it; blind judgments can confirm it.", "use"


def _confirm(race: Race, use: Outcome) -> tuple[str, Action]:
    """Return what is next for a search that changes little or may be chance: judge it, unless that takes too long."""
    effort = effort_of(race, use)
    if effort == math.inf:
        return f"Search with it if you like: it changes {TOO_LITTLE}.", "use"
    number = f"{effort_words(effort)} " if effort else ""
    return f"Confirm it by {number}blind judgments before you use it.", "judge"
