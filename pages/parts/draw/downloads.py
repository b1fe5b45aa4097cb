"""Sharing and exporting a view: link, files and charts."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import pandas as pd
import streamlit as st

from udml_core.base.arrays import Array
from udml_core.base.spreadsheets import write_rows
from udml_core.data.dataset import Dataset
from udml_core.data.text_tiles import file_of
from udml_core.exploration.paper_tables import SUFFIXES, Form, PaperTable

LARGEST_ZIP = 2**30
"""Bytes of images in one download, which stays in memory meanwhile."""
FORM_WORDS: Mapping[Form, str] = {"latex": "LaTeX", "markdown": "Markdown", "csv": "CSV"}

@dataclass(frozen=True)
class Download:
    """A file to download.

    Attributes:
        label: The label of the button.
        name: The file name.
        kind: The media type.
        make: Returns the content; called when the button is pressed.
    """

    label: str
    name: str
    kind: str
    make: Callable[[], bytes]


def share(downloads: list[Download], key: str) -> None:
    """Show a menu with the page's files and the format of saved charts."""
    with st.popover("Share and export", icon=":material/ios_share:"):
        st.caption("The address of this page is a link to this view for everyone who can reach this server.")
        for download in downloads:
            st.download_button(download.label, download.make, download.name, download.kind,
                               icon=":material/download:", on_click="ignore", key=f"{key}-{download.name}",
                               width="stretch")
        st.segmented_control("Chart format", ["svg", "png"], default="svg", key="chart-format",
                             format_func=str.upper, persist_state="session",
                             help="Format of the file that the camera button above each chart saves.")


def table_downloads(name: str, table: Callable[[], PaperTable], forms: Sequence[Form] = get_args(Form),
                    title: str = "Table") -> list[Download]:
    """Return the files of a table for a paper.

    Args:
        name: Name of the files, without a suffix.
        table: Returns the table; called when a button is pressed.
        forms: The forms to offer.
        title: What the buttons call the table.
    """
    return [Download(f"{title} ({FORM_WORDS[form]})", f"{name}.{SUFFIXES[form]}", f"text/{form}",
                     lambda form=form: table().written(form).encode()) for form in forms]  # type: ignore[misc]


def frame_file(frame: pd.DataFrame) -> bytes:
    """Return a frame as a CSV table; names of rows, if there are any, come first."""
    rows = frame if isinstance(frame.index, pd.RangeIndex) else frame.reset_index(names="")
    table = io.StringIO()
    write_rows(table, [list(rows.columns), *rows.astype(object).where(rows.notna(), "").to_numpy().tolist()])
    return table.getvalue().encode()


def image_list(dataset: Dataset, ids: Array) -> bytes:
    """Return a CSV table of images: index, name and class."""
    return table_file(dataset, ids, {})


def image_files(dataset: Dataset, ids: Sequence[int]) -> list[Path]:
    """List the files of images; none if one has no file of its own, or if they are too large for one download."""
    files = [file_of(dataset, index) for index in ids]
    found = [path for path in files if path is not None and path.is_file()]
    return found if len(found) == len(files) and sum(path.stat().st_size for path in found) <= LARGEST_ZIP else []


def zipped(files: Sequence[Path]) -> bytes:
    """Return a ZIP file of image files, whose names begin with their rank."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:  # images hardly shrink
        for rank, path in enumerate(files, 1):
            archive.write(path, f"{rank:03d} {path.name}")
    return content.getvalue()


def table_file(dataset: Dataset, ids: Array, columns: Mapping[str, Array]) -> bytes:
    """Return a CSV table of images.

    Args:
        dataset: The data set.
        ids: (n,) indices of the images.
        columns: Further columns by title, (n,) each, after index, name and class.
    """
    table = io.StringIO()
    names, labels = dataset.class_names, dataset.labels
    classes = [""] * len(ids) if labels is None else [names[label] for label in labels[ids]]
    write_rows(table, [["index", "image", "class", *columns], *(
        [int(index), dataset.names[index], classes[row], *(values[row] for values in columns.values())]
        for row, index in enumerate(ids))])
    return table.getvalue().encode()
