"""The course: its path, and one lesson at a time."""

import streamlit as st

from pages.parts.learn.lesson import show_lesson
from pages.parts.learn.path import show_path
from udml_core.results.lessons import find_lesson

lesson = find_lesson(st.query_params.get("lesson", ""))
if lesson is None:
    show_path()
else:
    show_lesson(lesson)
