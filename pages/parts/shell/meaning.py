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


def choose_words(dataset: Dataset, rule: str = "Each answer counts under the words in view.") -> None:
    """Describe what counts as the same; every question then names it.

    Answers under other words wait; what is said of them stands where the words are typed, on every page.

    Args:
        dataset: The data set.
        rule: How answers and words belong together, in a sentence.
    """
    key = _key(dataset)
    # Set in every run: a closed menu creates the box only when it opens, which would otherwise begin empty.
    st.session_state[key] = st.session_state.get(key, chosen_meaning(dataset))

    def keep() -> None:
        with show_user_errors():
            choose_meaning(dataset, st.session_state[key])

    st.text_input("What counts as the same?", key=key, help=rule,
                  max_chars=LONGEST_MEANING, on_change=keep, placeholder="one object, one product, one species")
    if waiting := [f"{counted(count, kind)} {f'for **{escaped(words)}**' if words else 'without words'}"
                   for kind, given in answers_elsewhere(dataset).items() for words, count in given.items()]:
        st.caption(f"Not counted under these words: {listed(waiting)}. Return to the earlier words to count them "
                   "again.")
        st.button("Count them here, too", icon=":material/merge:", key="same-keep", type="tertiary",
                  help="For words that mean the same, such as a mended spelling.", on_click=_keep, args=(dataset,))


def _key(dataset: Dataset) -> str:
    """Return the key of the widget."""
    return f"same-meaning-{dataset.fingerprint[:8]}"


def _keep(dataset: Dataset) -> None:
    with show_user_errors():
        keep_answers(dataset)
