"""The panel that assigns classes to images.

It shows the images to label, a button and a key for each class, undo and skip.
"""

from __future__ import annotations

import html
from collections import Counter
from dataclasses import dataclass

import streamlit as st

from udml_core.data.given.labels import LONGEST_CLASS, spelled_as
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
from .doubts import count_unlike

SEARCHED = "labels-search"
"""Session key of the class that is chosen in the search."""
ASKED = "labels-asked"
"""Session key of the question whether images get the name of a class that they look unlike."""
FEWEST_ASKED, UNLIKE = 3, 0.8
"""Fewest images, and share of them that looks unlike a class, from which the page asks before they get its name: of
pure groups of birds, it asked for 2 of 9 that had the name of their own class, and for 98 % that had another's."""


def naming_bar(board: Board, selected: Selection, suggested: int | None) -> None:
    """Show what is named, the box and the classes that name it, and undo with the last action.

    Args:
        board: The board.
        selected: The data set's selection, which is named.
        suggested: The image that is named while none is selected; None if no image is suggested here.
    """
    images = selected.ids.tolist() or ([] if suggested is None else [suggested])
    assert board.retrieval  # callbacks compare images with classes
    st.session_state[PREVIEW] = False  # until the parts of a split are drawn again below
    target = Target(board.dataset, images, selected.revision)
    with st.container(gap=None, key="labels-said"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="labels-what"):
            st.markdown(_what(board, selected, suggested), width="stretch")
            if len(selected.ids) or is_splitting():
                st.button("Clear", icon=":material/deselect:", key="labels-clear", shortcut="Esc", type="tertiary",
                          on_click=close_or_clear, args=(board.dataset,),
                          help="Closes the preview of a split, else selects no image and closes the group.")
        st.html(f'<div role="status" aria-live="polite" style="{UNSEEN}">'
                f'{html.escape(last_message(selected.revision))}</div>')
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        with st.form("labels-form", clear_on_submit=True, border=False), st.container(
                horizontal=True, vertical_alignment="bottom", gap="small"):
            st.text_input("Class name", key=TYPED, max_chars=LONGEST_CLASS, placeholder="Class name",
                          label_visibility="collapsed")
            named = images_in_words(len(images)) if images else "them"
            st.form_submit_button(f"Name {named}", icon=":material/new_label:", type="primary",
                                  disabled=not images, on_click=_name_as_typed, args=(board, target))
        st.button("Undo", icon=":material/undo:", key="labels-undo", shortcut="U",
                  disabled=not (is_splitting() or can_undo_action(board.dataset)), on_click=undo_action,
                  args=(board.dataset,),
                  help="Closes the preview of a split, else reverts the last name, answer, or change of groups.")
    _class_buttons(board, target)
    _true_class(board, target)
    if (question := _question(target)) is not None:
        _ask(target, question)
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
    return f"**No image is selected** · {done}" if done else "**Open a group**, or select images on the map."


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


@dataclass(frozen=True)
class Question:
    """The question whether images get the name of a class that they look unlike.

    Attributes:
        name: The class.
        unlike: Number of images that look unlike it.
        revision: Revision of the selection, which ends the question when it changes.
    """

    name: str
    unlike: int
    revision: int


def _question(target: Target) -> Question | None:
    """Return the question about the target's images; None without one."""
    asked = st.session_state.get(ASKED)
    return asked if isinstance(asked, Question) and asked.revision == target.revision and target.images else None


def _cancel() -> None:
    st.session_state.pop(ASKED, None)


@st.dialog("Is this the right name?", on_dismiss=_cancel)
def _ask(target: Target, question: Question) -> None:
    """Ask over the page, wherever it is scrolled to, whether images that look unlike a class get its name."""
    count, name = len(target.images), escaped(question.name)
    which = f"These {images_in_words(count)}" if question.unlike == count else (
        f"{question.unlike:,} of these {images_in_words(count)}")
    st.markdown(f"{which} look unlike *{name}*, compared with the images that have this name. Name them nevertheless?")
    with st.container(horizontal=True, gap="small"):
        named = st.button(f"Name them {name}", key="labels-nevertheless")
        if named:
            assign_class(target, question.name)
        if st.button("Cancel", key="labels-not-named", icon=":material/close:", type="tertiary") or named:
            _cancel()
            st.rerun()


def _name(board: Board, target: Target, name: str) -> None:
    """Assign a class; ask first if nearly all of the images look unlike it."""
    unlike = count_unlike(board, target.images, name) if target.is_current else 0
    if len(target.images) >= FEWEST_ASKED and unlike >= UNLIKE * len(target.images):
        st.session_state[ASKED] = Question(name, unlike, target.revision)
    else:
        assign_class(target, name)


def _name_as_typed(board: Board, target: Target) -> None:
    """Assign the typed class as a click on its button does, if there is such a class."""
    name = spelled_as(board.classes, st.session_state[TYPED])
    if name and target.is_current and target.images:
        _name(board, target, name)
    else:
        assign_typed_class(target)


def _class_search(board: Board, target: Target) -> None:
    """Offer all classes with their number of labels in a box that filters them, once there are more than keys."""
    if len(board.classes) <= CLASSES_WITH_KEYS:
        return
    counts = Counter(board.labels.values())
    st.selectbox("Search classes", sorted(board.classes, key=str.casefold), index=None, key=SEARCHED, width=230,
                 format_func=lambda name: f"{name} · {counts[name]:,}", disabled=not target.images,
                 placeholder=f"Search {len(board.classes):,} classes", label_visibility="collapsed",
                 on_change=_name_as_chosen, args=(board, target))


def _name_as_chosen(board: Board, target: Target) -> None:
    """Assign the class that was chosen in the search, which is then empty again."""
    if name := st.session_state.get(SEARCHED):
        st.session_state[SEARCHED] = None
        _name(board, target, name)


def _class_buttons(board: Board, target: Target) -> None:
    """Show a button for each class, first with keys, then by name, in a few lines that scroll, after their search."""
    if not board.buttons:
        return
    ordered = sorted(board.buttons.items(), key=lambda each: (
        (each[1], "") if each[1] <= CLASSES_WITH_KEYS else (CLASSES_WITH_KEYS + 1, each[0].casefold())))
    with st.container(horizontal=True, gap="xsmall", key="labels-classes"):
        _class_search(board, target)
        for name, number in ordered:
            st.button(escaped(name), key=f"labels-class-{number}",
                      shortcut=str(number % 10) if number <= CLASSES_WITH_KEYS else None, disabled=not target.images,
                      on_click=_name, args=(board, target, name))


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
