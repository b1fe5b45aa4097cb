"""Home of an opened folder: its search, the progress until then, and its map in place of the example."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from udml_core.data.catalog import find, remembered_folders
from udml_core.runs import Run, runs_folder
from udml_core.runs.analyses import finished_maps
from udml_core.runs.search import FROZEN
from udml_core.runs.tasks import LIVE_STATES
from udml_core.work.jobs.live_races import live_races

from ..data.using import ACTION, FOLLOW, SEARCH
from ..maps.coloring import colorings
from ..maps.excluding import NONE
from ..maps.frame import load_map
from ..maps.scatter import show_map
from ..shell.awaited import FIRST_IMAGES, await_run, show_progress
from ..shell.run_picker import PARAMETER, open_search
from ..shell.run_status import escaped
from ..shell.views import open_view, view_link

BEGUN = "home-folder"
"""Prefix of the session keys of the progress."""
MAP = "home-map"
"""Key of the map of the opened images."""


def run_of_folder(runs: Sequence[Run]) -> Run | None:
    """Return the newest run that compares the images of the folder that was opened last; None without one.

    Args:
        runs: The user's runs, the newest first.
    """
    folder = next(iter(remembered_folders()[::-1]), None)
    return next((run for run in runs if run.spec().method == FROZEN and run.spec().dataset == folder), None)


def is_compared(run: Run | None) -> bool:
    """Return whether the images of a run can be searched."""
    return run is not None and (run.stored_status().state == "done" or run.status().can_search)


def show_folder(runs: Sequence[Run]) -> None:
    """Show the folder that was opened last with its search, or how far it is from it; nothing without a folder.

    Args:
        runs: The user's runs, the newest first.
    """
    if not (folders := remembered_folders()):
        return
    title, run = find(folders[-1]).title, run_of_folder(runs)
    is_live = run is not None and not is_compared(run) and run.status().state in LIVE_STATES
    begins = "" if is_compared(run) or is_live else " Search opens when its images are compared: open them to begin."
    is_raced = any(live.run.spec().dataset == folders[-1] for live in live_races(runs_folder()))
    with st.container(border=True, key="home-used"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(f":material/folder_open: **{escaped(title)}**: your folder is open.{begins}", width="stretch")
            if run is not None and is_compared(run) and st.button(
                    "Search these images", type="primary", icon=SEARCH, key="home-search-folder"):
                open_view("retrieval", {"run": run.id})
            if run is not None and is_live and st.button(FIRST_IMAGES, icon=SEARCH, key="home-search-first"):
                await_run(run)
                open_view("retrieval")
            for view, label, icon in (("gallery", "Open my images", ":material/photo_library:"),
                                      ("advice", FOLLOW if is_raced else ACTION, ":material/trophy:")):
                view_link("data", {"dataset": folders[-1], "view": view}, label=label, icon=icon, width="content")
        if run is not None and is_live:
            show_progress(run, BEGUN, "The preparation of the images", "Search opens when your images are compared.",
                          is_enough=lambda status: status.can_search)
        elif problem := st.session_state.pop(f"{BEGUN}-failure", ""):
            st.error(escaped(problem), icon=":material/error:")


def show_own_map(runs: Sequence[Run]) -> bool:
    """Show the map of the opened folder, whose images a click searches with; return whether there is one.

    A link that names a run comes first.

    Args:
        runs: The user's runs, the newest first.

    Raises:
        UserError: The folder or its map cannot be read.
    """
    run = run_of_folder(runs)
    maps = finished_maps(run) if run is not None and run.stored_status().state == "done" else []
    if run is None or not maps or st.query_params.get(PARAMETER, run.id) != run.id:
        return False
    shown = load_map(run, maps[0].id)
    color = next(iter(colorings(shown).values()))()
    title = run.spec().dataset_title
    st.markdown(f"**The map of {escaped(title)}**: similar images are near each other. Click an image to search with "
                "it.")
    picked = show_map(shown, color, f"Map of {title}", MAP, NONE, legend_below=True, fills=True)
    if picked is not None:
        open_search(shown.dataset, picked)
    return True


def say_example(runs: Sequence[Run]) -> None:
    """Say that the picture is an example, until the images of the opened folder are compared and have a map.

    Args:
        runs: The user's runs, the newest first.
    """
    if remembered_folders():
        until = "the map of your images is ready" if is_compared(run_of_folder(runs)) else "your images are compared"
        st.caption(f":material/info: An example, until {until}.")
