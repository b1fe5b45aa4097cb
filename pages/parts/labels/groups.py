"""Groups of images at any number or ε: open one, merge it, split it, or take images out of it."""

from __future__ import annotations

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array, rows_by_group, rows_of
from udml_core.base.errors import counted
from udml_core.data.given.group_changes import GroupChange
from udml_core.exploration.grouping import (
    ALIKE,
    VERY_ALIKE,
    alikeness,
    are_leftovers,
    by_size,
    edit_groups,
    from_center,
    most_alike_first,
    order_to_name,
    remaining_groups,
    split_group,
)
from udml_core.runs import Run

from ..draw.gallery import gallery, selectable_gallery, shade
from ..shell.address import number_from_address
from ..shell.run_hash import RUN_HASH
from ..shell.selection import select, selection
from .actions import (
    FOLLOWING,
    MEMBERS,
    MOVING,
    OPENED,
    PREVIEW,
    SPLITTING,
    TYPED,
    clear_selection,
    close_or_clear,
    drop_group_changes,
    edit_group,
    images_in_words,
    is_splitting,
    select_with_message,
    stored_changes,
)
from .assignment import show_selected
from .board import Board, tile_to_label
from .forming import (
    EPSILON,
    are_numbers_new,
    choose_groups,
    current_groups,
    grouped_rows,
    grouping_now,
    groups_at,
    is_by_epsilon,
    offer_groups,
)
from .word_names import ask_for_words, badge_of, names_by_words, show_word_name

NEW_NUMBERS = ("The images of this folder have changed, and these groups were not formed before the change, so they "
               "are numbered by size.")
SHOWN = 60
"""Most images of a group that are shown."""
TILE, LIST_HEIGHT, MOVE_HEIGHT, GROUP_HEIGHT = 86, 560, 232, 470
"""Pixels of a tile, whose words need room, of the list of groups, of the list that a merge offers, and of the images
of a group."""
MOST_PARTS, SHOWN_OF_PART, PARTS_HEIGHT = 8, 4, 232


def show_groups(board: Board) -> None:
    """Show the groups of images without a name, the most similar first, and the current group."""
    if grouping_now(board) is None:
        offer_groups(board.run, board.frame)
        return
    if not _is_open(board):
        choose_groups(board)  # before the groups are formed at its value
    groups = current_groups(board)
    alike = _alike_now(board, groups)
    shown = _unnamed(board, groups, alike)
    if not shown:
        st.success("Every image has a name.", icon=":material/check_circle:")
        return
    words = names_by_words(board, np.where((board.named < 0) & ~board.left_out, groups, -1))
    current, selected = _current(board, shown), selection(board.dataset)
    moved = selected.ids if st.session_state.get(MOVING) else selected.ids[:0]
    if len(moved):
        _ask_for_group(len(moved))
        shown = _nearest_first(board, [rows for rows in shown if rows is not current], moved)
    elif current is None:
        _say_groups(board, sum(map(len, shown)), len(shown))
    if current is None and len(selected.ids) and not len(moved):
        _move_button(len(selected.ids), is_whole=False)
        show_selected(board, selected)
    is_strip = current is not None and not len(moved)
    tiles = [tile_to_label(board, int(board.images[rows[0]]), badge_of(int(groups[rows[0]]), len(rows), words)
                           + _below(alike[groups[rows[0]]], len(rows))) for rows in shown]
    gallery(board.dataset, tiles, "Groups without a name", "labels-groups-list", TILE,
            chosen=None if current is None else int(board.images[current[0]]), strip=is_strip,
            height=None if is_strip else MOVE_HEIGHT if len(moved) else LIST_HEIGHT,
            on_pick=lambda image: _pick(board, shown, image, moved, groups))
    if current is not None:
        show_word_name(board, board.images[current], words.get(int(groups[current[0]])))
        _show_group(board, current, int(groups[current[0]]) + 1)


