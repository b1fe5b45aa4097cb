"""Write the named images to folders: the plan first, then copies, links or a list."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from udml_core.base.errors import UserError, counted
from udml_core.base.paths import is_exposed
from udml_core.data.given.exclusions import KIND as EXCLUSIONS
from udml_core.data.given.exclusions import excluded_images
from udml_core.data.given.labels import KIND as LABELS
from udml_core.data.given.log import log_version
from udml_core.runs.search.naming import NamedImages, name_all
from udml_core.work.exporting import moved_folders
from udml_core.work.exporting.sorting import plan_sorting
from udml_core.work.exporting.sorting_files import write_plan
from udml_core.work.exporting.sorting_own import last_target
from udml_core.work.exporting.sorting_plan import REASONS, How, Plan

from ..data.moving import say_moved, show_moving
from ..draw.tables import data_table
from ..shell.cached import load_dataset, load_retrieval, progress_bar, with_time
from ..shell.run_status import escaped_message
from .board import Board

HOW: dict[How, str] = {"copies": "Copies", "links": "Links", "list": "A list"}
PLANNED, WRITTEN = "labels-plan", "labels-written"
TARGET, TARGET_OF = "labels-target", "labels-target-of"
"""Session keys of the folder to write to, at first that of the last export, and of the images that it belongs to."""
MOST_ROWS = 400


def show_folders(board: Board) -> None:
    """Choose a folder, show what would be written there, and write it once the user confirms the plan."""
    if is_exposed():
        st.caption(f"Other people can reach this server, so it writes no folders. On its computer: `udml sort "
                   f"{board.run.id} TARGET --plan`")
        return
    if not board.labels:
        st.caption("There are no labels yet, so all images that you have not excluded come into one folder. Name "
                   "groups or images for a folder of each name.")
    if st.session_state.get(TARGET_OF) != board.dataset.fingerprint:
        st.session_state[TARGET_OF] = board.dataset.fingerprint
        st.session_state[TARGET] = last_target(board.dataset)
    with st.form("labels-folders", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        target = st.text_input("Folder to write to", key=TARGET, placeholder="/home/me/sorted", width=360,
                               help="A new or empty folder on the computer that runs the app, or an earlier export, to "
                                    "which images are added.")
        how = st.segmented_control("Write", list(HOW), default="copies", required=True, format_func=HOW.__getitem__,
                                   key="labels-how", help="Copies need space; links point to your files; a list "
                                                          "writes tables alone.")
        rest = not board.labels or st.checkbox("Images without a name, too", key="labels-rest",
                                               help="They get a folder of their own, “unnamed”.")
        programs = st.checkbox("Lists for other programs", True, key="labels-programs",
                               help="Files that FiftyOne and Label Studio import.")
        prunes = st.checkbox("Remove earlier copies", key="labels-prune",
                             help="Files of earlier exports that do not belong to this one, such as copies in "
                                  "“unnamed” that have a name now. The plan lists them; only links to your images, "
                                  "and copies that equal the image in your folder, are removed.")
        if st.form_submit_button("Show plan", icon=":material/checklist:"):
            st.session_state[PLANNED] = (
                _planned(board, target, how or "copies", rest, programs, prunes), _state_of(board))
            st.session_state.pop(WRITTEN, None)
    plan, planned_for = st.session_state.get(PLANNED, (None, None))
    if plan is not None and planned_for != _state_of(board):
        st.caption("Your names or exclusions have changed since the plan. Show it again.")
    elif isinstance(plan, UserError):
        st.error(escaped_message(str(plan)), icon=":material/error:")
    elif isinstance(plan, Plan):
        _show_plan(board, plan)
    written, written_for = st.session_state.get(WRITTEN, ("", None))
    if written and written_for == _state_of(board):
        st.success(escaped_message(written), icon=":material/check_circle:")
    say_moved()
    now = load_dataset(board.run.spec().dataset)
    if len(excluded_images(now)) or moved_folders(now):
        with st.expander("Move excluded images", icon=":material/block:"):
            show_moving(now)


def _names(board: Board) -> NamedImages:
    """Return the names of all images: the board's if it has all of them."""
    opened = load_retrieval(board.run)
    if len(board.images) == len(opened.kept):
        return board.names_given
    with progress_bar("Naming all images …") as report:
        return name_all(opened, board.frame, board.gamma, chosen=board.least, report=report)


def _planned(board: Board, target: str, how: How, rest: bool, programs: bool, prunes: bool) -> Plan | UserError:
    """Return the plan, or why there is none."""
    try:
        if not target.strip():
            raise UserError("An export needs a folder to write to. Type its path.")
        return plan_sorting(_names(board), target.strip(), how, rest, programs, prunes)
    except UserError as error:
        return error


def _state_of(board: Board) -> tuple[object, ...]:
    """Return what a plan follows from: the images, their labels, exclusions and settings."""
    return (board.dataset.fingerprint, log_version(board.dataset, LABELS), log_version(board.dataset, EXCLUSIONS),
            board.run.id, board.frame, board.gamma, board.least)


def _show_plan(board: Board, plan: Plan) -> None:
    """Show what would be written, and the button that writes it."""
    st.markdown(f"**Plan.** {escaped_message(plan.lines[0])}")
    for note in plan.notes:
        st.info(escaped_message(note), icon=":material/info:")
    table = pd.DataFrame([(folder, name, count, plan.guessed.get(name, 0))
                          for (folder, name), count in plan.folders.items()],
                         columns=["Folder", "Class", "Images", "Not confirmed"])
    data_table(table[:MOST_ROWS], hide_index=True, width="content", height=min(260, 38 + 36 * len(table)))
    st.caption("Beside the folders: metadata.csv, images.parquet, fiftyone/, and label-studio.json with its XML."
               if plan.for_programs else "Beside the folders: metadata.csv and images.parquet.")
    agreed = _show_removed(plan)
    words = f"Write {plan.amount}" if plan.how != "list" else "Write the list"
    words += f", remove {counted(len(plan.removed), 'file')}" if plan.removed else ""
    if st.button(words, icon=":material/drive_file_move:", key="labels-write", type="primary", shortcut="W",
                 disabled=not agreed, help="Your files are neither moved nor deleted."):
        _write(board, plan)


def _show_removed(plan: Plan) -> bool:
    """List the files of earlier exports that would be removed, and return whether the user agrees or there are none."""
    if not plan.removed:
        return True
    table = pd.DataFrame([(former.item.file, REASONS[former.reason][0]) for former in plan.removed],
                         columns=["File of an earlier export", "Why it leaves"])
    data_table(table, hide_index=True, width="content", height=min(260, 38 + 36 * len(table)))
    return st.checkbox(f"I have read the list: remove {counted(len(table), 'file')}", key=f"labels-agreed-{id(plan)}")


def _write(board: Board, plan: Plan) -> None:
    """Write the plan with the time left; Stop interrupts it and leaves the list, with which it continues."""
    st.button("Stop", icon=":material/stop:", key="labels-stop",
              help="What is written stays, and the same export continues later.")
    try:
        with progress_bar("Writing …") as report:
            write_plan(plan, with_time(report))
    except UserError as error:
        st.session_state[PLANNED] = error, _state_of(board)
    else:
        st.session_state.pop(PLANNED, None)
        amount = plan.amount[:1].upper() + plan.amount[1:]
        removed = f" {counted(len(plan.removed), 'file')} of earlier exports removed." if plan.removed else ""
        st.session_state[WRITTEN] = (f"{amount} in {counted(len(plan.classes), 'folder')} written to {plan.target}."
                                     f"{removed}", _state_of(board))
    st.rerun(scope="fragment")
