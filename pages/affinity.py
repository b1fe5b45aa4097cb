"""What few labels make of a neighbor graph: affinities before and after they spread, the triplets that follow, how far
one label reaches; and whether the embedding keeps its directions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts.base.address import choice_from_address, number_from_address, write_address
from pages.parts.base.analyses import rows_of
from pages.parts.base.cached import dataset_of, load_split
from pages.parts.base.run_picker import pick_run
from pages.parts.base.selection import selection
from pages.parts.base.user_errors import show_user_errors
from pages.parts.components.gallery import Mark, clicked_tile, gallery, tile_of
from pages.parts.components.scatter import Color, scatter
from pages.parts.curves.spectrum import explore_spectrum
from pages.parts.kit.downloads import Download, share, table_file
from pages.parts.kit.figures import lines, table_behind
from pages.parts.kit.pictures import picture
from pages.parts.labels.ego_graph import show_ego
from pages.parts.labels.few_labels import assigned_now, gamma_slider, graph_of_run
from pages.parts.map.shown_map import UNITS, covering_map, distortion
from udml_core.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.data.given.labels import classes
from udml_core.explanations import Affinities
from udml_core.exploration import affinity as views
from udml_core.exploration import label_spread as spreading
from udml_core.runs import Run, find_run, runs_folder
from udml_core.tasks import ADVICE

PART, LISTED, LEAST = 600, 60, -2
SOURCES = {"training": "as training had it", "told": "after training, the labels that it was told",
           "given": "after training, the labels given by hand"}


@dataclass(frozen=True)
class Looked:
    """A graph with few labels, and what is looked at in it.

    source: one of SOURCES. names: the classes of its codes. stored (p, k): W as training had it at its γ, None of a
    graph of now. row: of the image.
    """

    run: Run
    dataset: Dataset
    source: str
    graph: views.LabelGraph
    names: tuple[str, ...]
    stored: Array | None
    row: int

    @property
    def image(self) -> int:
        return int(self.graph.images[self.row])

    def word(self, row: int) -> str:
        """The class of a row's label, empty without one."""
        return "" if self.graph.codes[row] < 0 else self.names[self.graph.codes[row]]

    @property
    def labels(self) -> str:
        """What the labels are, in words."""
        return "the labels given by hand" if self.source == "given" else "the labels that the run was told"

    @cached_property
    def classes(self) -> Array:
        """What tells true from false, (p,): the classes that the data set has, else the labels, −1 without one."""
        return self.graph.codes if self.dataset.labels is None else self.dataset.labels[self.graph.images]

    def mark(self, row: int) -> Mark:
        """Whether a row is of the image's class; nothing where that cannot be told."""
        own, other = self.classes[[self.row, row]]
        if own < 0 or other < 0:
            return ""
        return "hit" if own == other else "miss"


def load_record(run: Run, epoch: int) -> Affinities | None:
    return next((one for one in run.explanations(epoch) if isinstance(one, Affinities)), None)


@st.cache_data(max_entries=64, show_spinner=False)
def epochs_of(folder: str) -> list[int]:
    """The epochs of a finished run that began with affinities of their own."""
    run = Run(Path(folder))
    return [number for number in run.epoch_numbers() if load_record(run, number) is not None]


def label_options(run: Run, dataset: Dataset) -> tuple[Array, tuple[str, ...]] | None:
    """The labels (n,) that a run's method was told, and their classes; None where it was told all or none."""
    spec = run.spec()
    codes = spec.few_labels(dataset, load_split(run).train)
    if codes is None:
        return None
    return codes, (dataset.class_names if spec.labels == "drawn" else tuple(sorted(set(spec.given_labels.values()))))


def chosen_source(run: Run, dataset: Dataset) -> str | None:
    """Which graph and which labels, kept in the address; None, with what to do, where there are no labels."""
    there = {"training": bool(epochs_of(str(run.folder))), "told": label_options(run, dataset) is not None,
             "given": bool(assigned_now(dataset))}
    choices = [name for name, is_there in there.items() if is_there]
    if not choices:
        st.info("This run was told no labels, and none were given by hand. Give a few, and see them spread.",
                icon=":material/lightbulb:")
        st.page_link("pages/labels.py", label="Give labels", icon=":material/new_label:", query_params={"run": run.id})
        return None
    source = st.segmented_control("Graph and labels", choices, default=choice_from_address("source", choices, choices[0]),
                                  required=True, format_func=SOURCES.__getitem__, key=f"affinity-source-{run.id}")
    write_address("source", source or choices[0], choices[0])
    return source or choices[0]