def _say_groups(board: Board, images: int, groups: int) -> None:
    """Say how many groups there are, and how many changes by hand they have, with the button that drops these."""
    stored = stored_changes(board.dataset)
    if stored.problem:
        st.warning(stored.problem, icon=":material/warning:")
    if are_numbers_new(board):
        st.caption(f":material/info: {NEW_NUMBERS}")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(f"{counted(images, 'image')} without a name in {counted(groups, 'group')}. Click a group to open "
                   "it.", width="stretch", help="Each group is shown by its most typical image, with its number, its "
                   "size, and a word if its images are less than very similar: similar or mixed. These "
                   "come later, of each kind the largest first. Then come single images, and what is left of "
                   "groups with a name.")
        ask_for_words(board)
        if count := len(stored.changes):
            st.button(f"Undo {counted(count, 'edit')} of groups", icon=":material/restart_alt:",
                      key="labels-drop-changes", type="tertiary", on_click=drop_group_changes,
                      args=(board.dataset, count),
                      help="Forms the groups again without what you merged, split and moved; Undo brings it back.")


def _ask_for_group(count: int) -> None:
    """Ask for the group that takes in the selected images."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f":material/input: **Click the group that takes in {images_in_words(count)}** (most similar first)",
                    width="stretch")
        st.button("Cancel", icon=":material/close:", key="labels-stay", type="tertiary",
                  help="The images stay where they are, and selected.",
                  on_click=st.session_state.pop, args=(MOVING, None))


def _nearest_first(board: Board, groups: list[Array], moved: Array) -> list[Array]:
    """Return groups in the order of the distance of their means to the mean of some images."""
    rows = rows_of(board.images, moved)
    center = board.points[rows[rows >= 0]].mean(axis=0)
    return sorted(groups, key=lambda group: float(((board.points[group].mean(axis=0) - center) ** 2).sum()))


def _move_button(count: int, is_whole: bool) -> None:
    """Show the button after which a click on a group moves the selected images into it."""
    st.button("Merge with …" if is_whole else f"Move {images_in_words(count)} to …", icon=":material/input:",
              key="labels-move", shortcut="M", disabled=not count, on_click=st.session_state.__setitem__,
              args=(MOVING, True), help="The next click on a group moves the selected images into it.")


def _is_open(board: Board) -> bool:
    """Return whether a group is open: whether the image by which it was opened has no name yet."""
    opened = st.session_state.get(OPENED)
    row = -1 if opened is None else rows_of(board.images, np.array([opened]))[0]
    return bool(row >= 0 and board.named[row] < 0)


def opened_group(board: Board, groups: Array) -> int | None:
    """Return the number of the open group; None unless a group is open."""
    if not _is_open(board):
        return None
    return int(groups[rows_of(board.images, np.array([st.session_state[OPENED]]))[0]])


def _current(board: Board, shown: list[Array]) -> Array | None:
    """Return the open group: the one that has the image by which it was opened."""
    return next((rows for rows in shown if st.session_state.get(OPENED) in board.images[rows]), None)


def _pick(board: Board, shown: list[Array], image: int, moved: Array, groups: Array) -> None:
    """Open the clicked group, and move images into it first if the user asked for that."""
    st.session_state.pop(MOVING, None)
    rows = next((rows for rows in shown if image in board.images[rows]), None)
    if rows is None:  # its last images were named while the browser still showed it
        return
    images = np.union1d(board.images[rows], moved)
    if len(moved):
        change = GroupChange(images, np.zeros(len(images), int))
        number = edit_groups(groups, board.images, [change])[rows[0]] + 1
        edit_group(board.dataset, change, f"Joined {images_in_words(len(moved))} and group {groups[rows[0]] + 1}: "
                   f"group {number} has {images_in_words(len(images))} now.", opens=image)
    else:
        open_group(board, image, images)


def _unnamed(board: Board, groups: Array, alike: Array) -> list[Array]:
    """Return the rows of each group's images without a name, from its center to its border, in the order to name them.

    Center and order are the same as of the whole groups, so that a name changes the order of no other image or group.
    What is left of a group after a name, and groups of one image, come last.
    """
    kept = np.flatnonzero(~board.left_out)
    found = {int(groups[rows[0]]): _ordered(board, rows) for rows in rows_by_group(kept, groups)}
    order = order_to_name(alike, _sizes(board, groups, alike), _left(board, groups, alike))
    named = board.named >= 0
    ordered = (found[number][~named[found[number]]] for number in order.tolist())
    return [rows for rows in ordered if len(rows)]


def _sizes(board: Board, groups: Array, alike: Array) -> Array:
    """Return how many images of each group (g,) take part."""
    return np.bincount(groups[~board.left_out], minlength=len(alike))


def _left(board: Board, groups: Array, alike: Array) -> Array:
    """Return how many of these images have no name (g,)."""
    return np.bincount(groups[~board.left_out & (board.named < 0)], minlength=len(alike))


def groups_to_name(board: Board) -> list[Array]:
    """Return the rows of each group's images without a name, in the order to name them; none before any is formed."""
    if grouping_now(board) is None:
        return []
    groups = current_groups(board)
    return _unnamed(board, groups, _alike_now(board, groups))


