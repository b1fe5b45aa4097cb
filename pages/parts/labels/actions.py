"""Actions on labels: assign a class, change groups, skip images, undo."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError, counted
from udml_core.data.dataset import Dataset
from udml_core.data.given.group_changes import (
    GroupChange,
    GroupChanges,
    change_groups,
    drop_changes,
    group_changes,
)
from udml_core.data.given.labels import KIND, answers_names, assign_beside, can_undo, undo
from udml_core.data.given.log import log_version
from udml_core.runs.search.naming import SEEN

from ..shell.selection import select, selection

OPENED, MEMBERS = "labels-group", "labels-group-images"
"""Session keys of the open group: the image that stands for it, and the images that it had when it was opened."""
TYPED = "labels-typed"
"""Session key of the typed name of a class."""
PAGE = "labels-proposed-page"
"""Session key of the page of proposed names, which stays until it is answered."""
FOLLOWING = "labels-group-following"
"""Session key of the image of the group that was named or passed over just now, so that the next group follows."""
MOVING = "labels-moving"
"""Session key: whether the next click on a group moves the selected images into it."""
SPLITTING, PREVIEW = "labels-splitting", "labels-preview"
"""Session keys of the image by which the group is open whose parts are shown, and whether the page shows them now."""
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
class Edit:
    """A name of an open group, a change of groups, or an answer about proposed names: what was open before it.

    Attributes:
        images: Ascending indices of the changed images.
        opened: Session key of what was open, and its value: the image of a group, or the page of proposed names.
        selected: Indices of the selected images.
    """

    images: list[int]
    opened: tuple[str, object]
    selected: list[int]


def action_history(dataset: Dataset) -> list[list[int] | Edit]:
    """Return this session's actions in order.

    Returns:
        For each action the skipped images, or what was open before it, or an empty list if no group or page was open.
    """
    histories: dict[str, list[list[int] | Edit]] = st.session_state.setdefault(HISTORY, {})
    return histories.setdefault(dataset.fingerprint, [])


def can_undo_action(dataset: Dataset) -> bool:
    """Return whether there is an action to undo, of this session or an earlier one."""
    return bool(action_history(dataset)) or can_undo(dataset)


def skipped_images(dataset: Dataset) -> tuple[int, ...]:
    """Return the indices of the images that were skipped in this session."""
    return tuple(image for images in action_history(dataset) if isinstance(images, list) for image in images)


def stored_changes(dataset: Dataset) -> GroupChanges:
    """Return the changes of groups that were not undone."""
    return _changes(dataset.fingerprint, log_version(dataset, KIND), dataset)


@st.cache_resource(max_entries=4, show_spinner=False)
def _changes(fingerprint: str, version: tuple[int, ...], _dataset: Dataset) -> GroupChanges:  # noqa: ARG001
    return group_changes(_dataset)


def edit_group(dataset: Dataset, change: GroupChange, message: str, opens: int | None = None,
               takes_out: bool = False) -> None:
    """Change the groups, which undo reverts, and select the images of the first part.

    Args:
        dataset: The data set.
        change: The change.
        message: What has changed.
        opens: The image by which a group is open from now on; by default the same image, if it is in the first part.
        takes_out: Whether the images of other parts do not belong to the group, so that its name is not theirs.
    """
    opened, first = st.session_state.get(OPENED), change.images[change.parts == 0].tolist()
    try:
        change_groups(dataset, change)
    except UserError as error:
        st.session_state[PROBLEM] = str(error)
        return
    action_history(dataset).append(
        Edit(sorted(change.images.tolist()), (OPENED, opened), selection(dataset).ids.tolist()))
    if opens is None:
        opens = opened if opened in first else first[0]  # the open group is the selected one
    st.session_state[OPENED] = opens
    if not takes_out:
        st.session_state[MEMBERS] = first
    _continue_with(dataset, first, message)


def drop_group_changes(dataset: Dataset, count: int) -> None:
    """Form the groups again without the changes by hand, which undo brings back."""
    act(dataset, lambda: drop_changes(dataset), lambda _dropped: f"Dropped {counted(count, 'change')} of groups.")


def assign_class(target: Target, name: str) -> None:
    """Assign a class to the target's images and continue with the next suggestion."""
    if not target.is_current:
        return
    if not target.images:
        st.session_state[PROBLEM] = "No image is selected, so nothing was named. Click a group or images first."
        return
    opened, images = st.session_state.get(OPENED), sorted(target.images)
    taken_out = [] if opened is None else _taken_out(images)
    # Of many images the panel shows a part: the others are named in bulk.
    is_bulk = len(target.images) > SEEN
    guessed = f" You saw {SEEN} of them at most, so all count as guesses until you confirm them." * is_bulk
    is_named = act(target.dataset, lambda: assign_beside(target.dataset, target.images, name, taken_out, is_bulk),
                   lambda assigned: f"{images_in_words(len(target.images))} named {assigned}.{guessed}",
                   None if opened is None else Edit(sorted([*images, *taken_out]), (OPENED, opened), images))
    if is_named:
        st.session_state[FOLLOWING] = opened


