"""Pseudo-labels that re-form as ε and γ move, and the images behind them."""

import numpy as np
import pandas as pd
import streamlit as st
from PIL import Image

from pages.parts.base.address import number_from_address, write_address
from pages.parts.base.analyses import load_indices, load_result, request_analysis, rows_of, show_analysis_progress
from pages.parts.base.cached import dataset_of
from pages.parts.base.run_picker import pick_run
from pages.parts.base.selection import selection
from pages.parts.base.user_errors import show_user_errors
from pages.parts.components.gallery import gallery, tile_of
from pages.parts.components.scatter import Color, Layout, scatter
from pages.parts.components.slider import live_slider
from pages.parts.kit.downloads import Download, share, table_file
from pages.parts.kit.figures import lines, ranked, table_behind
from pages.parts.kit.lesson import multiples, points_picture
from pages.parts.map.shown_map import UNITS, covering_map, distortion, go_to
from udml_core.analyses import list_analyses, plan_analysis
from udml_core.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.explanations import Clusters
from udml_core.exploration import clusters as views
from udml_core.runs import Run, find_run, runs_folder

EPSILONS = tuple(np.round(np.linspace(0, 1, 26), 2).tolist())
PICTURED = 5
MOST_PICTURED = 4000
LARGEST, RANKED, MEMBERS, MOVED = 36, 200, 300, 60


def opened_graph(run: Run, graph_id: str, rescaled: bool) -> views.Graph:
    """A run's neighbor graph, with ω as the papers have it or multiplied by n."""
    graph = load_result(run, graph_id)
    assert isinstance(graph, views.Graph)
    return _rescaled(str(run.folder), graph_id) if rescaled else graph


@st.cache_resource(max_entries=4, show_spinner=False)
def _rescaled(folder: str, graph_id: str) -> views.Graph:
    graph = load_result(find_run(folder, runs_folder()), graph_id)
    assert isinstance(graph, views.Graph)
    return views.rescaled(graph)


@st.cache_data(max_entries=16, show_spinner="Looking over all ε …")
def swept(folder: str, graph_id: str, gamma: float, rescaled: bool) -> pd.DataFrame:
    """The numbers over all ε, as a table."""
    run = find_run(folder, runs_folder())
    labels = labels_of(dataset_of(run), load_indices(run, graph_id))
    found = views.sweep(opened_graph(run, graph_id, rescaled), EPSILONS, gamma, labels)
    table = pd.DataFrame({"ε": EPSILONS, "clusters": [one.count for one in found],
                          "coverage, %": [100 * one.coverage for one in found],
                          "alone": [one.singletons for one in found]})
    return table if labels is None else table.assign(**{"purity, %": [100 * (one.purity or 0) for one in found]})


@st.cache_data(max_entries=16, show_spinner=False)
def pictures(folder: str, graph_id: str, map_id: str, gamma: float, rescaled: bool,
             epsilons: tuple[float, ...]) -> list[Array]:
    """The map at several ε, small; of many images an even share is drawn."""
    run = find_run(folder, runs_folder())
    graph, positions = opened_graph(run, graph_id, rescaled), _places(run, graph_id, map_id)
    drawn = np.linspace(0, len(positions) - 1, min(MOST_PICTURED, len(positions))).astype(int)
    return [np.asarray(points_picture(positions[drawn], graph.clusters(epsilon, gamma).labels[drawn]))
            for epsilon in epsilons]


def _places(run: Run, graph_id: str, map_id: str) -> Array:
    """Where the graph's images lie on a map, (n, 2)."""
    shown = covering_map(run, load_indices(run, graph_id), map_id)
    assert shown is not None
    return shown.layout.positions[rows_of(shown.projection.indices, load_indices(run, graph_id))]


def labels_of(dataset: Dataset, indices: Array) -> Array | None:
    return None if dataset.labels is None else dataset.labels[indices]


