"""Importing a user's images: a folder or an archive on this computer, or files from the browser."""

from __future__ import annotations

import os
from contextlib import suppress
from operator import attrgetter

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from udml_core.base.errors import UserError
from udml_core.base.started import browsed_dataset
from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.data.sources.archive import SUFFIXES, image_paths, plain_stem
from udml_core.data.sources.embeddings import EmbeddingTable
from udml_core.data.sources.image_folder import Folder
from udml_core.data.sources.levels import (
    NO_CLASSES,
    ClassLevel,
    class_levels,
    first_class_level,
    name_with_level,
)
from udml_core.data.sources.listing import ENDINGS
from udml_core.data.sources.located import Located
from udml_core.data.sources.metadata import unused_table
from udml_core.data.sources.official.layout import OfficialLayout
from udml_core.data.sources.table_folder import TableFolder
from udml_core.runs import runs_folder
from udml_core.work.jobs.auditing import audit_import

from ..shell.cached import load_dataset, progress_bar
from ..shell.run_status import escaped, escaped_message
from ..shell.user_errors import has_kept_error, keep_user_errors
from .tables import choose_columns, is_table_path, upload_table

SHOWN_CLASSES = 4
NO_CHOICE: tuple[str, list[str], str] = ("", [], "")
CHOICES = {"label": ("Classes", "Column of the table, or version of the labels, that names the class of each image."),
           "part": ("Part", "The images of the data set: with labels, without labels, or all."),
           "crop": ("Crop", "What each image is cropped to.")}
"""Title and help of the choice of an option, by its key in the name of the data set."""
WAYS = (":material/folder_open: On this computer", ":material/upload: Upload images",
        ":material/scatter_plot: Upload embeddings")
"""Ways of an import."""
FORMATS = ("Images can lie in the folder itself, or in a subfolder for each class. Other layouts that are read: a "
           "metadata.csv, benchmarks in the files of their authors such as CUB-200-2011, lists of FiftyOne and "
           "Croissant, and images in the rows of Parquet, Arrow, WebDataset and LanceDB files.")
"""What can be imported by its path."""
OPEN, PATH, IMPORTED = "import-form", "import-path", "import-done"
"""Session keys: whether the form is open, its path, and whether a data set was imported just now."""


def import_folder() -> None:
    """Show the form; an imported folder is remembered and shown, and the form closes."""
    if st.session_state.pop(IMPORTED, False):
        st.session_state[OPEN] = False
    st.session_state.setdefault(OPEN, "import" in st.query_params)
    with st.expander("Import your own images", icon=":material/drive_folder_upload:", key=OPEN, on_change="rerun"):
        on_computer, from_browser, embeddings = st.tabs(WAYS)
        with on_computer:
            _import_path()
        with from_browser:
            _import_upload()
        with embeddings:
            upload_table(open_import)


def _import_path() -> None:
    """Show the path of a folder, an archive or a table, and what can be chosen there."""
    line = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    path = line.text_input("Folder, ZIP or TAR, CSV, Parquet, datasets, WebDataset, or embeddings",
                           placeholder="/home/me/photos", key=PATH, help=FORMATS).strip()
    problem = _preview(path)[2] if path and not is_table_path(path) else ""
    level = choose_level(path) if path and not is_table_path(path) else None
    path = choose_columns(choose_label(path))
    clicked = line.button("Open", disabled=not path,
                          icon=":material/folder_open:", type="primary")
    with keep_user_errors("import-folder", (path, level), clicked):
        if clicked:
            open_import(name_with_level(path, level))
    if problem and not has_kept_error("import-folder", (path, level)):
        st.error(escaped_message(problem), icon=":material/error:")


def _import_upload() -> None:
    """Show the form that imports a folder or an archive from the browser."""
    files = st.file_uploader("Upload a folder", type=sorted(ending[1:] for ending in ENDINGS),
                             accept_multiple_files="directory")
    archive = st.file_uploader("Upload an archive", type=sorted({suffix.rpartition(".")[2] for suffix in SUFFIXES}),
                               key="import-archive")
    archive_level = None if archive is None else choose_level_of_upload(archive)
    line = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    name = line.text_input("Name of the data set", key="import-name", placeholder="" if archive is None else
                           plain_stem(archive.name))
    clicked = line.button("Import these files", disabled=archive is None and not (files and name.strip()),
                          icon=":material/upload:", type="primary")
    with keep_user_errors("import-files", (name, len(files), archive and archive.file_id), clicked):
        if clicked and archive is not None:
            with progress_bar(f"Extracting {archive.name} …") as report:
                folder = catalog.import_archive(name.strip() or plain_stem(archive.name), archive, archive.name,
                                                report)
            open_import(name_with_level(str(folder), archive_level))
        elif clicked:
            open_import(str(catalog.import_files(name, ((file.name, file.getvalue()) for file in files))))


def offer_folder(name: str) -> bool:
    """Open the form with the folder that a link names, before the form is drawn.

    Returns:
        Whether the name is an existing path that this server may read.
    """
    if not catalog.is_path(name):
        return False
    st.session_state[OPEN], st.session_state[PATH] = True, name
    return True


