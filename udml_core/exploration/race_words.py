"""What a race says of its candidates: a plain sentence for each, who judged, and what pages show of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence

from udml_core.base.errors import capitalized, duration, listed
from udml_core.data.judge_names import WEAK
from udml_core.exploration.race import FROZEN, Outcome, Race
from udml_core.exploration.race_certainty import close_words, effort_of
from udml_core.exploration.race_figures import (
    MEASURES,
    both_words,
    chain_words,
    changed_words,
    counts_words,
    measured_words,
    verdict_words,
)
from udml_core.exploration.race_gaps import why_left_out
from udml_core.exploration.race_measured import Comparison, Serves
from udml_core.exploration.search_names import named_search

FEW_CHANGED = 0.2
"""An advice that changes a smaller share of the first results is a small change."""
UNDERRATED = "underrated"
FOUND = {"better": "find{} it better", "worse": "find{} it worse", "cannot tell": "see{} no clear difference",
         UNDERRATED: "find{} it worse, which does not count, as judges underrate such steps"}
"""What judges find, with the place of the ending of one judge's verb."""
KEPT = "kept for the next steps"
"""What is said of a candidate on which later candidates build."""
EXAMPLE = "timm:resnet50.a1_in1k"
"""A model that can judge after `pip install timm`."""
INSTALL = (f"Install timm (pip install timm) and name one of its models as a judge, as in udml advise DATASET --judges "
           f"{EXAMPLE}; a table of vectors of the same images judges too.")


def outcome_words(outcome: Outcome, race: Race) -> str:
    """Return a sentence on what became of a candidate, in comparison with the frozen features."""
    if outcome.state == "not tried":
        return (f"{outcome.name}: not tried, because it takes about {duration(outcome.seconds)}, and less time was "
                "left.")
    if outcome.state == "given up":
        return f"{outcome.name}: given up {why_left_out(outcome)}."
    if outcome.against_start is None or outcome.against_best is None:
        return f"{outcome.name}: not possible. {outcome.reason}"
    said = both_words(outcome.against_start, race.serves)
    return f"{chain_words(race, outcome.setup)}: {said}{f'; {KEPT}' if outcome.kept else ''}."


def left_out_lines(race: Race) -> list[str]:
    """Return which judges were left out, and which candidates were not judged and why, a line for each state."""
    lines = list(race.refused)
    for what, state in ((f"Not tried in {race.budget:g} minutes", "not tried"), ("Begun and given up", "given up"),
                        ("Not possible", "not possible")):
        names = [f"{outcome.name} ({why_left_out(outcome)})" for outcome in race.outcomes if outcome.state == state]
        lines += [f"{what}: {'; '.join(names)}."] if names else []
    return lines


def needs_eyes(race: Race) -> bool:
    """Return whether a reader should confirm the advice for first results before using it.

    It changes few of them, or it is a training: the benchmark knows none without labels that gains any.
    """
    best = race.best
    if race.serves != "first" or best is None or best.against_start is None:
        return False
    changed = best.against_start.changed
    return best.setup.method != FROZEN or (changed is not None and changed < FEW_CHANGED)


def is_unseen(race: Race) -> bool:
    """Return whether the advice for first results is a training whose gain a reader could not confirm by eye."""
    best = race.best
    return race.serves == "first" and best is not None and best.setup.method != FROZEN and (
        effort_of(race, best) == math.inf)


def brief_words(race: Race, outcome: Outcome) -> str:
    """Return the verdicts of a race on a judged candidate in a line, with the counts of images alone as figures."""
    of = outcome.against_start
    assert of is not None, "the candidate was judged"
    counts = {serves: counts_words(of.served(serves), serves) for serves in MEASURES}
    said = ", ".join(f"{verdict_words(of.served(serves), name)}{close_words(race, outcome) * (serves == race.serves)}"
                     f"{f' ({counts[serves]})' if counts[serves] else ''}" for serves, name in MEASURES.items())
    return f"{capitalized(named_search(race, outcome.setup))}, against the plain search, judged without labels: {said}."


def changed_sentence(of: Comparison, serves: Serves, is_hedged: bool = True) -> str:
    """Return how many results differ, and that a small gain needs a look; empty where that is not known.

    Args:
        of: The comparison.
        serves: What the search serves.
        is_hedged: Whether it says what the mean adds to counts whose order is not sure.
    """
    small = ": a small change, so confirm it by eye" if _is_small(of, serves) else ""
    return sentence(f"{changed_words(of, serves, is_hedged)}{small}")


def _is_small(of: Comparison, serves: Serves) -> bool:
    """Return whether a certain gain in first results changes few of them."""
    return serves == "first" and of.changed is not None and of.changed < FEW_CHANGED and of.first.said == "better"


