"""The picture before training: a map of a sample of the images, and what α and ε mean on it."""

from __future__ import annotations

from concurrent.futures import Future, wait
from dataclasses import dataclass
from threading import Thread

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from udml_core.base.arrays import Array, Integers, evenly_spaced
from udml_core.base.errors import counted
from udml_core.base.files import read_array
from udml_core.data.dataset import Dataset
from udml_core.data.encoders import Encoder, image_seconds
from udml_core.data.features import features_of_some, features_path
from udml_core.data.splits import SplitName
from udml_core.exploration.preview import SAMPLE, Preview, Sample, draw_sample, preview
from udml_core.exploration.quick_map import quick_map
from udml_core.exploration.triplets import angle_histogram
from udml_core.methods import find_method
from udml_core.runs import Spec, runs_folder
from udml_core.work import jobs

from ..draw.figures import histogram
from ..draw.gallery import Mark, Tile, gallery, tile_of
from ..maps.content import Color, Layout
from ..maps.excluding import NONE
from ..maps.scatter import draw_map
from ..shell.views import view_link
from ..shell.warming import SCRIPT_THREAD

FIELDS = ("alpha", "epsilon", "gamma", "n_neighbors")
NEIGHBORS = 10
"""k of the graph of a method without clusters, whose map needs none."""
SHOWN = 8
THUMBNAILS = 48
HEIGHT = "max(420px, calc(100vh - 432px))"
"""Height of the map in the middle of the page, before and during training."""
GALLERY_HEIGHT = 470
"""Pixels of the images in place of the map."""
SHORT, NO_NAME = 2, "\u00a0"
"""Letters of a class name that a small tile shows, and what it shows in place of a longer name."""
LONGEST_WAIT = 10.0
"""Seconds that missing features of the sample may take to be computed without a click."""
FEW = 0.01
"""Share of the triplets beyond α below which training has hardly anything to correct."""
RECORD, LOST = "rpml-regimes", "lost up to 24 points of MAP@R"
"""The record that varies α, and what it says of angles below 35°."""
PATIENCE = 0.2
"""Seconds that the page waits for the sample; then the form is shown, and the preview follows."""


@dataclass(frozen=True)
class Drawn:
    """A sample of the training half with its map.

    Attributes:
        sample: The sample.
        positions: Principal plane of its frozen features, (m, 2).
    """

    sample: Sample
    positions: Array


def has_clusters(spec: Spec) -> bool:
    """Return whether the method forms clusters at ε and corrects angles beyond α."""
    return all(name in spec.fields for name in FIELDS)


def show_preview(spec: Spec, dataset: Dataset, center: DeltaGenerator, right: DeltaGenerator, reason: str = "") -> None:
    """Show the map of the frozen features, and for methods with α and ε what these mean on the images.

    Args:
        spec: The planned run.
        dataset: Its data set.
        center: The place of the map.
        right: The place of the angles and clusters.
        reason: Why this α was chosen; empty if nothing speaks for it.
    """
    with center:
        if not _may_compute(spec, dataset):
            show_thumbnails(dataset, spec)
            return
        key = _key(spec)
        drawn = _draw(*key, spec, dataset)
        if not wait([drawn], PATIENCE).done:
            show_thumbnails(dataset, spec)
            _show_progress(drawn)
            return
        if drawn.exception():
            _draw.clear(*key, spec, dataset)  # the next run of the page tries again
        shown = drawn.result()
        result = _clusters(shown, spec)
        _show_map(shown, result, spec, dataset)
    if result is not None:
        with right, st.container(key="train-meaning"):
            _show_meaning(result, spec, dataset, reason)


def show_before(spec: Spec, dataset: Dataset) -> None:
    """Show the preview's map of a run that has begun, until its own map is there; images in place of a missing map."""
    if features_path(dataset, spec.encoder).exists():
        drawn = _draw(*_key(spec), spec, dataset)
        if drawn.done() and not drawn.exception():
            _show_map(drawn.result(), _clusters(drawn.result(), spec), spec, dataset)
            return
    show_thumbnails(dataset, spec)


