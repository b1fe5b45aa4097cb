"""Clusters: the pseudo-labels of authority ascent at any ε and γ."""

import numpy as np
import streamlit as st

from pages.parts.base.address import number_from_address, write_address
from pages.parts.base.analyses import request_analysis, rows_of, show_analysis_progress
from pages.parts.base.cached import load_split
from pages.parts.base.run_picker import pick_run
from pages.parts.base.selection import selection
from pages.parts.base.user_errors import show_user_errors
from pages.parts.clusters.ascent import show_moved, show_path
from pages.parts.clusters.clustering import Clustering
from pages.parts.clusters.graphs import choose_graph
from pages.parts.clusters.members import cluster_sizes, largest_clusters
from pages.parts.clusters.sweep import show_sweep
from pages.parts.components.map_content import Color, Layout
from pages.parts.components.scatter import scatter
from pages.parts.kit.downloads import Download, share, table_file
from pages.parts.kit.field_slider import field_slider
from pages.parts.map.coloring import ascent_settings
from pages.parts.map.frame import UNITS, covering_map, show_distortion
from pages.parts.map.images import pick_clicked
from udml_core.analyses import plan_analysis
from udml_core.declaration import describe_field
from udml_core.runs import Run


def choose_clustering(run: Run, graph_id: str) -> Clustering:
    """Show the sliders and return the clusters at their values."""
    settings = ascent_settings(run)
    source = "this run" if run.spec().build_method() == settings else "RPML's default"
    left, right, switch = st.columns([3, 2, 1.2], vertical_alignment="bottom")
    with left:
        epsilon = field_slider(describe_field(type(settings), "epsilon"), "clusters-epsilon", settings.epsilon,
                               "lower merges, higher shatters", play=True,
                               marks={settings.epsilon: source})
    with right:
        gamma = field_slider(describe_field(type(settings), "gamma"), "clusters-gamma", settings.gamma,
                             "penalty of steep edges")
    with switch:
        rescaled = st.toggle("Rescale ω", st.query_params.get("rescaled") == "1", key="clusters-rescaled",
                             help="Multiply ω by the number of images in the relevancy ψ; without this, neighboring ω "
                                  "differ so little that γ has hardly any effect.")
    write_address("rescaled", "1" if rescaled else "")
    return Clustering(run, graph_id, rescaled, epsilon, gamma)


def show_numbers(clustering: Clustering) -> None:
    """Show the numbers that describe the clusters."""
    summary = clustering.summary
    metrics = [("Clusters", f"{summary.count:,}", "The number of modes, the images where ascents end."),
               ("Coverage", f"{100 * summary.coverage:.1f} %", "Share of images in clusters of two or more images."),
               ("Singletons", f"{summary.singletons:,}", "Clusters of one image."),
               ("Largest", f"{int(summary.sizes.max()):,}",
                f"Images in the largest cluster, of {len(clustering.indices):,} images.")]
    if summary.purity is not None and summary.nmi is not None:
        metrics += [("Purity", f"{100 * summary.purity:.1f} %",
                     "Share of images that have the most frequent class of their cluster."),
                    ("NMI", f"{100 * summary.nmi:.1f} %",
                     "Normalized mutual information of clusters and classes.")]
    with st.container(horizontal=True):
        for label, value, description in metrics:
            st.metric(label, value, help=description, width="content")


def draw_map(clustering: Clustering, layout: Layout) -> int | None:
    """Draw the map, colored by cluster, with the edges that the ascents follow.

    Returns:
        The data set index of the image that was clicked just now, or None.
    """
    clusters, summary = clustering.clusters, clustering.summary
    rows = rows_of(clustering.indices, layout.indices)
    is_singleton = summary.sizes[clusters.labels] == 1
    codes = np.where((rows < 0) | is_singleton[rows], -1, clusters.labels[rows])
    points = rows_of(layout.indices, clustering.indices)
    ascending = np.flatnonzero(clusters.parents != np.arange(len(clustering.indices)))
    forest = np.stack([points[ascending], points[clusters.parents[ascending]]], axis=1)
    names = tuple(f"cluster {number}" for number in range(summary.count))
    color = Color("cluster", codes, names, none="singleton or not trained on")
    return scatter(clustering.dataset, layout, color, selection(clustering.dataset),
                   f"Map colored by the {summary.count} clusters at ε {clustering.epsilon:g}", "clusters-map",
                   segments=forest, height=520)


@st.fragment
@show_user_errors()
def explore(run: Run, graph_id: str) -> None:
    """Show the sliders and everything that depends on them."""
    clustering = choose_clustering(run, graph_id)
    show_numbers(clustering)
    clicks: list[int | None] = []
    shown = covering_map(run, clustering.indices)
    if shown is None:
        st.info("This run has no map of its training images yet. Compute one on the page Map to see the clusters on "
                "it.", icon=":material/lightbulb:")
        st.page_link("pages/map.py", label="Compute a map", icon=":material/scatter_plot:",
                     query_params={"run": run.id})
    else:
        clicks.append(draw_map(clustering, shown.layout))
        show_distortion(shown)
        st.caption(UNITS)
    clicks.append(show_moved(clustering))
    current = int(number_from_address("picked", -1))
    if 0 <= current < len(clustering.dataset):
        clicks.append(show_path(clustering, current))
    show_sweep(clustering, shown.map_id if shown else None)
    clicks.append(largest_clusters(clustering))
    cluster_sizes(clustering)
    share([Download("Clusters as a CSV file", "clusters.csv", "text/csv",
                    lambda: table_file(clustering.dataset, clustering.indices,
                                       {"cluster": clustering.clusters.labels}))], "clusters")
    pick_clicked(clicks)


st.title("Clusters")
with show_user_errors():
    run = pick_run()
    if run is not None:
        show_analysis_progress(run)
        graph_id = choose_graph(run)
        if graph_id is not None:
            explore(run, graph_id)
        else:
            st.info("This run has no neighbor graph yet. The graph is computed once in the background and kept with "
                    "the run; it takes seconds for a few thousand images.", icon=":material/lightbulb:")
            neighbors = run.spec().build_method().graph_neighbors(len(load_split(run).train))
            request_analysis(run, plan_analysis(kind="graph", scope="train", n_neighbors=neighbors), "Build graph",
                             "clusters-graph", primary=True)
