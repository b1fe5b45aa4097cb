"""The list of images that runs leave out: its buttons, and galleries in which images are selected for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import streamlit as st

from udml_core.base.arrays import Integers
from udml_core.base.components import digest
from udml_core.base.errors import UserError, counted, listed
from udml_core.data.dataset import Dataset
from udml_core.data.given.duplicate_decisions import can_undo_decision, undo_decision
from udml_core.data.given.exclusions import (
    can_undo,
    exclude,
    excluded_images,
    excluding_files,
    include,
    parse_list,
    switch_file,
    undo,
    write_list,
)
from udml_core.data.given.labels import confirm_names
from udml_core.data.given.labels import undo as undo_names
from udml_core.data.given.uploads import parse_upload

from ..draw.gallery import selectable_gallery, tile_of
from ..shell.awaited import note_exclusion
from ..shell.run_status import escaped, escaped_message
from ..shell.selection import select, selection
from ..shell.user_errors import as_user_errors
from .enlarged import enlarge
from .moving import show_moving

MOST_TILES, LONGEST_NAME, MOST_NAMED = 400, 100, 3
NAMES = "names "
"""Beginning of an action that confirmed names; its decision follows."""
MESSAGE, PROBLEM, ACTIONS = "audit-message", "audit-problem", "audit-actions"
NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class ShownImages:
    """What a gallery shows, and what its button excludes.

    Attributes:
        images: Indices of the images, in the order of the gallery.
        badges: A short text for each image; empty for the names of the classes.
        caption: What the gallery shows.
        offer: Words of the button that excludes many images at once; empty without the button.
        offered: Indices of these images.
    """

    images: Integers
    badges: list[str]
    caption: str
    offer: str = ""
    offered: Integers = field(default_factory=lambda: NONE)


def select_images(dataset: Dataset, shown: ShownImages, label: str, key: str) -> None:
    """Show a gallery in which images can be selected; a double-click or Enter enlarges an image.

    Args:
        dataset: The data set.
        shown: The images.
        label: What the gallery shows, for screen readers.
        key: The widget's key.
    """
    images = shown.images[:MOST_TILES]
    tiles = [tile_of(dataset, int(index), badge=shown.badges[position] if shown.badges else "")
             for position, index in enumerate(images)]
    opened = selectable_gallery(dataset, tiles, label, key, selection(dataset), 112, 560,
                                offer_key(shown.offered))
    more = "" if len(images) == len(shown.images) else f" The first {MOST_TILES} of {len(shown.images):,} are shown."
    st.caption(f"{shown.caption}{more} Click images to select them; a double-click enlarges an image.")
    if opened is not None:
        enlarge(dataset, images, opened)


def offer_key(images: Integers) -> str:
    """Return the key of the button that excludes images at once."""
    return f"audit-offer-{digest(images.tobytes())[:12]}"


def offer_button(dataset: Dataset, words: str, images: Integers, help_text: str = "", is_primary: bool = False) -> None:
    """Show the button that excludes the images of a finding at once.

    Its key names the images, so that a click on a button that the page is replacing never excludes other images.

    Args:
        dataset: The data set.
        words: What the button says.
        images: Indices of the images.
        help_text: What the button does.
        is_primary: Whether the button is the first action of the page.
    """
    st.button(words, icon=":material/filter_1:", key=offer_key(images), shortcut="E",
              type="primary" if is_primary else "secondary", disabled=not len(images), on_click=change_list,
              args=(dataset, exclude, images), help=help_text or None)


def show_excluded(dataset: Dataset) -> None:
    """Show the excluded images and the buttons that change the list."""
    excluded = excluded_images(dataset)
    listed = np.intersect1d(selection(dataset).ids, excluded)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if len(excluded):
            st.button(f"Include selected ({len(listed):,})", icon=":material/add_circle:", key="audit-include",
                      disabled=not len(listed), on_click=change_list, args=(dataset, include, listed),
                      help="New runs use these images again.")
        list_buttons(dataset)
    _show_files(dataset)
    if not len(excluded):
        st.info("No image is excluded, so new runs use all images.", icon=":material/check_circle:")
    else:
        words = (f"New runs leave out {len(excluded):,} of {len(dataset):,} images. Earlier runs keep the list that "
                 "they started with. The files stay where they are until you move them below.")
        select_images(dataset, ShownImages(excluded, [], words), "Excluded images", "audit-excluded")
    show_moving(dataset)


def _show_files(dataset: Dataset) -> None:
    """Show a switch for each imported list, such as one of another program."""
    for number, (file, (count, is_on)) in enumerate(excluding_files(dataset).items()):
        key = f"audit-list-{number}-{dataset.fingerprint[:12]}"
        st.session_state[key] = is_on
        st.toggle(escaped(f"Use the list {file} ({counted(count, 'image')})"), key=key, on_change=_switch,
                  args=(dataset, file, not is_on), help="Off: images that only this list excludes are used again.")


def _switch(dataset: Dataset, file: str, is_on: bool) -> None:
    def act() -> None:
        switch_file(dataset, file, is_on)
        note_exclusion(dataset)
        _actions(dataset).append("list")

    keep_problem(act)


def list_buttons(dataset: Dataset) -> None:
    """Show the buttons that undo the last action, save the list and import one, and the last message."""
    st.button("Undo", icon=":material/undo:", key="audit-undo", shortcut="U", disabled=not can_undo_any(dataset),
              on_click=undo_last, args=(dataset,),
              help="Reverts the last exclusion, confirmation of names, choice of a copy, or decision about a pair.")
    count = len(excluded_images(dataset))
    st.download_button("Download list", lambda: write_list(dataset), "excluded.csv", "text/csv", key="audit-download",
                       icon=":material/download:", on_click="ignore", disabled=not count,
                       help=f"CSV file with the names of the {count:,} excluded images.")
    with st.popover("Import list", icon=":material/upload:"):
        file = st.file_uploader("CSV file with the column image", type="csv", key="audit-file")
        st.button("Exclude these images", key="audit-import", disabled=file is None, on_click=_import,
                  args=(dataset, file))
    if message := st.session_state.pop(MESSAGE, ""):
        st.toast(message, icon=":material/check_circle:")
    if problem := st.session_state.pop(PROBLEM, ""):
        st.error(escaped_message(problem), icon=":material/error:")


def change_list(dataset: Dataset, change: Callable[[Dataset, Iterable[int]], int], images: Integers) -> None:
    """Exclude or include images and clear the selection; for `on_click` of buttons."""
    def act() -> str:
        count = change(dataset, images.tolist())
        note_exclusion(dataset)
        _actions(dataset).append("list")
        select(dataset.fingerprint, NONE)
        return f"{'Excluded' if change is exclude else 'Included'} {counted(count, 'image')}."

    _keep_message(act)


def choose(dataset: Dataset, decide: Callable[[], object]) -> None:
    """Store a choice of a copy or a decision about pairs, which undo reverts."""
    def act() -> None:
        decide()
        _actions(dataset).append("choice")

    keep_problem(act)


def confirm(dataset: Dataset, names: Mapping[int, tuple[str, float]]) -> None:
    """Confirm proposed names, which undo reverts as one decision.

    Args:
        dataset: The data set.
        names: The proposed class and its certainty of each image, by index.
    """
    def act() -> str:
        _actions(dataset).append(f"{NAMES}{confirm_names(dataset, names)}")
        select(dataset.fingerprint, NONE)
        counts = Counter(name for name, _ in names.values())
        given = [f"{escaped(name)} ({count:,})" for name, count in counts.most_common(MOST_NAMED)]
        given += [counted(len(counts) - MOST_NAMED, "more class")] if len(counts) > MOST_NAMED else []
        return f"Named {counted(len(names), 'image')}: {listed(given)}. Undo (U) reverts it."

    _keep_message(act)


def can_undo_any(dataset: Dataset) -> bool:
    """Return whether an exclusion, a confirmation of names, a choice of a copy or a decision can be reverted."""
    return bool(_actions(dataset)) or can_undo(dataset) or can_undo_decision(dataset)


def undo_last(dataset: Dataset) -> None:
    """Revert the last action of this session; without one, the last exclusion, then the last choice."""
    actions = _actions(dataset)
    kind = actions.pop() if actions else "list" if can_undo(dataset) else "choice"
    if kind == "list":
        note_exclusion(dataset)
        _keep_message(lambda: f"Undone: {counted(undo(dataset), 'image')} changed.")
    elif kind.startswith(NAMES):
        _keep_message(lambda: f"Undone: {counted(count, 'image')} changed." if (
            count := len(undo_names(dataset, kind.removeprefix(NAMES)))) else (
            "Nothing was undone here, because names have changed on the page Label since. Undo them there."))
    else:
        keep_problem(lambda: undo_decision(dataset))


def _actions(dataset: Dataset) -> list[str]:
    """Return this session's actions in order: `list` for the list, `choice` for duplicates, `names …` for names."""
    histories: dict[str, list[str]] = st.session_state.setdefault(ACTIONS, {})
    return histories.setdefault(dataset.fingerprint, [])


def _import(dataset: Dataset, file: Any) -> None:
    """Exclude the images that an uploaded file names."""
    def act() -> str:
        listed = parse_upload(parse_list, file.getvalue(), file.name, dataset)
        excluded = exclude(dataset, listed.images.tolist(), file.name[:LONGEST_NAME])
        note_exclusion(dataset)
        _actions(dataset).append("list")
        count = len(listed.unknown)
        unknown = f" {counted(count, 'name')} {'is' if count == 1 else 'are'} not in this data set." if count else ""
        return f"Excluded {counted(excluded, 'image')}.{unknown}"

    _keep_message(act)


def _keep_message(act: Callable[[], str]) -> None:
    """Act, and keep the message for the next drawing of the page."""
    keep_problem(lambda: st.session_state.__setitem__(MESSAGE, act()))


def keep_problem(act: Callable[[], object]) -> None:
    """Act, and keep the message for the next drawing of the page if that fails."""
    try:
        with as_user_errors():
            act()
    except UserError as error:
        st.session_state[PROBLEM] = str(error)