def _key(spec: Spec) -> tuple[str, str, SplitName, int, int, str]:
    k = int(spec.fields["n_neighbors"]) if has_clusters(spec) else NEIGHBORS
    return spec.fingerprint, spec.encoder.key, spec.split, spec.seed, k, spec.excluded.digest


def _clusters(shown: Drawn, spec: Spec) -> Preview | None:
    """Return the clusters and triplets at the planned ε; None for methods without them."""
    if not has_clusters(spec):
        return None
    return preview(shown.sample, float(spec.fields["epsilon"]), float(spec.fields["gamma"]), spec.seed)


def _show_map(shown: Drawn, result: Preview | None, spec: Spec, dataset: Dataset) -> None:
    """Draw the sample, colored by the clusters at ε if the method has them, else by class."""
    images = shown.sample.indices
    if result is not None:
        names = tuple(f"cluster {number}" for number in range(result.clusters.count))
        color = Color(f"Cluster at ε = {spec.fields['epsilon']:g}", result.assignment, names, none="single image",
                      by_size=True)
    elif dataset.labels is not None:
        color = Color("class", dataset.labels[images], dataset.class_names)
    else:
        color = Color("image", np.zeros(len(images), dtype=np.int64), ("image",))
    layout = Layout(images, shown.positions, f"lab {spec.fingerprint[:8]} {spec.encoder.key} {spec.split} {spec.seed}")
    draw_map(dataset, layout, color, f"Before training, {len(images):,} images", "lab-map", hidden=NONE, height=HEIGHT,
             legend_below=True, tiles="all")
    of_half = "" if spec.split == "all" else " of the training half"
    st.caption(f"**Before training:** {len(images):,} images{of_half}, laid out by "
               f"{'their pixels' if spec.backbone == 'pixels' else 'the features of the backbone'}.")
    if result is not None and len(result.example):
        _show_cluster(result.example, dataset)


def small_tile(dataset: Dataset, index: int, mark: Mark = "") -> Tile:
    """Return a tile without a long name below it, which a small tile would cut."""
    names = dataset.class_names if dataset.labels is not None else ("",)
    is_short = dataset.labels is not None and max(map(len, names)) <= SHORT
    return tile_of(dataset, int(index), mark, "" if is_short else NO_NAME)


def show_thumbnails(dataset: Dataset, spec: Spec) -> None:
    """Show some images of the training half in place of the map."""
    train = spec.halves(dataset, "last").train
    chosen = train[evenly_spaced(len(train), THUMBNAILS)]
    gallery(dataset, [small_tile(dataset, int(index)) for index in chosen], "Images of the training half", "lab-images",
            56, height=GALLERY_HEIGHT)


def _show_meaning(result: Preview, spec: Spec, dataset: Dataset, reason: str) -> None:
    """Show the angles of sample triplets against α, the reason for this α, and how many clusters there are at ε."""
    alpha, epsilon = float(spec.fields["alpha"]), spec.fields["epsilon"]
    if result.shape is None:
        st.info(f"At ε = {epsilon:g} there are no triplets, so this run would stop. "
                + ("Raise ε." if result.clusters.count == 1 else "Lower ε."), icon=":material/warning:")
    else:
        edges, counts = angle_histogram(result.shape)
        share = 100 * result.violations(alpha)
        histogram(edges.tolist(), counts.tolist(), f"{share:.1f} % of triplets exceed α = {alpha:g}°", "train-angles",
                  alpha)
        if reason:
            st.caption(reason)
        elif result.violations(alpha) < FEW:
            _advise_on_alpha(alpha, spec.method, dataset)
    statistics = result.clusters
    largest = int(statistics.sizes.max())
    st.markdown(f"**{counted(statistics.count - statistics.singletons, 'cluster')}** at ε = {epsilon:g}, and "
                f"{counted(statistics.singletons, 'image')} alone; {largest:,} images in the largest",
                help="ε decides which images share a cluster. A triplet is an "
                     "anchor, a positive of the same cluster and a negative of another cluster; training corrects "
                     "triplets beyond α.")