def numbers(found: views.Summary, count: int) -> None:
    """What a clustering is, in figures."""
    shown = [("Clusters", f"{found.count:,}", "Summits that climbs end at."),
             ("Coverage", f"{100 * found.coverage:.1f} %", "Images that share their cluster with another."),
             ("Alone", f"{found.singletons:,}", "Images that are their own summit and nobody else's."),
             ("Largest", f"{int(found.sizes.max()):,}", f"Images of the largest cluster, of {count:,}.")]
    if found.purity is not None and found.nmi is not None:
        shown += [("Purity", f"{100 * found.purity:.1f} %", "Images of their cluster's most frequent class."),
                  ("NMI", f"{100 * found.nmi:.1f} %", "Shared information with the classes.")]
    with st.container(horizontal=True):
        for label, value, words in shown:
            st.metric(label, value, help=words, width="content")


def over_epsilon(run: Run, graph_id: str, map_id: str | None, gamma: float, rescaled: bool, epsilon: float) -> None:
    """Small multiples over ε, readable without touching anything."""
    table = swept(str(run.folder), graph_id, gamma, rescaled)
    st.subheader("Over all ε")
    if map_id is not None:
        chosen = [EPSILONS[place] for place in np.linspace(5, len(EPSILONS) - 4, PICTURED).round().astype(int)]
        drawn = pictures(str(run.folder), graph_id, map_id, gamma, rescaled, tuple(chosen))
        words = [f"{count:,} clusters, {alone:,} alone"
                 for count, alone in table.set_index("ε").loc[chosen, ["clusters", "alone"]].to_numpy().tolist()]
        multiples([Image.fromarray(picture) for picture in drawn],
                  [f"**ε = {one:g}**  \n{text}" for one, text in zip(chosen, words, strict=True)],
                  [f"The map at ε {one:g}: {text}." for one, text in zip(chosen, words, strict=True)])
    columns = [name for name in table.columns if name not in ("ε", "alone")]
    for place, (column, name) in enumerate(zip(st.columns(len(columns)), columns, strict=True)):
        with column:
            lines(EPSILONS, table[name].tolist(), name, "ε", f"clusters-over-{place}", epsilon, name == "clusters")
    table_behind("The numbers over ε as a table", table)


def since_last(epsilon: float, gamma: float, key: str, labels: Array) -> tuple[str, Array]:
    """What the slider's last move changed: from where, and which points moved."""
    held = st.session_state.get("clusters-moves")
    if not held or held["key"] != key:
        held = {"key": key, "now": (epsilon, gamma, labels), "before": None}
    elif held["now"][:2] != (epsilon, gamma):
        held = {"key": key, "now": (epsilon, gamma, labels), "before": held["now"]}
    st.session_state["clusters-moves"] = held
    if held["before"] is None:
        return "", np.zeros(0, dtype=np.int64)
    old_epsilon, old_gamma, old = held["before"]
    return f"ε {old_epsilon:g}, γ {old_gamma:g}", views.moved(old, labels)


def cluster_images(run: Run, dataset: Dataset, indices: Array, clusters: Clusters,
                   found: views.Summary) -> list[int | None]:
    """The largest clusters by their summits; one of them opened, medoid first."""
    labels = labels_of(dataset, indices)
    largest = np.argsort(-found.sizes, kind="stable")[:LARGEST]
    purity = None if labels is None else views.cluster_purity(clusters, labels)[1]
    st.subheader("The largest clusters")
    tiles = [tile_of(dataset, indices[clusters.modes[one]], badge=f"{found.sizes[one]:,}"
                     + ("" if purity is None else f" · {100 * purity[one]:.0f} %")) for one in largest]
    summits = [tile.id for tile in tiles]
    wanted = int(number_from_address("cluster", summits[0]))
    opened = rows_of(indices, np.array([wanted]))[0]
    if opened < 0:
        opened = clusters.modes[largest[0]]
    cluster = int(clusters.labels[opened])
    st.caption("Each by its summit; the badge is how many climb there"
               + ("." if purity is None else ", and the share of its most frequent class. Click one to open it."))
    picked = gallery(dataset, tiles, "Summits of the largest clusters", "clusters-largest", 88,
                     chosen=int(indices[clusters.modes[cluster]]))
    if picked is not None:
        write_address("cluster", str(picked))
        st.rerun(scope="fragment")
    inside = views.members(clusters, cluster, run.embeddings("final")[indices])
    st.markdown(f"**The cluster of {dataset.caption(int(indices[clusters.modes[cluster]]))}**: {len(inside):,} images, "
                "the medoid first, then by closeness to the middle (in the embedding after training)")
    shown = [tile_of(dataset, indices[one], badge="" if place else "medoid")
             for place, one in enumerate(inside[:MEMBERS])]
    return [gallery(dataset, shown, "Images of the opened cluster", "clusters-members", 72, height=330)]


