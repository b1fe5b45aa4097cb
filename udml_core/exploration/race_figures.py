"""What a comparison of two searches says in words: its verdicts, its figures, and the searches themselves."""

from __future__ import annotations

import math
from collections.abc import Mapping

from udml_core.base.errors import capitalized
from udml_core.exploration.plain_names import new_image_words
from udml_core.exploration.race import FROZEN, Race, Setup
from udml_core.exploration.race_measured import Comparison, Count, Measured, Serves
from udml_core.exploration.race_running import refines_at_hand, step_title
from udml_core.numerics.refinement import Recipe

MEASURES: Mapping[Serves, str] = {"first": "first results", "groups": "whole groups"}
HEADINGS: Mapping[Serves, str] = {"first": "First result", "groups": "Whole group"}
SAID: Mapping[str, str] = {"better": "better", "worse": "worse", "cannot tell": "no clear difference"}
"""What pages and texts say of each verdict."""
OTHER: Mapping[Serves, Serves] = {"first": "groups", "groups": "first"}
"""The measure that a search does not serve."""
COUNTED: Mapping[Serves, str] = {
    "first": "The judges look at the first result of each image in both searches. The better result is nearer to the "
             "image, as they see it.",
    "groups": "The judges look at the results of each image in both searches. The better group is nearer to the image "
              "on average, as they see it. A group counts as nearly the same if fewer than one in ten of its images "
              "is another."}
"""How images are counted, for each measure."""
BY_LOOKS = "by looks, not by species or class"
"""How judges tell which group of results is better."""


def group_size_words(group: int) -> str:
    """Say how many results a whole group has for the judges and for people; empty if an earlier version judged.

    Args:
        group: The number for the judges.
    """
    if not group:
        return ""
    return (f"A judge looks at the first {group} results: it sees about {group} images near a typical image. "
            "Where you judge by eye, you see a few of those in which the two searches differ.")


FEWER, MORE = 17, 14
"""In tests with known classes: how many fewer and more of 100 groups were better by class than the judges said."""
BY_CLASSES = ("**A judge compares looks only.** Tests with known classes counted by class, too: "
              f"{FEWER} fewer to {MORE} more of 100 groups were better than judges said, and in each test more got "
              "better than worse.")
"""What limits a count of groups; `assets/results/second-opinion.json` holds the tests."""
UNTOLD = "no verdict"
"""What stands in place of a verdict that is not told."""
UNDERVALUED = ", but judges underrate this kind of search"
"""What follows the figures of a difference that is not told."""
NO_VERDICT = ("**No verdict:** judges underrate searches that compare neighbors, such as averaging and re-ranking. "
              "What they called worse for it was often better in tests with known classes. Judge it by eye.")
"""What a difference means that is not told."""
AT_ONCE = "for all candidates at once"
"""For what the intervals of a race hold."""
ROUNDING = 1e-9
"""Ends of intervals are rounded outward, unless they are whole numbers up to this."""


def both_words(comparison: Comparison, serves: Serves, is_exact: bool = False) -> str:
    """Return the verdicts on both measures with their counts, the served measure first; see `measured_words`."""
    served, other = comparison.served(serves), comparison.other(serves)
    words = ", ".join((measured_words(served, MEASURES[serves], is_exact),
                       measured_words(other, MEASURES[OTHER[serves]], is_exact)))
    if (served.said, other.said) != ("better", "worse"):
        return words
    amount = "less" if comparison.earns_its_place(serves) else "more"
    return f"{words}, which lose {amount} than {MEASURES[serves]} gain"


def measured_words(measured: Measured, name: str, is_exact: bool = False) -> str:
    """Return the verdict on one measure, and how many of 100 searches gain and lose.

    Args:
        measured: What the judges measured.
        name: The measure.
        is_exact: Whether the mean difference follows the counts; it stands alone where no count is known.
    """
    counts, exact = counts_words(measured), f"; {gain_words(measured)}" if is_exact else ""
    doubt = UNDERVALUED if measured.is_undervalued else ""
    return f"{verdict_words(measured, name)} ({f'{counts}{exact}' if counts else f'{interval_words(measured)}{doubt}'})"


def said_of_measured(serves: Serves, verdict: str, measured: Measured) -> str:
    """Return a verdict on one measure with its count, such as "First result: better (of 100 searches 9 …)".

    Args:
        serves: The measure.
        verdict: The verdict.
        measured: What the judges measured.
    """
    counts = counts_words(measured, serves)
    said = said_word(measured) if verdict == measured.said else SAID[verdict]
    return f"{HEADINGS[serves]}: {said}{f' ({counts})' if counts else ''}"


