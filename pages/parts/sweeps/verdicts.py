"""The verdict without labels on the combinations of a sweep, and the way to it where it is missing."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from udml_core.runs import Run
from udml_core.runs.analyses import analysis_at
from udml_core.runs.opinions import OF_RUN, QUESTION_WORDS, agreement, obstacle
from udml_core.runs.search import FROZEN
from udml_core.runs.tasks import LIVE_STATES
from udml_core.runs.verdict import has_labels
from udml_core.work import jobs
from udml_core.work.sweeps import Combination

from ..shell.opinions import stored_opinion, verdict_cells
from ..shell.race_verdict import joint_verdicts, run_verdicts
from ..shell.run_status import escaped
from ..shell.user_errors import show_user_errors

NOT_JUDGED, OPEN = "not judged yet", "–"
LABELS = "Labels and judges"
AGREEMENTS = {"disagree": "differ", "agree": "agree", "undecided": "undecided"}
"""What labels say of the verdicts on the runs of a combination: the first of these that holds for any of them."""
SECONDS = 3.0


def are_labeled(combinations: Sequence[Combination]) -> bool:
    """Return whether labels have measured a finished run."""
    return any(has_labels(run.evaluation()) for combination in combinations for run in combination.finished)


def are_judged(combinations: Sequence[Combination]) -> bool:
    """Return whether judges without labels have compared a finished run with the plain search."""
    return any(run_verdicts(run) is not None for combination in combinations for run in combination.finished)


def verdict_columns(combination: Combination, labeled: bool) -> dict[str, str]:
    """Return the verdicts on a combination against the plain search, and whether labels agree, by column.

    Args:
        combination: The combination, whose seeds must share a verdict.
        labeled: Whether labels have measured a run of the sweep.
    """
    verdicts = joint_verdicts(combination.finished)
    missing = NOT_JUDGED if combination.finished else OPEN
    cells = (missing, missing) if verdicts is None else verdict_cells(verdicts)
    return dict(zip(QUESTION_WORDS, cells, strict=True)) | ({LABELS: _agreement_of(combination)} if labeled else {})


def _agreement_of(combination: Combination) -> str:
    said = {of for run in combination.finished if (verdicts := run_verdicts(run)) is not None
            for of in agreement(verdicts, run.evaluation()).values()}
    return next((words for of, words in AGREEMENTS.items() if of in said), OPEN)


def show_judging(combinations: Sequence[Combination]) -> None:
    """Offer to judge all finished runs in the background; say how many are left, or why none can be judged."""
    runs = [run for combination in combinations for run in combination.finished if run.spec().method != FROZEN]
    lacking = [run for run in runs if stored_opinion(run) is None]
    if not lacking:
        return
    if reason := obstacle(lacking[0]):
        st.caption(f"No verdict without labels: {escaped(reason)}")
        return
    if any(_is_coming(run) for run in lacking):
        st.fragment(_follow, run_every=SECONDS)(lacking, len(runs))
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        count = f"{len(lacking)} of {len(runs)} runs are" if len(lacking) > 1 else "One run is"
        st.caption(f"{count} not judged yet.")
        if st.button("Judge all runs without labels", icon=":material/balance:", key="sweep-judge", help=(
                "Encoders that took no part compare each run with the plain search, in the background, one run after "
                "the other.")):
            with show_user_errors():
                for run in lacking:
                    jobs.analyse(run, OF_RUN)
                st.rerun()


def _is_coming(run: Run) -> bool:
    analysis = analysis_at(run, OF_RUN)
    return analysis.folder.exists() and analysis.status().state in LIVE_STATES


def _follow(lacking: Sequence[Run], count: int) -> None:
    """Say how many runs the judges have left; the page runs again when they have compared a further run."""
    left = [run for run in lacking if _is_coming(run)]
    if len(left) < len(lacking) and (not left or any(stored_opinion(run) is not None for run in lacking)):
        st.rerun(scope="app")
    st.caption(f":material/hourglass_top: The judges are at work: {len(left)} of {count} runs are left.")
