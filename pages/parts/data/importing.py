"""Importing a user's images: a folder on this computer, or files from the browser."""

import streamlit as st

from pages.parts.base.cached import load_dataset
from pages.parts.base.user_errors import show_user_errors
from udml_core.data import catalog
from udml_core.data.sources.folder import LAYOUT, Folder
from udml_core.data.sources.listing import ENDINGS


def import_folder() -> None:
    """Show the form; an imported folder is remembered and shown."""
    with st.expander("Import your own images", icon=":material/drive_folder_upload:",
                     expanded="import" in st.query_params):
        st.caption(f"Expected layout: {LAYOUT}. Most methods train on images without labels.")
        path = st.text_input("Folder on this computer", placeholder="/home/me/photos", key="import-path")
        if st.button("Use this folder", disabled=not path.strip(), icon=":material/folder_open:"):
            with show_user_errors():
                open_folder(path.strip())
        files = st.file_uploader("Upload a folder", type=sorted(ending[1:] for ending in ENDINGS),
                                 accept_multiple_files="directory")
        name = st.text_input("Name of the data set", key="import-name")
        if st.button("Import these files", disabled=not (files and name.strip()), icon=":material/upload:"):
            with show_user_errors():
                open_folder(str(catalog.import_files(name, ((file.name, file.getvalue()) for file in files))))


def open_folder(folder: str) -> None:
    """Remember a folder and show it.

    Raises:
        UserError: The folder does not exist or has no readable images.
    """
    source = catalog.find(folder)
    load_dataset(source.name)
    if isinstance(source, Folder):
        catalog.remember(source.path)
    st.query_params["dataset"] = source.name
    st.rerun()
