"""The task of a lesson: what to try with a real run, and what the user's runs say about it."""

from __future__ import annotations

import streamlit as st

from udml_core.results.lesson_tasks import TASKS, Evidence
from udml_core.results.lessons import Lesson
from udml_core.runs import runs_folder
from udml_core.runs.task_evidence import own_evidence

from ..shell.views import view_link


def show_task(lesson: Lesson) -> None:
    """Show the task of a lesson, the link to begin with, and whether the user's runs solve it."""
    task = TASKS.get(lesson.id)
    if task is None:
        return
    st.subheader("Try it with a real run")
    st.markdown(task.text)
    view_link("train", task.query, label="Open the task in Lab", icon=":material/science:", width="content")
    result = task.result(own_evidence(runs_folder()))
    if result is None:
        st.caption("None of your finished runs is about this task yet. Runs of the examples do not count.")
    elif result.is_solved:
        st.success(result.words, icon=":material/task_alt:")
    else:
        st.info(result.words, icon=":material/trending_flat:")


def solved_lessons() -> list[str]:
    """Return the ids of the lessons whose task the user's runs solve."""
    runs: list[Evidence] = [*own_evidence(runs_folder())]
    return [lesson for lesson, task in TASKS.items() if (result := task.result(runs)) and result.is_solved]
