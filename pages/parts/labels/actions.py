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


def action_history(dataset: Dataset) -> list[list[int] | Edit]:
    """Return this session's actions in order.

    Returns:
        For each action the skipped images, a change of the groups, or an empty list for an assigned class.
    """
    histories: dict[str, list[list[int] | Edit]] = st.session_state.setdefault(HISTORY, {})
    return histories.setdefault(dataset.fingerprint, [])


def skipped_images(dataset: Dataset) -> tuple[int, ...]:
    """Return the indices of the images that were skipped in this session."""
    return tuple(image for images in action_history(dataset) if isinstance(images, list) for image in images)


def group_edits(dataset: Dataset) -> list[Edit]:
    """Return the changes of groups in this session that were not undone."""
    return [action for action in action_history(dataset) if isinstance(action, Edit)]


def edit_group(dataset: Dataset, edit: Edit, message: str) -> None:
    """Change the groups in this session, which undo reverts, and select the images of the first part."""
    action_history(dataset).append(edit)
    _continue_with(dataset, edit.images[edit.parts == 0].tolist(), message)


def assign_class(target: Target, name: str) -> None:
    """Assign a class to the target's images and continue with the next suggestion."""
    if not target.is_current:
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
        images = last.images.tolist() if isinstance(last, Edit) else last or undo(dataset)
    except UserError as error:
        st.session_state[PROBLEM] = str(error)
        return
    del history[-1:]
    _continue_with(dataset, images, f"Undone: {images_in_words(len(images))} selected again.")


def images_in_words(count: int) -> str:
    """Return a count with its noun, such as `3 images`."""
    return f"{count:,} {'image' if count == 1 else 'images'}"


def _continue_with(dataset: Dataset, images: list[int], message: str) -> None:
    """Select the images to label next, and keep a message about the last action.

    Without selected images, the suggested image is next.
    """
    st.session_state[MESSAGE] = message
    select(dataset.fingerprint, np.array(images, dtype=np.int64))