def looked_at(run: Run, dataset: Dataset, source: str, epoch: int) -> Looked:
    """The graph of a source, and the image in the address, else one that tells much."""
    stored = None
    told_ones = label_options(run, dataset)
    if source == "training":
        record = load_record(run, epoch)
        assert record is not None
        assert told_ones is not None
        graph, names, stored = views.graph_of(record, load_split(run).train), told_ones[1], record.after
    else:
        images, neighbors = graph_of_run(run)
        if source == "told":
            assert told_ones is not None
            codes, names = told_ones[0][images], told_ones[1]
        else:
            given, names = assigned_now(dataset), classes(dataset)
            codes = spreading.coded(given, names, images)
        graph = views.LabelGraph(images, neighbors, codes)
    wanted = graph.row_of(picked_in_address(dataset))
    return Looked(run, dataset, source, graph, names, stored, graph.telling if wanted is None else wanted)


def picked_in_address(dataset: Dataset) -> int:
    """The image that the address asks for, −1 where it asks for none."""
    return int(number_from_address("picked", -1, 0, len(dataset) - 1))


def say_where_outside(place: DeltaGenerator, looked: Looked, image: int) -> bool:
    """Whether an image was asked for that the graph does not have; says so, and which one is shown all the same."""
    outside = image >= 0 and looked.graph.row_of(image) is None
    if outside:
        place.warning(f"{looked.dataset.caption(image)} is none of the {len(looked.graph.images):,} images of this "
                      f"graph, which are of the training half. {looked.dataset.caption(looked.image)} is shown; look "
                      "at another of these.", icon=":material/hub:")
    return outside


def around(looked: Looked, part: views.Part) -> None:
    """The graph around the image, before and after labels spread."""
    dataset, found = looked.dataset, views.ego(part)
    rows = part.rows[np.append(0, found.inner)]
    pictures = [dataset.images[int(image)] for image in looked.graph.images[rows]]
    words = [looked.word(row) for row in rows.tolist()]
    labeled = looked.graph.codes[part.rows] >= 0
    for column, values, title, key in zip(st.columns(2), (found.before, found.after),
                                          ("Before: what labels alone say, W0", "After they spread, W"),
                                          ("affinity-before", "affinity-after"), strict=True):
        with column:
            show_ego(found, values, pictures, words, labeled, title, key)
    st.caption("The image, its neighbors around it, and theirs further out. Blue: above 0, alike. Orange, dashed: "
               "below 0, unlike. Gray: 0. As wide as large, each drawing for itself. Green frames and squares have a "
               "label.")
    names = [dataset.caption(int(image)) for image in looked.graph.images[part.rows[part.neighbors[0]]]]
    table = pd.DataFrame({"Neighbor, nearest first": names, "W0": part.before[0], "W": part.after[0]})
    if looked.stored is not None:
        table["W as training had it, on the whole graph"] = looked.stored[looked.row]
    table_behind("The affinities as a table", table)


def halves(looked: Looked, part: views.Part) -> int | None:
    """The neighbors sorted by affinity, and their halves; the one that was just picked."""
    st.subheader("Sorted, and cut in halves")
    rows, values = part.sorted_neighbors(0)
    half = len(rows) // 2
    st.caption("Sorted by W: the first of the positives and the first of the negatives make a triplet with the image, "
               f"then the second ones, and so on. The badge is W. {marks_in_words(looked)} Click one to look at it.")
    clicks = []
    for column, word, places in zip(st.columns(2), ("Positives", "Negatives"), (slice(0, half), slice(half, 2 * half)),
                                    strict=True):
        with column:
            st.markdown(f"**{word}**")
            tiles = [tile_of(looked.dataset, int(looked.graph.images[row]), looked.mark(row), f"{value:.2g}")
                     for row, value in zip(rows[places].tolist(), values[places].tolist(), strict=True)]
            clicks.append(gallery(looked.dataset, tiles, f"{word} by affinity", f"affinity-{word.lower()}", 76))
    truths(looked, part)
    return clicked_tile(clicks)


