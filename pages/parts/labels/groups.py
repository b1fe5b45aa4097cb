"""Groups of images at any number or ε: open one, merge it, split it, or take images out of it."""

from __future__ import annotations

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array, rows_of
from udml_core.base.errors import counted
from udml_core.exploration.grouping import (
    MOST_LEAVES,
    Edit,
    by_size,
    edit_groups,
    from_center,
    remaining_groups,
    split_group,
)
from udml_core.runs import Run
from udml_core.runs.analyses import Scope, find_analysis, plan_analysis
from udml_core.runs.analyses.kinds.groups import Grouping, Groups
from udml_core.runs.search.naming import grouping_of, groups_at_epsilon, has_graph, stored_grouping

from ..draw.gallery import gallery, selectable_gallery
from ..draw.slider import live_slider
from ..shell.address import choose_segment, number_from_address, write_address
from ..shell.analyses import request_analysis, show_analysis_progress
from ..shell.cached import load_retrieval, progress_bar
from ..shell.run_hash import RUN_HASH
from ..shell.selection import select, selection
from .actions import edit_group, group_edits, images_in_words
from .assignment import show_selected
from .board import Board, tile_to_label

MOST_GROUPS, FIRST, SHOWN = 300, 30, 60
MOST_PARTS = 8
EPSILON = 0.65
CURRENT = "labels-group"
"""Session key of the current group: the image that stands for it."""
MOVING = "labels-moving"
"""Session key: whether the next click on a group moves the selected images into it."""


def _grouping(board: Board) -> Grouping | None:
    """Return the groups: stored, computed now for few images, or None until an analysis has formed them."""
    is_stored = stored_grouping(board.run, board.frame) is not None
    if not is_stored and len(load_retrieval(board.run).kept) > MOST_LEAVES:
        return None
    return _computed(board.run, board.frame, is_stored)


@st.cache_resource(max_entries=4, show_spinner=False, hash_funcs=RUN_HASH)
def _computed(run: Run, frame: str, _is_stored: bool) -> Grouping:
    with progress_bar() as report:
        return grouping_of(load_retrieval(run), frame, report)


def choose_groups(board: Board) -> None:
    """Show the slider of the number of groups, or of ε; the address holds the value."""
    grouping = _grouping(board)
    if grouping is None:
        st.caption("Groups of many images are formed in the background; see the section Groups.")
        return
    ways = {"number": "Number of groups", **({"epsilon": "Fineness ε"} if has_graph(board.run, board.frame) else {})}
    by = choose_segment("Groups by", "by", ways, "number", key="labels-by") if len(ways) > 1 else "number"
    if by == "epsilon":
        value = live_slider("Fineness ε: lower merges groups, higher splits them", 0.0, 1.0,
                            number_from_address("epsilon", EPSILON, 0.0, 1.0), 0.01, "labels-epsilon")
        write_address("epsilon", f"{value:g}", f"{EPSILON:g}")
    else:
        most = min(grouping.tree.most, MOST_GROUPS)
        value = live_slider("Number of groups", 1, most, number_from_address("groups", min(FIRST, most), 1, most), 1,
                            "labels-groups")
        write_address("groups", f"{value:g}", f"{min(FIRST, most):g}")


def current_groups(board: Board) -> Array:
    """Return the group (p,) of each training image, with the changes by hand; none until the tree is built."""
    grouping = _grouping(board)
    if grouping is None:
        return np.zeros(0, int)
    return edit_groups(_formed_groups(board, grouping), board.images, group_edits(board.dataset))


def _formed_groups(board: Board, grouping: Grouping) -> Array:
    """Return the group (p,) of each training image at the slider's value."""
    rows = _grouped_rows(board)
    if _is_by_epsilon(board):
        return _at_epsilon(board.run, board.frame, number_from_address("epsilon", EPSILON, 0.0, 1.0))[rows]
    most = min(grouping.tree.most, MOST_GROUPS)
    return grouping.tree.groups(int(number_from_address("groups", min(FIRST, most), 1, most)))[rows]


def _is_by_epsilon(board: Board) -> bool:
    return st.query_params.get("by") == "epsilon" and has_graph(board.run, board.frame)


def _grouped_rows(board: Board) -> Array:
    """Return the row (p,) of each training image among the grouped images."""
    grouping = _grouping(board)
    return np.zeros(0, int) if grouping is None else rows_of(grouping.indices, board.images)


@st.cache_data(max_entries=16, show_spinner=False, hash_funcs=RUN_HASH)
def _at_epsilon(run: Run, frame: str, epsilon: float) -> Array:
    opened = load_retrieval(run)
    return groups_at_epsilon(opened, grouping_of(opened, frame), frame, epsilon)