def _taken_out(images: list[int]) -> list[int]:
    """Return which images a user took out of the open group before naming the others, which must be more."""
    members = st.session_state.get(MEMBERS, [])
    others = sorted(set(members).difference(images))
    return others if set(images) <= set(members) and len(others) < len(images) else []


def act(dataset: Dataset, store: Callable[[], object], words: Callable[[object], str],
        before: Edit | None = None) -> bool:
    """Store an action on labels that undo reverts, and continue with the next suggestion.

    A refused action changes neither the selection nor the open group.

    Args:
        dataset: The data set.
        store: Stores the action.
        words: Returns the message about the action, from the result of `store`.
        before: What undo opens and selects again; the images of the action if None.

    Returns:
        Whether it was stored.
    """
    try:
        stored = store()
    except UserError as error:
        st.session_state[PROBLEM] = str(error)
        return False
    action_history(dataset).append([] if before is None else before)
    _continue_with(dataset, [], words(stored))
    return True


def assign_typed_class(target: Target) -> None:
    """Assign the class that the user typed; say so if other images are selected since."""
    name = st.session_state[TYPED]
    if not target.is_current and name.strip():
        st.session_state[PROBLEM] = (f"The selection changed while you typed, so no image was named {name.strip()}. "
                                     "Look at what is selected, and name it again.")
    assign_class(target, name)


def skip_images(target: Target) -> None:
    """Skip the target's images for this session."""
    if target.is_current:
        action_history(target.dataset).append(target.images)
        _continue_with(target.dataset, [], f"Skipped {images_in_words(len(target.images))}.")


def is_splitting() -> bool:
    """Return whether the user asked for the parts of the open group."""
    return SPLITTING in st.session_state and st.session_state[SPLITTING] == st.session_state.get(OPENED)


def close_preview(dataset: Dataset) -> bool:
    """Close the parts of a split that is not kept; return whether the page showed them."""
    was_shown = bool(st.session_state.get(PREVIEW))
    if was_shown:
        st.session_state.pop(SPLITTING, None)
        st.session_state[MESSAGE] = "The group is not split.", selection(dataset).revision
    return was_shown


def undo_action(dataset: Dataset) -> None:
    """Close the preview of a split; without one, undo the last action and select its images again.

    An action is an assignment, a change of groups, or a skip.
    """
    if close_preview(dataset):
        return
    history = action_history(dataset)
    last = history[-1] if history else []
    try:
        was_answer = answers_names(dataset)  # the last action is known only until it is undone
        images = last if isinstance(last, list) and last else undo(dataset)
    except UserError as error:
        st.session_state[PROBLEM] = str(error)
        return
    del history[-1:]
    if was_answer:
        st.session_state.pop(PAGE, None)
    if isinstance(last, Edit) and last.images == sorted(images):  # another window may have acted since
        st.session_state[last.opened[0]] = last.opened[1]
        st.session_state[MEMBERS] = last.images
        images = last.selected
    elif was_answer and images is not last:
        images = []  # among proposed names, selected images count as wrong
    again = f": {images_in_words(len(images))} selected again" if images else ""
    _continue_with(dataset, images, f"Undone{again}.")


def images_in_words(count: int) -> str:
    """Return a count with its noun, such as `3 images`."""
    return f"{count:,} {'image' if count == 1 else 'images'}"


def _continue_with(dataset: Dataset, images: list[int], message: str) -> None:
    """Select the images to label next, and keep a message about the last action.

    Without selected images, the suggested image is next.
    """
    select(dataset.fingerprint, np.array(images, dtype=np.int64))
    st.session_state[MESSAGE] = message, selection(dataset).revision


def close_or_clear(dataset: Dataset) -> None:
    """Close the preview of a split; without one, clear the selection."""
    if not close_preview(dataset):
        clear_selection(dataset)


def clear_selection(dataset: Dataset) -> None:
    """Select no image, and close the open group, whose images were selected."""
    for key in (OPENED, MOVING):
        st.session_state.pop(key, None)
    select(dataset.fingerprint, np.zeros(0, np.int64))


def select_with_message(dataset: Dataset, images: Array) -> None:
    """Select images, and keep the message about the last action."""
    message = last_message(selection(dataset).revision)
    _continue_with(dataset, images.tolist(), message)


def last_message(revision: int) -> str:
    """Return the message about the last action; empty once the selection has changed since.

    Args:
        revision: Revision of the selection.
    """
    message, at = st.session_state.get(MESSAGE, ("", revision))
    return str(message) if at == revision else ""