def marks_in_words(looked: Looked) -> str:
    """What ✓ and ✕ say, and by what."""
    if looked.dataset.labels is None and not looked.word(looked.row):
        return f"The image has none of {looked.labels}, so nothing is marked ✓ or ✕."
    said = "✓ is of the image's class, ✕ is not: positives should be ✓, negatives ✕."
    return said if looked.dataset.labels is not None else f"By {looked.labels}, where there is one: {said}"


def truths(looked: Looked, part: views.Part) -> None:
    """How many triplets are true to the classes, or to the labels where there are no classes."""
    found = {f"at γ of the slider, on the {len(part.rows):,} images around this one": views.part_truth(
        part, looked.classes)}
    if looked.stored is not None:
        found["as training had them, on the whole graph"] = views.triplet_truth(
            looked.graph.neighbors, looked.stored, looked.classes)
    table = pd.DataFrame([(where, one.triplets, one.judged, *(round(100 * share, 1) for share in (
        one.both, one.positives, one.negatives))) for where, one in found.items() if one.triplets],
        columns=["Triplets", "Number", "Judged", "True, %", "True positives, %", "True negatives, %"])
    judged = "" if looked.dataset.labels is not None else (
        " These images have no classes of their own: judged are triplets whose three images each have one of "
        f"{looked.labels}.")
    st.markdown(f"**Which triplets are true**: the positive is of the anchor's class and the negative is not.{judged}")
    st.dataframe(table, hide_index=True, width="stretch")
    st.caption("Half of the neighbors are negatives whatever they are: where all neighbors are of one class, every "
               "triplet is false, and training pushes true neighbors apart.")


def one_label(looked: Looked, gamma: float) -> int | None:
    """How far one label reaches, on the map and by steps; the image that was just picked on the map."""
    st.subheader("How far one label reaches")
    labeled = spreading.labels_from(looked.graph.neighbors, looked.graph.codes, looked.row)
    if not len(labeled):
        st.caption("No image of this graph has a label.")
        return None
    images = looked.graph.images[labeled].tolist()
    chosen = int(number_from_address("label", images[0]))
    chosen = chosen if chosen in images else images[0]
    row = int(labeled[images.index(chosen)])
    listed = list(dict.fromkeys([*labeled[:LISTED].tolist(), row]))
    shown = "All" if len(listed) == len(labeled) else f"{len(listed)} of"
    st.caption("Of the walks from each image that end at any label, the share that ends at this one. Click a label. "
               f"{shown} {len(labeled):,} are listed, by the steps from the image to them; look at another image to "
               "list those near to it first.")
    picked = gallery(looked.dataset, [tile_of(looked.dataset, int(looked.graph.images[one]), badge=looked.word(one))
                                      for one in listed], "Images with a label", "affinity-labels", 60,
                     chosen=chosen, height=150)
    if picked is not None:
        write_address("label", str(picked))
        st.rerun(scope="fragment")
    share_of_it = spreading.shares(looked.graph.neighbors, looked.graph.codes, row, gamma)
    by_steps = spreading.by_hops(spreading.hops(looked.graph.neighbors, row), share_of_it)
    left, right = st.columns([3, 2], gap="medium")
    with right:
        lines([one.hops for one in by_steps], [100 * one.share for one in by_steps], "walks that end at it, %",
              "steps from it", "affinity-hops")
        table_behind("By steps, as a table", pd.DataFrame({
            "Steps": [one.hops for one in by_steps], "Images": [one.images for one in by_steps],
            "Mean share of walks to labels, %": [round(100 * one.share, 2) for one in by_steps]}))
    with left:
        return reach_map(looked, share_of_it, row)


