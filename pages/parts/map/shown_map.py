"""Maps of a run: which one, which frame of it, what colours it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np
import streamlit as st

from pages.parts.base.address import choice_from_address, number_from_address, write_address
from pages.parts.base.analyses import (
    KIND_WORDS,
    SCOPE_WORDS,
    load_projection,
    request_analysis,
    rows_of,
    show_analysis_progress,
    title_of_analysis,
)
from pages.parts.base.cached import dataset_of, load_split
from pages.parts.base.epochs import has_record
from pages.parts.base.selection import Selection
from pages.parts.base.user_errors import show_user_errors
from pages.parts.components.gallery import clicked_tile, gallery, mark_of, selectable_gallery, tile_of
from pages.parts.components.scatter import Color, Layout
from pages.parts.map.columns import column_color, kept_columns
from pages.parts.map.uncertainty import LABEL, noise, noise_epoch, noise_slider
from udml_core.analyses import MAPS, AnalysisSpec, Kind, Projection, Scope, list_analyses, plan_analysis
from udml_core.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.explanations import Clusters, Triplets, Uncertainty
from udml_core.exploration import maps as views
from udml_core.runs import Run, find_run, runs_folder

MOST_TILES = 3000
MOST_FRAMES = 1000
UNITS = ("Distances on a map are not distances in the embedding: areas, gaps and axes carry no units. "
         "Near neighbors are mostly near; how far that holds is what trustworthiness and continuity say.")


@dataclass(frozen=True)
class Shown:
    """One frame of a map of a run."""

    run: Run
    dataset: Dataset
    map_id: str
    projection: Projection
    frame: int

    @property
    def neighbors(self) -> Array:
        return self.projection.neighbors[self.frame]

    @property
    def name(self) -> str:
        """Which embedding it shows."""
        return self.projection.frames[self.frame]

    @property
    def epoch(self) -> int | None:
        """The epoch that it shows, None where it is not one of the kept epochs."""
        return int(self.name) if self.name.isdecimal() else None

    @property
    def layout(self) -> Layout:
        """Where its points lie."""
        every = self.projection.positions
        return Layout(self.projection.indices, every[self.frame], f"{self.run.id} {self.map_id}",
                      views.bounds(every), self.neighbors)


def pick_map(run: Run, parameter: str = "map", label: str = "Map") -> str | None:
    """The id of one of the run's finished maps, kept in the address; None, with what to do, where there is none."""
    done = {one.id: one.spec() for kind in MAPS for one in list_analyses(run, kind) if one.is_done()}
    if not done:
        st.info("This run has no map yet. Compute one: PCA takes seconds, t-SNE and UMAP a minute or two for some "
                "thousand images.", icon=":material/lightbulb:")
        return None
    usual = next(iter(sorted(done, key=lambda one: MAPS.index(done[one].kind), reverse=True)))
    wanted = choice_from_address(parameter, list(done), usual)
    chosen = st.selectbox(label, list(done), list(done).index(wanted), key=f"choose-{parameter}",
                          format_func=lambda one: title_of_analysis(done[one]))
    write_address(parameter, chosen, "" if parameter != "map" else usual)
    return chosen


def new_map(run: Run) -> None:
    """What can be computed, and how far it is."""
    with st.popover("New map", icon=":material/add:"):
        kind: Kind = st.segmented_control("Kind", MAPS, default="tsne", format_func=KIND_WORDS.__getitem__,
                                          key="new-kind") or "tsne"
        epochs = [str(number) for number in run.epoch_numbers()]
        choices: dict[str, tuple[str, ...]] = {"before and after training": ("initial", "final"),
                                               "after training": ("final",), "frozen features": ("frozen",)}
        if len(epochs) > 1:
            choices["every epoch"] = tuple(epochs)
        frames = st.selectbox("Embeddings", list(choices), key="new-frames",
                              help="Several are laid out one after the other and keep their orientation.")
        every = frames == "every epoch"
        scopes: list[Scope] = ["sample"] if every else ["all", "test", "train", "sample"]
        scope: Scope = st.selectbox("Images", scopes, key="new-scope", format_func=SCOPE_WORDS.__getitem__,
                                    help="The fixed sample of test images is what is kept of every epoch.")
        values: dict[str, float] = {}
        if kind == "tsne":
            values["perplexity"] = st.slider("Perplexity", 5.0, 100.0, 30.0, 1.0, key="new-perplexity",
                                             help="About how many neighbors each image is kept near to.")
        elif kind == "umap":
            values["n_neighbors"] = st.slider("Neighbors", 2, 100, 15, key="new-neighbors",
                                              help="Few show detail, many show the whole.")
            values["min_dist"] = st.slider("Least distance", 0.0, 0.99, 0.1, 0.01, key="new-distance",
                                           help="How tightly points may lie on the map.")
        with show_user_errors():
            spec: AnalysisSpec = plan_analysis(kind=kind, scope=scope, frames=choices[frames], **values)
            request_analysis(run, spec, "Compute", "new-compute", primary=True,
                    help_text="In the background; what was computed stays with the run.")
    show_analysis_progress(run)


