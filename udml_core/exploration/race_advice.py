"""What a race advises, in words: the headline, what it means for a reader, and everything else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from udml_core.base.errors import capitalized, counted, listed
from udml_core.exploration.plain_names import PLAIN
from udml_core.exploration.race import FROZEN, Outcome, Race, Setup
from udml_core.exploration.race_certainty import (
    TOO_LITTLE,
    called_otherwise,
    calls_words,
    certainty_words,
    effort_of,
    effort_words,
    is_close,
    resolution_words,
)
from udml_core.exploration.race_elsewhere import Elsewhere
from udml_core.exploration.race_figures import (
    AT_ONCE,
    BY_LOOKS,
    MEASURES,
    OTHER,
    better_interval,
    both_words,
    changed_words,
    counts_words,
    interval_words,
    measured_words,
    said_word,
    setup_words,
    similarity_words,
)
from udml_core.exploration.race_gaps import LATE, early_words, find_gaps, gap_words, minutes_words
from udml_core.exploration.race_measured import Comparison, Serves
from udml_core.exploration.race_running import complexity, refines_at_hand
from udml_core.exploration.race_words import changed_sentence, dissent_words, outcome_words, sentence
from udml_core.exploration.search_names import named_search, other_search, recipe_once, steps_sentence

AT_HAND = ("It was judged on the images at hand, which it refines with each other: what new images gain was not "
           "measured, and images that you add need a new refinement.")
"""What an advice that refines the images at hand means for new images."""


@dataclass(frozen=True)
class Advised:
    """The advice of a race in sentences.

    Attributes:
        headline: The advice.
        shown: What it means for a reader.
        details: Everything else.
        next_step: What to do next, unless judgments have done it; empty if there is nothing.
    """

    headline: str
    shown: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    next_step: str = ""

    @property
    def sentences(self) -> list[str]:
        """All of them."""
        return [self.headline, *self.shown, *filter(None, [self.next_step]), *self.details]


def advice_words(race: Race, is_done: bool = True, elsewhere: Elsewhere | None = None,
                 others: Sequence[Race] = ()) -> str:
    """Return the advice in a few sentences; see `tell_advice`."""
    subject = race.best or next(iter(race.judged), None)
    return " ".join(recipe_once(tell_advice(race, is_done, elsewhere, others=others).sentences,
                                "" if subject is None else named_search(race, subject.setup)))


def tell_advice(race: Race, is_done: bool = True, elsewhere: Elsewhere | None = None,
                for_other_aim: Race | None = None, others: Sequence[Race] = ()) -> Advised:
    """Return the advice, then what it means for a reader, then everything else.

    Args:
        race: The race.
        is_done: Whether it is finished.
        elsewhere: What another race of the same images says of its best search; None without such a race.
        for_other_aim: A finished race that serves what this race does not serve, of which it knows more.
        others: All other finished races of the same images, the newest first.
    """
    if elsewhere is not None and elsewhere.wins(race):
        assert elsewhere.best.against_start is not None, "the best search was judged"
        return _advised(f"Best search, found by {elsewhere.name}: {elsewhere.search}.",
                        [_meaning_words(elsewhere.best.against_start, race.serves)],
                        [f"Compared with the plain search: {elsewhere.figures(race)}.",
                         f"This race alone has no clear winner. {_largest_words(race, elsewhere.best.setup)}".rstrip(),
                         gap_words(race)])
    own = _tell_own(race, is_done, for_other_aim)
    named = (race.best or next(iter(race.judged), None)) if is_done else None
    if named is not None:
        sure, close = certainty_words(race, named), is_close(race, named)
        own = replace(own, shown=(*own.shown, *filter(None, [sure * close, called_otherwise(race, others),
                                                             early_words(race)])),
                      details=(*own.details, *filter(None, [sure * (not close), resolution_words(race)])))
    return own if elsewhere is None else replace(own, details=(*own.details, elsewhere.words(race)))


def _advised(headline: str, shown: list[str] | tuple[str, ...], details: list[str], next_step: str = "") -> Advised:
    """Return the advice without empty sentences."""
    return Advised(headline, tuple(filter(None, shown)), tuple(filter(None, details)), next_step)


def _tell_own(race: Race, is_done: bool, for_other_aim: Race | None) -> Advised:
    """Return the advice of a race without a look at others that serve the same aim."""
    if race.reason:
        return Advised(race.reason)
    gaps = (gap_words(race) or _complete_words(race)) if is_done else ""
    best = race.best
    if best is not None and not is_done:
        said = certainty_words(race, best, is_done=False) if is_close(race, best) else (
            "It beats the plain search beyond chance; a later candidate may gain more, and of equals the simplest is "
            "chosen.")
        return _advised(f"Better so far: {named_search(race, best.setup)}.", [said], [])
    if not race.is_judged:
        return Advised("No candidate was judged in this time.", (gaps or "Allow more minutes.",)) if is_done else (
            Advised("No candidate is judged yet."))
    if best is None:
        return _tell_no_winner(race, gaps, for_other_aim) if is_done else _advised(_unclear_words(race), [], [])
    assert best.against_start is not None, "the advice was judged"
    return _advised(f"Best search: {named_search(race, best.setup)}.",
                    [_meaning_words(best.against_start, race.serves), reason_words(race), dissent_words(race, best)],
                    [equals_words(race), _equal_names(race), _simplest_words(race), _compared_words(race, best),
                     steps_sentence(race, best.setup), _calls(race),
                     _other_change(best.against_start, race.serves),
                     AT_HAND if refines_at_hand(best.setup) else "", gaps])


def _calls(race: Race) -> str:
    """Return how many candidates are better in what the race serves, and how many cannot be told."""
    return sentence(calls_words(race, race.serves)) if len(race.judged) > 1 else ""


def _compared_words(race: Race, best: Outcome) -> str:
    """Return the verdicts on the advice with their figures."""
    assert best.against_start is not None, "the advice was judged"
    return f"Compared with the plain search: {both_words(best.against_start, race.serves, is_exact=True)}."


def _meaning_words(of: Comparison, serves: Serves) -> str:
    """Return what an advice means for its user, in a sentence with the count that can be pictured."""
    if said := changed_sentence(of, serves):
        return said
    words = f"{MEASURES[serves].capitalize()} are clearly better than with the plain search"
    rise, how = similarity_words(of.served(serves), " to "), f", {BY_LOOKS}" * (serves == "groups")
    return (f"{words}{how}: the mean similarity of a query and its results, in the judges' eyes, rises from {rise}, on "
            "a scale from −1 to 1." if rise else f"{words}, in the judges' eyes{how}.")


def _other_change(of: Comparison, serves: Serves) -> str:
    """Return how many results change in what the race does not serve; empty if it is unknown, or better is counted."""
    count = of.count(OTHER[serves])
    return "" if count is None or count.better is not None else sentence(changed_words(of, OTHER[serves]))


def _complete_words(race: Race) -> str:
    """Return why a race ended before its time; empty if it did not."""
    is_complete = race.is_judged and all(outcome.state not in LATE for outcome in race.outcomes)
    return f"The race ended when every candidate was tried ({len(race.judged)})." if is_complete else ""


def _unclear_words(race: Race) -> str:
    """Return that a race that runs has no winner so far."""
    return "No clear winner yet." if race.gain(race.judged[0]).difference > 0 else (
        "Nothing has beaten the plain search yet.")


def _tell_no_winner(race: Race, gaps: str, for_other_aim: Race | None) -> Advised:
    """Return that no gain over the frozen features is certain, what to do next, and the largest gain."""
    first, name = race.judged[0], MEASURES[race.serves]
    gain, means, otherwise = race.gain(first), f"The plain search is {PLAIN[FROZEN]}.", otherwise_words(race)
    if otherwise and for_other_aim is not None:
        otherwise = own_race_words(for_other_aim) or otherwise
    if gain.difference <= 0:
        return _advised("Nothing is better: keep the plain search.",
                        [f"{means} No candidate is better in {name}.", otherwise], [gaps])
    if gain.said == "better":
        return _advised(f"No clear winner for {name}: keep the plain search.",
                        [f"{means} What gains in {name} loses more in {MEASURES[OTHER[race.serves]]}.",
                         otherwise], [outcome_words(first, race), gaps], _next_words(race))
    return _advised(f"No clear winner for {name}: keep the plain search.",
                    [f"{means} In {name}, {_none_of(len(race.judged))} is better beyond chance.", otherwise],
                    [_largest_words(race), gaps], _next_words(race))


def _none_of(count: int) -> str:
    return "the candidate that was judged is not better; nothing" if count == 1 else f"none of {count} candidates"


def _next_words(race: Race) -> str:
    """Return what to do after a race without a winner."""
    minutes = find_gaps(race).minutes
    again = f", or run the race again with {minutes_words(minutes)}, in which what was left out fits" if minutes else ""
    largest = race.judged[0]
    effort, most = effort_of(race, largest), named_search(race, largest.setup)
    if effort == math.inf:
        return f"Keep the plain search: {most} changes {TOO_LITTLE}{again}."
    number = f" ({effort_words(effort)} judgments)" if effort else ""
    return f"Keep the plain search; to decide it, judge the largest gain yourself{number}: {most}{again}."


def own_race_words(race: Race) -> str:
    """Return what a race for another aim advises, for the page of a race without a winner; empty without an advice."""
    if race.best is None or race.best.against_start is None:
        return ""
    said = changed_words(race.best.against_start, race.serves)
    return (f"For {MEASURES[race.serves]}, a race of its own advises {named_search(race, race.best.setup)}"
            f"{f': {said[0].lower()}{said[1:]}' if said else ''}.")


def otherwise_words(race: Race) -> str:
    """Return `other_aim_words` of a race without a winner, or nothing."""
    return "" if race.best is not None else other_aim_words(race)


def best_otherwise(race: Race) -> Outcome | None:
    """Return what a race advises in the measure that it does not serve, as it answers for that; None without advice."""
    return race.serving(OTHER[race.serves]).best


def _beside_largest(race: Race, outcome: Outcome) -> str:
    """Return the name of a search where a text is about the advice, or the largest gain."""
    return other_search(race, outcome.setup, (race.best or race.judged[0]).setup)


def both_aims_words(race: Race, use: Outcome | None) -> str:
    """Return what is known of the measure that a race does not serve: of the search to use, else of the best in it.

    Args:
        race: The race.
        use: The search to use; None to keep the plain search.

    Returns:
        A sentence; empty if there is no search to use and nothing is better.
    """
    name, of = MEASURES[OTHER[race.serves]], use or best_otherwise(race)
    if of is None or of.against_start is None:
        return ""
    measured = of.against_start.other(race.serves)
    counts = f": {said}" if (said := counts_words(measured, OTHER[race.serves])) else ""
    how = f" ({BY_LOOKS})" * (race.serves == "first")
    if use is None:
        return f"If you look at {name}{how}, use {named_search(race, of.setup)}, which is better there{counts}."
    return f"{name.capitalize()}{how}: {said_word(measured)}{counts.replace(':', ',', 1)}."


def other_aim_words(race: Race) -> str:
    """Return which candidates of a race are better in the measure that it does not serve, or nothing without any.

    The search that the race advises for that is named with the count that can be pictured.
    """
    other, most = OTHER[race.serves], best_otherwise(race)
    if most is None:
        return ""
    assert most.against_start is not None, "the candidate was judged"
    said = changed_words(most.against_start, other)
    return (f"{calls_words(race, other)}. The best there is {_beside_largest(race, most)}"
            f"{f': {said[0].lower()}{said[1:]}' if said else ''}.")


def _largest_words(race: Race, subject: Setup | None = None) -> str:
    """Return the largest gain, which may be chance, with the other measure; empty if nothing gains.

    Args:
        race: The race.
        subject: The search that the text is about; the largest gain by default.
    """
    first = next(iter(race.judged), None)
    if first is None or first.against_start is None or (gain := race.gain(first)).difference <= 0:
        return ""
    other = OTHER[race.serves]
    beside = measured_words(first.against_start.served(other), MEASURES[other])
    return " ".join(filter(None, (
        f"The largest gain, of {other_search(race, first.setup, subject or first.setup)}, may be chance "
        f"({interval_words(gain)}).", f"Beside that: {beside}.",
        sentence(changed_words(first.against_start, race.serves)))))


def reason_words(race: Race) -> str:
    """Return why the advice is preferred to others that do about as well; empty without any."""
    duel, largest, best = race.duel, race.largest, race.best
    if largest is None or best is None:
        return ""
    if duel is None:
        return "Why this search: its gain is the largest." if equals_of(race) else ""
    other = other_search(race, largest.setup, best.setup)
    if duel.comparison.served(race.serves).is_undervalued:
        higher = [of for of in race.certain if race.gain(of).difference > race.gain(best).difference]
        rated = other if len(higher) == 1 else f"{len(higher)} other searches, such as {other},"
        return (f"Why this search: judges rate {rated} higher, but in tests with known classes they rated searches "
                "like this one too low, and it is simpler.")
    return f"Why this search: it is simpler than {other}, and the judges see no clear difference between the two."


def equals_of(race: Race) -> list[Outcome]:
    """Return the other certain candidates that do about as well as the advice, the simplest first.

    The rule is the advice's own: where a direct comparison with the largest gain was made, it decides; else the gain of
    the advice lies within the candidate's interval. The largest gain itself is named elsewhere.
    """
    best, largest = race.best, race.largest
    if best is None or largest is None:
        return []
    direct = {duel.simpler: duel.is_level(race.serves) for duel in race.duels if duel.largest == largest.setup}
    gain = race.gain(best).difference
    equals = [other for other in race.certain if other not in (best, largest) and (
        direct[other.setup] if other.setup in direct else gain <= race.gain(other).wide.high)]
    return sorted(equals, key=lambda other: complexity(race.start, other.setup))


def alternative_of(race: Race) -> Outcome | None:
    """Return the candidate to offer beside the advice: without training, the largest gain, or the simplest equal.

    It is certain itself; None without one, or if the advice is not trained and no equal is simpler.
    """
    if race.best is None or race.best.setup.method == FROZEN:
        return simpler_equal(race)
    untrained = [other for other in race.certain if other.setup.method == FROZEN]
    return max(untrained, key=lambda other: race.gain(other).difference, default=None)


def simpler_equal(race: Race) -> Outcome | None:
    """Return the simplest candidate that does about as well as the advice; None if none is simpler than the advice."""
    equals = equals_of(race)
    if race.best is None or not equals:
        return None
    is_simpler = complexity(race.start, equals[0].setup) < complexity(race.start, race.best.setup)
    return equals[0] if is_simpler else None


def equals_words(race: Race) -> str:
    """Return how many other candidates do about as well as the advice, and the one to offer beside it; else nothing."""
    count, other = len(equals_of(race)), alternative_of(race)
    words = f"{counted(count, 'other candidate')} {'does' if count == 1 else 'do'} about as well" if count else ""
    if other is None or other.against_start is None or race.best is None:
        return words and f"{words}."
    name, gains = other_search(race, other.setup, race.best.setup), counts_words(race.gain(other), race.serves)
    if race.best.setup.method != FROZEN:
        best = f"Without training, the best is {name}{f' ({gains})' if gains else ''}."
        return f"{words}. {best}" if words else best
    return f"{words}{' and is simpler:' if count == 1 else '; the simplest of them is'} {name}."


def _equal_names(race: Race) -> str:
    """Return the candidates that do about as well as the advice by their steps, in a sentence; empty without any."""
    names = "; ".join(setup_words(race, other.setup) for other in equals_of(race))
    return names and f"About as good: {names}."


def _simplest_words(race: Race) -> str:
    """Return which still simpler candidates were not advised; empty without any."""
    duel, largest, best = race.duel, race.largest, race.best
    if duel is None or largest is None or best is None:
        return ""
    least = complexity(race.start, duel.simpler)
    less = (other for other in race.duels if other.largest == largest.setup and not other.is_level(race.serves)
            and complexity(race.start, other.simpler) < least)
    names = [other_search(race, other.simpler, best.setup) for other in less]
    if not names:
        return ""
    are, ending = ("are", "") if len(names) > 1 else ("is", "s")
    return (f"{capitalized(listed(names))} {are} simpler still, but gain{ending} less than "
            f"{other_search(race, largest.setup, best.setup)} in a direct comparison.")


def star_words(race: Race) -> str:
    """Return in a few words why the advice is not the largest gain that a chart shows; empty if it is."""
    best, rightmost = race.best, next(iter(race.judged), None)
    if best is None or rightmost is None or best == rightmost:
        return ""
    if race.duel is not None:
        known = "judges underrate it" if race.duel.comparison.served(race.serves).is_undervalued else (
            "no clear difference to the largest gain")
        return f"advised: simpler, {known}"
    if race.verdict(rightmost) == "better":
        return f"more to the right: loses in {MEASURES[OTHER[race.serves]]}"
    return "more to the right: may be chance"


def figure_line(race: Race, elsewhere: Elsewhere | None = None) -> str:
    """Return the intervals behind an advice for a small line beside its count; empty without an advice.

    Args:
        race: The race.
        elsewhere: What another race says of its best search, which may be the advice; None without such a race.
    """
    best = elsewhere.best if elsewhere is not None and elsewhere.wins(race) else race.best
    if best is None or best.against_start is None:
        return ""
    gain = best.against_start.served(race.serves)
    interval = better_interval(gain.count)
    better = f"{interval} of 100 better; " if interval else ""
    return (f"95 % intervals, {AT_ONCE}: {better}mean {interval_words(gain)}, of a query and its results as "
            "judges see them, on a scale from −1 to 1.")
