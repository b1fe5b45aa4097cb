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
from ..shell.selection import Selection, selection
from .actions import (
    PREVIEW,
    PROBLEM,
    TYPED,
    Target,
    assign_class,
    assign_typed_class,
    can_undo_action,
    close_or_clear,
    images_in_words,
    is_splitting,
    last_message,
    skip_images,
    undo_action,
)
from .board import CLASSES_WITH_KEYS, MOST_TILES, TRUE_CLASS, Board, tile_to_label

BUTTONS_HEIGHT, IN_A_ROW = 56, 3
"""Pixels of a row of buttons of classes, and the number of classes from which there are two; further rows scroll."""


def naming_bar(board: Board, selected: Selection, suggested: int | None) -> None:
    """Show what is named, the box and the classes that name it, and undo with the last action.

    Args:
        board: The board.
        selected: The data set's selection, which is named.
        suggested: The image that is named while none is selected; None if no image is suggested here.
    """
    images = selected.ids.tolist() or ([] if suggested is None else [suggested])
    st.session_state[PREVIEW] = False  # until the parts of a split are drawn again below
    with st.container(gap=None, key="labels-said"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="labels-what"):
            st.markdown(_what(board, selected, suggested), width="stretch")
            if len(selected.ids) or is_splitting():
                st.button("Clear", icon=":material/deselect:", key="labels-clear", shortcut="Esc", type="tertiary",
                          on_click=close_or_clear, args=(board.dataset,),
                          help="Closes the preview of a split, else selects no image and closes the group.")
        st.html(f'<div role="status" aria-live="polite" style="{UNSEEN}">'
                f'{html.escape(last_message(selected.revision))}</div>')
    target = Target(board.dataset, images, selected.revision)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        with st.form("labels-form", clear_on_submit=True, border=False), st.container(
                horizontal=True, vertical_alignment="bottom", gap="small"):
            st.text_input("Class name", key=TYPED, max_chars=LONGEST_CLASS, placeholder="Class name",
                          label_visibility="collapsed")
            st.form_submit_button(f"Name {images_in_words(len(images))}", icon=":material/new_label:", type="primary",
                                  disabled=not images, on_click=assign_typed_class, args=(target,))
        st.button("Undo", icon=":material/undo:", key="labels-undo", shortcut="U",
                  disabled=not (is_splitting() or can_undo_action(board.dataset)), on_click=undo_action,
                  args=(board.dataset,),
                  help="Closes the preview of a split, else reverts the last name, answer, or change of groups.")
    _class_buttons(board, target)
    _true_class(board, target)
    if problem := st.session_state.pop(PROBLEM, ""):
        st.error(escaped_message(problem), icon=":material/error:")


def _what(board: Board, selected: Selection, suggested: int | None) -> str:
    """Say in one line what is named and what was done last, or what to do."""
    done, count = escaped(last_message(selected.revision)), len(selected.ids)
    key = " or press its key" if board.classes else ""
    if count:
        return f"**{images_in_words(count)} selected** · {done or f'type a class{key}.'}"
    if suggested is not None:
        return f"**Suggested image** · {done or f'type its class{key}.'}"
    return f"**No image is selected** · {done or 'open a group, or select images on the map.'}"


def show_selected(board: Board, selected: Selection) -> None:
    """Show the selected images; a click takes an image out of the selection."""
    tiles = [tile_to_label(board, image, board.labels.get(image, "")) for image in selected.ids.tolist()[:MOST_TILES]]
    more = "" if len(tiles) == len(selected.ids) else f" The first {MOST_TILES} are shown."
    st.caption(f"The selected images.{more} A click takes an image out of the selection.")
    selectable_gallery(board.dataset, tiles, "Selected images", "labels-chosen", selected, 84, 240)


def show_suggested(board: Board, image: int) -> None:
    """Show the suggested image, why it is worth a label, and the button that skips it."""
    with st.container(horizontal=True, gap="small"):
        with st.container(key="labels-suggested", width=150):
            picture(board.dataset.images[image], 140, f"Suggested image: {board.dataset.names[image]}")
        with st.container(width=260, gap="small"):
            short, long = _reason(board.suggestions[0], len(board.images), bool((board.codes >= 0).any()))
            st.caption(short, help=long)
            st.button("Skip", icon=":material/skip_next:", key="labels-skip", shortcut="S", on_click=skip_images,
                      args=(Target(board.dataset, [image], selection(board.dataset).revision),),
                      help="Suggests another image; this one is not suggested again in this session.")


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
    """Show a button for each class, in a place of fixed height, so that a further class moves nothing."""
    if not board.buttons:
        return
    height = BUTTONS_HEIGHT if len(board.buttons) <= IN_A_ROW else 2 * BUTTONS_HEIGHT
    with st.container(horizontal=True, gap="xsmall", height=height, border=False, key="labels-classes"):
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
