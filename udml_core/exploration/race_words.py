"""What a race says: one plain sentence for each candidate, and the advice at its end."""

from __future__ import annotations

from udml_core.base.errors import duration
from udml_core.data.judge_names import WEAK
from udml_core.exploration.race import FROZEN, Comparison, Outcome, Race, Serves, refines_at_hand
from udml_core.exploration.race_elsewhere import Elsewhere
from udml_core.exploration.race_figures import (
    MEASURES,
    OTHER,
    both_words,
    chain_words,
    changed_words,
    interval_words,
    measured_words,
    scope_words,
    setup_words,
    similarity_words,
    verdict_words,
)
from udml_core.exploration.race_gaps import LATE, gap_words

FEW_CHANGED = 0.2
"""An advice that changes a smaller share of the first results is a small change."""
AT_HAND = ("It was judged on the images at hand, which it refines with each other: what new images gain was not "
           "measured, and images that you add need a new refinement.")
"""What an advice that refines the images at hand means for new images."""
KEPT = "kept for the next steps"
"""What is said of a candidate on which later candidates build."""
EXAMPLE = "timm:resnet50.a1_in1k"
"""A model that can judge after `pip install timm`."""
INSTALL = (f"Install timm (pip install timm) and name one of its models as a judge, as in udml advise DATASET --judges "
           f"{EXAMPLE}; a table of vectors of the same images judges too.")


def outcome_words(outcome: Outcome, race: Race) -> str:
    """Return a sentence on what became of a candidate, in comparison with the frozen features."""
    if outcome.state == "not tried":
        return f"{outcome.name}: not tried, because the time was used up; it takes about {duration(outcome.seconds)}."
    if outcome.state == "given up":
        return f"{outcome.name}: given up after {duration(outcome.seconds)}, because it took too long."
    if outcome.against_start is None or outcome.against_best is None:
        return f"{outcome.name}: not possible. {outcome.reason}"
    hint = scope_words(outcome.setup)
    return (f"{chain_words(race, outcome.setup)}{f' ({hint})' if hint else ''}: "
            f"{both_words(outcome.against_start, race.serves, race.count)}{f'; {KEPT}' if outcome.kept else ''}.")


def advice_words(race: Race, is_done: bool = True, elsewhere: Elsewhere | None = None) -> str:
    """Return the advice in a few sentences; see `advice_sentences`."""
    return " ".join(advice_sentences(race, is_done, elsewhere))


def advice_sentences(race: Race, is_done: bool = True, elsewhere: Elsewhere | None = None) -> list[str]:
    """Return the advice, then what it means for a reader, then everything else.

    Args:
        race: The race.
        is_done: Whether it is finished.
        elsewhere: What another race of the same images says of its best search; None without such a race.
    """
    if elsewhere is not None and elsewhere.wins(race):
        assert elsewhere.best.against_start is not None, "the best search was judged"
        said = [f"Best search, found by {elsewhere.name}: {elsewhere.search}.",
                _meaning_words(elsewhere.best.against_start, race.serves, elsewhere.race.count),
                f"Compared with the frozen features: {elsewhere.figures(race)}.",
                f"This race alone has no clear winner. {_largest_words(race)}".rstrip(), gap_words(race)]
    else:
        said = [*_own_sentences(race, is_done), "" if elsewhere is None else elsewhere.words(race)]
    return [sentence for sentence in said if sentence]


def _own_sentences(race: Race, is_done: bool) -> list[str]:
    """Return the advice of a race without a look at others; some sentences may be empty."""
    if race.reason:
        return [race.reason]
    gaps = (gap_words(race) or _complete_words(race)) if is_done else ""
    best = race.best
    if not race.is_judged:
        return ["No candidate was judged in this time.", gaps or "Allow more minutes."] if is_done else [
            "No candidate is judged yet."]
    if best is None:
        return [*_no_winner_sentences(race, is_done), gaps]
    assert best.against_start is not None, "the advice was judged"
    return [f"Best search{'' if is_done else ' so far'}: {setup_words(race, best.setup)}.",
            _meaning_words(best.against_start, race.serves, race.count), _simpler_words(race),
            f"Compared with the frozen features: {both_words(best.against_start, race.serves, race.count)}.",
            _sentence(changed_words(best.against_start)) if race.serves == "groups" else "",
            AT_HAND if refines_at_hand(best.setup) else "", gaps]


def _meaning_words(of: Comparison, serves: Serves, candidates: int) -> str:
    """Return what an advice means for its user, in a sentence with the figure that can be pictured."""
    if serves == "first" and (said := _changed_words(of, serves, candidates)):
        return said
    words = f"{MEASURES[serves].capitalize()} are clearly better than with the frozen features"
    rise = similarity_words(of.served(serves), " to ")
    return (f"{words}: the mean similarity of a query and its results, in the judges' eyes, rises from {rise}, on a "
            "scale from −1 to 1." if rise else f"{words}, in the judges' eyes.")


def _complete_words(race: Race) -> str:
    """Return why a race ended before its time; empty if it did not."""
    is_complete = race.is_judged and all(outcome.state not in LATE for outcome in race.outcomes)
    return f"The race ended when every candidate was tried ({len(race.judged)})." if is_complete else ""


