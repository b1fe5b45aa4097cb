"""A person's own images: a path on this machine, or files from the browser."""

from pathlib import Path

import streamlit as st

from pages.parts.loading import opened_dataset, told
from udml_core.data import catalog
from udml_core.data.sources.folder import ENDINGS, LAYOUT, Folder
from udml_core.errors import UserError


def import_folder() -> None:
    """The form; a folder that is taken is remembered and shown."""
    with st.expander("Bring your own images", icon=":material/drive_folder_upload:",
                     expanded="import" in st.query_params):
        st.caption(f"Expected: {LAYOUT}. Unlabeled images are welcome: everything trains on them.")
        path = st.text_input("Folder on this computer", placeholder="/home/me/photos", key="import-path")
        if st.button("Use this folder", disabled=not path.strip(), icon=":material/folder_open:"):
            with told():
                use(Path(path.strip()))
        files = st.file_uploader("Or drop a folder here", type=sorted(ending[1:] for ending in ENDINGS),
                                 accept_multiple_files="directory")
        name = st.text_input("What to call it", key="import-name")
        if st.button("Import these files", disabled=not (files and name.strip()), icon=":material/upload:"):
            with told():
                use(catalog.import_files(name, ((file.name, file.getvalue()) for file in files)))


def use(folder: Path) -> None:
    """Remember a folder and show it.

    Raises:
        UserError: it has no readable images.
    """
    source = Folder(folder)
    problem = source.missing()
    if problem:
        raise UserError(problem)
    opened_dataset(source.name)
    catalog.remember(folder)
    st.query_params["dataset"] = source.name
    st.rerun()