def first_group(board: Board) -> Array:
    """Return the images of the first group without a name; none if all have one, or before groups are formed."""
    shown = groups_to_name(board)
    return board.images[shown[0]] if shown else board.images[:0]


def open_group(board: Board, image: int, images: Array) -> None:
    """Open the group of an image, whose images are selected."""
    st.session_state.pop(MOVING, None)
    st.session_state[OPENED], st.session_state[MEMBERS] = image, images.tolist()
    st.session_state[TYPED] = ""  # a name that was begun for another group
    select_with_message(board.dataset, images)


def next_group(board: Board, image: int) -> Array:
    """Return the images of the group without a name that comes after the group of an image, in the order to name them.

    After the last one, and for an image without a group, it is the first: a group that was passed over waits for the
    end.
    """
    groups, row = current_groups(board), int(rows_of(board.images, np.array([image]))[0])
    alike = _alike_now(board, groups)
    sizes, shown = _sizes(board, groups, alike), _unnamed(board, groups, alike)
    rank = np.argsort(most_alike_first(alike, sizes))
    is_rest = are_leftovers(_left(board, groups, alike), sizes)
    later = (rows for rows in shown if row >= 0 and rank[groups[rows[0]]] > rank[groups[row]]
             and not is_rest[groups[rows[0]]])
    found = next(later, next(iter(shown), None))
    return board.images[:0] if found is None else board.images[found]


def follow_group(board: Board) -> None:
    """Open the group after the one that was named or passed over just now."""
    image = st.session_state.pop(FOLLOWING, None)
    if image is not None and grouping_now(board) is not None and len(images := next_group(board, image)):
        open_group(board, int(images[0]), images)


def _alike_now(board: Board, groups: Array) -> Array:
    return _alikeness(board.run, board.frame, groups.tobytes(), board.left_out.tobytes(), board)


@st.cache_data(max_entries=64, show_spinner="Comparing the groups …", hash_funcs=RUN_HASH)
def _alikeness(run: Run, frame: str, groups: bytes, left_out: bytes, _board: Board) -> Array:  # noqa: ARG001
    """Return how similar the images of each group (g,) are that are not excluded."""
    numbers, kept = np.frombuffer(groups, np.int64), ~np.frombuffer(left_out, bool)
    return alikeness(_board.points, numbers) if kept.all() else alikeness(_board.points[kept], numbers[kept])


def _below(alike: float, size: int) -> str:
    """Return the line below a group's number if its images are less than very similar; empty for a single image."""
    if size == 1 or alike >= VERY_ALIKE:
        return ""
    return "\nsimilar" if alike >= ALIKE else "\nmixed"


def _ordered(board: Board, rows: Array) -> Array:
    """Return rows from their center to their border."""
    return rows[_order(board.run, board.frame, rows.tobytes(), board)]


@st.cache_data(max_entries=1024, show_spinner=False, hash_funcs=RUN_HASH)
def _order(run: Run, frame: str, rows: bytes, _board: Board) -> Array:  # noqa: ARG001 (they identify the points)
    return from_center(_board.points[np.frombuffer(rows, np.int64)])