def is_small(race: Race) -> bool:
    """Return whether the advice changes few first results, which a reader should confirm before using it."""
    best = race.best
    changed = None if best is None or best.against_start is None else best.against_start.changed
    return race.serves == "first" and changed is not None and changed < FEW_CHANGED


def _no_winner_sentences(race: Race, is_done: bool) -> list[str]:
    """Return that no gain over the frozen features is certain, and the largest gain."""
    first, count = race.judged[0], race.count
    gain, name = race.gain(first), MEASURES[race.serves]
    if gain.difference <= 0:
        return ["Nothing beats the frozen features: search with these.",
                f"No candidate is better in {name}."] if is_done else ["Nothing has beaten the frozen features yet."]
    if not is_done:
        return ["No clear winner yet."]
    if gain.is_certain(count):
        return ["No clear winner: keep the frozen features.",
                f"What gains in {name} loses more in {MEASURES[OTHER[race.serves]]}.", outcome_words(first, race)]
    return ["No clear winner: keep the frozen features.",
            f"In {name}, no candidate is better than the frozen features beyond chance.", _largest_words(race)]


def _largest_words(race: Race) -> str:
    """Return the largest gain, which may be chance, with the other measure; empty if nothing gains."""
    first, count = next(iter(race.judged), None), race.count
    if first is None or first.against_start is None or (gain := race.gain(first)).difference <= 0:
        return ""
    among = f" among {count} candidates" if count > 1 else ""
    return " ".join(filter(None, (
        f"The largest gain, of {setup_words(race, first.setup)}, may be chance{among} "
        f"({interval_words(gain.among(count))}).",
        _other_words(first.against_start, race.serves, count),
        _sentence(changed_words(first.against_start)))))


def _other_words(of: Comparison, serves: Serves, candidates: int) -> str:
    """Return a sentence on the measure that the race does not serve."""
    said = measured_words(of.other(serves).among(candidates), MEASURES[OTHER[serves]])
    return f"Beside that: {said}."


def brief_words(race: Race, outcome: Outcome) -> str:
    """Return the verdicts of a race on a judged candidate in a line, without figures."""
    of = outcome.against_start
    assert of is not None, "the candidate was judged"
    said = ", ".join(verdict_words(measured.among(race.count), name) for measured, name in (
        (of.first, MEASURES["first"]), (of.groups, MEASURES["groups"])))
    return f"{chain_words(race, outcome.setup)}, against the frozen features, judged without labels: {said}."


def _changed_words(of: Comparison, serves: Serves, candidates: int) -> str:
    """Return how many first results differ, and that a small gain needs a look; empty where that is not known."""
    is_small = (serves == "first" and of.changed is not None and of.changed < FEW_CHANGED
                and of.first.is_certain(candidates))
    return _sentence(f"{changed_words(of)}{': a small change, so confirm it by eye' if is_small else ''}")


def _sentence(words: str) -> str:
    """Return words as a sentence; empty without words."""
    return words and f"{words}."


def _simpler_words(race: Race) -> str:
    """Return that the advice is preferred to a larger gain because it is simpler; empty if it is the largest gain."""
    duel, largest = race.duel, race.largest
    if duel is None or largest is None:
        return ""
    less = [f"{chain_words(race, other.simpler)} is simpler still, but gains clearly less." for other in race.duels
            if other.largest == largest.setup and not other.is_level(race.serves)]
    return " ".join((f"Simpler than {setup_words(race, largest.setup)}, and the judges see no clear difference between "
                     "the two.", *less))


def race_judges_words(race: Race) -> str:
    """Return who judged a race, in a sentence; judges without a stored weight are named alone."""
    from udml_core.data.judging import judges_words  # loads encoders, for which the help must not wait

    of = [outcome.against_start for outcome in race.judged if outcome.against_start is not None]
    names = sorted({judge for comparison in of for judge in comparison.judges}, key=lambda name: (name in WEAK, name))
    if set(names) <= set(race.weights):
        return judges_words({name: race.weights[name] for name in names})
    return " and ".join("the raw pixels" if name in WEAK else race.titles.get(name, name) for name in names)


def searched_words(race: Race, outcome: Outcome) -> str:
    """Return what a race said of a judged candidate in both measures, for pages that show its run."""
    of = outcome.against_start
    assert of is not None, "the candidate was judged"
    said = both_words(of, "first", race.count)
    return " ".join(filter(None, (
        f"The race for the best search compared {setup_words(race, outcome.setup)} with the frozen features, without "
        f"labels: {said}.", _changed_words(of, "first", race.count))))


def caution_words(race: Race) -> str:
    """Return what the benchmark measured with labels of the method that is advised; empty if none is trained."""
    from udml_core.results.label_free import record_words  # reads the benchmark, for which the help must not wait

    if race.best is None or race.best.setup.method == FROZEN:
        return ""
    method = race.best.setup.method
    words = record_words(method, race.titles.get(method, method))
    return words and f"Caution, measured with labels: {words[0].lower()}{words[1:]}"


def no_judge_words(title: str, other: str = "") -> str:
    """Return why no judge can compare searches, and what to install.

    Args:
        title: The encoder of the frozen features.
        other: Another encoder that would be compared with it; empty for refinements of the same encoder.
    """
    if not other:
        return f"Cannot tell: {title} took part in every search, and no other encoder judges. {INSTALL}"
    return f"Every judge took part in {title} or {other}, and none judges itself. {INSTALL}"
