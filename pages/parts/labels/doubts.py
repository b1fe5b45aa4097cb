"""A line about named images that may be wrong, with one click to see them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array, rows_of
from udml_core.base.errors import counted
from udml_core.data.given.labels import assign, sure_images
from udml_core.exploration.doubtful import Doubts, find_doubts, unlike_rows
from udml_core.runs import Run

from ..shell.run_hash import RUN_HASH
from ..shell.run_status import escaped
from ..shell.selection import select, selection
from .actions import act, clear_selection, images_in_words
from .board import Board

LOOKED = "labels-doubts-looked"
"""Session key of the classes by data set whose doubts the user was shown, the last one last: others come first."""


def say_doubts(board: Board) -> None:
    """Say how many images of a class may be wrong, and offer to show them; nothing without doubts."""
    if not board.spreads:
        return
    is_sure = np.isin(board.images, list(board.dataset.indices_by_name(sure_images(board.dataset)).values()))
    found = _doubts(board.run, board.frame, board.codes.tobytes(), (board.left_out | is_sure).tobytes(), board)
    chosen, looked = selection(board.dataset).ids, _looked(board)
    if not len(found.rows) or (len(chosen) and not looked):
        return
    code = board.names.index(looked[-1]) if len(chosen) else _class_to_look_at(board, found)
    is_own = board.codes[found.rows] == code
    images = board.images[found.rows[is_own]]
    if len(chosen) and not np.isin(chosen, images).all():
        return  # the user selected other images than the doubtful ones
    others = len(np.unique(board.codes[found.rows])) - 1
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        more = f" {counted(others, 'other class')} to check, too." if others else ""
        st.markdown(f":material/help: **{counted(len(images), 'image')} named *{escaped(board.names[code])}* may be "
                    f"something else:** {_reason(board, found.nearer[is_own].tolist())}.{more}", width="content")
        if len(chosen):
            st.button("This one is right" if len(chosen) == 1 else f"These {len(chosen):,} are right",
                      icon=":material/check:", key="labels-right", on_click=_keep, args=(board, chosen, code),
                      help="Keeps the name of the selected images, which are no doubts from now on. Click images that "
                           "are wrong first: they leave the selection. Undo reverts it.")
        else:
            st.button("Look", icon=":material/visibility:", key="labels-doubts", on_click=_show,
                      args=(board, images, board.names[code]),
                      help="Selects images that lie far from the others of this class, or nearer to another class; "
                           "name them again, or say that they are right.")


def _class_to_look_at(board: Board, found: Doubts) -> int:
    """Return the class with the most doubts, among those not looked at, else the first looked at."""
    codes, counts = np.unique(board.codes[found.rows], return_counts=True)
    turns = {name: number for number, name in enumerate(_looked(board), 1)}
    turn = np.array([turns.get(board.names[code], 0) for code in codes.tolist()])
    return int(codes[np.lexsort((-counts, turn))[0]])


def _reason(board: Board, nearer: list[int]) -> str:
    """Return why images are doubtful: the class that most look more like, or that they look like no other."""
    counts, it = Counter(other for other in nearer if other >= 0), "it looks" if len(nearer) == 1 else "they look"
    if not counts:
        return f"{it} unlike the others"
    (other, count), = counts.most_common(1)
    which = it if count == len(nearer) else f"{count:,} look{'s' * (count == 1)}"
    return f"{which} more like *{escaped(board.names[other])}*"


def count_unlike(board: Board, images: list[int], name: str) -> int:
    """Return how many images look unlike a class whose name they are about to get."""
    if name not in board.classes:
        return 0
    rows = rows_of(board.images, np.array(images, np.int64))
    return len(unlike_rows(board.points, np.where(board.left_out, -1, board.codes), rows[rows >= 0],
                           board.names.index(name)))


def _looked(board: Board) -> list[str]:
    looked: dict[str, list[str]] = st.session_state.setdefault(LOOKED, {})
    names = looked.setdefault(board.dataset.fingerprint, [])
    names[:] = [name for name in names if name in board.names]
    return names


def _show(board: Board, images: Array, name: str) -> None:
    looked = _looked(board)
    looked[:] = [*(other for other in looked if other != name), name]
    clear_selection(board.dataset)
    select(board.dataset.fingerprint, np.sort(images))


def _keep(board: Board, images: Array, code: int) -> None:
    """Store that doubtful names are right."""
    name = board.names[code]
    act(board.dataset, lambda: assign(board.dataset, images.tolist(), name, is_sure=True),
        lambda _stored: f"{images_in_words(len(images))} {'stays' if len(images) == 1 else 'stay'} {name}.")


@st.cache_data(max_entries=16, show_spinner=False, hash_funcs=RUN_HASH)
def _doubts(run: Run, frame: str, codes: bytes, without: bytes, _board: Board) -> Doubts:  # noqa: ARG001
    return find_doubts(_board.points, np.where(_board.left_out, -1, _board.codes), ~np.frombuffer(without, bool))