def all_sizes(dataset: Dataset, indices: Array, clusters: Clusters, found: views.Summary) -> None:
    """How large the clusters are, and what is in each."""
    largest = np.argsort(-found.sizes, kind="stable")[:RANKED]
    sizes = found.sizes[largest]
    ranked(sizes.tolist(), "Images of each cluster, largest first" + (f" (the first {RANKED} of {found.count:,})"
           if found.count > RANKED else ""), "rank", "clusters-sizes")
    table = pd.DataFrame({"Rank": np.arange(1, len(largest) + 1), "Images": sizes,
                          "Summit": [dataset.caption(int(indices[clusters.modes[one]])) for one in largest]})
    labels = labels_of(dataset, indices)
    if labels is not None:
        majority, share = views.cluster_purity(clusters, labels)
        table = table.assign(**{"Most frequent class": np.array(dataset.class_names)[majority[largest]],
                                "Its share, %": (100 * share[largest]).round(1)})
    table_behind("These clusters as a table", table)


def path_images(dataset: Dataset, indices: Array, clusters: Clusters, graph: views.Graph, picked: int,
                run: Run) -> int | None:
    """The way of one image to its authority."""
    row = int(rows_of(indices, np.array([picked]))[0])
    if row < 0:
        st.caption("The picked image is not in the graph: it is not of the training half.")
        return None
    path = views.ascent_path(clusters, row)
    st.subheader("How it climbs")
    steps = "is its own summit" if len(path) == 1 else f"reaches its authority in {len(path) - 1} steps"
    st.markdown(f"**{dataset.caption(picked)}** {steps}. The badge is its authority ω, as a multiple of the average.")
    count = len(indices)
    tiles = [tile_of(dataset, indices[one], "query" if place == 0 else "", f"ω {count * graph.authority[one]:.2f}")
             for place, one in enumerate(path)]
    clicked = gallery(dataset, tiles, "The ascent path, from the image to its authority", "clusters-path", 88)
    st.page_link("pages/retrieval.py", label="Search with this image", icon=":material/image_search:",
                 query_params={"run": run.id, "add": str(picked)})
    return clicked