def load_map(run: Run, map_id: str, frame: int) -> Shown:
    """One frame of a map; the last one where there are fewer."""
    projection = load_projection(run, map_id)
    return Shown(run, dataset_of(run), map_id, projection, max(0, min(frame, len(projection.frames) - 1)))


def covering_map(run: Run, indices: Array, map_id: str = "") -> Shown | None:
    """The last frame of a run's map that shows all these images, the most detailed kind first; None without one."""
    for kind in ("umap", "tsne", "pca"):
        for analysis in list_analyses(run, kind):
            if analysis.is_done() and map_id in ("", analysis.id):
                shown = load_map(run, analysis.id, MOST_FRAMES)
                if (rows_of(shown.projection.indices, indices) >= 0).all():
                    return shown
    return None


def distortion(shown: Shown) -> None:
    """How far a map can be trusted: one number, its halves, and what the map does not say."""
    trust = 100 * float(shown.projection.trustworthiness[shown.frame].mean())
    kept = 100 * float(shown.projection.continuity[shown.frame].mean())
    st.markdown(f"**Distortion {100 - (trust + kept) / 2:.1f} %** · trustworthiness {trust:.1f} % (who is near here is "
                f"near in the embedding) · continuity {kept:.1f} % (who is near in the embedding is near here)")


def colorings(shown: Shown) -> dict[str, Callable[[], Color]]:
    """What a map can be coloured by, first what is usual."""
    dataset, indices, frame, projection = shown.dataset, shown.projection.indices, shown.frame, shown.projection
    found: dict[str, Callable[[], Color]] = {}
    if dataset.labels is not None:
        labels = dataset.labels[indices]
        found["class"] = lambda: Color("class", labels, dataset.class_names)
        found["purity"] = lambda: _percent("purity", views.neighbor_purity(shown.neighbors, labels), 0)
    found["cluster"] = lambda: _clusters(shown)
    found["trustworthiness"] = lambda: _percent("trustworthiness", projection.trustworthiness[frame])
    found["continuity"] = lambda: _percent("continuity", projection.continuity[frame])
    if len(projection.frames) > 1:
        found["neighbors kept"] = lambda: _percent(
            "neighbors kept", views.neighbors_kept(projection.neighbors[0], shown.neighbors), 0)
    found["half"] = lambda: _halves(shown)
    if any(isinstance(one, Triplets) for one in shown.run.explanations(_latest(shown.run))):
        found["weight"] = lambda: _weights(shown)
    if has_record(shown.run, Uncertainty):
        found[LABEL] = lambda: _noise(shown)
    for name, values in kept_columns(dataset).items():
        found[name] = partial(column_color, name, values, indices)
    return found


COLOR_WORDS = {
    "class": "Class", "purity": "Purity: neighbors of the same class", "cluster": "Cluster of authority ascent",
    "trustworthiness": "Distortion: trustworthiness", "continuity": "Distortion: continuity",
    "neighbors kept": "Neighbors kept since the first frame", "half": "Training or test half",
    "weight": "Mean triplet weight", LABEL: "Uncertainty σ",
}


def _percent(label: str, shares: Array, low: float | None = None) -> Color:
    return Color(label, 100 * shares, unit=" %", low=low, high=100)


def _latest(run: Run) -> int:
    return max(run.epoch_numbers(), default=0)


def _clusters(shown: Shown) -> Color:
    """The pseudo-labels of training, or, on the sample of test images, clusters of its own embedding at this frame."""
    if shown.epoch is not None:
        clusters = sample_clusters(shown.run, shown.epoch)
        return Color("cluster", clusters.labels, tuple(f"cluster {one}" for one in range(len(clusters.modes))))
    found = training_clusters(shown.run)
    if found is None:
        return Color("cluster", np.full(len(shown.projection.indices), -1), ("",), none="no pseudo-labels")
    rows = rows_of(load_split(shown.run).train, shown.projection.indices)
    codes = np.where(rows >= 0, np.asarray(found.labels)[rows], -1)
    return Color("cluster", codes, tuple(f"cluster {one}" for one in range(len(found.modes))), none="not trained on")


def training_clusters(run: Run) -> Clusters | None:
    """The pseudo-labels that training ended with, of the images of its training half; None of a method without."""
    return _training_clusters(str(run.folder))


@st.cache_data(max_entries=8, show_spinner=False)
def _training_clusters(folder: str) -> Clusters | None:
    run = find_run(folder, runs_folder())
    records = (one for number in reversed(run.epoch_numbers()) for one in run.explanations(number))
    return next((one for one in records if isinstance(one, Clusters)), None)