def _show_group(board: Board, rows: Array, number: int) -> None:
    """Show the border of a group, and what can be done with it."""
    images = board.images[rows]
    chosen = np.isin(images, selection(board.dataset).ids)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="labels-group-bar"):
        st.markdown(f"**Group {number}** · {counted(len(rows), 'image')}", width="content")
        _move_button(len(selection(board.dataset).ids), is_whole=bool(chosen.all()))
        st.button("Split", icon=":material/call_split:", key="labels-split", on_click=st.session_state.__setitem__,
                  args=(SPLITTING, st.session_state[OPENED]), help="Shows parts of similar images, which you can keep.")
        st.button("Skip", icon=":material/skip_next:", key="labels-skip-group", type="tertiary",
                  on_click=st.session_state.__setitem__, args=(FOLLOWING, st.session_state[OPENED]),
                  help="Opens the next group. This one comes again after the last.")
        st.button("All groups", icon=":material/grid_view:", key="labels-all-groups", type="tertiary",
                  on_click=clear_selection, args=(board.dataset,),
                  help="Closes this group; its images are no longer selected.")
    if is_splitting() and len(rows) > 1:
        _show_parts(board, rows)
    ordered = images[::-1][:SHOWN]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption("The least typical first. Click what does not belong: it leaves the selection.", width="stretch")
        _separate_button(board, images, ~chosen)
    selectable_gallery(board.dataset, [tile_to_label(board, int(image)) for image in ordered],
                       "Images of the group, the border first", "labels-group-images", selection(board.dataset), 84,
                       GROUP_HEIGHT)


def _separate_button(board: Board, images: Array, leaves: Array) -> None:
    """Show the button that takes images out of their group."""
    words = images_in_words(int(leaves.sum()))
    st.button(f"Separate {words}", icon=":material/remove_selection:", shortcut="X", key="labels-separate",
              disabled=bool(leaves.all() or not leaves.any()),
              on_click=edit_group, args=(board.dataset, GroupChange(images, leaves.astype(int)),
                                         f"Separated {words} from the group.", None, True),
              help="The images of the group that are not selected form a group of their own, and are not asked "
                   "about when you name this one.")


def _parts(board: Board, rows: Array) -> Array:
    """Choose into how many parts, or at which ε, a group is split; return the part (m,) of each image."""
    key = st.session_state[OPENED]
    if is_by_epsilon(board):
        at = number_from_address("epsilon", EPSILON, 0.0, 1.0)
        inside = st.number_input("Split at ε", 0.0, 1.0, min(1.0, at + 0.1), 0.05, key=f"labels-split-epsilon-{key}",
                                 width=140, help="From 0 to 1: a higher ε inside this group alone splits it.")
        formed = groups_at(board.run, board.frame, float(inside))[grouped_rows(board)]
        return by_size(formed[rows]) if inside > at else np.zeros(len(rows), int)
    parts = st.number_input("Parts", 2, min(MOST_PARTS, len(rows)), 2, key=f"labels-split-{key}", width=140,
                            help="From 2 to 8 parts of similar images.")
    return split_group(board.points[rows], int(parts))


def _keep_parts(board: Board, change: GroupChange, count: int) -> None:
    st.session_state.pop(SPLITTING, None)
    edit_group(board.dataset, change, f"Split a group into {counted(count, 'part')}.")


def _show_parts(board: Board, rows: Array) -> None:
    """Show the parts of a group for a click, and the buttons that keep or drop them."""
    st.session_state[PREVIEW] = True
    images = board.images[rows]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        codes = _parts(board, rows)
        split = [_ordered(board, rows[part]) for part in remaining_groups(codes, np.ones(len(rows), bool))]
        st.button(f"Keep {counted(len(split), 'part')}", icon=":material/check:", key="labels-keep-parts",
                  disabled=len(split) < 2, on_click=_keep_parts, args=(board, GroupChange(images, codes), len(split)),
                  help="Each part becomes a group of its own; Undo joins them again.")
        st.button("Do not split", icon=":material/close:", key="labels-drop-parts", type="tertiary",
                  on_click=close_or_clear, args=(board.dataset,), help="Closes this preview, as U and Esc do.")
    tiles = [tile_to_label(board, int(board.images[row]), f"part {number} · {len(part):,}")
             for number, part in enumerate(split[:SHOWN], 1) for row in part[:SHOWN_OF_PART]]
    second = {int(board.images[row]) for part in split[1::2] for row in part}
    gallery(board.dataset, shade(tiles, second), "Parts of the group", f"labels-parts-{images[0]}", 76,
            height=PARTS_HEIGHT,
            on_pick=lambda image: select(board.dataset.fingerprint, board.images[next(
                part for part in split if image in board.images[part])]))
    st.caption(f"Each part is shown by its {SHOWN_OF_PART} most typical images and its size. A click on one selects "
               "the part.")
