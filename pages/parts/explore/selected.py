"""The selected images, and what can be done with them."""

from __future__ import annotations

import streamlit as st

from ..draw.downloads import image_list
from ..draw.gallery import tile_of
from ..maps.excluding import exclude_button
from ..retrieval.query import MOST as MOST_QUERY
from ..shell.address import join_indices
from ..shell.selection import select, selection
from .workbench import Workbench

MOST = 150
"""Number of tiles; more images are exported and labeled, but not shown."""


def show_selected(bench: Workbench) -> None:
    """Show the selected images with the actions on them."""
    selected, dataset, run = selection(bench.dataset), bench.dataset, bench.run
    ids = selected.ids
    st.markdown(f"**{len(ids):,} images selected**"
                + (f", the first {MOST} are shown" if len(ids) > MOST else "") + _classes(bench))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.page_link("pages/labels.py", label="Label", icon=":material/new_label:",
                     help="Assign a class to the selected images.",
                     query_params={"run": run.id, "selected": st.query_params.get("selected", "")})
        st.page_link("pages/retrieval.py", label="Search", icon=":material/image_search:",
                     help=f"Search with the mean of the selected images, at most {MOST_QUERY}.",
                     query_params={"run": run.id, "gallery": "all", "add": join_indices(ids[:MOST_QUERY].tolist())})
        exclude_button(dataset, ids, "explore-exclude")
        st.download_button("CSV", lambda: image_list(dataset, ids), "selection.csv", "text/csv",
                           icon=":material/download:", on_click="ignore", key="explore-export", type="tertiary")
        st.button("Clear", icon=":material/close:", key="explore-clear", type="tertiary", on_click=select,
                  args=(dataset.fingerprint, ids[:0]))
    bench.tiles([tile_of(dataset, index) for index in ids[:MOST].tolist()], "Selected images", "selected")


def _classes(bench: Workbench) -> str:
    """Return the number of classes among the selected images in words."""
    labels = bench.dataset.labels
    if labels is None:
        return ""
    count = len(set(labels[selection(bench.dataset).ids].tolist()))
    return f" · {count} {'class' if count == 1 else 'classes'}"
