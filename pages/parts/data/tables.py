"""Importing a table of embeddings: which columns it uses, and files from the browser."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import PurePath

import streamlit as st

from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.sources.embeddings import LAYOUT, EmbeddingTable, table_of
from udml_core.data.sources.row_formats import holds_images
from udml_core.data.sources.table_columns import Choices
from udml_core.data.sources.table_header import Header, read_header, read_uploaded_header
from udml_core.data.sources.vector_files import ENDINGS

from ..shell.user_errors import keep_user_errors, show_user_errors

ROLES = {"label": ("Classes", "Column with the class of each row."),
         "name": ("Names", "Column with a different name for each row."),
         "split": ("Halves", "Column that says train or test for each row."),
         "image": ("Images", "Column with the path of each row's image, relative to the table's folder."),
         "text": ("Text of tiles", "Column whose text is shown in place of an image.")}
NO_COLUMN = "none"


def is_table_path(path: str) -> bool:
    """Return whether a text has the form of a table's path, with or without chosen columns."""
    plain = path.partition("#")[0]
    return plain.lower().endswith(ENDINGS) and not holds_images(plain)


def choose_columns(path: str) -> str:
    """Show a select box for each role that a column of a table can have.

    Args:
        path: What the user typed: the path of a table, or of something else.

    Returns:
        The name of the table with the chosen columns; `path` itself if it is no table.
    """
    with show_user_errors():
        table = table_of(path)
        if table is None or str(table.choices):
            return path
        choices = _choose_roles(_header(table.name, table.signature()), path, table.choices)
        return EmbeddingTable(table.path, choices).name
    return path


def _choose_roles(header: Header, key: str, choices: Choices) -> Choices:
    """Choose the column of each role; the choices as they are if the table has no columns.

    Args:
        header: What the table has.
        key: End of the widgets' keys.
        choices: The choices besides the roles.
    """
    if not header.columns:
        return choices
    st.caption(f"{header.count:,} rows, each with a vector of {header.width:,} numbers.")
    chosen, columns = {}, ["", *header.columns]
    for role, (label, text) in ROLES.items():
        usual = header.usual[role]
        column = st.selectbox(label, columns, columns.index(usual), help=text, key=f"import-{role}-{key}",
                              format_func=lambda name: name or NO_COLUMN)
        if column != usual:
            chosen[role] = column
    return replace(choices, **chosen)


@st.cache_data(max_entries=8, show_spinner="Reading the columns …")
def _header(name: str, signature: str) -> Header:  # noqa: ARG001 (a changed file is read again)
    table = table_of(name)
    assert table is not None, "the path was a table's a moment ago"
    return read_header(table)


@st.cache_data(max_entries=2, show_spinner="Reading the columns …")
def _uploaded_header(_files: list[tuple[str, bytes]], ids: tuple[str, ...]) -> Header:  # noqa: ARG001 (other uploads)
    """Return what uploaded files have."""
    return read_uploaded_header(_files)


def upload_table(open_table: Callable[[str], None]) -> None:
    """Show the form that imports an uploaded table.

    Args:
        open_table: Opens a data set by its name.
    """
    st.caption(f"{LAYOUT}, and a CSV or Parquet file with the columns of its rows if they are in another file. Columns "
               "called label, split, name and image are recognized, and others can be chosen.")
    files = st.file_uploader("Upload embeddings", type=[ending[1:] for ending in (*ENDINGS, ".csv")],
                             accept_multiple_files=True, key="import-table")
    stem = PurePath(files[0].name).stem if files else ""
    name = st.text_input("Name of the table", placeholder=stem, key="import-table-name").strip() or stem
    contents, choices = [(file.name, file.getvalue()) for file in files], Choices()
    if files:
        with suppress(UserError):  # the import says what is wrong
            ids = tuple(file.file_id for file in files)
            choices = _choose_roles(_uploaded_header(contents, ids), ".".join(ids), choices)
    clicked = st.button("Import embeddings", disabled=not files, icon=":material/upload:")
    with keep_user_errors("import-table", (name, str(choices), *(file.name for file in files)), clicked):
        if clicked:
            open_table(catalog.import_table(name, contents, choices).name)