def said_word(measured: Measured) -> str:
    """Return the verdict on one measure in a word or two."""
    return UNTOLD if measured.is_undervalued else SAID[measured.said]


def by_class_words(measured: Measured) -> str:
    """Return how a count of better groups must be read, for the place beside it; empty if it is unknown, or no gain.

    Args:
        measured: What the judges measured of whole groups.
    """
    ends = _by_class(measured)
    return f"by species or class, {ends[1]} to {ends[2]} may get better" if ends else ""


def by_class_note(measured: Measured) -> str:
    """Return the same beside a bar that shows the count; see `by_class_words`."""
    ends = _by_class(measured)
    return f"counted by species or class, the {ends[0]} may be {ends[1]} to {ends[2]}" if ends else ""


def _by_class(measured: Measured) -> tuple[int, int, int] | None:
    """Return how many of 100 groups get better, and at least and at most by class; None if unknown, or no gain."""
    count = measured.count
    if count is None or count.better is None or count.worse is None or count.better <= count.worse:
        return None
    better = round(100 * count.better)
    return better, max(0, better - FEWER), min(100, better + MORE)


def counts_words(measured: Measured, serves: Serves = "first") -> str:
    """Return how many of 100 searches get better and worse results; empty if unknown.

    Args:
        measured: What the judges measured.
        serves: The measure. Counts of whole groups are followed by what limits them.
    """
    count = measured.count
    if count is None or count.better is None or count.worse is None:
        return ""
    better = _of_100(count.better)
    return (f"of 100 searches {better} {'gets' if better == '1' else 'get'} better, {_of_100(count.worse)} worse"
            f"{balance_words(measured)}{_limit_words(measured, serves)}")


def _limit_words(measured: Measured, serves: Serves) -> str:
    """Return what limits a count, to stand behind it; empty for first results."""
    limit = by_class_words(measured) if serves == "groups" else ""
    return f"; {limit}" if limit else ""


def balance_words(measured: Measured) -> str:
    """Say why a count that leans to one side makes no verdict: the mean difference does not follow it, surely."""
    wide, count = measured.wide, measured.wide.count
    if measured.is_undervalued:
        return UNDERVALUED
    if count is None:
        return ""
    gain = 1 if measured.difference > 0 else -1
    if count.leans == gain and wide.low <= 0 <= wide.high:
        return ", but the difference on average may be chance"
    if count.leans == -gain:
        larger, smaller = ("gains", "losses") if gain > 0 else ("losses", "gains")
        return f", but the {larger} are larger than the {smaller}"
    return ""


def shares(measured: Measured) -> tuple[int, int, int] | None:
    """Return of how many of 100 searches the results get better, stay, and get worse; None if it is not known."""
    count = measured.count
    if count is None or count.better is None or count.worse is None:
        return None
    better, worse = round(100 * count.better), round(100 * count.worse)
    return better, max(0, 100 - better - worse), worse


def count_cell(measured: Measured) -> str:
    """Return of how many of 100 images the results get better, with its interval, and worse, for a table."""
    count = measured.count
    if count is None or count.better is None or count.worse is None:
        return "unknown"
    interval = better_interval(count)
    return (f"{_of_100(count.better)}{interval and f' ({interval})'} better, {_of_100(count.worse)} worse"
            f"{balance_words(measured)}")


def better_interval(count: Count | None) -> str:
    """Return the interval of how many of 100 images get better results, such as `52 to 64`; empty if unknown."""
    count = count and count.wide
    if count is None or count.low is None or count.high is None:
        return ""
    return f"{math.floor(100 * count.low + ROUNDING)} to {math.ceil(100 * count.high - ROUNDING)}"


def verdict_words(measured: Measured, name: str) -> str:
    """Return the verdict on one measure, such as "no clear difference in first results"."""
    if measured.said != "cannot tell":
        return f"{measured.said} {name}"
    if measured.is_undervalued:
        return f"{UNTOLD} on {name}"
    wide = measured.wide
    agree = wide.low <= 0 <= wide.high or not wide.is_borne_out
    return f"{'no clear difference in' if agree else 'the judges disagree on'} {name}"


