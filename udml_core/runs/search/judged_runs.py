"""What blind judgments say of two runs, in a sentence beside the second opinion."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import product
from typing import Literal, get_args

from udml_core.base.errors import UserError, capitalized, listed
from udml_core.data.dataset import Dataset
from udml_core.data.given.judgments import JudgmentLog, judged_keys
from udml_core.numerics.judgments import Share
from udml_core.numerics.second_opinion import Verdict
from udml_core.runs import Run, find_run
from udml_core.runs.search.differing import SEPARATOR, Comparison, Results, Side, comparison_key, side_name
from udml_core.runs.search.judging import ENOUGH, EQUAL, Judging
from udml_core.runs.search.judging_words import (
    RULED_OUT,
    WHAT,
    finding_words,
    level_words,
    progress_words,
    score_words,
    stop_words,
    waiting_words,
)
from udml_core.runs.search.names import FINAL, FROZEN, TRAINED
from udml_core.runs.search.query import Gallery

Names = tuple[str, str]
Sides = tuple[tuple[Run, str], tuple[Run, str]]
"""Two embeddings: each a run and a frame."""

UNDECIDED = "do not decide yet"
"""What is said of judgments of which more may decide."""


def judged_comparisons(first: Run, second: Run, dataset: Dataset) -> Iterator[tuple[Sides, Gallery, Results]]:
    """Find the stored comparisons of the embeddings that two runs keep.

    Yields:
        The runs and frames of both, the gallery, and what was judged, the first results first. The frozen features
        have more names, see `judged_starts`.
    """
    is_start = [run.spec().method == FROZEN for run in (first, second)]
    if is_start[0] == is_start[1]:
        names = [side_name(run.id, FINAL) for run in (first, second)]
        for results, gallery in product(get_args(Results), get_args(Gallery)):
            if JudgmentLog(dataset, comparison_key(names, gallery, results)).read():
                yield ((first, FINAL), (second, FINAL)), gallery, results
        return
    start, run = (first, second) if is_start[0] else (second, first)
    for results in get_args(Results):
        for of, own, gallery in judged_starts(start, run, FINAL, results, dataset):
            sides = (of, own), (run, FINAL)
            yield sides if is_start[0] else (sides[1], sides[0]), gallery, results


def judged_with(run_id: str, dataset: Dataset) -> list[tuple[Names, Gallery, Results]]:
    """List the comparisons in which someone judged an embedding of a run.

    Args:
        run_id: Id of the run.
        dataset: The data set of its images.

    Returns:
        The names of both embeddings, RUN:FRAME, the gallery and what was judged; the first results first.
    """
    found = []
    for results, gallery, key in product(get_args(Results), get_args(Gallery), judged_keys(dataset)):
        names = key.split()[:2]
        if run_id in {name.partition(SEPARATOR)[0] for name in names} and (
                key == comparison_key(names, gallery, results)):
            found.append(((names[0], names[1]), gallery, results))
    return found


def judged_starts(start: Run, run: Run, frame: str, results: Results, dataset: Dataset
                  ) -> list[tuple[Run, str, Gallery]]:
    """List under which names the frozen features were judged against an embedding, and among which images.

    Every run of the same images and encoder has the frozen features, under a name of its own.

    Args:
        start: A run of the frozen features.
        run: The run of the embedding.
        frame: The name of the embedding within its run.
        results: What was judged.
        dataset: The data set.
    """
    judged, found = side_name(run.id, frame), []
    for names, gallery, asked in judged_with(run.id, dataset):
        if asked == results and judged in names:
            run_id, _, own = names[names[0] == judged].partition(SEPARATOR)
            with suppress(UserError):  # the run was removed
                of = find_run(run_id, start.root)
                if is_frozen(of, own) and (of.spec().fingerprint, of.spec().encoder) == (
                        start.spec().fingerprint, start.spec().encoder):
                    found.append((of, own, gallery))
    return found


def is_frozen(run: Run, frame: str) -> bool:
    """Return whether an embedding is the frozen features; a run without training has them under more names."""
    return frame == FROZEN or (frame in TRAINED and run.spec().method == FROZEN)


def has_plain(sides: Iterable[Side]) -> bool:
    """Return whether one of several searches is the plain search."""
    return any(is_frozen(side.retrieval.run, side.frame) for side in sides)


def go_on(words: str) -> bool:
    """Return whether the words for judgments say that more of them may decide."""
    return UNDECIDED in words


def judged_verdict(share: Share) -> Verdict:
    """Return what judgments say of B: nothing while the interval holds one half."""
    if not share.is_decided:
        return "cannot tell"
    return "better" if share.low > 0.5 else "worse"


def stance_of(judging: Judging) -> Literal["open", "better", "level", "worse"]:
    """Return what everyone's judgments say of B: not decided yet, or better, hardly different, or worse.

    One person's judgments are level where more are not worth the time: most of them are equal, or very many more would
    be needed. Several people's are level only when every query is judged.

    Args:
        judging: A session of the comparison.
    """
    share, people = judging.shared_share(), judging.people()
    if share.is_decided:
        return "better" if share.low > EQUAL else "worse"
    if share.count == len(judging.comparison.differing):
        return "level"
    if len(people) != 1:
        return "open"
    own = Judging(judging.comparison, people[0])
    return "level" if level_words(own) else "open"


def judgments_words(comparison: Comparison, names: Names, said: Verdict | None = None,
                    other: str = "the second opinion", has_plain: bool = False) -> str:
    """State what everyone's judgments of two embeddings say, and whether they agree with a verdict without labels.

    Until they decide, the words do not tell which answers fell together, so that judging stays blind.

    Args:
        comparison: The comparison; B is the embedding that the second opinion is about.
        names: The names of A and B.
        said: The verdict on B in the measure that was judged; None without one.
        other: What gave the verdict.
        has_plain: Whether one of the two is the plain search.

    Returns:
        Sentences; empty if no judgment counts.
    """
    judging = Judging(comparison)
    share, people = judging.shared_share(), judging.people()
    if not share.count:
        waiting = judging.elsewhere()
        return f"{WHAT[comparison.results].capitalize()}, {names[1]} against {names[0]}: your judgments wait under " \
               f"Judge. {waiting_words(waiting, judging.meaning)}" if waiting else ""
    is_own = people == [judging.judge]
    whose = "Your judgments" if is_own else f"Blind judgments by {listed(people)}"
    verdict, of = judged_verdict(share), WHAT[comparison.results]
    if verdict == "cannot tell" and share.count < len(comparison.differing):
        if level := is_own and level_words(judging):
            return (f"{whose} of {of}, {names[1]} against {names[0]}: {judging.decided(judging.judge)} {level}. "
                    f"{stop_words(share, names[0], has_plain)}")
        is_planned = is_own and judging.decided(judging.judge) < min(ENOUGH, len(comparison.differing))
        so_far = f"{progress_words(judging)} judged" if is_planned else (
            score_words(judging, judging.judge, names) if is_own else f"{share.count} so far")
        return f"{whose} of {of}, {names[1]} against {names[0]}, {UNDECIDED} ({so_far})."
    score = f"{score_words(judging, judging.judge, names)}" if is_own else str(share.count)
    decides = f"; {RULED_OUT}" if is_own and share.is_decided else (
        f". {capitalized(finding_words(share, comparison, names))}")
    result = f"{whose} of {of}: {score}{decides}."
    if verdict == "cannot tell":
        return f"{result} Both are equally good."
    if said in (None, "cannot tell"):
        return result
    judged = WHAT["first" if comparison.results == "first" else "group"]  # encoders judge no first ten results
    return f"{result} {'They agree with' if verdict == said else 'They contradict'} {other} on {judged}."
