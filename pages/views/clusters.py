"""Clusters: the pseudo-labels of authority ascent at any ε and γ."""

import streamlit as st

from pages.parts.clusters.ascent import show_moved, show_path
from pages.parts.clusters.clustering import Clustering
from pages.parts.clusters.graphs import choose_graph, graph_embedding, has_graph
from pages.parts.clusters.members import cluster_sizes, largest_clusters
from pages.parts.clusters.picture import MAP_KEY, show_clusters
from pages.parts.clusters.sweep import show_sweep
from pages.parts.draw.downloads import Download, share, table_file
from pages.parts.draw.run_header import header_place, run_header
from pages.parts.draw.sections import Section, open_section, show_sections
from pages.parts.draw.slider import field_slider
from pages.parts.maps.coloring import ascent_settings
from pages.parts.maps.frame import covering_map
from pages.parts.maps.images import follow_click, pick_clicked
from pages.parts.shell.address import write_address
from pages.parts.shell.analyses import request_analysis, show_analysis_progress
from pages.parts.shell.cached import load_split
from pages.parts.shell.empty_state import offer_example
from pages.parts.shell.interesting import current_image, image_in_address
from pages.parts.shell.run_picker import pick_run
from pages.parts.shell.user_errors import fragment, show_user_errors
from udml_core.base.declaration import describe_field
from udml_core.runs import Run
from udml_core.runs.analyses import plan_analysis
from udml_core.runs.analyses.kinds.graph import NeighborGraph

SECTIONS, PATH = "clusters-section", "Ascent path"


def choose_clustering(run: Run) -> Clustering | None:
    """Show ε, with γ and the graph under "More", and return the clusters at their values.

    Returns:
        The clusters; None if the run has no graph yet.
    """
    settings = ascent_settings(run)
    source = "this run" if run.spec().build_method() == settings else "RPML's default"
    left, right = st.columns([5, 1], vertical_alignment="center")
    with right.popover("More", icon=":material/tune:", width="stretch"):
        graph_id = choose_graph(run)
        gamma = field_slider(describe_field(type(settings), "gamma"), "clusters-gamma", settings.gamma,
                             "penalty of steep edges")
        rescaled = st.toggle("Rescale ω", st.query_params.get("rescaled") == "1", key="clusters-rescaled",
                             help="Multiply ω by the number of images in the relevancy ψ; without this, neighboring ω "
                                  "differ so little that γ has hardly any effect.")
    with left:
        epsilon = field_slider(describe_field(type(settings), "epsilon"), "clusters-epsilon", settings.epsilon,
                               "lower merges groups, higher splits them", play=True, marks={settings.epsilon: source})
    write_address("rescaled", "1" if rescaled else "")
    return None if graph_id is None else Clustering(run, graph_id, rescaled, epsilon, gamma)


@fragment
def explore(run: Run) -> None:
    """Show ε, the map, and the open section."""
    header = header_place()
    clustering = choose_clustering(run)
    if clustering is None:
        return
    run_header(run, graph_embedding(run, clustering.graph_id), header)
    shown = covering_map(run, clustering.indices)
    if shown is not None and follow_click(MAP_KEY, shown.dataset):
        open_section(SECTIONS, PATH)
    current = current_image(run, clustering.dataset)
    show_clusters(clustering, shown, current, graph_embedding(run, clustering.graph_id))

    is_named = image_in_address(clustering.dataset) in clustering.indices
    first = "path" if is_named and "cluster" not in st.query_params else ""
    clicked = show_sections([
        Section("largest", "Largest clusters", lambda: largest_clusters(clustering, current)),
        Section("path", PATH, lambda: show_path(clustering, current)),
        Section("moved", "Moved images", lambda: show_moved(clustering)),
        Section("sweep", "Over ε", lambda: show_sweep(clustering, shown.map_id if shown else None)),
        Section("sizes", "Sizes", lambda: show_sizes(clustering))], SECTIONS, first)
    pick_clicked([clicked])


def show_sizes(clustering: Clustering) -> None:
    """Show the sizes of the clusters, and the download."""
    cluster_sizes(clustering)
    share([Download("Clusters as a CSV file", "clusters.csv", "text/csv",
                    lambda: table_file(clustering.dataset, clustering.indices,
                                       {"cluster": clustering.clusters.labels}))], "clusters")


def draw() -> None:
    """Draw the view."""
    with show_user_errors():
        run = pick_run(shows=has_graph)
        if run is not None:
            show_analysis_progress(run)
            if has_graph(run):
                explore(run)
            else:
                run_header(run)
                st.info("This run has no neighbor graph yet. The graph is computed once in the background and kept "
                        "with the run; it takes seconds for a few thousand images.", icon=":material/lightbulb:")
                neighbors = run.spec().build_method().graph_neighbors(len(load_split(run).train))
                request_analysis(run, plan_analysis(NeighborGraph, scope="train", n_neighbors=neighbors), "Build graph",
                                 "clusters-graph", primary=True)
                offer_example()
