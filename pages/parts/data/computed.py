"""Browsing without training: the button, the progress, and the neighbors that it gives."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array, Integers
from udml_core.base.errors import UserError, duration
from udml_core.data.dataset import Dataset
from udml_core.data.encoders import BACKBONES, DEFAULT_BACKBONE, EncoderSpec
from udml_core.data.given.exclusions import excluded_images
from udml_core.exploration.browsing import Order, neighbor_similarities, outlier_scores
from udml_core.exploration.sample import Neighborhoods, neighborhoods_of
from udml_core.runs import Run, RunRequest, find_run, runs_folder
from udml_core.runs.analyses import Analysis
from udml_core.runs.search import FROZEN
from udml_core.work import jobs
from udml_core.work.jobs.browse import DataAnalysis, continue_browsing, feature_runs, find_browsing
from udml_core.work.jobs.follow_ups import MOST_MAPPED

from ..shell.analyses import load_projection
from ..shell.awaited import await_run, awaited_run, is_renewed, link_to_first_images, show_progress
from ..shell.run_hash import RUN_HASH
from ..shell.run_picker import CHOSEN, choose_run
from ..shell.run_status import escaped_message
from ..shell.views import open_view, view_link

PAGES = (("explore", "Map", ":material/explore:"), ("retrieval", "Search", ":material/image_search:"))

LEAST_TRAINED = 100
"""Fewer images are not offered for training: half of them trains, and RPML's graph joins each image to 50 others."""
THEN = "then"
"""Address parameter of the view that opens once the images are compared."""


@dataclass(frozen=True)
class NearestByFeatures:
    """What the neighbors of every image by frozen features tell; NaN for images that the features' run excludes.

    Attributes:
        outlier: Outlier score (n,) of every image.
        similarity: Cosine similarity (n,) of every image to its nearest neighbor.
        images: The images (m,) that are not excluded.
        among: Their neighborhoods among each other.
    """

    outlier: Array
    similarity: Array
    images: Integers
    among: Neighborhoods

    def values(self, order: Order) -> Array | None:
        """Return what an order sorts by, (n,), largest first; None for orders without features."""
        return {"outlier": self.outlier, "duplicate": self.similarity}.get(order)


def browse_bar(dataset: Dataset, links_to_search: bool = True) -> NearestByFeatures | None:
    """Show the state of browsing in one row: the button, the progress, or links to the views.

    Args:
        dataset: The data set.
        links_to_search: Whether the page has no other link to the search of these images.

    Returns:
        What the neighbors tell; None before they are computed.
    """
    encoder = chosen_encoder(dataset)
    state = find_browsing(dataset, encoder, runs_folder())
    begun = _begun(dataset, encoder)
    if state.task is None and state.finished is None and begun in st.session_state:
        state = continue_browsing(dataset, encoder, runs_folder())
    keeps = _keeps_training(dataset)
    if isinstance(state.task, Run):
        if not keeps:
            await_run(state.task)
        st.session_state[begun] = True  # images that are excluded meanwhile need a run of their own
    elif state.run is not None and (state.run == awaited_run() or _shows_other_images(dataset)):
        choose_run(state.run)  # the sidebar and the other pages go with the images that were looked at last
    if state.run is not None and st.query_params.get(THEN) == "retrieval":
        choose_run(state.run)
        open_view("retrieval", {"run": state.run.id})
    earlier = earlier_run(dataset, encoder)
    if state.task is not None:
        opens = "Search opens when they are compared. " if THEN in st.query_params else ""
        show_progress(state.task, begun, meanwhile=f"{opens}You can look at the images meanwhile.")
        if isinstance(state.task, Run) and not keeps:
            link_to_first_images()
    elif state.run is not None and state.finished is not None:
        st.session_state.pop(begun, None)
        _show_links(state.run, dataset, links_to_search)
        return None if dataset.is_large else load_nearest(state.run, state.finished)  # no stored neighbors
    elif earlier is not None and is_renewed(earlier) and not keeps:
        choose_run(earlier)  # the page that is opened next makes it again
        _show_links(earlier, dataset, links_to_search)
        st.caption("They leave out what you excluded as soon as you open them.", width="content")
    else:
        _offer(dataset, encoder, begun, state)
    if earlier is None or len(dataset) > MOST_MAPPED:
        return None
    return _nearest_anew(earlier, excluded_images(dataset).tobytes(), dataset)


def _keeps_training(dataset: Dataset) -> bool:
    """Return whether the user chose a training on these images, which other pages keep while features are computed."""
    with suppress(UserError):
        spec = find_run(st.session_state.get(CHOSEN) or "none", runs_folder()).spec()
        return spec.method != FROZEN and spec.fingerprint == dataset.fingerprint
    return False


def _shows_other_images(dataset: Dataset) -> bool:
    """Return whether the sidebar names a run of other images, or none that the user chose."""
    with suppress(UserError):
        return find_run(st.session_state.get(CHOSEN) or "none", runs_folder()).spec().fingerprint != dataset.fingerprint
    return True


