"""The cluster of the current image: of the run's pseudo-labels, or at the ε of a slider."""

from __future__ import annotations

import streamlit as st

from udml_core.base.arrays import rows_of
from udml_core.base.declaration import describe_field
from udml_core.exploration.clusters import cluster_purity, members
from udml_core.numerics.explanations import Clusters
from udml_core.runs import Run
from udml_core.runs.analyses import finished_analyses
from udml_core.runs.analyses.kinds.graph import NeighborGraph

from ..clusters.clustering import Clustering
from ..draw.gallery import tile_of
from ..draw.palette import percent
from ..draw.slider import field_slider
from ..maps.coloring import ascent_settings
from ..shell.run_status import escaped
from .workbench import DeepLink, Workbench, explain, in_address, link, say_stand_in

MOST = 60


def pick_clustering(run: Run) -> Clustering | None:
    """Show the slider of ε, and return the clusters of the run's first neighbor graph at its value.

    Returns:
        The clusters; None if the run has no neighbor graph yet.
    """
    graph = next(iter(finished_analyses(run, NeighborGraph)), None)
    if graph is None:
        return None
    settings = ascent_settings(run)
    epsilon = field_slider(describe_field(type(settings), "epsilon"), "explore-epsilon", settings.epsilon,
                           "lower merges groups, higher splits them", play=True)
    return Clustering(run, graph.id, rescaled=False, epsilon=epsilon, gamma=settings.gamma)


def show_cluster(bench: Workbench) -> DeepLink:
    """Show the images, the mode and the purity of the current image's cluster."""
    if bench.clustering is None:
        record = bench.record(Clusters)
        assert record is not None
        clusters, train, where = record, bench.split.train, f"epoch {bench.epoch_with(Clusters)}"
    else:
        clusters, train = bench.clustering.clusters, bench.clustering.indices
        where = f"of {len(clusters.modes):,} at ε = {bench.clustering.epsilon:g}"
    dataset = bench.dataset
    explain("Training images whose ascent ends at the same image share a pseudo-label.",
            r"Each image $i$ moves to the neighbor $j$ with the largest $P_{ij}(\omega_j - \omega_i)$ among the "
            r"neighbors with $d_i P_{ij}\, e^{-\gamma(\omega_j - \omega_i)^2} > \varepsilon$, until no neighbor has "
            r"more authority $\omega$ (RPML eq. 3–4). $P$ are the "
            "transition probabilities of a random walk and d the degrees. The image where the ascent ends is the mode "
            "of the cluster.")
    shown = bench.nearest_of(train)
    say_stand_in(bench, shown, "in the training half, so it has no pseudo-label")
    cluster = int(clusters.labels[rows_of(train, shown)])
    rows = members(clusters, cluster, bench.run.embeddings("final")[train])
    mode = int(train[clusters.modes[cluster]])
    facts = [f"**{len(rows):,} images** in this cluster, {where}"]
    if dataset.labels is not None:
        majority, shares = cluster_purity(clusters, dataset.labels[train])
        facts.append(f"purity **{percent(100 * float(shares[cluster]))}**, most frequent class "
                     f"{escaped(dataset.class_names[majority[cluster]])}")
    st.markdown(" · ".join(facts))
    ordered = [mode, *(index for index in train[rows].tolist() if index != mode)][:MOST]
    tiles = [bench.tile(index, "mode" if index == mode else "") if bench.dataset.labels is not None
             else tile_of(dataset, index, "", "mode" if index == mode else "") for index in ordered]
    bench.tiles(tiles, "Images of the cluster, the mode first", "cluster")
    st.caption(("First the mode, the image where the ascent ends, then by distance from the center."
                if len(rows) <= MOST else
                f"The mode, the image where the ascent ends, and the {MOST - 1} images nearest to the center.")
               + ("" if dataset.labels is None else " Purity is the share of the most frequent class."))
    return link("clusters", bench, picked=shown, cluster=shown, **in_address("epsilon"))
