"""The pair to label now, and this session's answers: same, different, skip, undo."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.data.given.pair_sets import PairLog

from ..draw.two_images import unclassed_name
from ..shell.address import indices_from_address
from ..shell.user_errors import show_user_errors
from .hinge import Hinge

Pair = tuple[int, int]


@dataclass
class LabelingSession:
    """A user's progress through the pairs of a data set.

    Attributes:
        fingerprint: Fingerprint of the data set.
        current: The pair to label now.
        history: The actions so far: a skipped pair, or None for an answer.
        message: A message about the last action.
        queue: Pairs to label next, in order, (s, 2).
        queue_key: Id of the run, and the hinge, that the queue was made for; None before there is a queue.
    """

    fingerprint: str
    current: Pair | None = None
    history: list[Pair | None] = field(default_factory=list)
    message: str = ""
    queue: Array = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    queue_key: tuple[str, Hinge] | None = None


def labeling_session(dataset: Dataset) -> LabelingSession:
    """Return the labeling session of a data set.

    A new session starts with the pair in the address.
    """
    known = st.session_state.get("pairs-sitting")
    if isinstance(known, LabelingSession) and known.fingerprint == dataset.fingerprint:
        return known
    named = indices_from_address("asked", len(dataset))
    session = LabelingSession(dataset.fingerprint, (named[0], named[1]) if len(named) == 2 else None)
    st.session_state["pairs-sitting"] = session
    return session


def ask_about(dataset: Dataset, pair: Pair) -> None:
    """Make a pair the current one, whatever run, b and m are chosen afterward."""
    session = labeling_session(dataset)
    session.current, session.message, session.queue_key = pair, "", None


def answer(dataset: Dataset, pair: Pair, same: bool) -> None:
    """Save an answer.

    A key that is pressed again before the next pair is shown does nothing.
    """
    session = labeling_session(dataset)
    with show_user_errors():
        if session.current == pair:
            PairLog(dataset).add(*pair, same)
            session.current = None
            session.message = f"Saved: {_names(dataset, pair)} are labeled as {answer_word(same)}."
            session.history.append(None)


def skip(dataset: Dataset, pair: Pair) -> None:
    """Skip a pair; another session asks about it again."""
    session = labeling_session(dataset)
    if session.current == pair:
        session.current, session.message = None, f"Skipped: {_names(dataset, pair)}."
        session.history.append(pair)


def undo(dataset: Dataset) -> None:
    """Return to the last skipped or labeled pair and remove its label."""
    session = labeling_session(dataset)
    skipped = session.history.pop() if session.history else None
    with show_user_errors():
        if skipped is not None:
            session.current, session.message = skipped, "Undone: the skipped pair is back."
            return
        removed = PairLog(dataset).undo()
        session.message = "There is nothing left to undo."
        if removed is not None:
            first, second, same = removed
            session.current = first, second
            session.message = (f"Undone: {_names(dataset, session.current)} were labeled as "
                               f"{answer_word(bool(same))}.")


def _names(dataset: Dataset, pair: Pair) -> str:
    """Return the names of both images of a pair, which no longer influence an answer."""
    return " and ".join(unclassed_name(dataset, index) for index in pair)


def answer_word(same: bool) -> str:
    """Return the name of an answer."""
    return "same" if same else "different"