def earlier_run(dataset: Dataset, encoder: EncoderSpec) -> Run | None:
    """Return the newest run of these features, whatever images it excluded."""
    return next((run for run in feature_runs(dataset, encoder, runs_folder()) if run.status().state == "done"), None)


@st.cache_resource(max_entries=4, show_spinner="Comparing neighbors …", hash_funcs=RUN_HASH)
def _nearest_anew(run: Run, excluded: bytes, _dataset: Dataset) -> NearestByFeatures:  # noqa: ARG001
    """Return what the neighbors tell by the features of a run that excluded other images."""
    return _placed(len(_dataset), *neighborhoods_of(_dataset, run.embeddings("final")))


def begin_browsing(dataset: Dataset) -> None:
    """Start browsing without a click, unless so many images would take long or too few cannot be browsed."""
    encoder = chosen_encoder(dataset)
    st.session_state[_begun(dataset, encoder)] = True
    if len(dataset) <= MOST_MAPPED:
        with suppress(UserError):  # the page Data then says what is missing
            continue_browsing(dataset, encoder, runs_folder())


def _begun(dataset: Dataset, encoder: EncoderSpec) -> str:
    """Return the session key that says that the steps of browsing follow each other."""
    return f"data-browsing-{dataset.fingerprint[:12]}-{encoder.key}"


def chosen_encoder(dataset: Dataset) -> EncoderSpec:
    """Return the encoder of the chosen backbone.

    Raises:
        UserError: The backbone is not available.
    """
    return jobs.encoder_of(dataset, str(st.session_state.get("data-backbone", DEFAULT_BACKBONE)))


def _offer(dataset: Dataset, encoder: EncoderSpec, begun: str, state: DataAnalysis) -> None:
    """Show the button that starts browsing, with the expected time."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="data-offer"):
        if st.button("Browse these images", icon=":material/travel_explore:", type="tertiary",
                     help="Map, grid and search without training, and orders of the gallery by outliers and "
                          "near-duplicates. The features are computed once, in the background."):
            st.session_state[begun] = True
            continue_browsing(dataset, encoder, runs_folder())
            st.rerun()
        if encoder.reads_images:
            choose_backbone(encoder)
        if words := _time_words(dataset, encoder, state):
            st.caption(words, width="content")
    failure = st.session_state.pop(f"{begun}-failure", "")
    if failure:
        st.error(escaped_message(failure), icon=":material/error:")


def _time_words(dataset: Dataset, encoder: EncoderSpec, state: DataAnalysis) -> str:
    """Return the expected time until the map; empty unless all of it was measured on this machine."""
    request = RunRequest(dataset=dataset.name, method="frozen", backbone=encoder.backbone)
    expected = jobs.estimate(jobs.plan(request, dataset), dataset)
    seconds = expected.follow_seconds if state.run else expected.seconds
    return f"About {duration(seconds)}, measured here" if expected.measured and expected.follow_seconds else ""


def choose_backbone(encoder: EncoderSpec) -> None:
    """Show the choice of the backbone whose features are computed; `chosen_encoder` returns it."""
    with st.popover("Compared by", icon=":material/memory:", type="tertiary", help=(
            "A pretrained network turns each image into numbers; images with similar numbers count as similar.")):
        st.selectbox("Network that compares the images", list(BACKBONES), list(BACKBONES).index(encoder.backbone),
                     key="data-backbone", format_func=lambda name: BACKBONES[name].title, persist_state="session",
                     help="Network whose features compare the images, or the pixels themselves.")


def _show_links(run: Run, dataset: Dataset, links_to_search: bool) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        st.markdown("**Show these images as**", width="content")
        for page, label, icon in PAGES if links_to_search else PAGES[:1]:
            view_link(page, label=label, icon=icon, query_params={"run": run.id}, width="content")
        if len(dataset) >= LEAST_TRAINED:
            view_link("train", label="Train on these images", icon=":material/model_training:", width="content",
                      query_params={"dataset": run.spec().dataset})


def load_nearest(run: Run, projection: Analysis) -> NearestByFeatures:
    """Return what the neighbors in a run's embedding tell, computed once."""
    return _nearest(run, projection.id, projection.stored_status().ticket)


@st.cache_resource(max_entries=4, show_spinner="Comparing neighbors …", hash_funcs=RUN_HASH)
def _nearest(run: Run, analysis_id: str, ticket: float) -> NearestByFeatures:  # noqa: ARG001 (a new map is read again)
    projection = load_projection(run, analysis_id)
    neighbors = np.asarray(projection.neighbors[projection.frames.index("final")])
    embeddings, images = run.embeddings("final"), np.asarray(projection.indices)
    similarities = neighbor_similarities(embeddings[images], neighbors)
    return _placed(len(embeddings), images, Neighborhoods(embeddings[images], neighbors, similarities))


def _placed(count: int, images: Integers, among: Neighborhoods) -> NearestByFeatures:
    """Return what the neighborhoods of some images (m,) of all (n,) tell."""
    outlier, similarity = np.full((2, count), np.nan)
    outlier[images] = outlier_scores(among.neighbors, among.similarities)
    similarity[images] = among.similarities.max(axis=1)
    return NearestByFeatures(outlier, similarity, images, among)