def show_groups(board: Board) -> None:
    """Show the groups of images without a name, the largest first, and the current group."""
    if _grouping(board) is None:
        st.info("Groups of this many images take a few seconds to minutes. They are formed once, in the background.",
                icon=":material/lightbulb:")
        scope: Scope = "all" if board.frame == "final" else find_analysis(board.run, board.frame).spec().scope
        request_analysis(board.run, plan_analysis(Groups, scope=scope, frames=(board.frame,)), "Form groups",
                         "labels-groups-new", primary=True)
        show_analysis_progress(board.run, in_corner=False)
        return
    choose_groups(board)
    groups = current_groups(board)
    parts = remaining_groups(groups, board.named < 0)
    if not parts:
        st.success("Every image has a name.", icon=":material/check_circle:")
        return
    shown = [_ordered(board, part) for part in parts[:SHOWN]]
    current, selected = _current(board, shown), selection(board.dataset)
    moved = selected.ids if st.session_state.get(MOVING) else selected.ids[:0]
    if len(moved):
        _ask_for_group(len(moved))
        shown = _nearest_first(board, [rows for rows in shown if rows is not current], moved)
    else:
        st.caption(f"{counted(sum(map(len, parts)), 'image')} without a name in {counted(len(parts), 'group')}"
                   + (f", of which the largest {SHOWN} are shown" if len(parts) > SHOWN else "")
                   + ". Click a group to open it.", help="Each group is shown by its most typical image, with its "
                                                         "number and its size.")
    tiles = [tile_to_label(board, int(board.images[rows[0]]), f"{groups[rows[0]] + 1} · {len(rows):,}")
             for rows in shown]
    gallery(board.dataset, tiles, "Groups without a name", "labels-groups-list", 76,
            chosen=None if current is None else int(board.images[current[0]]), height=232,
            on_pick=lambda image: _pick(board, shown, image, moved))
    if current is not None:
        _show_group(board, current, int(groups[current[0]]) + 1)
    elif len(selected.ids):
        _move_button(len(selected.ids), is_whole=False)
        show_selected(board, selected)


def _ask_for_group(count: int) -> None:
    """Ask for the group that takes in the selected images."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f":material/input: **Click the group that takes in {images_in_words(count)}** (most similar first)",
                    width="stretch")
        st.button("Cancel", icon=":material/close:", key="labels-stay", type="tertiary",
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


def _current(board: Board, shown: list[Array]) -> Array | None:
    """Return the open group: the one that has the image by which it was opened."""
    return next((rows for rows in shown if st.session_state.get(CURRENT) in board.images[rows]), None)


def _pick(board: Board, shown: list[Array], image: int, moved: Array) -> None:
    """Open the clicked group, and move images into it first if the user asked for that."""
    st.session_state.pop(MOVING, None)
    st.session_state[CURRENT] = image
    rows = next(rows for rows in shown if int(board.images[rows[0]]) == image)
    images = np.union1d(board.images[rows], moved)
    if len(moved):
        edit_group(board.dataset, Edit(images, np.zeros(len(images), int)),
                   f"Moved {images_in_words(len(moved))} to a group, which has {len(images):,} now.")
    else:
        select(board.dataset.fingerprint, images)


def _ordered(board: Board, rows: Array) -> Array:
    """Return a group's rows from its center to its border."""
    return rows[from_center(board.points[rows])]


def _show_group(board: Board, rows: Array, number: int) -> None:
    """Show the border of a group, and what can be done with it."""
    images = board.images[rows]
    chosen = np.isin(images, selection(board.dataset).ids)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**Group {number}** · {counted(len(rows), 'image')}", width="content")
        _move_button(len(selection(board.dataset).ids), is_whole=bool(chosen.all()))
        with st.popover("Split", icon=":material/call_split:"):
            codes = _parts(board, rows)
        if chosen.any() and not chosen.all():
            _separate_button(board, images, ~chosen)
    if codes.any():
        _show_parts(board, rows, codes)
    ordered = images[::-1][:SHOWN]
    st.caption("The least typical images first. Click an image that does not belong: it leaves the selection.")
    selectable_gallery(board.dataset, [tile_to_label(board, int(image)) for image in ordered],
                       "Images of the group, the border first", "labels-group-images", selection(board.dataset), 72,
                       264)


def _separate_button(board: Board, images: Array, leaves: Array) -> None:
    """Show the button that takes images out of their group."""
    words = images_in_words(int(leaves.sum()))
    st.button(f"Separate {words}", icon=":material/remove_selection:", shortcut="X", key="labels-separate",
              on_click=edit_group, args=(board.dataset, Edit(images, leaves.astype(int)),
                                         f"Separated {words} from the group."),
              help="The images of the group that are not selected form a group of their own.")


def _parts(board: Board, rows: Array) -> Array:
    """Choose into how many parts, or at which ε, a group is split; return the part (m,) of each image."""
    key = st.session_state[CURRENT]
    if _is_by_epsilon(board):
        at = number_from_address("epsilon", EPSILON, 0.0, 1.0)
        inside = st.number_input("Split at ε", 0.0, 1.0, at, 0.05, key=f"labels-split-epsilon-{key}", width=140,
                                 help="From 0 to 1: a higher ε inside this group alone splits it into parts.")
        formed = _at_epsilon(board.run, board.frame, float(inside))[_grouped_rows(board)]
        return by_size(formed[rows]) if inside > at else np.zeros(len(rows), int)
    parts = st.number_input("Split into", 1, min(MOST_PARTS, len(rows)), 1, key=f"labels-split-{key}", width=140,
                            help="From 1 to 8 parts of similar images.")
    return split_group(board.points[rows], int(parts))


def _show_parts(board: Board, rows: Array, codes: Array) -> None:
    """Show the parts of a group for a click, and the button that keeps them."""
    images = board.images[rows]
    split = [_ordered(board, rows[part]) for part in remaining_groups(codes, np.ones(len(rows), bool))]
    tiles = [tile_to_label(board, int(board.images[part[0]]), f"{len(part):,}") for part in split[:SHOWN]]
    gallery(board.dataset, tiles, "Parts of the group", f"labels-parts-{images[0]}", 84, height=200,
            on_pick=lambda image: select(board.dataset.fingerprint, board.images[next(
                part for part in split if int(board.images[part[0]]) == image)]))
    st.button(f"Keep {counted(len(split), 'part')}", icon=":material/call_split:", key="labels-keep-parts",
              help="Each part becomes a group of its own; Undo joins them again. A click on a part selects it.",
              on_click=edit_group, args=(board.dataset, Edit(images, codes),
                                         f"Split a group into {counted(len(split), 'part')}."))
