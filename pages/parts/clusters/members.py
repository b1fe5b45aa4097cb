"""The largest clusters, the members of one cluster, and the sizes of all."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from udml_core.base.arrays import rows_of
from udml_core.base.errors import counted
from udml_core.exploration import clusters as views

from ..draw.figures import ranked
from ..draw.gallery import gallery, tile_of
from ..draw.tables import table_behind
from ..shell.address import number_from_address, write_address
from ..shell.run_status import escaped
from .clustering import Clustering
from .picture import cluster_numbers

LARGEST, RANKED, MEMBERS = 36, 200, 300


def largest_clusters(clustering: Clustering, image: int) -> int | None:
    """Show the modes of the largest clusters, and the members of the current cluster.

    Args:
        clustering: The clusters.
        image: The current image, whose cluster is shown unless the address names another.

    Returns:
        The data set index of the member that was clicked just now, or None.
    """
    dataset, modes, sizes = clustering.dataset, clustering.modes, clustering.summary.sizes
    largest = np.argsort(-sizes, kind="stable")[:LARGEST]
    purity = None if clustering.labels is None else views.cluster_purity(clustering.clusters, clustering.labels)[1]
    st.caption("Each cluster by its mode, the image where the ascent ends; the badge is the number of images"
               + ("" if purity is None else " and the share of the most frequent class") + ". Click a mode to show its "
               "cluster.")
    tiles = [tile_of(dataset, modes[cluster], badge=f"{sizes[cluster]:,}"
                     + ("" if purity is None else f" · {100 * purity[cluster]:.1f} %")) for cluster in largest]
    cluster = _current_cluster(clustering, image, tiles[0].id)
    clicked = gallery(dataset, tiles, "Modes of the largest clusters", "clusters-largest", 88,
                      chosen=int(modes[cluster]))
    if clicked is not None:
        write_address("cluster", str(clicked))
        write_address("picked", str(clicked))
        st.rerun(scope="fragment")
    return _show_members(clustering, cluster)


def _current_cluster(clustering: Clustering, image: int, default: int) -> int:
    """Return the number of the cluster that contains the image in the address, else the current or a default image."""
    wanted = int(number_from_address("cluster", image))
    row = rows_of(clustering.indices, wanted)
    if row < 0:
        row = rows_of(clustering.indices, default)
    return int(clustering.clusters.labels[row])


def _show_members(clustering: Clustering, cluster: int) -> int | None:
    dataset, indices = clustering.dataset, clustering.indices
    members = views.members(clustering.clusters, cluster, clustering.run.embeddings("final")[indices])
    number = int(cluster_numbers(clustering)[clustering.clusters.modes[cluster]])
    name = "" if number < 0 else f"Cluster {number + 1}, "
    st.markdown(f"**{name}the cluster of {escaped(dataset.caption(int(clustering.modes[cluster])))}**: "
                f"{counted(len(members), 'image')}, from the nearest to the center, the medoid, to the farthest")
    tiles = [tile_of(dataset, indices[row], badge="" if rank else "medoid")
             for rank, row in enumerate(members[:MEMBERS])]
    return gallery(dataset, tiles, "Images of the current cluster", "clusters-members", 72, height=330)


def cluster_sizes(clustering: Clustering) -> None:
    """Show the sizes of the largest clusters as a chart and a table."""
    dataset, clusters, count = clustering.dataset, clustering.clusters, clustering.summary.count
    largest = np.argsort(-clustering.summary.sizes, kind="stable")[:RANKED]
    sizes = clustering.summary.sizes[largest]
    ranked(sizes.tolist(), "Images in each cluster, largest cluster first"
           + (f" (the first {RANKED} of {count:,})" if count > RANKED else ""), "rank", "clusters-sizes")
    table = pd.DataFrame({"Rank": np.arange(1, len(largest) + 1), "Images": sizes,
                          "Mode": [dataset.caption(int(index)) for index in clustering.modes[largest]]})
    if clustering.labels is not None:
        majority, share = views.cluster_purity(clusters, clustering.labels)
        table = table.assign(**{"Most frequent class": np.array(dataset.class_names)[majority[largest]],
                                "Its share, %": (100 * share[largest]).round(1)})
    table_behind("These clusters as a table", table)
