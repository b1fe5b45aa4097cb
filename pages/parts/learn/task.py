"""The task of a lesson: what to try with a real run, and what the reader's runs say about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd
import streamlit as st

from udml_core.results.lesson_attempts import attempts
from udml_core.results.lesson_page import ABOUT_ENGLISH, ATTEMPT_COLUMNS, ATTEMPTS, TASK_WAITS, to_english
from udml_core.results.lesson_tasks import NO_RUN, OPEN, TASKS, Evidence, Task
from udml_core.results.lesson_texts import translated
from udml_core.results.lessons import Lesson, find_lesson
from udml_core.runs import Run, runs_folder
from udml_core.runs.task_evidence import note_task, own_evidence

from ..draw.tables import data_table
from ..shell.views import view_link
from .reader import ask_reader, is_predicted, known_reader

PARAMETER = "task"
"""Names, in the address of Lab, the lesson whose task is tried there."""


def show_task(lesson: Lesson, language: str) -> None:
    """Show the task of a lesson, the link to begin with, and whether the runs started from it solve it.

    Until the reader has predicted, it only says so: a task could answer the question.

    Args:
        lesson: The lesson.
        language: The language of the course.
    """
    task = TASKS.get(lesson.id)
    if task is None:
        return
    st.subheader(translated("Try it with a real run", language))
    if not is_predicted(lesson.id):
        st.caption(TASK_WAITS.words(language))
        return
    _show_texts(task, language)
    runs = _own_runs(lesson)
    view_link("train", {**task.begin(runs).query, PARAMETER: lesson.id},
              label=to_english(OPEN.words(language), language),
              icon=":material/science:", width="content")
    if language != "en":
        st.caption(ABOUT_ENGLISH.words(language))
    _show_result(task, runs, language)
    _show_attempts(task, runs, language)


def show_task_in_lab() -> None:
    """Show the task that the address of Lab names, and what the reader's runs say about it."""
    lesson = find_lesson(st.query_params.get(PARAMETER, ""))
    task = None if lesson is None else TASKS.get(lesson.id)
    if lesson is None or task is None:
        return
    with st.container(border=True, key="lab-task"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**Task of the lesson “{lesson.title}”**")
            view_link("learn", {"lesson": lesson.id}, label="Back to the lesson", icon=":material/school:",
                      width="content")
        _show_texts(task, "en")
        _show_result(task, _own_runs(lesson), "en")
        ask_reader()


def note_start(runs: Iterable[Run]) -> None:
    """Credit runs that were started now to the task that the address of Lab names, and to its reader."""
    lesson = st.query_params.get(PARAMETER, "")
    if lesson in TASKS and known_reader():
        for run in runs:
            note_task(run, lesson, known_reader())


def _own_runs(lesson: Lesson) -> Sequence[Evidence]:
    """Return the finished runs that the reader started from the task of a lesson, newest first."""
    return own_evidence(runs_folder(), known_reader()).get(lesson.id, [])


def _show_texts(task: Task, language: str) -> None:
    """Show what to do, and what the words of the task mean."""
    st.markdown(translated(task.text, language))
    if task.terms:
        st.markdown("\n".join(f"- {translated(term, language)}" for term in task.terms))


def _show_result(task: Task, runs: Sequence[Evidence], language: str) -> None:
    """Show what runs say about a task."""
    result = task.result(runs)
    if result is None:
        st.caption(NO_RUN.words(language))
    elif result.is_solved:
        st.success(result.in_language(language), icon=":material/task_alt:")
    else:
        st.info(result.in_language(language), icon=":material/trending_flat:")


def _show_attempts(task: Task, runs: Sequence[Evidence], language: str) -> None:
    """List what the reader tried for a task, when, and what came out, newest first."""
    made = attempts(task, runs)
    if not made:
        return
    columns = [name.words(language) for name in ATTEMPT_COLUMNS]
    with st.expander(f"{ATTEMPTS.words(language)} ({len(made)})"):
        rows = [(attempt.when, attempt.tried, attempt.outcome(language)) for attempt in made]
        data_table(pd.DataFrame(rows, columns=columns), hide_index=True, width="stretch")


def attempt_rows(readers: Iterable[str]) -> list[tuple[str, str, bool, str, str, str]]:
    """Return the attempts of readers: reader, lesson, whether the task was solved then, when, settings, outcome."""
    return [(reader, lesson, bool(attempt.result and attempt.result.is_solved), attempt.when, attempt.tried,
             attempt.outcome())
            for reader in readers for lesson, runs in own_evidence(runs_folder(), reader).items() if lesson in TASKS
            for attempt in reversed(attempts(TASKS[lesson], runs))]


def solved_lessons() -> list[str]:
    """Return the ids of the lessons whose task the reader's runs solve."""
    return [lesson for lesson, runs in own_evidence(runs_folder(), known_reader()).items()
            if lesson in TASKS and (result := TASKS[lesson].result(runs)) and result.is_solved]
