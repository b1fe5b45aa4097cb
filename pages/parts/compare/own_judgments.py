"""What blind judgments say of two compared runs, beside the verdict of labels or of the second opinion."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from udml_core.base.errors import UserError
from udml_core.numerics.second_opinion import Verdict
from udml_core.runs import Run
from udml_core.runs.analyses.kinds.opinion import Verdicts
from udml_core.runs.search.differing import Results, Side, side_name
from udml_core.runs.search.judged_runs import judged_comparisons, judged_galleries, judgments_words

from ..shell.cached import load_dataset, load_retrieval
from ..shell.run_status import escaped
from .judged import unbroken
from .judging import compare_contest
from .sides import Contest

START_FRAMES = ("frozen", "initial", "final")
"""Names under which the features of a run without training are judged."""


def show_own_judgments(runs: Sequence[Run], names: Sequence[str], verdicts: Verdicts | None) -> None:
    """Say what blind judgments of two runs say, and whether they agree with the second opinion.

    Args:
        runs: The two runs.
        names: Their names.
        verdicts: The second opinion on the second against the first; None without one.
    """
    sentences = []
    try:
        opened = [load_retrieval(run) for run in runs]
        for frames, gallery, results in judged_comparisons(runs[0], runs[1], opened[0].dataset):
            first, second = (Side(retrieval, frame) for retrieval, frame in zip(opened, frames, strict=True))
            contest = Contest((first, second), (names[0], names[1]), gallery)
            said = None if verdicts is None else verdicts.groups if results == "ten" else verdicts.first
            sentences.append(judgments_words(compare_contest(contest, results), _marked(names), said))
    except UserError:  # the images or an embedding are missing, which other parts of the page say
        return
    if shown := " ".join(filter(None, sentences)):
        st.markdown(unbroken(f":material/thumbs_up_down: {shown}"))


def race_judgments(runs: Sequence[Run], frame: str, names: Sequence[str], results: Results, said: Verdict) -> str:
    """Return what blind judgments of a race's search say, and whether they agree with the race; empty without any.

    Args:
        runs: The run of the frozen features, whose embedding has several names, and the run of the search.
        frame: The embedding of the search.
        names: Names of both in words.
        results: What is judged.
        said: The race's verdict on the second.
    """
    sentences = []
    try:
        dataset = load_dataset(runs[0].spec().dataset)
        for own in START_FRAMES:
            keys = side_name(runs[0].id, own), side_name(runs[1].id, frame)
            for gallery in judged_galleries(dataset, keys, results):
                sides = Side(load_retrieval(runs[0]), own), Side(load_retrieval(runs[1]), frame)
                contest = Contest(sides, (names[0], names[1]), gallery)
                sentences.append(judgments_words(compare_contest(contest, results), _marked(names), said, "the race"))
    except UserError:  # the images or an embedding are missing, which other pages say
        return ""
    return " ".join(filter(None, sentences))


def _marked(names: Sequence[str]) -> tuple[str, str]:
    first, second = (f"**{escaped(name)}**" for name in names)
    return first, second
