"""The part Judge of the view Compare: blind judgments of the queries for which two embeddings differ.

The first results are judged, the first ten, or whole groups. Neither names, labels nor files are shown until the user
reveals the names.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from udml_core.base.arrays import Booleans, Integers
from udml_core.data.given.judgments import LONGEST_NAME, ME
from udml_core.runs import Run
from udml_core.runs.search import Gallery
from udml_core.runs.search.asked import asked_images
from udml_core.runs.search.copies import known_copies
from udml_core.runs.search.differing import Comparison, Results, Side, compare
from udml_core.runs.search.judged_runs import is_frozen, judged_starts
from udml_core.runs.search.judging import Choice, Judging, Question
from udml_core.runs.search.judging_words import (
    BLIND,
    QUESTIONS,
    advice_parts,
    agreement_words,
    copies_words,
    differing_words,
    result_words,
    waiting_words,
)
from udml_core.runs.search.stored_comparison import stored_comparison
from udml_core.work.jobs.concluding import ticket_of
from udml_core.work.jobs.raced import group_size_of, races_of

from ..data.copies import offer_excluding
from ..shell.address import VISIT, choose_segment
from ..shell.cached import load_retrieval
from ..shell.left_out import show_left_out
from ..shell.meaning import choose_words, words_for_same
from ..shell.pools import among
from ..shell.run_hash import RUN_HASH
from ..shell.run_status import UNSEEN, escaped
from ..shell.user_errors import fragment, show_user_errors
from ..shell.views import view_link
from .judge_pictures import KEYS, LEFT, LEGENDS, REASONS, RIGHT, SAVED, Answer, show_pictures
from .judged import range_bar, show_files, show_judged, unbroken
from .sides import Contest, choose_contest
from .winner import offer_winner

MESSAGE, REVEALED = "judge-message", f"{VISIT}judge-revealed"
RESULTS: dict[Results, str] = {"first": "First result", "ten": "First ten", "group": "Whole group"}
SUFFIX = {"first": "", "ten": "-ten", "group": "-ten"}
EXPLAINED: dict[Results, str] = {
    "first": "The two images are the nearest in A and in B, in random order.",
    "ten": "Left and right stand the images that only A or only B finds among its first ten, in random order. "
           "Judges without labels look at more, as many as a typical group has.",
    "group": "Left and right stand images that only A or only B finds among as many first results as a typical group "
             "has, drawn at random, in random order. Judges without labels look at groups as well."}
UNWRITTEN = "You decide what the same kind is, such as a species. Write it down under “The same kind”."
SAME: dict[Results, str] = {"first": "the same nearest image", "ten": "the same ten images",
                            "group": "the same group of images"}


@fragment
def show_judging(runs: Sequence[Run]) -> None:
    """Show the question, its images and what the judgments say so far; after Reveal names, the result.

    Args:
        runs: Finished runs, at least one.
    """
    with st.container(horizontal=True, vertical_alignment="center", key="judge-top"):
        heading, meaning = (place := st.container()).empty(), place.empty()
        with st.popover("Searches", icon=":material/tune:",
                        help="Choose the two searches that are compared, and among which images."):
            contest = choose_contest(runs)
        results = choose_segment("What is judged", "results", RESULTS, "first", key="judge-results",
                                 label_visibility="collapsed")
        with st.popover("The same kind", icon=":material/rule:", help="Say what counts as the same."):
            choose_words(contest.sides[0].retrieval.dataset, "Judgments count under the words in view.")
        name = st.session_state.get("judge", st.query_params.get("judge", ME))
        with st.popover(f"Judge: {escaped(str(name)[:LONGEST_NAME])}", icon=":material/person:", key="judge-who"):
            judge = st.text_input("Your name", ME, LONGEST_NAME, key="judge", bind="query-params",
                                  help="Each person judges the same queries, with sides of their own.")
    contest = replace(contest, sides=_judged_sides(contest, results))
    heading.markdown(f"#### {QUESTIONS[results]}")  # before the queries are compared, so that no control stands alone
    comparison = compare_contest(contest, results)
    judging = Judging(comparison, judge)
    question = judging.question()
    if not len(comparison.differing):
        heading.empty()
        st.info(f"Both searches find {SAME[results]} for every query, so there is nothing to judge. Choose another "
                "search.", icon=":material/lightbulb:")
    elif st.session_state.get(REVEALED) == comparison.key:
        heading.markdown("#### The result")
        show_judged(judging, contest.titles, contest.has_plain, partial(_show_next, judging, question, contest))
    else:
        heading.markdown(f"#### {QUESTIONS[results]}" if question else "#### All queries are judged")
        words = words_for_same(comparison.dataset)
        meaning.caption(f"The same kind: {escaped(words)}." if words else UNWRITTEN)
        if question:
            _show_question(judging, question)
        _show_progress(judging)
    _show_waiting(judging)
    st.caption(_explain(contest, comparison))
    if comparison.not_asked:
        show_left_out(comparison.dataset, comparison.not_asked)
    else:
        offer_excluding(comparison.dataset)
    _link_race(contest.sides[1].retrieval.run)
    show_files(judging)


def _show_next(judging: Judging, question: Question | None, contest: Contest) -> None:
    """Show the buttons that search with the better search, and that judge more queries."""
    with st.container(horizontal=True, gap="small", key="judge-next"):
        is_offered = offer_winner(judging, contest.sides)
        st.button("Hide names and judge more", icon=":material/visibility_off:", key="judge-hide",
                  type="tertiary" if is_offered else "primary", on_click=_reveal, args=("",),
                  disabled=question is None)


def _judged_sides(contest: Contest, results: Results) -> tuple[Side, Side]:
    """Return the sides under the names under which they are judged: many runs have the frozen features."""
    sides = list(contest.sides)
    for place, (side, other) in enumerate((contest.sides, contest.sides[::-1])):
        run = side.retrieval.run
        if is_frozen(run, side.frame):
            starts = [(start, frame) for start, frame, gallery in judged_starts(
                run, other.retrieval.run, other.frame, results, side.retrieval.dataset) if gallery == contest.gallery]
            if starts and (run, side.frame) not in starts:
                sides[place] = Side(load_retrieval(starts[0][0]), starts[0][1])
    return sides[0], sides[1]


def compare_contest(contest: Contest, results: Results = "first") -> Comparison:
    """Find the queries that differ, once."""
    first, second = contest.sides
    copies = known_copies(first.retrieval.dataset, first.retrieval.run.root)
    return _comparison(first.retrieval.run, second.retrieval.run, first.frame, second.frame, contest.gallery,
                       (_version(first), _version(second)), results,
                       group_size_of(first.retrieval.run) if results == "group" else 0, copies,
                       asked_images(first.retrieval.dataset), contest.sides)


@st.cache_resource(max_entries=8, show_spinner="Searching with every image in both embeddings …", hash_funcs=RUN_HASH)
def _comparison(first: Run, second: Run, first_frame: str, second_frame: str, gallery: Gallery,  # noqa: ARG001
                versions: tuple[tuple[str, float], ...], results: Results, group: int,
                copies: Integers, asked: Booleans, _sides: tuple[Side, Side]) -> Comparison:  # noqa: ARG001
    names, tickets = (_sides[0].name, _sides[1].name), (versions[0][1], versions[1][1], group)
    return stored_comparison(_sides[0].retrieval.dataset, names, gallery, results, copies, tickets,
                             lambda: compare(*_sides, gallery, results, group))


def _version(side: Side) -> tuple[str, float]:
    """Return what changes when the images or a refinement change."""
    return side.retrieval.dataset.fingerprint, ticket_of(side.retrieval.run, side.frame)


def _explain(contest: Contest, comparison: Comparison) -> str:
    first, second = map(escaped, contest.names)
    retrieval = contest.sides[0].retrieval
    pool = among(comparison.images, retrieval.split, len(comparison.dataset))
    return (f"**A** {first} · **B** {second}. {differing_words(comparison)}; results are found {pool}. "
            f"{EXPLAINED[comparison.results]} {copies_words(comparison)}Answers that find neither better count as half "
            "for each.")


def _link_race(run: Run) -> None:
    """Link the newest race of the judged images, from which a reader may have come; nothing without a race."""
    race = next(races_of(run), None)
    if race is not None:
        view_link("data", {"dataset": run.spec().dataset, "view": "advice", "budget": f"{race.budget:g}",
                           "serves": race.serves}, label="The race for the best search", icon=":material/trophy:")


def _show_question(judging: Judging, question: Question) -> None:
    """Show the query with the candidates, and below them the buttons, which keys press."""
    show_pictures(judging, question)
    with st.container(key="judge-buttons"):
        for column, answer in zip(st.columns([1.3, 1.0, 1.0, 1.3], gap="small"), KEYS, strict=True):
            _show_answer(column, judging, question, answer, "primary" if answer in (LEFT, RIGHT) else "secondary")
    if reasons := REASONS[judging.comparison.results]:
        with st.container(horizontal=True, horizontal_alignment="center", vertical_alignment="center", gap="small",
                          key="judge-reasons"):
            st.caption("Equal, and you can say why:", width="content")
            for answer in reasons:
                _show_answer(st.container(width="content"), judging, question, answer, "tertiary")


def _show_answer(place: DeltaGenerator, judging: Judging, question: Question, answer: Answer,
                 kind: Literal["primary", "secondary", "tertiary"]) -> None:
    """Show the button of an answer."""
    choice, label, key = answer
    # A key of its own for each query: a second press must not answer a query that is not shown yet.
    place.button(label, key=f"judge-{choice.replace(' ', '-')}-{question.position}"
                            f"{SUFFIX[judging.comparison.results]}", shortcut=key, on_click=_answer,
                 args=(judging, question, choice), type=kind,
                 width="content" if kind == "tertiary" else "stretch")


def _answer(judging: Judging, question: Question, choice: Choice) -> None:
    """Store an answer; a key that is pressed again before the next query is shown does nothing."""
    with show_user_errors():
        if judging.answer(question, choice):
            st.session_state[MESSAGE] = f"Saved: {SAVED[judging.comparison.results][choice]}."


def _undo(judging: Judging) -> None:
    """Revert the last answer, whose query is shown again."""
    with show_user_errors():
        st.session_state[MESSAGE] = ("Undone: the last query is back." if judging.undo() else
                                     "There is nothing left to undo.")


def _show_progress(judging: Judging) -> None:
    """Show what the judgments say so far, without saying of which embedding, and when to stop.

    That stands directly below the answers, so that a window of 900 pixels shows it after each answer.
    """
    share, comparison = judging.share(judging.judge), judging.comparison
    what, why = advice_parts(judging, is_blind=True)
    # Until then, a range would tell by its movement which answers fell together.
    result = f"{result_words(share, comparison, BLIND)}." if share.is_decided else ""
    message = st.session_state.pop(MESSAGE, "")
    with st.container(key="judge-progress", gap="small"):
        (st.success if share.is_decided else st.markdown)(unbroken(f"**{what}** {why}"))
        if share.is_decided:
            range_bar(share, is_blind=True)
        if result:
            st.caption(unbroken(result))
        if agreed := agreement_words(judging):
            st.markdown(f":material/group: {escaped(agreed)}")
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button("Undo", icon=":material/undo:", key="judge-undo", shortcut="U", on_click=_undo, args=(judging,),
                      disabled=not share.count)
            st.button("Reveal names", icon=":material/visibility:", key="judge-reveal", on_click=_reveal,
                      args=(comparison.key,), disabled=not share.count,
                      type="primary" if share.is_decided else "secondary",
                      help="Shows the result, and which image came from which embedding. You can judge more queries "
                           "afterward: their sides are random, too.")
            st.caption(message or LEGENDS[comparison.results])
    st.html(f'<div role="status" aria-live="polite" style="{UNSEEN}">'
            f"{html.escape(f'{message} {what} {why}')}</div>")


def _show_waiting(judging: Judging) -> None:
    """Say how many judgments were given under other words, and let them count if the words mean the same."""
    waiting = judging.elsewhere()
    if not waiting:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="judge-waiting"):
        words = {escaped(given): count for given, count in waiting.items()}
        st.caption(waiting_words(words, escaped(judging.meaning)), width="content")
        st.button("Count them here, too", icon=":material/merge:", key="judge-keep", type="tertiary", on_click=_count,
                  args=(judging,), help="For words that mean the same. All judgments of these images then count under "
                                        "the words in view.")


def _count(judging: Judging) -> None:
    with show_user_errors():
        judging.keep_elsewhere()


def _reveal(key: str) -> None:
    """Reveal the names of a comparison; hide them with an empty key."""
    st.session_state[REVEALED] = key