@st.fragment
@show_user_errors()
def explore(run_id: str, graph_id: str) -> None:
    """The sliders and everything that re-forms with them."""
    run = find_run(run_id, runs_folder())
    dataset = dataset_of(run)
    fields = run.spec().build_method().model_dump()
    usual, usual_gamma = float(fields.get("epsilon", 0.65)), float(fields.get("gamma", 100.0))
    left, right, switch = st.columns([3, 2, 1.2], vertical_alignment="bottom")
    with left:
        epsilon = live_slider("ε, the least relevancy of an edge that may be climbed", 0.0, 1.0,
                              number_from_address("epsilon", usual, 0, 1), 0.01, "clusters-epsilon", play=True,
                              marks={usual: "this run" if "epsilon" in fields else "RPML's default"})
    with right:
        gamma = live_slider("γ, how much a steep rise lowers relevancy", 0.0, 1000.0,
                            number_from_address("gamma", usual_gamma, 0, 1000), 10.0, "clusters-gamma")
    with switch:
        rescaled = st.toggle("Rescale ω", st.query_params.get("rescaled") == "1", key="clusters-rescaled",
                             help="Multiply ω by the number of images inside ψ. As the papers print it, ω differs so "
                                  "little between neighbors that γ hardly matters.")
    write_address("epsilon", f"{epsilon:g}", f"{usual:g}")
    write_address("gamma", f"{gamma:g}", f"{usual_gamma:g}")
    write_address("rescaled", "1" if rescaled else "", "")
    graph, indices = opened_graph(run, graph_id, rescaled), load_indices(run, graph_id)
    clusters = graph.clusters(epsilon, gamma)
    found = views.summary(clusters, labels_of(dataset, indices))
    numbers(found, len(indices))
    was, moves = since_last(epsilon, gamma, f"{run.id} {graph_id} {rescaled}", clusters.labels)
    clicks: list[int | None] = []
    shown = covering_map(run, indices)
    if shown is None:
        st.info("This run has no map of its training images yet. Compute one on the page Map, and the clusters re-form "
                "on it.", icon=":material/lightbulb:")
        st.page_link("pages/map.py", label="Map", icon=":material/scatter_plot:", query_params={"run": run.id})
    else:
        clicks.append(on_the_map(dataset, shown.layout, indices, clusters, found, epsilon))
        distortion(shown)
        st.caption(UNITS)
    if was:
        st.markdown(f"**{len(moves):,} images moved** to another cluster since {was}.")
        if len(moves):
            clicks.append(gallery(dataset, [tile_of(dataset, indices[one]) for one in moves[:MOVED]],
                                  "Images that moved since the last position", "clusters-moved", 64, height=190))
    picked = int(number_from_address("picked", -1))
    if 0 <= picked < len(dataset):
        clicks.append(path_images(dataset, indices, clusters, graph, picked, run))
    over_epsilon(run, graph_id, shown.map_id if shown else None, gamma, rescaled, epsilon)
    clicks += cluster_images(run, dataset, indices, clusters, found)
    all_sizes(dataset, indices, clusters, found)
    share([Download("Clusters as a table", "clusters.csv", "text/csv",
                    lambda: table_file(dataset, indices, {"cluster": clusters.labels}))], "clusters")
    go_to(clicks)


def on_the_map(dataset: Dataset, layout: Layout, indices: Array, clusters: Clusters, found: views.Summary,
               epsilon: float) -> int | None:
    """The map, coloured by cluster, with the ascent forest."""
    rows = rows_of(indices, layout.indices)
    alone = found.sizes[clusters.labels] == 1
    codes = np.where((rows < 0) | alone[rows], -1, clusters.labels[rows])
    places = rows_of(layout.indices, indices)
    climbing = np.flatnonzero(clusters.parents != np.arange(len(indices)))
    forest = np.stack([places[climbing], places[clusters.parents[climbing]]], axis=1)
    names = tuple(f"cluster {one}" for one in range(found.count))
    words = f"Map coloured by the {found.count} clusters at ε {epsilon:g}"
    return scatter(dataset, layout, Color("cluster", codes, names, none="alone, or not trained on"), selection(dataset),
                   words, "clusters-map", segments=forest, height=520)


st.title("Clusters")
with show_user_errors():
    run = pick_run()
    if run is not None:
        graphs = [one for one in list_analyses(run, "graph") if one.is_done()]
        show_analysis_progress(run)
        if graphs:
            explore(run.id, graphs[0].id)
        else:
            st.info("This run has no neighbor graph yet. It is built once, in the background, and kept with the run: "
                    "seconds for some thousand images.", icon=":material/lightbulb:")
            neighbors = int(run.spec().build_method().model_dump().get("n_neighbors", 50))
            request_analysis(run, plan_analysis(kind="graph", scope="train", n_neighbors=neighbors), "Build the graph",
                    "clusters-graph", primary=True)
