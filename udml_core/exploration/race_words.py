"""What a race says: one plain sentence for each candidate, and the advice at its end."""

from __future__ import annotations

from udml_core.base.errors import duration
from udml_core.data.judge_names import WEAK
from udml_core.exploration.race import FROZEN, Comparison, Outcome, Race, Serves, complexity, refines_at_hand
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
    verdict_words,
)
from udml_core.exploration.race_gaps import gap_words

FEW_CHANGED = 0.2
"""An advice that changes a smaller share of the first results is a small change."""
AT_HAND = ("It was judged on the images at hand, which it refines with each other: what new images gain was not "
           "measured, and images that you add need a new refinement.")
"""What an advice that refines the images at hand means for new images."""
EXAMPLE = "timm:resnet50.a1_in1k"
"""A model that can judge after `pip install timm`."""
INSTALL = (f"Install timm (pip install timm) and name one of its models as a judge, as in udml advise DATASET --judges "
           f"{EXAMPLE}; a table of vectors of the same images judges too.")


def outcome_words(outcome: Outcome, race: Race, is_done: bool = True) -> str:
    """Return a sentence on what became of a candidate, in comparison with the frozen features.

    Args:
        outcome: The candidate.
        race: Its race.
        is_done: Whether the race is finished, so that its advice does not change.
    """
    if outcome.state == "not tried":
        return f"{outcome.name}: not tried, because the time was used up; it takes about {duration(outcome.seconds)}."
    if outcome.state == "given up":
        return f"{outcome.name}: given up after {duration(outcome.seconds)}, because it took too long."
    if outcome.against_start is None or outcome.against_best is None:
        return f"{outcome.name}: not possible. {outcome.reason}"
    hint = scope_words(outcome.setup)
    return (f"{chain_words(race, outcome.setup)}{f' ({hint})' if hint else ''}: "
            f"{both_words(outcome.against_start, race.serves, race.count)}; {decision_words(outcome, race, is_done)}.")


def decision_words(outcome: Outcome, race: Race, is_done: bool = True) -> str:
    """Return whether a judged candidate is advised, whether later candidates build on it, and why not."""
    before, best = outcome.against_best, race.best if is_done else None
    if best is not None and outcome.setup == best.setup:
        return f"this is the advice{', and later candidates build on it' if outcome.kept else ''}"
    if outcome.kept:
        is_longer = race.duel is not None and best is not None and (
            complexity(race.start, best.setup) < complexity(race.start, outcome.setup))
        return (f"later candidates build on it, but the advice is simpler: the judges cannot tell "
                f"{setup_words(race, best.setup)} from the largest gain" if is_longer and best is not None
                else "later candidates build on it")
    if before is None or before == outcome.against_start:
        return "not kept"
    match before.served(race.serves).verdict:
        case "worse":
            return "not kept, because it is worse than the steps kept before"
        case "cannot tell":
            return "not kept, because it gains nothing certain over the steps kept before"
    return "not kept, because the other measure loses more than this measure gains"


def advice_words(race: Race, is_done: bool = True, elsewhere: Elsewhere | None = None) -> str:
    """Return the advice in a few sentences; see `advice_sentences`."""
    return " ".join(advice_sentences(race, is_done, elsewhere))


def advice_sentences(race: Race, is_done: bool = True, elsewhere: Elsewhere | None = None) -> list[str]:
    """Return the advice, and then what a reader must know of it.

    Args:
        race: The race.
        is_done: Whether it is finished.
        elsewhere: What another race of the same images says of its best search; None without such a race.
    """
    if elsewhere is not None and elsewhere.wins(race):
        return [f"Best search, found by {elsewhere.name}: {elsewhere.search}.",
                f"Compared with the frozen features: {elsewhere.figures(race)}.",
                f"This race alone has no clear winner. {_largest_words(race)} {gap_words(race)}".rstrip()]
    said = _own_sentences(race, is_done)
    return said if elsewhere is None else [*said, elsewhere.words(race)]


def _own_sentences(race: Race, is_done: bool) -> list[str]:
    """Return the advice of a race without a look at others."""
    if race.reason:
        return [race.reason]
    gaps = gap_words(race) if is_done else ""
    best = race.best
    if not race.is_judged:
        said = ["No candidate was judged in this time.", gaps or "Allow more minutes."] if is_done else [
            "No candidate is judged yet."]
    elif best is None:
        said = [*_no_winner_sentences(race, is_done), gaps]
    else:
        assert best.against_start is not None, "the advice was judged"
        headline, changed = (f"Best search{'' if is_done else ' so far'}: {setup_words(race, best.setup)}.",
                             _changed_words(best.against_start, race.serves, race.count))
        if race.serves == "first" and best.against_start.better is not None:  # what a reader wants to know at once
            headline, changed = f"{headline} {changed}", ""
        said = [headline, _simpler_words(race), "Compared with the frozen features: "
                f"{both_words(best.against_start, race.serves, race.count)}.", changed,
                AT_HAND if refines_at_hand(best.setup) else "", gaps]
    return [sentence for sentence in said if sentence]


def is_small(race: Race) -> bool:
    """Return whether the advice changes few first results, which a reader should confirm before using it."""
    best = race.best
    changed = None if best is None or best.against_start is None else best.against_start.changed
    return race.serves == "first" and changed is not None and changed < FEW_CHANGED


def _no_winner_sentences(race: Race, is_done: bool) -> list[str]:
    """Return that no gain over the frozen features is certain, with the largest."""
    first, count = race.judged[0], race.count
    gain = race.gain(first)
    if gain.difference <= 0:
        return ["Nothing beats the frozen features: search with these." if is_done else
                "Nothing has beaten the frozen features yet."]
    if not is_done:
        return ["No clear winner yet."]
    return ["No clear winner: keep the frozen features.",
            outcome_words(first, race) if gain.is_certain(count) else _largest_words(race)]


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
    between = interval_words(duel.comparison.served(race.serves))
    return (f"It is as good as the larger gain of {setup_words(race, largest.setup)}, as far as the judges can tell "
            f"({between} between the two), and simpler.")


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
