"""The path through the lessons, and what a class answered."""

from __future__ import annotations

from collections import Counter
from typing import Any
from urllib.parse import urlsplit

import pandas as pd
import streamlit as st

from udml_core.base.errors import counted
from udml_core.results.lessons import (
    APP,
    TASK,
    answers_csv,
    clear_answers,
    course,
    course_archive,
    course_guide,
    course_header,
    kit_style,
    path_script,
    read_answers,
    record_links,
    remove_reader,
    right_choices,
)
from udml_core.runs import runs_folder

from ..draw.tables import data_table
from .lesson import go
from .reader import known_reader, take_reader
from .task import solved_lessons

HTML = '<div class="course"></div>\n'


def show_path() -> None:
    """Show the lessons in their order, and the summary of a class."""
    st.title("Learn")
    st.caption("Metric learning from the first distance to a checked result. Every lesson runs in the browser, on data "
               "that come with the app.")
    result = _component()(data={"course": course_header("learn?lesson={}", pictures=True), "heading": False,
                                "guide": course_guide(), "solved": solved_lessons(),
                                "reader": known_reader()},
                          key="course", on_go_change=lambda: None, on_uncounted_change=lambda: None,
                          on_reader_change=lambda: None)
    if result.uncounted is not None:
        remove_reader(runs_folder(), str(result.uncounted))
    if result.go is not None:
        go(str(result.go))
    take_reader(result.reader)
    with st.expander("For teachers"):
        st.markdown("Each lesson has a presentation for the last row (**Present**), a one-page summary, a handout with "
                    "exercises and no answers, and teacher notes that print apart. The download has the course as HTML "
                    "files that work without a server, for a web page or a stick. Their links to this app lead to the "
                    "address at which it runs now.")
        address = _app_address()  # the download itself knows no page
        st.download_button("Download the course", lambda: course_archive(address), "lessons.zip",
                           "application/zip", icon=":material/download:", on_click="ignore")
        show_class()


def _app_address() -> str:
    """Return the address at which the browser reached the app."""
    parts = urlsplit(st.context.url or APP)
    return f"{parts.scheme}://{parts.netloc}"


@st.cache_resource(show_spinner=False)
def _component() -> Any:
    script = f"{path_script()}export default mountCourse;\n"
    return st.components.v2.component("udml_course", html=HTML, css=kit_style(), js=script)


def show_class() -> None:
    """Show how many readers answered each question correctly."""
    st.markdown("**Class summary**")
    _add_links()
    answers = read_answers(runs_folder())
    if not answers:
        st.caption("No answers yet. The answers of each reader on this server who ticks **Count my next answers** "
                   "above the cards are counted here, without names; they stay on this computer.")
        return
    rows = []
    for lesson in course():
        row: dict[str, Any] = {"lesson": lesson.title}
        for question, right in right_choices(lesson).items():
            counts = answers.get((lesson.id, question), Counter())
            total = counts.total()
            row |= {f"answers {question}": total,
                    f"correct {question} %": round(100 * counts.get(right, 0) / total, 1) if total else None}
        row["solved the task"] = answers.get((lesson.id, TASK), Counter()).total()
        rows.append(row)
    data_table(pd.DataFrame(rows), hide_index=True, width="stretch", placeholder="–")
    st.download_button("Download CSV", lambda: answers_csv(runs_folder()), "answers.csv", "text/csv",
                       icon=":material/download:",
                       help="One row for each answer and each solved task, with the random name of its reader.")
    if st.button("Delete the answers", icon=":material/delete:",
                 help="Deletes the answers of the class on this computer. It cannot be undone."):
        clear_answers(runs_folder())
        st.rerun()


def _add_links() -> None:
    """Take links with answers, which students of an exported course send."""
    with st.form("links", clear_on_submit=True, border=False):
        text = st.text_area("Links of students", height=68, placeholder="One link a line",
                            help="A student copies the link above the cards of the course, also in exported files. The "
                                 "link of the app also says which tasks the student solved there.")
        if st.form_submit_button("Add answers") and text:
            added = counted(record_links(runs_folder(), text), "answer")
            st.success(f"{added} added. The first answer of a reader counts.")
