"""Names for groups by words: each group gets the nearest word, with its margin, for a yes or a no."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.data.given.labels import LONGEST_CLASS, reject
from udml_core.exploration.words import WordName, name_groups
from udml_core.runs import Run
from udml_core.runs.search.naming import rejected_rows
from udml_core.runs.search.words import reads_words

from ..shell.cached import load_retrieval
from ..shell.run_hash import RUN_HASH
from ..shell.run_status import escaped, escaped_message
from ..shell.selection import selection
from ..shell.words import frame_of_words, vectors_of_words
from .actions import Target, act, assign_class, images_in_words
from .board import Board

BOX = "labels-words"
MOST_WORDS = 500
UNDECIDED = "undecided"


def ask_for_words(board: Board) -> None:
    """Show the box for words, one a line, where the run's encoder reads them."""
    if not reads_words(board.run):
        return
    kept, key = _kept(board), f"{BOX}-{board.run.id}"
    st.session_state[key] = st.session_state.get(kept, "")  # the box is not drawn while a group is open
    with st.popover("Name groups by words", icon=":material/translate:", key="labels-by-words"):
        st.text_area("Words, one a line", key=key, height=180, placeholder="bird\nboat\ndog",
                     on_change=lambda: st.session_state.__setitem__(kept, st.session_state[key]),
                     help="From 2 to 500 words: each group gets the word whose text is nearest to its mean image, as a "
                          "proposal that you confirm or reject.")
        st.caption(f"A group is *{UNDECIDED}* if its lead over the second word is below two standard errors of its "
                   "images.")


def _kept(board: Board) -> str:
    """Return the session key of the typed words."""
    return f"{BOX}-typed-{board.run.id}"


def _words(board: Board) -> tuple[str, ...]:
    """Return the typed words without repetitions.

    Raises:
        UserError: There are too many, or one is too long for a class.
    """
    lines = str(st.session_state.get(_kept(board), "")).splitlines()
    words = tuple(dict.fromkeys(" ".join(line.split()) for line in lines if line.strip()))
    longest = max(words, key=len, default="")
    if len(words) > MOST_WORDS or len(longest) > LONGEST_CLASS:
        raise UserError(f"Groups are named by at most {MOST_WORDS} words of {LONGEST_CLASS} letters, got {len(words)} "
                        f"words of at most {len(longest)} letters. Remove some.")
    return words


def names_by_words(board: Board, groups: Array) -> dict[int, tuple[str, str, WordName]]:
    """Return for each group the nearest and the second nearest word; none where no words are typed.

    Args:
        board: The board.
        groups: Group (p,) of each training image; −1 for an image with a name.
    """
    if not reads_words(board.run):
        return {}
    try:
        words = _words(board)
        rejected = rejected_rows(board.dataset, board.images, words)
        named = _named(board.run, words, groups.tobytes(), rejected.tobytes(), board) if words else {}
    except UserError as error:
        st.warning(escaped_message(str(error)), icon=":material/warning:")
        return {}
    return {group: (words[name.word], words[name.second], name) for group, name in named.items()}


@st.cache_data(max_entries=64, show_spinner=False, hash_funcs=RUN_HASH)
def _named(run: Run, words: tuple[str, ...], groups: bytes, rejected: bytes, _board: Board) -> dict[int, WordName]:
    rows = frame_of_words(load_retrieval(run)).take(_board.images)
    return name_groups(rows, np.frombuffer(groups, np.int64), vectors_of_words(run, words),
                       np.frombuffer(rejected, np.int64).reshape(-1, 2))


def badge_of(group: int, count: int, words: Mapping[int, tuple[str, str, WordName]]) -> str:
    """Return what stands below a group's picture: its word, which has room at the start only, or its number."""
    if group not in words:
        return f"group {group + 1} · {count:,}"
    word, _, found = words[group]
    return f"{word if found.is_decided else UNDECIDED} · {count:,}"


def show_word_name(board: Board, images: Array, name: tuple[str, str, WordName] | None) -> None:
    """Show the word of the open group, and the buttons that confirm or reject it for the selected images.

    Args:
        board: The board.
        images: The images of the group.
        name: The nearest and the second word with the margin; None without words.
    """
    if name is None:
        return
    word, second, found = name
    selected = selection(board.dataset)
    chosen = np.intersect1d(images, selected.ids)
    lead = f"+{found.margin:.3f} before *{escaped(second)}*, standard error {found.error:.1g}" if np.isfinite(
        found.error) else f"+{found.margin:.3f} before *{escaped(second)}*"
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="labels-word"):
        st.markdown(f"Nearest word: **{escaped(word)}** ({lead})" if found.is_decided else
                    f"**Undecided** between {escaped(word)} and {escaped(second)} ({lead})", width="content",
                    help="The lead is the difference between the mean cosines of the images with both words.")
        st.button(f"Confirm {escaped(word)}", icon=":material/check:", key="labels-word-confirm",
                  disabled=not len(chosen), on_click=assign_class,
                  args=(Target(board.dataset, chosen.tolist(), selected.revision), word),
                  help="Assigns the word as the class of the selected images of this group.")
        st.button(f"Not {escaped(word)}", icon=":material/close:", key="labels-word-reject",
                  disabled=not len(chosen), on_click=_reject, args=(board, chosen.tolist(), word),
                  help="Says that the selected images do not have this class.")


def _reject(board: Board, images: list[int], word: str) -> None:
    act(board.dataset, lambda: reject(board.dataset, images, word),
        lambda _: f"Rejected the class {word} of {images_in_words(len(images))}.")
