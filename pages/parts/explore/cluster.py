"""The pseudo-label cluster of the current image."""

from __future__ import annotations

import numpy as np
import streamlit as st

from pages.parts.base.analyses import rows_of
from pages.parts.components.gallery import tile_of
from pages.parts.explore.workbench import DeepLink, Workbench, link, say_stand_in
from pages.parts.kit.palette import percent
from udml_core.explanations import Clusters
from udml_core.exploration.clusters import cluster_purity, members

MOST = 60


def show_cluster(bench: Workbench) -> DeepLink:
    """Show the images, the mode and the purity of the current image's cluster."""
    clusters, epoch = bench.record(Clusters), bench.epoch_with(Clusters)
    assert clusters is not None
    train, dataset = bench.split.train, bench.dataset
    shown = bench.nearest_of(train)
    say_stand_in(bench, shown, "in the training half, so it has no pseudo-label")
    cluster = int(clusters.labels[rows_of(train, np.array([shown]))[0]])
    rows = members(clusters, cluster, bench.run.embeddings("final")[train])
    mode = int(train[clusters.modes[cluster]])
    facts = [f"**{len(rows):,} images** in this cluster, epoch {epoch}"]
    if dataset.labels is not None:
        majority, shares = cluster_purity(clusters, dataset.labels[train])
        facts.append(f"purity **{percent(100 * float(shares[cluster]))}**, most frequent class "
                     f"{dataset.class_names[majority[cluster]]}")
    st.markdown(" · ".join(facts), help="Purity is the share of the most frequent class. The mode is the image at "
                                        "which the ascent of all members ends.")
    ordered = [mode, *(index for index in train[rows].tolist() if index != mode)][:MOST]
    tiles = [bench.tile(index, "mode" if index == mode else "") if bench.dataset.labels is not None
             else tile_of(dataset, index, "", "mode" if index == mode else "") for index in ordered]
    bench.tiles(tiles, "Images of the cluster, the mode first", "cluster")
    st.caption("The mode first, then by distance from the center." if len(rows) <= MOST else
               f"The mode and the {MOST - 1} images nearest to the center.")
    return link("clusters", bench, picked=shown, cluster=shown)
