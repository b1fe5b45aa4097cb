"""The pseudo-label cluster of the current image."""

from __future__ import annotations

import streamlit as st

from udml_core.base.arrays import rows_of
from udml_core.exploration.clusters import cluster_purity, members
from udml_core.numerics.explanations import Clusters

from ..draw.gallery import tile_of
from ..draw.palette import percent
from .workbench import DeepLink, Workbench, explain, link, say_stand_in

MOST = 60


def show_cluster(bench: Workbench) -> DeepLink:
    """Show the images, the mode and the purity of the current image's cluster."""
    clusters, epoch = bench.record(Clusters), bench.epoch_with(Clusters)
    assert clusters is not None
    train, dataset = bench.split.train, bench.dataset
    explain("Training images whose ascent ends at the same image share a pseudo-label.",
            "Each image i moves to the neighbor j with the largest P(i, j)(ω(j) − ω(i)) among the neighbors with "
            "d(i) P(i, j) exp(−γ(ω(j) − ω(i))²) > ε, until no neighbor has more authority ω (RPML eq. 3–4). P are the "
            "transition probabilities of a random walk and d the degrees. The image where the ascent ends is the mode "
            "of the cluster.")
    shown = bench.nearest_of(train)
    say_stand_in(bench, shown, "in the training half, so it has no pseudo-label")
    cluster = int(clusters.labels[rows_of(train, shown)])
    rows = members(clusters, cluster, bench.run.embeddings("final")[train])
    mode = int(train[clusters.modes[cluster]])
    facts = [f"**{len(rows):,} images** in this cluster, epoch {epoch}"]
    if dataset.labels is not None:
        majority, shares = cluster_purity(clusters, dataset.labels[train])
        facts.append(f"purity **{percent(100 * float(shares[cluster]))}**, most frequent class "
                     f"{dataset.class_names[majority[cluster]]}")
    st.markdown(" · ".join(facts))
    ordered = [mode, *(index for index in train[rows].tolist() if index != mode)][:MOST]
    tiles = [bench.tile(index, "mode" if index == mode else "") if bench.dataset.labels is not None
             else tile_of(dataset, index, "", "mode" if index == mode else "") for index in ordered]
    bench.tiles(tiles, "Images of the cluster, the mode first", "cluster")
    st.caption(("First the mode, the image where the ascent ends, then by distance from the center."
                if len(rows) <= MOST else
                f"The mode, the image where the ascent ends, and the {MOST - 1} images nearest to the center.")
               + ("" if dataset.labels is None else " Purity is the share of the most frequent class."))
    return link("clusters", bench, picked=shown, cluster=shown)
