"""What counts as the same, in the user's words, wherever images are judged."""

from __future__ import annotations

import streamlit as st

from udml_core.base.errors import counted, listed
from udml_core.data.dataset import Dataset
from udml_core.data.given.judged_pairs import (
    LONGEST_MEANING,
    answers_elsewhere,
    choose_meaning,
    chosen_meaning,
    keep_answers,
)

from .run_status import escaped
from .user_errors import show_user_errors


def words_for_same(dataset: Dataset) -> str:
    """Return what counts as the same, as the widget or the log says it; empty without words."""
    return " ".join(str(st.session_state.get(_key(dataset), chosen_meaning(dataset))).split())


def choose_words(dataset: Dataset, rule: str = "Each answer counts under the words in view.",
                 is_of_pairs: bool = True) -> None:
    """Describe what counts as the same; every question then names it.

    Args:
        dataset: The data set.
        rule: How answers and words belong together, in a sentence.
        is_of_pairs: Whether pairs are judged; blind judgments say elsewhere which of them wait.
    """
    key = _key(dataset)
    # Set in every run: a closed menu creates the box only when it opens, which would otherwise begin empty.
    st.session_state[key] = st.session_state.get(key, chosen_meaning(dataset))

    def keep() -> None:
        with show_user_errors():
            choose_meaning(dataset, st.session_state[key])

    st.text_input("What counts as the same?", key=key, help=rule,
                  max_chars=LONGEST_MEANING, on_change=keep, placeholder="one object, one product, one species")
    if is_of_pairs and (elsewhere := answers_elsewhere(dataset)):
        said = listed([f"{counted(count, 'answer')} for **{escaped(words)}**" if words else
                       f"{counted(count, 'answer')} without words" for words, count in elsewhere.items()])
        st.caption(f"Not counted: {said}. They count again if you return to those words.")
        st.button("Count them here, too", icon=":material/merge:", key="same-keep", type="tertiary",
                  help="For words that mean the same, such as a mended spelling.", on_click=_keep, args=(dataset,))


def _key(dataset: Dataset) -> str:
    """Return the key of the widget."""
    return f"same-meaning-{dataset.fingerprint[:8]}"


def _keep(dataset: Dataset) -> None:
    with show_user_errors():
        keep_answers(dataset)
