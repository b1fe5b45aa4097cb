"""A second map beside the first: choosing it, and the images whose neighborhoods differ most."""

from __future__ import annotations

import streamlit as st

from udml_core.exploration.map_values import neighborhood_change
from udml_core.runs import Run

from ..draw.gallery import gallery, tile_of
from ..shell.address import choose_in_box
from ..shell.run_picker import pick_run
from .choosing import pick_map, pick_map_frame
from .frame import MapFrame

COMPARISONS = {"": "Compare with …", "frame": "Other embedding", "run": "Other map or run"}
CHANGED = 48


def pick_comparison(embeddings: int, width: int) -> str:
    """Choose what to show beside the map; the address holds the choice.

    Args:
        embeddings: Number of the map's embeddings; a map of one embedding has no other to compare with.
        width: Width in pixels.
    """
    offered = [name for name in COMPARISONS if name != "frame" or embeddings > 1]
    return choose_in_box("Compare with", "compare", offered, "", format_func=COMPARISONS.__getitem__,
                         key="choose-compare", label_visibility="collapsed", width=width)


def pick_second_map(comparison: str, shown: MapFrame) -> MapFrame | None:
    """Choose the second map, in a line of its own; None without a comparison."""
    if not comparison:
        return None
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        run, map_id = (shown.run, shown.map_id) if comparison == "frame" else _pick_other_map(shown.run)
        if run is None or map_id is None:
            return None
        same = (run, map_id) == (shown.run, shown.map_id)
        with st.container(width=360):
            return pick_map_frame(run, map_id, "frame2", "Embedding of the second map", shown.frame if same else None)


def _pick_other_map(run: Run) -> tuple[Run | None, str | None]:
    """Choose a run on the same images and one of its maps."""
    images = run.spec().fingerprint
    left, right = st.columns(2)
    with left:
        second_run = pick_run("Second run", "run2", lambda other: other.spec().fingerprint == images)
    with right:
        return second_run, pick_map(second_run, "map2", "Second map") if second_run else None


def changed_neighborhoods(first: MapFrame, second: MapFrame) -> int | None:
    """Show the images whose neighborhoods differ most between two maps.

    Returns:
        The data set index of the image that was clicked just now, or None.
    """
    change = neighborhood_change(*((shown.projection.indices, shown.neighbors) for shown in (first, second)))
    if not len(change.indices):
        st.info("The two maps have no image in common.", icon=":material/info:")
        return None
    st.subheader("Which neighborhoods changed most?")
    st.caption(f"On average, {100 * change.kept.mean():.1f} % of an image's {first.neighbors.shape[1]} nearest "
               f"neighbors in the embedding are the same in both maps, over {len(change.indices):,} shared images. The "
               "badge is that share for each image.")
    tiles = [tile_of(first.dataset, int(change.indices[position]), badge=f"{100 * change.kept[position]:.1f} %")
             for position in change.most_changed(CHANGED)]
    return gallery(first.dataset, tiles, "Images whose neighborhoods changed most", "map-changed", 72, height=240)
