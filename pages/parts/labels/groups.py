"""Groups of images at any number or ε: choose one, split it, and name it on the panel beside the map."""

from __future__ import annotations

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array, rows_of
from udml_core.base.errors import counted
from udml_core.data.given.labels import LONGEST_CLASS
from udml_core.exploration.grouping import MOST_LEAVES, from_center, remaining_groups, split_group
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
from .actions import Target, assign_class, images_in_words
from .board import Board, tile_to_label

MOST_GROUPS, FIRST, SHOWN = 300, 30, 60
MOST_PARTS = 8
EPSILON = 0.65
CURRENT = "labels-group"
"""Session key of the current group: the image that stands for it."""
TYPED = "labels-group-typed"


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
    ways = {"number": "Number of groups", **({"epsilon": "ε"} if has_graph(board.run, board.frame) else {})}
    by = choose_segment("Groups by", "by", ways, "number", key="labels-by") if len(ways) > 1 else "number"
    if by == "epsilon":
        value = live_slider("ε: lower merges groups, higher splits them", 0.0, 1.0,
                            number_from_address("epsilon", EPSILON, 0.0, 1.0), 0.01, "labels-epsilon")
        write_address("epsilon", f"{value:g}", f"{EPSILON:g}")
    else:
        most = min(grouping.tree.most, MOST_GROUPS)
        value = live_slider("Number of groups", 1, most, number_from_address("groups", min(FIRST, most), 1, most), 1,
                            "labels-groups")
        write_address("groups", f"{value:g}", f"{min(FIRST, most):g}")


def current_groups(board: Board) -> Array:
    """Return the group (p,) of each training image at the slider's value; none until the tree is built."""
    grouping = _grouping(board)
    if grouping is None:
        return np.zeros(0, int)
    rows = rows_of(grouping.indices, board.images)
    if st.query_params.get("by") == "epsilon" and has_graph(board.run, board.frame):
        return _at_epsilon(board.run, board.frame, number_from_address("epsilon", EPSILON, 0.0, 1.0))[rows]
    most = min(grouping.tree.most, MOST_GROUPS)
    return grouping.tree.groups(int(number_from_address("groups", min(FIRST, most), 1, most)))[rows]


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
    parts = remaining_groups(current_groups(board), board.named < 0)
    if not parts:
        st.success("Every image has a name.", icon=":material/check_circle:")
        return
    rest = sum(map(len, parts))
    st.caption(f"{counted(rest, 'image')} without a name in {counted(len(parts), 'group')}, the largest first"
               + (f"; the first {SHOWN} are shown" if len(parts) > SHOWN else "") + ". Each group is shown by its most "
               "typical image. Click a group to select its images; then assign a class beside the map. Images that you "
               "select or clear on the map join or leave the selection.")
    shown = [_ordered(board, part) for part in parts[:SHOWN]]
    tiles = [tile_to_label(board, int(board.images[rows[0]]), f"{len(rows):,}") for rows in shown]
    gallery(board.dataset, tiles, "Groups without a name", "labels-groups-list", 84,
            chosen=st.session_state.get(CURRENT), height=260, on_pick=lambda image: _open(board, shown, image))
    current = next((rows for rows in shown if int(board.images[rows[0]]) == st.session_state.get(CURRENT)), None)
    if current is not None:
        _show_group(board, current)


def _name_selection(board: Board) -> None:
    """Show the box that names the selected images; it stands at the group, where the user looks."""
    selected = selection(board.dataset)
    target = Target(board.dataset, selected.ids.tolist(), selected.revision)
    with st.form("labels-group-form", clear_on_submit=True, border=False, width="content"), st.container(
            horizontal=True, vertical_alignment="bottom"):
        st.text_input("Name the selected images", key=TYPED, max_chars=LONGEST_CLASS, placeholder="Class name")
        st.form_submit_button(f"Name {images_in_words(len(selected.ids))}", icon=":material/new_label:",
                              disabled=not len(selected.ids),
                              on_click=lambda: assign_class(target, st.session_state[TYPED]))


def _ordered(board: Board, rows: Array) -> Array:
    """Return a group's rows from its center to its border."""
    return rows[from_center(board.points[rows])]


def _open(board: Board, groups: list[Array], image: int) -> None:
    """Select the images of the clicked group."""
    st.session_state[CURRENT] = image
    rows = next(rows for rows in groups if int(board.images[rows[0]]) == image)
    select(board.dataset.fingerprint, board.images[rows])


def _show_group(board: Board, rows: Array) -> None:
    """Show the border of a group, and its parts if the user splits it."""
    images = board.images[rows]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.markdown(f"**{counted(len(rows), 'image')}** in this group", width="content")
        _name_selection(board)
        parts = st.number_input("Split into", 1, min(MOST_PARTS, len(rows)), 1, key=f"labels-split-{images[0]}",
                                width=140, help="From 1 to 8 parts, by its own tree; click a part to select it.")
    if parts > 1:
        codes = split_group(board.points[rows], int(parts))
        split = [_ordered(board, rows[part]) for part in remaining_groups(codes, np.ones(len(rows), bool))]
        tiles = [tile_to_label(board, int(board.images[part[0]]), f"{len(part):,}") for part in split]
        gallery(board.dataset, tiles, "Parts of the group", f"labels-parts-{images[0]}", 84,
                on_pick=lambda image: select(board.dataset.fingerprint, board.images[next(
                    part for part in split if int(board.images[part[0]]) == image)]))
    ordered = images[::-1][:SHOWN]
    st.caption("Border images first: click an image that does not belong, and it leaves the selection.")
    selectable_gallery(board.dataset, [tile_to_label(board, int(image)) for image in ordered],
                       "Images of the group, the border first", "labels-group-images", selection(board.dataset), 72,
                       240)
