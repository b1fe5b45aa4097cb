"""What blind judgments say, in words, the same in the app and on the command line."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from udml_core.base.errors import capitalized, counted, listed
from udml_core.exploration.race_conclusion import CANNOT_TELL, STAYS
from udml_core.numerics.judgments import Share
from udml_core.runs.search.differing import Comparison, Results
from udml_core.runs.search.judging import ENOUGH, FEW, MOST, Growth, Judging, Target

MOSTLY = 0.6
"""Share of enough judgments that find neither better, from which the two hardly differ."""
EVEN = 0.5
CLOSE = 50
"""Judgments that a smaller difference takes, about."""
DECIDE = f"they decide if one search is far better; a smaller difference takes {CLOSE} or more."
"""What the first judgments can do."""
PLAN = f"Judge {ENOUGH}: {DECIDE} Each answer is kept, so you can go on another day."
"""What is said before the first judgment; half of all sessions then decide if one is better in 4 of 5 queries."""
GROWN: dict[Growth | Literal[""], str] = {
    "": "", "less one-sided": " That is more than after {before}, because the answers since then are less one-sided.",
    "against each other": " That is more than after {before}, because all answers together are less one-sided now.",
    "not enough": " The first {known} did not suffice."}
"""Why a forecast has grown."""
RULED_OUT = "that is too one-sided for chance (95 % certainty)"
"""What is said of judgments that decide."""
CAN_STOP = "You can stop"
"""How words begin that end the judging of two searches that few judgments cannot tell apart."""
BLIND = ("one of the two", "one of the two")
"""The names of the embeddings while they are hidden."""
MORE_OF_THE_KIND = "Which of the two holds more images of the same kind as the query?"
QUESTIONS: dict[Results, str] = {"first": "Which image shows the same kind of thing as the query?",
                                 "ten": MORE_OF_THE_KIND, "group": MORE_OF_THE_KIND}
WHAT: dict[Results, str] = {"first": "first results", "ten": "the first ten results", "group": "whole groups"}
DIFFERS: dict[Results, tuple[str, str]] = {
    "first": ("differs", "differ"), "ten": ("differs in its first ten results", "differ in their first ten results"),
    "group": ("finds another group of results", "find other groups of results")}
"""What a query, and several, do."""
UNSURE = "unsure"
EQUAL = ("both right", "both wrong")
"""Why neither is better, in a count."""
BETTER: dict[Results, str] = {"first": "finds the better image", "ten": "finds the better ten results",
                               "group": "finds the better group"}


def differing_words(comparison: Comparison) -> str:
    """Say how many queries differ, such as "512 of 1,509 queries differ (34 %)"."""
    drawn = f", drawn from {comparison.images:,} images," if comparison.queries < comparison.images else ""
    verb = DIFFERS[comparison.results][len(comparison.differing) != 1]
    return (f"{len(comparison.differing):,} of {comparison.queries:,} queries{drawn} {verb} "
            f"({percent_words(comparison.share)} %){_changed_words(comparison)}")


def copies_words(comparison: Comparison) -> str:
    """Say that known copies of queries are left out, with a space behind; empty without copies.

    This is the rule by which the share of queries is defined, the same for both embeddings.
    """
    if not comparison.with_copies:
        return ""
    queries = f"{comparison.with_copies:,} {'query' if comparison.with_copies == 1 else 'queries'}"
    equal = ", and two copies of one image count as the same result" if comparison.results == "first" else ""
    return f"Known copies of a query ({queries}) are left out of the results of both{equal}. "


def _changed_words(comparison: Comparison) -> str:
    """Return in how many of their results differing queries differ on average; empty for first results."""
    if comparison.results == "first" or not len(comparison.differing):
        return ""
    return f", on average in {comparison.mean_changed:.1f} of {comparison.candidates.shape[-1]} images"


def result_words(share: Share, comparison: Comparison, names: tuple[str, str] = ("A", "B"), score: str = "") -> str:
    """Say in how many of the differing queries the leading embedding finds the better image or ten results.

    Args:
        share: The share in which B is better.
        comparison: The comparison.
        names: The names of A and B.
        score: The judgments by answer, which stand first; empty if several people judged.
    """
    if not share.count:
        return f"No judgments yet (differing: {percent_words(comparison.share)} % of all)"
    counts = f" ({score})" if score else ""
    return f"After {counted(share.count, 'judgment')}{counts}: {finding_words(share, comparison, names)}"


def finding_words(share: Share, comparison: Comparison, names: tuple[str, str] = ("A", "B")) -> str:
    """Say the same of at least one judgment, without the number of judgments; undecided words name no winner."""
    name, of_all = names[int(leads(share))], f"(differing: {percent_words(comparison.share)} % of all)"
    if not share.is_decided:
        return f"either may be better: {share_words(share, name)} {of_all}"
    return (f"{name} {BETTER[comparison.results]} in {interval_words(share)} % of the differing queries, an equal one "
            f"counted as half {of_all}")


def share_words(share: Share, name: str) -> str:
    """Return the interval of the leading embedding, which does not decide, with what it counts."""
    return f"with an equal answer as half, the share of {name} is {interval_words(share)} % of the differing queries"


def leads(share: Share) -> bool:
    """Return whether B leads, or is level."""
    return share.mean >= 0.5


def leading(share: Share) -> Share:
    """Return the share of the leading embedding."""
    return share if leads(share) else Share(share.count, 1 - share.mean, 1 - share.high, 1 - share.low)


def interval_words(share: Share) -> str:
    """Return the interval of the leading embedding in percent, rounded outward, such as "71 to 96".

    A tie that is ruled out is left out: "more than 50 and up to 99".
    """
    lead = leading(share)
    low, high = math.floor(100 * lead.low + 1e-6), math.ceil(100 * lead.high - 1e-6)
    if share.is_decided and low <= 100 * EVEN < 100 * lead.low:
        return f"more than {low} and up to {high}"
    return f"{low}" if low == high else f"{low} to {high}"


def percent_words(share: float) -> str:
    """Return a share in whole percent; with a decimal below 1 and above 99, unless it is 0 or 1."""
    percent = 100 * share
    return f"{percent:.0f}" if 1 <= percent <= 99 or percent in (0, 100) else f"{percent:.1f}"


def score_words(judging: Judging, judge: str, names: tuple[str, str] = ("A", "B")) -> str:
    """Return a judge's plain score, such as "8 of 10 for B, 1 for A, 1 equal (both right 1); 2 not sure".

    Args:
        judging: A session of the comparison.
        judge: The judge.
        names: The names of A and B.
    """
    score = judging.score(judge)
    equal, total = _equal_count(score), judging.decided(judge)
    (most, leader), (least, other) = sorted(zip((score["A"], score["B"]), names, strict=True),
                                            key=lambda side: -side[0])
    return ", ".join([f"{most} of {total} for {leader}", *([f"{least} for {other}"] if least else []),
                      *([equal_words(score)] if equal else [])]) + unsure_words(score)


def equal_words(score: Mapping[str, int]) -> str:
    """Return how many judgments find neither better, and why, such as "2 equal (both right 2)"."""
    why = ", ".join(f"{reason} {score[reason]}" for reason in EQUAL if score.get(reason))
    return f"{_equal_count(score)} equal{f' ({why})' if why else ''}"


def unsure_words(score: Mapping[str, int]) -> str:
    """Return how many answers are not sure, to stand behind the count of judgments, which leaves them out."""
    return f"; {score[UNSURE]} not sure" if score.get(UNSURE) else ""


def _equal_count(score: Mapping[str, int]) -> int:
    """Return how many judgments find neither better; an unsure answer does not count."""
    return sum(number for side, number in score.items() if side not in ("A", "B", UNSURE))


def count_words(judging: Judging, is_blind: bool = False) -> str:
    """Count the answers, such as "4 of 12 for A, 2 for B, 6 equal"; blind, without saying which fell together.

    Args:
        judging: The person's session.
        is_blind: Whether the embeddings are hidden.
    """
    if is_blind:
        score = judging.score(judging.judge)
        return (f"{judging.decided(judging.judge)} judged, {equal_words(score).replace(' equal', ' of them equal', 1)}"
                f"{unsure_words(score)}")
    return score_words(judging, judging.judge)


def agreement_words(judging: Judging) -> str:
    """Say how well several people agree on the queries that both of a pair have judged; empty without such a query."""
    of, people = judging.agreement(), judging.people()
    if not of.pairs:
        return ""
    queries = "query" if of.pairs == 1 else "queries"
    shared = f"{of.same} of {of.pairs} {queries} that both judged" if len(people) == 2 else (
        f"{of.same} of {of.pairs} shared answers, over all pairs of {len(people)} people")
    against = f"; on {of.opposite} they contradict each other" if of.opposite else ""
    return f"{listed(people) if len(people) == 2 else 'The judges'} agree on {shared}{against}."


def waiting_words(waiting: Mapping[str, int], meaning: str) -> str:
    """Say how many judgments wait because they were given under other words for the same.

    Args:
        waiting: The number of judgments by the words under which they were given.
        meaning: The current words.
    """
    given = listed([f"{counted(count, 'judgment')} {f'for {words}' if words else 'without words'}"
                    for words, count in waiting.items()])
    return f"Not counted under {f'the words {meaning}' if meaning else 'no words for the same'}: {given}."


def advice_words(judging: Judging, is_blind: bool = False, first: str = "A", has_plain: bool = False) -> str:
    """Say whether the person can stop, or how many judgments the answer needs; see `advice_parts`."""
    return " ".join(part for part in advice_parts(judging, is_blind, first, has_plain=has_plain) if part)


def advice_parts(judging: Judging, is_blind: bool = False, first: str = "A", names: tuple[str, str] = ("A", "B"),
                 has_plain: bool = False) -> tuple[str, str]:
    """Say in a short sentence whether the person can stop, and in a second text why.

    Args:
        judging: The person's session.
        is_blind: Whether the embeddings are hidden.
        first: The name of A, which is kept where judgments cannot tell the two apart; blind, neither is named.
        names: The names of A and B in the score.
        has_plain: Whether one of the two is the plain search, which is simpler than every other.
    """
    share, total = judging.share(judging.judge), len(judging.comparison.differing)
    score = "" if is_blind else f"{score_words(judging, judging.judge, names)}. "
    if not total:
        return "Nothing to judge: both searches find the same for every query.", ""
    if share.count == total:
        return (f"All {total:,} differing queries are judged{'' if share.is_decided else ': both are equally good'}.",
                score.strip())
    if share.is_decided:
        return "Decided: you can stop here.", f"{score}Chance is ruled out with 95 % certainty."
    if not share.count:
        return "Not decided yet: nothing is judged.", PLAN
    said = score.strip() or f"{count_words(judging, is_blind)}."
    decided = judging.decided(judging.judge)
    if decided < min(ENOUGH, total):
        so_far = f"{progress_words(judging)} judged"
        return "Not decided yet.", said.replace(f"{decided} judged", so_far, 1) if is_blind else f"{so_far}: {said}"
    if level := level_words(judging):
        stop = f"{CAN_STOP}." if is_blind else stop_words(share, first, has_plain)
        return f"{decided} judgments {level}. {stop}", said
    target = judging.target()
    return "Not decided yet.", f"{said} {target_words(target, total)}" if target else said


def progress_words(judging: Judging) -> str:
    """Return how far a session is in the first judgments, such as "12 of 20"; later, the number of judgments."""
    count, plan = judging.decided(judging.judge), min(ENOUGH, len(judging.comparison.differing))
    return f"{count} of {plan}" if count < plan else f"{count}"


def stop_words(share: Share, first: str, has_plain: bool = False) -> str:
    """Return in a sentence that judging can stop, and what to keep: never a search that is behind or less simple.

    Args:
        share: The share in which B is better.
        first: The name of A, with which the user searches now.
        has_plain: Whether one of the two is the plain search.
    """
    if has_plain:
        return f"{CAN_STOP}. {STAYS}"
    return f"{CAN_STOP}; either will do." if share.mean > EVEN else f"{CAN_STOP}, and keep {first}."


def level_words(judging: Judging) -> str:
    """Return what judgments say that more are not worth the time for, as a predicate; empty if more could decide."""
    score, decided = judging.score(judging.judge), judging.decided(judging.judge)
    if decided >= ENOUGH and _equal_count(score) >= MOSTLY * decided:
        return f"{CANNOT_TELL}; most results were equal"
    return f"{CANNOT_TELL}; {_more_words(len(judging.comparison.differing))}" if judging.is_hopeless else ""


def _more_words(queries: int) -> str:
    return f"more than {MOST} would be needed" if queries > MOST else f"all {queries} queries would not decide either"


def result_parts(judging: Judging, names: tuple[str, str], has_plain: bool = False) -> tuple[str, str]:
    """Return the result of judgments in a sentence, and how sure it is in another.

    Args:
        judging: The person's session.
        names: The names of A and B.
        has_plain: Whether one of the two is the plain search.
    """
    share, comparison = judging.share(judging.judge), judging.comparison
    what, why = advice_parts(judging, first=names[0], names=names, has_plain=has_plain)
    if not share.count:
        return what, why
    if share.is_decided:
        return (f"{capitalized(names[int(leads(share))])} {BETTER[comparison.results]} more often. {CAN_STOP}.",
                f"How sure: {score_words(judging, judging.judge, names)}; {RULED_OUT}.")
    name = names[int(leads(share))]
    return what, f"How sure: {why.removesuffix('.')}; {share_words(share, name)}."


def target_words(target: Target, queries: int) -> str:
    """Return a forecast in a sentence, and why it has grown, such as "About 40 judgments in all could decide, …".

    Args:
        target: The forecast.
        queries: Number of differing queries.
    """
    if target.total is None:
        return f"{capitalized(_more_words(queries))}."
    # The first forecast is that after enough judgments: nothing that was shown has grown before.
    growth = target.growth if target.known > ENOUGH else ""
    grown = GROWN[growth].format(known=target.known, before=target.known - FEW)
    return (f"About {target.total} judgments in all could decide, if the next answers are like the first "
            f"{target.known}.{grown}")


def could_decide_words(judging: Judging) -> str:
    """Return how many judgments could decide, in a sentence; of several people it says no number."""
    people = judging.people()
    if len(people) != 1:
        return "more judgments could decide."
    own = Judging(judging.comparison, people[0])
    count, plan = own.decided(people[0]), min(ENOUGH, len(judging.comparison.differing))
    if count < plan:
        return f"judge {plan - count} more, {plan} in all: {DECIDE}"
    target = own.target()
    return "more judgments could decide." if target is None or target.total is None else (
        f"about {target.total} judgments in all could decide.")