def reach_map(looked: Looked, share_of_it: Array, row: int) -> int | None:
    """The map coloured by how much of each image's walks one label gets."""
    shown = covering_map(looked.run, looked.graph.images)
    if shown is None:
        st.page_link("pages/map.py", label="Compute a map of all images, and the reach is shown on it",
                     icon=":material/scatter_plot:", query_params={"run": looked.run.id})
        return None
    places = rows_of(looked.graph.images, shown.layout.indices)
    orders = np.log10(np.maximum(100 * share_of_it[places], 10.0**LEAST))
    color = Color("share in %, log₁₀", np.where(places >= 0, orders, np.nan), low=LEAST, high=2,
                  none="no label reaches it, or it is not in the graph")
    wanted = looked.graph.images[np.append(row, looked.row)]
    lines_to = rows_of(shown.layout.indices, looked.graph.images[looked.graph.neighbors[looked.row]])
    marks = [{"row": int(at), "word": word, "lines": to} for at, word, to in zip(
        rows_of(shown.layout.indices, wanted), ("this label", "the image"), ([], lines_to.tolist()), strict=True)]
    picked = scatter(looked.dataset, shown.layout, color, selection(looked.dataset),
                     "Map coloured by the share of walks that end at one label", "affinity-map", marks=marks,
                     height=430)
    distortion(shown)
    st.caption(f"Click a point to look at that image. {UNITS}")
    return picked


@st.fragment
@show_user_errors()
def explore(run_id: str, source: str, epoch: int) -> None:
    """Everything that follows γ or the image."""
    run = find_run(run_id, runs_folder())
    looked = looked_at(run, dataset_of(run), source, epoch)
    said = st.container()
    say_where_outside(said, looked, picked_in_address(looked.dataset))
    with st.container(horizontal=True, vertical_alignment="center"):
        picture(looked.dataset.images[looked.image], 96, f"The image: {looked.dataset.names[looked.image]}")
        st.markdown(f"**{looked.dataset.caption(looked.image)}**  \n{(looked.graph.codes >= 0).sum()} of "
                    f"{len(looked.graph.images):,} images of this graph have a label"
                    + (f"; this one is called {looked.word(looked.row)}." if looked.word(looked.row) else "."))
    fields = run.spec().build_method().model_dump()
    gamma = gamma_slider(float(fields.get("gamma", 0.99)) if source == "training" else 0.99, f"affinity-gamma-{source}",
                         "this run" if source == "training" else "SSDML's default")
    part = views.propagated(looked.graph, looked.graph.part(looked.row, PART), gamma)
    around(looked, part)
    clicks = [halves(looked, part), one_label(looked, gamma)]
    near = looked.graph.images[part.rows[part.neighbors[0]]]
    share([Download("The neighbors as a table", "affinities.csv", "text/csv", lambda: table_file(
        looked.dataset, near, {"before": part.before[0], "after": part.after[0]}))], "affinity")
    clicked = clicked_tile(clicks)
    if clicked is not None and not say_where_outside(said, looked, clicked):
        write_address("picked", str(clicked))
        st.rerun(scope="fragment")


@show_user_errors()
def labeled_graph(run: Run) -> None:
    """A finished run's graph with few labels, where there are any."""
    source = chosen_source(run, dataset_of(run))
    if source is not None:
        explore(run.id, source, epoch_of(run) if source == "training" else 0)


def epoch_of(run: Run) -> int:
    """The epoch whose graph is shown, kept in the address."""
    epochs = epochs_of(str(run.folder))
    wanted = int(number_from_address("epoch", epochs[-1]))
    epoch = st.selectbox("Epoch that began with it", epochs, epochs.index(wanted) if wanted in epochs
                         else len(epochs) - 1, key="affinity-epoch") if len(epochs) > 1 else epochs[0]
    write_address("epoch", str(epoch), str(epochs[-1]))
    return epoch


st.title("Labels & affinity")
with show_user_errors():
    run = pick_run(unfinished=True)
    if run is not None:
        state = run.status().state
        if state == "done":
            labeled_graph(run)
        else:
            st.info(f"Graph, affinities and triplets need a finished run, and {run.id} is {state}. "
                    f"{ADVICE[state]} Below is what its embedding does meanwhile.", icon=":material/hourglass_top:")
        st.header("Does the embedding keep its directions?")
        st.markdown("The effective rank counts how many are used. A metric that is free to grow or shrink can win its "
                    "loss by putting everything onto few of them. Where L is orthonormal, everything can flee from "
                    "everything instead, until it is spread evenly: then the rank rises while recall falls. Lay a run "
                    "with *orthogonal* off beside one with it on.")
        chosen, images = run.id, run.spec().fingerprint
        other = pick_run("Beside it", "run2", lambda one: one.spec().fingerprint == images and one.id != chosen
                           and bool(one.epoch_numbers()), optional=True, unfinished=True)
        explore_spectrum((run.id,) if other is None else (run.id, other.id))
