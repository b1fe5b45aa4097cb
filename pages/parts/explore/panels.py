"""The panels beside the map: which of them a run offers, and which is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from udml_core.numerics.explanations import Clusters, Pairs, Triplets

from ..draw.palette import CLASSES, HITS, color_legend
from ..shell.address import address_decides, note_address, note_click, write_address
from ..shell.selection import Selection
from .cluster import show_cluster
from .instance import discriminates_instances, show_instance
from .labels import label_graphs, show_labels
from .neighborhood import show_neighborhood
from .neighbors import show_neighbors
from .pairs import show_pairs
from .selected import show_selected
from .triplets import show_triplets
from .workbench import DeepLink, Workbench, show_link

KEY, SELECTED, FIRST = "explore-panel", "selected", "neighbors"


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
    current = linked or FIRST if follows_address else st.session_state[KEY]
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
