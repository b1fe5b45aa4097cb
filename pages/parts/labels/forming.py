"""Groups of a run's images at the number or the ε that the user chose, with the changes by hand."""

from __future__ import annotations

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array, rows_of
from udml_core.base.errors import UserError
from udml_core.exploration.grouping import MOST_GROUPS, MOST_LEAVES, edit_groups, first_number
from udml_core.runs import Run
from udml_core.runs.analyses import Scope, find_analysis, plan_analysis
from udml_core.runs.analyses.kinds.groups import Grouping, Groups
from udml_core.runs.search import Retrieval
from udml_core.runs.search.naming import grouping_of, groups_analysis, groups_at_epsilon, has_graph
from udml_core.runs.search.numbering import Forming, NumberedGroups, numbered_groups

from ..draw.slider import live_slider
from ..shell.address import choose_segment, number_from_address, write_address
from ..shell.analyses import request_analysis, show_analysis_progress
from ..shell.cached import load_retrieval, progress_bar, with_time
from ..shell.run_hash import RUN_HASH
from .actions import stored_changes
from .board import Board

KEPT = "labels-groups-kept"
"""Session key of the number of groups by data set, which new files and another run of it keep."""
EPSILON = 0.65


def grouping_now(board: Board) -> Grouping | None:
    """Return the groups: stored, computed now for few images, or None until an analysis has formed them."""
    is_stored = groups_analysis(board.run, board.frame) is not None
    if not is_stored and len(load_retrieval(board.run).kept) > MOST_LEAVES:
        return None
    return _computed(board.run, board.frame, is_stored)


@st.cache_resource(max_entries=4, show_spinner=False, hash_funcs=RUN_HASH)
def _computed(run: Run, frame: str, _is_stored: bool) -> Grouping:
    with progress_bar() as report:
        return grouping_of(load_retrieval(run), frame, with_time(report))


def choose_groups(board: Board) -> None:
    """Show the slider of the number of groups, or of ε; the address holds the value."""
    grouping = grouping_now(board)
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
        value = live_slider("Number of groups", 1, most, _number_of_groups(board, grouping), 1, "labels-groups")
        st.session_state.setdefault(KEPT, {})[board.dataset.name] = int(value)
        write_address("groups", f"{value:g}", f"{_first_number(board.run, board.frame, grouping)}")


def _number_of_groups(board: Board, grouping: Grouping) -> int:
    """Return the number of groups in the address, else the last of this data set, else one that the images suggest."""
    kept, most = st.session_state.get(KEPT, {}).get(board.dataset.name), min(grouping.tree.most, MOST_GROUPS)
    first = _first_number(board.run, board.frame, grouping) if kept is None else min(kept, most)
    return int(number_from_address("groups", first, 1, most))


@st.cache_data(max_entries=16, show_spinner="Choosing the number of groups …", hash_funcs=RUN_HASH)
def _first_number(run: Run, frame: str, _grouping: Grouping) -> int:
    return first_number(_grouping.tree, load_retrieval(run).frame(frame).take(_grouping.indices))


def current_groups(board: Board) -> Array:
    """Return the group (p,) of each training image, with the changes by hand; none until the tree is built."""
    grouping = grouping_now(board)
    if grouping is None:
        return np.zeros(0, int)
    numbered, rows = _numbered_now(board, grouping), grouped_rows(board)
    return edit_groups(numbered.groups[rows], board.images, stored_changes(board.dataset).changes,
                       numbered.is_later[rows])


def are_numbers_new(board: Board) -> bool:
    """Return whether the groups have other numbers than in the earlier states of the folder, which had no such groups.
    """
    grouping = grouping_now(board)
    return grouping is not None and _numbered_now(board, grouping).are_new


def _numbered_now(board: Board, grouping: Grouping) -> NumberedGroups:
    by_epsilon = is_by_epsilon(board)
    return _numbered(board.run, board.frame, Forming(
        None if by_epsilon else _number_of_groups(board, grouping),
        number_from_address("epsilon", EPSILON, 0.0, 1.0) if by_epsilon else None))


@st.cache_data(max_entries=64, show_spinner="Forming the groups …", hash_funcs=RUN_HASH)
def _numbered(run: Run, frame: str, forming: Forming) -> NumberedGroups:
    return numbered_groups(run, forming, lambda each, own: _opened(each, own, each.id == run.id), frame)


def _opened(run: Run, frame: str, is_own: bool) -> tuple[Retrieval, Grouping] | None:
    """Return a run and its groups; None if they are not at hand, which never happens to the run of the page."""
    try:
        retrieval, is_stored = load_retrieval(run), groups_analysis(run, frame) is not None
        if not (is_own or is_stored or len(retrieval.kept) <= MOST_LEAVES):
            return None
        return retrieval, _computed(run, frame, is_stored)
    except UserError:
        if is_own:
            raise
        return None


def is_by_epsilon(board: Board) -> bool:
    return st.query_params.get("by") == "epsilon" and has_graph(board.run, board.frame)


def grouped_rows(board: Board) -> Array:
    """Return the row (p,) of each training image among the grouped images."""
    grouping = grouping_now(board)
    return np.zeros(0, int) if grouping is None else rows_of(grouping.indices, board.images)


@st.cache_data(max_entries=16, show_spinner=False, hash_funcs=RUN_HASH)
def groups_at(run: Run, frame: str, epsilon: float) -> Array:
    opened = load_retrieval(run)
    return groups_at_epsilon(opened, grouping_of(opened, frame), frame, epsilon)


def offer_groups(run: Run, frame: str) -> None:
    """Show the button that forms groups of many images in the background, or its progress."""
    st.info("The nearest images and the groups of this many images take minutes. They are found once, in the "
            "background; then naming begins here.", icon=":material/lightbulb:")
    scope: Scope = "all" if frame == "final" else find_analysis(run, frame).spec().scope
    request_analysis(run, plan_analysis(Groups, scope=scope, frames=(frame,)), "Form groups", "labels-groups-new",
                     primary=True)
    show_analysis_progress(run, in_corner=False)
