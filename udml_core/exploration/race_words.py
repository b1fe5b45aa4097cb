"""What a race says: one plain sentence for each candidate, and the advice at its end."""

from __future__ import annotations

from collections.abc import Mapping

from udml_core.base.errors import duration
from udml_core.exploration.race import FROZEN, Comparison, Measured, Outcome, Race, Serves, Setup, step_title

MEASURES: Mapping[Serves, str] = {"first": "first results", "groups": "whole groups"}
EXAMPLE = "timm:resnet50.a1_in1k"
"""A model that can judge after `pip install timm`."""
INSTALL = (f"Install timm (pip install timm) and name one of its models as a judge, as in udml advise DATASET --judges "
           f"{EXAMPLE}; a table of vectors of the same images judges too.")


def outcome_words(outcome: Outcome, serves: Serves) -> str:
    """Return a sentence on what became of a candidate, in comparison with the best search before it."""
    if outcome.state == "not tried":
        return f"{outcome.name}: not tried, because it takes about {duration(outcome.seconds)}."
    if outcome.state == "given up":
        return f"{outcome.name}: given up after {duration(outcome.seconds)}, at the end of the time."
    if outcome.against_best is None:
        return f"{outcome.name}: not possible. {outcome.reason}"
    hint = scope_words(outcome.setup)
    return (f"{outcome.name}{f' ({hint})' if hint else ''}: {comparison_words(outcome.against_best, serves)}; "
            f"{'kept' if outcome.kept else 'not kept'}.")


def comparison_words(comparison: Comparison, serves: Serves) -> str:
    """Return the verdict on the served measure, and on the other if it decided or had a price."""
    served, other = comparison.served(serves), comparison.other(serves)
    words = measured_words(served, MEASURES[serves])
    if served.verdict != "better" or other.verdict != "worse":
        return words
    name = MEASURES["groups" if serves == "first" else "first"]
    joint = "and" if comparison.earns_its_place(serves) else "but"
    amount = "less" if joint == "and" else "more"
    return f"{words}, {joint} {name} lose {amount} ({interval_words(other)})"


def measured_words(measured: Measured, name: str) -> str:
    """Return the verdict on one measure with its difference and 95 % interval."""
    if measured.verdict != "cannot tell":
        return f"{measured.verdict} {name} ({interval_words(measured)})"
    agree = measured.low <= 0 <= measured.high
    return f"{'no clear difference in' if agree else 'the judges disagree on'} {name} ({interval_words(measured)})"


def interval_words(measured: Measured) -> str:
    """Return a difference with its 95 % interval, such as `+0.021, 0.016 to 0.026`."""
    low, high = (f"{value:.3f}".replace("-", "−") for value in (measured.low, measured.high))
    return f"{measured.difference:+.3f}, {low} to {high}".replace("-", "−")


def scope_words(setup: Setup) -> str:
    """Return for which images a search is improved: those at hand, or new images too."""
    steps = setup.parsed.steps
    if any(step.sees == "gallery" for step in steps):
        return "refines the images at hand"
    return "applies to new images" if steps or setup.method != FROZEN else ""


def advice_words(race: Race, is_done: bool = True) -> str:
    """Return the advice in one or two sentences.

    Args:
        race: The race.
        is_done: Whether it is finished.
    """
    if race.reason:
        return race.reason
    if not race.is_judged:
        return "No candidate was judged in this time. Allow more minutes." if is_done else "No candidate is judged yet."
    best = race.best
    if best is None:
        return "Nothing beats the frozen features: search with these." if is_done else (
            "Nothing has beaten the frozen features yet.")
    assert best.against_start is not None, "a kept candidate was judged"
    words = measured_words(best.against_start.served(race.serves), MEASURES[race.serves])
    so_far = "" if is_done else " so far"
    return f"Best search{so_far}: {setup_words(race, best.setup)}. Compared with the frozen features: {words}."


def setup_words(race: Race, setup: Setup) -> str:
    """Return a search in words: encoder and method where the start has others, then the steps in order."""
    names = [race.titles.get(name, name) for name, own in ((setup.backbone, race.start.backbone),
                                                           (setup.method, FROZEN)) if name != own]
    titles = [step_title(step) for step in setup.parsed.steps]
    steps = [title if title.startswith("k-") else title[0].lower() + title[1:] for title in titles]
    return ", then ".join([*names, *steps]) or "frozen features"


def no_judge_words(title: str, other: str = "") -> str:
    """Return why no judge can compare searches, and what to install.

    Args:
        title: The encoder of the frozen features.
        other: Another encoder that would be compared with it; empty for refinements of the same encoder.
    """
    if not other:
        return f"Cannot tell: {title} took part in every search, and no other encoder judges. {INSTALL}"
    return f"Every judge took part in {title} or {other}, and none judges itself. {INSTALL}"
