"""Proposed names: the next images of a class for a yes or a no, the class first that is most probably right."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array, rows_of
from udml_core.base.errors import counted
from udml_core.data.given.labels import answer_names
from udml_core.exploration.grouping import Proposal

from ..draw.gallery import selectable_gallery
from ..draw.palette import percent
from ..shell.run_status import escaped
from ..shell.selection import selection
from .actions import PAGE, Edit, act, images_in_words
from .board import Board, tile_to_label

CLASS = "labels-proposed"


class Page(NamedTuple):
    """The images of a class that the user is asked about.

    Attributes:
        name: The class.
        images: Indices of the images; empty before they are shown.
    """

    name: str
    images: tuple[int, ...] = ()


def open_class(name: str) -> None:
    """Show the next images of a class when the section is drawn."""
    st.session_state[PAGE] = Page(name)


def shown_rows(board: Board) -> Array:
    """Return the rows of the images whose proposed name is shown."""
    asked = _asked(board)
    return np.zeros(0, np.int64) if asked is None else asked.rows


def _asked(board: Board) -> Proposal | None:
    """Return the images of the page that is shown until it is answered, else of the first class; None without any."""
    page = st.session_state.get(PAGE, Page(""))
    if page.name in board.names:
        rows = rows_of(board.images, np.array(page.images, np.int64))
        rows = rows[rows >= 0]
        rows = rows[~board.left_out[rows]]
        if (board.codes[rows] < 0).any():  # images that got another name meanwhile keep their place
            code = board.names.index(page.name)
            return Proposal(code, rows, board.names_given.naming.certainty_without_own(rows, np.full(len(rows), code)))
    found = next((each for each in board.next_names if board.names[each.code] == page.name),
                 next(iter(board.next_names), None))
    if found is not None:
        st.session_state[PAGE] = Page(board.names[found.code], tuple(board.images[found.rows].tolist()))
    return found


def show_proposals(board: Board) -> None:
    """Show the next images of a class, and what answers them all at once."""
    asked = _asked(board)
    if asked is None:
        st.caption("No image is near a class. Name a group first." if not board.spreads else
                   "Every image has a label, or was rejected for all classes near it.")
        return
    name = board.names[asked.code]
    _choose_class(board, name)
    is_waiting = board.codes[asked.rows] < 0
    images, certainty = board.images[asked.rows[is_waiting]], asked.certainty[is_waiting]
    chosen = np.isin(images, selection(board.dataset).ids)
    guesses = f"Too few names of {escaped(name)} are checked yet: these are guesses, and many may be wrong. " \
        if board.names_given.are_guesses(asked.code) else ""
    st.caption(f"{counted(len(images), 'image')} may show *{escaped(name)}*, the most certain first. {guesses}Click "
               "the wrong ones, or if these are more, the right ones. The answer is about all images shown, which stay "
               "until then; the next class follows.",
               help="Once you checked 10 names of a class and nearly all were right, similar images get the name.")
    _answer_buttons(board, name, dict(zip(images.tolist(), certainty.tolist(), strict=True)), chosen,
                    board.names_given.are_proven(asked.code, certainty))
    badges = [percent(100 * value) if is_open else board.labels.get(image, "") for image, value, is_open in zip(
        board.images[asked.rows].tolist(), asked.certainty.tolist(), is_waiting.tolist(), strict=True)]
    tiles = [tile_to_label(board, image, badge)
             for image, badge in zip(board.images[asked.rows].tolist(), badges, strict=True)]
    selectable_gallery(board.dataset, tiles, f"Images that look like {name}", "labels-proposals",
                       selection(board.dataset), 84, 420)


def _choose_class(board: Board, name: str) -> None:
    names = list(dict.fromkeys([*(board.names[each.code] for each in board.next_names), name]))
    if st.session_state.get(CLASS) != name:
        st.session_state[CLASS] = name
    st.selectbox("Class", names, key=CLASS, width=420, on_change=lambda: open_class(st.session_state[CLASS]),
                 help="First the class whose images are most probably right: their nearest labeled images agree. A "
                      "class of which you rejected all images comes last.")


def _answer_buttons(board: Board, name: str, certainty: dict[int, float], chosen: Array, is_proven: bool) -> None:
    """Show the three answers about a page: all but the selected images, only these, or none."""
    count, some = len(chosen), int(chosen.sum())
    # Keys of their own for each page: a second press must not answer a page that is not shown yet.
    page = f"{name}-{'.'.join(map(str, certainty))}"
    yes, only, none = st.columns([3, 3, 2], gap="small")  # a click on an image moves none of them
    yes.button(_count_words(count - some, some) if some else f"All {count:,} yes", key=f"labels-confirm-{page}",
               shortcut="Y", type="primary" if is_proven or some else "secondary", disabled=some == count,
               on_click=_answer, args=(board, name, certainty, ~chosen), width="stretch",
               help="Assigns the class to the images that are not selected, and rejects it for the selected images.")
    only.button(_count_words(some, count - some) if some else "Only selected", key=f"labels-only-{page}", shortcut="O",
                disabled=not some, on_click=_answer, args=(board, name, certainty, chosen), width="stretch",
                help="Assigns the class to the selected images, and rejects it for the others.")
    none.button("None", key=f"labels-none-{page}", shortcut="N", on_click=_answer, width="stretch",
                args=(board, name, certainty, np.zeros(count, bool)),
                help="Rejects the class for all images shown; the class comes last.")


def _count_words(right: int, wrong: int) -> str:
    """Return what a button answers: for how many images yes, and for how many no."""
    return f"{right:,} yes, {wrong:,} no"


def _answer(board: Board, name: str, certainty: dict[int, float], is_right: Array) -> None:
    """Store the answer about a page of proposed names; the next class follows."""
    page, right = st.session_state.get(PAGE), int(is_right.sum())
    answers = {image: (value, bool(yes)) for (image, value), yes in zip(certainty.items(), is_right, strict=True)}
    said = [f"{images_in_words(right)} confirmed as {name}"] * bool(right) + [
        f"{images_in_words(len(answers) - right)} rejected"] * (right < len(answers))
    st.session_state.pop(PAGE, None)
    act(board.dataset, lambda: answer_names(board.dataset, name, answers), lambda _stored: f"{', '.join(said)}.",
        Edit(sorted(answers), (PAGE, page), selection(board.dataset).ids.tolist()))
