"""A line about named images that may be wrong, with one click to see them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array, rows_of
from udml_core.base.errors import counted
from udml_core.exploration.doubtful import Doubts, find_doubts, unlike_rows
from udml_core.runs import Run

from ..shell.run_hash import RUN_HASH
from ..shell.run_status import escaped
from ..shell.selection import select, selection
from .actions import clear_selection
from .board import Board

LOOKED = "labels-doubts-looked"
"""Session key of the images by data set that the user was shown, which are not counted again."""


def say_doubts(board: Board) -> None:
    """Say how many images of a class may be wrong, and offer to show them; nothing without doubts."""
    if not board.spreads or len(selection(board.dataset).ids):
        return
    looked = _looked(board)
    found = _doubts(board.run, board.frame, board.codes.tobytes(), board.left_out.tobytes(), board)
    nearer = {row: other for row, other in zip(found.rows.tolist(), found.nearer.tolist(), strict=True)
              if int(board.images[row]) not in looked}
    if not nearer:
        return
    rows = list(nearer)
    code = np.bincount(board.codes[rows]).argmax()  # the class with the most
    rows, others = [row for row in rows if board.codes[row] == code], len({int(board.codes[row]) for row in rows}) - 1
    images = board.images[rows]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        more = f" {counted(others, 'other class')} to check, too." if others else ""
        st.markdown(f":material/help: **{counted(len(images), 'image')} named *{escaped(board.names[code])}* may be "
                    f"something else:** {_reason(board, [nearer[row] for row in rows])}.{more}", width="content")
        st.button("Look", icon=":material/visibility:", key="labels-doubts", on_click=_show, args=(board, images),
                  help="Selects images that lie far from the others of this class, or nearer to another class; name "
                       "them again, or clear the selection to keep them.")


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


def _looked(board: Board) -> set[int]:
    looked: dict[str, set[int]] = st.session_state.setdefault(LOOKED, {})
    return looked.setdefault(board.dataset.fingerprint, set())


def _show(board: Board, images: Array) -> None:
    _looked(board).update(images.tolist())
    clear_selection(board.dataset)
    select(board.dataset.fingerprint, np.sort(images))


@st.cache_data(max_entries=16, show_spinner=False, hash_funcs=RUN_HASH)
def _doubts(run: Run, frame: str, codes: bytes, left_out: bytes, _board: Board) -> Doubts:  # noqa: ARG001
    return find_doubts(_board.points, np.where(_board.left_out, -1, _board.codes), ~_board.left_out)
