"""What blind judgments say of two compared runs, beside the verdict of labels or of the second opinion."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from udml_core.base.errors import UserError
from udml_core.runs import Run
from udml_core.runs.analyses.kinds.opinion import Verdicts
from udml_core.runs.search.differing import Side
from udml_core.runs.search.judged_runs import go_on, judged_comparisons, judgments_words

from ..shell.cached import load_retrieval
from ..shell.run_status import escaped
from .judged import unbroken
from .judging import compare_contest
from .sides import Contest


def show_own_judgments(runs: Sequence[Run], names: Sequence[str], verdicts: Verdicts | None) -> None:
    """Say what blind judgments of two runs say, and whether they agree with the second opinion.

    Args:
        runs: The two runs.
        names: Their names.
        verdicts: The second opinion on the second against the first; None without one.
    """
    sentences = []
    try:
        for sides, gallery, results in judged_comparisons(runs[0], runs[1], load_retrieval(runs[0]).dataset):
            first, second = (Side(load_retrieval(run), frame) for run, frame in sides)
            contest = Contest((first, second), (names[0], names[1]), gallery)
            said = None if verdicts is None else verdicts.first if results == "first" else verdicts.groups
            sentences.append(judgments_words(compare_contest(contest, results), _marked(names), said,
                                             has_plain=contest.has_plain))
    except UserError:  # the images or an embedding are missing, which other parts of the page say
        return
    if shown := " ".join(filter(None, sentences)):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(unbroken(f":material/thumbs_up_down: {shown}"), width="stretch")
            if go_on(shown):
                st.button("Continue judging", icon=":material/thumbs_up_down:", key="own-continue",
                          on_click=st.session_state.__setitem__, args=("compare-next-part", "Judge"))


def _marked(names: Sequence[str]) -> tuple[str, str]:
    first, second = (f"**{escaped(name)}**" for name in names)
    return first, second
