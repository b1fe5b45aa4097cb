"""The panels beside the map: which of them a run offers, and which is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from udml_core.numerics.explanations import Clusters, Pairs, Triplets

from ..draw.downloads import image_list
from ..draw.gallery import selectable_gallery, tile_of
from ..draw.palette import CLASSES, HITS, color_legend
from ..maps.excluding import exclude_button
from ..maps.images import pick_clicked
from ..retrieval.query import MOST as MOST_QUERY
from ..shell.address import address_decides, join_indices, note_address, note_click, write_address
from ..shell.selection import Selection, select, selection
from ..shell.views import view_link
from .cluster import show_cluster
from .constraints import show_pairs, show_triplets
from .instance import discriminates_instances, show_instance
from .labels import label_graphs, show_labels
from .neighborhood import show_neighborhood
from .neighbors import show_neighbors
from .workbench import SIDE, DeepLink, Workbench, show_link

KEY, SELECTED, FIRST = "explore-panel", "selected", "neighbors"
MOST = 3000
"""Number of selected images that are shown; more are exported and labeled."""


@dataclass(frozen=True)
class Panel:
    """A panel.

    Attributes:
        label: Its name.
        show: Draws it, and returns the link to the page that shows the same in depth.
        is_offered: Whether a run has what the panel shows.
        meanings: What the colors of its images mean, as `palette.MEANINGS` names them.
    """

    label: str
    show: Callable[[Workbench], DeepLink | None]
    is_offered: Callable[[Workbench], bool]
    meanings: tuple[str, ...] = CLASSES

    def draw(self, bench: Workbench) -> None:
        """Show the panel below the legend of its colors and its link; classes have no colors without labels."""
        with st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center", gap="small"):
            if self.meanings and (self.meanings not in (CLASSES, HITS) or bench.dataset.labels is not None):
                color_legend(*self.meanings)
            place = st.container(width="content", key="explore-open")
        target = self.show(bench)
        if target is not None:
            with place:
                show_link(target)


def show_selected(bench: Workbench) -> None:
    """Show the selected images with the actions on them."""
    selected, dataset, run = selection(bench.dataset), bench.dataset, bench.run
    ids = selected.ids
    st.markdown(f"**{len(ids):,} images selected**"
                + (f", the first {MOST} are shown" if len(ids) > MOST else "") + _classes(bench))
    with st.container(horizontal=True, vertical_alignment="center"):
        view_link("labels", label="Label", icon=":material/new_label:",
                     help="Assign a class to the selected images.",
                     query_params={"run": run.id, "selected": st.query_params.get("selected", "")})
        view_link("retrieval", label="Search", icon=":material/image_search:",
                     help=f"Search with the mean of the selected images, at most {MOST_QUERY}.",
                     query_params={"run": run.id, "gallery": "all", "add": join_indices(ids[:MOST_QUERY].tolist())})
        exclude_button(dataset, ids, "explore-exclude")
        st.download_button("CSV", lambda: image_list(dataset, ids), "selection.csv", "text/csv",
                           icon=":material/download:", on_click="ignore", key="explore-export", type="tertiary")
        st.button("Clear", icon=":material/close:", key="explore-clear", type="tertiary", on_click=select,
                  args=(dataset.fingerprint, ids[:0]))
    pick_clicked([selectable_gallery(dataset, [tile_of(dataset, index) for index in ids[:MOST].tolist()],
                                     "Selected images", "explore-tiles-selected", selected, SIDE, height=300)])


def _classes(bench: Workbench) -> str:
    """Return the number of classes among the selected images in words."""
    labels = bench.dataset.labels
    if labels is None:
        return ""
    count = len(set(labels[selection(bench.dataset).ids].tolist()))
    return f" · {count} {'class' if count == 1 else 'classes'}"


PANELS = {
    FIRST: Panel("Neighbors", show_neighbors, lambda _bench: True, HITS),
    "cluster": Panel("Cluster", show_cluster, lambda bench: bench.epoch_with(Clusters) is not None),
    "neighborhood": Panel("Neighborhood", show_neighborhood, lambda _bench: True),
    "triplets": Panel("Triplets", show_triplets, lambda bench: bench.epoch_with(Triplets) is not None, ()),
    "labels": Panel("Labels", show_labels, lambda bench: bool(label_graphs(bench))),
    "pairs": Panel("Pairs", show_pairs, lambda bench: bench.epoch_with(Pairs) is not None,
                   ("similar", "dissimilar")),
    "instance": Panel("Instance", show_instance, discriminates_instances),
}


def open_panel(bench: Workbench) -> str:
    """Return the name of the open panel before it is drawn, the first if the run does not offer the chosen one."""
    name: str = st.session_state.get(KEY, st.query_params.get("panel", FIRST))
    return name if name in PANELS and PANELS[name].is_offered(bench) else FIRST


def pick_panel(bench: Workbench, selected: Selection, clicked_map: bool) -> Panel:
    """Choose a panel; the address parameter `panel` holds it, and decides when the browser goes Back or Forward.

    A new selection opens the selected images, unless a link names a panel; a click on the map leaves them.

    Args:
        bench: The workbench.
        selected: The data set's selection.
        clicked_map: Whether an image was just clicked on the map.
    """
    offered = {name: panel for name, panel in PANELS.items() if panel.is_offered(bench)}
    if len(selected.ids):
        offered[SELECTED] = Panel(f"Selection ({len(selected.ids):,})", show_selected, lambda _bench: True, ())
    linked = st.query_params.get("panel")
    follows_address = address_decides("panel", KEY)
    current = linked or FIRST if follows_address else st.session_state.get(KEY, FIRST)
    seen = st.session_state.get("explore-revision")
    st.session_state["explore-revision"] = selected.revision
    if SELECTED in offered and seen not in (None, selected.revision) and not (follows_address and linked):
        current = SELECTED
    elif clicked_map and current == SELECTED:
        current = st.session_state.get("explore-last-panel", FIRST)
    st.session_state[KEY] = current if current in offered else FIRST
    name = st.pills("Panel", list(offered), required=True, key=KEY, label_visibility="collapsed",
                    format_func=lambda name: offered[name].label, on_change=note_click, args=(KEY,)) or FIRST
    if name != SELECTED:
        st.session_state["explore-last-panel"] = name
    write_address("panel", name, FIRST)
    note_address("panel")
    return offered[name]
