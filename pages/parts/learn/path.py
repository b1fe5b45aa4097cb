"""The path through the lessons, and what a class answered."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pandas as pd
import streamlit as st

from udml_core.results import lesson_page as words
from udml_core.results.lesson_texts import translated
from udml_core.results.lessons import (
    APP,
    TASK,
    answers_csv,
    clear_answers,
    counted_readers,
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
from .reader import course_language, known_reader, take_language, take_reader
from .task import attempt_rows, solved_lessons

HTML = '<div class="course"></div>\n'


def show_path() -> None:
    """Show the lessons in their order, and the summary of a class."""
    language = course_language()
    st.title(words.TITLE.words(language))
    st.caption(words.CAPTION.words(language))
    result = _component()(data={"course": course_header("learn?lesson={}", pictures=True), "heading": False,
                                "guide": course_guide(), "solved": solved_lessons(),
                                "reader": known_reader(), "language": language},
                          key="course", on_go_change=lambda: None, on_uncounted_change=lambda: None,
                          on_reader_change=lambda: None, on_language_change=lambda: None)
    take_language(result.language)
    if result.uncounted is not None:
        remove_reader(runs_folder(), str(result.uncounted))
    if result.go is not None:
        go(str(result.go))
    take_reader(result.reader)
    with st.expander(words.TEACHERS.words(language)):
        st.markdown(words.ABOUT_TEACHERS.words(language))
        address = _app_address()  # the download itself knows no page
        st.download_button(words.DOWNLOAD.words(language), lambda: course_archive(address), "lessons.zip",
                           "application/zip", icon=":material/download:", on_click="ignore")
        show_class(language)


def _app_address() -> str:
    """Return the address at which the browser reached the app."""
    parts = urlsplit(st.context.url or APP)
    return f"{parts.scheme}://{parts.netloc}"


@st.cache_resource(show_spinner=False)
def _component() -> Any:
    script = f"{path_script()}export default mountCourse;\n"
    return st.components.v2.component("udml_course", html=HTML, css=kit_style(), js=script)


def show_class(language: str) -> None:
    """Show how many readers answered each question correctly."""
    st.markdown(f"**{words.SUMMARY.words(language)}**")
    _add_links(language)
    answers = read_answers(runs_folder())
    if not answers:
        st.caption(words.NO_ANSWERS.words(language))
        return
    column = {name: text.words(language) for name, text in words.COLUMNS.items()}
    rows = []
    for lesson in course():
        row: dict[str, Any] = {column["lesson"]: translated(lesson.title, language)}
        for question, right in right_choices(lesson).items():
            counts = answers.get((lesson.id, question), Counter())
            total = counts.total()
            row |= {column[f"answers {question}"]: total,
                    column[f"correct {question}"]: round(100 * counts.get(right, 0) / total, 1) if total else None}
        row[column["solved"]] = answers.get((lesson.id, TASK), Counter()).total()
        rows.append(row)
    data_table(pd.DataFrame(rows), hide_index=True, width="stretch", placeholder="–")
    st.download_button(words.CSV.words(language), _class_csv, "answers.csv", "text/csv", icon=":material/download:",
                       help=words.ABOUT_CSV.words(language))
    if st.button(words.DELETE.words(language), icon=":material/delete:", help=words.ABOUT_DELETE.words(language)):
        clear_answers(runs_folder())
        st.rerun()


def _class_csv() -> str:
    """Return the answers of a class and the attempts of the same readers."""
    return answers_csv(runs_folder(), attempt_rows(counted_readers(runs_folder())))


def _add_links(language: str) -> None:
    """Take links with answers, which students of an exported course send."""
    with st.form("links", clear_on_submit=True, border=False):
        text = st.text_area(words.LINKS.words(language), height=68, placeholder=words.ONE_LINK.words(language),
                            help=words.ABOUT_LINKS.words(language))
        if st.form_submit_button(words.ADD.words(language)) and text:
            added = record_links(runs_folder(), text)
            message = words.ADDED_ONE if added == 1 else words.ADDED
            st.success(replace(message, values={"count": str(added)}).words(language))