def interval_words(measured: Measured) -> str:
    """Return a difference with its interval and its start, such as `similarity 0.281 → 0.302: +0.021, 0.016 to 0.026`.

    Races of earlier versions did not store the start.
    """
    start = similarity_words(measured, " → ")
    return f"{start and f'similarity {start}: '}{gain_words(measured)}"


def gain_words(measured: Measured) -> str:
    """Return a difference with its interval, such as `+0.021, 0.016 to 0.026`."""
    low, high = (figure_words(value) for value in (measured.wide.low, measured.wide.high))
    return f"{figure_words(measured.difference, '+')}, {low} to {high}"


def similarity_words(measured: Measured, between: str) -> str:
    """Return the similarities of both searches with words between them; empty if they are not known.

    The second is the sum of the first and the difference as they are shown, so that a reader who adds finds it.
    """
    if measured.before is None or measured.after is None:
        return ""
    after = round(measured.before, 3) + round(measured.difference, 3)
    return f"{figure_words(measured.before)}{between}{figure_words(after)}"


def figure_words(value: float, sign: str = "-") -> str:
    """Return a difference with three decimals, or with four if it would look like 0; 0 has no sign.

    Args:
        value: The difference.
        sign: `+` to write the sign of a gain, too.
    """
    digits = 4 if round(value, 3) == 0 else 3
    return f"{value:{sign}.{digits}f}".replace("-", "−") if round(value, digits) else "0.000"


def changed_words(of: Comparison, serves: Serves = "first", is_hedged: bool = True) -> str:
    """Return of how many of 100 images the results get better, worse, and stay; how many change; empty if unknown."""
    count = of.count(serves)
    if count is None:
        return ""
    if count.better is None or count.worse is None:
        what = "first result" if serves == "first" else "group of results"
        return f"It changes the {what} of {100 * count.changed:.0f} % of images"
    better, worse, same = _of_100(count.better), _of_100(count.worse), 100 - sum(
        round(100 * share) for share in (count.better, count.worse))
    verb, what, rest = ("find", "first image", "the same one") if serves == "first" else (
        "get", "group of results", "nearly the same group")
    return (f"Of 100 searches, {better} {verb}{'s' * (better == '1')} a better {what}, {worse} a worse one, and "
            f"{max(0, same)} {rest}, as the judges see it, {BY_LOOKS}"
            f"{balance_words(of.served(serves)) if is_hedged else ''}{_limit_words(of.served(serves), serves)}")


def _of_100(share: float) -> str:
    """Return how many of 100 a share is, such as 9 or fewer than 1."""
    return f"{100 * share:.0f}" if round(100 * share) or not share else "fewer than 1"


def said_words(first: str, groups: str) -> str:
    """Return two verdicts in words, such as "better first results, no clear difference in whole groups"."""
    return ", ".join(f"{SAID[said]}{' in' * (said == 'cannot tell')} {name}"
                     for said, name in ((first, MEASURES["first"]), (groups, MEASURES["groups"])))


def scope_words(setup: Setup) -> str:
    """Return what a search means for new images; empty for the frozen features."""
    if not setup.recipe and setup.method == FROZEN:
        return ""
    return new_image_words(refines_at_hand(setup))


def setup_words(race: Race, setup: Setup, is_brief: bool = False) -> str:
    """Return a search in words: encoder and method where the start has others, then the steps in order.

    Args:
        race: The race.
        setup: The search.
        is_brief: Whether the steps are named without their numbers.
    """
    names = [race.titles.get(name, name) for name, own in ((setup.backbone, race.start.backbone),
                                                           (setup.method, FROZEN)) if name != own]
    return ", then ".join([*names, *_steps(setup.parsed, is_brief)]) or "the plain search"


def chain_words(race: Race, setup: Setup) -> str:
    """Return a search in words at the beginning of a sentence."""
    return capitalized(setup_words(race, setup))


def recipe_words(recipe: Recipe, is_sentence: bool = False, is_brief: bool = False) -> str:
    """Return the steps of a recipe in words, such as "whitening, then averaging with 10 neighbors".

    Args:
        recipe: The recipe.
        is_sentence: Whether the words begin a sentence.
        is_brief: Whether the steps are named without their numbers.
    """
    words = ", then ".join(_steps(recipe, is_brief))
    return capitalized(words) if is_sentence else words


def _steps(recipe: Recipe, is_brief: bool = False) -> list[str]:
    titles = [step_title(step, is_brief) for step in recipe.steps]
    return [title[0].lower() + title[1:] for title in titles]
