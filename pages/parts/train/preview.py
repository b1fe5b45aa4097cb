"""The picture before training: a map of a sample of the images, and what α and ε mean on it."""

from __future__ import annotations

from concurrent.futures import Future, wait

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from udml_core.base.arrays import Integers, evenly_spaced
from udml_core.base.errors import counted
from udml_core.data.dataset import Dataset
from udml_core.data.encoders import image_seconds
from udml_core.data.features import features_path
from udml_core.exploration.preview import SAMPLE, Preview
from udml_core.methods import find_method
from udml_core.runs import Spec
from udml_core.runs.search import features_words
from udml_core.work import jobs

from ..draw.gallery import gallery
from ..maps.excluding import NONE
from ..maps.scatter import draw_map
from ..shell.views import view_link
from .angles import show_angles
from .cluster_counts import count_clusters
from .found_before import show_found
from .method_choice import suggested_method
from .start_map import (
    Drawn,
    choose_colors,
    choose_moved_colors,
    class_color,
    cluster_color,
    clusters_before,
    drawn_words,
    first_map,
    followed_clusters,
    forget_map,
    framed,
    has_clusters,
    is_begun,
    map_name,
    raw_words,
    settled_map,
    shows_clusters,
    tracked,
)
from .status_strip import strip_place
from .tiles import NO_NAME, small_tile
from .tried import TriedAlpha

SHOWN = 8
THUMBNAILS = 48
HEIGHT = "max(400px, calc(100vh - 486px))"
"""Height of the map in the middle of the page, before and during training."""
GALLERY_HEIGHT = 470
"""Pixels of the images in place of the map."""
LONGEST_WAIT = 10.0
"""Seconds that missing features of the sample may take to be computed without a click."""
FEW = 0.01
"""Share of the triplets beyond α below which training has hardly anything to correct."""
RECORD, LOST = "rpml-regimes", "lost up to 24 points of MAP@R"
"""The record that varies α, and what it says of angles below 35°."""
PATIENCE = 0.2
"""Seconds that the page waits for the sample; then the form is shown, and the preview follows."""


def show_preview(spec: Spec, dataset: Dataset, center: DeltaGenerator, right: DeltaGenerator,
                 tried: TriedAlpha) -> None:
    """Show the map of the frozen features, and for methods with α and ε what these mean on the images.

    Args:
        spec: The planned run.
        dataset: Its data set.
        center: The place of the map.
        right: The place of the angles and clusters.
        tried: What an example says of α.
    """
    with center:
        # Before cached loads, as in a run that trains: the map of both stays, its points travel.
        strip, place, under = strip_place(), st.container(), line_below()
        if not _may_compute(spec, dataset):
            show_thumbnails(dataset, spec)
            return
        drawn = first_map(spec, dataset)
        if not wait([drawn], PATIENCE).done:
            show_thumbnails(dataset, spec)
            _show_progress(drawn)
            return
        if drawn.exception():
            forget_map(spec, dataset)
        shown = drawn.result()
        result = clusters_before(shown, spec)
        if result is not None:
            choose_moved_colors(spec)
        with strip:
            st.caption(f"**Before training:** {drawn_words(spec, dataset, len(shown.images))}, similar ones near each "
                       "other", help="Laid out by t\N{NON-BREAKING HYPHEN}SNE of "
                                     f"{features_words(spec)}.")
        _show_map(place, under, shown, result, spec, dataset)
    if result is None:
        with right:
            show_found(dataset, shown, raw_words(spec))
    else:
        with right, st.container(key="train-meaning"):
            _show_meaning(result, spec, dataset, tried)
            count_clusters(tracked(shown, spec), float(spec.fields["epsilon"]))


def line_below() -> DeltaGenerator:
    """Return the place of the line below the map: what moves the map, and its colors."""
    return st.container(horizontal=True, vertical_alignment="center", key="lab-under-map")


def show_before(place: DeltaGenerator, under: DeltaGenerator, spec: Spec, dataset: Dataset) -> None:
    """Show the preview's map of a run that has begun, until its own map is there; images in place of a missing map."""
    drawn = settled_map(spec, dataset)
    if drawn is None:
        show_thumbnails(dataset, spec)
    else:
        _show_map(place, under, drawn, clusters_before(drawn, spec), spec, dataset)


def _show_map(place: DeltaGenerator, under: DeltaGenerator, shown: Drawn, result: Preview | None, spec: Spec,
              dataset: Dataset) -> None:
    """Draw the images, colored by the clusters at ε or by class, and below them a cluster."""
    clusters = None if result is None else cluster_color(shown, spec, shown.of_images(result.assignment))
    color = clusters if clusters is not None and shows_clusters(spec, dataset) else class_color(
        dataset, shown.images, shown)
    with place:
        draw_map(dataset, framed(map_name(spec), shown.images, shown.positions), color,
                 f"Before training, {len(shown.images):,} images", "lab-map", hidden=NONE, height=HEIGHT,
                 legend_below=True, tiles="all", fills=True,
                 followed=() if clusters is None else followed_clusters(shown, spec, clusters))
    with under:
        choose_colors(spec, dataset)
    if result is not None and len(result.example):
        _show_cluster(result.example, dataset)


def show_thumbnails(dataset: Dataset, spec: Spec) -> None:
    """Show some images of the training half in place of the map."""
    show_some(dataset, spec.halves(dataset, "last").train, "Images of the training half")


def show_some(dataset: Dataset, images: Integers, label: str) -> None:
    """Show some images, evenly spaced, in place of the map."""
    chosen = images[evenly_spaced(len(images), THUMBNAILS)]
    gallery(dataset, [small_tile(dataset, int(index)) for index in chosen], label, "lab-images", 56,
            height=GALLERY_HEIGHT)


