"""The pictures of a blind judgment: the query between two images, or between two sets; neither names nor labels."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

import streamlit as st

from udml_core.base.errors import UserError, counted
from udml_core.data.dataset import Dataset
from udml_core.runs.search.differing import Comparison, Results
from udml_core.runs.search.judging import Choice, Judging, Question

from ..draw.pictures import inline, sharp
from ..shell.user_errors import show_user_errors

Answer = tuple[Choice, str, str]
LEFT: Answer = ("left", "Left", "Left")
RIGHT: Answer = ("right", "Right", "Right")
EQUAL: Answer = ("equal", "Equal", "Down")
UNSURE: Answer = ("unsure", "Not sure", "N")
KEYS: tuple[Answer, ...] = (LEFT, EQUAL, UNSURE, RIGHT)
"""Each answer with its button and the key that presses it."""
REASONS: dict[Results, tuple[Answer, ...]] = {
    "first": (("both right", "Both are right", "B"), ("both wrong", "Both are wrong", "W")), "ten": (), "group": ()}
"""Why two images are equal, which the summary counts; of several images, neither side is simply right or wrong."""
OF_SETS = "Keys: ← left, → right, ↓ equal, N not sure, U undo. Every answer is saved at once."
SET_SAVED: dict[Choice, str] = {"left": "the left images are better", "right": "the right images are better",
                                "equal": "equal", "unsure": "not sure"}
LEGENDS: dict[Results, str] = {
    "first": "Keys: ← left, → right, ↓ equal, B both right, W both wrong, N not sure, U undo. Every answer is saved at "
             "once.",
    "ten": OF_SETS, "group": OF_SETS}
SAVED: dict[Results, dict[Choice, str]] = {
    "first": {"left": "the left image shows the same kind", "right": "the right image shows the same kind",
              "equal": "equal", "both right": "both are right", "both wrong": "both are wrong", "unsure": "not sure"},
    "ten": SET_SAVED, "group": SET_SAVED}
MOST_STACKED = 2
"""Most images of one side that stand in one column."""


def show_pictures(judging: Judging, question: Question) -> None:
    """Show the query with its candidates."""
    dataset = judging.comparison.dataset
    if judging.comparison.results != "first":
        _show_sets(dataset, question)
        st.caption(_left_out_words(judging.comparison, question.position))
        return
    pictures = (("Left", question.left[0]), ("Query", question.query), ("Right", question.right[0]))
    with st.container(key="judge-pictures"):
        for column, (word, image) in zip(st.columns(3), pictures, strict=True):
            with column:
                st.html(f'<div class="judge-name">{word}</div>')
                with show_user_errors():
                    st.image(_picture(dataset.fingerprint, image, dataset), width="stretch", alt=f"{word} image")


def _left_out_words(comparison: Comparison, position: int) -> str:
    """Say which results are not shown: what both find is equal, and of a group, a few others are drawn."""
    shared, count = comparison.shared(position), comparison.candidates.shape[-1]
    if comparison.results == "ten":
        return (f"Both also find {counted(shared, 'further image')} among the first ten; only what differs is shown."
                if shared else "All of the first ten differ.")
    only, drawn = count - shared, len(comparison.options(position)[0])
    few = f"{drawn} of these, drawn at random, are shown" if drawn < only else "these are shown"
    both = f" Both find the other {shared}." if shared else ""
    return f"Of the first {count} results, about a group, {only} differ: {few}.{both}"


def _show_sets(dataset: Dataset, question: Question) -> None:
    """Show the query between both sets."""
    count = max(len(question.left), len(question.right))
    columns = math.ceil(math.sqrt(count)) if count > MOST_STACKED else 1
    size = f"--columns:{columns};--rows:{-(-count // columns)}"
    left, right = (f'<div><div class="judge-name">{name}</div><div class="judge-set">'
                   f'{"".join(_image_html(dataset, image, f"{name}, image {at}") for at, image in enumerate(side, 1))}'
                   "</div></div>" for name, side in (("Left", question.left), ("Right", question.right)))
    query = f'<div><div class="judge-name">Query</div>{_image_html(dataset, question.query, "Query image")}</div>'
    st.html(f'<div class="judge-sets" style="{size}">{left}{query}{right}</div>')


def rows_html(dataset: Dataset, query: int, rows: Sequence[tuple[str, tuple[int, ...]]]) -> str:
    """Return a judged query beside named rows of images in HTML.

    Args:
        dataset: The data set.
        query: The query.
        rows: The name and the images of each row.
    """
    drawn = "".join(f'<div class="judge-name">{html.escape(name)}</div><div class="judge-row">'
                    f'{"".join(_image_html(dataset, image, f"{name}, image {at}") for at, image in enumerate(row, 1))}'
                    "</div>" for name, row in rows)
    return (f'<div class="judge-rows"><div><div class="judge-name">Query</div>'
            f'{_image_html(dataset, query, "Query image")}</div><div>{drawn}</div></div>')


def _image_html(dataset: Dataset, image: int, words: str) -> str:
    try:
        source = _picture(dataset.fingerprint, image, dataset)
    except UserError as error:
        return f'<div class="judge-missing">{html.escape(str(error))}</div>'
    return f'<img src="{source}" alt="{html.escape(words)}">'


@st.cache_data(max_size="128MB", show_spinner=False)
def _picture(fingerprint: str, index: int, _dataset: Dataset) -> str:  # noqa: ARG001
    return inline(sharp(_dataset.images[index]))
