"""Move the files of excluded images to a folder of their own, and back: the plan with all files first, then a yes."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pandas as pd
import streamlit as st

from udml_core.base.errors import UserError, counted
from udml_core.base.paths import is_exposed
from udml_core.data.dataset import Dataset
from udml_core.data.given.exclusions import excluded_images
from udml_core.runs import runs_folder
from udml_core.work.exporting import move_files, moved_folders, plan_moving, plan_moving_back
from udml_core.work.exporting.moving import MovePlan
from udml_core.work.exporting.moving_files import moved_words
from udml_core.work.jobs.auditing import start_auditing

from ..draw.tables import data_table
from ..shell.cached import forget_signature, load_dataset, progress_bar, with_time
from ..shell.run_status import escaped_message
from .computed import chosen_encoder

PLANNED, MOVED = "move-plan", "move-done"
"""Session keys of the plan, or why there is none, and of what was moved."""
MOST_ROWS = 400


def show_moving(dataset: Dataset) -> None:
    """Offer to move excluded images out of their folder, and moved images back.

    Args:
        dataset: The data set in its present state.
    """
    count, folders = len(excluded_images(dataset)), moved_folders(dataset)
    if not (count or folders):
        return
    if is_exposed():
        st.caption("Other people can reach this server, so it moves no files. On its computer:")
        st.code(shlex.join(["udml", "exclude", dataset.name, "--move-to", "FOLDER"]), language="bash", wrap_lines=True)
        return
    for number, folder in enumerate(folders):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.caption(escaped_message(f"Excluded images were moved to {folder}."), width="content")
            st.button("Move back …", icon=":material/undo:", key=f"move-back-{number}", on_click=_plan,
                      args=(dataset, plan_moving_back, folder), help="Shows which files would return to their places.")
    if count:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            # Another folder makes another plan at once: no plan stands beside a folder that is not its own.
            st.text_input("Folder for the excluded images", key="move-target", placeholder="/home/me/excluded",
                          width=360, on_change=_plan_typed, args=(dataset,),
                          help="A folder outside the data set on the computer that runs the app, new or empty, or the "
                               "one of an earlier move.")
            st.button("Show plan", icon=":material/checklist:", key="move-show", on_click=_plan_typed, args=(dataset,))
    _show_planned(dataset)


def say_moved() -> None:
    """Say once what was moved: the page opens a folder again whose images have changed."""
    if done := st.session_state.pop(MOVED, ""):
        st.toast(escaped_message(done), icon=":material/check_circle:")


def _plan_typed(dataset: Dataset) -> None:
    _plan(dataset, plan_moving, st.session_state["move-target"].strip() or ".")


def _plan(dataset: Dataset, plan: Callable[[Dataset, Path | str], MovePlan], folder: Path | str) -> None:
    """Keep the plan, or why there is none, for the next drawing of the page."""
    try:
        st.session_state[PLANNED] = plan(dataset, folder)
    except UserError as error:
        st.session_state[PLANNED] = error
    except OSError as error:
        st.session_state[PLANNED] = UserError(f"The folder could not be read: {error}. Choose another folder.")


def _show_planned(dataset: Dataset) -> None:
    """Show which files would move, and the button that moves them after a tick."""
    plan = st.session_state.get(PLANNED)
    if isinstance(plan, UserError):
        st.error(escaped_message(str(plan)), icon=":material/error:")
    if not isinstance(plan, MovePlan) or plan.dataset.fingerprint != dataset.fingerprint:
        return
    st.markdown(f"**Plan.** {escaped_message(plan.lines[0])}")
    for note in plan.notes:
        st.info(escaped_message(note), icon=":material/info:")
    rows = [(item.file, "moves", item.bytes / 1e3) for item in plan.items]
    table = pd.DataFrame([*rows, *((file, f"stays: {reason}", None) for file, reason in plan.left)],
                         columns=["File", "What happens", "kB"])
    data_table(table[:MOST_ROWS], hide_index=True, height=min(260, 38 + 36 * len(table[:MOST_ROWS])),
               column_config={"kB": st.column_config.NumberColumn(format="%.1f")})
    if len(table) > MOST_ROWS:
        st.caption(f"The first {MOST_ROWS} of {len(table):,} files.")
    words = counted(len(plan.items), "file")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        agreed = st.checkbox("I have read the list: move these files", key=f"move-agreed-{id(plan)}")
        if st.button(f"Move {words}", icon=":material/drive_file_move:", key="move-files", type="primary",
                     disabled=not agreed, help="Moves the listed files; nothing is deleted or overwritten."):
            _move(plan)


def _move(plan: MovePlan) -> None:
    """Move the files with the time left; Stop interrupts, and another plan continues."""
    st.button("Stop", icon=":material/stop:", key="move-stop",
              help="Files that have moved stay there, and another plan moves the rest, or all back.")
    st.session_state.pop(PLANNED)
    try:
        with progress_bar("Moving …") as report:
            st.session_state[MOVED] = moved_words(plan, move_files(plan, with_time(report)))
    except UserError as error:
        st.session_state[PLANNED] = error
    finally:
        forget_signature(plan.dataset.name)
    with suppress(UserError):  # the page says what is missing
        dataset = load_dataset(plan.dataset.name)
        start_auditing(dataset, chosen_encoder(dataset), runs_folder())  # of known images it computes nothing again
    st.rerun()
