"""The clusters over the whole range of ε: small maps, curves and a table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st
from PIL import Image

from udml_core.base.arrays import Array, rows_of
from udml_core.exploration import clusters as views
from udml_core.runs import Run

from ..draw.figures import lines
from ..draw.pictures import multiples, points_picture
from ..draw.tables import table_behind
from ..maps.frame import covering_map
from ..shell.run_hash import RUN_HASH
from .clustering import Clustering

EPSILONS = tuple(np.round(np.linspace(0, 1, 26), 2).tolist())
PICTURED = tuple(EPSILONS[position] for position in (5, 9, 14, 18, 22))
MOST_PICTURED = 4000


def show_sweep(clustering: Clustering, map_id: str | None) -> None:
    """Show the clusters at several values of ε, and their numbers over ε.

    A cursor in the charts marks the slider's value.

    Args:
        clustering: The clusters at the slider's value.
        map_id: The map on which to draw the clusters, if there is one.
    """
    run, graph_id, gamma, rescaled = clustering.run, clustering.graph_id, clustering.gamma, clustering.rescaled
    table = sweep_table(run, graph_id, gamma, rescaled)
    if map_id is not None:
        images = [Image.fromarray(picture) for picture in map_pictures(run, graph_id, map_id, gamma, rescaled)]
        counts = [f"{count:,} clusters, {singletons:,} singletons" for count, singletons
                  in table.set_index("ε").loc[list(PICTURED), ["clusters", "singletons"]].to_numpy().tolist()]
        multiples(images, [f"**ε = {epsilon:g}**  \n{text}" for epsilon, text in zip(PICTURED, counts, strict=True)],
                  [f"The map at ε {epsilon:g}: {text}." for epsilon, text in zip(PICTURED, counts, strict=True)])
    names = [name for name in table.columns if name not in ("ε", "singletons")]
    for position, (column, name) in enumerate(zip(st.columns(len(names)), names, strict=True)):
        with column:
            lines(EPSILONS, table[name].tolist(), name, "ε", f"clusters-over-{position}", clustering.epsilon,
                  name == "clusters")
    table_behind("The numbers over ε as a table", table)


@st.cache_data(max_entries=16, show_spinner="Computing the clusters over ε …", hash_funcs=RUN_HASH)
def sweep_table(run: Run, graph_id: str, gamma: float, rescaled: bool) -> pd.DataFrame:
    """Return the numbers that describe the clusters at each ε as a table."""
    clustering = Clustering(run, graph_id, rescaled, EPSILONS[0], gamma)
    summaries = views.summaries_over(clustering.graph, EPSILONS, gamma, clustering.labels)
    table = pd.DataFrame({"ε": EPSILONS, "clusters": [summary.count for summary in summaries],
                          "coverage, %": [100 * summary.coverage for summary in summaries],
                          "singletons": [summary.singletons for summary in summaries]})
    if clustering.labels is None:
        return table
    return table.assign(**{"purity, %": [100 * (summary.purity or 0) for summary in summaries]})


@st.cache_data(max_size="128MB", show_spinner=False, hash_funcs=RUN_HASH)
def map_pictures(run: Run, graph_id: str, map_id: str, gamma: float, rescaled: bool) -> list[Array]:
    """Draw the map, colored by cluster, at each pictured ε.

    At most `MOST_PICTURED` evenly chosen images are drawn.
    """
    clustering = Clustering(run, graph_id, rescaled, EPSILONS[0], gamma)
    shown = covering_map(run, clustering.indices, map_id)
    assert shown is not None
    positions = shown.layout.positions[rows_of(shown.projection.indices, clustering.indices)]
    drawn = np.linspace(0, len(positions) - 1, min(MOST_PICTURED, len(positions))).astype(int)
    return [np.asarray(points_picture(positions[drawn], clustering.graph.clusters(epsilon, gamma).labels[drawn]))
            for epsilon in PICTURED]
