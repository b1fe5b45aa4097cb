"""Home's ways into the app: search one's own images, train, and learn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from udml_core.data import catalog
from udml_core.data.sources.levels import name_with_level
from udml_core.data.sources.listing import ENDINGS
from udml_core.runs import runs_folder
from udml_core.work import jobs
from udml_core.work.jobs.auditing import audit_import

from ..data.computed import THEN, begin_browsing
from ..data.importing import choose_level
from ..shell.cached import load_dataset
from ..shell.run_picker import choose_run
from ..shell.user_errors import show_user_errors
from ..shell.views import open_view, view_link


def show_doors() -> None:
    """Show the three ways into the app: search one's own images, train, and learn."""
    with st.container(key="home-doors", horizontal=True, vertical_alignment="center"):
        with st.popover("Search my folder", icon=":material/image_search:", type="primary", width="stretch"):
            with show_user_errors():
                _import_files()
            view_link("data", label="Or name a folder on this computer, or an archive",
                      icon=":material/drive_folder_upload:", query_params={"import": "1"})
            view_link("data", label="Find the best search for images that are here", icon=":material/trophy:",
                      query_params={"view": "advice"})
        view_link("train", label="Try it live", icon=":material/science:", width="stretch",
                  help="Choose images and a method, and watch a model learn.")
        view_link("learn", label="Learn", icon=":material/school:", width="stretch",
                  help="Short lessons that work alone and in front of a class.")


def show_first_run() -> None:
    """Show the button that trains the default run."""
    with st.container(horizontal=True, vertical_alignment="center"):
        clicked = st.button("Train RPML now", icon=":material/play_arrow:")
        st.caption("on 1,797 handwritten digits that come with the app, without labels", width="content")
    if clicked:
        with show_user_errors():
            run = jobs.submit(jobs.plan(jobs.FIRST_RUN, load_dataset(jobs.FIRST_RUN.dataset)), runs_folder())
            choose_run(run)
            open_view("train", {"dataset": jobs.FIRST_RUN.dataset, "method": jobs.FIRST_RUN.method, "live": run.id})


def _import_files() -> None:
    """Import dropped images and choose the folders that are the classes; Search opens when the images are compared."""
    files = st.file_uploader("Drop a folder with images", type=sorted(ending[1:] for ending in ENDINGS),
                             accept_multiple_files="directory", key="home-upload")
    if not files:
        return
    folder = _imported(files)
    level = None
    if _has_levels(folder):
        level = choose_level(folder)
        if not st.button("Search these images", type="primary", icon=":material/image_search:", key="home-search"):
            return
    name = name_with_level(folder, level)
    dataset = load_dataset(name)
    catalog.remember(name)
    audit_import(dataset, runs_folder())
    begin_browsing(dataset)
    open_view("data", query_params={"dataset": name, THEN: "retrieval"})


def _imported(files: Sequence[UploadedFile]) -> str:
    """Return the name of the data set of dropped files, which are stored once."""
    dropped = tuple(file.file_id for file in files)
    if st.session_state.get("home-dropped", ((), ""))[0] != dropped:
        name = catalog.free_name(PurePosixPath(files[0].name).parts[0] if "/" in files[0].name else "My images")
        with st.spinner(f"Importing {len(files):,} files …"):
            folder = catalog.import_files(name, ((file.name, file.getvalue()) for file in files))
            st.session_state["home-dropped"] = (dropped, catalog.find(str(folder)).name)
    return str(st.session_state["home-dropped"][1])


def _has_levels(folder: str) -> bool:
    """Return whether the classes of a folder can be at several levels of its subfolders."""
    source = catalog.folder_of(folder)
    return (not source.names_classes and not source.missing()
            and any(class_level.level > 1 for class_level in source.levels()))
