"""Taking a view away: a link, files, charts."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import streamlit as st

from udml_core.arrays import Array
from udml_core.data.dataset import Dataset


@dataclass(frozen=True)
class Download:
    """A file that can be taken away; `make` is called when it is asked for."""

    label: str
    name: str
    kind: str
    make: Callable[[], bytes]


def share(downloads: list[Download], key: str) -> None:
    """A menu: the link, the page's files, and how charts are saved."""
    with st.popover("Share and export", icon=":material/ios_share:"):
        st.caption("The address of this page shows the same view to everybody who reaches this server.")
        for one in downloads:
            st.download_button(one.label, one.make, one.name, one.kind, icon=":material/download:", on_click="ignore",
                               key=f"{key}-{one.name}", width="stretch")
        st.segmented_control("Charts are saved as", ["svg", "png"], default="svg", key="chart-format",
                             format_func=str.upper, persist_state="session",
                             help="The camera above each chart saves it.")


def image_list(dataset: Dataset, ids: Array) -> bytes:
    """Images as a table: position, name, class."""
    return table_file(dataset, ids, {})


def table_file(dataset: Dataset, ids: Array, columns: Mapping[str, Array]) -> bytes:
    """The same with further columns, one value an image."""
    table = io.StringIO()
    writer = csv.writer(table)
    writer.writerow(["index", "image", "class", *columns])
    for place, index in enumerate(ids):
        label = "" if dataset.labels is None else dataset.class_names[dataset.labels[index]]
        writer.writerow([int(index), dataset.names[index], label, *(values[place] for values in columns.values())])
    return table.getvalue().encode()
