"""The verdict without labels on a run: its sentence, its details, and the way to it where it is missing."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from udml_core.data.dataset import step_name
from udml_core.exploration.race_figures import BY_CLASSES, SAID, group_size_words, said_word
from udml_core.results.embedding_words import words_of
from udml_core.runs import Run
from udml_core.runs.analyses import analysis_at
from udml_core.runs.analyses.kinds.opinion import QUESTIONS, Opinions, Verdicts
from udml_core.runs.opinions import (
    DECIDES,
    INSTALL,
    OF_RUN,
    QUESTION_WORDS,
    adds_nothing,
    agreement_words,
    judge_words,
    kept_words,
    obstacle,
    opinion_words,
    start_words,
)
from udml_core.runs.search import FROZEN
from udml_core.runs.tasks import ADVICE, LIVE_STATES
from udml_core.runs.verdict import has_labels
from udml_core.work import jobs
from udml_core.work.jobs.raced import races_from
from udml_core.work.jobs.verdicts import Stand

from ..draw.palette import signed
from ..draw.tables import data_table
from ..shell.analyses import request_analysis
from ..shell.opinions import stored_opinion
from ..shell.race_judgments import run_judgments
from ..shell.race_verdict import race_verdict, raced_with_steps, said_of, show_conclusion_of
from ..shell.run_status import escaped
from ..shell.times import time_words
from ..shell.user_errors import show_user_errors
from ..shell.verdict_bars import bars_of, show_bars
from .advised import show_with_steps
from .coming import is_coming, is_judged_later, parts_of_verdict
from .races import show_own, show_races
from .rivals import idle_line, show_stand, stand_beside

BETTER, WORSE = ":green[:material/trending_up:]", ":red[:material/trending_down:]"
MIXED, UNCLEAR = ":orange[:material/swap_vert:]", ":material/help:"
HALF = ":material/balance:"
DAMAGED = "The file of the second opinion is damaged, so it does not count. **Retry** computes it again."
TOGETHER = "all judges together"
READING = ("Each judge is an encoder that took no part in this run. It measures how similar a query and the images "
           "found for it are in its own features. A difference of +0.02 means that the images found by this run are "
           "more similar by 0.02, on a scale from −1 to 1 (cosine), than those found by the plain search, on "
           "average. A judge is sure if its interval leaves out 0, and the verdict follows judges that count "
           "for three quarters.")


def show_opinion(run: Run, is_brief: bool = False) -> None:
    """Show what judges without labels say of a finished run's own embedding, or how to ask them.

    Args:
        run: The run.
        is_brief: Whether the verdict stands alone, with all else behind its "?".
    """
    opinions, own = stored_opinion(run), race_verdict(run, "")
    show_races(run, races_from(run) if run.spec().method == FROZEN else [])
    if own and not show_conclusion_of(run, "", own):
        st.markdown(f":material/balance: {own}")
    show_own(run)
    if run.spec().method == FROZEN:
        return
    if not is_brief and run.status().state == "done" and (kept := kept_words(run)):
        st.caption(f":material/bookmark: {kept}")
    if is_pending := is_judged_later(run):
        opinions = None  # the steps of the search in use may follow, and one verdict counts both
    stand = stand_beside(run) if run.stored_status().state == "done" and not is_pending else None
    is_idle = opinions is not None and adds_nothing(run)
    if is_idle and (stand is None or _is_raced(run)):
        st.markdown(idle_line())
    if stand is not None and stand.is_begun:
        show_stand(run, stand)
    if opinions is not None:
        _show_verdict(run, opinions, is_brief, stand)
        is_gain = opinions.verdicts("final").groups == "better"  # only of a gain a share is said
        if is_gain and not is_idle and not (is_brief and stand is not None) and (began := start_words(run)):
            st.caption(began)
    elif run.is_example:
        if not has_labels(run.evaluation()):
            st.caption("This example has no second opinion. Examples are read-only.")
    elif reason := obstacle(run):
        st.caption(f"No verdict without labels: {escaped(reason)}")
    else:
        _show_missing(run, is_raced=bool(own))
    if stand is None or not is_brief:
        show_with_steps(run)


def says_something(run: Run) -> bool:
    """Return whether `show_opinion` shows anything of a run."""
    if run.spec().method == FROZEN:
        return bool(races_from(run) or run_judgments(run))
    return not run.is_example or stored_opinion(run) is not None or bool(race_verdict(run, ""))


def verdict_icon(verdicts: Verdicts) -> str:
    """Return the icon of two verdicts: up, down, both, scales if one of them is unclear, or a question mark."""
    said = set(verdicts)
    if said == {"better"}:
        return BETTER
    if said == {"worse"}:
        return WORSE
    return MIXED if {"better", "worse"} <= said else UNCLEAR if said == {"cannot tell"} else HALF


def _is_raced(run: Run) -> bool:
    """Return whether a race judged a run, whose sentence stands then in place of the second opinion's."""
    said = said_of(run)
    return said is not None and said.is_raced