def _show_meaning(result: Preview, spec: Spec, dataset: Dataset, tried: TriedAlpha) -> None:
    """Show the angles of sample triplets against α, and what is known of this α."""
    alpha, epsilon = float(spec.fields["alpha"]), spec.fields["epsilon"]
    if result.shape is None:
        st.info(_no_triplets(result, epsilon), icon=":material/warning:")
    else:
        show_angles(result, alpha)
        _say_of_alpha(result, spec, dataset, tried)


def _no_triplets(result: Preview, epsilon: float) -> str:
    """Say why a run at this ε would stop, and what to change."""
    why, change = ("all images form one cluster", "Raise ε.") if result.clusters.count == 1 else (
        "each image is a cluster of its own", "Lower ε.")
    return f"At ε = {epsilon:g} {why}, so there is no triplet to train on. {change}"


def hindrance_of(spec: Spec, dataset: Dataset) -> str:
    """Return why a start would lead to nothing, as far as the map shows it; empty if nothing is known against it."""
    result = _clusters_so_far(spec, dataset)
    return "" if result is None or result.shape is not None else _no_triplets(result, float(spec.fields["epsilon"]))


def has_little_to_correct(spec: Spec, dataset: Dataset, tried: TriedAlpha) -> bool:
    """Return whether the page says that a training has almost nothing to correct, as far as the map shows it."""
    result = _clusters_so_far(spec, dataset)
    return (result is not None and result.shape is not None and "mining_space" not in spec.fields
            and tried.value != (alpha := float(spec.fields["alpha"])) and result.violations(alpha) < FEW)


def _clusters_so_far(spec: Spec, dataset: Dataset) -> Preview | None:
    """Return the clusters and triplets before training; None if they are not known yet, or the method has none."""
    if not has_clusters(spec) or not is_begun(spec):
        return None
    drawn = first_map(spec, dataset)
    return clusters_before(drawn.result(), spec) if drawn.done() and not drawn.exception() else None


def _show_cluster(example: Integers, dataset: Dataset) -> None:
    """Show images of a cluster of median size in one row."""
    tiles = [small_tile(dataset, int(index)) for index in example[:SHOWN]]
    below = "" if tiles[0].badge == NO_NAME else ", each with its class below"
    st.caption(f"One cluster that training would learn from: {_shown_of(len(example))}{below}")
    gallery(dataset, tiles, "Images of one cluster", "train-cluster", 44, columns=SHOWN + 1)


def _shown_of(count: int) -> str:
    return counted(count, "image") if count <= SHOWN else f"{SHOWN} of its {count:,} images"


def _say_of_alpha(result: Preview, spec: Spec, dataset: Dataset, tried: TriedAlpha) -> None:
    """Say what the share of triplets beyond α means for a run, beside the α of an example that gained.

    The example's α can be set at a click only if judges without labels support it.

    Args:
        result: The clusters and triplets.
        spec: The planned run.
        dataset: The data set.
        tried: What an example says of α.
    """
    alpha = float(spec.fields["alpha"])
    if tried.value == alpha:
        st.caption(f"α = {alpha:g}° as in the example, which reached {tried.proof}.")
        return
    example = "" if tried.value is None else (
        f" With α = {tried.value:g}° the example reached {tried.proof}. {tried.verdict}".rstrip())
    if "mining_space" in spec.fields:
        st.caption(f"These triplets are random. {find_method(spec.method).card.title} picks harder negatives in every "
                   "batch, so it corrects more of them than this.")
        return
    if result.violations(alpha) >= FEW:
        if tried.value is not None:
            side = "fewer" if alpha > tried.value else "more"
            st.caption(f"Training corrects {side} triplets than in the example.{example}")
        return
    other = find_method(suggested_method(dataset))
    with st.container(border=True, key="train-alpha"):
        st.caption(f"{little_to_correct(spec)}"
                   f"{example or ' A smaller α corrects more triplets, which helps some images only.'}",
                   help=f"Below 35°, α {LOST} on new classes of birds and clothes. See the record “Where RPML's bound "
                        "acts” on the page Results.")
        with st.container(horizontal=True, gap="small"):
            if tried.is_supported:
                st.button(f"Set α to {tried.value:g}°", icon=":material/tune:", key="train-set-alpha",
                          on_click=lambda: st.session_state.update({tried.key: tried.value}))
            elif other.card.name != spec.method:
                view_link("train", label="Use the suggested method", icon=":material/swap_horiz:", width="content",
                          query_params={"dataset": dataset.name, "method": other.card.name})
            view_link("results", label="What was measured", icon=":material/table_chart:", width="content",
                      query_params={"record": RECORD})


def little_to_correct(spec: Spec) -> str:
    """Say how a run goes whose α hardly any triplet exceeds: from its initial projection to the level of PCA."""
    begun = f"Hardly any triplet exceeds α = {float(spec.fields['alpha']):g}°. "
    if spec.fields.get("beginning") != "random":
        return begun + "The run starts at the principal components, has almost nothing to correct, and ends like PCA."
    return begun + ("The run starts at a random projection: its curve begins low and climbs while training repairs "
                    "that projection. Beyond that there is almost nothing to correct, so the run ends like PCA.")


def _may_compute(spec: Spec, dataset: Dataset) -> bool:
    """Return whether the features of a sample are stored, quick to compute, or asked for; else offer to compute them.

    Pixels and small images take seconds.
    """
    key = f"train-preview-{dataset.name}-{spec.encoder.key}"
    count = min(SAMPLE, len(dataset))
    seconds = image_seconds(spec.encoder) * count
    if spec.encoder.parts:  # their statistics need the features of all training images
        count, seconds = len(dataset), jobs.feature_seconds(dataset, spec.encoder, spec.device)
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
