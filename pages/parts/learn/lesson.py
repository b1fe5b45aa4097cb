"""One lesson, which runs in the browser."""

from __future__ import annotations

from typing import Any

import streamlit as st

from udml_core.results.lesson_texts import translated
from udml_core.results.lessons import (
    Lesson,
    course_header,
    kit_style,
    lesson_guide,
    lesson_script,
    record_answer,
)
from udml_core.runs import runs_folder

from ..shell.views import open_view
from .reader import course_language, is_predicted, known_reader, take_language, take_prediction, take_reader
from .task import show_task

OPENED = {"clusters", "compare", "data", "explore", "instances", "labels", "neighborhoods", "affinity", "pairs",
          "refine", "results", "retrieval", "runs", "train", "triplets"}
"""Pages that a lesson may open."""
HTML = '<div class="lesson"></div>\n'


def show_lesson(lesson: Lesson) -> None:
    """Show a lesson."""
    language = course_language()
    st.title(translated(lesson.title, language))
    header = {"course": course_header("learn?lesson={}"), "index": "learn", "heading": False,
              "content": _content(lesson), "guide": lesson_guide(lesson), "language": language,
              "reader": known_reader(), "isPredicted": is_predicted(lesson.id)}
    result = _component(lesson)(data=header, key=f"lesson-{lesson.id}", on_go_change=lambda: None,
                                on_open_change=lambda: None, on_answered_change=lambda: None,
                                on_predicted_change=lambda: None,
                                on_language_change=lambda: None, on_reader_change=lambda: None)
    take_language(result.language)
    if result.answered:
        _record(lesson, result.answered)
    take_prediction(lesson.id, True if result.answered else result.predicted)
    if result.go is not None:
        go(str(result.go["id"]), is_presented=bool(result.go["isPresented"]))
    if result.open:
        _open(result.open)
    take_reader(result.reader)
    show_task(lesson, language)


@st.cache_resource(show_spinner=False)
def _component(lesson: Lesson) -> Any:
    """Register the component of a lesson."""
    script = f"{lesson_script(lesson)}export default (answers) => mountLesson(answers, LESSON);\n"
    return st.components.v2.component(f"udml_lesson_{lesson.id}", html=HTML, css=kit_style(), js=script)


@st.cache_data(show_spinner=False)
def _content(lesson: Lesson) -> dict[str, Any]:
    return lesson.content()


def go(lesson: str, is_presented: bool = False) -> None:
    """Open another lesson, or the path for an empty name, in the same language.

    Args:
        lesson: The id of the lesson.
        is_presented: Whether the lesson is presented; the address of a lesson that is presented now may not say so.
    """
    kept = {"language": st.query_params["language"]} if "language" in st.query_params else {}
    st.query_params.from_dict(({"lesson": lesson} if lesson else {}) | kept | (
        {"present": "1"} if is_presented else {}))
    st.rerun()


def _open(wanted: dict[str, Any]) -> None:
    page, query = str(wanted.get("page")), wanted.get("query")
    if page in OPENED and isinstance(query, dict):
        open_view(page, {str(name): str(value) for name, value in query.items()})


def _record(lesson: Lesson, answer: dict[str, Any]) -> None:
    record_answer(runs_folder(), lesson.id, str(answer.get("question")), answer.get("choice", -1),
                  str(answer.get("reader")))