def _show_verdict(run: Run, opinions: Opinions, is_brief: bool, stand: Stand | None) -> None:
    """Show the verdict of the second opinion, what labels say of it, and each judge behind a button.

    Where a race judged the run, its sentence stands in place of the second opinion's.
    """
    said = said_of(run)
    assert said is not None, "the run has a second opinion"
    is_beside = stand is not None and not said.is_raced
    verdicts, rest = opinion_words(opinions).split(". Compared", 1)
    agreed = agreement_words(said.verdicts, run.evaluation())
    noted = " ".join(filter(None, (escaped(said.epochs if is_beside else said.note), agreed)))
    bold, details = f"{verdict_icon(said.verdicts)} **{verdicts}.**", f"Compared{rest} {noted}".rstrip()
    plain = f"Compared with the plain search: {verdicts}. {details}" if is_brief else None
    if stand is not None and is_beside and not stand.is_begun:
        show_stand(run, stand, plain)
    if is_brief:
        if not said.is_raced and stand is None:
            st.markdown(f"{verdict_icon(said.verdicts)} Compared with the plain search: **{verdicts}.**", help=details)
        return
    bars = bars_of(said.verdicts, opinions.measured("final"))
    is_drawn = not said.is_raced and show_bars(bars[::-1], words_of("plain").title, opinions.group)
    words = agreed if said.is_raced else noted if is_drawn else f"{bold} {details}"
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(words)
        with st.popover("Judges", icon=":material/balance:", key=f"opinion-{run.id}", type="tertiary"):
            if is_drawn:
                st.markdown(f"Compared{rest}")
            show_judges(opinions)


def show_judges(opinions: Opinions) -> None:
    """Show each judge's differences with their intervals, and how to read them."""
    data_table(judge_table(opinions), hide_index=True, width="content",
               alt="Difference in mean cosine of each judge, with its 95 % interval and weight.")
    st.caption(f"{DECIDES} {READING} Weight: share of a query's neighbors that the judge keeps when it sees "
               f"another view of the query. First result: the nearest image. {group_size_words(opinions.group)} "
               f"{BY_CLASSES}")
    for reason in opinions.left_out:
        st.caption(f"Left out: {escaped(reason)}")


def judge_table(opinions: Opinions) -> pd.DataFrame:
    """Return a row for each question and all judges together, which every page states, then for each judge, as text."""
    rows = []
    for question, words, joint in zip(QUESTIONS, QUESTION_WORDS, opinions.measured("final"), strict=True):
        wide = joint.wide
        rows += [_judge_row(words, TOGETHER, joint.difference, (wide.low, wide.high), said_word(joint))]
        rows += [_judge_row(words, judge_words(judge), of.difference, (of.low, of.high), SAID[of.verdict],
                            f"{opinions.weights[judge]:.2f}") for judge, of in
                 opinions.intervals("final", question).items()]
    return pd.DataFrame(rows)


def _judge_row(question: str, judge: str, difference: float, ends: tuple[float, float], says: str,
               weight: str = "") -> dict[str, str]:
    return {"Question": question, "Judge": judge, "Difference": signed(difference, 3),
            "95 % interval": " to ".join(signed(end, 3) for end in ends), "Says": says, "Weight": weight}


def _show_missing(run: Run, is_raced: bool) -> None:
    """Show the progress of the second opinion, why it ended early, or the button that computes it.

    Args:
        run: The run.
        is_raced: Whether a race judged it.
    """
    analysis = analysis_at(run, OF_RUN)
    if is_coming(run):
        _follow(run)
    elif not analysis.folder.exists():
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            request_analysis(run, OF_RUN, "Judge without labels", f"opinion-new-{run.id}",
                             "Lets encoders that took no part in this run compare its results with the results "
                             "of the plain search, in the background.")
            if not is_raced and not has_labels(run.evaluation()):
                st.caption("Not judged alone yet: a race judged it with further steps only." if raced_with_steps(run)
                           else "Not judged yet.")
    else:
        status = analysis.status()
        message = " ".join(part for part in (status.message, ADVICE[status.state]) if part)
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.warning(DAMAGED if status.state == "done" else f"The second opinion is {status.state}. "
                       f"{escaped(message)} {INSTALL}", icon=":material/warning:")
            if st.button("Retry", icon=":material/replay:", key=f"opinion-again-{run.id}"):
                with show_user_errors():
                    jobs.analyse(run, OF_RUN)
                    st.rerun()


@st.fragment(run_every="1s")
@show_user_errors()
def _follow(run: Run) -> None:
    """Show the progress of a second opinion; the page runs again when it ends."""
    if not is_coming(run):
        st.rerun(scope="app")
    live = next((part for part in parts_of_verdict(run) if part.folder.exists()
                 and part.status().state in LIVE_STATES), None)
    if live is None:
        st.caption("The verdict without labels follows in a moment, or after a run that trains now.")
        return
    status = live.status()
    what = "Judging without labels" if live.spec() == OF_RUN else "The steps of your search on this training"
    words = filter(None, (step_name(status.phase) or "starting", time_words(status)))
    st.progress(min(1.0, status.share), f"{what}: {escaped(', '.join(words))}")
