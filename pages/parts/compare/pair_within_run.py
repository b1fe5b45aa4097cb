"""Where two embeddings differ without labels, and the parts of the view Compare for a pair of a single run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from udml_core.runs import Run
from udml_core.runs.search import FINAL, FROZEN
from udml_core.runs.search.differing import SEPARATOR, Results
from udml_core.runs.search.judging_words import differing_words

from ..data.answer import judged_of
from ..data.using import chosen_search, judge_link
from ..shell.address import BETWEEN, choose_segment, write_address
from ..shell.run_picker import app_run
from ..shell.run_status import escaped
from ..shell.views import view_link
from .choosing import BOX, PARAMETER
from .judged import MOST_ROWS, SHOWN, show_rows, show_tiles
from .judging import RESULTS, compare_contest
from .pair_verdict import search_names, show_searches_verdict
from .sides import LETTERS, Contest, choose_contest

OPENED = "compare-own"
"""Session key of the search that the user chose, once Compare has opened with it."""


def open_own_search(runs: Sequence[Run]) -> None:
    """Compare the search that the user chose with the plain search, until other runs are named or chosen.

    Args:
        runs: Finished runs, newest first.
    """
    if any(name in st.query_params for name in (PARAMETER, *LETTERS)):
        return
    shown = next((run for run in runs if run.id == app_run()), None)
    own = None if shown is None else chosen_search(shown.spec().dataset)
    if own is None or (BOX in st.session_state and st.session_state.get(OPENED) == own):
        return
    judged = judged_of(*own)
    if judged is not None and {judged[0].run, own[0].id} <= {run.id for run in runs}:
        race, (run, frame) = judged[0], own
        st.session_state.pop(BOX, None)
        st.session_state[OPENED] = own
        link = judge_link(f"{race.run}{SEPARATOR}{FROZEN}", run.id, None if frame == FINAL else frame, race.serves)
        st.query_params.update({name: value for name, value in link.items() if name != "part"})


def run_of_pair(runs: Sequence[Run]) -> Run | None:
    """Return the run whose two embeddings the address names as A and B; None if it names no such pair."""
    first, second = (st.query_params.get(letter, "") for letter in LETTERS)
    ids = {side.rpartition(SEPARATOR)[0] for side in (first, second)}
    return next((run for run in runs if ids == {run.id} and first != second), None)


def keep_pair(runs: Sequence[Run]) -> None:
    """Compare the runs of a judged pair, so that the other parts show the pair until other runs are chosen."""
    ids = [st.query_params.get(letter, "").rpartition(SEPARATOR)[0] for letter in LETTERS]
    if run_of_pair(runs):
        write_address(PARAMETER, ids[0])
    elif {*ids} <= {run.id for run in runs} and not {*ids} <= {*st.query_params.get(PARAMETER, "").split(".")}:
        write_address(PARAMETER, ".".join(ids))


def show_differences(runs: Sequence[Run], names: Sequence[str] = ()) -> None:
    """Show queries for which A and B differ; Judge asks them last, so the next judgments stay blind.

    Args:
        runs: Finished runs.
        names: Their names on the page, which has stated the verdict on these runs; empty where it has not.
    """
    verdict = st.container()
    with st.popover("Searches", icon=":material/tune:"):
        contest = choose_contest(runs)
    own = dict(zip((run.id for run in runs), names, strict=False))
    searches = [(side.retrieval.run, side.frame) for side in contest.sides]
    if own and all(frame == FINAL and run.id in own for run, frame in searches):
        contest = replace(contest, names=(own[searches[0][0].id], own[searches[1][0].id]))
    else:
        full = search_names(searches)
        with verdict:
            show_searches_verdict(searches, full if full[0] != full[1] else contest.names)
        if full[0] != full[1] and searches[0][0].id != searches[1][0].id:  # of one run, what differs is named
            contest = replace(contest, names=(full[0], full[1]))
    results: Results = choose_segment("What differs", "results", RESULTS, "first", key="pair-results",
                                      label_visibility="collapsed")
    comparison = compare_contest(contest, results)
    first, second = map(escaped, contest.names)
    most = SHOWN if results == "first" else MOST_ROWS
    positions = list(range(len(comparison.differing)))[:-most - 1:-1]
    st.caption(f"**A** {first} · **B** {second}. {differing_words(comparison)}."
               + (f" The {len(positions)} shown come last under Judge, so that seeing them sways no early judgment."
                  if positions else ""))
    if results != "first":
        show_rows(comparison, positions, contest.kinds)
    elif positions:
        show_tiles(comparison, positions, "Queries that differ", "pair-differences", columns=6)
    _link_to_search(contest)


def _link_to_search(contest: Contest) -> None:
    """Offer every query of the pair, side by side."""
    first, second = contest.sides
    if first.retrieval.run.id == second.retrieval.run.id:
        view_link("retrieval", label="Search in both side by side", icon=":material/image_search:",
                  query_params={"run": first.retrieval.run.id, "compare": BETWEEN.join((first.frame, second.frame))})