def sample_clusters(run: Run, epoch: int) -> Clusters:
    """The clusters that authority ascent finds in the fixed sample's embedding after an epoch, at the run's ε and γ."""
    return _sample_clusters(str(run.folder), epoch)


@st.cache_data(max_entries=64, show_spinner=False)
def _sample_clusters(folder: str, epoch: int) -> Clusters:
    run = find_run(folder, runs_folder())
    fields = run.spec().build_method().model_dump()
    return views.ascent(run.epoch_sample(epoch), fields.get("n_neighbors", 50), fields.get("epsilon", 0.65),
                        fields.get("gamma", 100.0))


def _halves(shown: Shown) -> Color:
    split = load_split(shown.run)
    trains = np.isin(shown.projection.indices, split.train)
    tests = np.isin(shown.projection.indices, split.test)
    codes = np.select([trains & tests, trains, tests], [2, 0, 1], -1)
    return Color("half", codes, ("training", "test", "both"), none="validation")


def _weights(shown: Shown) -> Color:
    record = next(one for one in shown.run.explanations(_latest(shown.run)) if isinstance(one, Triplets))
    split = load_split(shown.run)
    weights = views.anchor_weights(record, len(split.train))
    rows = rows_of(split.train, shown.projection.indices)
    return Color("weight", np.where(rows >= 0, weights[rows], np.nan), none="no triplet kept")


def _noise(shown: Shown) -> Color:
    """σ at the cursor's epoch, where the map stands at one."""
    sigma = noise(shown.run, noise_epoch(shown.run) if shown.epoch is None else shown.epoch)
    rows = rows_of(load_split(shown.run).train, shown.projection.indices)
    known = np.full(len(rows), np.nan) if sigma is None else np.where(rows >= 0, sigma[rows], np.nan)
    return Color(LABEL, known, none="not trained on" if sigma is not None else "not kept before training")


def pick_color(shown: Shown, label: str) -> Color:
    """What colours the points, kept in the address."""
    choices = colorings(shown)
    usual = next(iter(choices))
    wanted = choice_from_address("color", list(choices), usual)
    chosen = st.selectbox(label, list(choices), list(choices).index(wanted), key="choose-color",
                          format_func=lambda one: COLOR_WORDS.get(one, one))
    write_address("color", chosen, usual)
    if chosen == LABEL and shown.epoch is None:
        noise_slider(shown.run)
    return choices[chosen]()


def picked_image(shown: Shown) -> int | None:
    """The image that was picked, from the address, if this map shows it."""
    picked = int(number_from_address("picked", -1))
    return picked if picked in shown.projection.indices else None


def nearest_images(shown: Shown, picked: int, where: str, key: str) -> int | None:
    """A picked image and its nearest in the embedding; the one of them that was just picked."""
    row = int(np.searchsorted(shown.projection.indices, picked))
    near = shown.projection.indices[shown.neighbors[row]].tolist()
    data = shown.dataset
    tiles = [tile_of(data, picked, "query", "picked"),
             *(tile_of(data, index, mark_of(data, index, picked), f"{rank}. {data.caption(index)}")
               for rank, index in enumerate(near, 1))]
    st.markdown(f"**{data.caption(picked)}** and its {len(near)} nearest in the embedding, {where}")
    clicked = gallery(data, tiles, f"The picked image and its nearest in the embedding, {where}", key, 84)
    st.page_link("pages/retrieval.py", label="Search with it among all images", icon=":material/image_search:",
                 query_params={"run": shown.run.id, "add": str(picked)})
    st.page_link("pages/neighborhoods.py", label="Its linear neighborhood", icon=":material/hub:",
                 query_params={"run": shown.run.id, "picked": str(picked)})
    st.page_link("pages/instances.py", label="Told from all others", icon=":material/fingerprint:",
                 query_params={"run": shown.run.id, "picked": str(picked)})
    return clicked


def selected_images(dataset: Dataset, held: Selection, key: str) -> int | None:
    """What is selected, as images, or how to select; the one that was just picked."""
    if not len(held.ids):
        st.caption("Lasso some points (Shift and drag), or click a name in the legend: the images appear here. "
                   "Click a point to see its nearest, right-click any image to search with it. "
                   "Keys on the map: arrows, + and −, 0, L, B, P, Q, Esc.")
        return None
    st.subheader(f"{len(held.ids):,} images selected")
    if len(held.ids) > MOST_TILES:
        st.caption(f"The first {MOST_TILES:,} are drawn.")
    tiles = [tile_of(dataset, index) for index in held.ids[:MOST_TILES].tolist()]
    return selectable_gallery(dataset, tiles, "Selected images", key, held)


def go_to(clicks: Iterable[int | None]) -> None:
    """Make an image that was just picked anywhere the picked one."""
    clicked = clicked_tile(clicks)
    if clicked is not None:
        write_address("picked", str(clicked))
        st.rerun(scope="fragment")
