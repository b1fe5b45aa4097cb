"""Actions on labels in this session: assign a class, skip images, undo."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import streamlit as st

from udml_core.base.errors import UserError
from udml_core.data.dataset import Dataset
from udml_core.data.given.labels import assign, undo
from udml_core.exploration.grouping import Edit

from ..shell.selection import select, selection

SEEN = 60
"""Most images that the panel shows, so that a user can look at each."""
OPENED = "labels-group"
"""Session key of the open group: the image that stands for it."""
HISTORY, PROBLEM, MESSAGE = "labels-trails", "labels-problem", "labels-said"


@dataclass(frozen=True)
class Target:
    """The images that the buttons act on.

    Attributes:
        dataset: The data set.
        images: Indices of the images.
        revision: Revision of the selection when the buttons were drawn. Every action raises it.
    """

    dataset: Dataset
    images: list[int]
    revision: int

    @property
    def is_current(self) -> bool:
        """Whether the page still shows these images.

        A key that is pressed twice must not act on the next image.
        """
        return selection(self.dataset).revision == self.revision


@dataclass(frozen=True)
class GroupEdit:
    """A change of the groups, and what was open and selected before it.

    Attributes:
        edit: The change.
        opened: The image by which a group was open; None without.
        selected: Indices of the selected images.
    """

    edit: Edit
    opened: int | None
    selected: list[int]


def action_history(dataset: Dataset) -> list[list[int] | GroupEdit]:
    """Return this session's actions in order.

    Returns:
        For each action the skipped images, a change of the groups, or an empty list for an assigned class.
    """
    histories: dict[str, list[list[int] | GroupEdit]] = st.session_state.setdefault(HISTORY, {})
    return histories.setdefault(dataset.fingerprint, [])


def skipped_images(dataset: Dataset) -> tuple[int, ...]:
    """Return the indices of the images that were skipped in this session."""
    return tuple(image for images in action_history(dataset) if isinstance(images, list) for image in images)


def group_edits(dataset: Dataset) -> list[Edit]:
    """Return the changes of groups in this session that were not undone."""
    return [action.edit for action in action_history(dataset) if isinstance(action, GroupEdit)]


def edit_group(dataset: Dataset, edit: Edit, message: str, opens: int | None = None) -> None:
    """Change the groups in this session, which undo reverts, and select the images of the first part.

    Args:
        dataset: The data set.
        edit: The change.
        message: What has changed.
        opens: The image by which a group is open from now on; by default the same image, if it is in the first part.
    """
    opened, first = st.session_state.get(OPENED), edit.images[edit.parts == 0].tolist()
    action_history(dataset).append(GroupEdit(edit, opened, selection(dataset).ids.tolist()))
    if opens is None:
        opens = opened if opened in first else first[0]  # the open group is the selected one
    st.session_state[OPENED] = opens
    _continue_with(dataset, first, message)


def assign_class(target: Target, name: str) -> None:
    """Assign a class to the target's images and continue with the next suggestion."""
    if not target.is_current:
        return
    if not target.images:
        st.session_state[PROBLEM] = "No image is selected, so nothing was named. Click a group or images first."
        return
    # Of many images the panel shows a part: the others are named in bulk.
    act(target.dataset, lambda: assign(target.dataset, target.images, name, is_unseen=len(target.images) > SEEN),
        lambda assigned: f"Assigned the class {assigned} to {images_in_words(len(target.images))}.")


def act(dataset: Dataset, store: Callable[[], object], words: Callable[[object], str]) -> None:
    """Store an action on labels that undo reverts, and continue with the next suggestion.

    Args:
        dataset: The data set.
        store: Stores the action.
        words: Returns the message about the action, from the result of `store`.
    """
    try:
        stored = store()
    except UserError as error:
        st.session_state[PROBLEM] = str(error)
        return
    action_history(dataset).append([])
    _continue_with(dataset, [], words(stored))


def assign_typed_class(target: Target) -> None:
    """Assign the class that the user typed."""
    assign_class(target, st.session_state["labels-typed"])


def skip_images(target: Target) -> None:
    """Skip the target's images for this session."""
    if target.is_current:
        action_history(target.dataset).append(target.images)
        _continue_with(target.dataset, [], f"Skipped {images_in_words(len(target.images))}.")


def undo_action(dataset: Dataset) -> None:
    """Undo the last assignment or skip and select its images again."""
    history = action_history(dataset)
    try:
        last = history[-1] if history else []
        images = last.selected if isinstance(last, GroupEdit) else last or undo(dataset)
    except UserError as error:
        st.session_state[PROBLEM] = str(error)
        return
    del history[-1:]
    if isinstance(last, GroupEdit):
        st.session_state[OPENED] = last.opened
    _continue_with(dataset, images, f"Undone: {images_in_words(len(images))} selected again.")


def images_in_words(count: int) -> str:
    """Return a count with its noun, such as `3 images`."""
    return f"{count:,} {'image' if count == 1 else 'images'}"


def _continue_with(dataset: Dataset, images: list[int], message: str) -> None:
    """Select the images to label next, and keep a message about the last action.

    Without selected images, the suggested image is next.
    """
    select(dataset.fingerprint, np.array(images, dtype=np.int64))
    st.session_state[MESSAGE] = message, selection(dataset).revision


def last_message(revision: int) -> str:
    """Return the message about the last action; empty once the selection has changed since.

    Args:
        revision: Revision of the selection.
    """
    message, at = st.session_state.get(MESSAGE, ("", revision))
    return str(message) if at == revision else ""
