"""The panel that assigns classes to images.

It shows the images to label, a button and a key for each class, undo and skip.
"""

from __future__ import annotations

import html

import streamlit as st

from udml_core.data.given.labels import LONGEST_CLASS
from udml_core.exploration.label_spread import Suggestion

from ..draw.gallery import selectable_gallery
from ..draw.pictures import picture
from ..shell.run_status import UNSEEN, escaped, escaped_message
from ..shell.selection import Selection
from .actions import (
    MESSAGE,
    PROBLEM,
    Target,
    action_history,
    assign_class,
    assign_typed_class,
    images_in_words,
    skip_images,
    undo_action,
)
from .board import CLASSES_WITH_KEYS, MOST_TILES, TRUE_CLASS, Board, tile_to_label

KEYS_IN_WORDS = "keys 1–9 and 0 assign the first ten classes"


def assignment_panel(board: Board, selected: Selection) -> None:
    """Show the images to label, the classes as buttons with keys, and the last action."""
    images = selected.ids.tolist() if len(selected.ids) else board.suggested_images[:1]
    if not images:
        st.success("Every image of the training half has a label or was skipped. Select an image to change its label.",
                   icon=":material/check_circle:")
    elif len(selected.ids):
        _selected_images(board, images, selected)
    else:
        _suggested_image(board, images[0])
    target = Target(board.dataset, images, selected.revision)
    _class_buttons(board, target)
    _true_class(board, target)
    with st.form("labels-form", clear_on_submit=True, border=False), st.container(
            horizontal=True, vertical_alignment="bottom"):
        st.text_input("New class", key="labels-typed", max_chars=LONGEST_CLASS,
                      placeholder="Class name")
        st.form_submit_button("Assign class", icon=":material/new_label:", disabled=not images,
                              on_click=assign_typed_class, args=(target,))
    with st.container(horizontal=True):
        st.button("Undo", icon=":material/undo:", key="labels-undo", shortcut="U",
                  disabled=not (board.labels or action_history(board.dataset)), on_click=undo_action,
                  args=(board.dataset,))
        st.button("Skip", icon=":material/skip_next:", key="labels-skip", shortcut="S", disabled=not images,
                  on_click=skip_images, args=(target,))
    _last_action()


def _selected_images(board: Board, images: list[int], selected: Selection) -> None:
    st.markdown(f"**{images_in_words(len(images))} to label** · {KEYS_IN_WORDS}, Esc clears.")
    tiles = [tile_to_label(board, image, board.labels.get(image, "")) for image in images[:MOST_TILES]]
    selectable_gallery(board.dataset, tiles, "Images to label", "labels-chosen", selected, 84, 240)


def _suggested_image(board: Board, image: int) -> None:
    how = KEYS_IN_WORDS if board.classes else "type its class, which then gets a button and a key"
    st.markdown(f"**Suggested image** · {how}.")
    with st.container(key="labels-suggested"):
        picture(board.dataset.images[image], 140, f"Suggested image: {board.dataset.names[image]}")
    short, long = _reason(board.suggestions[0], len(board.images), bool((board.codes >= 0).any()))
    st.caption(short, help=long)


def _reason(suggestion: Suggestion, count: int, labeled: bool) -> tuple[str, str]:
    """Return why an image is worth a label, in one sentence and in detail.

    Args:
        suggestion: The suggested image.
        count: The number of training images.
        labeled: Whether a training image has a label.
    """
    until = "before they end or reach a label" if labeled else "before they end"
    typical = "It is typical of the images farthest from all labels." if labeled else "It is typical of many images."
    return typical, (f"Random walks from all {count:,} training images visit this image most often {until}: "
                     f"{suggestion.visits:,.0f} visits, with repeats.")


def _class_buttons(board: Board, target: Target) -> None:
    """Show a button for each class."""
    with st.container(horizontal=True):
        for name, number in board.buttons.items():
            st.button(escaped(name), key=f"labels-class-{number}",
                      shortcut=str(number % 10) if number <= CLASSES_WITH_KEYS else None, disabled=not target.images,
                      on_click=assign_class, args=(target, name))
    without = len(board.classes) - len(board.buttons)
    if without:
        st.caption(f"{len(board.buttons)} of {len(board.classes)} classes have a button: the classes with a key and "
                   f"the most recently assigned classes. Type the name of any of the other {without}.")


def _true_class(board: Board, target: Target) -> None:
    """Show the first image's class in the data set with a button, if the user asks for it."""
    dataset = board.dataset
    if dataset.labels is None or not target.images:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.toggle("Show the true class", key=TRUE_CLASS,
                     help="The image's class in the data set. It is hidden so that it does not influence you."):
            own = dataset.class_names[dataset.labels[target.images[0]]]
            if own in board.buttons:
                st.markdown(f"The data set says: **{escaped(own)}**", width="content")
            else:
                st.button(escaped(own), key="labels-class-own", on_click=assign_class, args=(target, own),
                          icon=":material/verified:", help="Assign the image's class in the data set.")


def _last_action() -> None:
    message = st.session_state.get(MESSAGE, "")
    st.caption(escaped(message))
    st.html(f'<div role="status" aria-live="polite" style="{UNSEEN}">{html.escape(message)}</div>')
    problem = st.session_state.pop(PROBLEM, "")
    if problem:
        st.error(escaped_message(problem), icon=":material/error:")
