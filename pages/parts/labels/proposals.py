"""Proposed names: images that look like a class, for a yes or a no; the least certain first."""

from __future__ import annotations

from functools import partial

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array, rows_of
from udml_core.base.errors import counted
from udml_core.data.given.labels import assign, reject
from udml_core.exploration.grouping import Proposal

from ..draw.gallery import selectable_gallery
from ..draw.palette import percent
from ..shell.run_status import escaped
from ..shell.selection import selection
from .actions import REST, Edit, act, images_in_words
from .board import MOST_TILES, Board, tile_to_label

CLASS = "labels-proposed"


def shown_rows(board: Board) -> Array:
    """Return the rows of the images whose proposed name is shown."""
    proposal = _chosen(board)
    return np.zeros(0, np.int64) if proposal is None else proposal.rows[:MOST_TILES]


def _chosen(board: Board) -> Proposal | None:
    """Return the proposal of the chosen class, else the first; None without any."""
    name, waiting = st.session_state.get(CLASS), _waiting(board)
    if waiting is not None and name in (None, board.names[waiting.code]):
        return waiting
    return next((proposal for proposal in board.proposals if board.names[proposal.code] == name),
                next(iter(board.proposals), None))


def _waiting(board: Board) -> Proposal | None:
    """Return what is left of the images of which some were rejected: no others come before these are confirmed."""
    name, images = st.session_state.get(REST, ("", []))
    rows = rows_of(board.images, np.array(images, np.int64))
    rows = rows[rows >= 0]
    rows = rows[(board.codes[rows] < 0) & ~board.left_out[rows]]
    if name not in board.names or not len(rows):
        return None
    code = board.names.index(name)
    return Proposal(code, rows, board.names_given.naming.certainty_without_own(rows, np.full(len(rows), code)))


def show_proposals(board: Board) -> None:
    """Show the images that look like a class, and confirm or reject the name."""
    proposal = _chosen(board)
    if proposal is None:
        st.caption("No name is certain enough to be proposed. Name a group, or lower the certainty below the map.")
        return
    name = board.names[proposal.code]
    waiting = _waiting(board)
    is_rest = waiting is not None and waiting.code == proposal.code
    st.selectbox("Class", list(dict.fromkeys([name] * is_rest + [board.names[each.code] for each in board.proposals])),
                 key=CLASS, width=420, help="The class with the most proposals is first.")
    shown = Proposal(proposal.code, proposal.rows[:MOST_TILES], proposal.certainty[:MOST_TILES])
    images, chosen = board.images[shown.rows], selection(board.dataset).ids
    wrong = np.isin(images, chosen)
    guesses = f"Too few names of {escaped(name)} are checked yet: these are guesses, and many may be wrong. " \
        if board.names_given.are_guesses(proposal.code) else ""
    left = " that you saw" if is_rest else ""
    st.caption(f"{counted(len(proposal.rows), 'image')}{left} may show *{escaped(name)}*. {guesses}The least certain "
               "first. Select the wrong images and reject them, then confirm the rest; then others come.",
               help="Once you checked 10 names of a class and nearly all were right, similar images get the name.")
    with st.container(horizontal=True):
        st.button(f"Not {escaped(name)}: {wrong.sum():,} selected", icon=":material/close:", key="labels-reject",
                  shortcut="N", disabled=not wrong.any(), help="Reject the name for the selected images.",
                  on_click=_judge, args=(board, name, images[wrong], shown.certainty[wrong], images[~wrong].tolist()))
        is_proven = board.names_given.are_proven(proposal.code, shown.certainty)
        st.button(_confirm_words(int((~wrong).sum()), bool(wrong.any()), is_proven), icon=":material/check:",
                  key="labels-confirm", shortcut="Y", type="primary" if is_proven else "secondary",
                  disabled=bool(wrong.all()), help="Assign the class to the images not selected.",
                  on_click=_judge, args=(board, name, images[~wrong], shown.certainty[~wrong]))
    tiles = [tile_to_label(board, int(image), percent(100 * certainty))
             for image, certainty in zip(images.tolist(), shown.certainty.tolist(), strict=True)]
    selectable_gallery(board.dataset, tiles, f"Images that look like {name}", "labels-proposals",
                       selection(board.dataset), 84, 420)


def _confirm_words(count: int, is_rest: bool, is_proven: bool) -> str:
    """Return what the button says that assigns a class; where the class is a guess, it answers a question."""
    if is_proven:
        return f"Confirm {count:,}"
    if count == 1:
        return "Yes, the other one is" if is_rest else "Yes, it is"
    return f"Yes, the other {count:,} are" if is_rest else f"Yes, all {count:,} are"


def _judge(board: Board, name: str, images: Array, certainty: Array, rest: list[int] | None = None) -> None:
    """Store the answer about proposed names: a yes, or a no that leaves a rest of the shown images."""
    store, verb = (assign, "Confirmed") if rest is None else (reject, "Rejected")
    st.session_state[REST] = name, rest or []
    act(board.dataset, partial(store, board.dataset, images.tolist(), name, certainties=certainty.tolist()),
        lambda _stored: f"{verb} the class {name} of {images_in_words(len(images))}.",
        Edit(sorted(images.tolist()), (CLASS, name), selection(board.dataset).ids.tolist()))