def choose_level(path: str) -> int | None:
    """Preview what a folder or an archive has, and choose the level of subfolders that are the classes.

    Returns:
        The level; None for the default, and if the folder has no choice of levels.
    """
    levels, found_layout, _ = _preview(path)
    if found_layout:
        st.info(escaped_message(found_layout), icon=":material/dataset:")
    beside = [] if levels else _levels_beside(path)
    if beside and not st.checkbox("Use this list", value=True, key=f"import-list-{path}",
                                  help="Off: the images of the folder are opened without the list of classes."):
        level = _ask_level(beside, path)
        return first_class_level(beside) if level is None else level
    return _ask_level(levels, path)


@st.cache_data(ttl="10s", max_entries=8, show_spinner=False)
def _levels_beside(path: str) -> list[ClassLevel]:
    """Return the levels of a folder whose list of images can be ignored; none for other folders."""
    with suppress(UserError, OSError):
        source = catalog.folder_of(path)
        if isinstance(source, TableFolder) and os.path.isdir(source.path):
            return Folder(source.path).levels()
    return []


def choose_level_of_upload(archive: UploadedFile) -> int | None:
    """Choose the level of subfolders in an uploaded archive that are the classes; see `choose_level`."""
    key = f"levels-{archive.file_id}"
    if key not in st.session_state:
        with suppress(UserError):  # the import says what is wrong
            st.session_state[key] = class_levels(image_paths(archive, archive.name))
    return _ask_level(st.session_state.get(key, []), archive.file_id)


def _ask_level(levels: list[ClassLevel], key: str) -> int | None:
    if not any(class_level.level > 1 for class_level in levels):
        return None
    default = first_class_level(levels)
    choices = [NO_CLASSES, *(class_level.level for class_level in levels if class_level.has_classes)]
    words = {NO_CLASSES: "No classes"} | {each.level: level_words(each) for each in levels}
    level = st.radio("Which folders are the classes?", choices, choices.index(default), format_func=words.__getitem__,
                     key=f"import-level-{key}", help="The folder has several levels of subfolders. Each choice names "
                                                      "the classes that it gives.")
    return None if level == default else level


def choose_label(path: str) -> str:
    """Choose the column of the classes of a folder with metadata.csv or metadata.parquet, or an option of a layout.

    Returns:
        The path, with the column or option unless it is the usual one or is named already; `path` itself for other
        folders.
    """
    key, values, usual = _named_choices(path) if path else NO_CHOICE
    if not values:
        return path
    title, words = CHOICES[key]
    value = st.selectbox(title, values, values.index(usual) if usual else None, key=f"import-{key}-{path}",
                         placeholder="none", help=words)
    return path if value in (None, usual) else f"{path}#{key}={value}"


@st.cache_data(ttl="10s", max_entries=8, show_spinner=False)
def _named_choices(path: str) -> tuple[str, list[str], str]:
    """Return the key of a folder's choice, its values and the usual value.

    The values are the columns of a table that can name the classes, or the options of an official layout.
    """
    try:
        source = catalog.folder_of(path)
        if isinstance(source, TableFolder) and source.label is None and source.missing() is None:
            columns, usual = source.label_columns, source.label_column or ""
            return ("label", columns, usual) if columns not in ([], [usual]) else NO_CHOICE
        if isinstance(source, OfficialLayout) and source.option is None and source.missing() is None:
            return source.choices()
    except UserError:  # the preview shows what is wrong
        pass
    return NO_CHOICE


def level_words(level: ClassLevel) -> str:
    """Describe the classes of a level as Markdown, such as `Level 2: 12 classes: cats (40), dogs (38), …`."""
    shown = [f"{escaped(name)} ({size:,})" for name, size in list(level.sizes.items())[:SHOWN_CLASSES]]
    more = ", …" if len(level.sizes) > SHOWN_CLASSES else ""
    loose = f"; {level.loose:,} images above it are left out" if level.loose else ""
    return f"Level {level.level}: {len(level.sizes):,} classes: {', '.join(shown)}{more}{loose}"


@st.cache_data(ttl="10s", max_entries=8, show_spinner="Reading the folder …")
def _preview(path: str) -> tuple[list[ClassLevel], str, str]:
    """Return the levels of a plain folder, or what a folder with lists or a table has, and what is wrong with it."""
    try:
        if (levels := catalog.archive_levels(path)) is not None:
            return levels, "", ""
        source = catalog.folder_of(path)
        if problem := source.missing():
            return [], "", problem
        if source.names_classes:
            return [], source.describe(), ""
        return source.levels(), unused_table(source.path), ""
    except (UserError, OSError) as error:
        return [], "", str(error)


def audit_browsed(dataset: Dataset) -> None:
    """Start the audit of the data set that the app was started with, once for each start."""
    if dataset.name == browsed_dataset():
        _audit_once(dataset)


@st.cache_resource(show_spinner=False, hash_funcs={Dataset: attrgetter("fingerprint")})
def _audit_once(dataset: Dataset) -> None:
    audit_import(dataset, runs_folder())


def open_import(name: str) -> None:
    """Remember a folder, or extract an archive, start its audit in the background, and show it.

    Raises:
        UserError: The folder does not exist or has no readable images.
    """
    with progress_bar("Opening the data set …") as report:
        source = catalog.find(catalog.extracted(name, report))
    dataset = load_dataset(source.name)
    if isinstance(source, EmbeddingTable):
        catalog.remember_table(source)
    elif isinstance(source, Located):
        catalog.remember(source.name)
    audit_import(dataset, runs_folder())
    _preview.clear()  # what was wrong a moment ago is not any more
    st.session_state[IMPORTED] = True
    st.query_params.pop("import", None)
    st.query_params["dataset"] = source.name
    st.rerun()