def _show_cluster(example: Integers, dataset: Dataset) -> None:
    """Show images of a cluster of median size in one row."""
    tiles = [small_tile(dataset, int(index)) for index in example[:SHOWN]]
    below = "" if tiles[0].badge == NO_NAME else ", each with its class below"
    st.caption(f"A cluster of median size: {_shown_of(len(example))}{below}")
    gallery(dataset, tiles, "Images of one cluster", "train-cluster", 44, columns=SHOWN + 1)


def _shown_of(count: int) -> str:
    return counted(count, "image") if count <= SHOWN else f"{SHOWN} of its {count:,} images"


def _advise_on_alpha(alpha: float, method: str, dataset: Dataset) -> None:
    """Say what a bound that no triplet violates means, what the record says of smaller bounds, and offer a method.

    Args:
        alpha: The bound in degrees.
        method: Name of the method.
        dataset: The data set.
    """
    other = find_method(jobs.first_method(dataset, runs_folder()))
    with st.container(border=True, key="train-alpha"):
        st.caption(f"Hardly any triplet exceeds α = {alpha:g}°, so the run ends like PCA. A smaller α {LOST} in the "
                   "record.", help="Measured on classes of birds and clothes that no run had trained on.")
        with st.container(horizontal=True, gap="small"):
            if other.card.name != method:
                view_link("train", label="Use the suggested method", icon=":material/swap_horiz:", width="content",
                          query_params={"dataset": dataset.name, "method": other.card.name})
            view_link("results", label="What was measured", icon=":material/table_chart:", width="content",
                      query_params={"record": RECORD})


def _may_compute(spec: Spec, dataset: Dataset) -> bool:
    """Return whether the features of a sample are stored, quick to compute, or asked for; else offer to compute them.

    Pixels and small images take seconds.
    """
    key = f"train-preview-{dataset.name}-{spec.encoder.key}"
    count = min(SAMPLE, len(dataset))
    seconds = image_seconds(spec.encoder) * count
    if seconds <= LONGEST_WAIT or st.session_state.get(key) or features_path(dataset, spec.encoder).exists():
        return True
    with st.container(horizontal=True, vertical_alignment="center", key="lab-compute"):
        st.caption(f"The preview needs the features of {count:,} images, which the run computes too.")
        st.button("Compute the preview", icon=":material/visibility:", key="train-preview",
                  on_click=lambda: st.session_state.update({key: True}))
    return False


@st.fragment(run_every="0.5s")
def _show_progress(drawn: Future[Drawn]) -> None:
    """Say that the sample is encoded; the page runs again when it is."""
    if drawn.done():
        st.rerun()
    st.caption(":material/hourglass_top: Encoding a sample of the images …")


@st.cache_resource(max_entries=8, show_spinner=False)
def _draw(fingerprint: str, encoder_key: str, split: SplitName, seed: int, k: int,  # noqa: ARG001 (parts of the key)
          excluded: str, _spec: Spec, _dataset: Dataset) -> Future[Drawn]:  # noqa: ARG001
    """Draw a sample in the background, with the stored features or with features that are computed for it alone."""
    drawn: Future[Drawn] = Future()

    def features(indices: Integers) -> Array:
        path = features_path(_dataset, _spec.encoder)
        if path.exists():
            return read_array(path, mapped=True)[indices]
        return features_of_some(_dataset, Encoder(_spec.encoder), indices)

    def draw() -> None:
        try:
            sample = draw_sample(features, _spec.halves(_dataset, "last").train, k, seed)
            drawn.set_result(Drawn(sample, quick_map(sample.rows)))
        except Exception as error:  # the page shows it
            drawn.set_exception(error)

    # Imports in the background wait for threads of this name, as they do for a running page. Not a daemon: a process
    # that ends while one of them computes with PyTorch is aborted.
    Thread(target=draw, name=f"{SCRIPT_THREAD}: preview").start()
    return drawn