def sentence(words: str) -> str:
    """Return words as a sentence; empty without words."""
    return words and f"{words}."


def race_judges_words(race: Race) -> str:
    """Return who judged a race, in a sentence; judges without a stored weight are named alone."""
    from udml_core.data.judging import judges_words  # loads encoders, for which the help must not wait

    of = [outcome.against_start for outcome in race.judged if outcome.against_start is not None]
    names = sorted({judge for comparison in of for judge in comparison.judges}, key=lambda name: (name in WEAK, name))
    if set(names) <= set(race.weights):
        return judges_words({name: race.weights[name] for name in names})
    return " and ".join(_judge_name(race, name) for name in names)


def decider_words(race: Race) -> str:
    """Return that one of several judges has enough weight to decide alone, in a sentence; empty if none has."""
    from udml_core.numerics.second_opinion import QUORUM  # here, because it loads torch and faiss

    total = sum(race.weights.values())
    name = max(race.weights, key=race.weights.__getitem__, default="")
    if len(race.weights) < 2 or race.weights[name] < QUORUM * total:
        return ""
    outside = "" if name in WEAK else ", a network that took no part"
    return f"One judge decides: {_judge_name(race, name)}{outside}."


def judge_lines(race: Race, outcome: Outcome) -> list[str]:
    """Return what each judge measured of a judged candidate, a line for each; empty with a single judge."""
    of = outcome.against_start
    alone = {} if of is None else of.by_judge
    order = sorted(alone, key=lambda name: -race.weights.get(name, 0.0)) if len(alone) > 1 else []
    return [f"{race.titles.get(name, name)}: {measured_words(alone[name][0], MEASURES['first'])}, "
            f"{measured_words(alone[name][1], MEASURES['groups'])}." for name in order]


def dissent_words(race: Race, outcome: Outcome) -> str:
    """Return which judges find a search better and which do not, in a sentence; empty if all find it better."""
    of = outcome.against_start
    alone = {} if of is None else of.by_judge
    by_verdict: dict[str, list[str]] = {verdict: [] for verdict in FOUND}
    for name in sorted(alone, key=lambda name: -race.weights.get(name, 0.0)):
        of_judge = alone[name][race.serves == "groups"]
        by_verdict[UNDERRATED if of_judge.is_undervalued else of_judge.said].append(name)
    if not by_verdict["better"] or len(by_verdict["better"]) == len(alone):
        return ""
    called = {name: f"{_judge_name(race, name)}{', a weak judge,' * (name in WEAK)}" for name in alone}
    said = [f"{listed([called[name] for name in names])} {FOUND[verdict].format(_ending(names))}"
            for verdict, names in by_verdict.items() if names]
    return f"Not all judges agree: {'; '.join(said)}."


def _judge_name(race: Race, name: str) -> str:
    return "the raw pixels" if name in WEAK else race.titles.get(name, name)


def _ending(names: Sequence[str]) -> str:
    """Return the ending of a verb of which judges are the subject; raw pixels are several."""
    return "" if len(names) > 1 or names[0] in WEAK else "s"


def searched_words(race: Race, outcome: Outcome) -> str:
    """Return what a race said of a judged candidate in both measures, for pages that show its run."""
    of = outcome.against_start
    assert of is not None, "the candidate was judged"
    said = both_words(of, "first")
    return " ".join(filter(None, (
        f"The race for the best search compared {named_search(race, outcome.setup)} with the plain search, without "
        f"labels: {said}.", _change_words(of))))


def _change_words(of: Comparison) -> str:
    """Return what the verdicts leave out: how many first results change if no count says it, or that few change."""
    if of.better is None:
        return changed_sentence(of, "first")
    return "It is a small change, so confirm it by eye." if _is_small(of, "first") else ""


def caution_words(race: Race) -> str:
    """Return what the benchmark measured with labels of the method that is advised; empty if none is trained."""
    from udml_core.results.label_free import record_words  # reads the benchmark, for which the help must not wait

    if race.best is None or race.best.setup.method == FROZEN:
        return ""
    method = race.best.setup.method
    words = record_words(method, race.titles.get(method, method))
    confirm = " So look before you use it." if race.serves == "first" else ""
    return words and f"{words} Your images may differ.{confirm}"


def no_judge_words(title: str, other: str = "") -> str:
    """Return why no judge can compare searches, and what to install.

    Args:
        title: The encoder of the frozen features.
        other: Another encoder that would be compared with it; empty for refinements of the same encoder.
    """
    if not other:
        return f"Cannot tell: {title} took part in every search, and no other encoder judges. {INSTALL}"
    return f"Every judge took part in {title} or {other}, and none judges itself. {INSTALL}"
